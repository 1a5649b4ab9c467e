/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests without packets: what is special about them, src/direct. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "hdr/aeth.h"
#include "ibt/ibt.h"
#include "scenario/duo.h"
#include "util/rng.h"

#define LONG (60ull * 1000000000)

static void assert_done(struct duo *d, int i, uint32_t status)
{
	struct cqe c;

	assert_true(duo_poll(d, i, &c));
	assert_int_equal(c.status, status);
}

static uint64_t packets(const struct duo *d)
{
	return engine_counters(d->side[0].engine, 0)->tx_packets +
	       engine_counters(d->side[1].engine, 0)->tx_packets;
}

/* Move side i's QP to a state, by the program. */
static void enter(struct duo *d, int i, uint32_t state)
{
	struct hca_qp_attr a = {.qp_state = state};
	const char *why;

	assert_int_equal(engine_qp_modify(d->side[i].engine, d->side[i].side,
					  &a, HCA_QP_STATE, d->side[i].ip,
					  d->now_ns, &why),
			 0);
}

static void nothing_crosses_a_wire(void **state)
{
	static const uint32_t lengths[] = {0, 1, 999, 1000, 1001, 12345};
	struct duo *d = duo_new(1, 16);

	for (size_t k = 0; k < TEST_COUNT(lengths); k++) {
		duo_fill(d, 0, 0, lengths[k]);
		duo_recv(d, 1, 100000, 20000);
		duo_send(d, 0, HCA_WR_SEND, 0, lengths[k], 0);
		duo_post(d, 0);
		duo_send(d, 0, HCA_WR_RDMA_READ, 200000, lengths[k], 100000);
		duo_post(d, 0);
		duo_run(d, d->now_ns + LONG); /* or its owner places it first */
		assert_done(d, 0, HCA_SUCCESS);
		assert_done(d, 0, HCA_SUCCESS);
		assert_done(d, 1, HCA_SUCCESS);
		assert_memory_equal(d->side[0].memory.bytes,
				    d->side[0].memory.bytes + 200000,
				    lengths[k]);
	}
	assert_int_equal(packets(d), 0);
	duo_free(d);
}

static void without_a_receive_a_send_ends_after_its_tries(void **state)
{
	struct duo *d = duo_new(3, 16);
	uint64_t began = d->now_ns;

	d->side[0].qp->attr.rnr_retry = 3;
	duo_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	duo_post(d, 0);
	duo_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_RNR_RETRY_EXC_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_RNR);
	assert_true(d->now_ns - began >= 3 * aeth_rnr_timer_ns(12));
	duo_free(d);
}

static void a_receive_posted_late_is_found_at_the_next_look(void **state)
{
	struct duo *d = duo_new(3, 16);
	uint64_t at;

	duo_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	duo_post(d, 0);
	duo_run(d, d->now_ns);
	duo_recv(d, 1, 0, 64);
	at = d->now_ns + 1000;
	engine_tick(d->side[0].engine, at);
	duo_run(d, at);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	duo_free(d);
}

static void a_peer_not_ready_is_silent(void **state)
{
	struct duo *d = duo_new(3, 16);

	enter(d, 1, HCA_QP_RESET);
	d->liveness = ENGINE_PEER_UNKNOWN;
	duo_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 0);
	duo_post(d, 0);
	duo_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_RETRY_EXC_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_RETRY);
	duo_free(d);
}

/* Its process lives, and would be waited for. */
static void a_peer_in_error_has_the_time_of_the_specification(void **state)
{
	struct duo *d = duo_new(1, 16);
	uint64_t tries_ns = duo_tries_ns(d, 0);

	enter(d, 1, HCA_QP_ERR);
	duo_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 100000);
	duo_post(d, 0);
	duo_run(d, d->now_ns + 4 * tries_ns);
	assert_done(d, 0, HCA_RETRY_EXC_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_CLOSED);
	duo_free(d);
}

static void
who_loses_its_peers_process_is_told_when_its_tries_are_used_up(void **state)
{
	struct duo *d = duo_new(3, 16);
	struct cqe c;

	duo_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	duo_post(d, 0);
	duo_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	duo_post(d, 0);
	duo_run(d, d->now_ns);
	assert_true(engine_gone(d->side[0].engine, d));
	duo_run(d, d->now_ns + duo_tries_ns(d, 0) / 2);
	assert_false(duo_poll(d, 0, &c));
	duo_run(d, d->now_ns + 4 * duo_tries_ns(d, 0));
	assert_done(d, 0, HCA_RETRY_EXC_ERR);
	assert_done(d, 0, HCA_WR_FLUSH_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_GONE);
	duo_free(d);
}

