/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that send: one for each process that we send to, as its address
 * and steering class name it, so that datagrams for two processes never have
 * the same ports.  A receiver's kernel joins equal ones (GRO), and the joined
 * datagram goes to one socket.
 *
 * Each is bound to a port of IBTA A17.3.1's range that follows from address
 * and class, the next one where that is taken, receives nothing, and is opened
 * when it is first needed.  One that no queue pair has and no datagram asked
 * for in SPORT_IDLE_NS is closed when another is opened.  Beyond sports->most
 * processes, a quarter of the descriptors that we may have, some share one.
 *
 *	pair -> slot, by its hash or after it -> port, fd
 *	port -> slot, of_port
 *
 * Those that share one are of its family.
 *
 * Owner: the wire; lock: the progress lock, but for sport_find.
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
	uint16_t main_port; /* of the main socket */
	bool is_off;	    /* all leaves from there */
	uint32_t count, most;
	uint64_t swept_ns;
	struct sport_table *table;
};

/* 0 or -ENOMEM. */
int sport_init(struct sports *s, uint16_t main_port, bool is_off);
void sport_fini(struct sports *s);
/* The port to send from, if it has been chosen; 0: it has not.  Without any
 * lock. */
uint16_t sport_find(const struct sports *s, const uint8_t ip[16],
		    uint32_t class);
/* The same, chosen now if need be. */
uint16_t sport_open(struct sports *s, const uint8_t ip[16], uint32_t class,
		    uint64_t now_ns);
/* The same for a queue pair that keeps it until it gives it back. */
uint16_t sport_take(struct sports *s, const uint8_t ip[16], uint32_t class,
		    uint64_t now_ns);
void sport_give(struct sports *s, uint16_t port);
/* What sends from a port; NULL: the main socket. */
struct sender *sport_sender(const struct sports *s, uint16_t port);

#endif
