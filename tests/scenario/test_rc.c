/* SPDX-License-Identifier: BSD-2-Clause */
/* RC between two adapters: each request is executed once and in order, and both
 * sides get the right data, completions and answers. */
#include "test.h"

#include <string.h>

#include "encap/rocev2.h"
#include "engine/credit.h"
#include "hca/explain.h"
#include "hdr/pkt.h"
#include "ibt/ibt.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"
#include "util/rng.h"

static void assert_same(struct two_hcas *d, uint64_t at0, uint64_t at1,
			uint32_t bytes)
{
	assert_memory_equal(d->side[0].memory.bytes + at0,
			    d->side[1].memory.bytes + at1, bytes);
}

static void a_write_of_every_length_arrives(void **state)
{
	static const uint32_t lengths[] = {0,	 1,    255,   256,   257,
					   1024, 4096, 65537, 200000};
	struct two_hcas *d = two_hcas_new(1, 16);

	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		two_hcas_fill(d, 0, 0, lengths[k]);
		two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, lengths[k], 300000);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + LONG);
		outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
		assert_same(d, 0, 300000, lengths[k]);
	}
	two_hcas_free(d);
}

static void reads_that_need_several_requests_come_back_whole(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	two_hcas_fill(d, 1, 0, 100001);
	for (int k = 0; k < 6; k++) {
		two_hcas_send(d, 0, HCA_WR_RDMA_READ, 200000, 100001, 0);
		two_hcas_post(d, 0);
	}
	two_hcas_run(d, d->now_ns + LONG);
	for (int k = 0; k < 6; k++)
		outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	assert_same(d, 200000, 0, 100001);
	two_hcas_free(d);
}

static void a_send_waits_for_its_receive(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	struct cqe c;

	two_hcas_fill(d, 0, 0, 5000);
	two_hcas_send(d, 0, HCA_WR_SEND_IMM, 0, 5000, 0)->imm_be = 0x11223344;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 5000000);
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_recv(d, 1, 9000, 8000);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_SEND);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.opcode, HCA_WC_RECV);
	assert_int_equal(c.byte_len, 5000);
	assert_int_equal(c.imm_be, 0x11223344);
	assert_same(d, 0, 9000, 5000);
	two_hcas_free(d);
}

static void atomics_return_what_they_found(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	uint64_t found, left = 40;
	struct wqe *w;

	memcpy(d->side[1].memory.bytes + 64, &left, 8);
	w = two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 0, 8, 64);
	w->swap_add = 2;
	two_hcas_post(d, 0);
	w = two_hcas_send(d, 0, HCA_WR_ATOMIC_CAS, 8, 8, 64);
	w->compare = 42;
	w->swap_add = 7;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_FETCH_ADD);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_COMP_SWAP);
	memcpy(&found, d->side[0].memory.bytes, 8);
	assert_int_equal(found, 40);
	memcpy(&found, d->side[0].memory.bytes + 8, 8);
	assert_int_equal(found, 42);
	memcpy(&left, d->side[1].memory.bytes + 64, 8);
	assert_int_equal(left, 7);
	two_hcas_free(d);
}

/* Loses a fifth of the frames, and duplicates some others. */
static int lose_some(void *context, int from, const struct engine_frame *f)
{
	struct rng *r = context;

	if (rng_chance(r, 200000))
		return 0;
	return rng_chance(r, 50000) ? 2 : 1;
}

static void an_atomic_write_is_executed_once(void **state)
{
	struct rng r;

	rng_init(&r, 9);
	for (uint64_t k = 0; k < 50; k++) {
		struct two_hcas *d = two_hcas_new(3, 16);
		uint64_t value = 0x0102030405060708 * k, got;

		d->fate = lose_some;
		d->context = &r;
		memcpy(d->side[0].memory.bytes + 8, &value, 8);
		two_hcas_send(d, 0, HCA_WR_ATOMIC_WRITE, 8, 8, 64);
		two_hcas_post(d, 0);
		two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 16, 8, 64)->swap_add =
			1;
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + LONG);
		outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_ATOMIC_WRITE);
		outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_FETCH_ADD);
		memcpy(&got, d->side[0].memory.bytes + 16, 8);
		assert_int_equal(got, value);
		memcpy(&got, d->side[1].memory.bytes + 64, 8);
		assert_int_equal(got, value + 1);
		/* without packets the initiator executes the requests, and the
		 * target counts none */
		assert_int_equal(
			engine_counters(d->side[1].engine, 0)->rx_atomics,
			two_hcas_is_direct() ? 0 : 2);
		two_hcas_free(d);
	}
}

