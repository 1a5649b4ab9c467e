/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/rx_backoff.h"

#include "util/bits.h"

static void begin_stretch(struct rx_backoff *p, bool pauses, uint64_t now_ns)
{
	p->pauses = pauses;
	p->is_settled = false;
	p->began_ns = now_ns;
	p->bytes = 0;
}

void rx_backoff_init(struct rx_backoff *p)
{
	*p = (struct rx_backoff){.trial = RX_BACKOFF_TRIAL};
}

/* Is the cost without pauses more than 33/32 of the cost with pauses? */
static bool is_better_paused(const struct rx_backoff *p)
{
	return p->cost[1] + p->cost[1] / 32 < p->cost[0];
}

/* A stretch has ended, and took `cost` ns for each MiB.  Does the next stretch
 * have pauses? */
static bool choose_next(struct rx_backoff *p, uint64_t cost)
{
	uint64_t *mine = &p->cost[p->pauses];

	*mine = *mine && !p->is_trial ? (*mine + cost) / 2 : cost;
	if (!p->cost[!p->pauses]) {
		p->is_trial = true;
		return !p->pauses;
	}
	if (p->is_trial) {
		bool lost = p->pauses != is_better_paused(p);

		p->trial =
			lost ? bits_min_u32(2 * p->trial, RX_BACKOFF_TRIAL_MAX)
			     : RX_BACKOFF_TRIAL;
		p->left = p->trial;
	}
	p->is_trial = --p->left == 0;
	return is_better_paused(p) != p->is_trial;
}

void rx_backoff_looked(struct rx_backoff *p, size_t bytes, uint64_t now_ns)
{
	uint64_t spent = now_ns - p->began_ns;

	p->bytes += bytes;
	if (spent > RX_BACKOFF_STRETCH_NS) {
		rx_backoff_init(p);
		begin_stretch(p, false, now_ns);
	} else if (!p->is_settled && p->bytes >= RX_BACKOFF_SETTLE) {
		begin_stretch(p, p->pauses, now_ns);
		p->is_settled = true;
	} else if (p->is_settled && p->bytes >= RX_BACKOFF_STRETCH) {
		begin_stretch(p, choose_next(p, (spent << 20) / p->bytes),
			      now_ns);
	}
	p->until_ns = p->pauses && bytes ? now_ns + RX_BACKOFF_NS : 0;
}
