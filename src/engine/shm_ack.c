/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/shm_ack.h"

#include "util/bits.h"

#define PSN_BITS 24
/* A requester whose `taken` is fewer than STREAM_BEHIND PSNs before the
 * responder's expected PSN may wait for each ACK before it sends again, and may
 * sleep meanwhile. */
#define STREAM_BEHIND 4

static uint32_t index_of(uint32_t qpn)
{
	return qpn % CREDIT_POSTS;
}

/* Returns the word of struct credit_post that has this PSN.  The word's upper
 * 40 bits are a hash of the two QPNs and their order.  The highest bit is 1, so
 * a word is never 0. */
static uint64_t post_word(uint32_t responder, uint32_t requester,
			  struct serial24 psn)
{
	uint64_t both = (uint64_t)responder << PSN_BITS | requester;

	both = both * 0x9e3779b97f4a7c15ull | 1ull << 63;
	return both >> PSN_BITS << PSN_BITS | psn.v;
}

static bool has_slot(const struct shm_ack *b, const struct ibt_qp *q)
{
	return b->page && b->qps[index_of(q->qp->qpn)] == q;
}

static const struct credit_post *peer_post(const struct shm_ack *b,
					   const struct ibt_qp *q)
{
	uint32_t qpn = q->qp->attr.dest_qpn;
	const struct credit_page *page =
		b->credits[b->class_of(qpn) % CREDIT_CLASSES].page;

	return page ? &page->posts[index_of(qpn)] : NULL;
}

void shm_ack_init(struct shm_ack *b, struct ibt *t,
		  const struct credit *credits,
		  uint32_t (*class_of)(uint32_t qpn))
{
	b->ibt = t;
	b->credits = credits;
	b->class_of = class_of;
	list_init(&b->waiting);
}

void shm_ack_open(struct shm_ack *b, struct credit_page *page)
{
	b->page = b->credits ? page : NULL;
}

/* Clears the words with this index.  A reader ignores a word that is 0, because
 * no valid word is 0 (post_word).  So no other access depends on the order of
 * these stores. */
static void clear_words(struct shm_ack *b, uint32_t index)
{
	struct credit_post *p = &b->page->posts[index];

	atomic_store(&p->accepted, 0);
	atomic_store(&p->taken, 0);
}

void shm_ack_leave(struct shm_ack *b, struct ibt_qp *q)
{
	uint32_t index = index_of(q->qp->qpn);

	if (!has_slot(b, q))
		return;
	clear_words(b, index);
	b->qps[index] = NULL;
}

void shm_ack_added(struct shm_ack *b, const struct ibt_qp *q)
{
	uint32_t index = index_of(q->qp->qpn);

	if (b->page && !b->qps[index])
		clear_words(b, index);
}

void shm_ack_removed(struct shm_ack *b, const struct ibt_qp *q)
{
	if (has_slot(b, q))
		b->qps[index_of(q->qp->qpn)] = NULL;
}

/* Notes the peer's `accepted` for read_accepted, which ignores it.  q has sent
 * nothing in its present connection, so a word for q is of an earlier
 * connection of the same queue pairs: the word stays until the peer's queue
 * pair is reset. */
static void note_old_accepted(const struct shm_ack *b, struct ibt_qp *q)
{
	const struct credit_post *p = peer_post(b, q);

	q->acks.old_accepted =
		p ? atomic_load_explicit(&p->accepted, memory_order_relaxed)
		  : 0;
}

void shm_ack_modified(struct shm_ack *b, struct ibt_qp *q)
{
	if (q->qp->state < HCA_QP_RTR)
		shm_ack_leave(b, q);
	else if (q->qp->state == HCA_QP_RTR && b->page)
		note_old_accepted(b, q);
}

/* Does q need no words?  It needs none in ERR, or if it has neither
 * unacknowledged packets nor an ACK to send. */
static bool is_quiet(const struct ibt_qp *q)
{
	return q->qp->state == HCA_QP_ERR ||
	       (!q->resp.ack_owed && serial24_is_equal(q->req.una, q->req.max));
}

