/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that send: one for each process that we send to, as its address
 * and steering class name it, so that datagrams for two processes never have
 * the same ports.  A receiver's kernel joins equal ones (GRO), and the joined
 * datagram goes to one socket.
 *
 * Each is bound to a port of IBTA A17.3.1's range that follows from address
 * and class, the next one where that is taken, receives nothing, and is opened
 * when it is first needed.  Beyond SPORT_MAX processes some share one.
 *
 * Owner: the wire; lock: the lane's, but for sport_find.
 */
#ifndef WIRE_SPORT_H
#define WIRE_SPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/ring.h"

#define SPORT_MAX 64

struct sport {
	uint8_t ip[16];
	uint32_t class;
	int fd;		 /* -1: none could be had, the main socket sends */
	ring_index port; /* 0: the slot is empty; written last */
};

struct sports {
	uint16_t main_port; /* of the main socket */
	bool is_off;	    /* all leaves from there */
	struct sport slot[SPORT_MAX];
};

/* The port to send from, if it has been chosen; 0: it has not.  Without any
 * lock. */
uint16_t sport_find(const struct sports *s, const uint8_t ip[16],
		    uint32_t class);
/* The same, chosen now if need be. */
uint16_t sport_open(struct sports *s, const uint8_t ip[16], uint32_t class);
/* The socket of a port; -1: the main one. */
int sport_fd(const struct sports *s, uint16_t port);
void sport_close(struct sports *s);

#endif
