/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets by which a peer or a stranger breaks the rules of IBTA do no harm,
 * and rare packets that the rules allow are handled as the rules say.  The
 * tests forge such packets (two_hcas_forge) or drop the packets that the sides
 * send.
 */
#include "test.h"

#include "engine/credit.h"
#include "hdr/pkt.h"
#include "ibt/ibt.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

#define SOON	 1000000 /* ns; before any timeout */
#define MTU_1024 3

/* Counts packets of some kinds that side `of` has sent, and keeps one value of
 * the last Atomic ACK and one of the last ACK. */
struct ear {
	int of;
	int requests, reads, writes, responses, naks, atomics;
	uint64_t orig;	/* the original value in the last Atomic ACK */
	uint32_t acked; /* the PSN of the last ACK */
	bool is_let_by; /* all frames of both sides arrive; else none does */
};

static int count_packets(void *context, int from, const struct engine_frame *f)
{
	struct ear *e = context;
	struct pkt p;

	for (size_t off = 0; from == e->of && off < f->len; off += f->segment) {
		size_t len = f->len - off;

		if (len > f->segment)
			len = f->segment;
		assert_true(pkt_parse(f->bytes + off, len - 4, &p));
		e->requests += p.info->request;
		e->reads += p.info->kind == OPCODE_KIND_READ_REQUEST;
		e->writes += p.info->kind == OPCODE_KIND_WRITE;
		e->responses += p.info->kind == OPCODE_KIND_READ_RESPONSE;
		e->naks += p.info->kind == OPCODE_KIND_ACK &&
			   aeth_kind(p.aeth.syndrome) == AETH_NAK;
		if (p.info->kind == OPCODE_KIND_ACK &&
		    aeth_kind(p.aeth.syndrome) == AETH_ACK)
			e->acked = p.bth.psn;
		if (p.info->kind != OPCODE_KIND_ATOMIC_ACK)
			continue;
		e->atomics++;
		e->orig = p.atomicacketh.orig;
	}
	return e->is_let_by;
}

static void run_briefly(struct two_hcas *d)
{
	two_hcas_run(d, d->now_ns + SOON);
}

/* IBTA 9.7.5.2: codes 5 and above are reserved. */
static void a_nak_of_a_reserved_code_ends_nothing(void **state)
{
	for (uint8_t code = 5; code < 32; code++) {
		struct two_hcas *d = two_hcas_new(MTU_1024, 16);
		struct ear ear = {.of = 0};
		struct pkt p = {.bth.opcode = OPCODE_RC_ACKNOWLEDGE};
		struct cqe c;

		d->fate = count_packets;
		d->context = &ear;
		two_hcas_fill(d, 0, 0, 100);
		two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 5000);
		two_hcas_post(d, 0);
		run_briefly(d);
		p.bth.psn = d->side[0].side->req.una.v;
		p.aeth.syndrome = aeth_syndrome(AETH_NAK, code);
		two_hcas_forge(d, 0, &p);
		assert_false(two_hcas_poll(d, 0, &c));
		assert_int_equal(d->side[0].qp->state, HCA_QP_RTS);
		ear.is_let_by = true;
		two_hcas_run(d, d->now_ns + LONG);
		assert_true(two_hcas_poll(d, 0, &c));
		assert_int_equal(c.status, HCA_SUCCESS);
		assert_memory_equal(d->side[0].memory.bytes,
				    d->side[1].memory.bytes + 5000, 100);
		two_hcas_free(d);
	}
}

/*
 * The region of a READ is deregistered while side 0 has more packets of a WRITE
 * to send.  A queue pair that has failed sends no more requests
 * (IBTA 10.3.1.7).
 */
