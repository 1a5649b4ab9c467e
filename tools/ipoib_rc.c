/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_rc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipoib/stream.h"
#include "util/random.h"

enum {
	/* The offset of a packet in its place: IPOIB_HEADROOM, rounded up. */
	AT_PACKET = 16,
	PLACE_BYTES = (AT_PACKET + IPOIB_STREAM_MAX + 15) & ~15,
	BATCH = 32,
	MTU_MAX = 5,
	UNICAST_MAX = 0xbfff,
	PKEY_BASE = 0x7fff,
	TIMEOUT_MAX = 31,
	RETRIES = 3,	 /* without an answer */
	RNR_FOREVER = 7, /* a neighbour without a receive is waited for */
	RNR_TIMER = 12,	 /* 0.64 ms */
	RESERVE = 64,	 /* places for packets by UD */
};

_Static_assert(AT_PACKET >= IPOIB_HEADROOM, "a packet becomes a frame");

static int say_failure(int err)
{
	fprintf(stderr,
		"adverb: adverb ipoib cannot start: the shared receive queue "
		"of the connected mode cannot be made: %s; see the sentence "
		"above, or choose --mode datagram.\n",
		strerror(err));
	return -1;
}

static uint8_t *place_of(const struct ipoib_rc *r, uint32_t index)
{
	return r->memory + (size_t)index * PLACE_BYTES;
}

static int post_receive(struct ipoib_rc *r, uint32_t index)
{
	struct ibv_sge sge = {.addr = (uintptr_t)place_of(r, index) + AT_PACKET,
			      .length = IPOIB_STREAM_MAX,
			      .lkey = r->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1},
			   *bad;

	return ibv_post_srq_recv(r->srq, &wr, &bad);
}

int ipoib_rc_open(struct ipoib_rc *r, struct ipoib_verbs *v)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = IPOIB_RC_RECEIVES, .max_sge = 1}};
	const size_t bytes = (size_t)IPOIB_RC_RECEIVES * PLACE_BYTES;
	struct ibv_device_attr device;
	int err = 0;

	*r = (struct ipoib_rc){.v = v};
	if (!ibv_query_device(v->context, &device))
		r->ca_guid = be64toh(device.node_guid);
	r->memory = calloc(1, bytes);
	r->receive_cq = ibv_create_cq(v->context, IPOIB_RC_RECEIVES, NULL,
				      v->channel, 0);
	r->srq = ibv_create_srq(v->pd, &init);
	if (!r->memory || !r->receive_cq || !r->srq)
		return say_failure(errno);
	r->mr = ibv_reg_mr(v->pd, r->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!r->mr)
		return say_failure(errno);
	for (uint32_t i = 0; !err && i < IPOIB_RC_RECEIVES; i++)
		err = post_receive(r, i);
	if (!err)
		err = ibv_req_notify_cq(r->receive_cq, 0);
	return err ? say_failure(err) : 0;
}

/* ---- queue pairs ---- */

static struct ipoib_rc_link *find_link(struct ipoib_rc *r, uint32_t id)
{
	if (r->last && r->last->id == id)
		return r->last;
	for (uint32_t i = 0; id && i < IPOIB_RC_LINKS; i++)
		if (r->links[i].id == id)
			return r->last = &r->links[i];
	return NULL;
}

bool ipoib_rc_has(struct ipoib_rc *r, uint32_t id)
{
	return find_link(r, id) != NULL;
}

static int enter_init(struct ipoib_rc *r, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .pkey_index = r->v->pkey_index,
				   .port_num = r->v->port};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS);
}

/* Makes a connection with a queue pair in INIT; NULL: it cannot be made. */
static struct ipoib_rc_link *new_link(struct ipoib_rc *r, uint32_t id)
{
	struct ibv_qp_init_attr init = {.send_cq = r->v->send_cq,
					.recv_cq = r->receive_cq,
					.srq = r->srq,
					.cap = {IPOIB_RC_SENDS, 0, 1, 0, 0},
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1};
	struct ipoib_rc_link *l = r->links;

