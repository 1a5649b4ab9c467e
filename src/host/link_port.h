/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port of the link to an emulated subnet (fabric_link.h): its data end, and
 * what the fabric has said of its state.  The fabric reports only which parts
 * of the state have changed (link_port_hear); the link then asks for the state
 * (link_port_ask), and the answer is shown to the engine (link_port_show) and,
 * later, to the device layer (link_port_take_changes).
 *
 * Owner: host/fabric_link.  Lock: the progress lock.
 */
#ifndef HOST_LINK_PORT_H
#define HOST_LINK_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "fabric/proto.h"
#include "host/link_groups.h"
#include "host/link_ring.h"

struct link_port {
	uint32_t device; /* the index of the link's device in the engine */
	uint32_t number; /* the port's number */
	int fd;		 /* the data end's socket; -1: none */
	size_t burst; /* the most bytes of packets in a message to the fabric */
	struct link_ring ring; /* packets go by these rings, if there are any */
	/* Sets of enum data_change.
	 * heard: changes that the fabric has reported, and about which no
	 * question was sent yet.
	 * asked: changes that the answer to the open question will include.
	 * shown: changes that `now` includes, and that link_port_take_changes
	 * has not returned yet. */
	uint32_t heard, asked, shown;
	/* The fabric's last answer; after link_port_take_down, with the state
	 * of a port without a cable. */
	struct fabric_port now;
	struct link_groups groups;
};

/* Sends the first k of n frames, which all have a head, by the port's ring or
 * socket, and returns k. */
size_t link_port_send(struct link_port *port, const struct engine_frame *frames,
		      size_t n);
/* Returns the descriptor that has POLLOUT when there is room again, after
 * link_port_send has sent fewer than n frames and link_port_wants_room has
 * returned true. */
int link_port_full_fd(const struct link_port *port);
/* Called before a thread waits for room: makes the descriptor of
 * link_port_full_fd tell of room.  False: there is room now, and the caller
 * does not wait. */
bool link_port_wants_room(struct link_port *port);
/* Captures a received packet and gives it to the engine.  If the packet's Q_Key
 * is wrong, gives the packet back to the fabric (link_send_refused). */
void link_port_take(const struct link_port *port, struct engine *engine,
		    const uint8_t *bytes, size_t n, uint64_t now_ns);
/* Gives some packets of the port's ring, if it has one, to the engine, until
 * the engine is choked.  Returns how many; -ECONNRESET: the fabric has closed
 * the data end; or -EPROTO: the fabric has written to the ring what no fabric
 * writes. */
int link_port_take_ring(struct link_port *port, struct engine *engine,
			uint64_t now_ns);
/* Has the port's ring packets? */
bool link_port_has_packets(const struct link_port *port);
/* Makes the fabric send a message on the socket at the next packet.  False: the
 * caller does not wait (link_ring_idle). */
bool link_port_idle(struct link_port *port);
/* Do the port's descriptors still refer to the link's files? */
bool link_port_is_ours(const struct link_port *port);

/* Notes that the fabric has reported these changes, a set of enum data_change.
 * Returns 0, or -EPROTO: one of the changes is unknown. */
int link_port_hear(struct link_port *port, uint32_t changes);
/* Has the fabric reported changes about which no question was sent yet?  If so,
 * moves them from `heard` to `asked`, and the caller sends the question. */
bool link_port_ask(struct link_port *port);
/* Takes the state, which the fabric has answered, and tells the engine. */
void link_port_show(struct link_port *port, struct engine *engine,
		    const struct fabric_port *now);
/* Gives the port the state of a port without a cable, for the device layer
 * (link_port_take_changes); the engine is not told. */
void link_port_take_down(struct link_port *port);
/* Returns what has changed in `now` since the last call, as a set of enum
 * data_change. */
uint32_t link_port_take_changes(struct link_port *port);

#endif