static void an_atomic_write_must_be_aligned(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	two_hcas_send(d, 0, HCA_WR_ATOMIC_WRITE, 8, 8, 65);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_REM_INV_REQ_ERR, 0);
	two_hcas_free(d);
}

static void an_atomic_of_other_than_8_bytes_is_a_length_error(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_ATOMIC_CAS, HCA_WR_ATOMIC_FADD,
					  HCA_WR_ATOMIC_WRITE};
	static const uint32_t lengths[] = {0, 7, 9};
	uint64_t left = 5, got;

	for (size_t k = 0; k < TEST_COUNT(ops) * TEST_COUNT(lengths); k++) {
		struct two_hcas *d = two_hcas_new(3, 16);
		struct wqe *w = two_hcas_send(d, 0, ops[k % TEST_COUNT(ops)], 0,
					      lengths[k / TEST_COUNT(ops)], 64);

		w->compare = left;
		w->swap_add = 1;
		memcpy(d->side[1].memory.bytes + 64, &left, 8);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + LONG);
		outcome_assert_done(d, 0, HCA_LOC_LEN_ERR, 0);
		assert_int_equal(d->side[0].explained.cause, EXPLAIN_LOCAL_OP);
		memcpy(&got, d->side[1].memory.bytes + 64, 8);
		assert_int_equal(got, left);
		two_hcas_free(d);
	}
}

static void mixed_work_survives_loss_of_a_fifth(void **state)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct two_hcas *d = two_hcas_new(1, 64);
		struct rng r;

		rng_init(&r, seed);
		d->fate = lose_some;
		d->context = &r;
		two_hcas_fill(d, 0, 0, 30000);
		two_hcas_fill(d, 1, 100000, 30000);
		for (int k = 0; k < 12; k++)
			two_hcas_recv(d, 1, 500000 + 4000u * (uint32_t)k, 4000);
		for (uint32_t k = 0; k < 12; k++) {
			two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 30000,
				      200000);
			two_hcas_post(d, 0);
			two_hcas_send(d, 0, HCA_WR_RDMA_READ, 600000, 30000,
				      100000);
			two_hcas_post(d, 0);
			two_hcas_send(d, 0, HCA_WR_SEND, k * 4000 % 20000, 4000,
				      0);
			two_hcas_post(d, 0);
			two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 700000, 8,
				      800000)
				->swap_add = 1;
			two_hcas_post(d, 0);
		}
		two_hcas_run(d, d->now_ns + 600 * LONG);
		for (int k = 0; k < 12; k++) {
			outcome_assert_done(d, 0, HCA_SUCCESS,
					    HCA_WC_RDMA_WRITE);
			outcome_assert_done(d, 0, HCA_SUCCESS,
					    HCA_WC_RDMA_READ);
			outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_SEND);
			outcome_assert_done(d, 0, HCA_SUCCESS,
					    HCA_WC_FETCH_ADD);
			outcome_assert_done(d, 1, HCA_SUCCESS, HCA_WC_RECV);
		}
		assert_same(d, 0, 200000, 30000);
		assert_same(d, 600000, 100000, 30000);
		for (uint32_t k = 0; k < 12; k++)
			assert_same(d, k * 4000 % 20000, 500000 + 4000 * k,
				    4000);
		assert_int_equal(d->side[1].memory.bytes[800000], 12);
		two_hcas_free(d);
	}
}

