/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes received datagrams (engine_rx of engine.h) and packets by LID
 * (engine_rx_link): finds the queue pair of each packet, and checks whether the
 * packet may reach this queue pair. */
#include "encap/iblink.h"
#include "engine/inside.h"
#include "engine/lid.h"
#include "ibt/mcast.h"
#include "ibt/migration.h"
#include "ibt/rx_pending.h"
#include "util/bits.h"

#define PATH_BITS 0x7f /* the bits of a LID that an LMC of 7 lets differ */

/*
 * Do the requests of q's peer go direct?  For a QP of RC whose packets go by
 * UDP: once the first request of its peer has gone direct, all do until the
 * connection ends.  The peer executes them under the responder lock, which this
 * process does not take for packets of such a QP, so direct requests and
 * packets must not mix.  Requests of UC, and of RC by LID, go direct until the
 * peer changes to packets for good (follow_to_packets).
 */
static bool peer_goes_direct(const struct ibt_qp *q)
{
	return qp_target(q->qp)->is_heard && !q->resp.has_left;
}

/* Collects the completions and messages of the direct requests that the peer of
 * q has executed.  False: another process holds the responder lock. */
static bool collect_rest(struct ibt *t, struct ibt_qp *q)
{
	if (!ibt_responder_enter(t, q))
		return false;
	ibt_responder_leave(q);
	return true;
}

/*
 * Looks whether the peer of q, a QP of UC or of RC by LID, has changed from
 * direct requests to packets.  If so, a QP of RC first collects the messages
 * that the peer has left in the slots of receives, since packets may read or
 * write the same memory.  The next PSN that the QP then expects is the one that
 * the peer has named.  If another process holds the responder lock, a QP of RC
 * changes nothing: its present packet is dropped, and the peer sends that
 * packet again.
 *
 * The acquire pairs with the release store of packets_from
 * (target_announce_packets): a process that has loaded packets_from also sees
 * the peer's earlier stores under the responder lock, for example those by
 * which the peer has completed receives.  Without this order a packet could be
 * handled with older values.
 */
static void follow_to_packets(struct ibt *t, struct ibt_qp *q)
{
	const struct qp_target *target = qp_target(q->qp);
	bool is_rc = q->qp->type == HCA_QPT_RC;
	uint64_t from;

	if (!target->is_heard || q->resp.has_left ||
	    (is_rc ? !q->qp->is_by_lid : q->qp->type != HCA_QPT_UC))
		return;
	from = __atomic_load_n(&target->packets_from, __ATOMIC_ACQUIRE);
	if (from >> 32 != q->qp->connection || !(from & TARGET_LEFT))
		return;
	if (is_rc && !collect_rest(t, q))
		return;
	q->resp.has_left = true;
	if (is_rc)
		q->resp.epsn = serial24((uint32_t)from);
}

/* Do the requests of the peer (if p is a request), or those of q (if p is an
 * answer), go direct?  If so, they have no packets, and p is not from q's
 * peer. */
static bool is_direct(const struct ibt_qp *q, const struct pkt *p)
{
	return p->info->request ? peer_goes_direct(q)
				: q->direct.path == IBT_PATH_DIRECT;
}

/* IBTA 9.6.1.1: the packet must come from the connected peer.  For a packet by
 * LID, d->from.ip and d->to.ip are the LIDs as addresses (inaddr_map_lid;
 * 9.6.1.2.1), and the GIDs are compared, too (9.6.1.2.2). */
static bool is_from_peer(const struct ibt_qp *q, const struct engine_dgram *d,
			 const struct pkt *p)
{
	return (!d->link || lid_has_gids(&q->qp->attr.ah, d->link)) &&
	       q->qp->state >= HCA_QP_RTR && !is_direct(q, p) &&
	       inaddr_has_same_ip(d->from.ip, q->peer.ip) &&
	       inaddr_has_same_ip(d->to.ip, q->self.ip);
}

/* Does p have a PSN or Q_Key that only a peer of q knows?  True for UC, which
 * accepts any PSN. */
