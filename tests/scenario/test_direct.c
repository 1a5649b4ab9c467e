/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests without packets (src/direct), where they differ from requests by
 * packets. */
#include "test.h"

#include <string.h>

#include "hdr/aeth.h"
#include "ibt/ibt.h"
#include "scenario/outcome.h"

#define FEW 40
#define AT  100000

static void nothing_crosses_a_wire(void **state)
{
	static const uint32_t lengths[] = {0, 1, 999, 1000, 1001, 12345};
	struct two_hcas *d = two_hcas_new(1, 16);

	for (size_t k = 0; k < TEST_COUNT(lengths); k++) {
		two_hcas_fill(d, 0, 0, lengths[k]);
		two_hcas_recv(d, 1, 100000, 20000);
		two_hcas_send(d, 0, HCA_WR_SEND, 0, lengths[k], 0);
		two_hcas_post(d, 0);
		two_hcas_send(d, 0, HCA_WR_RDMA_READ, 200000, lengths[k],
			      100000);
		two_hcas_post(d, 0);
		/* LONG: the READ may wait until the owner places an eager
		 * message */
		two_hcas_run(d, d->now_ns + LONG);
		assert_done(d, 0, HCA_SUCCESS);
		assert_done(d, 0, HCA_SUCCESS);
		assert_done(d, 1, HCA_SUCCESS);
		assert_memory_equal(d->side[0].memory.bytes,
				    d->side[0].memory.bytes + 200000,
				    lengths[k]);
	}
	assert_int_equal(packets_sent(d), 0);
	two_hcas_free(d);
}

/* The first request is executed alone, the others in batches. */
static void the_count_of_requests_does_not_wrap(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct qp_target *t = qp_target(d->side[1].qp);

	for (uint32_t i = 1; i < 4; i++) {
		t->rx_packets = UINT32_MAX;
		two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 0);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + LONG);
		assert_done(d, 0, HCA_SUCCESS);
		assert_int_equal(t->rx_packets, 0);
		assert_int_equal(t->rx_wraps, i);
	}
	two_hcas_free(d);
}

static void without_a_receive_a_send_ends_after_its_tries(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	uint64_t began = d->now_ns;

	d->side[0].qp->attr.rnr_retry = 3;
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_RNR_RETRY_EXC_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_RNR);
	/* the first attempt, and 3 repetitions */
	assert_int_equal(d->side[0].explained.tries, 4);
	assert_true(d->now_ns - began >= 3 * aeth_rnr_timer_ns(12));
	two_hcas_free(d);
}

static void a_receive_posted_late_is_found_at_the_next_try(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	uint64_t at;

	two_hcas_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	two_hcas_recv(d, 1, 0, 64);
	at = d->now_ns + 1000;
	engine_tick(d->side[0].engine, at);
	two_hcas_run(d, at);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	two_hcas_free(d);
}

static void a_peer_in_reset_does_not_answer(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	enter_state(d, 1, HCA_QP_RESET);
	d->liveness = ENGINE_PEER_UNKNOWN;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_RETRY_EXC_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_RETRY);
	two_hcas_free(d);
}

/* If the peer's QP is in ERR, the request fails once retry_cnt is used up.  If
 * the peer's process may only be slow, the initiator repeats the request for
 * longer (engine_config.patience_ns). */
static void a_peer_in_error_has_the_time_of_the_specification(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	uint64_t tries_ns = two_hcas_tries_ns(d, 0);

	enter_state(d, 1, HCA_QP_ERR);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 100000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 4 * tries_ns);
	assert_done(d, 0, HCA_RETRY_EXC_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_CLOSED);
	two_hcas_free(d);
}

static uint32_t looks; /* at side 1's queue pair */

static void count_look(struct space *s)
{
	looks++;
}

/* Runs the engine of side 0 a thousand times at one time, and returns how often
 * the engine looks at side 1's queue pair. */
static uint32_t looks_at_one_time(struct two_hcas *d)
{
	looks = 0;
	for (int i = 0; i < 1000; i++)
		engine_tick(d->side[0].engine, d->now_ns);
	return looks;
}

/* Posts a request to a queue pair that is destroyed.  Each look for this queue
 * pair reads the whole table of the peer's queue pairs. */
static struct two_hcas *with_destroyed_peer(uint8_t timeout)
{
	static struct space_ops ops;
	struct two_hcas *d = two_hcas_new(3, 16);

	ops = *d->side[1].elsewhere.space.ops;
	ops.refresh = count_look;
	d->side[1].elsewhere.space.ops = &ops;
	d->side[0].qp->attr.timeout = timeout;
	qp_withdraw(&d->side[1].hca, d->side[1].qp);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	return d;
}