static void nothing_follows_the_refusal_of_a_read(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[0];
	struct mr *mr = mr_new(&s->hca, s->qp->pd, TWO_HCAS_BASE, 4096,
			       TWO_HCAS_BASE, HCA_REMOTE_READ);
	struct ear ear = {.of = 0};
	struct pkt p = {.bth.opcode = OPCODE_RC_READ_REQUEST,
			.bth.psn = s->side->resp.epsn.v,
			.reth = {TWO_HCAS_BASE, mr->rkey, 64}};

	d->fate = count_packets;
	d->context = &ear;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 300 * 1024, 5000);
	two_hcas_post(d, 0);
	run_briefly(d);
	assert_true(ear.writes > 0);
	two_hcas_forge(d, 0, &p);
	mr_free(&s->hca, mr);
	p = (struct pkt){.bth.opcode = OPCODE_RC_ACKNOWLEDGE,
			 .bth.psn = serial24_add(s->side->req.max, -1).v,
			 .aeth.syndrome = AETH_CREDITS_INVALID};
	two_hcas_forge(d, 0, &p);
	ear.writes = 0;
	run_briefly(d);
	assert_int_equal(s->qp->state, HCA_QP_ERR);
	assert_int_equal(ear.naks, 1);
	assert_int_equal(ear.writes, 0);
	two_hcas_free(d);
}

/* The requester has completed the READ, and has told the program of side 0 to
 * deregister the region, while a repetition of the READ was on its way. */
static void a_late_repetition_of_a_read_fails_nothing(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[0];
	struct mr *mr = mr_new(&s->hca, s->qp->pd, TWO_HCAS_BASE, 4096,
			       TWO_HCAS_BASE, HCA_REMOTE_READ);
	struct ear ear = {.of = 0};
	struct pkt read = {.bth.opcode = OPCODE_RC_READ_REQUEST,
			   .bth.psn = s->side->resp.epsn.v,
			   .reth = {TWO_HCAS_BASE, mr->rkey, 64}};
	struct pkt send = {.bth.opcode = OPCODE_RC_SEND_ONLY,
			   .bth.ackreq = true,
			   .payload_len = 8};

	d->fate = count_packets;
	d->context = &ear;
	two_hcas_recv(d, 0, 5000, 64);
	two_hcas_forge(d, 0, &read);
	run_briefly(d);
	assert_int_equal(ear.responses, 1);
	two_hcas_forge(d, 0, &read);
	mr_free(&s->hca, mr);
	send.bth.psn = s->side->resp.epsn.v;
	two_hcas_forge(d, 0, &send);
	run_briefly(d);
	assert_int_equal(s->qp->state, HCA_QP_RTS);
	assert_int_equal(ear.responses, 1);
	assert_int_equal(ear.acked, send.bth.psn);
	/* a requester that waits for the response learns why none comes */
	assert_int_equal(ear.naks, 1);
	assert_int_equal(engine_counters(s->engine, 0)->naks.fatal_tx, 1);
	assert_int_equal(engine_counters(s->engine, 0)->naks.access_tx, 1);
	two_hcas_free(d);
}

/* The region goes away when some responses are sent, and one of these is lost:
 * the requester asks again from the lost response on. */
static void a_read_refused_in_its_middle_is_refused_from_before(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[0];
	struct mr *mr = mr_new(&s->hca, s->qp->pd, TWO_HCAS_BASE, 128 * 1024,
			       TWO_HCAS_BASE, HCA_REMOTE_READ);
	struct ear ear = {.of = 0};
	struct serial24 first = s->side->resp.epsn;
	struct pkt read = {.bth.opcode = OPCODE_RC_READ_REQUEST,
			   .bth.psn = first.v,
			   .reth = {TWO_HCAS_BASE, mr->rkey, 128 * 1024}};
	struct engine_frame f;

	d->fate = count_packets;
	d->context = &ear;
	two_hcas_forge(d, 0, &read);
	/* the first frame of responses leaves, and then the region goes away */
	assert_int_equal(engine_tx(s->engine, &f, 1, d->now_ns), 1);
	engine_tx_done(s->engine, 1);
	mr_free(&s->hca, mr);
	run_briefly(d);
	assert_int_equal(s->qp->state, HCA_QP_ERR);
	assert_int_equal(ear.naks, 1);
	assert_true(s->side->resp.tombstone);
	assert_true(serial24_diff(s->side->resp.tomb_psn, first) > 0);
	two_hcas_forge(d, 0, &read);
	run_briefly(d);
	assert_int_equal(ear.naks, 2);
	two_hcas_free(d);
}

