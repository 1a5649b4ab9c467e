/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings of a data end in a program (fabric/packet_ring.h): packets to and
 * from the fabric without a system call for each.  If the data end has no
 * rings, its packets go by its socket.
 *
 * Lock: the caller's.
 */
#ifndef HOST_LINK_RING_H
#define HOST_LINK_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "fabric/packet_ring.h"
#include "fabric/proto.h"
#include "hdr/lrh.h"

struct link_ring {
	/* Both rings, of PACKET_RING_FILE bytes.  NULL: there are none. */
	void *memory;
	/* The packets to the fabric. */
	struct packet_ring_out out;
	/* The packets from the fabric. */
	struct packet_ring_in in;
	/* An eventfd; -1: there are no rings.  Its count is at the limit after
	 * link_ring_wants_room, and 0 once the fabric has made room, so that
	 * POLLOUT says when there is room. */
	int room_fd;
	/* The fabric waits for a wake-up that the kernel had no memory to send.
	 * Each link_ring_send, link_ring_release and link_ring_idle tries to
	 * send the wake-up again. */
	bool owes_wake;
	/* A copy of the packet that was taken last. */
	uint8_t packet[LRH_FRAME_MAX];
};

/* Prepares the struct of a data end without rings. */
void link_ring_init(struct link_ring *r);
/* Asks the fabric for the rings of the data end at a port.  @control: the
 * connection to the fabric.  @fd: the data end's socket.  *m: a request with
 * the host and the port; used for the question.  Returns 0, also if the user or
 * the fabric refuses rings (env_is_without), or if this process has no memory
 * or no descriptor for them: then the socket serves.  Otherwise returns the
 * -errno of fabric_client_bring; -EPROTO also if the fabric has sent no
 * sealed memory file of PACKET_RING_FILE bytes. */
int link_ring_open(struct link_ring *r, int control, int fd,
		   struct fabric_proto *m);
/* Ends the use of the rings.  is_child: does not unmap the memory, because this
 * process is the child of a fork, in which the memory is not mapped, or because
 * a thread that could not be stopped may still use the memory. */
void link_ring_close(struct link_ring *r, bool is_child);
/* Are there rings? */
bool link_ring_is_open(const struct link_ring *r);

/* Does the work of link_send by the ring.  @fd: the socket of the data end.  If
 * fewer than n frames were sent, the ring is full. */
size_t link_ring_send(struct link_ring *r, int fd,
		      const struct engine_frame *frames, size_t n);
/* Makes r->room_fd tell of room by POLLOUT.  Called before a thread waits for
 * room, and not by a thread that only tries again, since this function makes
 * two or three system calls.  False: there is room now, or the ring is broken,
 * and the caller does not wait. */
bool link_ring_wants_room(struct link_ring *r);
/* Takes the next packet of the fabric: sets *bytes, which are this process's
 * own and stay valid until the next call, and *n.  False: there is none. */
bool link_ring_take(struct link_ring *r, const uint8_t **bytes, size_t *n);
/* Gives back the room of the packets that were taken.  @fd: the socket of the
 * data end, by which a fabric that waits for room is woken. */
void link_ring_release(struct link_ring *r, int fd);
/* Makes the fabric send a message at the next packet.  False: there are packets
 * now, the ring is broken, or the fabric waits for a wake-up that cannot be
 * sent.  The caller then does not wait. */
bool link_ring_idle(struct link_ring *r, int fd);
/* Has the fabric written into the rings what no fabric writes? */
bool link_ring_is_broken(const struct link_ring *r);

#endif
