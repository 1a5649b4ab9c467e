/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traffic: one end of a connection, which posts requests of all kinds at once,
 * and checks each status and what the requests bring:
 *
 *	SEND, SEND with immediate, WRITE with immediate	numbered messages; the
 *							receiver computes each
 *							byte that must come
 *	READ						of memory that nobody
 *							writes: each byte is
 *							checked
 *	FETCH_ADD					of 1: the n-th returns
 *							n, from 0 on
 *	WRITE						the bytes written are
 *							not checked
 *
 * The links of a line share a completion queue; the links with is_shared also
 * share a receive queue.  After a wrong byte or status the process prints a
 * message and exits with status 1.  One thread uses a line and its links; no
 * function takes a lock.
 */
#ifndef TESTS_SYSTEM_LIB_TRAFFIC_H
#define TESTS_SYSTEM_LIB_TRAFFIC_H

#include "endpoint.h"

enum {
	TRAFFIC_WINDOW = 8,    /* most requests of a link that are under way */
	TRAFFIC_RECEIVES = 16, /* posted receives of a link without an SRQ */
	TRAFFIC_POOL = 32,     /* posted receives of an SRQ */
	TRAFFIC_BYTES = 2048,  /* most bytes of a numbered message */
	TRAFFIC_LINKS = 8,     /* most links of a line */
	TRAFFIC_SPAN = 352256, /* bytes of the memory of a link */
};

/* Memory between two guard pages; nobody may write the guard pages. */
struct traffic_area {
	uint8_t *bytes;	   /* the registered memory, after a guard page */
	struct ibv_mr *mr; /* the memory region at bytes */
};

/* A completion queue and the links that use it. */
struct traffic_line {
	struct endpoint e; /* its queue pair is not used */
	struct traffic_link *link[TRAFFIC_LINKS]; /* borrowed; NULL: free */
	struct ibv_srq *srq; /* NULL: the line has no shared receive queue */
	struct traffic_area pool; /* the memory of the SRQ's receives */
	unsigned long long done;  /* completions that were polled and checked */
	bool keeps;		  /* completed receives are not posted again */
};

/* A request under way. */
struct traffic_asked {
	int op;		/* the kind: one of SEND to ADD in traffic.c */
	uint32_t bytes; /* the length */
};

/* One end of a connection. */
struct traffic_link {
	struct traffic_line *line; /* the line of the link */
	struct endpoint e; /* the line's objects and the link's own QP */
	/* self: the address of this end, which traffic_add sets; peer: the
	 * address of the other end, which the caller sets */
	struct endpoint_address self, peer;
	struct traffic_area area; /* the link's own memory */
	uint32_t id;	  /* seed of all contents, the same at both ends */
	bool is_shared;	  /* the link receives from the line's SRQ */
	bool initiates;	  /* traffic_turn posts requests on the link */
	bool has_failed;  /* a request has failed: the rest is flushed */
	bool is_in_error; /* traffic_remove has moved the queue pair to ERR */
	/* borrowed: requests may fail only while *doom is not 0; NULL: requests
	 * must not fail */
	const int *doom;
	bool is_gone; /* requests from number gone_from on must fail */
	/* posted, ended: number of requests posted and completed.  spoken,
	 * heard: number of numbered messages sent and received. */
	uint32_t posted, ended, spoken, heard;
	uint32_t gone_from;  /* the value of `posted` when is_gone was set */
	int receives;	     /* posted receives of a link without an SRQ */
	int flushed;	     /* flushed receives of a link with an SRQ */
	uint64_t last_found; /* the value that the next FETCH_ADD must return */
	/* borrowed counts of FETCH_ADDs, posted and completed, or NULL; another
	 * process reads them after this process has ended or has executed
	 * another program */
	uint32_t *added_posted, *added_done;
	/* the requests under way: request n is asked[n % TRAFFIC_WINDOW] */
	struct traffic_asked asked[TRAFFIC_WINDOW];
};

/* Opens the device and makes the line's objects; @shared: with a shared receive
 * queue.  traffic_close frees them. */
void traffic_open(struct traffic_line *line, bool shared);
/* Frees the objects of the line; all its links have been removed. */
void traffic_close(struct traffic_line *line);
/* Adds to the line the link *l, in which all members but is_shared and the
 * caller's pointers are zero: makes the link's queue pair, in INIT, and its
 * memory, and posts its receives.  The link is borrowed until traffic_remove.
 * @id: a number that is the same at both ends of the connection. */
void traffic_add(struct traffic_line *line, struct traffic_link *l,
		 uint32_t id);
/* Moves the link's queue pair from INIT to RTS, connected to l->peer, which the
 * caller has set. */
void traffic_connect(struct traffic_link *l);
/* Polls once: checks the completions, and posts a request on each link that
 * initiates, has room and has not failed.  Returns the number of completions.
 */
int traffic_turn(struct traffic_line *line);
/* Posts `count` numbered messages on l, and no requests of other kinds; calls
 * traffic_turn while the window of l is full. */
void traffic_say(struct traffic_link *l, int count);
/* Stops the posts of traffic_turn on l, whose peer is dead, and posts one more
 * request.  This request and all later ones on l must fail. */
void traffic_bereave(struct traffic_link *l);
/* Returns whether no request of l is under way. */
bool traffic_is_idle(const struct traffic_link *l);
/* Moves the queue pair of l to ERR, waits until its requests and receives are
 * flushed, destroys the queue pair, checks the link's memory and frees it.
 * Returns how many FETCH_ADDs of the peer were executed in that memory. */
uint64_t traffic_remove(struct traffic_line *line, struct traffic_link *l);

#endif