static void a_destroyed_peer_is_looked_for_at_each_timeout(void **state)
{
	struct two_hcas *d = with_destroyed_peer(14);

	assert_int_equal(looks_at_one_time(d), 0);
	d->now_ns += aeth_ack_timeout_ns(14) - 1;
	assert_int_equal(looks_at_one_time(d), 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(looks, d->side[0].qp->attr.retry_cnt);
	assert_done(d, 0, HCA_RETRY_EXC_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_CLOSED);
	two_hcas_free(d);
}

static void
without_a_timeout_a_destroyed_peer_is_looked_for_rarely(void **state)
{
	struct two_hcas *d = with_destroyed_peer(0);

	assert_true(looks_at_one_time(d) <= 1);
	for (int i = 0; i < 3; i++) {
		d->now_ns += 1000000;
		assert_int_equal(looks_at_one_time(d), 1);
	}
	enter_state(d, 0, HCA_QP_ERR);
	assert_done(d, 0, HCA_WR_FLUSH_ERR);
	two_hcas_free(d);
}

/* The peer has become inaccessible, as by setuid(2). */
static void a_peer_that_closes_its_memory_fails_the_request(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct cqe c;

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 4000, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	d->side[1].elsewhere.is_closed = true;
	two_hcas_recv(d, 1, 0, 4000);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 4000, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_REM_OP_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_DENIED);
	/* the peer does not learn of the failure: its QP stays in RTS, and its
	 * receive does not complete */
	assert_int_equal(d->side[1].qp->state, HCA_QP_RTS);
	assert_false(two_hcas_poll(d, 1, &c));
	two_hcas_free(d);
}

static void a_lost_peer_is_reported_when_the_tries_are_used_up(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	struct cqe c;

	two_hcas_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	two_hcas_end_process(d, 1);
	two_hcas_run(d, d->now_ns + two_hcas_tries_ns(d, 0) / 2);
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_run(d, d->now_ns + 4 * two_hcas_tries_ns(d, 0));
	assert_done(d, 0, HCA_RETRY_EXC_ERR);
	assert_done(d, 0, HCA_WR_FLUSH_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_GONE);
	two_hcas_free(d);
}

static void a_new_connection_releases_the_peer_of_the_previous_one(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	for (int k = 0; k < 3; k++) {
		two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 100000);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns);
		assert_done(d, 0, HCA_SUCCESS);
		assert_ptr_equal(engine_released(d->side[0].engine),
				 k ? d : NULL);
		for (int i = 0; i < 2; i++)
			enter_state(d, i, HCA_QP_RESET);
		for (int i = 0; i < 2; i++)
			two_hcas_connect(d, i, 3);
	}
	assert_null(engine_released(d->side[0].engine));
	two_hcas_free(d);
}

static void a_sleeping_owner_is_woken_for_an_event(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	for (uint32_t k = 0; k < 2; k++) {
		engine_asleep(d->side[1].engine, k);
		cq_arm(d->side[1].cq, false);
		two_hcas_recv(d, 1, 0, 64);
		two_hcas_send(d, 0, HCA_WR_SEND, 0, 64, 0);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns);
		assert_done(d, 1, HCA_SUCCESS);
		assert_int_equal(d->side[1].woken, k);
		assert_int_equal(d->side[1].events[ENGINE_CQ_EVENT], k + 1);
	}
	two_hcas_free(d);
}

static void a_fault_of_the_initiator_fails_the_initiator_alone(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_RDMA_WRITE, HCA_WR_RDMA_READ,
					  HCA_WR_SEND};

	for (size_t k = 0; k < TEST_COUNT(ops); k++) {
		struct two_hcas *d = two_hcas_new(3, 16);

		two_hcas_recv(d, 1, 0, 20000);
		d->side[0].memory.size = 5000;
		two_hcas_send(d, 0, ops[k], 0, 20000, 0);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + LONG);
		assert_done(d, 0, HCA_LOC_PROT_ERR);
		assert_int_equal(d->side[0].explained.cause,
				 EXPLAIN_LOCAL_FAULT);
		assert_int_equal(d->side[1].qp->state, HCA_QP_RTS);
		two_hcas_free(d);
	}
}