static bool fits_window(const struct ibt_qp *q, const struct pkt *p)
{
	if (q->qp->type == HCA_QPT_UD)
		return p->deth.qkey == q->qp->attr.qkey;
	if (q->qp->type == HCA_QPT_UC)
		return true;
	return p->info->request ? rc_resp_fits(q, p) : rc_comp_fits(q, p);
}

/* ---- path migration (ibt/migration.h) ---- */

/* Does p ask q to migrate, and did p come by q's alternate path?  While q is in
 * REARM, the peer may still be in MIGRATED.  A peer in MIGRATED sends MigReq 1
 * by the present path, and asks for nothing.  So in REARM a packet that fits
 * both paths is not taken for a request to migrate. */
static bool asks_to_migrate(const struct ibt *t, const struct ibt_qp *q,
			    const struct engine_dgram *d, const struct pkt *p)
{
	const struct hca_qp_attr *a = &q->qp->attr;

	return a->path_mig_state != HCA_MIG_MIGRATED && p->bth.migreq &&
	       d->link && q->qp->state != HCA_QP_ERR &&
	       lid_is_alternate(t, q, d) &&
	       bth_is_same_partition(p->bth.pkey,
				     ibt_port_pkey(t, q, a->alt_port_num,
						   a->alt_pkey_index)) &&
	       (a->path_mig_state == HCA_MIG_ARMED || d->port != a->port_num ||
		!is_from_peer(q, d, p));
}

/* Makes q send an ACK, by q's new path, if p is a request that the peer repeats
 * on the old path.  The peer may still be in REARM, if q's ACKs were lost.
 * Then the ACK makes the peer migrate, since the ACK comes by the new path. */
static void answer_old_path(struct ibt *t, struct ibt_qp *q,
			    const struct pkt *p)
{
	if (q->qp->attr.path_mig_state != HCA_MIG_MIGRATED ||
	    q->qp->type != HCA_QPT_RC || q->qp->state == HCA_QP_ERR ||
	    !p->info->request || p->bth.migreq || !fits_window(q, p))
		return;
	q->resp.ack_owed = true;
	ibt_qp_activate(t, q);
}

/* Has p, which did not come by q's path, come by another path from q's peer?
 * Packets of the old path may come after a migration: answer_old_path answers
 * them.  In ARMED, a request for a migration may come by a path that is not q's
 * alternate path: the migration is refused. */
static bool is_astray(struct ibt *t, struct ibt_qp *q,
		      const struct engine_dgram *d, const struct pkt *p)
{
	const struct hca_qp_attr *a = &q->qp->attr;

	if (!d->link)
		return false;
	if (a->path_mig_state != HCA_MIG_ARMED) {
		if (!lid_is_alternate(t, q, d))
			return false;
		answer_old_path(t, q, p);
		return true;
	}
	if (!p->bth.migreq || !fits_window(q, p) ||
	    (d->link->lrh.slid != a->ah.dlid &&
	     d->link->lrh.slid != a->alt_ah.dlid))
		return false;
	migration_refuse(t, q);
	return true;
}

/* Changes q's state of path migration as MigReq of p demands.  False: p must be
 * dropped. */
static bool follow_peer(struct ibt *t, struct ibt_qp *q,
			const struct engine_dgram *d, const struct pkt *p)
{
	bool asks = asks_to_migrate(t, q, d, p);

	if (!p->bth.migreq) {
		if (fits_window(q, p))
			migration_heard(q);
		return true;
	}
	if (!asks && q->qp->attr.path_mig_state == HCA_MIG_REARM)
		return true; /* the peer is not armed yet */
	if (!fits_window(q, p)) {
		q->counters->rx_wrong_psn++;
		t->sign = ENGINE_SIGN_PSN;
		return false;
	}
	if (asks)
		migration_go(t, q);
	else
		migration_refuse(t, q);
	return asks;
}

/* ---- packets that fit no connection ---- */

/* Counts a sign against the source address of d (suspect.h). */
static void note_sign(struct engine *e, const struct engine_dgram *d,
		      uint32_t user, enum engine_sign sign)
{
	const struct suspect_from from = {d->from.ip, d->local, user};

	engine_suspects_note(&e->suspects, &from, sign, e->ibt.now_ns);
}

