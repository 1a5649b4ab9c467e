/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion counters: a program reads how many requests, receives and WRITEs
 * of peers have completed at its queue pairs, or how many bytes, without a
 * completion for each.  Each queue pair has its sums (hca/comp.h); a counter's
 * value is the total over the queue pairs to which the counter is attached.
 *
 * Lock: v_counter.lock, which is taken with or without host_lock.  Its holder
 * takes the locks of completion queues (hca/cq.h), and no other lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/fail.h"
#include "verbs/newer.h"
#include "verbs/object.h"

#define MAX_COUNTERS 65536

struct v_counter {
	struct v_comp_cntr_base base;
	uint32_t type; /* V_COMP_CNTR_* */
	struct lock lock;
	/* The parts of the two values beyond the sums of the attached queue
	 * pairs: the amounts by which the program has changed the counter, and
	 * the sums of queue pairs that were destroyed.  done: for the value
	 * that counts completions with success, or their bytes.  failed: for
	 * the value that counts completions with an error. */
	uint64_t done, failed;
	struct list attached; /* struct v_attached */
	/* The values that the program read last: [false] the value of `done`,
	 * [true] the value of `failed`. */
	uint64_t last[2];
	/* For host_poll: a read that returns the same value as the last read
	 * counts as a poll that found nothing. */
	struct host_polls polls;
};

/* The attachment of a counter to a queue pair. */
struct v_attached {
	/* of_counter: in v_counter.attached.  of_qp: in v_qp.counters. */
	struct list of_counter, of_qp;
	struct v_counter *counter;
	struct v_qp *qp;
	uint32_t ops; /* bit 1 << OP for each OP of enum comp_op */
};

static struct count in_use;	     /* the counters of the process */
static _Atomic uint32_t next_handle; /* the handle of the latest counter */

static struct v_counter *counter_of(struct ibv_comp_cntr *counter)
{
	return (struct v_counter *)(void *)counter;
}

int _ibv_query_comp_cntr_caps(struct ibv_context *context,
			      struct ibv_comp_cntr_caps *caps, size_t caps_size)
{
	struct v_comp_cntr_caps c = {
		.max_value = UINT64_MAX,
		.max_counters = MAX_COUNTERS,
		.supported_qp_attach_ops = COMP_ALL,
	};

	memset(caps, 0, caps_size);
	memcpy(caps, &c, caps_size < sizeof(c) ? caps_size : sizeof(c));
	return 0;
}

/* Returns 0, or a positive errno with a message. */
static int check_attr(const struct v_comp_cntr_init_attr *a)
{
	if (a->comp_mask || a->flags)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_create_comp_cntr needs comp_mask 0 and "
			      "flags 0");
	if (a->type != V_COMP_CNTR_WRS && a->type != V_COMP_CNTR_BYTES)
		return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
			      "a completion counter of anything other than "
			      "requests or bytes (ibv_create_comp_cntr)");
	return 0;
}

struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
					   struct ibv_comp_cntr_init_attr *attr)
{
	const struct v_comp_cntr_init_attr *a = (const void *)attr;
	struct v_counter *c;

	if (!v_is_ours(v_context(context)))
		return v_fail_null(EPERM, V_FORKED, "ibv_create_comp_cntr");
	if (check_attr(a))
		return NULL;
	if (!count_up_to(&in_use, MAX_COUNTERS))
		return v_fail_null(ENOMEM, V_LIMIT,
				   "the number of completion counters");
	c = calloc(1, sizeof(*c));
	if (!c) {
		count_down(&in_use);
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_create_comp_cntr");
	}
	c->base.context = context;
	c->base.handle = atomic_fetch_add(&next_handle, 1) + 1;
	c->type = a->type;
	lock_init(&c->lock);
	list_init(&c->attached);
	count_up(&v_context(context)->objects);
	return (struct ibv_comp_cntr *)(void *)c;
}

