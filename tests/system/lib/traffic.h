/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traffic: one end of a connection on which everything goes at once, and whose
 * every byte and status is judged.
 *
 *	SEND, SEND with immediate, WRITE with immediate	numbered: the other
 *							end knows each byte
 *	READ						of what nobody writes
 *	WRITE, FETCH_ADD
 *
 * Ends share a completion queue, and a shared receive queue if they like.
 * What is wrong is printed, and ends the process.  One thread, no lock.
 */
#ifndef TESTS_SYSTEM_LIB_TRAFFIC_H
#define TESTS_SYSTEM_LIB_TRAFFIC_H

#include "endpoint.h"

enum {
	TRAFFIC_WINDOW = 8,    /* requests under way */
	TRAFFIC_RECEIVES = 16, /* of an end without a shared queue */
	TRAFFIC_POOL = 32,     /* of a shared queue */
	TRAFFIC_BYTES = 2048,  /* of a numbered message, at most */
	TRAFFIC_LINKS = 8,     /* of a line */
	TRAFFIC_SPAN = 352256, /* bytes of a link's memory */
};

/* A stretch of memory with bytes around it that nobody may touch. */
struct traffic_area {
	uint8_t *bytes; /* of the region, after a guard page */
	struct ibv_mr *mr;
};

/* Those with one completion queue. */
struct traffic_line {
	struct endpoint e; /* its queue pair is not used */
	struct traffic_link *link[TRAFFIC_LINKS];
	struct ibv_srq *srq; /* NULL: none */
	struct traffic_area pool;
	unsigned long long done; /* completions, all of them judged */
	bool keeps;		 /* what was received is not posted again */
};

struct traffic_asked {
	int op;
	uint32_t bytes;
};

struct traffic_link {
	struct traffic_line *line;
	struct endpoint e; /* the line's, but for its queue pair */
	struct endpoint_address self, peer;
	struct traffic_area area;
	uint32_t id;	  /* the same at both ends */
	bool is_shared;	  /* it receives from the line's queue */
	bool initiates;	  /* or only answers */
	bool has_failed;  /* a request has: the rest is flushed */
	bool is_in_error; /* by us */
	const int *doom;  /* may it fail?  NULL: never */
	bool is_gone;	  /* no request of now can succeed */
	/* Counts. */
	uint32_t posted, ended, spoken, heard;
	uint32_t gone_from; /* of posted, where is_gone came */
	int receives;	    /* posted, without a shared queue */
	int flushed;	    /* of a shared queue */
	uint64_t last_found;
	uint32_t *added_posted, *added_done; /* FETCH_ADDs, or NULL */
	struct traffic_asked asked[TRAFFIC_WINDOW];
};

/* Opens the line, @shared: with a shared receive queue. */
void traffic_open(struct traffic_line *line, bool shared);
/* Its links have been removed. */
void traffic_close(struct traffic_line *line);
/* Adds a link in INIT, with its memory and receives; it becomes the line's. */
void traffic_add(struct traffic_line *line, struct traffic_link *l,
		 uint32_t id);
/* To RTS; `peer` is there. */
void traffic_connect(struct traffic_link *l);
/* One turn of all links: what is there is judged, what may go is posted.  The
 * number of completions. */
int traffic_turn(struct traffic_line *line);
/* This many numbered messages, and no more. */
void traffic_say(struct traffic_link *l, int count);
/* No request of now can succeed any more; one more is posted. */
void traffic_bereave(struct traffic_link *l);
bool traffic_is_idle(const struct traffic_link *l);
/* Goes to ERR, waits for what is flushed, looks at the memory, destroys and
 * deregisters.  The FETCH_ADDs of its peer that the memory has seen. */
uint64_t traffic_remove(struct traffic_line *line, struct traffic_link *l);

#endif