static void a_connection_lets_go_of_the_process_of_the_one_before(void **state)
{
	struct duo *d = duo_new(3, 16);

	for (int k = 0; k < 3; k++) {
		duo_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 100000);
		duo_post(d, 0);
		duo_run(d, d->now_ns);
		assert_done(d, 0, HCA_SUCCESS);
		assert_ptr_equal(engine_parted(d->side[0].engine),
				 k ? d : NULL);
		for (int i = 0; i < 2; i++)
			enter(d, i, HCA_QP_RESET);
		for (int i = 0; i < 2; i++)
			duo_connect(d, i, 3);
	}
	assert_null(engine_parted(d->side[0].engine));
	duo_free(d);
}

static void who_sleeps_is_kicked_for_an_event(void **state)
{
	struct duo *d = duo_new(3, 16);

	for (uint32_t k = 0; k < 2; k++) {
		engine_asleep(d->side[1].engine, k);
		cq_arm(d->side[1].cq, false);
		duo_recv(d, 1, 0, 64);
		duo_send(d, 0, HCA_WR_SEND, 0, 64, 0);
		duo_post(d, 0);
		duo_run(d, d->now_ns);
		assert_done(d, 1, HCA_SUCCESS);
		assert_int_equal(d->side[1].kicked, k);
		assert_int_equal(d->side[1].events[ENGINE_CQ_EVENT], k + 1);
	}
	duo_free(d);
}

static void our_own_fault_fails_us_and_not_the_peer(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_RDMA_WRITE, HCA_WR_RDMA_READ,
					  HCA_WR_SEND};

	for (size_t k = 0; k < TEST_COUNT(ops); k++) {
		struct duo *d = duo_new(3, 16);

		duo_recv(d, 1, 0, 20000);
		d->side[0].memory.size = 5000;
		duo_send(d, 0, ops[k], 0, 20000, 0);
		duo_post(d, 0);
		duo_run(d, d->now_ns + LONG);
		assert_done(d, 0, HCA_LOC_PROT_ERR);
		assert_int_equal(d->side[0].explained.cause,
				 EXPLAIN_LOCAL_FAULT);
		assert_int_equal(d->side[1].qp->state, HCA_QP_RTS);
		duo_free(d);
	}
}

static void a_failing_peer_gives_back_its_receives(void **state)
{
	struct duo *d = duo_new(3, 16);

	duo_recv(d, 1, 0, 64);
	duo_recv(d, 1, 0, 64);
	enter(d, 1, HCA_QP_ERR);
	duo_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	duo_post(d, 0);
	duo_run(d, d->now_ns + 1000000);
	assert_done(d, 1, HCA_WR_FLUSH_ERR);
	assert_done(d, 1, HCA_WR_FLUSH_ERR);
	assert_false(duo_poll(d, 1, &(struct cqe){0}));
	assert_false(duo_poll(d, 0, &(struct cqe){0}));
	enter(d, 0, HCA_QP_ERR);
	assert_done(d, 0, HCA_WR_FLUSH_ERR);
	duo_free(d);
}

static void an_atomic_waits_for_its_owner(void **state)
{
	struct duo *d = duo_new(3, 16);
	uint64_t found, left = 5;
	uint32_t letters;

	memcpy(d->side[1].memory.bytes + 8, &left, 8);
	d->side[1].is_stopped = true;
	duo_send(d, 0, HCA_WR_ATOMIC_FADD, 0, 8, 8)->swap_add = 2;
	duo_post(d, 0);
	duo_send(d, 0, HCA_WR_RDMA_WRITE, 16, 8, 16);
	duo_post(d, 0);
	duo_run(d, d->now_ns + LONG);
	assert_false(duo_poll(d, 0, &(struct cqe){0}));
	d->side[1].is_stopped = false;
	duo_run(d, d->now_ns + 10000000);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	memcpy(&found, d->side[0].memory.bytes, 8);
	memcpy(&left, d->side[1].memory.bytes + 8, 8);
	assert_int_equal(found, 5);
	assert_int_equal(left, 7);
	assert_null(mail_take(&d->side[1].hca, &letters));
	duo_free(d);
}

