/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues.  post.c posts to them. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"
#include "verbs/table.h"

static void srq_show(struct v_srq *s, struct ibv_pd *pd, void *context)
{
	s->base.context = pd->context;
	s->base.srq_context = context;
	s->base.pd = pd;
	s->base.handle = v_table_handle(s->cookie);
	pthread_mutex_init(&s->base.mutex, NULL);
	pthread_cond_init(&s->base.cond, NULL);
	lock_init(&s->post);
	v_source_init(&s->limit, s, IBV_EVENT_SRQ_LIMIT_REACHED);
}

static void srq_free_handle(struct v_srq *s)
{
	v_table_remove(s->cookie);
	pthread_mutex_destroy(&s->base.mutex);
	pthread_cond_destroy(&s->base.cond);
	lock_fini(&s->post);
	free(s);
}

/* Returns 0, or EINVAL with a message. */
static int check_depth(uint32_t max_wr)
{
	if (max_wr > HCA_MAX_WR)
		return v_fail(EINVAL, V_LIMIT,
			      "the depth of a shared receive queue");
	if (!max_wr)
		return v_fail(EINVAL, V_INPUT,
			      "the depth of a shared receive queue, max_wr, "
			      "must be at least 1");
	return 0;
}

/* Returns 0, or EINVAL with a message. */
static int check_size(const struct ibv_srq_attr *a)
{
	int err = check_depth(a->max_wr);

	if (err)
		return err;
	if (a->max_sge > HCA_MAX_SGE)
		return v_fail(EINVAL, V_LIMIT,
			      "the number of elements of a request");
	return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct v_context *c = v_context(pd->context);
	struct v_srq *s;
	bool is_full;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_create_srq");
	errno = check_size(&a->attr);
	if (errno)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_create_srq");
	s->cookie = v_table_add(s);
	srq_show(s, pd, a->srq_context);
	host_lock(c->host);
	if (s->cookie)
		s->srq = srq_new(host_hca(c->host), v_pd(pd)->number,
				 a->attr.max_wr, a->attr.max_sge, s->cookie);
	is_full = host_hca(c->host)->srqs == HCA_MAX_SRQ;
	host_unlock(c->host);
	if (!s->srq) {
		srq_free_handle(s);
		return is_full ? v_fail_null(ENOMEM, V_LIMIT,
					     "the number of shared receive "
					     "queues")
			       : v_fail_null(ENOMEM, V_MEMORY,
					     "ibv_create_srq");
	}
	count_up(&v_pd(pd)->users);
	count_up(&c->objects);
	return &s->base;
}

/* Supports the basic type with the attributes of ibv_create_srq.  As with the
 * kernel, a completion queue in *a is ignored: only other types have one. */
struct ibv_srq *v_create_srq_ex(struct ibv_context *context,
				struct ibv_srq_init_attr_ex *a)
{
	struct ibv_srq_init_attr plain = {a->srq_context, a->attr};
	uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			 IBV_SRQ_INIT_ATTR_CQ;

	if ((a->comp_mask & ~known) ||
	    ((a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
	     a->srq_type != IBV_SRQT_BASIC))
		return v_fail_null(EOPNOTSUPP, V_NOT_SUPPORTED,
				   "a shared receive queue for XRC or tag "
				   "matching");
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		return v_fail_null(EINVAL, V_INPUT,
				   "ibv_create_srq_ex needs a protection "
				   "domain: pd, and IBV_SRQ_INIT_ATTR_PD in "
				   "comp_mask");
	return ibv_create_srq(a->pd, &plain);
}

int v_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	*num = srq->handle;
	return 0;
}

/* Returns 0, or EINVAL or ENOMEM with a message.  The caller holds host_lock
 * and v_srq.post. */
static int change_srq(struct v_srq *s, struct hca *h,
		      const struct ibv_srq_attr *a, int mask)
{
	struct v_context *c = v_context(s->base.context);
	uint32_t depth = mask & IBV_SRQ_MAX_WR ? a->max_wr : s->srq->wq.depth;
	int err = 0;

	if ((mask & IBV_SRQ_LIMIT) && a->srq_limit > depth)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_modify_srq: srq_limit exceeds the depth of "
			      "the shared receive queue (max_wr of "
			      "ibv_query_srq)");
	if (mask & IBV_SRQ_MAX_WR)
		err = -host_srq_resize(c->host, s->srq, depth);
	if (err == EINVAL)
		v_fail(err, V_INPUT,
		       "ibv_modify_srq: more receives are posted than the new "
		       "max_wr allows; pass a larger max_wr");
	else if (err == ENOMEM)
		v_fail(err, V_MEMORY, "ibv_modify_srq");
	if (!err && (mask & IBV_SRQ_LIMIT) && srq_arm(h, s->srq, a->srq_limit))
		v_queue_post(&c->async, &s->limit);
	return err;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct v_context *c = v_context(srq->context);
	struct v_srq *s = v_srq(srq);
	int err = 0;

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_modify_srq");
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_modify_srq: a bit of srq_attr_mask is "
			      "unknown; use no bits but IBV_SRQ_MAX_WR and "
			      "IBV_SRQ_LIMIT");
	if (mask & IBV_SRQ_MAX_WR)
		err = check_depth(attr->max_wr);
	if (err)
		return err;
	host_lock(c->host);
	lock_take(&s->post);
	err = change_srq(s, host_hca(c->host), attr, mask);
	lock_give(&s->post);
	host_unlock(c->host);
	return err;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct v_context *c = v_context(srq->context);
	const struct srq *s = v_srq(srq)->srq;

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_query_srq");
	host_lock(c->host);
	*attr = (struct ibv_srq_attr){
		.max_wr = s->wq.depth,
		.max_sge = s->wq.max_sge,
		.srq_limit = srq_limit(s),
	};
	host_unlock(c->host);
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct v_context *c = v_context(srq->context);
	struct v_srq *s = v_srq(srq);
	uint32_t taken;

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_destroy_srq");
	if (count_now(&s->users))
		return v_fail(EBUSY, V_BUSY,
			      "ibv_destroy_srq: queue pairs use the shared "
			      "receive queue");
	v_table_remove(s->cookie);
	taken = v_queue_forget(&c->async, &s->limit);
	pthread_mutex_lock(&srq->mutex);
	while (srq->events_completed != taken)
		pthread_cond_wait(&srq->cond, &srq->mutex);
	pthread_mutex_unlock(&srq->mutex);
	host_lock(c->host);
	srq_free(host_hca(c->host), s->srq);
	host_unlock(c->host);
	v_pd_drop(v_pd(srq->pd));
	count_down(&c->objects);
	srq_free_handle(s);
	return 0;
}