/* Must a packet of d that is a sign of forgery be dropped, because too many
 * such packets came from its source address (suspect.h)?  Counts the packet if
 * so. */
static bool drops_sign(struct engine *e, const struct engine_dgram *d,
		       enum engine_sign sign)
{
	const struct suspect_from from = {d->from.ip, d->local, ENGINE_NO_USER};

	if (!engine_suspects_drops(&e->suspects, &from, sign, e->ibt.now_ns))
		return false;
	e->ibt.counters[d->device].refused.limited++;
	return true;
}

/* Handles a packet for a QPN that does not exist: writes the QPN into the page,
 * which the broker reads when the packet's sender asks about the QPN
 * (closed.h).  Counts a sign if the QPN never existed.  If the QPN never
 * existed and the packet's address is limited (drops_sign), only counts the
 * packet. */
static void refuse_unknown_qpn(struct engine *e, const struct engine_dgram *d,
			       uint32_t qpn)
{
	bool had = engine_suspects_had_qpn(&e->suspects, qpn);

	if (!had && drops_sign(e, d, ENGINE_SIGN_QPN))
		return;
	if (e->inbox.page)
		closed_note(&e->inbox.page->closed, qpn);
	if (!had)
		note_sign(e, d, ENGINE_NO_USER, ENGINE_SIGN_QPN);
}

/* Handles a packet that must not reach q (may_come): for example, a packet that
 * is not from q's peer, or that belongs to requests which go direct
 * (is_direct). */
static void refuse_wrong_peer(struct engine *e, const struct engine_dgram *d,
			      struct ibt_qp *q, const struct pkt *p)
{
	e->ibt.counters[d->device].refused.wrong_peer++;
	/* The packet is no sign if q has no peer yet or is of UD. */
	if (q->qp->state < HCA_QP_RTR || q->qp->type == HCA_QPT_UD)
		return;
	if (is_astray(&e->ibt, q, d, p))
		return;
	if (!drops_sign(e, d, ENGINE_SIGN_PEER))
		note_sign(e, d, ENGINE_NO_USER, ENGINE_SIGN_PEER);
}

/* Must p be dropped before its ICRC is checked, because its PSN or Q_Key does
 * not fit q and its address is limited?  If so, counts the wrong Q_Key or PSN,
 * as the handling of p would. */
static bool is_guess(struct engine *e, const struct engine_dgram *d,
		     const struct ibt_qp *q, const struct pkt *p)
{
	struct engine_counters *c = &e->ibt.counters[d->device];
	bool is_datagram = q->qp->type == HCA_QPT_UD;

	if (fits_window(q, p) ||
	    !drops_sign(e, d, is_datagram ? ENGINE_SIGN_KEY : ENGINE_SIGN_PSN))
		return false;
	if (is_datagram) {
		c->qkey_violations++;
		e->ibt.sign = ENGINE_SIGN_KEY; /* for has_wrong_qkey */
	} else {
		c->rx_wrong_psn++;
	}
	return true;
}

/* Returns the destination of d as a GID: the DGID if d came by LID and has a
 * GRH, else the address d->to. */
static const uint8_t *destination_of(const struct engine_dgram *d)
{
	return d->link && d->link->lrh.lnh == LRH_NEXT_GLOBAL
		       ? d->link->grh.dgid
		       : d->to.ip;
}

/* May d, with the packet p, come to q?  A QP by LID belongs to one port, and
 * the ports of a host may be in different subnets, which may use the same LIDs.
 * Only packets for the multicast QPN may have a group address (IBTA 10.5.1). */
static bool may_come(const struct ibt_qp *q, const struct engine_dgram *d,
		     const struct pkt *p)
{
	if (d->link && d->port != q->qp->attr.port_num)
		return false;
	return q->qp->type == HCA_QPT_UD
		       ? !inaddr_is_multicast(destination_of(d))
		       : is_from_peer(q, d, p);
}