static void an_atomic_on_memory_that_went_away_fails_both(void **state)
{
	struct duo *d = duo_new(3, 16);

	d->side[1].memory.size = 4096;
	duo_send(d, 0, HCA_WR_ATOMIC_FADD, 0, 8, 8192);
	duo_post(d, 0);
	duo_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_REM_OP_ERR);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_REMOTE_FAULT);
	assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
	duo_free(d);
}

static void a_stopped_peer_is_served(void **state)
{
	struct duo *d = duo_new(3, 16);

	d->side[1].is_stopped = true;
	duo_fill(d, 0, 0, 5000);
	duo_recv(d, 1, 100000, 5000);
	duo_send(d, 0, HCA_WR_SEND, 0, 5000, 0);
	duo_post(d, 0);
	duo_send(d, 0, HCA_WR_RDMA_READ, 200000, 5000, 100000);
	duo_post(d, 0);
	duo_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	assert_memory_equal(d->side[0].memory.bytes,
			    d->side[0].memory.bytes + 200000, 5000);
	duo_free(d);
}

/* ---- a message of few bytes stays with its receive at first ---- */

#define FEW 40
#define AT  100000

static const uint8_t nothing[FEW];

/* Side 0 has sent it, of 0x11 each, and side 1 has not looked. */
static struct duo *with_few_bytes_sent(void)
{
	struct duo *d = duo_new(3, 16);

	memset(d->side[0].memory.bytes, 0x11, FEW);
	memset(d->side[0].memory.bytes + FEW, 0x22, FEW);
	duo_recv(d, 1, AT, FEW);
	duo_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	duo_post(d, 0);
	d->side[1].is_stopped = true;
	duo_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	assert_memory_equal(d->side[1].memory.bytes + AT, nothing, FEW);
	return d;
}

static void few_bytes_are_there_when_they_are_told(void **state)
{
	struct duo *d = with_few_bytes_sent();

	assert_done(d, 1, HCA_SUCCESS);
	assert_memory_equal(d->side[1].memory.bytes + AT,
			    d->side[0].memory.bytes, FEW);
	assert_int_equal(packets(d), 0);
	duo_free(d);
}

/* Side 0's next request, which is for the last byte of them, and its bytes. */
static void only_after_them(enum hca_wr op, uint32_t bytes)
{
	struct duo *d = with_few_bytes_sent();
	uint8_t *near = d->side[0].memory.bytes + FEW;
	uint8_t *far = d->side[1].memory.bytes + AT + FEW - 1;

	if (op == HCA_WR_SEND)
		duo_recv(d, 1, AT + FEW - 1, bytes);
	duo_send(d, 0, op, FEW, bytes, AT + FEW - 1);
	duo_post(d, 0);
	duo_run(d, d->now_ns + LONG);
	assert_false(duo_poll(d, 0, &(struct cqe){0}));
	d->side[1].is_stopped = false;
	duo_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_int_equal(*far, op == HCA_WR_RDMA_READ ? 0x11 : 0x22);
	assert_int_equal(*near, op == HCA_WR_RDMA_READ ? 0x11 : 0x22);
	assert_done(d, 1, HCA_SUCCESS);
	assert_int_equal(far[-1], 0x11);
	assert_int_equal(*far, op == HCA_WR_RDMA_READ ? 0x11 : 0x22);
	duo_free(d);
}

static void what_is_for_the_same_memory_waits_for_few_bytes(void **state)
{
	only_after_them(HCA_WR_RDMA_READ, 1);
	only_after_them(HCA_WR_RDMA_WRITE, 1);
	only_after_them(HCA_WR_RDMA_READ, 1000);
	only_after_them(HCA_WR_SEND, 1000);
}

static void what_is_for_other_memory_does_not(void **state)
{
	struct duo *d = with_few_bytes_sent();

	duo_send(d, 0, HCA_WR_RDMA_WRITE, FEW, FEW, AT + FEW);
	duo_post(d, 0);
	duo_send(d, 0, HCA_WR_RDMA_WRITE, FEW, FEW, AT - FEW);
	duo_post(d, 0);
	duo_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	duo_free(d);
}

static void an_atomic_sees_the_few_bytes_before_it(void **state)
{
	struct duo *d = with_few_bytes_sent();

	duo_send(d, 0, HCA_WR_ATOMIC_FADD, 2 * FEW, 8, AT);
	duo_post(d, 0);
	d->side[1].is_stopped = false;
	duo_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_memory_equal(d->side[0].memory.bytes + 2 * FEW,
			    d->side[0].memory.bytes, 8);
	duo_free(d);
}

