/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general service interface of a network namespace (IBTA Vol 1, 3.9.5.1,
 * 13.5.1): QP1, whose datagrams arrive at member 0 of the group beside those
 * that belong to nobody.  It carries whole MADs to and from the agents that
 * have attached, and knows nothing of what they say.
 *
 *	datagram -> ICRC, BTH, DETH -> QP1? Q_Key? 256 bytes? -> the agent
 *
 * QP1 of this host is ours alone, and sends from UDP port 4791: a MAD from an
 * address of this host and another port is of a program that has no right to
 * it, and is dropped.  Other hosts may send from any port (the kernel's rxe
 * does).
 *
 * One owner, no lock; nothing waits.  All that is wrong is counted.
 */
#ifndef BROKER_GSI_H
#define BROKER_GSI_H

#include "cm/cm.h"
#include "util/inaddr.h"
#include "wire/udp.h"

#include <stdbool.h>
#include <stdint.h>

#define GSI_QPN	   1
#define GSI_QKEY   0x80010000u /* IBTA 10.2.5: the well-known one of QP1 */
#define GSI_PKEY   0xffff      /* of full members of the default partition */
#define GSI_AGENTS 4
#define GSI_FRAME  296 /* bytes, from BTH to ICRC */
#define GSI_BLOCKS 512 /* that wait at most: 32768 frames */

/* One MAD and whom it is from or for.  `to` is ours when it has arrived. */
struct gsi_mad {
	struct inaddr from, to;
	uint32_t scope; /* interface of link-local addresses; 0: any */
	uint32_t remote_qpn;
	uint16_t pkey;
	const uint8_t *bytes; /* MAD_BYTES of them, borrowed */
};

/* Who serves a management class. */
struct gsi_agent {
	uint8_t mgmt_class;
	void *user;
	void (*receive)(void *user, const struct gsi_mad *m, uint64_t now_ns);
};

/* Frames that wait to be sent, as many as one call takes. */
struct gsi_block {
	struct gsi_block *next;
	uint32_t count, sent; /* of out */
	struct udp_dgram out[UDP_BATCH];
	uint8_t frame[UDP_BATCH][GSI_FRAME];
};

struct gsi {
	struct udp wire;
	bool is_open;
	bool is_full; /* the socket took no more at the last flush */
	uint32_t psn;
	struct gsi_block *first, *last; /* what waits, in order */
	uint32_t blocks;
	struct gsi_agent agent[GSI_AGENTS];
	uint32_t agents;
	/* Set: who hands on what is for the classes of others. */
	void (*relay)(void *user, uint32_t class, const struct udp_dgram *d);
	void *relay_user;
	/* The source address that was last asked about, in this gsi_turn. */
	struct inaddr asked;
	uint32_t asked_scope;
	bool has_asked, is_local;
	/* What came in. */
	uint64_t served;   /* MADs for an agent */
	uint64_t unserved; /* MADs of a class that has none */
	uint64_t forged;   /* MADs of another program of this host */
	uint64_t strays;   /* frames for queue pairs that nobody has */
	uint64_t junk;	   /* all else */
	/* Frames that did not go out: too much waited, or there was no memory.
	 */
	uint64_t lost;
};

/* An agent attaches before or after open; false: there is no room. */
bool gsi_attach(struct gsi *g, const struct gsi_agent *agent);
/* Around member 0's socket, of which it keeps a copy; 0 or -errno. */
int gsi_open(struct gsi *g, int fd);
void gsi_close(struct gsi *g);
/* The descriptor to poll for POLLIN; -1: not open. */
int gsi_fd(const struct gsi *g);
/*
 * A bounded number of datagrams, so that a flood starves nobody; more than one
 * gsi_flush sends.
 */
void gsi_turn(struct gsi *g, uint64_t now_ns);
/*
 * Sends a MAD from QP1, with the next gsi_flush: m->from is the local address
 * to use, its port is set here, m->to.port 0 means RoCEv2's.  One that cannot
 * go is lost; a sender repeats it.
 */
void gsi_send(struct gsi *g, const struct gsi_mad *m);
/* The same for what cm/ has to say to the QP1 of another. */
void gsi_send_frame(struct gsi *g, const struct cm_frame *f);
/*
 * The first of what waits, by as few calls as it takes: so many at most that
 * a receive buffer holds them.  Much of it is for ourselves, since the
 * connections of a host's programs are, and between two flushes we read.
 */
void gsi_flush(struct gsi *g);
/*
 * How long the next gsi_flush may wait, in ms: 0: something waits and there may
 * be room; -1: nothing waits.
 */
int gsi_patience(const struct gsi *g);

#endif
