/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of ids: creates them with the completion queues that they need,
 * and moves them through their states as the connection requires (IBTA 12.9.5).
 */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/iw.h"
#include "rdmacm/object.h"

#include <rdma/rdma_verbs.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "util/bits.h"

/* 655.36 ms (IBTA 9.7.5.2.8), the value of the kernel's rdma_cm.  With a short
 * time the sender would have used up its retries before a receiver on a busy
 * machine gets a core and posts a receive. */
#define MIN_RNR_TIMER 0
#define ACK_TIMEOUT   17 /* 0.5 s: 4.096 us * 2^17 */
#define HOP_LIMIT     64

static int attr_init(struct r_id *id, struct ibv_qp_attr *a, int *mask)
{
	a->pkey_index = 0;
	if (r_is_ib(id) && (r_ib_pkey_index(id, &a->pkey_index) ||
			    r_ib_take_qkey(id, "rdma_init_qp_attr")))
		return EINVAL;
	a->port_num = id->base.port_num;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (id->base.qp_type == IBV_QPT_UD) {
		a->qkey = id->own.qkey;
		*mask |= IBV_QP_QKEY;
		return 0;
	}
	a->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	if (id->own.responder_resources && id->base.qp_type == IBV_QPT_RC)
		a->qp_access_flags |=
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask |= IBV_QP_ACCESS_FLAGS;
	return 0;
}

static bool is_reliable(const struct r_id *id)
{
	return id->base.qp_type != IBV_QPT_UC;
}

static void fill_av(const struct r_id *id, struct ibv_ah_attr *a)
{
	if (r_is_ib(id)) {
		r_ib_fill_av(id, a);
		return;
	}
	a->is_global = 1;
	a->port_num = id->base.port_num;
	a->grh.sgid_index = id->path.sgid_index;
	a->grh.hop_limit = HOP_LIMIT;
	a->grh.traffic_class = id->options.tos;
	memcpy(&a->grh.dgid, id->path.peer, 16);
}

static int attr_rtr(const struct r_id *id, struct ibv_qp_attr *a, int *mask)
{
	*mask = IBV_QP_STATE;
	if (id->base.qp_type == IBV_QPT_UD)
		return 0;
	if (!id->remote.kind)
		return EINVAL; /* the peer has sent no message yet */
	fill_av(id, &a->ah_attr);
	a->path_mtu = (enum ibv_mtu)id->path.mtu;
	a->dest_qp_num = id->remote.qp.qpn;
	/* IBTA 12.7.31: each side's REQ or REP has the PSN at which the
	 * message's receiver starts to send. */
	a->rq_psn = id->own.psn;
	*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 r_ib_fill_alternate(id, a);
	if (!is_reliable(id))
		return 0;
	a->max_dest_rd_atomic = id->own.responder_resources;
	a->min_rnr_timer = MIN_RNR_TIMER;
	*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return 0;
}

/* Returns how many READs and atomics this side may have outstanding: what the
 * program has asked for, and on the active side at most what the REP grants
 * (IBTA 12.7.29).  The passive side has asked for at most what the REQ allows.
 */
static uint8_t granted_depth(const struct r_id *id)
{
	uint8_t asked = id->own.initiator_depth;

	return id->state.is_passive || !id->remote.kind
		       ? asked
		       : bits_min_u8(asked, id->remote.qp.responder_resources);
}

static int attr_rts(const struct r_id *id, struct ibv_qp_attr *a, int *mask)
{
	/* The passive side takes the retry count and the ACK timeout from the
	 * REQ (IBTA 12.7), unless the program has set an ACK timeout. */
	const struct cmproto *req = id->state.is_passive ? &id->remote : NULL;

	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	a->sq_psn = id->remote.qp.psn;
	if (id->base.qp_type == IBV_QPT_UD)
		return 0;
	*mask |= r_ib_fill_alternate(id, a);
	if (!is_reliable(id))
		return 0;
	a->timeout = id->options.ack_timeout	  ? id->options.ack_timeout
		     : req && req->qp.ack_timeout ? req->qp.ack_timeout
		     : r_is_ib(id)
			     ? r_ib_ack_timeout(id, id->remote.qp.ack_delay)
			     : ACK_TIMEOUT;
	a->retry_cnt = req ? req->qp.retry_count : id->own.retry_count;
	a->rnr_retry = id->remote.qp.rnr_retry;
	a->max_rd_atomic = granted_depth(id);
	*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC;
	return 0;
}

