/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a small request to another process of this host, which would take a
 * system call of its own, waits for the requests posted after it, so that one
 * system call executes them all.  Decisions alone: the caller executes.
 *
 * A request waits only in a program that posts many requests between two polls,
 * again and again: the program's next poll executes what waits.  A program that
 * stops polling is found by the progress thread within POST_GATHER_MIND_NS, and
 * its requests wait no more for a while.
 *
 *	a post       -> post_gather_posted, then _waits
 *	an execution -> post_gather_done; by the progress thread: _handed_over
 *	the thread   -> post_gather_minds
 *
 * Owner: struct post_lock; lock: its lock.  Sans-IO.
 */
#ifndef HOST_POST_GATHER_H
#define HOST_POST_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#define POST_GATHER_MAX	    32	   /* posts that are executed together */
#define POST_GATHER_LEAST   8	   /* posts between two polls: a stream */
#define POST_GATHER_STREAMS 4	   /* streams in a row, then posts wait */
#define POST_GATHER_NS	    2000   /* a post does not wait longer for posts */
#define POST_GATHER_LATE_NS 20000  /* the program should have polled by then */
#define POST_GATHER_MIND_NS 100000 /* between looks of the progress thread */

struct post_gather {
	uint32_t posts;	    /* since the last poll */
	uint32_t streams;   /* streams in a row, each ended by a poll */
	uint32_t count;	    /* posts that wait */
	uint64_t since_ns;  /* since when the first of them waits */
	uint32_t groups;    /* how many times a first post has waited */
	uint32_t forbidden; /* posts until posts may wait again */
	uint32_t penalty;   /* the value of `forbidden` after the next delay */
};

/* The progress thread's knowledge about all groups. */
struct post_gather_thread {
	uint32_t groups;   /* their number at the last look */
	uint64_t until_ns; /* until when the thread goes on to look */
};

/* Starts with no stream seen and the smallest penalty. */
void post_gather_init(struct post_gather *g);
/* A request was posted, @was_polled: and the program has polled since the post
 * before.  Returns whether the program posts streams, so that a request may
 * wait if the progress thread looks for it. */
bool post_gather_posted(struct post_gather *g, bool was_polled);
/* Does the request that was posted wait?  False: the caller executes it and
 * all that wait, and calls post_gather_done. */
bool post_gather_waits(struct post_gather *g, uint64_t now_ns);
/* All posts that waited are being executed. */
void post_gather_done(struct post_gather *g);
/* The holder of the progress lock executes all posts that waited.  Posts that
 * have waited for POST_GATHER_LATE_NS show that the program does not poll. */
void post_gather_handed_over(struct post_gather *g, uint64_t now_ns);
/*
 * The progress thread is about to sleep; @groups: the sum of all groups so far;
 * @is_wanted: a thread wants to begin a group.  Returns whether the thread
 * looks again after POST_GATHER_MIND_NS.
 */
bool post_gather_minds(struct post_gather_thread *t, uint32_t groups,
		       bool is_wanted, uint64_t now_ns);

#endif
