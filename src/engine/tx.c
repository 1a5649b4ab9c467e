/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames to send (engine_tx of engine.h): takes packets from the active queue
 * pairs, as far as their receivers have credit, and puts them into frames. */
#include <string.h>

#include "engine/inside.h"
#include "engine/lid.h"
#include "ibt/middle_packets.h"
#include "ibt/rc_turn.h"
#include "ibt/uc.h"
#include "ibt/ud.h"
#include "ibt/unreliable_tx.h"
#include "util/bits.h"

/* A QP's turn ends after this many packets, not counting those of fill_middles,
 * or after this many bytes. */
#define QUANTUM_PACKETS 128
#define QUANTUM_BYTES	65536

/* Charges the newest packet to the credit of its receiver.  If the packet is
 * the first of a frame, first notes the frame's credit and counters
 * (engine.account). */
static void charge_credit(struct engine *e, struct ibt_qp *q,
			  const struct burst_path *path)
{
	uint32_t i = e->burst.count - 1;
	struct engine_frame *f = &e->burst.frames[i];
	struct frame_account *a = &e->account[i];
	struct credit *c =
		path->local ? engine_credit_of(e, path->dest_qpn) : NULL;
	uint32_t cost;

	if (e->burst.segments == 1) { /* a new frame */
		*a = (struct frame_account){c, 0, q->counters};
		if (c)
			credit_made(c);
	}
	q->credit.qpn = c ? path->dest_qpn : 0;
	if (!c)
		return;
	cost = credit_cost(f->len, f->segment);
	c->sent += cost - a->charged;
	a->charged = cost;
}

/* Returns how many packets may go in one frame to this receiver. */
static uint32_t max_in_frame(const struct engine *e,
			     const struct burst_path *path)
{
	const struct credit *c =
		path->local ? engine_credit_of(e, path->dest_qpn) : NULL;

	if (!c || credit_is_joined(c))
		return path->together;
	return bits_min_u32(path->together, CREDIT_FEW);
}

/* Puts the packet of q that was written at burst_space into a frame, and counts
 * it for the queue pair.  @len: its bytes without ICRC. */
static void put_packet(struct engine *e, struct ibt_qp *q,
		       const struct burst_path *path, size_t len)
{
	burst_put(&e->burst, path, len, e->ibt.sum_bytes, e->ibt.sum_crc);
	charge_credit(e, q, path);
	q->qp->stats.tx_packets++;
	q->qp->stats.tx_bytes += len;
}

/* Returns whether the next packet of q, which has replies to send, shall be
 * that of a request. */
static bool is_request_next(struct engine *e, struct ibt_qp *q)
{
	if (rc_turn_is_open(q)) {
		if (shm_ack_precedes(&e->shm_ack, q)) {
			shm_ack_sends(&e->shm_ack, q);
			rc_reply_settle(&e->ibt, q);
		}
		rc_turn_mark(q);
	}
	return rc_turn_next(q);
}

/*
 * Writes the next packet of q, an RC QP, into buf.  Returns its size; 0: there
 * is no packet.  @follows: packets of q were made in this turn.
 *
 * If the peer's program sends a request, and this program answers by a request
 * of q, the peer's program relies on the order of hardware adapters: its own
 * request completes before the answer arrives.  So q's ACK is sent before q's
 * request, unless the peer reads the ACK in this process's page before it
 * handles the request.  Replies to requests that came after q's request was
 * posted need not go before it (rc_turn.h).
 */
static size_t fill_rc(struct engine *e, struct ibt_qp *q, uint8_t *buf,
		      bool follows, uint64_t now_ns)
{
	bool requests = q->direct.path == IBT_PATH_PACKETS;
	size_t len = 0;

	/* rc_req_has_next may execute the last marked requests; those after
	 * them wait for the next mark */
	if (requests && rc_reply_first(q) && rc_req_is_ready(q) &&
	    is_request_next(e, q) && rc_req_has_next(&e->ibt, q) &&
	    !rc_turn_is_open(q))
		len = rc_req_tx(&e->ibt, q, buf, now_ns);
	if (!len)
		len = rc_reply_tx(&e->ibt, q, buf);
	if (!len && requests && shm_ack_precedes(&e->shm_ack, q)) {
		/* rc_req_is_ready is called only once, because the program may
		 * post at any time: a request that is posted after this call
		 * must wait for the ACK. */
		requests = rc_req_is_ready(q);
		if (requests) {
			shm_ack_sends(&e->shm_ack, q);
			len = rc_reply_ack_tx(&e->ibt, q, buf);
		}
	}
	if (!len && requests)
		len = rc_req_tx(&e->ibt, q, buf, now_ns);
	if (!len && !shm_ack_keeps_ack(&e->shm_ack, q, follows))
		len = rc_reply_ack_tx(&e->ibt, q, buf);
	return len;
}

