/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link of this process to a fabric (host/fabric_link.h).  The test does
 * what the fabric would do.  The adapter of the process is side 0 of two_hcas.
 */
#ifndef TESTS_SCENARIO_FABRIC_PEER_H
#define TESTS_SCENARIO_FABRIC_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fabric/packet_ring.h"
#include "fabric/proto.h"
#include "scenario/two_hcas.h"

#define FABRIC_PEER_PORTS	2
#define FABRIC_PEER_HOST	"H"
#define FABRIC_PEER_PATIENCE_MS 60000

/* The path of the socket at which the fabric listens. */
extern char fabric_peer_path[];

/* The fault of the test's fabric.  From NUMBERS_DIFFER to PIPE_AS_DESCRIPTOR
 * the answer about the data ends is wrong; from LID_IS_MULTICAST to MTU_IS_6,
 * the answer about the ports; from IS_SWITCH to FIRST_PORT_IS_0, the answer
 * about the adapter; from RING_WITHOUT_FILE on, the answer about the rings.
 * DATA_NUMBER_MAX, the highest number of a data end, is 1022. */
enum wrong {
	RIGHT,
	NUMBERS_DIFFER,
	NUMBER_IS_0,
	NUMBER_IS_1023,
	NO_DESCRIPTOR,
	PIPE_AS_DESCRIPTOR,
	LID_IS_MULTICAST,
	LMC_IS_8,
	STATE_IS_0,
	MTU_IS_6,
	IS_SWITCH,
	FIRST_PORT_IS_0,
	HANGS_UP, /* closes the connection when asked for a data end */
	RING_WITHOUT_FILE,
	RING_IS_PIPE,
	RING_IS_SHORT,
	RING_IS_NOT_SEALED,
	WRONGS
};

/* The fabric's side of the rings of a data end. */
struct fabric_peer_ring {
	void *memory;
	struct packet_ring_in in;
	struct packet_ring_out out;
	/* the process's eventfd; the fabric reads it when there is room in the
	 * ring to the fabric */
	int room_fd;
};

struct world {
	struct two_hcas *d;
	struct engine *engine; /* of side 0 */
	/* the fabric's listening socket, and its end of the connection */
	int listener, control;
	/* the fabric's ends of the sockets of the data ends */
	int data[FABRIC_PEER_PORTS];
	uint32_t data_bytes; /* SO_SNDBUF of the process's sockets; 0: as is */
	enum wrong wrong;    /* the fault of the fabric */
	struct fabric_port port; /* the answer about each port */
	uint32_t taken;		 /* the number of FABRIC_PROTO_TAKE questions */
	/* If bit n - 1 is set, the data end of port n has rings. */
	uint32_t ring_ports;
	struct fabric_peer_ring rings[FABRIC_PEER_PORTS];
};

/* Makes two adapters with QPs of a type and of `depth` requests, and no link.
 */
void fabric_peer_init(struct world *w, uint32_t type, uint32_t depth);
/* Returns a socket that listens at fabric_peer_path. */
int fabric_peer_listen(void);
/* Opens the link, to the fabric that w->wrong describes.  Returns the result of
 * fabric_link_open. */
int fabric_peer_open(struct world *w);
/* Makes a world whose QPs are of a type, and opens its link.  data_bytes:
 * SO_SNDBUF of the process's sockets; 0: as it is. */
void fabric_peer_start(struct world *w, uint32_t type, uint32_t data_bytes);
/* As fabric_peer_start, with SO_SNDBUF as it is and with rings at the ports
 * whose bits are set: bit n - 1 is port n. */
void fabric_peer_start_rings(struct world *w, uint32_t type,
			     uint32_t ring_ports);
/* Closes the fabric's sockets of the link. */
void fabric_peer_hang_up(struct world *w);
/* Frees the fabric's side of the rings. */
void fabric_peer_free_rings(struct world *w);
/* Closes the link, and frees the world that fabric_peer_start or
 * fabric_peer_start_rings has made. */
void fabric_peer_end(struct world *w);
/* Lets the process receive what the fabric has sent.  Returns whether anything
 * came. */
bool fabric_peer_turn(struct world *w);
/* Returns whether a socket can be read. */
bool fabric_peer_is_readable(int fd);
/* Returns the number of packets in a message of n bytes. */
intptr_t fabric_peer_count(const uint8_t *bytes, ssize_t n);
/* Sends the news that a port has changed.  changed: a set of enum data_change.
 */
void fabric_peer_tell(struct world *w, int port, uint32_t changed);
/* Receives and returns the process's next question, which must be of this kind
 * and about this port. */
struct fabric_proto fabric_peer_question(struct world *w, uint32_t kind,
					 uint32_t port);
/* Sends an answer with the descriptor fd, which stays the caller's; -1: with
 * none. */
void fabric_peer_bring(const struct world *w, struct fabric_proto *m, int fd);
/* Sends an answer. */
void fabric_peer_answer(struct world *w, const struct fabric_proto *m);
/* Expects that the link has ended: the queue pair has failed, the process has
 * closed its sockets, and frames are dropped. */
void fabric_peer_assert_ended(struct world *w);
/* Make and remove the folder of fabric_peer_path, as group setup and teardown
 * of cmocka.  The setup also names the fabric and the host in the environment.
 * Return 0, or -1. */
int fabric_peer_make_folder(void **state);
int fabric_peer_remove_folder(void **state);

#endif