/*
 * Returns the QP that p may reach.  NULL with *all: p is for the multicast QPN,
 * and may reach all members of its group.  NULL without *all: p may reach no
 * QP, and was counted (refused or pkey_violations), unless p is a congestion
 * notification for an existing QP.
 */
static struct ibt_qp *find_target(struct engine *e,
				  const struct engine_dgram *d,
				  const struct pkt *p, bool *all)
{
	struct engine_counters *c = &e->ibt.counters[d->device];
	struct ibt_qp *q = NULL;

	*all = p->bth.dest_qpn == MCAST_QPN;
	if (!*all)
		q = engine_find(e, p->bth.dest_qpn);
	if (q && prefetch_is_due(&e->rx_turn, q)) {
		prefetch(q, sizeof(*q));
		prefetch(q->qp, sizeof(*q->qp));
	}
	/* IBTA A17.9: a congestion notification is ignored, not refused */
	if (q && p->info->service == OPCODE_SERVICE_CNP)
		return NULL;
	if (*all ? p->info->service != OPCODE_SERVICE_UD ||
			    !mcast_has(&e->ibt, destination_of(d))
		 : !q || !q->qp->is_by_lid != !d->link ||
			    !ibt_qp_serves(q, p->info->service)) {
		c->refused.unknown_qp++;
		if (!d->link && e->class_of &&
		    e->class_of(p->bth.dest_qpn) != e->class)
			c->refused.misdirected++;
		else if (!*all && !q)
			refuse_unknown_qpn(e, d, p->bth.dest_qpn);
		*all = false;
		return NULL;
	}
	if (q)
		follow_to_packets(&e->ibt, q);
	if (q && asks_to_migrate(&e->ibt, q, d, p))
		return q;
	/* mcast_rx compares the P_Key of a multicast packet by LID, since the
	 * members of the group may have different P_Keys. */
	if (!(*all && d->link) &&
	    !bth_is_same_partition(p->bth.pkey, q ? ibt_pkey(&e->ibt, q)
						  : BTH_DEFAULT_PKEY)) {
		c->pkey_violations++;
		*all = false;
		return NULL;
	}
	if (q && !may_come(q, d, p)) {
		refuse_wrong_peer(e, d, q, p);
		return NULL;
	}
	if (q && q->qp->state == HCA_QP_ERR && e->inbox.page)
		closed_note(&e->inbox.page->closed, q->qp->qpn);
	return q;
}

uint16_t engine_dgram_id(const struct engine_dgram *d, const uint8_t *bytes,
			 size_t len, uint16_t guess)
{
	rocev2_open(NULL, &d->from, &d->to, bytes, len, &guess);
	return guess;
}

/* Finds out which process of this host has sent the datagram, from its first
 * packet that is for a QP and is intact or parked.  Called for each such
 * packet. */
static void note_sender(struct engine *e, const struct engine_dgram *d,
			const struct ibt_qp *q, const struct pkt *p)
{
	if (!d->local || !e->class_of || e->rx_is_known)
		return;
	e->rx_is_known = true;
	e->rx_class =
		e->class_of(q->qp->type == HCA_QPT_UD ? p->deth.src_qpn
						      : q->qp->attr.dest_qpn);
}

/* A packet of a datagram. */
struct part {
	const struct engine_dgram *d;
	const uint8_t *bytes; /* from the BTH to the ICRC */
	size_t len;
	uint16_t id; /* the expected IPv4 identification */
	uint64_t now_ns;
};

/* Does the work of is_from_wrong_port if q->source does not decide it.  If
 * engine_sources_look says that the packet's source port is one of q's peer,
 * notes the port in q and returns false.  Otherwise, or if that is not known
 * yet, counts the packet as refused, or parks it, and returns true. */