/* Writes the next datagram of q, a UD QP, into buf, and sets *path to its path.
 * Returns its size; 0: there is none. */
static size_t fill_ud(struct engine *e, struct ibt_qp *q, uint8_t *buf,
		      struct burst_path *path)
{
	struct wq_to to = {.link = 0};
	size_t len = ud_req_tx(&e->ibt, q, buf, &to);

	if (!len)
		return 0;
	*path = burst_path_to(q, &to);
	if (q->qp->is_by_lid)
		lid_add_port(&e->ibt, q, to.lid.path_bits, &path->lid);
	path->together = max_in_frame(e, path);
	return len;
}

/* Puts the next packet of q into a frame.  Returns its size; 0: there is no
 * packet, or no room.  @follows: packets of q were made in this turn.  *path:
 * the path of q; for a UD QP this function sets it from the request. */
static size_t fill_burst(struct engine *e, struct ibt_qp *q,
			 struct burst_path *path, bool follows, uint64_t now_ns)
{
	uint8_t *buf = burst_space(&e->burst);
	size_t len;

	if (!buf)
		return 0;
	e->ibt.sum_bytes = e->ibt.sum_crc = 0;
	if (q->qp->type == HCA_QPT_UD)
		len = fill_ud(e, q, buf, path);
	else if (q->qp->type == HCA_QPT_UC)
		len = uc_req_tx(&e->ibt, q, buf);
	else
		len = fill_rc(e, q, buf, follows, now_ns);
	if (len)
		put_packet(e, q, path, len);
	return len;
}

/* Puts the Middles that may follow the newest packet of q into frames, at most
 * `most` of them.  Returns the sum of their bytes. */
static size_t fill_middles(struct engine *e, struct ibt_qp *q,
			   const struct burst_path *path, uint32_t most)
{
	const struct credit *c =
		q->credit.qpn ? engine_credit_of(e, q->credit.qpn) : NULL;
	struct middle_packets m;
	size_t sum = 0, len;
	uint8_t *buf;

	if (q->qp->type != HCA_QPT_RC)
		return 0;
	if (c)
		most = bits_min_u32(most,
				    credit_more(c, e->class,
						q->mtu + PKT_MAX_HEADER_BYTES));
	if (!middle_packets_begin(&e->ibt, q, most, &m))
		return 0;
	while ((buf = burst_space(&e->burst)) &&
	       (len = middle_packets_tx(&e->ibt, q, &m, buf))) {
		put_packet(e, q, path, len);
		sum += len;
	}
	return sum;
}

/*
 * May q send its next packet?  It may if credit_waits and credit_has_room
 * permit the packet to the receiver, if the packet needs no credit, or if q has
 * a reply to send while no ACK packet may wait (shm_ack.is_forced).  For a UD
 * QP, the receiver is that of q's last datagram.  If q may not send, has_credit
 * puts q on the list of starved QPs.
 */
static bool has_credit(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	uint32_t qpn = q->qp->type == HCA_QPT_UD ? q->credit.qpn
		       : q->qp->attr.ah.local	 ? q->qp->attr.dest_qpn
						 : 0;
	struct credit *c = qpn ? engine_credit_of(e, qpn) : NULL;
	struct credit_want want = {q->mtu + PKT_MAX_HEADER_BYTES,
				   ibt_qp_patience_ns(&e->ibt, q)};
	bool ask = false, waits;

	q->credit.is_awaited = false;
	if (!c || (e->shm_ack.is_forced && rc_reply_is_due(q)))
		return true;
	waits = credit_waits(c, &want, now_ns, &ask);
	if (ask)
		e->wanted_qpn = qpn;
	if (!waits && credit_has_room(c, e->class, &want, now_ns))
		return true;
	e->starved_ns =
		bits_min_u64(e->starved_ns, now_ns + credit_look_ns(c, now_ns));
	list_remove(&q->active); /* q may be on the list of active QPs */
	list_push_tail(&e->starved, &q->active);
	q->credit.is_awaited = true;
	ibt_qp_note(q);
	return false;
}