static void a_wrong_key_is_refused_and_flushes_the_rest(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	const struct engine_counters *counters;

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0)->rkey ^= 0x100;
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_recv(d, 1, 0, 100);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_REM_ACCESS_ERR, 0);
	outcome_assert_done(d, 0, HCA_WR_FLUSH_ERR, 0);
	outcome_assert_done(d, 1, HCA_WR_FLUSH_ERR, 0);
	counters = engine_counters(d->side[0].engine, 0);
	assert_int_equal(counters->failed, 1);
	assert_int_equal(counters->failed_by[HCA_REM_ACCESS_ERR], 1);
	assert_int_equal(counters->failed_by[HCA_WR_FLUSH_ERR], 1);
	assert_int_equal(d->side[1].events[ENGINE_QP_ACCESS_ERR], 1);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_REMOTE_KEY);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_NAK_ACCESS);
	two_hcas_free(d);
}

static void a_message_too_long_fails_on_both_sides(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	two_hcas_recv(d, 1, 0, 1000);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 1001, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_REM_INV_REQ_ERR, 0);
	outcome_assert_done(d, 1, HCA_LOC_LEN_ERR, 0);
	two_hcas_free(d);
}

static void unmapped_memory_is_an_error_not_a_crash(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	d->side[1].memory.size = 4096;
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 0, 20000, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_REM_OP_ERR, 0);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_REMOTE_FAULT);
	/* the NAK that reports the fault is a good packet */
	assert_int_equal(
		engine_counters(d->side[0].engine, 0)->refused.bad_icrc, 0);
	assert_int_equal(d->side[0].qp->stats.timeouts, 0);
	two_hcas_free(d);
}

/* The frames of side 0 so far. */
struct frames {
	uint32_t count, segments; /* a segment is one packet */
	bool wrong; /* a frame was shorter than its segment size */
};

static int count_frames(void *context, int from, const struct engine_frame *f)
{
	struct frames *n = context;

	if (!from) {
		n->count++;
		n->segments +=
			(uint32_t)((f->len + f->segment - 1) / f->segment);
		n->wrong |= f->segment > f->len;
	}
	return 1;
}

/* At an MTU of 4096, 64 KiB leave as the First packet alone and then 15 packets
 * in one frame. */
static void equal_packets_leave_in_one_frame(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 64);
	struct frames n = {0};

	d->side[0].qp->attr.ah.bursts = 1;
	d->fate = count_frames;
	d->context = &n;
	two_hcas_fill(d, 0, 0, 65536);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 65536, 300000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	assert_same(d, 0, 300000, 65536);
	assert_int_equal(n.segments, 16);
	assert_int_equal(n.count, 2);
	assert_false(n.wrong);
	two_hcas_free(d);
}

static void small_requests_leave_in_one_frame(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 64);
	struct frames n = {0};

	d->side[0].qp->attr.ah.bursts = 1;
	d->fate = count_frames;
	d->context = &n;
	two_hcas_fill(d, 0, 0, 16 * 8);
	for (uint64_t k = 0; k < 16; k++) {
		struct wqe *w = two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, k * 8,
					      k < 15 ? 8 : 4, 300000 + k * 8);

		w->flags = 0;
		wq_commit(&d->side[0].qp->sq);
	}
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 400000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	assert_same(d, 0, 300000, 15 * 8 + 4);
	assert_int_equal(n.segments, 17);
	/* the shorter packet ends the first frame */
	assert_int_equal(n.count, 2);
	two_hcas_free(d);
}

static void modify_qp(struct two_hcas *d, int i, uint32_t state, uint32_t mask)
{
	struct hca_qp_attr a = {.qp_state = state, .en_sqd_async_notify = 1};
	const char *why;

	assert_int_equal(engine_qp_modify(d->side[i].engine, d->side[i].side,
					  &a, mask | HCA_QP_STATE,
					  d->side[i].ip, d->now_ns, &why),
			 0);
}

