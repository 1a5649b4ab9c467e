/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that send, one for each destination process, so that datagrams to
 * two processes have two source ports.  This matters because a receiver's
 * kernel joins datagrams with equal ports (GRO), and delivers the joined
 * datagram to one socket.  A process is identified by its address and steering
 * class, together called its pair.
 *
 * Each socket is bound to a source port (IBTA A17.3.2.1) that is computed from
 * the pair, in the range of the dynamic ports (RFC 6335, 6: 0xc000 to 0xffff),
 * or to the next free port.  A socket receives nothing, and is opened when it
 * is first needed.  The opening of a socket also closes old ones (sweep_ports):
 * no queue pair uses such a socket (sport_take), and for at least SPORT_IDLE_NS
 * it was neither opened, nor found by sport_find, nor given back by
 * sport_give.  At most sports.most sockets are open: a quarter of the
 * descriptors that the process may have, but no more than SPORT_MOST.  Further
 * pairs share the socket of another pair of the same address family.  A pair
 * for which no socket could be opened does so, too, and tries again after a
 * second.
 * Datagrams to multicast groups go from the main socket.
 *
 *	pair -> slot, by hashing with linear probing -> port, fd
 *	port -> slot, by of_port
 *
 * Owner: struct udp_socket; lock: the progress lock, except for sport_find.
 */
#ifndef WIRE_SPORT_H
#define WIRE_SPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/ring.h"

#define SPORT_SLOTS 1024		  /* slots of the table */
#define SPORT_MOST  (SPORT_SLOTS / 4 * 3) /* the limit of sports.most */
/* The least time for which an unused socket stays open. */
#define SPORT_IDLE_NS 10000000000u

struct sport_table;
struct sender;

struct sports {
	uint16_t main_port; /* the port of the main socket */
	bool is_off;	    /* all datagrams are sent from the main socket */
	uint32_t count;	    /* how many sockets are open */
	uint32_t most;	    /* the limit of `count` */
	uint64_t swept_ns;  /* when unused sockets were last looked for */
	uint32_t check_at;  /* the slot where sport_check_next goes on */
	struct sport_table *table; /* owned */
};

/* Initialises s without a socket.  main_port: the port of the main socket,
 * which the caller has opened.  is_off: all datagrams are sent from the main
 * socket.  Returns 0 or -ENOMEM. */
int sport_init(struct sports *s, uint16_t main_port, bool is_off);
/* Closes all sockets; s may be all zero. */
void sport_fini(struct sports *s);
/* Returns the port from which datagrams go to the pair of ip and class; 0: no
 * socket is open for the pair, so the caller calls sport_open.  Takes no lock
 * and needs none. */
uint16_t sport_find(const struct sports *s, const uint8_t ip[16],
		    uint32_t class);
/* Returns the port from which datagrams go to the pair of ip and class; opens a
 * socket if there is none.  If none can be opened, returns the port of another
 * pair's socket or of the main socket. */
uint16_t sport_open(struct sports *s, const uint8_t ip[16], uint32_t class,
		    uint64_t now_ns);
/* Returns the port from which a queue pair sends to the pair of ip and class;
 * opens a socket if there is none.  If none can be opened, returns the port of
 * another pair's socket or of the main socket.  The socket stays open until the
 * queue pair gives the port back by sport_give. */
uint16_t sport_take(struct sports *s, const uint8_t ip[16], uint32_t class,
		    uint64_t now_ns);
/* Ends a queue pair's use of a port that sport_take returned. */
void sport_give(struct sports *s, uint16_t port);
/* Checks some of the sockets, and others in the next calls: 16 calls check all.
 * Returns false if the program has closed one of them, or has put another file
 * in its place. */
bool sport_check_next(struct sports *s);
/* Returns the sender that is bound to a port, owned by s; NULL: the port is
 * that of the main socket, or no socket is bound to it. */
struct sender *sport_sender(const struct sports *s, uint16_t port);

#endif
