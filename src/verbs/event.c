/* SPDX-License-Identifier: BSD-2-Clause */
/* Events.  This file posts the engine's events to the program's queues, and has
 * the calls by which the program takes and acknowledges events. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "verbs/object.h"
#include "verbs/ops.h"
#include "verbs/table.h"

static void cq_event(void *object, int type)
{
	struct v_cq *cq = object;
	struct ibv_comp_channel *channel = cq->base.channel;

	if (type == ENGINE_CQ_ERR)
		v_queue_post(&v_context(cq->base.context)->async, &cq->error);
	else if (channel)
		v_queue_post(&v_channel(channel)->events, &cq->completion);
}

static void qp_event(void *object, int which)
{
	struct v_qp *qp = object;

	v_queue_post(&v_context(qp->base.qp_base.context)->async,
		     &qp->events[which]);
}

static void srq_event(void *object, int type)
{
	struct v_srq *srq = object;

	v_queue_post(&v_context(srq->base.context)->async, &srq->limit);
}

void v_event(const struct engine_event *e)
{
	switch (e->type) {
	case ENGINE_CQ_EVENT:
	case ENGINE_CQ_ERR:
		v_table_visit(e->user, cq_event, (int)e->type);
		break;
	case ENGINE_QP_FATAL:
		v_table_visit(e->user, qp_event, V_QP_FATAL);
		break;
	case ENGINE_QP_REQ_ERR:
		v_table_visit(e->user, qp_event, V_QP_REQ_ERR);
		break;
	case ENGINE_QP_ACCESS_ERR:
		v_table_visit(e->user, qp_event, V_QP_ACCESS_ERR);
		break;
	case ENGINE_COMM_EST:
		v_table_visit(e->user, qp_event, V_QP_COMM_EST);
		break;
	case ENGINE_SQ_DRAINED:
		v_table_visit(e->user, qp_event, V_QP_SQ_DRAINED);
		break;
	case ENGINE_LAST_WQE:
		v_table_visit(e->user, qp_event, V_QP_LAST_WQE);
		break;
	case ENGINE_PATH_MIG:
		v_table_visit(e->user, qp_event, V_QP_PATH_MIG);
		break;
	case ENGINE_PATH_MIG_ERR:
		v_table_visit(e->user, qp_event, V_QP_PATH_MIG_ERR);
		break;
	case ENGINE_SRQ_LIMIT:
		v_table_visit(e->user, srq_event, 0);
		break;
	case ENGINE_EXPLAIN:
	case ENGINE_ASK_PEER:
		break; /* the host handles these itself */
	}
}

/* Returns whether an event happens to the device or to a port.
 * Acknowledgements of such events are not counted, since no call waits for
 * the acknowledgements. */
static bool is_of_device(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR ||
	       type == IBV_EVENT_LID_CHANGE || type == IBV_EVENT_PKEY_CHANGE ||
	       type == IBV_EVENT_SM_CHANGE ||
	       type == IBV_EVENT_CLIENT_REREGISTER ||
	       type == IBV_EVENT_GID_CHANGE || type == IBV_EVENT_DEVICE_FATAL;
}

/* Returns the number of the port to which the event of s happens: s->object is
 * the port's row of v_context.port.  IBV_EVENT_DEVICE_FATAL happens to no port,
 * and the result is 1. */
static int port_of(const struct v_context *c, const struct v_source *s)
{
	for (int n = 0; n < HCA_MAX_PORTS; n++)
		if (s->object == c->port[n])
			return n + 1;
	return 1;
}

static bool has_claimed(void *queue)
{
	return v_queue_has_claimed(queue);
}

static void wake_host(void *host)
{
	host_wake(host);
}

static void unclaim_event(void *queue)
{
	struct v_source *none;

	v_queue_unclaim(queue, false, &none);
}

static void host_has_slept(void *unused)
{
	(void)unused;
	host_slept();
}