static bool look_up_port(struct engine *e, struct ibt_qp *q,
			 const struct part *a, const struct pkt *p)
{
	struct engine_counters *c = &e->ibt.counters[a->d->device];
	uint32_t qpn = q->qp->attr.dest_qpn;
	const struct source_found f =
		engine_sources_look(&e->sources, a->d, qpn, a->now_ns);

	switch (f.word) {
	case SOURCE_IS_PEERS:
		q->source.port = a->d->from.port;
		q->source.until_ns = f.until_ns;
		return false;
	case SOURCE_IS_OTHERS:
		c->refused.wrong_source++;
		note_sign(e, a->d, f.user, ENGINE_SIGN_SOURCE);
		return true;
	case SOURCE_IS_OPEN:
		if (engine_sources_park(&e->sources, a->d, qpn, a->bytes,
					a->len, a->id, a->now_ns)) {
			note_sender(e, a->d, q, p);
			return true;
		}
		break;
	case SOURCE_IS_LIMITED:
		break;
	}
	c->refused.limited++;
	return true;
}

/* Must the packet not be handled now, because of its source port?  True if the
 * packet is for a connection and from this host, and its source port is not
 * known to be a port of q's peer.  The port that was last found to be the
 * peer's needs no look-up until source.until_ns. */
static bool is_from_wrong_port(struct engine *e, struct ibt_qp *q,
			       const struct part *a, const struct pkt *p)
{
	if (!a->d->local || q->qp->type == HCA_QPT_UD ||
	    (q->source.port == a->d->from.port &&
	     a->now_ns < q->source.until_ns))
		return false;
	return look_up_port(e, q, a, p);
}

static void count_packet(struct engine_counters *c, const struct part *a)
{
	c->rx_packets++;
	c->rx_ecn += (a->d->tos & 3) == 3; /* RFC 3168 */
	c->rx_bytes += a->len < 4 ? 0 : a->len - 4;
}

/* Adds to *from the headers of a datagram that came by LID. */
static void add_link(const struct engine *e, struct ud_from *from,
		     const struct engine_dgram *d)
{
	const struct iblink *link = d->link;

	from->is_local = lid_is_own(&e->ibt, d->device, link->lrh.slid);

	from->lid = (struct ud_lid){
		.is_used = true,
		.has_grh = link->lrh.lnh == LRH_NEXT_GLOBAL,
		.sl = link->lrh.sl,
		.path_bits = link->lrh.dlid & PATH_BITS,
		.port = (uint8_t)d->port,
		.slid = link->lrh.slid,
	};
	if (!from->lid.has_grh)
		return;
	from->lid.hop_limit = link->grh.hop_limit;
	from->lid.flow_label = link->grh.flow_label;
	from->tos = link->grh.traffic_class;
	memcpy(from->from.ip, link->grh.sgid, 16);
	memcpy(from->to.ip, link->grh.dgid, 16);
}

static struct ud_from ud_from_of(const struct engine *e, const struct part *a)
{
	const struct engine_dgram *d = a->d;
	struct ud_from from = {.from = d->from,
			       .to = d->to,
			       .device = d->device,
			       .tos = d->tos,
			       .bytes = a->len,
			       .is_local = d->local};

	if (d->link)
		add_link(e, &from, d);
	return from;
}

/* Handles an intact packet that may reach q. */
static void handle_packet(struct engine *e, struct ibt_qp *q,
			  const struct part *a, const struct pkt *p)
{
	size_t len = a->len - 4;

	e->ibt.sign = ENGINE_SIGN_NONE;
	if (q->qp->attr.path_mig_state != HCA_MIG_MIGRATED &&
	    !follow_peer(&e->ibt, q, a->d, p))
		return;
	q->qp->stats.rx_packets++;
	q->qp->stats.rx_bytes += len;
	if (q->qp->type != HCA_QPT_RC) {
		const struct ud_from from = ud_from_of(e, a);

		rx_pending_rx(&e->ibt, q, p, &from, a->bytes, len);
	} else if (p->info->request) {
		rc_resp_rx(&e->ibt, q, p, a->bytes, len);
	} else {
		rc_comp_rx(&e->ibt, q, p, a->bytes, len, a->now_ns);
	}
	shm_ack_note(&e->shm_ack, q);
	ibt_qp_note(q);
}

