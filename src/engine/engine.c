/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encap/rocev2.h"
#include "engine/burst.h"
#include "ibt/ibt.h"
#include "util/bits.h"
#include "util/check.h"
#include "util/map.h"

/* What a QP sends before the next has its turn. */
#define QUANTUM_PACKETS 128
#define QUANTUM_BYTES	65536

struct engine {
	struct ibt ibt;
	struct map qpns;    /* of struct ibt_qp, by QPN */
	struct burst burst; /* offered and not yet sent */
};

struct engine *engine_new(const struct engine_config *config, uint64_t now_ns)
{
	struct engine *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->ibt.hca = config->hca;
	e->ibt.window_max = bits_max_u32(config->window, IBT_WINDOW_START);
	e->ibt.strict = config->strict;
	e->ibt.patience_ns = config->patience_ns;
	if (ibt_init(&e->ibt, now_ns)) {
		free(e);
		return NULL;
	}
	return e;
}

void engine_free(struct engine *e)
{
	map_fini(&e->qpns);
	ibt_fini(&e->ibt);
	free(e);
}

const struct engine_counters *engine_counters(const struct engine *e)
{
	return e->ibt.counters;
}

static struct ibt_qp *find(const struct engine *e, uint32_t qpn)
{
	return map_find(&e->qpns, qpn);
}

bool engine_qpn_is_used(const struct engine *e, uint32_t qpn)
{
	return find(e, qpn) != NULL;
}

struct ibt_qp *engine_qp_add(struct engine *e, struct qp *qp)
{
	struct ibt_qp *q = malloc(sizeof *q);

	if (!q || ibt_qp_init(&e->ibt, q, qp))
		goto free_it;
	if (map_add(&e->qpns, qp->qpn, q))
		goto undo_init;
	return q;
undo_init:
	ibt_qp_fini(&e->ibt, q);
free_it:
	free(q);
	return NULL;
}

void engine_qp_remove(struct engine *e, struct ibt_qp *q)
{
	map_remove(&e->qpns, q->qp->qpn);
	for (uint32_t i = e->ibt.event_tail; i != e->ibt.event_head; i++) {
		struct engine_event *v = &e->ibt.events[i % IBT_EVENTS];

		/* what concerns the CQ stands; the QP's cookie is dying */
		if (v->qpn == q->qp->qpn && v->type != ENGINE_CQ_EVENT &&
		    v->type != ENGINE_CQ_ERR && v->type != ENGINE_SRQ_LIMIT)
			v->type = ENGINE_EXPLAIN, v->explain.cause = 0;
	}
	ibt_qp_fini(&e->ibt, q);
	free(q);
}

struct mpsc_node *engine_qp_kick(struct ibt_qp *q)
{
	return &q->kick;
}

struct ibt_qp *engine_qp_of_kick(struct mpsc_node *n)
{
	return CONTAINER_OF(n, struct ibt_qp, kick);
}

int engine_qp_modify(struct engine *e, struct ibt_qp *q,
		     const struct hca_qp_attr *attr, uint32_t mask,
		     const uint8_t from[16], uint64_t now_ns, const char **why)
{
	struct qp *qp = q->qp;
	int err = qp_modify_check(e->ibt.hca, qp, attr, mask, why);

	if (err)
		return err;
	if (mask & HCA_QP_MAX_DEST_RD_ATOMIC)
		err = ibt_qp_room(q, attr->max_dest_rd_atomic);
	if (err) {
		*why = "no memory for what the peer may ask for";
		return err;
	}
	e->ibt.now_ns = now_ns;
	qp_modify_store(qp, attr, mask);
	if (mask & HCA_QP_AV) {
		memcpy(q->self.ip, from, 16);
		memcpy(q->peer.ip, attr->ah.dgid, 16);
		q->self.port = q->peer.port = ROCEV2_PORT;
	}
	if ((mask & HCA_QP_STATE) && attr->qp_state != qp->state)
		ibt_qp_enter(&e->ibt, q, (enum hca_qp_state)attr->qp_state);
	else if ((mask & HCA_QP_STATE) && attr->qp_state == HCA_QP_RESET)
		ibt_qp_enter(&e->ibt, q, HCA_QP_RESET);
	return 0;
}

void engine_qp_query(const struct engine *e, const struct ibt_qp *q,
		     struct hca_qp_attr *attr)
{
	const struct rc_req *r = &q->req;

	*attr = q->qp->attr;
	attr->qp_state = attr->cur_qp_state = q->qp->state;
	if (q->qp->state >= HCA_QP_RTR)
		attr->rq_psn = q->resp.epsn.v;
	if (q->qp->state >= HCA_QP_RTS)
		attr->sq_psn = r->max.v;
	attr->sq_draining = r->draining && !serial24_is_equal(r->una, r->max);
}

static void packet(struct engine *e, const struct engine_dgram *d,
		   const uint8_t *bytes, size_t len, uint16_t id,
		   uint64_t now_ns)
{
	struct engine_counters *c = e->ibt.counters;
	struct ibt_qp *q;
	struct pkt p;

	c->rx_packets++;
	if (len < BTH_BYTES + 4 || !pkt_parse(bytes, len - 4, &p)) {
		c->rx_malformed++;
		return;
	}
	q = find(e, p.bth.dest_qpn);
	if (!q || p.info->service != OPCODE_SERVICE_RC) {
		c->rx_unknown_qp++;
		return;
	}
	/* IBTA 9.6.1.1: the packet must come from the connected peer */
	if (q->qp->state < HCA_QP_RTR ||
	    !inaddr_has_same_ip(d->from.ip, q->peer.ip) ||
	    !inaddr_has_same_ip(d->to.ip, q->self.ip)) {
		c->rx_wrong_peer++;
		return;
	}
	if (!rocev2_open(&d->from, &d->to, bytes, len, id, d->checksummed)) {
		c->rx_bad_icrc++;
		return;
	}
	q->qp->stats.rx_packets++;
	q->qp->stats.rx_bytes += len;
	if (p.info->request)
		rc_resp_rx(&e->ibt, q, &p, bytes, len - 4);
	else
		rc_comp_rx(&e->ibt, q, &p, now_ns);
	ibt_qp_note(q);
}