/* IBTA 10.3.1: the event comes when all begun requests are complete. */
static void an_idle_send_queue_is_drained_at_once(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct cqe c;

	modify_qp(d, 0, HCA_QP_SQD, HCA_QP_EN_SQD_ASYNC);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(d->side[0].events[ENGINE_SQ_DRAINED], 1);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_false(two_hcas_poll(d, 0, &c));
	modify_qp(d, 0, HCA_QP_RTS, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	two_hcas_free(d);
}

/* A drain that asks for the event ends before the queue is drained.  The next
 * drain does not ask. */
static void a_drain_that_asks_for_no_event_gets_none(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	d->fate = outcome_drop_all;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1000);
	modify_qp(d, 0, HCA_QP_SQD, HCA_QP_EN_SQD_ASYNC);
	modify_qp(d, 0, HCA_QP_RTS, 0);
	assert_int_equal(d->side[0].qp->attr.en_sqd_async_notify, 0);
	d->fate = NULL;
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	modify_qp(d, 0, HCA_QP_SQD, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(d->side[0].events[ENGINE_SQ_DRAINED], 0);
	two_hcas_free(d);
}

static int lose_requests(void *context, int from, const struct engine_frame *f)
{
	return from != 0;
}

/* With a max_rd_atomic of 1, the second READ has begun, but is sent only after
 * the first is answered.  The third has not begun. */
static void a_drain_waits_for_a_request_that_is_not_sent_yet(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct cqe c;

	d->side[0].qp->attr.max_rd_atomic = 1;
	d->side[1].is_stopped = true;
	two_hcas_post_row(d, 3, HCA_WR_RDMA_READ, 100, 0);
	two_hcas_run(d, d->now_ns);
	modify_qp(d, 0, HCA_QP_SQD, HCA_QP_EN_SQD_ASYNC);
	d->side[1].is_stopped = false;
	d->fate = lose_requests;
	two_hcas_run(d, d->now_ns);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	assert_draining(d, true);
	d->fate = NULL;
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	assert_draining(d, false);
	assert_false(two_hcas_poll(d, 0, &c));
	modify_qp(d, 0, HCA_QP_RTS, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	two_hcas_free(d);
}

/* Gives packet k of a SEND of `of` packets to side 1. */
static void give_packet(struct two_hcas *d, uint32_t k, uint32_t of)
{
	struct engine_dgram g = {.from = d->side[0].side->self,
				 .to = d->side[1].side->self};
	struct pkt p = {.bth = {.pkey = BTH_DEFAULT_PKEY,
				.dest_qpn = d->side[1].qp->qpn,
				.ackreq = k == of - 1}};
	uint8_t b[512] = {0};
	size_t len;

	p.bth.opcode = k == 0	     ? OPCODE_RC_SEND_FIRST
		       : k == of - 1 ? OPCODE_RC_SEND_LAST
				     : OPCODE_RC_SEND_MIDDLE;
	p.bth.psn = (d->side[1].qp->attr.rq_psn + k) & 0xffffff;
	p.payload_len = 256;
	len = pkt_write_headers(b, &p) + 256;
	g.bytes = b;
	g.len = g.segment = rocev2_seal(NULL, &g.from, &g.to, b, len, 0);
	engine_rx(d->side[1].engine, &g, d->now_ns);
}

/* Returns the syndrome of side 1's answer; -1: side 1 sends nothing. */
static int take_answer(struct two_hcas *d)
{
	struct engine_frame f;
	size_t n = engine_tx(d->side[1].engine, &f, 1, d->now_ns);
	struct pkt p;

	if (n)
		assert_true(pkt_parse(f.bytes, f.len - 4, &p));
	engine_tx_done(d->side[1].engine, n);
	return n ? p.aeth.syndrome : -1;
}

static void a_requester_that_has_to_go_back_gets_one_nak(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct cqe c;

	two_hcas_recv(d, 1, 0, 1024);
	give_packet(d, 0, 4);
	give_packet(d, 2, 4);
	assert_int_equal(take_answer(d), -1);
	give_packet(d, 3, 4);
	assert_int_equal(take_answer(d),
			 aeth_syndrome(AETH_NAK, AETH_NAK_PSN_SEQUENCE));
	for (uint32_t k = 1; k < 3; k++) {
		give_packet(d, k, 4);
		assert_int_equal(take_answer(d), -1);
		assert_false(two_hcas_poll(d, 1, &c));
	}
	give_packet(d, 3, 4);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(aeth_kind((uint8_t)take_answer(d)), AETH_ACK);
	two_hcas_free(d);
}

static void a_late_packet_is_not_lost(void **state)
{
	static const uint32_t order[] = {0, 3, 2, 4, 1, 5};
	struct two_hcas *d = two_hcas_new(1, 16);
	struct cqe c;

	two_hcas_recv(d, 1, 0, 6 * 256);
	for (size_t k = 0; k < TEST_COUNT(order); k++) {
		assert_int_equal(take_answer(d), -1);
		give_packet(d, order[k], 6);
	}
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(aeth_kind((uint8_t)take_answer(d)), AETH_ACK);
	two_hcas_free(d);
}

static void a_full_queue_of_one_repeats_nothing_unasked(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 1);
	struct engine_dgram g = {.from = d->side[1].side->self,
				 .to = d->side[0].side->self};
	struct pkt p = {.bth = {.opcode = OPCODE_RC_ACKNOWLEDGE,
				.pkey = BTH_DEFAULT_PKEY,
				.dest_qpn = d->side[0].qp->qpn},
			.aeth = {.syndrome = 0x1f}};
	struct engine_frame f;
	uint8_t b[64];

	d->fate = outcome_drop_all;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8 * 256, 300000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1000);
	p.bth.psn = (d->side[0].qp->attr.sq_psn + 3) & 0xffffff;
	g.bytes = b;
	g.len = g.segment = rocev2_seal(NULL, &g.from, &g.to, b,
					pkt_write_headers(b, &p), 0);
	engine_rx(d->side[0].engine, &g, d->now_ns);
	assert_int_equal(engine_tx(d->side[0].engine, &f, 1, d->now_ns), 0);
	two_hcas_free(d);
}