int ibv_destroy_comp_cntr(struct ibv_comp_cntr *counter)
{
	struct v_counter *c = counter_of(counter);
	bool is_used;

	if (!v_is_ours(v_context(c->base.context)))
		return v_fail(EPERM, V_FORKED, "ibv_destroy_comp_cntr");
	lock_take(&c->lock);
	is_used = !list_is_empty(&c->attached);
	lock_give(&c->lock);
	if (is_used)
		return v_fail(EBUSY, V_BUSY,
			      "ibv_destroy_comp_cntr: the counter is attached "
			      "to queue pairs");
	count_down(&v_context(c->base.context)->objects);
	count_down(&in_use);
	lock_fini(&c->lock);
	free(c);
	return 0;
}

/* ---- queue pairs ---- */

/* Returns 0, or a positive errno with a message. */
static int check_attach(const struct ibv_qp *qp, const struct v_counter *c,
			const struct v_qp_attach_comp_cntr_attr *a)
{
	if (qp->context != c->base.context)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_qp_attach_comp_cntr: the counter and the "
			      "queue pair belong to different contexts; create "
			      "the counter in the queue pair's context");
	if (a->comp_mask || !a->op_mask)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_qp_attach_comp_cntr needs comp_mask 0 and "
			      "an op_mask other than 0");
	if (a->op_mask & ~COMP_ALL)
		return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
			      "a completion counter of the peer's READs, or "
			      "of an unknown operation in op_mask "
			      "(ibv_qp_attach_comp_cntr)");
	return 0;
}

/* Checks that the QP is in RESET or INIT, and that no operation of `ops` has a
 * counter yet, under host_lock.  Returns 0, or a positive errno with a message.
 */
static int check_now(const struct qp *qp, uint32_t ops)
{
	if (qp->state != HCA_QP_RESET && qp->state != HCA_QP_INIT)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_qp_attach_comp_cntr: the queue pair is "
			      "neither in RESET nor in INIT, so requests may "
			      "have completed uncounted; attach the counter "
			      "before ibv_modify_qp to RTR");
	if (shared_load(&qp_target(qp)->comp.ops) & ops)
		return v_fail(EBUSY, V_INPUT,
			      "ibv_qp_attach_comp_cntr: a counter is attached "
			      "to an operation in op_mask already, and stays "
			      "attached until the queue pair is destroyed; "
			      "leave the operation out of op_mask, or attach "
			      "the counter to another queue pair");
	return 0;
}

/* Attaches the counter, under host_lock.  No access depends on the order of the
 * store of comp->ops: the QP is in RESET or INIT, so nothing completes yet. */
static void attach_sums(struct v_attached *a)
{
	struct comp *comp = &qp_target(a->qp->qp)->comp;

	lock_take(&a->counter->lock);
	list_push_tail(&a->counter->attached, &a->of_counter);
	lock_give(&a->counter->lock);
	list_push_tail(&a->qp->counters, &a->of_qp);
	shared_store(&comp->ops, shared_load(&comp->ops) | a->ops);
}

int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *counter,
			    struct ibv_qp_attach_comp_cntr_attr *attr)
{
	const struct v_qp_attach_comp_cntr_attr *want = (const void *)attr;
	struct v_context *c = v_context(qp->context);
	struct v_attached *a;
	int err;

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_qp_attach_comp_cntr");
	err = check_attach(qp, counter_of(counter), want);
	if (err)
		return err;
	a = calloc(1, sizeof(*a));
	if (!a)
		return v_fail(ENOMEM, V_MEMORY, "ibv_qp_attach_comp_cntr");
	a->counter = counter_of(counter);
	a->qp = v_qp(qp);
	a->ops = want->op_mask;
	host_lock(c->host);
	err = check_now(a->qp->qp, a->ops);
	if (!err)
		attach_sums(a);
	host_unlock(c->host);
	if (err)
		free(a);
	return err;
}

/*
 * Returns the queue pair's sum.  The acquire load orders the read of the sum
 * before the program's later reads of memory that the counted requests wrote.
 * Without that order, a program could see the count and still read old memory
 * (comp.h).
 */
