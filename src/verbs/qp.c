/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates and destroys queue pairs.  modify.c changes and queries their
 * state. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"
#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"
#include "verbs/table.h"

/* Returns 0, or a positive errno with a message. */
static int check_type(const struct device *dev,
		      const struct ibv_qp_init_attr *a)
{
	if (a->qp_type != IBV_QPT_RC && a->qp_type != IBV_QPT_UC &&
	    a->qp_type != IBV_QPT_UD)
		return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
			      "a queue pair other than RC, UC and UD");
	if (dev->kind == DEVICE_IWARP && a->qp_type != IBV_QPT_RC)
		return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
			      "a queue pair other than RC on iWARP, which has "
			      "RC alone");
	if (!a->send_cq || !a->recv_cq)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_create_qp needs send_cq and recv_cq");
	return 0;
}

enum { CAPS = sizeof(struct ibv_qp_cap) / sizeof(uint32_t), NOTHING = CAPS };

/* The latest queue pair that this thread has created. */
static __thread struct {
	bool is_there;
	enum ibv_qp_type type;
	struct ibv_qp_cap asked, granted;
	/* The only capability of which this queue pair asked for more than its
	 * predecessor: an index into struct ibv_qp_cap, or NOTHING. */
	int rising;
} latest;

/* Compares the capabilities of `a` with those of the latest queue pair.  If `a`
 * asks for more of one capability and repeats the others, returns the index of
 * this capability in struct ibv_qp_cap; else returns NOTHING. */
static int more_of(const struct ibv_qp_init_attr *a)
{
	uint32_t now[CAPS], asked[CAPS], granted[CAPS];
	int more = NOTHING;

	if (!latest.is_there || latest.type != a->qp_type)
		return NOTHING;
	memcpy(now, &a->cap, sizeof(now));
	memcpy(asked, &latest.asked, sizeof(asked));
	memcpy(granted, &latest.granted, sizeof(granted));
	for (int i = 0; i < CAPS; i++) {
		/* A program may repeat the value that it asked for, or the
		 * value that was granted. */
		if (now[i] == asked[i] || now[i] == granted[i])
			continue;
		if (now[i] < asked[i] || more != NOTHING)
			return NOTHING;
		more = i;
	}
	return more;
}

/*
 * Returns whether `a` is a step of a search for a limit, such as libfabric's
 * search for the largest max_inline_data: the thread's latest queue pair asked
 * for more of one capability than the queue pair before, and `a` asks for still
 * more of this capability alone.
 */
static bool is_search(const struct ibv_qp_init_attr *a)
{
	return latest.rising != NOTHING && more_of(a) == latest.rising;
}

static void note_granted(const struct ibv_qp_init_attr *a,
			 const struct ibv_qp_cap *granted)
{
	latest.rising = more_of(a);
	latest.is_there = true;
	latest.type = a->qp_type;
	latest.asked = a->cap;
	latest.granted = *granted;
}

/* Returns 0.  If more of a capability is asked for than a queue pair has, sets
 * errno to EINVAL, prints a message, and returns EINVAL.  In a search for a
 * limit, prints the message only if v_tells_tries returns true. */
static int check_cap(const struct ibv_qp_init_attr *a, const char *argument,
		     uint32_t asked, uint32_t most, const char *advice)
{
	char why[160];

	if (asked <= most)
		return 0;
	errno = EINVAL;
	if (is_search(a) && !v_tells_tries())
		return EINVAL;
	snprintf(why, sizeof(why), "the most that a queue pair has is %u%s",
		 most, advice);
	v_fail_number(EINVAL, argument, asked, why);
	return EINVAL;
}

/* The capacities of receives mean nothing if the QP uses an SRQ. */
static int check_caps(const struct ibv_qp_init_attr *a)
{
	static const char wr[] = " (ibv_query_device: max_qp_wr); ask for less",
			  sge[] = " (ibv_query_device: max_sge); ask for less";
	const struct ibv_qp_cap *c = &a->cap;
	const struct {
		const char *argument;
		uint32_t asked, most;
		const char *advice;
	} caps[] = {
		{"ibv_create_qp: max_send_wr", c->max_send_wr, HCA_MAX_WR, wr},
		{"ibv_create_qp: max_recv_wr", a->srq ? 0 : c->max_recv_wr,
		 HCA_MAX_WR, wr},
		{"ibv_create_qp: max_send_sge", c->max_send_sge, HCA_MAX_SGE,
		 sge},
		{"ibv_create_qp: max_recv_sge", a->srq ? 0 : c->max_recv_sge,
		 HCA_MAX_SGE, sge},
		{"ibv_create_qp: max_inline_data", c->max_inline_data,
		 HCA_MAX_INLINE,
		 "; ask for less, and send longer data from a memory region"},
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(caps) / sizeof(caps[0]); i++)
		err = check_cap(a, caps[i].argument, caps[i].asked,
				caps[i].most, caps[i].advice);
	return err;
}