void shm_ack_want(struct shm_ack *b, struct ibt_qp *q)
{
	struct ibt_qp **slot = &b->qps[index_of(q->qp->qpn)];

	if (*slot == q || !b->page || q->qp->type != HCA_QPT_RC ||
	    !q->qp->attr.ah.local)
		return;
	if (*slot && !is_quiet(*slot))
		return;
	/* A removed queue pair may have left its words (shm_ack_removed). */
	clear_words(b, index_of(q->qp->qpn));
	*slot = q;
	q->acks.sent = q->acks.taken = q->resp.epsn;
	q->acks.reader_until_ns = q->acks.request_until_ns = 0;
}

/*
 * The release store of `accepted` orders this process's stores of payload
 * before the store of the word.  The requester's acquire load in read_accepted
 * orders its load of the word before the completion.  Without this order a
 * program that shares memory with the responder could complete a WRITE and then
 * read the old bytes.  The store of `taken` is a release, too, and its load in
 * read_taken an acquire, but no access depends on this order: the responder
 * uses only the value.
 */
void shm_ack_note(struct shm_ack *b, struct ibt_qp *q)
{
	uint32_t self = q->qp->qpn, peer = q->qp->attr.dest_qpn;
	struct credit_post *p;
	uint64_t accepted, taken;

	shm_ack_want(b, q);
	if (!has_slot(b, q))
		return;
	p = &b->page->posts[index_of(self)];
	accepted = post_word(self, peer, q->resp.epsn);
	taken = post_word(peer, self, q->req.una);
	if (q->resp.ack_owed &&
	    atomic_load_explicit(&p->accepted, memory_order_relaxed) !=
		    accepted)
		atomic_store_explicit(&p->accepted, accepted,
				      memory_order_release);
	/* A process that cannot read the peer's page takes no ACKs from that
	 * page, so `taken` is not written. */
	if (peer_post(b, q) &&
	    atomic_load_explicit(&p->taken, memory_order_relaxed) != taken)
		atomic_store_explicit(&p->taken, taken, memory_order_release);
}

/* Reads the peer's `taken` for q.  False: q has no words in this process's
 * page, or the peer's page has no word for q. */
static bool read_taken(const struct shm_ack *b, const struct ibt_qp *q,
		       struct serial24 *psn)
{
	const struct credit_post *p = has_slot(b, q) ? peer_post(b, q) : NULL;
	uint64_t w;

	if (!p)
		return false;
	w = atomic_load_explicit(&p->taken, memory_order_acquire);
	*psn = serial24((uint32_t)w & SERIAL24_MASK);
	return w == post_word(q->qp->qpn, q->qp->attr.dest_qpn, *psn);
}

/*
 * May q's ACK packet wait?  It may while the last ACK packet is in flight
 * (ahead < 0), and while the peer reads the page.  The peer does so if its
 * `taken` is beyond the PSN of the last ACK packet (ahead > 0).
 */
static bool may_wait_for_reader(const struct shm_ack *b, struct ibt_qp *q,
				struct serial24 taken)
{
	int32_t ahead = serial24_diff(taken, q->acks.sent);

	if (b->is_forced || !ahead ||
	    serial24_diff(q->resp.epsn, taken) < STREAM_BEHIND)
		return false;
	if (ahead > 0 && !serial24_is_equal(q->acks.taken, taken)) {
		q->acks.taken = taken;
		q->acks.reader_until_ns = b->ibt->now_ns + SHM_ACK_WAIT_NS;
	}
	return b->ibt->now_ns < q->acks.reader_until_ns;
}

/*
 * May q's ACK packet wait because q has sent a request, at whose arrival the
 * peer reads the page?  The wait ends when `taken` has reached the PSN that
 * `accepted` had when q sent the request.
 */
static bool may_wait_for_request(const struct shm_ack *b, struct ibt_qp *q,
				 struct serial24 taken, bool follows)
{
	if (q->acks.request_until_ns &&
	    !serial24_is_before(taken, q->acks.request_epsn))
		q->acks.request_until_ns = 0;
	if (follows && !q->acks.request_until_ns) {
		q->acks.request_epsn = q->resp.epsn;
		q->acks.request_until_ns = b->ibt->now_ns + SHM_ACK_REQUEST_NS;
	}
	return !b->is_forced && b->ibt->now_ns < q->acks.request_until_ns;
}

bool shm_ack_precedes(const struct shm_ack *b, const struct ibt_qp *q)
{
	struct serial24 taken;

	return q->resp.ack_owed && !read_taken(b, q, &taken);
}