static uint64_t sum_of(const struct v_attached *a, bool failed)
{
	uint64_t all = 0;

	for (uint32_t op = 0; op < COMP_OPS; op++) {
		const struct comp_sum *s = &qp_target(a->qp->qp)->comp.of[op];
		const _Atomic uint64_t *one =
			failed					? &s->failed
			: a->counter->type == V_COMP_CNTR_BYTES ? &s->bytes
								: &s->done;

		if (a->ops & 1u << op)
			all += atomic_load_explicit(one, memory_order_acquire);
	}
	return all;
}

/* Collects receives of the queue pair that peers of this host have completed
 * and that no poll has collected: a receive is added to the sums when it is
 * collected. */
static void collect_receives(struct v_qp *q)
{
	cq_collect(host_hca(q->host), v_cq(q->base.qp_base.recv_cq)->cq, q->qp);
}

void v_counters_leave(struct v_qp *q)
{
	if (!list_is_empty(&q->counters))
		collect_receives(q);
	list_for_each_safe (n, &q->counters) {
		struct v_attached *a =
			CONTAINER_OF(n, struct v_attached, of_qp);

		lock_take(&a->counter->lock);
		a->counter->done += sum_of(a, false);
		a->counter->failed += sum_of(a, true);
		list_remove(&a->of_counter);
		lock_give(&a->counter->lock);
		list_remove(&a->of_qp);
		free(a);
	}
}

/* ---- values ---- */

static uint64_t total_of(const struct v_counter *c, bool failed)
{
	uint64_t all = failed ? c->failed : c->done;

	for (struct list *n = c->attached.next; n != &c->attached; n = n->next)
		all += sum_of(CONTAINER_OF(n, struct v_attached, of_counter),
			      failed);
	return all;
}

static void collect_sums(const struct v_counter *c)
{
	for (struct list *n = c->attached.next; n != &c->attached;
	     n = n->next) {
		const struct v_attached *a =
			CONTAINER_OF(n, struct v_attached, of_counter);

		if (a->ops & 1u << COMP_RECV)
			collect_receives(a->qp);
	}
}

static int change_counter(struct ibv_comp_cntr *counter, bool failed, bool add,
			  uint64_t value)
{
	struct v_counter *c = counter_of(counter);
	uint64_t *own = failed ? &c->failed : &c->done;

	if (!v_is_ours(v_context(c->base.context)))
		return v_fail(EPERM, V_FORKED, "changing a completion counter");
	lock_take(&c->lock);
	/* A receive that has completed by now must not count in addition to the
	 * new value, so it is added to the sums first. */
	if (!add)
		collect_sums(c);
	*own += add ? value : value - total_of(c, failed);
	lock_give(&c->lock);
	return 0;
}

int ibv_set_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value)
{
	return change_counter(counter, false, false, value);
}

int ibv_set_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value)
{
	return change_counter(counter, true, false, value);
}

int ibv_inc_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount)
{
	return change_counter(counter, false, true, amount);
}

int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount)
{
	return change_counter(counter, true, true, amount);
}

/*
 * Stores the value, and makes progress as a poll does, since some programs read
 * counters and never poll.  Yields the processor after many reads of an
 * unchanged value.
 */
static int read_counter(struct ibv_comp_cntr *counter, bool failed,
			uint64_t *value)
{
	struct v_counter *c = counter_of(counter);
	struct v_context *context = v_context(c->base.context);
	bool is_new;

	if (!v_is_ours(context))
		return v_fail(EPERM, V_FORKED, "reading a completion counter");
	host_poll(context->host, NULL, &c->polls);
	lock_take(&c->lock);
	collect_sums(c);
	*value = total_of(c, failed);
	is_new = *value != c->last[failed];
	c->last[failed] = *value;
	lock_give(&c->lock);
	host_polled(context->host, &c->polls, !is_new);
	instrument_happens_after(context->host);
	return 0;
}

int ibv_read_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value)
{
	return read_counter(counter, false, value);
}

int ibv_read_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value)
{
	return read_counter(counter, true, value);
}