/* A READ with the PSN of an earlier ATOMIC WRITE is no duplicate.  The queue
 * pair forbids READs, so this READ gets no READ response. */
static void a_forbidden_read_is_no_duplicate_of_something_else(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[1];
	struct ear ear = {.of = 1};
	uint32_t psn = s->side->resp.epsn.v;
	struct pkt p = {.bth.opcode = OPCODE_RC_ATOMIC_WRITE,
			.bth.psn = psn,
			.reth = {TWO_HCAS_BASE, s->mr->rkey, 8},
			.payload_len = 8};

	d->fate = count_packets;
	d->context = &ear;
	s->qp->attr.access_flags &= ~(uint32_t)HCA_REMOTE_READ;
	for (int answers = 1; answers <= 2; answers++) { /* 2: a duplicate */
		two_hcas_forge(d, 1, &p);
		run_briefly(d);
		assert_int_equal(ear.responses, answers);
	}
	p = (struct pkt){.bth.opcode = OPCODE_RC_READ_REQUEST,
			 .bth.psn = psn,
			 .reth = {TWO_HCAS_BASE + 512, s->mr->rkey, 1024}};
	two_hcas_forge(d, 1, &p);
	run_briefly(d);
	assert_int_equal(ear.responses, 2);
	two_hcas_free(d);
}

static uint64_t fetch_add(struct two_hcas *d, struct ear *e, uint32_t psn)
{
	struct two_hcas_side *s = &d->side[1];
	struct pkt p = {.bth.opcode = OPCODE_RC_FETCH_ADD,
			.bth.psn = psn,
			.atomiceth = {TWO_HCAS_BASE, s->mr->rkey, 1, 0}};
	int before = e->atomics;

	two_hcas_forge(d, 1, &p);
	run_briefly(d);
	assert_int_equal(e->atomics, before + 1);
	return e->orig;
}

/* A PSN returns after 2^24 packets, maybe before the responder has forgotten an
 * atomic of that PSN. */
static void a_duplicate_is_of_the_latest_request_of_its_psn(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[1];
	struct serial24 psn = s->side->resp.epsn;
	struct ear ear = {.of = 1};

	d->fate = count_packets;
	d->context = &ear;
	for (uint64_t k = 0; k < 40; k++) {
		assert_int_equal(fetch_add(d, &ear, psn.v), k);
		assert_int_equal(fetch_add(d, &ear, psn.v), k);
		/* as after 2^24 - 1 WRITEs */
		s->side->resp.epsn = psn;
	}
	two_hcas_free(d);
}

static void a_packet_of_another_service_closes_no_queue_pair(void **state)
{
	static struct credit_page page;
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[1];
	static const uint8_t opcodes[] = {OPCODE_UC_SEND_ONLY,
					  OPCODE_UD_SEND_ONLY, OPCODE_CNP};

	engine_inbox(s->engine, &page, s->qp->qpn & 1, 1 << 20, false);
	for (size_t k = 0; k < TEST_COUNT(opcodes); k++) {
		struct pkt p = {.bth.opcode = opcodes[k], .payload_len = 16};

		two_hcas_forge(d, 1, &p);
		assert_false(closed_has(&page.closed, s->qp->qpn));
	}
	two_hcas_free(d);
}

static void to_state(struct two_hcas *d, int i, enum hca_qp_state state)
{
	struct hca_qp_attr a = {.qp_state = state};
	struct two_hcas_side *s = &d->side[i];
	const char *why = "";

	assert_int_equal(engine_qp_modify(s->engine, s->side, &a, HCA_QP_STATE,
					  s->ip, d->now_ns, &why),
			 0);
}

/* A READ that is sent as three requests uses three of the four requests that
 * max_rd_atomic allows, whatever is retransmitted behind the READ (IBTA 9.4.4).
 */