/* Fills in the attributes of a queue pair of iWARP, which enters RTS when it
 * gets its TCP connection or SCTP association.  The values are those of the
 * kernel's iwcm_init_qp_init_attr and iwcm_init_qp_rts_attr. */
static int attr_stream(const struct r_id *id, struct ibv_qp_attr *a, int *mask)
{
	*mask = IBV_QP_PORT;
	a->port_num = id->base.port_num;
	if (a->qp_state == IBV_QPS_RTS)
		return 0;
	a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	*mask |= IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *qp_attr,
		      int *qp_attr_mask)
{
	enum ibv_qp_state state = qp_attr->qp_state;
	struct r_id *id = r_id(base);
	int err = EINVAL;

	if (id->device && (state == IBV_QPS_INIT || state == IBV_QPS_RTR ||
			   state == IBV_QPS_RTS)) {
		memset(qp_attr, 0, sizeof(*qp_attr));
		qp_attr->qp_state = state;
		err = r_is_iwarp(id) ? attr_stream(id, qp_attr, qp_attr_mask)
		      : state == IBV_QPS_INIT
			      ? attr_init(id, qp_attr, qp_attr_mask)
		      : state == IBV_QPS_RTR
			      ? attr_rtr(id, qp_attr, qp_attr_mask)
			      : attr_rts(id, qp_attr, qp_attr_mask);
	}
	if (err)
		return r_fail(err,
			      "rdma_init_qp_attr: the id has no attributes for "
			      "state %d of a queue pair; ask for INIT after "
			      "ADDR_RESOLVED, and for RTR and RTS after "
			      "CONNECT_RESPONSE or CONNECT_REQUEST",
			      (int)state);
	return 0;
}

/* Moves the id's queue pair to the state.  Returns 0, or -1 and errno. */
static int enter_state(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0, err;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return -1;
	err = ibv_modify_qp(id->qp, &attr, mask);
	if (err)
		errno = err;
	return err ? -1 : 0;
}

int r_qp_connect(struct r_id *id)
{
	/* The queue pair is in INIT; the second INIT sets the access rights of
	 * the peer, which are known only now. */
	if (enter_state(&id->base, IBV_QPS_INIT) ||
	    enter_state(&id->base, IBV_QPS_RTR))
		return -1;
	return enter_state(&id->base, IBV_QPS_RTS);
}

void r_qp_fail(struct r_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (id->base.qp && id->base.qp_type != IBV_QPT_UD)
		ibv_modify_qp(id->base.qp, &attr, IBV_QP_STATE);
}

/*
 * A completion queue that rdma_create_qp has created.  rdma_create_qp stores
 * the queue in the program's attributes, and a program that passes the same
 * attributes for its next id (cmtime) shares the queue.  So the queue is
 * destroyed with the last queue pair that uses it.
 */
struct r_cq {
	struct list link; /* in cqs */
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel; /* the channel of cq */
	unsigned users; /* queue pairs, counted once for each of their queues */
};

static struct list cqs = {&cqs, &cqs}; /* struct r_cq; under r_lock */

/* Creates a completion queue with one user.  Returns NULL and errno on failure.
 */
static struct r_cq *cq_new(struct r_id *id, uint32_t size)
{
	struct r_cq *c = calloc(1, sizeof(*c));
	int err = ENOMEM;

