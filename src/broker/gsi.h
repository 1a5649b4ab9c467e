/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general service interface of a network namespace (IBTA Vol 1, 3.9.5.1,
 * 13.5.1): QP1.  Its datagrams arrive at member 0 of the group, as do those for
 * queue pairs that nobody has.  QP1 passes whole MADs to and from the agents
 * that have attached, and reads no more of a MAD than its header.
 *
 *	datagram -> ICRC, BTH, DETH -> QP1? Q_Key? 256 bytes? -> the agent
 *
 * QP1 of this host is ours alone, and sends from UDP port 4791: a MAD from an
 * address of this host and another port is of a program that has no right to
 * it, and is dropped.  Other hosts may send from any port (the kernel's rxe
 * does).
 *
 * Part of the broker's loop: one thread, no lock, no call waits.  Dropped
 * datagrams are counted.
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
#define GSI_PKEY   0xffff      /* a full member of the default partition */
#define GSI_AGENTS 4
#define GSI_FRAME  296 /* bytes, from BTH to ICRC */
#define GSI_BLOCKS 512 /* at most, of frames that wait: 32768 frames */

/* One MAD.  `to` is an address of ours if the MAD has arrived, `from` if the
 * caller sends the MAD. */
struct gsi_mad {
	struct inaddr from, to;
	uint32_t scope;	     /* interface of link-local addresses; 0: any */
	uint32_t remote_qpn; /* the peer's QPN */
	uint16_t pkey;
	const uint8_t *bytes; /* MAD_BYTES, borrowed */
};

/* An agent receives the MADs of a management class. */
struct gsi_agent {
	uint8_t mgmt_class;
	void *user;
	void (*receive)(void *user, const struct gsi_mad *m, uint64_t now_ns);
};

/* Frames that wait to be sent, as many as one system call takes. */
struct gsi_block {
	struct gsi_block *next;
	uint32_t count; /* how many frames out[] has */
	uint32_t sent;	/* how many of them were sent */
	struct udp_dgram out[UDP_BATCH];
	uint8_t frame[UDP_BATCH][GSI_FRAME];
};

struct gsi {
	struct udp wire;
	bool is_open;
	bool is_full; /* at the last flush the socket took no more */
	uint32_t psn;
	struct gsi_block *first, *last; /* frames that wait, in order */
	uint32_t blocks;
	struct gsi_agent agent[GSI_AGENTS];
	uint32_t agents;
	/* Not NULL: takes datagrams for the processes that have a class, where
	 * the kernel cannot steer or the process is another user's. */
	void (*relay)(void *user, uint32_t class, const struct udp_dgram *d);
	void *relay_user;
	/* The source address that was last asked about, in this gsi_turn. */
	struct inaddr asked;
	uint32_t asked_scope;
	bool has_asked, is_local;
	/* Counts of the MADs and frames that came in. */
	uint64_t served;   /* MADs for an agent */
	uint64_t unserved; /* MADs of a class that has none */
	uint64_t forged;   /* MADs of another program of this host */
	uint64_t strays;   /* frames for queue pairs that nobody has */
	uint64_t junk;	   /* all else */
	/* Frames that did not go out: too much waited, or there was no memory.
	 */
	uint64_t lost;
};

/* Attaches an agent, before or after gsi_open; false: there are as many as may
 * be. */
bool gsi_attach(struct gsi *g, const struct gsi_agent *agent);
/* Duplicates fd, the socket of member 0, and begins to receive.  0 or
 * -errno. */
int gsi_open(struct gsi *g, int fd);
/* Sends the frames that wait, as many as the socket takes, and closes QP1. */
void gsi_close(struct gsi *g);
/* The descriptor to poll for POLLIN; -1: gsi_open has not been called. */
int gsi_fd(const struct gsi *g);
/*
 * Receives a bounded number of datagrams, so that a flood does not stop the
 * loop.  The bound is greater than the number of frames that one gsi_flush
 * sends.
 */
void gsi_turn(struct gsi *g, uint64_t now_ns);
/*
 * Sends a MAD from QP1, with the next gsi_flush.  m->from.port is not used;
 * m->to.port 0 is RoCEv2's.  If too many frames wait, the MAD is lost as on the
 * wire.
 */
void gsi_send(struct gsi *g, const struct gsi_mad *m);
/* Sends a MAD of cm/ to the QP1 of another host by gsi_send. */
void gsi_send_frame(struct gsi *g, const struct cm_frame *f);
/*
 * Sends the first frames that wait, by as few system calls as possible, and no
 * more than a default receive buffer holds: the frames of connections within
 * this host come back to this socket, which is read between two flushes.
 */
void gsi_flush(struct gsi *g);
/* How long the next gsi_flush may wait, in ms; 0: the socket may take frames
 * that wait; -1: no frame waits. */
int gsi_patience(const struct gsi *g);

#endif