static void a_queue_that_leaves_sqd_knows_how_many_reads_are_out(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[0];
	struct ear ear = {.of = 0};

	d->fate = count_packets;
	d->context = &ear;
	s->side->req.window = 64;
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 0, 48 * 1024, 0);
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 0);
	two_hcas_post(d, 0);
	run_briefly(d);
	assert_int_equal(ear.reads, 3);
	to_state(d, 0, HCA_QP_SQD);
	run_briefly(d);
	to_state(d, 0, HCA_QP_RTS);
	two_hcas_post_row(d, 3, HCA_WR_RDMA_READ, 64, 0);
	run_briefly(d);
	assert_int_equal(ear.reads, 4);
	ear.is_let_by = true;
	two_hcas_run(d, d->now_ns + LONG);
	for (int k = 0; k < 5; k++) {
		struct cqe c;

		assert_true(two_hcas_poll(d, 0, &c));
		assert_int_equal(c.status, HCA_SUCCESS);
	}
	two_hcas_free(d);
}

/* A packet with a wrong Q_Key uses no room that packets with the right one
 * need. */
static void a_wrong_qkey_takes_no_room(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct two_hcas_side *s = &d->side[1];
	struct pkt p = {.bth.opcode = OPCODE_UD_SEND_ONLY,
			.deth = {TWO_HCAS_QKEY, 5},
			.payload_len = 64};
	struct cqe c;

	two_hcas_forge(d, 1, &p);
	p.deth.qkey ^= 1;
	for (int k = 0; k < 300; k++)
		two_hcas_forge(d, 1, &p);
	assert_false(engine_is_choked(s->engine));
	p.deth.qkey ^= 1;
	two_hcas_forge(d, 1, &p);
	for (int k = 0; k < 2; k++)
		two_hcas_recv(d, 1, 0, 1000);
	run_briefly(d);
	for (int k = 0; k < 2; k++)
		assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(engine_counters(s->engine, 0)->qkey_violations, 300);
	two_hcas_free(d);
}

/* A message that is too long is refused even if the receive has room for it
 * (IBTA 9.7.4.1). */
static void a_send_is_at_most_two_gibibytes_long(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[1];
	struct wqe *w = wq_reserve(&s->hca, &s->qp->rq);
	struct pkt p = {.bth = {.opcode = OPCODE_RC_SEND_FIRST,
				.psn = s->side->resp.epsn.v},
			.payload_len = 1024};
	struct cqe c;

	memset(w, 0, sizeof(*w));
	s->mr->bytes = 1ull << 32;
	w->num_sge = 2;
	wqe_sges(w)[0] =
		(struct wq_sge){TWO_HCAS_BASE, HCA_MAX_MESSAGE, s->mr->lkey};
	wqe_sges(w)[1] = (struct wq_sge){TWO_HCAS_BASE, 4096, s->mr->lkey};
	wq_commit_recv(&s->hca, &s->qp->rq, w->wr_id);
	two_hcas_forge(d, 1, &p);
	assert_true(s->side->resp.in_message);
	s->side->resp.offset = HCA_MAX_MESSAGE; /* as after many Middles */
	p.bth.opcode = OPCODE_RC_SEND_LAST;
	p.bth.psn = s->side->resp.epsn.v;
	p.payload_len = 8;
	two_hcas_forge(d, 1, &p);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.status, HCA_LOC_LEN_ERR);
	run_briefly(d);
	two_hcas_free(d);
}

/* A queue pair holds packets for reordering in a pool that all queue pairs
 * share. */
static void a_failed_queue_pair_holds_no_packets(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[1];
	struct pkt p = {.bth.opcode = OPCODE_RC_WRITE_MIDDLE,
			.payload_len = 1024};

	for (int k = 1; k <= 20; k++) {
		p.bth.psn = serial24_add(s->side->resp.epsn, k).v;
		two_hcas_forge(d, 1, &p);
	}
	assert_int_equal(engine_counters(s->engine, 0)->rx_buffered, 20);
	to_state(d, 1, HCA_QP_ERR);
	run_briefly(d);
	assert_true(engine_is_idle(s->engine));
	two_hcas_free(d);
}

