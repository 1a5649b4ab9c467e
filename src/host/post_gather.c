/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/post_gather.h"

#include <string.h>

#include "util/bits.h"

#define PENALTY_MIN 1024
#define PENALTY_MAX (1u << 20)
#define FORGIVEN    65536u   /* the penalty is reset after so many groups */
#define MIND_FOR_NS 1000000u /* how long the progress thread awaits a group */

void post_gather_init(struct post_gather *g)
{
	memset(g, 0, sizeof(*g));
	g->penalty = PENALTY_MIN;
}

static void end_stream(struct post_gather *g)
{
	if (g->posts < POST_GATHER_LEAST)
		g->streams = 0;
	else if (g->streams < POST_GATHER_STREAMS)
		g->streams++;
	g->posts = 0;
}

bool post_gather_posted(struct post_gather *g, bool was_polled)
{
	if (was_polled)
		end_stream(g);
	g->posts++;
	if (!g->forbidden)
		return g->streams == POST_GATHER_STREAMS;
	g->forbidden--;
	return false;
}

bool post_gather_waits(struct post_gather *g, uint64_t now_ns)
{
	if (!g->count) {
		g->since_ns = now_ns;
		if (++g->groups % FORGIVEN == 0)
			g->penalty = PENALTY_MIN;
	}
	g->count++;
	return g->count < POST_GATHER_MAX &&
	       now_ns - g->since_ns < POST_GATHER_NS;
}

void post_gather_done(struct post_gather *g)
{
	g->count = 0;
}

void post_gather_handed_over(struct post_gather *g, uint64_t now_ns)
{
	/* since_ns may be later than now_ns: the clocks of the post lock and of
	 * the progress lock may differ by some microseconds. */
	if (g->count && now_ns > g->since_ns &&
	    now_ns - g->since_ns > POST_GATHER_LATE_NS) {
		g->forbidden = g->penalty;
		g->penalty = bits_min_u32(2 * g->penalty, PENALTY_MAX);
		g->streams = 0;
	}
	g->count = 0;
}

bool post_gather_serves(struct post_gather_thread *t, uint32_t groups,
			bool is_wanted, uint64_t now_ns)
{
	if (is_wanted || groups != t->groups)
		t->until_ns = now_ns + MIND_FOR_NS;
	t->groups = groups;
	return now_ns < t->until_ns;
}