void engine_rx(struct engine *e, const struct engine_dgram *d, uint64_t now_ns)
{
	size_t step = d->segment ? d->segment : d->len;
	uint16_t id = 0;

	e->ibt.now_ns = now_ns;
	for (size_t off = 0; off < d->len; off += step, id++)
		packet(e, d, d->bytes + off,
		       (size_t)bits_min_u64(step, d->len - off), id, now_ns);
}

void engine_doorbell(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	e->ibt.now_ns = now_ns;
	if (q->qp->state == HCA_QP_ERR)
		ibt_qp_flush(&e->ibt, q);
	else
		ibt_qp_activate(&e->ibt, q);
}

void engine_tick(struct engine *e, uint64_t now_ns)
{
	struct wheel_timer *t;

	e->ibt.now_ns = now_ns;
	while ((t = wheel_expire(&e->ibt.wheel, now_ns))) {
		if (t->kind == IBT_TIMER_ACK)
			rc_comp_timeout(&e->ibt,
					CONTAINER_OF(t, struct ibt_qp, timer),
					now_ns);
		else
			rc_comp_rnr_over(
				&e->ibt,
				CONTAINER_OF(t, struct ibt_qp, rnr_timer),
				now_ns);
	}
}

void engine_peer_state(struct engine *e, uint32_t qpn, enum engine_peer state,
		       uint64_t now_ns)
{
	struct ibt_qp *q = find(e, qpn);

	e->ibt.now_ns = now_ns;
	if (q)
		rc_comp_peer(&e->ibt, q, (int)state, now_ns);
}

void engine_was_asleep(struct engine *e, uint64_t now_ns)
{
	struct ibt_qp *q;
	uint32_t at = 0;

	while ((q = map_next(&e->qpns, &at)))
		rc_comp_asleep(&e->ibt, q, now_ns);
}

/* The next packet of q; its size, 0 when there is none or no room. */
static size_t fill(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	uint8_t *buf = burst_space(&e->burst);
	const struct hca_ah *ah = &q->qp->attr.ah;
	struct burst_path path;
	size_t len;

	if (!buf)
		return 0;
	len = rc_reply_tx(&e->ibt, q, buf);
	if (!len)
		len = rc_req_tx(&e->ibt, q, buf, now_ns);
	if (!len)
		return 0;
	path = (struct burst_path){
		.from = q->self,
		.to = q->peer,
		.dest_qpn = q->qp->attr.dest_qpn,
		.tos = ah->traffic_class,
		.ttl = ah->hop_limit,
		.joins = ah->bursts,
	};
	burst_put(&e->burst, &path, len);
	e->ibt.counters->tx_packets++;
	q->qp->stats.tx_packets++;
	q->qp->stats.tx_bytes += len;
	return len;
}

/* A turn of q; true if it may have more to send. */
static bool serve(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	size_t bytes = 0, len;

	for (int n = 0; n < QUANTUM_PACKETS && bytes < QUANTUM_BYTES; n++) {
		len = fill(e, q, now_ns);
		if (!len) {
			ibt_qp_note(q);
			return !burst_space(&e->burst);
		}
		bytes += len;
	}
	return true;
}

size_t engine_tx(struct engine *e, struct engine_frame *frames, size_t max,
		 uint64_t now_ns)
{
	struct list *active = &e->ibt.active;
	struct burst *b = &e->burst;

	e->ibt.now_ns = now_ns;
	burst_recycle(b);
	while (!b->first && burst_space(b) && !list_is_empty(active)) {
		struct ibt_qp *q =
			CONTAINER_OF(active->next, struct ibt_qp, active);

		list_remove(&q->active);
		if (serve(e, q, now_ns))
			ibt_qp_activate(&e->ibt, q);
	}
	max = bits_min_u64(max, b->count - b->first);
	memcpy(frames, b->frames + b->first, max * sizeof *frames);
	return max;
}

void engine_tx_done(struct engine *e, size_t sent)
{
	e->burst.first += (uint32_t)sent;
}

size_t engine_events(struct engine *e, struct engine_event *events, size_t max)
{
	struct ibt *t = &e->ibt;
	size_t n = 0;

	for (; n < max && t->event_tail != t->event_head; n++)
		events[n] = t->events[t->event_tail++ % IBT_EVENTS];
	return n;
}

uint64_t engine_deadline(const struct engine *e)
{
	return wheel_deadline(&e->ibt.wheel);
}

bool engine_has_tx(const struct engine *e)
{
	return e->burst.first != e->burst.count ||
	       !list_is_empty(&e->ibt.active);
}

bool engine_is_idle(const struct engine *e)
{
	const struct list *pool = &e->ibt.pool;
	uint32_t count = 0;

	for (const struct list *n = pool->next; n != pool; n = n->next)
		count++;
	return count == IBT_POOL && list_is_empty(&e->ibt.active) &&
	       wheel_deadline(&e->ibt.wheel) == WHEEL_NEVER;
}