	if (!c)
		return NULL;
	c->channel = ibv_create_comp_channel(id->base.verbs);
	if (c->channel)
		c->cq = ibv_create_cq(id->base.verbs, (int)size, &id->base,
				      c->channel, 0);
	if (!c->cq) {
		err = errno;
		if (c->channel)
			ibv_destroy_comp_channel(c->channel);
		free(c);
		errno = err;
		return NULL;
	}
	c->users = 1;
	list_init(&c->link);
	r_take();
	list_push_tail(&cqs, &c->link);
	r_give();
	return c;
}

/* Counts one more user of a completion queue that rdma_create_qp has created.
 * Returns NULL if the program has created the queue. */
static struct r_cq *cq_share(const struct ibv_cq *cq)
{
	struct r_cq *found = NULL;

	r_take();
	list_for_each (n, &cqs) {
		struct r_cq *c = (struct r_cq *)(void *)n;

		if (c->cq == cq)
			found = c;
	}
	if (found)
		found->users++;
	r_give();
	return found;
}

/* Counts one user less, and destroys the completion queue after its last user.
 */
static void cq_drop(struct r_cq **cq)
{
	struct r_cq *c = *cq;
	bool is_last;

	*cq = NULL;
	if (!c)
		return;
	r_take();
	is_last = --c->users == 0;
	if (is_last)
		list_remove(&c->link);
	r_give();
	if (!is_last)
		return;
	ibv_destroy_cq(c->cq);
	ibv_destroy_comp_channel(c->channel);
	free(c);
}

/* Ends the use of rdma_create_qp's completion queues by the id's queue pair,
 * and removes those that were created for this id from the id. */
static void drop_cqs(struct r_id *id)
{
	struct rdma_cm_id *b = &id->base;

	if (id->owns_recv_cq) {
		b->recv_cq = NULL;
		b->recv_cq_channel = NULL;
	}
	if (id->owns_send_cq) {
		b->send_cq = NULL;
		b->send_cq_channel = NULL;
	}
	id->owns_send_cq = id->owns_recv_cq = false;
	cq_drop(&id->recv_cq);
	cq_drop(&id->send_cq);
}

/* Creates the completion queues that the program did not pass.  Returns 0, or
 * -1 and errno. */
static int make_cqs(struct r_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *b = &id->base;

	if (attr->send_cq)
		id->send_cq = cq_share(attr->send_cq);
	else if (!b->send_cq) {
		id->send_cq = cq_new(id, attr->cap.max_send_wr + 1);
		if (!id->send_cq)
			return -1;
		b->send_cq = id->send_cq->cq;
		b->send_cq_channel = id->send_cq->channel;
		id->owns_send_cq = true;
	}
	if (attr->recv_cq)
		id->recv_cq = cq_share(attr->recv_cq);
	else if (!b->recv_cq) {
		id->recv_cq = cq_new(id, attr->cap.max_recv_wr + 1);
		if (!id->recv_cq)
			return -1;
		b->recv_cq = id->recv_cq->cq;
		b->recv_cq_channel = id->recv_cq->channel;
		id->owns_recv_cq = true;
	}
	if (!attr->send_cq)
		attr->send_cq = b->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = b->recv_cq;
	return 0;
}

/* Moves a new queue pair to INIT, or to RTS if its type is UD, which needs no
 * connection.  Returns 0, or -1 and errno. */
static int make_ready(struct r_id *id)
{
	if (enter_state(&id->base, IBV_QPS_INIT))
		return -1;
	if (id->base.qp_type != IBV_QPT_UD)
		return 0;
	return enter_state(&id->base, IBV_QPS_RTR) ||
			       enter_state(&id->base, IBV_QPS_RTS)
		       ? -1
		       : 0;
}

/* Destroys the queue pair and the completion queues that rdma_create_qp_ex has
 * made.  Returns -1 and errno, with a message. */
static int fail_id(struct r_id *id)
{
	int err = errno;

	if (id->base.qp)
		ibv_destroy_qp(id->base.qp);
	id->base.qp = NULL;
	drop_cqs(id);
	return r_fail(err,
		      "rdma_create_qp: the queue pair cannot be created: %s",
		      strerror(err));
}