	while (l < r->links + IPOIB_RC_LINKS && l->qp)
		l++;
	if (l == r->links + IPOIB_RC_LINKS)
		return NULL;
	*l = (struct ipoib_rc_link){.qp = ibv_create_qp(r->v->pd, &init)};
	if (!l->qp)
		return NULL;
	if (enter_init(r, l->qp) ||
	    !random_fill(&l->psn, sizeof(l->psn), false)) {
		ibv_destroy_qp(l->qp);
		l->qp = NULL;
		return NULL;
	}
	l->psn &= 0xffffff;
	l->id = id;
	return l;
}

/* Brings the queue pair to RTR and then to RTS.  *a has the attributes of the
 * path and of the peer. */
static bool open_link(struct ipoib_rc *r, struct ipoib_rc_link *l,
		      struct ibv_qp_attr *a)
{
	int err;

	a->qp_state = IBV_QPS_RTR;
	a->ah_attr.port_num = r->v->port;
	a->max_dest_rd_atomic = 1;
	a->min_rnr_timer = RNR_TIMER;
	err = ibv_modify_qp(l->qp, a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	if (err)
		return false;
	a->qp_state = IBV_QPS_RTS;
	a->sq_psn = l->psn;
	a->retry_cnt = RETRIES;
	a->rnr_retry = RNR_FOREVER;
	a->max_rd_atomic = 1;
	l->is_open =
		!ibv_modify_qp(l->qp, a,
			       IBV_QP_STATE | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	return l->is_open;
}

static uint8_t timeout_of(uint8_t life_time)
{
	return life_time < TIMEOUT_MAX ? life_time + 1 : TIMEOUT_MAX;
}

/* Fills in the fields of a REQ or a REP about this side's queue pair. */
static void describe_link(const struct ipoib_rc *r,
			  const struct ipoib_rc_link *l, struct cmproto *m)
{
	m->qp.qpn = l->qp->qp_num;
	m->qp.psn = l->psn;
	m->qp.responder_resources = 1;
	m->qp.initiator_depth = 1;
	m->qp.retry_count = RETRIES;
	m->qp.rnr_retry = RNR_FOREVER;
	m->qp.has_srq = 1;
	m->qp.ca_guid = r->ca_guid;
}

bool ipoib_rc_ask(struct ipoib_rc *r, uint32_t id, const struct route *route,
		  const struct ipoib_port *port, struct cmproto *m)
{
	struct ipoib_rc_link *l =
		route->mtu && route->mtu <= MTU_MAX ? new_link(r, id) : NULL;

	if (!l)
		return false;
	l->route = *route;
	describe_link(r, l, m);
	m->qp.mtu = route->mtu;
	m->qp.ack_timeout = timeout_of(route->life_time);
	m->qp.traffic_class = route->traffic_class;
	m->qp.hop_limit = route->hop_limit;
	m->path = (struct cmproto_path){.local_lid = port->lid,
					.remote_lid = route->lid,
					.pkey = port->pkey,
					.sl = route->sl,
					.mtu = route->mtu,
					.rate = route->rate,
					.life_time = route->life_time,
					.hop_limit = route->hop_limit,
					.traffic_class = route->traffic_class,
					.is_global = route->is_global};
	return true;
}

bool ipoib_rc_accepted(struct ipoib_rc *r, uint32_t id, const struct cmproto *m)
{
	struct ipoib_rc_link *l = find_link(r, id);
	struct ibv_qp_attr a = {.dest_qp_num = m->qp.qpn, .rq_psn = m->qp.psn};
	const struct route *way;

	if (!l || l->is_open)
		return false;
	way = &l->route;
	a.path_mtu = (enum ibv_mtu)way->mtu;
	a.timeout = timeout_of(way->life_time);
	a.ah_attr = (struct ibv_ah_attr){.dlid = way->lid,
					 .sl = way->sl,
					 .static_rate = way->rate,
					 .is_global = way->is_global};
	a.ah_attr.grh.flow_label = way->flow_label;
	a.ah_attr.grh.hop_limit = way->hop_limit;
	a.ah_attr.grh.traffic_class = way->traffic_class;
	memcpy(a.ah_attr.grh.dgid.raw, way->gid, 16);
	return open_link(r, l, &a);
}

bool ipoib_rc_may_serve(const struct cmproto *m, uint16_t pkey)
{
	return !m->qp.transport && m->path.mtu && m->path.mtu <= MTU_MAX &&
	       m->path.remote_lid && m->path.remote_lid <= UNICAST_MAX &&
	       m->path.sl < 16 && !((m->path.pkey ^ pkey) & PKEY_BASE);
}

bool ipoib_rc_serve(struct ipoib_rc *r, uint32_t id, const struct cmproto *m,
		    struct cmproto *reply)
{
	struct ipoib_rc_link *l = new_link(r, id);
	struct ibv_qp_attr a = {
		.path_mtu = (enum ibv_mtu)m->path.mtu,
		.dest_qp_num = m->qp.qpn,
		.rq_psn = m->qp.psn,
		.timeout = timeout_of(m->path.life_time),
		.ah_attr = {.dlid = m->path.remote_lid,
			    .sl = m->path.sl,
			    .static_rate = m->path.rate,
			    .is_global = m->path.is_global},
	};

	if (!l)
		return false;
	a.ah_attr.grh.hop_limit = m->path.hop_limit;
	a.ah_attr.grh.traffic_class = m->path.traffic_class;
	memcpy(a.ah_attr.grh.dgid.raw, m->at.peer, 16);
	if (!open_link(r, l, &a)) {
		ipoib_rc_end(r, id);
		return false;
	}
	describe_link(r, l, reply);
	return true;
}

/* Moves the queue pair to ERR.  It is destroyed only after the receives that it
 * has taken have come back by their completions (is_in_use). */
void ipoib_rc_end(struct ipoib_rc *r, uint32_t id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ipoib_rc_link *l = find_link(r, id);

	if (!l)
		return;
	ibv_modify_qp(l->qp, &attr, IBV_QP_STATE);
	l->id = 0;
	l->is_open = false;
	l->end = ++r->ended;
	l->end_taken = r->taken;
	r->has_closed = true;
}

static void destroy_link(struct ipoib_rc *r, struct ipoib_rc_link *l)
{
	if (!l->qp)
		return;
	ibv_destroy_qp(l->qp);
	ipoib_verbs_end_flow(r->v, &l->flow);
	*l = (struct ipoib_rc_link){0};
}

/* May the receive CQ still have a completion of this ended connection?  If the
 * queue pair were destroyed, the receive of this completion would be lost.  The
 * CQ has none if the connection was among the first `ended` connections to end,
 * since the CQ was found empty after these connections had ended.  The CQ has
 * none either if IPOIB_RC_RECEIVES completions, as many as there are receives,
 * were taken since the connection's end. */
static bool is_in_use(const struct ipoib_rc *r, const struct ipoib_rc_link *l,
		      uint32_t ended)
{
	return (int32_t)(l->end - ended) > 0 &&
	       r->taken - l->end_taken < IPOIB_RC_RECEIVES;
}

/* Destroys the queue pairs of ended connections that are not in use. */
static void destroy_closed(struct ipoib_rc *r, uint32_t ended)
{
	ipoib_verbs_collect(r->v);
	r->has_closed = false;
	for (uint32_t i = 0; i < IPOIB_RC_LINKS; i++) {
		struct ipoib_rc_link *l = &r->links[i];

		if (l->qp && !l->id && is_in_use(r, l, ended))
			r->has_closed = true;
		else if (!l->id)
			destroy_link(r, l);
	}
}

void ipoib_rc_close(struct ipoib_rc *r)
{
	for (uint32_t i = 0; i < IPOIB_RC_LINKS; i++)
		destroy_link(r, &r->links[i]);
	if (r->srq)
		ibv_destroy_srq(r->srq);
	if (r->receive_cq)
		ibv_destroy_cq(r->receive_cq);
	if (r->mr)
		ibv_dereg_mr(r->mr);
	free(r->memory);
}

/* Do the packets in flight wait for too long?  Retries never end while the
 * neighbour answers that it has no receive (RNR_FOREVER). */
static bool is_stuck(struct ipoib_rc_link *l, uint64_t now_ms)
{
	if (!l->moved_ms || !l->flow.in_flight ||
	    l->flow.complete != l->complete) {
		l->complete = l->flow.complete;
		l->moved_ms = now_ms;
	}
	return now_ms - l->moved_ms >= IPOIB_RC_STUCK_MS;
}

uint32_t ipoib_rc_broken(struct ipoib_rc *r, uint64_t now_ms)
{
	for (uint32_t i = 0; i < IPOIB_RC_LINKS; i++) {
		struct ipoib_rc_link *l = &r->links[i];

		if (l->id && (l->flow.is_broken || is_stuck(l, now_ms)))
			return l->id;
	}
	return 0;
}

/* ---- packets ---- */

/* Packets to a neighbour that has stopped stay in flight, and must not take the
 * places that the other connections need.  So RESERVE free places are left to
 * packets by UD, and a connection sends its next packet only while it has in
 * flight at most half as many packets as there are free places besides these
 * RESERVE. */
static bool may_send(const struct ipoib_rc *r, const struct ipoib_rc_link *l)
{
	uint32_t left = r->v->places.free_count;

	return l->is_open && !l->flow.is_broken && left > RESERVE &&
	       l->flow.in_flight < IPOIB_RC_SENDS &&
	       l->flow.in_flight <= (left - RESERVE) / 2;
}

void ipoib_rc_send(struct ipoib_rc *r, uint32_t id, const uint8_t *p,
		   size_t bytes)
{
	struct ipoib_rc_link *l = find_link(r, id);
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND},
			   *bad;

	if (!l)
		return;
	if (!may_send(r, l))
		ipoib_verbs_collect(r->v);
	if (!may_send(r, l))
		return;
	wr.wr_id = ipoib_verbs_take_place(r->v, &l->flow, p, bytes, &sge);
	if (wr.wr_id && ibv_post_send(l->qp, &wr, &bad))
		ipoib_verbs_free_place(r->v, wr.wr_id, true);
}

static struct ipoib_rc_link *link_of(struct ipoib_rc *r, uint32_t qpn)
{
	for (uint32_t i = 0; i < IPOIB_RC_LINKS; i++)
		if (r->links[i].qp && r->links[i].qp->qp_num == qpn)
			return &r->links[i];
	return NULL;
}

static void receive_one(struct ipoib_rc *r, struct ipoib *m,
			const struct ibv_wc *wc, uint64_t now_ms)
{
	uint32_t index = (uint32_t)wc->wr_id;
	struct ipoib_rc_link *l = link_of(r, wc->qp_num);
	struct ipoib_from from;

	if (l && wc->status != IBV_WC_SUCCESS)
		l->flow.is_broken = true;
	else if (l && l->id && stream_from(m, l->id, &from, now_ms))
		ipoib_packet(m, &from, place_of(r, index) + AT_PACKET,
			     wc->byte_len, now_ms);
	post_receive(r, index);
}

int ipoib_rc_receive(struct ipoib_rc *r, struct ipoib *m, int most,
		     uint64_t now_ms)
{
	struct ibv_wc wc[BATCH];
	uint32_t before;
	int all = 0, n;

	do {
		before = r->ended;
		n = ibv_poll_cq(r->receive_cq, BATCH, wc);
		r->taken += n > 0 ? (uint32_t)n : 0;
		for (int i = 0; i < n; i++)
			receive_one(r, m, &wc[i], now_ms);
		all += n > 0 ? n : 0;
	} while (n == BATCH && all < most);
	if (n < BATCH)
		r->drained = before;
	if (r->has_closed)
		destroy_closed(r, r->drained);
	return all;
}