/* Waits in v_queue_get after host_sleep has returned 0, and then calls
 * host_slept, also if the thread is cancelled. */
static struct v_source *sleep_counted(struct v_queue *q)
{
	struct v_source *s;

	pthread_cleanup_push(host_has_slept, NULL);
	s = v_queue_get(q);
	pthread_cleanup_pop(1);
	return s;
}

/*
 * Waits for an event of a channel that another thread has destroyed.  With a
 * hardware adapter this thread would be in a read(2), which goes on although
 * the descriptor is closed, and never returns an event.  So this thread, too,
 * waits until it is cancelled or a signal ends the wait.
 */
static struct v_source *wait_in_vain(void)
{
	sem_t never;

	sem_init(&never, 0, 0);
	while (!sem_wait(&never))
		;
	return NULL;
}

/* Waits for an event, and takes it.  Meanwhile this thread makes progress for
 * the process, unless another thread leads (host/leader.h). */
static struct v_source *sleep_for(struct host *h, struct v_queue *q)
{
	const struct host_sleep sleep = {has_claimed, q};
	struct v_source *s;
	bool is_open;
	int how;

	if (!v_queue_claim(q, wake_host, h))
		return v_queue_get(q);
	pthread_cleanup_push(unclaim_event, q);
	how = host_sleep(h, &sleep);
	pthread_cleanup_pop(0);
	is_open = v_queue_unclaim(q, how > 0, &s);
	if (how == 0 && is_open)
		return sleep_counted(q);
	if (how == 0)
		host_slept();
	if (how < 0)
		errno = -how;
	if (how < 0 || s)
		return s;
	/* If the queue is open, v_queue_forget has dropped the claimed event,
	 * and this thread waits for the next one. */
	return is_open ? sleep_for(h, q) : wait_in_vain();
}

static struct v_source *next_event(struct v_context *c, struct v_queue *q)
{
	if (!v_is_ours(c))
		return v_queue_get(q);
	host_awaits(c->host);
	/* Makes ibv_get_cq_event a cancellation point also if it does not call
	 * read(2). */
	pthread_testcancel();
	if (v_queue_has(q) || v_queue_is_quick(q))
		return v_queue_get(q);
	return sleep_for(c->host, q);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **cq_context)
{
	struct v_context *c = v_context(channel->context);
	struct v_source *s = next_event(c, &v_channel(channel)->events);

	if (!s)
		return -1;
	*cq = s->object;
	*cq_context = (*cq)->cq_context;
	instrument_happens_after(c->host);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

int ibv_get_async_event(struct ibv_context *context,
			struct ibv_async_event *event)
{
	struct v_source *s = v_queue_get(&v_context(context)->async);

	if (!s)
		return -1;
	event->event_type = (enum ibv_event_type)s->type;
	if (is_of_device(event->event_type))
		event->element.port_num = port_of(v_context(context), s);
	else if (event->event_type == IBV_EVENT_CQ_ERR)
		event->element.cq = s->object;
	else if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
		event->element.srq = s->object;
	else
		event->element.qp = s->object;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (is_of_device(event->event_type))
		return;
	if (event->event_type == IBV_EVENT_CQ_ERR) {
		struct ibv_cq *cq = event->element.cq;

		pthread_mutex_lock(&cq->mutex);
		cq->async_events_completed++;
		pthread_cond_broadcast(&cq->cond);
		pthread_mutex_unlock(&cq->mutex);
	} else if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
		struct ibv_srq *srq = event->element.srq;

		pthread_mutex_lock(&srq->mutex);
		srq->events_completed++;
		pthread_cond_broadcast(&srq->cond);
		pthread_mutex_unlock(&srq->mutex);
	} else {
		struct ibv_qp *qp = event->element.qp;

		pthread_mutex_lock(&qp->mutex);
		qp->events_completed++;
		pthread_cond_broadcast(&qp->cond);
		pthread_mutex_unlock(&qp->mutex);
	}
}