int rdma_create_qp_ex(struct rdma_cm_id *base, struct ibv_qp_init_attr_ex *attr)
{
	struct r_id *id = r_id(base);
	struct ibv_cq *const given[2] = {attr->send_cq, attr->recv_cq};
	bool has_pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) && attr->pd;
	struct ibv_pd *pd = has_pd ? attr->pd : base->pd;

	if (base->qp || !id->device)
		return r_fail(EINVAL, base->qp ? "rdma_create_qp: the id "
						 "already has a queue pair; "
						 "call rdma_destroy_qp first"
					       : "rdma_create_qp: the id has "
						 "no device; call "
						 "rdma_resolve_addr or "
						 "rdma_bind_addr first");
	if (has_pd && attr->pd->context != base->verbs)
		return r_fail(EINVAL, "rdma_create_qp: the protection domain "
				      "belongs to another context than "
				      "id->verbs; allocate one of id->verbs");
	if (!pd)
		pd = r_device_domain(id->device);
	if (!pd)
		return fail_id(id);
	attr->pd = pd;
	attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	if (make_cqs(id, attr))
		return fail_id(id);
	if (!attr->srq)
		attr->srq = base->srq;
	base->qp = ibv_create_qp_ex(base->verbs, attr);
	if (base->qp)
		base->qp_type = attr->qp_type;
	if (base->qp && !make_ready(id)) {
		base->pd = pd;
		return 0;
	}
	/* fail_id destroys the queues that this call has made, and the program
	 * may try again with the same *attr. */
	attr->send_cq = given[0];
	attr->recv_cq = given[1];
	return fail_id(id);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {0};
	int result;

	/* struct ibv_qp_init_attr has the members before comp_mask. */
	memcpy(&attr, qp_init_attr,
	       offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	if (pd) {
		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		attr.pd = pd;
	}
	result = rdma_create_qp_ex(id, &attr);
	/* The program gets the granted capabilities and the completion queues.
	 */
	memcpy(qp_init_attr, &attr,
	       offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	return result;
}

void rdma_destroy_qp(struct rdma_cm_id *base)
{
	struct r_id *id = r_id(base);

	r_iw_abort(id);
	if (base->qp)
		ibv_destroy_qp(base->qp);
	base->qp = NULL;
	drop_cqs(id);
}

int rdma_create_srq_ex(struct rdma_cm_id *base,
		       struct ibv_srq_init_attr_ex *attr)
{
	struct r_id *id = r_id(base);
	struct ibv_srq *srq = NULL;

	if (!id->device)
		return r_fail(EINVAL, "rdma_create_srq: the id has no device; "
				      "call rdma_resolve_addr or "
				      "rdma_bind_addr first");
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = base->pd ? base->pd : r_device_domain(id->device);
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (attr->pd)
		srq = ibv_create_srq_ex(base->verbs, attr);
	if (!srq)
		return r_fail(
			errno,
			"rdma_create_srq: the shared receive queue cannot "
			"be created: %s",
			strerror(errno));
	/* As with rdma-core, a second queue takes the place of the first, which
	 * the program destroys by ibv_destroy_srq; and the id keeps its pd. */
	if (!base->pd)
		base->pd = attr->pd;
	base->srq = srq;
	return 0;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
		    struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {.srq_context = attr->srq_context,
					  .attr = attr->attr,
					  .srq_type = IBV_SRQT_BASIC,
					  .comp_mask = IBV_SRQ_INIT_ATTR_TYPE};
	int result;

	if (pd) {
		ex.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		ex.pd = pd;
	}
	result = rdma_create_srq_ex(id, &ex);
	attr->attr = ex.attr;
	return result;
}

void rdma_destroy_srq(struct rdma_cm_id *base)
{
	if (base->srq)
		ibv_destroy_srq(base->srq);
	base->srq = NULL;
}