/* The receive buffers have room for a part of a message.  Both sides send, so
 * each side also answers. */
static void a_small_receive_buffer_slows_but_stops_no_peer(void **state)
{
	static struct credit_page page[2];
	struct two_hcas *d = two_hcas_new(5, 16);

	memset(page, 0, sizeof(page));
	for (int i = 0; i < 2; i++) {
		d->side[i].qp->attr.ah.local = 1;
		d->side[i].qp->attr.ah.bursts = 1;
		engine_inbox(d->side[i].engine, &page[i], (uint32_t)i, 60000,
			     false);
		two_hcas_fill(d, i, (uint64_t)i * 70000, 65536);
		for (int k = 0; k < 4; k++) {
			two_hcas_send(d, i, HCA_WR_RDMA_WRITE,
				      (uint64_t)i * 70000, 65536,
				      200000 + (uint64_t)i * 70000);
			two_hcas_post(d, i);
		}
	}
	for (int i = 0; i < 2; i++) {
		uint32_t qpn = engine_wants_page(d->side[i].engine);

		/* a side asks for the peer's page, and sends at most 16 KiB
		 * until the page comes (credit.h) */
		two_hcas_run(d, d->now_ns);
		qpn |= engine_wants_page(d->side[i].engine);
		assert_int_equal(qpn, d->side[!i].qp->qpn);
		assert_int_equal(d->side[i].qp->stats.wait, QP_WAIT_CREDIT);
		engine_page(d->side[i].engine, qpn, &page[!i]);
	}
	two_hcas_run(d, d->now_ns + LONG);
	for (int k = 0; k < 8; k++)
		outcome_assert_done(d, k / 4, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	assert_same(d, 0, 200000, 65536);
	assert_memory_equal(d->side[1].memory.bytes + 70000,
			    d->side[0].memory.bytes + 270000, 65536);
	two_hcas_free(d);
}

/* Side 0 sends sixteen packets to a receiver that has room for a few.  is_lost:
 * no packet arrives, so that no answer comes.  Returns how many packets side 0
 * sends. */
static uint64_t sent_at_once(bool is_lost)
{
	static struct credit_page page[2];
	struct two_hcas *d = two_hcas_new(5, 16);
	uint64_t sent;

	memset(page, 0, sizeof(page));
	for (uint32_t i = 0; i < 2; i++) {
		d->side[i].qp->attr.ah.local = 1;
		engine_inbox(d->side[i].engine, &page[i], i, 60000, false);
	}
	for (uint32_t i = 0; i < 2; i++)
		engine_page(d->side[i].engine, d->side[!i].qp->qpn, &page[!i]);
	d->fate = is_lost ? outcome_drop_all : NULL;
	two_hcas_fill(d, 0, 0, 65536);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 65536, 300000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + (is_lost ? 0 : LONG));
	sent = d->side[0].qp->stats.tx_packets;
	if (is_lost) {
		assert_int_equal(engine_qp_flying(d->side[0].side), sent);
		assert_int_equal(d->side[0].qp->stats.wait,
				 sent < 16 ? QP_WAIT_CREDIT : QP_WAIT_WINDOW);
	} else {
		outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
		assert_same(d, 0, 300000, 65536);
	}
	two_hcas_free(d);
	return sent;
}