static void few_bytes_go_where_they_belong_before_memory_goes_away(void **state)
{
	struct duo *d = with_few_bytes_sent();

	carry_settle(&d->side[1].hca);
	assert_memory_equal(d->side[1].memory.bytes + AT,
			    d->side[0].memory.bytes, FEW);
	memset(d->side[1].memory.bytes + AT, 0, FEW);
	assert_done(d, 1, HCA_SUCCESS);
	assert_memory_equal(d->side[1].memory.bytes + AT, nothing, FEW);
	duo_free(d);
}

static void few_bytes_without_memory_fail_their_receive(void **state)
{
	struct duo *d = with_few_bytes_sent();

	d->side[1].memory.size = AT + FEW - 1;
	assert_done(d, 1, HCA_LOC_PROT_ERR);
	d->side[1].is_stopped = false;
	duo_run(d, d->now_ns + LONG);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_LOCAL_FAULT);
	assert_int_equal(d->side[1].explained.va, DUO_BASE + AT);
	assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
	duo_free(d);
}

static void few_bytes_whose_key_has_gone_fail_their_receive(void **state)
{
	struct duo *d = with_few_bytes_sent();

	mr_free(&d->side[1].hca, d->side[1].mr);
	assert_done(d, 1, HCA_LOC_PROT_ERR);
	assert_memory_equal(d->side[1].memory.bytes + AT, nothing, FEW);
	d->side[1].is_stopped = false;
	duo_run(d, d->now_ns + LONG);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_LOCAL_KEY);
	duo_free(d);
}

/* ---- UD ---- */

static void datagrams_cross_no_wire(void **state)
{
	static const uint32_t lengths[] = {0, 1, 16, 17, 2048};
	struct duo *d = duo_new_of(HCA_QPT_UD, 5, 16);

	for (size_t k = 0; k < TEST_COUNT(lengths); k++) {
		struct cqe c;

		duo_fill(d, 0, 0, lengths[k]);
		duo_recv(d, 1, AT, 40 + lengths[k]);
		duo_send(d, 0, k % 2 ? HCA_WR_SEND_IMM : HCA_WR_SEND, 0,
			 lengths[k], 0)
			->imm_be = 77;
		duo_post(d, 0);
		duo_run(d, d->now_ns);
		assert_done(d, 0, HCA_SUCCESS);
		assert_true(duo_poll(d, 1, &c));
		assert_int_equal(c.status, HCA_SUCCESS);
		assert_int_equal(c.byte_len, 40 + lengths[k]);
		assert_int_equal(c.src_qpn, d->side[0].qp->qpn);
		assert_int_equal(c.sl, 8 | 2);
		assert_int_equal(c.imm_be, k % 2 ? 77 : 0);
		assert_memory_equal(d->side[1].memory.bytes + AT + 40,
				    d->side[0].memory.bytes, lengths[k]);
	}
	assert_int_equal(packets(d), 0);
	duo_free(d);
}

static void the_dead_get_packets_and_who_comes_after_them_does_not(void **state)
{
	struct duo *d = duo_new_of(HCA_QPT_UD, 5, 16);

	for (int k = 0; k < 3; k++) {
		duo_recv(d, 1, AT, 100);
		duo_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
		duo_post(d, 0);
		if (k == 1) {
			d->side[1].hca.shared->pulse.word |= 0x40000000u;
			duo_run(d, d->now_ns);
			assert_int_equal(packets(d), 1);
			d->side[1].hca.shared->pulse.word = 1;
			assert_ptr_equal(engine_parted(d->side[0].engine), d);
			assert_null(engine_parted(d->side[0].engine));
			assert_false(engine_gone(d->side[0].engine, d));
		}
		duo_run(d, d->now_ns);
		assert_done(d, 0, HCA_SUCCESS);
		assert_done(d, 1, HCA_SUCCESS);
	}
	assert_int_equal(packets(d), 1);
	duo_free(d);
}

