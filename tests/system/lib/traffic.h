/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traffic: one end of a connection that posts requests of all kinds at once and
 * checks each byte and each status.
 *
 *	SEND, SEND with immediate, WRITE with immediate	numbered messages: the
 *							other end knows each
 *							byte
 *	READ						of memory that nobody
 *							writes
 *	WRITE, FETCH_ADD
 *
 * The links of a line share a completion queue and, if is_shared, a shared
 * receive queue.  A wrong byte or status is printed and ends the process.  One
 * thread, no lock.
 */
#ifndef TESTS_SYSTEM_LIB_TRAFFIC_H
#define TESTS_SYSTEM_LIB_TRAFFIC_H

#include "endpoint.h"

enum {
	TRAFFIC_WINDOW = 8,    /* requests of a link under way */
	TRAFFIC_RECEIVES = 16, /* receives of a link without an SRQ */
	TRAFFIC_POOL = 32,     /* receives of an SRQ */
	TRAFFIC_BYTES = 2048,  /* most bytes of a numbered message */
	TRAFFIC_LINKS = 8,     /* most links of a line */
	TRAFFIC_SPAN = 352256, /* bytes of a link's memory */
};

/* Memory between guard pages, whose bytes nobody may write. */
struct traffic_area {
	uint8_t *bytes; /* the region, after a guard page */
	struct ibv_mr *mr;
};

/* A completion queue and the links that use it. */
struct traffic_line {
	struct endpoint e; /* its queue pair is not used */
	struct traffic_link *link[TRAFFIC_LINKS];
	struct ibv_srq *srq; /* NULL: none */
	struct traffic_area pool;
	unsigned long long done; /* completions, all of them checked */
	bool keeps;		 /* completed receives are not posted again */
};

/* A request under way. */
struct traffic_asked {
	int op;
	uint32_t bytes;
};

/* One end of a connection. */
struct traffic_link {
	struct traffic_line *line;
	struct endpoint e; /* the line's, with a queue pair of its own */
	struct endpoint_address self, peer;
	struct traffic_area area;
	uint32_t id;	  /* the same at both ends */
	bool is_shared;	  /* the link receives from the line's queue */
	bool initiates;	  /* traffic_turn posts requests */
	bool has_failed;  /* a request has failed: the rest is flushed */
	bool is_in_error; /* traffic_remove took the queue pair to ERR */
	const int *doom;  /* not 0: requests may fail; NULL: they must not */
	bool is_gone;	  /* requests from gone_from on must fail */
	/* Requests posted and ended; numbered messages sent and received. */
	uint32_t posted, ended, spoken, heard;
	uint32_t gone_from; /* `posted` when is_gone was set */
	int receives;	    /* posted receives, without a shared queue */
	int flushed;	    /* flushed receives of a shared queue */
	uint64_t last_found;
	uint32_t *added_posted, *added_done; /* counts of FETCH_ADDs, or NULL */
	struct traffic_asked asked[TRAFFIC_WINDOW];
};

/* Opens the line, @shared: with a shared receive queue. */
void traffic_open(struct traffic_line *line, bool shared);
/* Frees the objects of the line; all its links have been removed. */
void traffic_close(struct traffic_line *line);
/* Adds a zeroed link to the line: makes its queue pair, in INIT, and its
 * memory, and posts its receives.  The link is borrowed until traffic_remove.
 * @id: the same at both ends. */
void traffic_add(struct traffic_line *line, struct traffic_link *l,
		 uint32_t id);
/* Takes the link to RTS; the caller has set l->peer. */
void traffic_connect(struct traffic_link *l);
/* Polls once: checks the completions, and posts a request on each link that
 * initiates and has room.  Returns the number of completions. */
int traffic_turn(struct traffic_line *line);
/* Posts this many numbered messages, and no other requests on l. */
void traffic_say(struct traffic_link *l, int count);
/* The peer is dead: no request that is posted from now on can succeed.  Posts
 * one more request, which must fail. */
void traffic_bereave(struct traffic_link *l);
/* Returns whether no request of l is under way. */
bool traffic_is_idle(const struct traffic_link *l);
/* Takes l to ERR, waits until its work is flushed, checks its memory, destroys
 * its queue pair and frees the memory.  Returns how many FETCH_ADDs of the peer
 * were executed there. */
uint64_t traffic_remove(struct traffic_line *line, struct traffic_link *l);

#endif
