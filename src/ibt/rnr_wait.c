/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/rnr_wait.h"

#include "util/bits.h"

/* After a poll has looked at a waiting QP, the next poll is expected within
 * this time. */
#define MINDED_NS 100000

/* Sets rnr_waiting.  Puts a QP that waits without packets on the list of its
 * post lock, and removes a QP that does not wait. */
static void set_waiting(struct ibt *t, struct ibt_qp *q, bool waits)
{
	struct direct_awaiting *a = &t->direct.awaiting[q->direct.apart.lock];
	struct list *n = &q->direct.rnr.node;

	q->req.rnr_waiting = waits;
	if (!waits && !list_is_linked(n))
		return;
	if (!waits)
		list_remove(n);
	else if (q->direct.path == IBT_PATH_DIRECT && !list_is_linked(n))
		list_push_tail(&a->qps, n);
	shared_store(&a->is_any, !list_is_empty(&a->qps));
}

static void arm_timer(struct ibt *t, struct ibt_qp *q, uint64_t at_ns)
{
	q->direct.rnr.timer_ns = at_ns;
	wheel_set(&t->wheel, &q->timers.rnr, at_ns);
}

void rnr_wait_begin(struct ibt *t, struct ibt_qp *q, uint8_t timer,
		    uint64_t now_ns)
{
	q->direct.rnr.until_ns = now_ns + aeth_rnr_timer_ns(timer);
	set_waiting(t, q, true);
	arm_timer(t, q, q->direct.rnr.until_ns);
}

/* Has the wait of the oldest request ended before its time? */
static bool is_early(const struct ibt_qp *q, uint64_t now_ns)
{
	return q->req.rnr_retries && now_ns < q->direct.rnr.until_ns;
}

bool rnr_wait_goes_on(struct ibt *t, struct ibt_qp *q, uint64_t now_ns)
{
	if (!is_early(q, now_ns))
		return false;
	set_waiting(t, q, true);
	arm_timer(t, q, q->direct.rnr.until_ns);
	return true;
}

void rnr_wait_count(struct ibt_qp *q)
{
	q->counters->naks.rnr_rx += q->direct.rnr.count;
	q->direct.rnr.count = 0;
}

void rnr_wait_settle(struct ibt *t, struct ibt_qp *q)
{
	if (!q->direct.rnr.is_old)
		return;
	q->direct.rnr.is_old = false;
	rnr_wait_count(q);
	if (q->req.rnr_waiting) {
		arm_timer(t, q, q->direct.rnr.until_ns);
	} else {
		wheel_cancel(&t->wheel, &q->timers.rnr);
		list_remove(&q->direct.waiting);
	}
}

void rnr_wait_end(struct ibt *t, struct ibt_qp *q)
{
	rnr_wait_settle(t, q);
	if (!q->req.rnr_waiting)
		return;
	wheel_cancel(&t->wheel, &q->timers.rnr);
	set_waiting(t, q, false);
}

bool rnr_wait_is_minded(const struct ibt_qp *q, uint64_t now_ns)
{
	return q->req.rnr_waiting ? now_ns < q->direct.rnr.looked_ns + MINDED_NS
				  : q->direct.rnr.is_old;
}

uint64_t rnr_wait_look_ns(const struct ibt_qp *q)
{
	return q->req.rnr_waiting ? q->direct.rnr.looked_ns + MINDED_NS
				  : UINT64_MAX;
}

bool rnr_wait_is_over(struct ibt *t, struct ibt_qp *q, uint64_t now_ns)
{
	if (q->direct.rnr.is_old && q->direct.rnr.is_used &&
	    !q->req.rnr_waiting) {
		/* More waits will probably begin without the progress lock. */
		q->direct.rnr.is_used = false;
		arm_timer(t, q, now_ns + q->direct.rnr.last_ns);
		return false;
	}
	rnr_wait_settle(t, q);
	return q->req.rnr_waiting && !wheel_is_set(&q->timers.rnr);
}

void rnr_wait_resume(struct ibt *t, struct ibt_qp *q)
{
	set_waiting(t, q, false);
	q->qp->stats.wait = QP_WAIT_NONE;
	q->direct.rnr.is_old = true;
}

bool rnr_wait_again(struct ibt *t, struct ibt_qp *q, uint8_t timer,
		    uint64_t now_ns)
{
	bool goes_on = is_early(q, now_ns);
	uint64_t last_ns = aeth_rnr_timer_ns(timer),
		 until_ns = goes_on ? q->direct.rnr.until_ns : now_ns + last_ns;
	uint8_t limit = q->qp->attr.rnr_retry;

	if (!q->direct.rnr.is_old || q->direct.rnr.timer_ns > until_ns ||
	    (!goes_on && limit != IBT_RETRY_FOREVER &&
	     q->req.rnr_retries >= limit))
		return false;
	if (!goes_on) {
		q->req.rnr_retries++;
		q->qp->stats.rnr_waits++;
		q->direct.rnr.count++;
	}
	q->qp->stats.wait = QP_WAIT_RECEIVE;
	q->direct.rnr.last_ns = last_ns;
	q->direct.rnr.until_ns = until_ns;
	q->direct.rnr.is_used = true;
	set_waiting(t, q, true);
	return true;
}

struct ibt_qp *rnr_wait_next(struct ibt *t, uint32_t number)
{
	struct list *qps = &t->direct.awaiting[number].qps;
	struct list *n = list_pop_head(qps);

	if (!n)
		return NULL;
	list_push_tail(qps, n);
	return CONTAINER_OF(n, struct ibt_qp, direct.rnr.node);
}
