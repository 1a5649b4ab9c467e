/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides when a small request to another process of this host waits for the
 * requests that are posted after it.  Alone, the request would take a system
 * call of its own; one system call executes it together with those requests.
 * This file only decides; the caller executes.
 *
 * A request waits only if the program has posted a stream, which is many
 * requests between two polls, several times in a row.  Such a program polls
 * again soon, and its poll executes the requests that wait.  If the program
 * stops polling, the progress thread executes them within twice
 * POST_GATHER_MIND_NS, and the program's next requests do not wait for a while.
 *
 *	a post                               post_gather_posted, then _waits
 *	a thread of the program executes     post_gather_done
 *	the holder of the progress lock
 *	  executes                           post_gather_handed_over
 *	the progress thread is about to
 *	  sleep                              post_gather_serves
 *
 * Owner: struct post_lock; lock: its lock.  Sans-IO.
 */
#ifndef HOST_POST_GATHER_H
#define HOST_POST_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#define POST_GATHER_MAX	    32	 /* posts that are executed together */
#define POST_GATHER_LEAST   8	 /* the least posts of a stream */
#define POST_GATHER_STREAMS 4	 /* after so many streams, posts may wait */
#define POST_GATHER_NS	    2000 /* from the first post of a group to its end */
#define POST_GATHER_LATE_NS 20000  /* a longer wait shows a late poll */
#define POST_GATHER_MIND_NS 100000 /* between looks of the progress thread */

/* A group is the posts that wait together.  A stream is at least
 * POST_GATHER_LEAST posts without a poll between them. */
struct post_gather {
	uint32_t posts;	    /* since the last poll */
	uint32_t streams;   /* streams in a row, each ended by a poll */
	uint32_t count;	    /* posts that wait */
	uint64_t since_ns;  /* when the first of these posts began to wait */
	uint32_t groups;    /* how many groups have begun so far */
	uint32_t forbidden; /* how many of the next posts may not wait */
	uint32_t penalty;   /* the next late poll sets `forbidden` to this */
};

/* The progress thread's knowledge about all groups. */
struct post_gather_thread {
	uint32_t groups;   /* groups that had begun by the last look */
	uint64_t until_ns; /* until when the thread continues to look */
};

/* Starts with no stream seen and the smallest penalty. */
void post_gather_init(struct post_gather *g);
/* Called for each post.  @was_polled: the program has polled since the previous
 * post.  True: the program posts streams, so the request may wait, if the
 * progress thread looks for requests that wait. */
bool post_gather_posted(struct post_gather *g, bool was_polled);
/* Does the request that was just posted wait?  False: the caller executes it
 * and all requests that wait, and calls post_gather_done. */
bool post_gather_waits(struct post_gather *g, uint64_t now_ns);
/* Called when a thread of the program executes all posts that wait. */
void post_gather_done(struct post_gather *g);
/* Called when the holder of the progress lock executes all posts that wait.  If
 * they have waited for POST_GATHER_LATE_NS, the program does not poll, and
 * posts do not wait for a while. */
void post_gather_handed_over(struct post_gather *g, uint64_t now_ns);
/*
 * Called when the progress thread is about to sleep.  @groups: how many groups
 * have begun so far, under all post locks; @is_wanted: a thread wants to begin
 * a group.  Returns whether the thread looks again after POST_GATHER_MIND_NS.
 */
bool post_gather_serves(struct post_gather_thread *t, uint32_t groups,
			bool is_wanted, uint64_t now_ns);

#endif
