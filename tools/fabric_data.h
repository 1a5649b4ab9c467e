/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of data ends in the process of a fabric: a message has packets of
 * a program's queue pairs, or a packet that the program has refused, or tells
 * the program of changes of its port (fabric/proto.h).
 *
 * A program that ends leaves packets in its socket or its ring.  The requests
 * of these packets may have completed, and an adapter would have sent the
 * packets.  So the data end of an ended program receives no more packets, and
 * sends those that are left as fast as the data end may send (data_may_send).
 * The socket is closed when none is left, and at the latest FABRIC_DATA_REST_MS
 * after the program's end: a receiver that does not read cannot keep the data
 * end and its data_number for longer.
 *
 * A data end may have rings.  Once its program has said that it uses them, the
 * packets are in the rings, and the messages on the socket only wake the
 * reader, tell the program of changes, or report refused packets.  As long as
 * one of the rings has packets in each turn, the fabric's process does not
 * sleep, and looks in each turn at the rings in which packets have come lately.
 * After a turn in which no ring had a packet, the process asks the programs to
 * wake it, and sleeps.  A data end is closed if its program writes a wrong word
 * into a ring (fabric/packet_ring.h).
 *
 * Owner: the process's one thread.
 */
#ifndef TOOLS_FABRIC_DATA_H
#define TOOLS_FABRIC_DATA_H

#include "fabric_ring.h"
#include "fabric_watch.h"

#include "fabric/data.h"
#include "util/list.h"

enum { FABRIC_DATA_REST_MS = 20000 };

/* The data ends of a fabric's process. */
struct fabric_data {
	struct fabric *fabric; /* borrowed */
	int epoll;	       /* watches the sockets */
	uint8_t *buffer;       /* room for a message */
	size_t size;	       /* of buffer, in bytes */
	struct list rests;     /* struct fabric_data_socket.rest */
	struct list busy;      /* struct fabric_data_socket.busy */
	struct list rings;     /* struct fabric_ring.list */
	struct list owed;      /* struct fabric_data_socket.owed */
	struct list lenders;   /* struct fabric_data_socket.lender */
	/* A ring had as many packets as one turn takes, so it probably has
	 * more. */
	bool has_more;
	/* A socket was closed.  The owner of the struct sets this to false. */
	bool has_closed;
};

/* The socket of a data end. */
struct fabric_data_socket {
	struct fabric_watch watch; /* the socket */
	struct data_end *end;	   /* NULL: not open */
	/* The data end may send, so the program's packets are read: from the
	 * socket or, if uses_ring is set, from the ring. */
	bool reads;
	/* The program does not read its packets, or the kernel has no memory
	 * for a message to the program now. */
	bool is_full;
	/* The most bytes of packets in a message to the program. */
	size_t burst;
	/* In fabric_data.rests: the program has ended, and the socket or the
	 * ring may have packets of the program. */
	struct list rest;
	uint64_t rest_ms; /* if `rest` is linked: when the socket is closed at
			     the latest, in ms of monotonic_ms */
	struct fabric_ring ring; /* both rings; ring.memory NULL: none */
	/* The program has said that it uses the rings. */
	bool uses_ring;
	/* In fabric_data.busy: the program may put packets into its ring
	 * without a message. */
	struct list busy;
	/* In fabric_data.owed: the program waits for packets, has got some, and
	 * is to be woken. */
	struct list owed;
	/* In fabric_data.lenders: packets of the ring were taken, and their
	 * room is not given back yet, since the fabric may use their bytes
	 * there (data_lend). */
	struct list lender;
	/* How many looks at the ring in a row have found nothing. */
	uint32_t in_vain;
	/* The ring to the program is full, and the program sends a message when
	 * there is room. */
	bool is_ring_full;
	/* The program waits for a wake-up that could not be sent for want of
	 * memory.  is_full is set, too. */
	bool owes_wake;
};

/* Prepares the lists of *f.  The caller sets the other members. */
void fabric_data_init_all(struct fabric_data *f);
/* Prepares *d, a socket of connection c that is not open. */
void fabric_data_init(struct fabric_data_socket *d, struct connection *c);
/* Begins to serve the socket fd and the data end `end`, whose data_owner is d.
 * Takes both.  Returns 0 or -errno; on failure both are closed. */
int fabric_data_open(struct fabric_data *f, struct fabric_data_socket *d,
		     int fd, struct data_end *end);
/* Gives rings to d, which is open and whose program is the process `pid` (0:
 * unknown).  Returns the descriptor for the program and takes room_fd, or
 * returns an error, as fabric_ring_open does. */
int fabric_data_ring(struct fabric_data *f, struct fabric_data_socket *d,
		     int pid, int room_fd);
/* Serves the events that epoll has reported. */
void fabric_data_serve(struct fabric_data *f, struct fabric_data_socket *d,
		       uint32_t events);
/* The program of d has ended, or has closed its socket.  Sends the packets that
 * are left; d is closed when all are sent, perhaps before this returns. */
void fabric_data_leave(struct fabric_data *f, struct fabric_data_socket *d);
/* Closes d, if it is open.  Packets that are left in the socket or the rings
 * are lost. */
void fabric_data_close(struct fabric_data *f, struct fabric_data_socket *d);
/* Takes packets out of the rings of programs, and returns whether there were
 * any.  The loop calls this before fabric_turn. */
bool fabric_data_take(struct fabric_data *f);
/* Wakes the programs that have waited for packets in a ring and have got some.
 * The loop calls this before it asks for events, since it may then sleep. */
void fabric_data_wake(struct fabric_data *f);
/* Gives the programs the packets and the changes that wait for them, gives back
 * the room of the packets that fabric_data_take has taken, calls
 * fabric_data_wake unless a ring that was read in this turn probably has more
 * packets (has_more), watches the sockets and the rings of data ends that may
 * send again, sends packets that ended programs have left, and closes the
 * sockets of ended programs whose time is over.  The loop calls this after
 * fabric_turn. */
void fabric_data_turn(struct fabric_data *f, uint64_t now_ms);
/* Returns when fabric_data_take and fabric_data_turn have to be called, in ms
 * of monotonic_ms: 0, which is at once, if packets of an ended program may be
 * sent, or if a ring may have packets; else when the next socket of an ended
 * program has to be closed; FABRIC_NEVER: never. */
uint64_t fabric_data_deadline(const struct fabric_data *f);

#endif