static void all_packets_leave_at_once_if_a_side_uses_no_credits(void **state)
{
	assert_int_equal(sent_at_once(true), 1);
	for (int i = 0; i < 2; i++) {
		two_hcas_without(i, (struct engine_without){.credits = true});
		assert_int_equal(sent_at_once(true), 16);
		assert_int_equal(sent_at_once(false), 16);
		two_hcas_without(i, (struct engine_without){0});
	}
}

/* Side 0 sends sixteen packets, the First in a frame of its own, to a receiver
 * that splits frames of many packets.  After engine_joins the receiver splits
 * no frames. */
static void a_receiver_that_splits_frames_gets_short_ones(void **state)
{
	static struct credit_page page[2];
	struct two_hcas *d = two_hcas_new(5, 64);
	struct frames n = {0};

	memset(page, 0, sizeof(page));
	d->fate = count_frames;
	d->context = &n;
	d->side[0].qp->attr.ah.local = d->side[0].qp->attr.ah.bursts = 1;
	for (uint32_t i = 0; i < 2; i++)
		engine_inbox(d->side[i].engine, &page[i], i, 8 << 20, true);
	engine_page(d->side[0].engine, d->side[1].qp->qpn, &page[1]);
	for (int joins = 0; joins < 2; joins++) {
		n.count = 0;
		two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 65536, 300000);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + LONG);
		outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
		assert_int_equal(n.count, joins ? 2 : 5);
		engine_joins(d->side[1].engine);
	}
	two_hcas_free(d);
}

/* The peer's process died before this side asked for that process's page. */
static void a_dead_process_page_is_not_waited_for(void **state)
{
	static struct credit_page page;
	struct two_hcas *d = two_hcas_new(5, 16);
	uint64_t began;

	memset(&page, 0, sizeof(page));
	d->fate = outcome_drop_all;
	d->side[0].qp->attr.ah.local = 1;
	engine_inbox(d->side[0].engine, &page, 0, 60000, false);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 200000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	began = d->now_ns;
	assert_int_equal(engine_wants_page(d->side[0].engine),
			 d->side[1].qp->qpn);
	engine_page(d->side[0].engine, d->side[1].qp->qpn, NULL);
	two_hcas_run(d, began + 1000);
	assert_int_equal(d->side[0].qp->stats.tx_packets, 1);
	two_hcas_free(d);
}

