/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that send: one for each destination process, which is identified
 * by its address and steering class (the pair), so that datagrams to two
 * processes never have the same source port.  A receiver's kernel joins
 * datagrams with equal ports (GRO), and delivers a joined datagram to one
 * socket.
 *
 * Each socket is bound to a port of IBTA A17.3.1's range, computed from the
 * pair, or to the next free port.  A socket receives nothing and is opened when
 * it is first needed.  When a socket is opened, each socket is closed that no
 * queue pair uses and no datagram has used for SPORT_IDLE_NS.  At most
 * sports->most sockets are open, a quarter of the process's descriptors;
 * further pairs share the socket of another pair of the same address family.
 *
 *	pair -> slot, by hashing with linear probing -> port, fd
 *	port -> slot, by of_port
 *
 * Owner: the wire; lock: the progress lock, except for sport_find.
 */
#ifndef WIRE_SPORT_H
#define WIRE_SPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/ring.h"

#define SPORT_SLOTS   1024
#define SPORT_MOST    (SPORT_SLOTS / 4 * 3)
#define SPORT_IDLE_NS 10000000000u

struct sport_table;
struct sender;

struct sports {
	uint16_t main_port; /* the port of the main socket */
	bool is_off;	    /* send all datagrams from the main socket */
	uint32_t count;	    /* open sockets */
	uint32_t most;	    /* the limit of count */
	uint64_t swept_ns;  /* the time when unused sockets were last closed */
	struct sport_table *table;
};

/* Initialises s without a socket.  Returns 0 or -ENOMEM. */
int sport_init(struct sports *s, uint16_t main_port, bool is_off);
/* Closes all sockets; s may be all zero. */
void sport_fini(struct sports *s);
/* Returns the port to send to a pair from, or 0 if sport_open has not chosen
 * one.  Takes no lock and needs none. */
uint16_t sport_find(const struct sports *s, const uint8_t ip[16],
		    uint32_t class);
/* Returns the port to send to a pair from; opens a socket if there is none. */
uint16_t sport_open(struct sports *s, const uint8_t ip[16], uint32_t class,
		    uint64_t now_ns);
/* Returns the port from which a queue pair sends to a pair; opens a socket if
 * there is none.  The socket stays open until a call of sport_give. */
uint16_t sport_take(struct sports *s, const uint8_t ip[16], uint32_t class,
		    uint64_t now_ns);
/* Ends a queue pair's use of a port from sport_take. */
void sport_give(struct sports *s, uint16_t port);
/* Returns the sender that is bound to a port; NULL: the main socket. */
struct sender *sport_sender(const struct sports *s, uint16_t port);

#endif