static void a_peer_in_error_flushes_its_receives(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	two_hcas_recv(d, 1, 0, 64);
	two_hcas_recv(d, 1, 0, 64);
	enter_state(d, 1, HCA_QP_ERR);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1000000);
	assert_done(d, 1, HCA_WR_FLUSH_ERR);
	assert_done(d, 1, HCA_WR_FLUSH_ERR);
	assert_false(two_hcas_poll(d, 1, &(struct cqe){0}));
	assert_false(two_hcas_poll(d, 0, &(struct cqe){0}));
	enter_state(d, 0, HCA_QP_ERR);
	assert_done(d, 0, HCA_WR_FLUSH_ERR);
	two_hcas_free(d);
}

static void an_atomic_waits_for_its_owner(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	uint64_t found, left = 5;
	uint32_t bits;

	memcpy(d->side[1].memory.bytes + 8, &left, 8);
	d->side[1].is_stopped = true;
	two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 0, 8, 8)->swap_add = 2;
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 16, 8, 16);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_false(two_hcas_poll(d, 0, &(struct cqe){0}));
	d->side[1].is_stopped = false;
	two_hcas_run(d, d->now_ns + 10000000);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	memcpy(&found, d->side[0].memory.bytes, 8);
	memcpy(&left, d->side[1].memory.bytes + 8, 8);
	assert_int_equal(found, 5);
	assert_int_equal(left, 7);
	assert_null(notify_take(&d->side[1].hca, &bits));
	two_hcas_free(d);
}

static void an_atomic_on_unmapped_memory_fails_both_qps(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	d->side[1].memory.size = 4096;
	two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 0, 8, 8192);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_REM_OP_ERR);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_REMOTE_FAULT);
	assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
	two_hcas_free(d);
}

static void a_stopped_peer_is_served(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	d->side[1].is_stopped = true;
	two_hcas_fill(d, 0, 0, 5000);
	two_hcas_recv(d, 1, 100000, 5000);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 5000, 0);
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 200000, 5000, 100000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	assert_memory_equal(d->side[0].memory.bytes,
			    d->side[0].memory.bytes + 200000, 5000);
	two_hcas_free(d);
}

/* The initiator finds an error in its own memory without the peer, and does not
 * wait until its retries end before it reports the error. */
static void a_wrong_local_key_is_reported_though_the_peer_has_gone(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	struct wqe *w;
	struct cqe c;

	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	two_hcas_end_process(d, 1);
	w = two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	wqe_sges(w)->lkey ^= 1;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + two_hcas_tries_ns(d, 0) / 2);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, HCA_LOC_PROT_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_LOCAL_KEY);
	two_hcas_free(d);
}

/* Posts a prepared request of side 0 as a thread without the progress lock
 * does.  Returns false if work or events are left for the progress lock. */
static bool post_apart(struct two_hcas *d)
{
	struct two_hcas_side *s = &d->side[0];
	void *to_wake;

	wq_commit(&s->qp->sq);
	assert_true(engine_qp_posts_apart(s->side));
	return engine_post_apart(s->engine, s->side, d->now_ns, &to_wake);
}

/* Connects, and executes a first request.  Then later requests can be posted
 * without the progress lock. */
static struct two_hcas *connect_and_write(void)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	two_hcas_post_row(d, 1, HCA_WR_RDMA_WRITE, FEW, AT);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	return d;
}

static void a_plain_request_needs_no_progress_lock(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_SEND, HCA_WR_RDMA_WRITE,
					  HCA_WR_RDMA_READ};
	static const uint32_t lengths[] = {1, 64, 999};
	struct two_hcas *d = connect_and_write();

	for (size_t i = 0; i < TEST_COUNT(ops); i++)
		for (size_t k = 0; k < TEST_COUNT(lengths); k++) {
			uint32_t bytes = lengths[k];

			/* a SEND is plain only if it is eager */
			if (ops[i] == HCA_WR_SEND && bytes > WQE_EAGER_BYTES)
				continue;
			two_hcas_fill(d, 0, 0, bytes);
			two_hcas_fill(d, 1, AT, bytes);
			two_hcas_recv(d, 1, 2 * AT, FEW * FEW);
			two_hcas_send(d, 0, ops[i], 0, bytes, AT);
			assert_true(post_apart(d));
			assert_true(engine_is_settled(d->side[0].engine));
			assert_done(d, 0, HCA_SUCCESS);
			if (ops[i] != HCA_WR_SEND)
				assert_memory_equal(
					d->side[0].memory.bytes,
					d->side[1].memory.bytes + AT, bytes);
		}
	two_hcas_free(d);
}