void shm_ack_sends(const struct shm_ack *b, struct ibt_qp *q)
{
	q->acks.request_until_ns = 0;
	q->acks.sent = q->resp.epsn;
	q->acks.reader_until_ns = b->ibt->now_ns + SHM_ACK_WAIT_NS;
}

bool shm_ack_keeps_ack(struct shm_ack *b, struct ibt_qp *q, bool follows)
{
	struct serial24 taken;

	if (!q->resp.ack_owed)
		return false;
	if (read_taken(b, q, &taken)) {
		if (serial24_is_equal(taken, q->resp.epsn)) {
			q->resp.ack_owed = false;
			q->acks.request_until_ns = 0;
			return true;
		}
		if (may_wait_for_request(b, q, taken, follows) ||
		    may_wait_for_reader(b, q, taken)) {
			list_remove(&q->owing);
			list_push_tail(&b->waiting, &q->owing);
			return true;
		}
	}
	if (!follows && ibt_qp_holds_ack(b->ibt, q))
		return true;
	shm_ack_sends(b, q);
	return false;
}

/* Returns until when q's ACK packet may wait. */
static uint64_t waits_until(const struct ibt_qp *q)
{
	return bits_max_u64(q->acks.reader_until_ns, q->acks.request_until_ns);
}

uint64_t shm_ack_deadline(const struct shm_ack *b)
{
	uint64_t at = UINT64_MAX;

	for (const struct list *n = b->waiting.next; n != &b->waiting;
	     n = n->next)
		at = bits_min_u64(
			at, waits_until(CONTAINER_OF(n, struct ibt_qp, owing)));
	return at;
}

void shm_ack_tick(struct shm_ack *b, uint64_t now_ns)
{
	for (struct list *n = b->waiting.next, *next; n != &b->waiting;
	     n = next) {
		struct ibt_qp *q = CONTAINER_OF(n, struct ibt_qp, owing);

		next = n->next;
		if (now_ns < waits_until(q) && !b->is_forced)
			continue;
		list_remove(n);
		ibt_qp_activate(b->ibt, q);
	}
}

void shm_ack_force(struct shm_ack *b, bool forced)
{
	b->is_forced = forced;
	shm_ack_tick(b, b->ibt->now_ns);
}

/* Reads the peer's `accepted` for q.  False: the peer's page has no valid word
 * for q, or q's requests before the word's PSN are complete already. */
static bool read_accepted(const struct shm_ack *b, const struct ibt_qp *q,
			  struct serial24 *psn)
{
	const struct rc_req *r = &q->req;
	const struct credit_post *p;
	struct serial24 read;
	uint64_t w;

	if (serial24_is_equal(r->una, r->max))
		return false;
	p = peer_post(b, q);
	if (!p)
		return false;
	w = atomic_load_explicit(&p->accepted, memory_order_acquire);
	*psn = serial24((uint32_t)w & SERIAL24_MASK);
	if (w == q->acks.old_accepted ||
	    w != post_word(q->qp->attr.dest_qpn, q->qp->qpn, *psn) ||
	    serial24_is_before(r->max, *psn))
		return false;
	/* A READ completes only when its response comes, and the requests after
	 * the READ complete after it.  The page may be ahead of a response that
	 * is still on its way, so a missing response is not requested again. */
	if (r->rd_wqes && rc_req_unanswered(b->ibt, q, &read) &&
	    serial24_is_before(read, *psn))
		*psn = read;
	return serial24_is_before(r->una, *psn);
}

bool shm_ack_has_news(const struct shm_ack *b)
{
	struct serial24 psn;

	for (uint32_t i = 0; i < CREDIT_POSTS; i++)
		if (b->qps[i] && read_accepted(b, b->qps[i], &psn))
			return true;
	return false;
}

void shm_ack_look(struct shm_ack *b, uint64_t now_ns)
{
	struct serial24 psn;

	b->ibt->now_ns = now_ns;
	for (uint32_t i = 0; i < CREDIT_POSTS; i++) {
		struct ibt_qp *q = b->qps[i];

		if (!q || !read_accepted(b, q, &psn))
			continue;
		rc_comp_accepted(b->ibt, q, psn);
		shm_ack_note(b, q);
		ibt_qp_note(q);
	}
}