/* What is posted while the queue is found empty goes as the others did. */
static void an_empty_queue_is_not_for_packets(void **state)
{
	struct duo *d = duo_new_of(HCA_QPT_UD, 5, 16);
	struct duo_side *s = &d->side[0];

	for (int k = 0; k < 3; k++) {
		if (k == 1) {
			duo_recv(d, 1, AT, 100);
			duo_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
			wq_commit(&s->qp->sq);
		}
		engine_doorbell(s->engine, s->side, d->now_ns);
		duo_run(d, d->now_ns);
		assert_int_not_equal(s->side->way, IBT_WAY_PACKETS);
	}
	assert_done(d, 1, HCA_SUCCESS);
	duo_free(d);
}

/* To two targets of one process in turn, of which one posts no receives. */
static void each_target_has_its_own_way(void **state)
{
	struct duo *d = duo_new_of(HCA_QPT_UD, 5, 16);
	uint32_t there = d->side[1].qp->qpn, nobody = there + 2;

	for (int k = 0; k < 8; k++) {
		struct wqe *w = duo_send(d, 0, HCA_WR_SEND, 0, FEW, 0);

		wq_to(&d->side[0].qp->sq, w)->qpn = k % 4 < 2 ? there : nobody;
		duo_recv(d, 1, AT, 100);
		duo_post(d, 0);
	}
	duo_run(d, d->now_ns);
	for (int k = 0; k < 8; k++)
		assert_done(d, 0, HCA_SUCCESS);
	for (int k = 0; k < 4; k++)
		assert_done(d, 1, HCA_SUCCESS);
	assert_false(duo_poll(d, 1, &(struct cqe){0}));
	assert_int_equal(packets(d), 4);
	duo_free(d);
}

/* ---- UC ---- */

static void messages_of_uc_cross_no_wire(void **state)
{
	struct duo *d = duo_new_of(HCA_QPT_UC, 3, 16);

	duo_fill(d, 0, 0, 2500);
	for (int i = 0; i < 2; i++)
		duo_recv(d, 1, AT, 2500);
	duo_send(d, 0, HCA_WR_SEND, 0, 2500, 0);
	duo_post(d, 0);
	duo_send(d, 0, HCA_WR_RDMA_WRITE, 0, 2500, 2 * AT);
	duo_post(d, 0);
	duo_send(d, 0, HCA_WR_SEND_IMM, 0, FEW, 0);
	duo_post(d, 0);
	duo_run(d, d->now_ns);
	for (int i = 0; i < 3; i++)
		assert_done(d, 0, HCA_SUCCESS);
	for (int i = 0; i < 2; i++)
		assert_done(d, 1, HCA_SUCCESS);
	assert_memory_equal(d->side[1].memory.bytes + AT,
			    d->side[0].memory.bytes, 2500);
	assert_memory_equal(d->side[1].memory.bytes + 2 * AT,
			    d->side[0].memory.bytes, 2500);
	assert_int_equal(packets(d), 0);
	duo_free(d);
}

/* A packet waits at the target for its receive, so others do not pass it. */
static void what_uc_cannot_do_is_for_packets_from_then_on(void **state)
{
	struct duo *d = duo_new_of(HCA_QPT_UC, 3, 16);

	for (uint8_t k = 0; k < 3; k++) {
		d->side[0].memory.bytes[k * FEW] = (uint8_t)(k + 1);
		duo_send(d, 0, HCA_WR_SEND, k * FEW, FEW, 0);
		duo_post(d, 0);
		if (k == 0)
			duo_recv(d, 1, AT, FEW);
		duo_run(d, d->now_ns);
		assert_done(d, 0, HCA_SUCCESS);
	}
	assert_int_equal(packets(d), 2);
	assert_done(d, 1, HCA_SUCCESS);
	for (uint8_t k = 1; k < 3; k++) {
		duo_recv(d, 1, AT, FEW);
		duo_run(d, d->now_ns + 20000000);
		assert_done(d, 1, HCA_SUCCESS);
		assert_int_equal(d->side[1].memory.bytes[AT], k + 1);
	}
	duo_free(d);
}

/* What is ours to get right needs no peer, and is told at once. */
static void a_wrong_key_is_told_though_the_peers_process_has_gone(void **state)
{
	struct duo *d = duo_new(3, 16);
	struct wqe *w;
	struct cqe c;

	duo_recv(d, 1, AT, FEW);
	duo_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	duo_post(d, 0);
	duo_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	assert_true(engine_gone(d->side[0].engine, d));
	w = duo_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	wqe_sges(w)->lkey ^= 1;
	duo_post(d, 0);
	duo_run(d, d->now_ns + duo_tries_ns(d, 0) / 2);
	assert_true(duo_poll(d, 0, &c));
	assert_int_equal(c.status, HCA_LOC_PROT_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_LOCAL_KEY);
	duo_free(d);
}