static void a_request_that_fails_is_left_for_the_progress_lock(void **state)
{
	struct two_hcas *d = connect_and_write();
	struct cqe c;

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, FEW, AT)->rkey ^= 0x100;
	assert_false(post_apart(d));
	assert_false(two_hcas_poll(d, 0, &c));
	assert_int_equal(d->side[0].qp->state, HCA_QP_RTS);
	engine_doorbell(d->side[0].engine, d->side[0].side, d->now_ns);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_REM_ACCESS_ERR);
	two_hcas_free(d);
}

static void
a_request_without_a_receive_is_left_for_the_progress_lock(void **state)
{
	struct two_hcas *d = connect_and_write();
	struct cqe c;

	two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	assert_false(post_apart(d));
	engine_doorbell(d->side[0].engine, d->side[0].side, d->now_ns);
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	two_hcas_free(d);
}

static void a_request_behind_one_that_waits_needs_no_progress_lock(void **state)
{
	struct two_hcas *d = connect_and_write();
	struct two_hcas_side *s = &d->side[0];
	struct cqe c;

	two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	assert_false(post_apart(d));
	engine_doorbell(s->engine, s->side, d->now_ns);
	two_hcas_run(d, d->now_ns);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	assert_true(post_apart(d));
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	two_hcas_free(d);
}

static void an_event_is_left_for_the_progress_lock(void **state)
{
	struct two_hcas *d = connect_and_write();
	struct two_hcas_side *s = &d->side[0];

	cq_arm(s->cq, false);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, FEW, AT);
	assert_false(post_apart(d));
	assert_int_equal(s->events[ENGINE_CQ_EVENT], 0);
	assert_done(d, 0, HCA_SUCCESS);
	engine_doorbell(s->engine, s->side, d->now_ns);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(s->events[ENGINE_CQ_EVENT], 1);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, FEW, AT);
	assert_true(post_apart(d));
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(s->events[ENGINE_CQ_EVENT], 1);
	two_hcas_free(d);
}

static uint64_t word_at(const struct two_hcas *d, int side, uint64_t at)
{
	uint64_t value;

	memcpy(&value, d->side[side].memory.bytes + at, sizeof(value));
	return value;
}

static void an_atomic_in_mapped_memory_needs_no_progress_lock(void **state)
{
	struct two_hcas *d = connect_and_write();

	d->side[1].elsewhere.is_mapped = true;
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t before = word_at(d, 1, AT);

		two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 8, 8, AT)->swap_add = 5;
		assert_true(post_apart(d));
		assert_done(d, 0, HCA_SUCCESS);
		assert_int_equal(word_at(d, 0, 8), before);
		assert_int_equal(word_at(d, 1, AT), before + 5);
	}
	d->side[1].elsewhere.is_mapped = false;
	two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 8, 8, AT)->swap_add = 5;
	assert_false(post_apart(d));
	two_hcas_free(d);
}

/* The initiator's memory has no place for the original value, so the completion
 * is left for the progress lock.  The holder of that lock does not execute the
 * atomic again, and the request fails unless the memory is there by then. */
static void an_atomic_without_place_for_its_value_is_executed_once(void **state)
{
	for (int is_back = 0; is_back < 2; is_back++) {
		struct two_hcas *d = connect_and_write();
		uint64_t size = d->side[0].memory.size;
		uint64_t before = word_at(d, 1, AT);

		d->side[1].elsewhere.is_mapped = true;
		d->side[0].memory.size = 8;
		two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 8, 8, AT)->swap_add = 5;
		assert_false(post_apart(d));
		assert_int_equal(word_at(d, 1, AT), before + 5);
		d->side[0].memory.size = is_back ? size : 8;
		engine_doorbell(d->side[0].engine, d->side[0].side, d->now_ns);
		two_hcas_run(d, d->now_ns + LONG);
		assert_done(d, 0, is_back ? HCA_SUCCESS : HCA_LOC_PROT_ERR);
		assert_int_equal(word_at(d, 1, AT), before + 5);
		two_hcas_free(d);
	}
}

/* Sends a datagram without packets, or tries to, to side 1's QPN or, if
 * `beyond` is not 0, to a QPN of side 1 without a QP. */
static void send_datagram(struct two_hcas *d, uint32_t beyond)
{
	struct two_hcas_side *s = &d->side[0];
	struct wqe *w = two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);

	wq_to(&s->qp->sq, w)->qpn += 2 * beyond;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
}

/* Sends a datagram to a QPN of a process whose arena cannot be mapped. */
static void send_to_stranger(struct two_hcas *d, uint32_t beyond)
{
	struct two_hcas_side *s = &d->side[0];
	struct wqe *w = two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	struct engine_frame f;
	struct engine_want want;

	wq_to(&s->qp->sq, w)->qpn += 2 * beyond;
	two_hcas_post(d, 0);
	assert_int_equal(engine_tx(s->engine, &f, 1, d->now_ns), 0);
	if (engine_wants_path(s->engine, &want))
		engine_set_path(s->engine, want.qpn, NULL, NULL, NULL, false);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
}