/* Is it certain that q has nothing left to send?  Then q needs no further
 * turn. */
static bool has_nothing_left(const struct ibt_qp *q)
{
	return q->qp->type == HCA_QPT_RC && !rc_reply_is_due(q) &&
	       q->req.wqe == shared_load(&q->qp->sq.head);
}

/* Makes the packets of one turn of q.  True: q may have more to send. */
static bool serve_packets(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	struct burst_path path = burst_path_of(q);
	size_t bytes = 0, len;

	path.together = max_in_frame(e, &path);
	if (q->qp->is_by_lid)
		lid_add_port(&e->ibt, q, q->qp->attr.ah.src_path_bits,
			     &path.lid);
	shm_ack_want(&e->shm_ack, q);
	for (int n = 0; n < QUANTUM_PACKETS && bytes < QUANTUM_BYTES; n++) {
		if (!has_credit(e, q, now_ns))
			return false;
		len = fill_burst(e, q, &path, n > 0, now_ns);
		if (!len || has_nothing_left(q)) {
			ibt_qp_note(q);
			return !len && !burst_space(&e->burst);
		}
		bytes += len;
		if (bytes < QUANTUM_BYTES)
			bytes += fill_middles(e, q, &path,
					      QUANTUM_BYTES / q->mtu);
	}
	return true;
}

/* Executes direct requests of q, and makes the packets of one turn of q.  True:
 * q may have more of either. */
static bool serve_qp(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	bool sends = engine_serve_directly(e, q, now_ns);
	bool more = e->moved >= ENGINE_MOVED_MAX;

	if (!sends)
		ibt_qp_note(q);
	else
		more |= serve_packets(e, q, now_ns);
	return more;
}

size_t engine_tx(struct engine *e, struct engine_frame *frames, size_t max,
		 uint64_t now_ns)
{
	struct list *active = &e->ibt.active;
	struct burst *b = &e->burst;

	e->ibt.now_ns = now_ns;
	burst_recycle(b);
	e->moved = 0;
	while (!b->first && burst_space(b) && !list_is_empty(active) &&
	       e->moved < ENGINE_MOVED_MAX) {
		struct ibt_qp *q =
			CONTAINER_OF(active->next, struct ibt_qp, active);

		list_remove(&q->active);
		if (q->stream)
			list_push_tail(&e->streams, &q->active);
		else if (serve_qp(e, q, now_ns))
			ibt_qp_activate(&e->ibt, q);
	}
	/* Direct requests to QPs of this process may have set notify bits. */
	engine_serve_notify(e);
	if (b->first == b->count)
		unreliable_tx_sent(&e->ibt); /* requests without a frame */
	max = bits_min_u64(max, b->count - b->first);
	memcpy(frames, b->frames + b->first, max * sizeof(*frames));
	return max;
}

void engine_tx_refused(struct engine *e, size_t i)
{
	e->account[e->burst.first + i].counters = NULL;
}

static void count_frame(const struct engine_frame *f, struct engine_counters *c)
{
	size_t tail = f->head_bytes ? IBLINK_TAIL_BYTES : ICRC_BYTES;
	/* most frames have one packet, and a division takes long */
	uint64_t packets = f->len == f->segment
				   ? 1
				   : (f->len + f->segment - 1) / f->segment;

	c->tx_packets += packets;
	c->tx_bytes += f->len - packets * tail;
}

void engine_tx_done(struct engine *e, size_t sent)
{
	struct burst *b = &e->burst;

	for (; sent; sent--, b->first++) {
		const struct frame_account *a = &e->account[b->first];

		if (a->counters)
			count_frame(&b->frames[b->first], a->counters);
		if (a->credit)
			credit_sent(a->credit, e->ibt.now_ns);
	}
	if (b->first == b->count)
		unreliable_tx_sent(&e->ibt);
}