static void uc_ends_its_work_when_the_peers_process_has_gone(void **state)
{
	struct duo *d = duo_new_of(HCA_QPT_UC, 3, 16);

	duo_recv(d, 1, AT, FEW);
	duo_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	duo_post(d, 0);
	duo_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	d->side[1].hca.shared->pulse.word |= 0x40000000u;
	d->side[1].is_dead = true;
	engine_gone(d->side[0].engine, d);
	duo_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	duo_post(d, 0);
	duo_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	d->side[1].is_dead = false;
	duo_free(d);
}

/* ---- somebody who lives has the responder's lock, and keeps it ---- */

#define LIVING	7
#define STOPPED 8

static bool nobody_is_dead(alock_owner owner)
{
	return false;
}

static void slow(alock_owner owner)
{
	fail_msg("the lane waits for %u", (unsigned)owner);
}

static const struct alock_judge judge = {nobody_is_dead, slow, NULL,
					 nobody_is_dead};

static void stop_inside(struct duo *d) NO_LOCK_ANALYSIS
{
	alock_open(STOPPED, &judge);
	assert_false(alock_take(&d->side[1].qp->far.lock));
	alock_open(LIVING, &judge);
}

static void go_on(struct duo *d) NO_LOCK_ANALYSIS
{
	alock_give(&d->side[1].qp->far.lock);
}

static void ends(void)
{
	alock_open(ALOCK_NAMELESS, NULL);
}

static void an_error_flushes_the_receives_when_the_peer_has_left(void **state)
{
	struct duo *d = duo_new(3, 16);
	struct cqe c;

	duo_recv(d, 1, 0, 64);
	stop_inside(d);
	enter(d, 1, HCA_QP_ERR);
	duo_send(d, 1, HCA_WR_RDMA_WRITE, 0, 64, 0);
	duo_post(d, 1);
	assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
	assert_done(d, 1, HCA_WR_FLUSH_ERR);
	for (int i = 0; i < 20; i++) {
		d->now_ns += 1000000;
		duo_run(d, d->now_ns);
	}
	assert_false(duo_poll(d, 1, &c));
	go_on(d);
	duo_run(d, d->now_ns + 6000000);
	assert_done(d, 1, HCA_WR_FLUSH_ERR);
	assert_false(duo_poll(d, 1, &c));
	ends();
	duo_free(d);
}

static void who_finds_somebody_at_work_asks_again(void **state)
{
	struct duo *d = duo_new(3, 16);
	struct cqe c;

	stop_inside(d);
	duo_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 100000);
	duo_post(d, 0);
	for (int i = 0; i < 20; i++) {
		d->now_ns += 1000000;
		duo_run(d, d->now_ns);
	}
	assert_false(duo_poll(d, 0, &c));
	go_on(d);
	duo_run(d, d->now_ns + 6000000);
	assert_done(d, 0, HCA_SUCCESS);
	ends();
	duo_free(d);
}

static void an_owner_who_wants_it_comes_before_its_peers(void **state)
{
	struct duo *d = duo_new(3, 16);
	struct hca_qp_attr a = {.qp_state = HCA_QP_RESET};
	struct duo_side *s = &d->side[1];
	const char *why;
	struct cqe c;

	stop_inside(d);
	assert_int_equal(engine_qp_modify(s->engine, s->side, &a, HCA_QP_STATE,
					  s->ip, d->now_ns, &why),
			 -EBUSY);
	assert_int_equal(engine_qp_guest(s->side), STOPPED);
	go_on(d);
	duo_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 100000);
	duo_post(d, 0);
	duo_run(d, d->now_ns);
	assert_false(duo_poll(d, 0, &c));
	assert_int_equal(s->qp->state, HCA_QP_RTS);
	a.qp_state = HCA_QP_RTS; /* refused: it does not want it any more */
	assert_int_equal(engine_qp_modify(s->engine, s->side, &a,
					  HCA_QP_STATE | HCA_QP_PATH_MTU, s->ip,
					  d->now_ns, &why),
			 -EINVAL);
	duo_run(d, d->now_ns + 6000000);
	assert_done(d, 0, HCA_SUCCESS);
	ends();
	duo_free(d);
}

