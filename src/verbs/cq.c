/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues and their channels. */
#include <errno.h>
#include <stdlib.h>

#include "util/alloc.h"
#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"
#include "verbs/table.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct v_channel *ch = calloc(1, sizeof(*ch));
	int err;

	if (!ch)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_create_comp_channel");
	err = v_queue_init(&ch->events);
	if (err) {
		free(ch);
		return v_fail_null(-err, V_SYSTEM,
				   "ibv_create_comp_channel fails");
	}
	ch->base.context = context;
	ch->base.fd = ch->events.fd;
	return &ch->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	pthread_mutex_t *m = &channel->context->mutex;
	int users;

	pthread_mutex_lock(m);
	users = channel->refcnt;
	pthread_mutex_unlock(m);
	if (users)
		return v_fail(EBUSY, V_BUSY,
			      "ibv_destroy_comp_channel: completion queues use "
			      "the channel");
	if (v_is_ours(v_context(channel->context)))
		v_queue_end(&v_channel(channel)->events);
	v_queue_fini(&v_channel(channel)->events);
	free(channel);
	return 0;
}

static void channel_use(struct ibv_comp_channel *channel, int change)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += change;
	pthread_mutex_unlock(&channel->context->mutex);
}

/* Returns 0, or a positive errno with a message. */
static int check_size(int cqe)
{
	if (cqe > HCA_MAX_CQE)
		return v_fail(EINVAL, V_LIMIT,
			      "the size of a completion queue");
	if (cqe < 1)
		return v_fail(EINVAL, V_INPUT,
			      "the size of a completion queue, cqe, must be at "
			      "least 1");
	return 0;
}

static void cq_show(struct v_cq *cq, struct ibv_context *context, int cqe,
		    void *cq_context, struct ibv_comp_channel *channel)
{
	cq->base.context = context;
	cq->base.channel = channel;
	cq->base.cq_context = cq_context;
	cq->base.handle = v_table_handle(cq->cookie);
	cq->base.cqe = cqe;
	pthread_mutex_init(&cq->base.mutex, NULL);
	pthread_cond_init(&cq->base.cond, NULL);
	lock_init(&cq->poll_lock);
	v_cq_fill(&cq->base);
	v_source_init(&cq->completion, cq, 0);
	v_source_init(&cq->error, cq, IBV_EVENT_CQ_ERR);
}

static void cq_free_handle(struct v_cq *cq)
{
	v_table_remove(cq->cookie);
	pthread_mutex_destroy(&cq->base.mutex);
	pthread_cond_destroy(&cq->base.cond);
	lock_fini(&cq->poll_lock);
	free(cq);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
			     void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	struct v_context *c = v_context(context);
	struct v_cq *cq;
	bool is_full;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_create_cq");
	errno = check_size(cqe);
	if (errno)
		return NULL;
	if (comp_vector < 0 || comp_vector >= context->num_comp_vectors)
		return v_fail_null(
			EINVAL, V_INPUT,
			"ibv_create_cq: the device has only comp_vector "
			"0; pass 0");
	cq = alloc_apart(sizeof(*cq));
	if (!cq)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_create_cq");
	cq->cookie = v_table_add(cq);
	cq_show(cq, context, cqe, cq_context, channel);
	host_lock(c->host);
	if (cq->cookie)
		cq->cq = cq_new(host_hca(c->host), (uint32_t)cqe, cq->cookie,
				!channel);
	is_full = host_hca(c->host)->cqs == HCA_MAX_CQ;
	host_unlock(c->host);
	if (!cq->cq) {
		cq_free_handle(cq);
		return is_full ? v_fail_null(ENOMEM, V_LIMIT,
					     "the number of completion queues")
			       : v_fail_null(ENOMEM, V_MEMORY, "ibv_create_cq");
	}
	cq->base.cqe = (int)cq->cq->cqe;
	channel_use(channel, 1);
	count_up(&c->objects);
	return (struct ibv_cq *)(void *)&cq->base;
}

int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct v_context *c = v_context(ibcq->context);
	struct v_cq *cq = v_cq(ibcq);
	int err;

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_resize_cq");
	err = check_size(cqe);
	if (err)
		return err;
	/* Some requests may be complete although their completions are not in
	 * the queue yet. */
	host_quiesce(c->host);
	host_lock(c->host);
	err = -cq_resize(host_hca(c->host), cq->cq, (uint32_t)cqe);
	ibcq->cqe = (int)cq->cq->cqe;
	host_unlock(c->host);
	if (err == EINVAL)
		v_fail(err, V_INPUT,
		       "ibv_resize_cq: more completions wait in the queue than "
		       "the new size allows; poll them first");
	else if (err)
		v_fail(err, V_MEMORY, "ibv_resize_cq");
	return err;
}

int v_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *a)
{
	struct v_context *c = v_context(ibcq->context);

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_modify_cq");
	if (a->attr_mask != IBV_CQ_ATTR_MODERATE)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_modify_cq needs the attr_mask "
			      "IBV_CQ_ATTR_MODERATE");
	cq_moderate(host_hca(c->host), v_cq(ibcq)->cq, a->moderate.cq_count,
		    a->moderate.cq_period * 1000ull);
	return 0;
}

/* Waits until the program has acknowledged the events that it took, as
 * ibv_get_cq_event(3) promises. */
static void wait_acks(struct ibv_cq *cq, uint32_t completions, uint32_t errors)
{
	pthread_mutex_lock(&cq->mutex);
	while (cq->comp_events_completed != completions ||
	       cq->async_events_completed != errors)
		pthread_cond_wait(&cq->cond, &cq->mutex);
	pthread_mutex_unlock(&cq->mutex);
}

int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct v_context *c = v_context(ibcq->context);
	struct v_cq *cq = v_cq(ibcq);
	uint32_t completions = 0;

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_destroy_cq");
	/* A queue that queue pairs use is not destroyed (IBTA 11.2.8.4). */
	if (count_now(&cq->users))
		return v_fail(EBUSY, V_BUSY,
			      "ibv_destroy_cq: queue pairs use the completion "
			      "queue");
	v_table_remove(cq->cookie);
	if (ibcq->channel)
		completions = v_queue_forget(&v_channel(ibcq->channel)->events,
					     &cq->completion);
	wait_acks(ibcq, completions, v_queue_forget(&c->async, &cq->error));
	host_lock(c->host);
	host_cq_free(c->host, cq->cq);
	host_unlock(c->host);
	channel_use(ibcq->channel, -1);
	if (cq->domain)
		v_pd_drop(cq->domain);
	count_down(&c->objects);
	cq_free_handle(cq);
	return 0;
}