/* Returns how many links the engine of side 0 has given up since the last
 * call. */
static uint32_t links_released(struct two_hcas *d)
{
	uint32_t n = 0;

	while (engine_released(d->side[0].engine))
		n++;
	return n;
}

/* A server answers ever new clients, and sends nothing to a client that has
 * ended. */
static void datagrams_to_others_release_a_target_that_has_ended(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 3, 16);

	two_hcas_recv(d, 1, AT, 2 * FEW);
	send_datagram(d, 0);
	assert_done(d, 1, HCA_SUCCESS);
	assert_int_equal(packets_sent(d), 0);
	send_datagram(d, 1); /* becomes a packet, which the target drops */
	assert_int_equal(packets_sent(d), 1);
	send_datagram(d, 2);
	assert_int_equal(links_released(d), 0);
	two_hcas_end_process(d, 1);
	for (uint32_t i = 0; i < FEW; i++)
		send_to_stranger(d, 3 + i);
	assert_int_equal(links_released(d), 3);
	two_hcas_free(d);
}

static void datagrams_to_others_keep_a_target_that_lives(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 3, 16);

	for (uint32_t i = 0; i < FEW; i++)
		send_datagram(d, i);
	assert_int_equal(links_released(d), 0);
	assert_int_equal(d->asked_path, FEW);
	two_hcas_free(d);
}

/* A UD queue pair has at most 1024 links.  The links to processes whose arenas
 * cannot be mapped stay, and a further target gets packets. */
static void a_target_beyond_the_links_gets_packets(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 3, 16);
	uint64_t sent;

	for (uint32_t i = 1; i <= 1024; i++)
		send_to_stranger(d, i);
	sent = packets_sent(d);
	assert_int_equal(sent, 1024);
	two_hcas_recv(d, 1, AT, 2 * FEW);
	send_datagram(d, 0);
	assert_done(d, 1, HCA_SUCCESS);
	assert_int_equal(packets_sent(d), sent + 1);
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_crosses_a_wire),
		cmocka_unit_test(the_count_of_requests_does_not_wrap),
		cmocka_unit_test(without_a_receive_a_send_ends_after_its_tries),
		cmocka_unit_test(
			a_receive_posted_late_is_found_at_the_next_try),
		cmocka_unit_test(a_peer_in_reset_does_not_answer),
		cmocka_unit_test(
			a_peer_that_closes_its_memory_fails_the_request),
		cmocka_unit_test(
			a_peer_in_error_has_the_time_of_the_specification),
		cmocka_unit_test(
			a_destroyed_peer_is_looked_for_at_each_timeout),
		cmocka_unit_test(
			without_a_timeout_a_destroyed_peer_is_looked_for_rarely),
		cmocka_unit_test(
			a_lost_peer_is_reported_when_the_tries_are_used_up),
		cmocka_unit_test(
			a_new_connection_releases_the_peer_of_the_previous_one),
		cmocka_unit_test(a_sleeping_owner_is_woken_for_an_event),
		cmocka_unit_test(
			a_wrong_local_key_is_reported_though_the_peer_has_gone),
		cmocka_unit_test(
			a_fault_of_the_initiator_fails_the_initiator_alone),
		cmocka_unit_test(a_peer_in_error_flushes_its_receives),
		cmocka_unit_test(an_atomic_waits_for_its_owner),
		cmocka_unit_test(an_atomic_on_unmapped_memory_fails_both_qps),
		cmocka_unit_test(a_stopped_peer_is_served),
		cmocka_unit_test(a_plain_request_needs_no_progress_lock),
		cmocka_unit_test(
			a_request_that_fails_is_left_for_the_progress_lock),
		cmocka_unit_test(
			a_request_without_a_receive_is_left_for_the_progress_lock),
		cmocka_unit_test(
			a_request_behind_one_that_waits_needs_no_progress_lock),
		cmocka_unit_test(an_event_is_left_for_the_progress_lock),
		cmocka_unit_test(
			an_atomic_in_mapped_memory_needs_no_progress_lock),
		cmocka_unit_test(
			an_atomic_without_place_for_its_value_is_executed_once),
		cmocka_unit_test(
			datagrams_to_others_release_a_target_that_has_ended),
		cmocka_unit_test(datagrams_to_others_keep_a_target_that_lives),
		cmocka_unit_test(a_target_beyond_the_links_gets_packets),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