/* A WRITE of side 0 by the window's key is under way, as long as `inside`. */
static void a_window_is_taken_away_when_accesses_by_it_are_over(void **state)
{
	struct duo *d = duo_new(3, 16);
	struct duo_side *s = &d->side[1];
	struct mr *w = mw_new(&s->hca, s->qp->pd, 2);
	struct guest *guest = s->guest;
	struct wqe *e = duo_send(d, 1, HCA_WR_BIND_MW, 0, 0, 0);
	uint32_t key;
	struct cqe c;

	e->imm_be = w->lkey;
	e->rkey = w->lkey + 1;
	e->va = DUO_BASE;
	e->compare = 4096;
	e->swap_add = (uint64_t)s->mr->lkey << 32 | HCA_REMOTE_WRITE;
	duo_post(d, 1);
	duo_run(d, d->now_ns);
	assert_done(d, 1, HCA_SUCCESS);
	key = w->rkey;
	guest_enter(guest, guest_qp(s->qp->qpn));
	guest_copy(guest, guest_qp(s->qp->qpn) | guest_key(key));
	e = duo_send(d, 1, HCA_WR_LOCAL_INV, 0, 0, 0);
	e->imm_be = key;
	duo_post(d, 1);
	duo_send(d, 1, HCA_WR_RDMA_WRITE, 0, 64, 0);
	duo_post(d, 1);
	for (int i = 0; i < 20; i++) {
		d->now_ns += 1000000;
		duo_run(d, d->now_ns);
	}
	assert_false(duo_poll(d, 1, &c));
	assert_int_equal(w->rkey, 0); /* no other begins */
	guest_leave(guest);
	duo_run(d, d->now_ns + 6000000);
	assert_done(d, 1, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	mw_free(&s->hca, w);
	duo_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_crosses_a_wire),
		cmocka_unit_test(without_a_receive_a_send_ends_after_its_tries),
		cmocka_unit_test(
			a_receive_posted_late_is_found_at_the_next_look),
		cmocka_unit_test(a_peer_not_ready_is_silent),
		cmocka_unit_test(
			a_peer_in_error_has_the_time_of_the_specification),
		cmocka_unit_test(
			who_loses_its_peers_process_is_told_when_its_tries_are_used_up),
		cmocka_unit_test(
			a_connection_lets_go_of_the_process_of_the_one_before),
		cmocka_unit_test(who_sleeps_is_kicked_for_an_event),
		cmocka_unit_test(few_bytes_are_there_when_they_are_told),
		cmocka_unit_test(
			what_is_for_the_same_memory_waits_for_few_bytes),
		cmocka_unit_test(what_is_for_other_memory_does_not),
		cmocka_unit_test(an_atomic_sees_the_few_bytes_before_it),
		cmocka_unit_test(
			few_bytes_go_where_they_belong_before_memory_goes_away),
		cmocka_unit_test(few_bytes_without_memory_fail_their_receive),
		cmocka_unit_test(
			few_bytes_whose_key_has_gone_fail_their_receive),
		cmocka_unit_test(datagrams_cross_no_wire),
		cmocka_unit_test(
			the_dead_get_packets_and_who_comes_after_them_does_not),
		cmocka_unit_test(an_empty_queue_is_not_for_packets),
		cmocka_unit_test(each_target_has_its_own_way),
		cmocka_unit_test(messages_of_uc_cross_no_wire),
		cmocka_unit_test(what_uc_cannot_do_is_for_packets_from_then_on),
		cmocka_unit_test(
			a_wrong_key_is_told_though_the_peers_process_has_gone),
		cmocka_unit_test(
			uc_ends_its_work_when_the_peers_process_has_gone),
		cmocka_unit_test(our_own_fault_fails_us_and_not_the_peer),
		cmocka_unit_test(a_failing_peer_gives_back_its_receives),
		cmocka_unit_test(an_atomic_waits_for_its_owner),
		cmocka_unit_test(an_atomic_on_memory_that_went_away_fails_both),
		cmocka_unit_test(a_stopped_peer_is_served),
		cmocka_unit_test(
			an_error_flushes_the_receives_when_the_peer_has_left),
		cmocka_unit_test(
			a_window_is_taken_away_when_accesses_by_it_are_over),
		cmocka_unit_test(who_finds_somebody_at_work_asks_again),
		cmocka_unit_test(an_owner_who_wants_it_comes_before_its_peers),
	};

	duo_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
