/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general service interface of a network namespace (IBTA Vol 1, 3.9.5.1,
 * 13.5.1): QP1.  Datagrams for QP1 arrive at member 0 of the group
 * (reuseport_group.h), and so do datagrams for queue pairs that do not exist.
 * QP1 passes whole MADs to and from the agents that are attached, and reads
 * only the header of a MAD.
 *
 *	datagram -> ICRC, BTH, DETH -> QP1? Q_Key? 256 bytes? -> the agent
 *
 * QP1 of this host belongs to the broker, and sends from UDP port 4791.  A MAD
 * from an address of this host and from another port is forged by a program of
 * this host, and is dropped.  Other hosts may send from any port, as the
 * kernel's rxe does; but a host whose link-local address is also one of this
 * host's, on another link, has to send from port 4791.
 *
 * Part of the broker's loop: one thread, no lock, no call waits.  Datagrams
 * that are dropped are counted.
 */
#ifndef BROKER_GSI_H
#define BROKER_GSI_H

#include "cm/cm.h"
#include "util/inaddr.h"
#include "wire/udp.h"

#include <stdbool.h>
#include <stdint.h>

#define GSI_QPN	   1
#define GSI_PKEY   0xffff /* a full member of the default partition */
#define GSI_AGENTS 4	  /* the most agents */
#define GSI_FRAME  280	  /* bytes of a frame, from BTH to ICRC */
/* The most blocks that may wait.  The frames of one owner fill at most half of
 * them: 32768 frames. */
#define GSI_BLOCKS 1024

/* One MAD.  If the MAD has arrived, `to` is an address of this host; if the
 * caller sends the MAD, `from` is. */
struct gsi_mad {
	struct inaddr from, to;
	uint32_t scope;	     /* the interface of link-local addresses; 0: any */
	uint32_t remote_qpn; /* the peer's QPN */
	uint16_t pkey;	     /* the P_Key of the packet */
	/* The MAD waits behind the frames of this owner: the number of a struct
	 * cm_owner, or 0 for a MAD of no user.  Unused if the MAD has arrived.
	 */
	uint64_t owner;
	const uint8_t *bytes; /* MAD_BYTES, borrowed */
};

/* An agent receives the MADs of a management class. */
struct gsi_agent {
	uint8_t mgmt_class; /* management class; one agent for each */
	void *user;	    /* passed to receive */
	/* Called by gsi_turn for each MAD, which is borrowed for the call. */
	void (*receive)(void *user, const struct gsi_mad *m, uint64_t now_ns);
};

/* Frames that wait to be sent, as many as one system call takes.  Successive
 * frames to one address of this host are one datagram, which the kernel
 * segments. */
struct gsi_block {
	struct gsi_block *next; /* the block that is sent after this one */
	uint32_t frames;	/* how many frames frame[] has */
	uint32_t count;		/* how many datagrams out[] has */
	uint32_t sent;		/* how many datagrams of out[] were sent */
	struct udp_dgram out[UDP_BATCH];     /* their bytes are in frame[] */
	uint8_t frame[UDP_BATCH][GSI_FRAME]; /* the frames, in order */
};

/*
 * The frames of one owner that wait.  The queues are served in turns, a block
 * in a turn, so that no user's frames wait for all frames of another user.
 * Frames to an address at which no host answers fill the socket until the
 * kernel gives up its question for the link-layer address, after seconds.
 */
struct gsi_queue {
	struct gsi_queue *next; /* the queue that has the turn after this one */
	uint64_t owner;		/* gsi_mad.owner of all its frames */
	struct gsi_block *first, *last; /* its frames, in order; not empty */
	uint32_t blocks;		/* how many blocks it has */
};

/* All zeroes: QP1 is closed, no agent is attached, and nothing is relayed. */
struct gsi {
	struct udp_socket wire; /* the socket of QP1, if is_open */
	bool is_open;		/* gsi_open has succeeded */
	bool is_full;		/* at the last flush the socket took no more */
	uint32_t psn;		/* the PSN of the next frame */
	struct gsi_queue *first, *last; /* the queues, in order of turns */
	uint32_t blocks;		/* how many blocks wait in all queues */
	struct gsi_agent agent[GSI_AGENTS];
	uint32_t agents; /* how many entries agent[] has */
	/* Not NULL: takes the datagrams for a process if the kernel cannot
	 * steer, or if the process is of another user.  `user` is relay_user;
	 * d is borrowed for the call.  Class 0: a multicast datagram. */
	void (*relay)(void *user, uint32_t class, const struct udp_dgram *d);
	void *relay_user; /* passed to relay */
	/* Until the end of a gsi_turn, is_forged keeps its last question to the
	 * kernel, and the answer.  has_asked: there was a question in this
	 * turn; asked, asked_scope: its address and interface; is_local: the
	 * answer. */
	struct inaddr asked;
	uint32_t asked_scope;
	bool has_asked, is_local;
	/* gsi_send keeps the last answer of the kernel until gsi_flush: has_to
	 * says that there is one, and is_near says whether `to` is an address
	 * of this host. */
	struct inaddr to;
	bool has_to, is_near;
	/* Counts of the MADs and frames that came in. */
	uint64_t served;   /* MADs for an agent */
	uint64_t unserved; /* MADs of a class without an agent */
	uint64_t forged; /* MADs that another program of this host has forged */
	uint64_t strays; /* frames for queue pairs that do not exist */
	uint64_t junk;	 /* all other frames that were dropped */
	/* MADs that gsi_send has dropped, since too many frames waited or there
	 * was no memory. */
	uint64_t lost;
};

/* Attaches an agent, which is copied, before or after gsi_open.  No call
 * detaches an agent.  False: there are GSI_AGENTS already. */
bool gsi_attach(struct gsi *g, const struct gsi_agent *agent);
/* Begins to receive by a duplicate of fd, the socket of member 0; fd stays the
 * caller's.  Returns 0 or -errno. */
int gsi_open(struct gsi *g, int fd);
/* Sends as many of the frames that wait as the socket takes, and closes QP1. */
void gsi_close(struct gsi *g);
/* Returns the descriptor to poll for POLLIN; -1: QP1 is not open. */
int gsi_fd(const struct gsi *g);
/* Receives datagrams and passes their MADs to the agents.  One call receives a
 * bounded number of datagrams, so that no flood, whatever it contains, stops
 * the loop.  The bound is greater than the number of frames that one gsi_flush
 * sends.  now_ns: CLOCK_MONOTONIC, passed to the agents. */
void gsi_turn(struct gsi *g, uint64_t now_ns);
/* Queues a MAD, which is copied; the next gsi_flush sends it from QP1.
 * m->from.port is not used; if m->to.port is 0, the MAD goes to port 4791.  If
 * too many frames of its owner wait, the MAD is lost, as MADs on the wire may
 * be. */
void gsi_send(struct gsi *g, const struct gsi_mad *m);
/* Queues a MAD of cm/ from f->from to QP1 of f->to by gsi_send. */
void gsi_send_frame(struct gsi *g, const struct cm_frame *f);
/*
 * Sends the first frames that wait, by as few system calls as possible.  Sends
 * no more than a default receive buffer holds: frames of connections within
 * this host come back to the socket of QP1, which is read between two flushes.
 */
void gsi_flush(struct gsi *g);
/* Returns after how many milliseconds gsi_flush is due; 0: frames wait, and the
 * socket may take them now; -1: no frame waits. */
int gsi_patience(const struct gsi *g);

#endif