static void receive_packet(struct engine *e, const struct part *a)
{
	const struct engine_dgram *d = a->d;
	const uint8_t *bytes = a->bytes;
	size_t len = a->len;
	struct engine_counters *c = &e->ibt.counters[d->device];
	struct ibt_qp *q;
	struct pkt p;
	bool all;

	if (len < BTH_BYTES + 4 || !pkt_parse(bytes, len - 4, &p)) {
		c->refused.malformed++;
		return;
	}
	q = find_target(e, d, &p, &all);
	if ((!q && !all) || (q && is_from_wrong_port(e, q, a, &p)))
		return;
	if (q && engine_suspects_is_any(&e->suspects, a->now_ns) &&
	    is_guess(e, d, q, &p))
		return;
	if (!d->link && !rocev2_is_intact(&e->senders, &d->from, &d->to, bytes,
					  len, a->id, a->now_ns)) {
		c->refused.bad_icrc++;
		return;
	}
	if (all) {
		const struct ud_from from = ud_from_of(e, a);

		mcast_rx(&e->ibt, &p, &from, bytes, len - 4);
		return;
	}
	note_sender(e, d, q, &p);
	handle_packet(e, q, a, &p);
	if (e->ibt.sign)
		note_sign(e, d, ENGINE_NO_USER, e->ibt.sign);
}

void engine_rx(struct engine *e, const struct engine_dgram *d, uint64_t now_ns)
{
	struct part a = {.d = d, .now_ns = now_ns};
	size_t step = d->segment ? d->segment : d->len;

	e->ibt.now_ns = now_ns;
	e->rx_is_known = false;
	prefetch_passed(&e->rx_turn, d->len);
	if (d->is_stray) {
		e->ibt.counters[d->device].refused.wrong_peer++;
		/* The sender of a stray datagram, too, waits to learn that the
		 * buffer is empty. */
		if (d->local)
			credit_passed(&e->inbox);
		return;
	}
	for (size_t off = 0; off < d->len; off += step, a.id++) {
		a.bytes = d->bytes + off;
		a.len = (size_t)bits_min_u64(step, d->len - off);
		count_packet(&e->ibt.counters[d->device], &a);
		receive_packet(e, &a);
	}
	if (e->rx_is_known)
		credit_drained(&e->inbox, e->rx_class, d->len, step, now_ns);
	else if (d->local)
		credit_passed(&e->inbox);
}

/* Has a queue pair of UD found a wrong Q_Key in the packet?  Other queue pairs
 * give the same sign for a wrong rkey. */
static bool has_wrong_qkey(const struct engine *e, const uint8_t *bth)
{
	return e->ibt.sign == ENGINE_SIGN_KEY &&
	       bth[0] >> 5 == OPCODE_SERVICE_UD;
}

bool engine_rx_link(struct engine *e, const struct engine_packet *packet,
		    uint64_t now_ns)
{
	struct engine_counters *c = &e->ibt.counters[packet->device];
	struct iblink link;
	struct iblink_inner inner;
	struct engine_dgram d = {
		.device = packet->device, .link = &link, .port = packet->port};
	struct part a = {.d = &d, .now_ns = now_ns};

	e->ibt.now_ns = now_ns;
	e->rx_is_known = false;
	prefetch_passed(&e->rx_turn, packet->len);
	if (!iblink_open(packet->bytes, packet->len, &link, &inner)) {
		c->rx_packets++;
		c->refused.bad_icrc++;
		return false;
	}
	inaddr_map_lid(d.from.ip, link.lrh.slid);
	inaddr_map_lid(d.to.ip, link.lrh.dlid);
	d.bytes = a.bytes = inner.bth;
	d.len = d.segment = a.len = inner.bytes + ICRC_BYTES;
	e->ibt.sign = ENGINE_SIGN_NONE;
	count_packet(c, &a);
	receive_packet(e, &a);
	return has_wrong_qkey(e, inner.bth);
}

void engine_rx_parked(struct engine *e, const struct engine_dgram *d,
		      uint16_t id, uint64_t now_ns)
{
	struct part a = {d, d->bytes, d->len, id, now_ns};

	e->ibt.now_ns = now_ns;
	receive_packet(e, &a);
}