/* The last answers of a process must not wait for room at the peer. */
static void an_ending_process_answers_without_room(void **state)
{
	static struct credit_page page;
	struct engine_frame f;
	struct two_hcas *d = two_hcas_new(5, 16);
	struct engine *e = d->side[1].engine;

	memset(&page, 0, sizeof(page));
	d->side[1].qp->attr.ah.local = 1;
	engine_inbox(e, &page, 1, 60000, false);
	engine_page(e, d->side[0].qp->qpn, &page);
	d->fate = outcome_drop_all;
	two_hcas_send(d, 1, HCA_WR_RDMA_WRITE, 0, 8, 200000);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns + 1000);
	assert_int_equal(d->side[1].qp->stats.tx_packets, 1);
	page.capacity = 1;
	d->fate = NULL;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 200000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1000);
	assert_int_equal(d->side[1].qp->stats.tx_packets, 1);
	engine_force_responses(e, true);
	assert_int_equal(engine_tx(e, &f, 1, d->now_ns), 1);
	assert_int_equal(f.bytes[0], 0x11); /* RC ACK */
	engine_tx_done(e, 1);
	engine_force_responses(e, false);
	two_hcas_free(d);
}

/* Some packets have pads, and the responses and ACKs count too. */
static void receive_counters_equal_the_peers_send_counters(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 5001, 300000);
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 0, 3003, 300000);
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 0, 8, 64);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	for (int i = 0; i < 2; i++) {
		const struct qp_stats *tx = &d->side[i].qp->stats,
				      *rx = &d->side[!i].qp->stats;

		assert_true(tx->tx_packets > 2);
		assert_int_equal(rx->rx_packets, tx->tx_packets);
		assert_int_equal(rx->rx_bytes, tx->tx_bytes);
		assert_int_equal(
			engine_counters(d->side[!i].engine, 0)->rx_bytes,
			tx->tx_bytes);
		assert_int_equal(
			engine_counters(d->side[i].engine, 0)->tx_bytes,
			tx->tx_bytes);
	}
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_of_every_length_arrives),
		cmocka_unit_test(
			reads_that_need_several_requests_come_back_whole),
		cmocka_unit_test(a_send_waits_for_its_receive),
		cmocka_unit_test(atomics_return_what_they_found),
		cmocka_unit_test(an_atomic_write_is_executed_once),
		cmocka_unit_test(an_atomic_write_must_be_aligned),
		cmocka_unit_test(
			an_atomic_of_other_than_8_bytes_is_a_length_error),
		cmocka_unit_test(a_wrong_key_is_refused_and_flushes_the_rest),
		cmocka_unit_test(a_message_too_long_fails_on_both_sides),
		cmocka_unit_test(unmapped_memory_is_an_error_not_a_crash),
		cmocka_unit_test(an_idle_send_queue_is_drained_at_once),
		cmocka_unit_test(mixed_work_survives_loss_of_a_fifth),
	};
	const struct CMUnitTest of_packets[] = {
		cmocka_unit_test(a_drain_that_asks_for_no_event_gets_none),
		cmocka_unit_test(
			a_drain_waits_for_a_request_that_is_not_sent_yet),
	};
	const struct CMUnitTest of_datagrams[] = {
		cmocka_unit_test(a_dead_process_page_is_not_waited_for),
		cmocka_unit_test(an_ending_process_answers_without_room),
		cmocka_unit_test(a_full_queue_of_one_repeats_nothing_unasked),
		cmocka_unit_test(a_late_packet_is_not_lost),
		cmocka_unit_test(a_requester_that_has_to_go_back_gets_one_nak),
		cmocka_unit_test(equal_packets_leave_in_one_frame),
		cmocka_unit_test(
			a_small_receive_buffer_slows_but_stops_no_peer),
		cmocka_unit_test(
			all_packets_leave_at_once_if_a_side_uses_no_credits),
		cmocka_unit_test(a_receiver_that_splits_frames_gets_short_ones),
		cmocka_unit_test(small_requests_leave_in_one_frame),
		cmocka_unit_test(
			receive_counters_equal_the_peers_send_counters),
	};

	two_hcas_mode(argc, argv);
	if (!two_hcas_is_direct() &&
	    cmocka_run_group_tests(of_packets, NULL, NULL))
		return 1;
	if (!two_hcas_is_direct() && !two_hcas_is_by_lid() &&
	    cmocka_run_group_tests(of_datagrams, NULL, NULL))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
