/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: synchronous ids, which rdma_create_ep creates together with their
 * address and queue pair. */
#include "rdmacm/explain.h"
#include "rdmacm/object.h"

#include <rdma/rdma_verbs.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS 2000

static int make_active(struct rdma_cm_id *id, struct rdma_addrinfo *res,
		       struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr,
			      RESOLVE_MS) ||
	    rdma_resolve_route(id, RESOLVE_MS))
		return -1;
	if (!attr)
		return 0;
	attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return rdma_create_qp(id, pd, attr);
}

/* Keeps the attributes and the domain: rdma_get_request creates a queue pair
 * for each connection request. */
static int make_passive(struct rdma_cm_id *id, struct rdma_addrinfo *res,
			struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(id, res->ai_src_addr))
		return -1;
	if (pd)
		id->pd = pd;
	if (!attr)
		return 0;
	r_id(id)->listen_attr = malloc(sizeof(*attr));
	if (!r_id(id)->listen_attr)
		return r_fail(ENOMEM, "rdma_create_ep: no memory is left; free "
				      "some, or raise ulimit -v and -d");
	*r_id(id)->listen_attr = *attr;
	r_id(id)->listen_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return 0;
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
		   struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *made;
	int err;

	if (rdma_create_id(NULL, &made, NULL,
			   (enum rdma_port_space)res->ai_port_space))
		return -1;
	if (res->ai_qp_type)
		made->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	if (res->ai_flags & RAI_PASSIVE)
		err = make_passive(made, res, pd, qp_init_attr);
	else
		err = make_active(made, res, pd, qp_init_attr);
	if (err) {
		int saved = errno;

		rdma_destroy_ep(made);
		errno = saved;
		return -1;
	}
	*id = made;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

static int give_queues(struct r_id *listener, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr;

	if (!listener->listen_attr)
		return 0;
	attr = *listener->listen_attr;
	return rdma_create_qp(id, listener->base.pd, &attr);
}

/* No request comes after DEVICE_REMOVAL, so a call that waited for one would
 * not return.  The listener keeps the event, and so each later call fails, too.
 */
static bool is_removed(const struct rdma_cm_id *listen)
{
	return listen->event &&
	       listen->event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
}

static int fail_removed(void)
{
	return r_fail(
		ENODEV,
		"rdma_get_request: the listener has got "
		"RDMA_CM_EVENT_DEVICE_REMOVAL, so no request can come any "
		"more; destroy the id, and listen with a new one");
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct r_id *listener = r_id(listen);
	struct rdma_cm_event *event;
	int err = EINVAL;

	if (!listener->is_sync)
		return r_fail(EINVAL, "rdma_get_request takes only a listener "
				      "that was created without an event "
				      "channel; use rdma_get_cm_event");
	if (is_removed(listen))
		return fail_removed();
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	if (event->status)
		err = event->status < 0 ? -event->status : event->status;
	else if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		err = 0;
	if (!err && give_queues(listener, event->id)) {
		/* The program does not know the id, and cannot free it. */
		err = errno;
		r_refuse((struct r_event *)(void *)event, R_REJ_NO_RESOURCES);
		errno = err;
		return -1;
	}
	if (err) {
		listen->event = event;
		if (is_removed(listen))
			return fail_removed();
		errno = err;
		return -1;
	}
	/* The id owns the event from now on, since the program reads the
	 * request's private data in the event. */
	*id = event->id;
	(*id)->event = event;
	return 0;
}