/* An adapter sends a CNP after a packet that met congestion (IBTA A17.9). */
static void a_congestion_notification_is_not_counted_as_refused(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct pkt p = {.bth = {.opcode = OPCODE_CNP, .becn = true},
			.payload_len = 16};
	static const struct engine_refused none;
	const struct engine_counters *c = engine_counters(d->side[1].engine, 0);
	uint64_t before = c->rx_packets;

	two_hcas_forge(d, 1, &p);
	assert_int_equal(c->rx_packets, before + 1);
	assert_memory_equal(&c->refused, &none, sizeof(none));
	two_hcas_free(d);
}

/* hw_counters/duplicate_request counts requests only. */
static void old_answers_are_no_duplicate_requests(void **state)
{
	static const uint8_t opcodes[] = {OPCODE_RC_ACKNOWLEDGE,
					  OPCODE_RC_ATOMIC_ACKNOWLEDGE,
					  OPCODE_RC_READ_RESPONSE_ONLY};
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[0];
	struct ear ear = {.of = 0};

	d->fate = count_packets;
	d->context = &ear;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 2048, 0);
	two_hcas_post(d, 0);
	run_briefly(d);
	for (size_t k = 0; k < TEST_COUNT(opcodes); k++) {
		struct pkt p = {.bth.opcode = opcodes[k],
				.aeth.syndrome = AETH_CREDITS_INVALID};

		p.bth.psn = serial24_add(s->side->req.una, -1).v;
		two_hcas_forge(d, 0, &p);
		p.bth.psn = s->side->req.una.v;
		if (k > 0) /* an ACK would acknowledge a packet of the WRITE */
			two_hcas_forge(d, 0, &p);
	}
	assert_int_equal(engine_counters(s->engine, 0)->rx_duplicates, 0);
	two_hcas_free(d);
}

/*
 * An RNR NAK asks the sender to go back, so the responder drops the early
 * packets: a sender that gets an ACK of more packets than it has retransmitted
 * may never complete its request (decisions/002).
 */
static void an_rnr_nak_says_where_the_sender_continues(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct serial24 psn = d->side[1].side->resp.epsn;
	struct ear ear = {.of = 1};
	struct pkt p = {.bth.opcode = OPCODE_RC_SEND_ONLY, .payload_len = 64};
	struct cqe c;

	d->fate = count_packets;
	d->context = &ear;
	for (int k = 2; k >= 0; k--) { /* there is no receive */
		p.bth.psn = serial24_add(psn, k).v;
		two_hcas_forge(d, 1, &p);
	}
	run_briefly(d);
	for (int k = 0; k < 3; k++)
		two_hcas_recv(d, 1, 0, 1000);
	p.bth.ackreq = true;
	for (int k = 0; k < 3; k++) {
		p.bth.psn = serial24_add(psn, k).v;
		two_hcas_forge(d, 1, &p);
		run_briefly(d);
		assert_int_equal(ear.acked, p.bth.psn);
		assert_true(two_hcas_poll(d, 1, &c));
		assert_false(two_hcas_poll(d, 1, &c));
	}
	two_hcas_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nak_of_a_reserved_code_ends_nothing),
		cmocka_unit_test(nothing_follows_the_refusal_of_a_read),
		cmocka_unit_test(a_late_repetition_of_a_read_fails_nothing),
		cmocka_unit_test(
			a_read_refused_in_its_middle_is_refused_from_before),
		cmocka_unit_test(
			a_forbidden_read_is_no_duplicate_of_something_else),
		cmocka_unit_test(
			a_duplicate_is_of_the_latest_request_of_its_psn),
		cmocka_unit_test(
			a_packet_of_another_service_closes_no_queue_pair),
		cmocka_unit_test(
			a_queue_that_leaves_sqd_knows_how_many_reads_are_out),
		cmocka_unit_test(a_wrong_qkey_takes_no_room),
		cmocka_unit_test(a_send_is_at_most_two_gibibytes_long),
		cmocka_unit_test(a_failed_queue_pair_holds_no_packets),
		cmocka_unit_test(
			a_congestion_notification_is_not_counted_as_refused),
		cmocka_unit_test(old_answers_are_no_duplicate_requests),
		cmocka_unit_test(an_rnr_nak_says_where_the_sender_continues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