static void caps_granted(const struct qp *qp, struct ibv_qp_cap *c)
{
	c->max_send_wr = qp->sq.depth;
	c->max_recv_wr = qp->rq.depth;
	c->max_send_sge = qp->sq.max_sge;
	c->max_recv_sge = qp->srq ? 0 : qp->rq.max_sge;
	c->max_inline_data = qp->sq.max_inline;
}

static void qp_show(struct v_qp *q, struct ibv_pd *pd,
		    const struct ibv_qp_init_attr *a)
{
	static const enum ibv_event_type types[V_QP_EVENTS] = {
		[V_QP_FATAL] = IBV_EVENT_QP_FATAL,
		[V_QP_REQ_ERR] = IBV_EVENT_QP_REQ_ERR,
		[V_QP_ACCESS_ERR] = IBV_EVENT_QP_ACCESS_ERR,
		[V_QP_COMM_EST] = IBV_EVENT_COMM_EST,
		[V_QP_SQ_DRAINED] = IBV_EVENT_SQ_DRAINED,
		[V_QP_LAST_WQE] = IBV_EVENT_QP_LAST_WQE_REACHED,
		[V_QP_PATH_MIG] = IBV_EVENT_PATH_MIG,
		[V_QP_PATH_MIG_ERR] = IBV_EVENT_PATH_MIG_ERR,
	};
	struct ibv_qp *qp = &q->base.qp_base;

	qp->context = pd->context;
	qp->qp_context = a->qp_context;
	qp->pd = pd;
	qp->send_cq = a->send_cq;
	qp->recv_cq = a->recv_cq;
	qp->srq = a->srq;
	qp->handle = v_table_handle(q->cookie);
	qp->state = IBV_QPS_RESET;
	qp->qp_type = a->qp_type;
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);
	q->process = v_process();
	q->host = v_context(pd->context)->host;
	q->is_single = v_pd(pd)->thread;
	lock_init(&q->send);
	lock_init(&q->recv);
	list_init(&q->counters);
	for (int i = 0; i < V_QP_EVENTS; i++)
		v_source_init(&q->events[i], q, (int)types[i]);
}

/* Creates hca's and the engine's objects.  Returns 0, or a positive errno with
 * a message. */
static int qp_make(struct v_qp *q, const struct ibv_qp_init_attr *a)
{
	const struct ibv_qp_cap *c = &a->cap;
	struct hca_qp_cap cap = {
		.send_wr = c->max_send_wr,
		.recv_wr = c->max_recv_wr,
		.send_sge = c->max_send_sge,
		.recv_sge = c->max_recv_sge,
		.inline_bytes = c->max_inline_data,
		.srq = a->srq ? v_srq(a->srq)->srq : NULL,
	};
	int err;

	host_lock(q->host);
	q->qp = host_qp_new(q->host, v_context(q->base.qp_base.context)->dev,
			    (uint32_t)a->qp_type,
			    v_pd(q->base.qp_base.pd)->number,
			    v_cq(a->send_cq)->cq, v_cq(a->recv_cq)->cq, &cap,
			    a->sq_sig_all, q->cookie, &q->side);
	err = errno;
	host_unlock(q->host);
	if (!q->qp)
		return v_fail(err ? err : ENOMEM, V_SYSTEM,
			      err == EIO ? "ibv_create_qp: the device has "
					   "failed, because its link to the "
					   "fabric has ended; start the "
					   "program again"
					 : "ibv_create_qp fails (no memory is "
					   "left, or no further queue pair; "
					   "free some, or raise ulimit -v and "
					   "-d)");
	q->base.qp_base.qp_num = q->qp->qpn;
	caps_granted(q->qp, &q->cap);
	return 0;
}

/* Calls `change`, which is count_up or count_down, for each object that the
 * queue pair uses, except its domain. */
static void qp_count(struct ibv_qp *qp, void (*change)(struct count *))
{
	change(&v_cq(qp->send_cq)->users);
	change(&v_cq(qp->recv_cq)->users);
	if (qp->srq)
		change(&v_srq(qp->srq)->users);
	change(&v_context(qp->context)->objects);
}

static void qp_free_handle(struct v_qp *q)
{
	v_table_remove(q->cookie);
	pthread_mutex_destroy(&q->base.qp_base.mutex);
	pthread_cond_destroy(&q->base.qp_base.cond);
	lock_fini(&q->send);
	lock_fini(&q->recv);
	free(q);
}

/* Reads and writes only the 64 bytes of the oldest attribute struct. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct v_qp *q;
	int err;

	if (!v_is_ours(v_context(pd->context)))
		return v_fail_null(EPERM, V_FORKED, "ibv_create_qp");
	err = check_type(v_context(pd->context)->dev, a);
	if (!err)
		err = check_caps(a);
	if (err)
		goto fail;
	q = alloc_apart(sizeof(*q));
	if (!q)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_create_qp");
	q->cookie = v_table_add(q);
	qp_show(q, pd, a);
	err = q->cookie ? qp_make(q, a)
			: v_fail(ENOMEM, V_MEMORY, "ibv_create_qp");
	if (err) {
		qp_free_handle(q);
		goto fail;
	}
	note_granted(a, &q->cap);
	a->cap = q->cap;
	count_up(&v_pd(pd)->users);
	qp_count(&q->base.qp_base, count_up);
	return &q->base.qp_base;
fail:
	errno = err;
	return NULL;
}

/* Extended attributes other than pd, send_ops_flags and create_flags 0 ask for
 * features that adverb does not support. */
struct ibv_qp *v_create_qp_ex(struct ibv_context *context,
			      struct ibv_qp_init_attr_ex *a)
{
	const uint32_t known =
		IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint32_t beyond = a->comp_mask & ~known;
	struct ibv_qp_init_attr plain;
	struct ibv_qp *qp;

	if ((a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && !a->create_flags)
		beyond &= ~(uint32_t)IBV_QP_INIT_ATTR_CREATE_FLAGS;
	if (beyond)
		return v_fail_null(EOPNOTSUPP, V_NOT_SUPPORTED,
				   "a queue pair with extended attributes for "
				   "XRC, RSS or create_flags "
				   "(ibv_create_qp_ex)");
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD))
		return v_fail_null(EINVAL, V_INPUT,
				   "ibv_create_qp_ex needs a protection "
				   "domain: pd, and IBV_QP_INIT_ATTR_PD in "
				   "comp_mask");
	memcpy(&plain, a, sizeof(plain));
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		errno = v_wr_check(a->qp_type, a->send_ops_flags);
		if (errno)
			return NULL;
	}
	qp = ibv_create_qp(a->pd, &plain);
	if (!qp)
		return NULL;
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		v_wr_fill(&v_qp(qp)->base);
	v_qp(qp)->is_ex = a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	a->cap = plain.cap;
	return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return v_qp(qp)->is_ex ? &v_qp(qp)->base : NULL;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct v_context *c = v_context(qp->context);
	struct v_qp *q = v_qp(qp);
	uint32_t taken = 0;

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_destroy_qp");
	/* Until the last event is acknowledged, the thread that has the event
	 * may query, modify and use the QP. */
	v_table_remove(q->cookie);
	for (int i = 0; i < V_QP_EVENTS; i++)
		taken += v_queue_forget(&c->async, &q->events[i]);
	pthread_mutex_lock(&qp->mutex);
	while (qp->events_completed != taken)
		pthread_cond_wait(&qp->cond, &qp->mutex);
	pthread_mutex_unlock(&qp->mutex);
	host_qp_withdraw(c->host, q->qp);
	host_lock(c->host);
	v_counters_leave(q);
	host_qp_free(q->host, q->qp, q->side);
	host_unlock(c->host);
	host_quiesce(c->host);
	qp_count(qp, count_down);
	v_pd_drop(v_pd(qp->pd));
	qp_free_handle(q);
	return 0;
}
