/* SPDX-License-Identifier: BSD-2-Clause */
/* Eager messages: without packets a message of few bytes stays in its receive's
 * slot, and a longer one in a bounce buffer, until the target polls. */
#include "test.h"

#include <string.h>
#include <unistd.h>

#include "ibt/ibt.h"
#include "scenario/outcome.h"

#define FEW 40
#define AT  100000
/* Bytes of a message that is too long for a slot, and shorter than a piece of
 * the engines of two_hcas: only a message of one piece can be eager. */
#define MANY 900

static const uint8_t nothing[MANY];

/* Side 0 has sent FEW bytes 0x11, and side 1 has not polled. */
static struct two_hcas *with_few_bytes_sent(void)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	memset(d->side[0].memory.bytes, 0x11, FEW);
	memset(d->side[0].memory.bytes + FEW, 0x22, FEW);
	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	two_hcas_post(d, 0);
	d->side[1].is_stopped = true;
	two_hcas_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	assert_memory_equal(d->side[1].memory.bytes + AT, nothing, FEW);
	return d;
}

static void few_bytes_are_placed_when_the_target_polls(void **state)
{
	struct two_hcas *d = with_few_bytes_sent();

	assert_done(d, 1, HCA_SUCCESS);
	assert_memory_equal(d->side[1].memory.bytes + AT,
			    d->side[0].memory.bytes, FEW);
	assert_int_equal(packets_sent(d), 0);
	two_hcas_free(d);
}

/* A peer writes into the words by which side 1 finds eager messages.  Without a
 * bound each of the 16 searches would look at 2^31 slots; the alarm ends the
 * test if all searches take more than 20 s. */
static void a_search_looks_at_no_more_slots_than_the_queue_has(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	const struct qp *qp = d->side[1].qp;
	const struct space_vec all = {0, UINT64_MAX};
	uint32_t far = shared_load(&qp->rq.collected) + 0x7fffffff;

	alarm(20);
	shared_store(&qp_target(qp)->completed, far);
	shared_store(&qp_target(qp)->eager_end, far);
	for (int i = 0; i < 8; i++) {
		assert_false(eager_is_any(&d->side[1].hca, qp));
		assert_false(eager_is_in_way(&d->side[1].hca, qp, &all, 1));
	}
	alarm(0);
	shared_store(&qp_target(qp)->completed, shared_load(&qp->rq.collected));
	shared_store(&qp_target(qp)->eager_end, 0);
	two_hcas_free(d);
}

/* A side that uses no eager messages posts SENDs of few bytes alone and as a
 * list.  The bytes are in memory before the target polls. */
static void without_eager_messages_few_bytes_are_copied_at_once(void **state)
{
	struct two_hcas *d;

	two_hcas_without(0, (struct engine_without){.eager = true});
	d = two_hcas_new(3, 16);
	memset(d->side[0].memory.bytes, 0x11, FEW);
	for (int i = 0; i < 4; i++)
		two_hcas_recv(d, 1, AT + (uint64_t)i * FEW, FEW);
	for (int i = 0; i < 4; i++) {
		two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
		if (i == 1 || i == 2)
			wq_commit(&d->side[0].qp->sq);
		else
			two_hcas_post(d, 0);
	}
	d->side[1].is_stopped = true;
	two_hcas_run(d, d->now_ns);
	for (int i = 0; i < 4; i++) {
		assert_done(d, 0, HCA_SUCCESS);
		assert_memory_equal(d->side[1].memory.bytes + AT + i * FEW,
				    d->side[0].memory.bytes, FEW);
	}
	assert_int_equal(shared_load(&d->side[1].hca.peer_area->has_eager), 0);
	for (int i = 0; i < 4; i++)
		assert_done(d, 1, HCA_SUCCESS);
	d->side[1].is_stopped = false;
	/* side 1 still leaves eager messages */
	memset(d->side[1].memory.bytes, 0x22, FEW);
	two_hcas_recv(d, 0, AT, FEW);
	two_hcas_send(d, 1, HCA_WR_SEND, 0, FEW, 0);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns);
	assert_memory_equal(d->side[0].memory.bytes + AT, nothing, FEW);
	assert_done(d, 1, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	assert_memory_equal(d->side[0].memory.bytes + AT,
			    d->side[1].memory.bytes, FEW);
	assert_int_equal(packets_sent(d), 0);
	two_hcas_free(d);
	two_hcas_without(0, (struct engine_without){0});
}

/* Side 0's next request reads or writes `bytes` bytes of side 1's memory.  The
 * first of these bytes is the place of the last byte of the eager message.  The
 * request must wait until the eager message is placed. */
static void expect_after_eager(enum hca_wr op, uint32_t bytes)
{
	struct two_hcas *d = with_few_bytes_sent();
	uint8_t *initiator_byte = d->side[0].memory.bytes + FEW;
	uint8_t *target_byte = d->side[1].memory.bytes + AT + FEW - 1;

	if (op == HCA_WR_SEND)
		two_hcas_recv(d, 1, AT + FEW - 1, bytes);
	two_hcas_send(d, 0, op, FEW, bytes, AT + FEW - 1);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_false(two_hcas_poll(d, 0, &(struct cqe){0}));
	d->side[1].is_stopped = false;
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_int_equal(*target_byte, op == HCA_WR_RDMA_READ ? 0x11 : 0x22);
	assert_int_equal(*initiator_byte, op == HCA_WR_RDMA_READ ? 0x11 : 0x22);
	assert_done(d, 1, HCA_SUCCESS);
	assert_int_equal(target_byte[-1], 0x11);
	assert_int_equal(*target_byte, op == HCA_WR_RDMA_READ ? 0x11 : 0x22);
	two_hcas_free(d);
}

static void a_request_for_the_same_memory_waits_for_eager_bytes(void **state)
{
	expect_after_eager(HCA_WR_RDMA_READ, 1);
	expect_after_eager(HCA_WR_RDMA_WRITE, 1);
	expect_after_eager(HCA_WR_RDMA_READ, 1000);
	expect_after_eager(HCA_WR_SEND, EAGER_MAX + 1);
}

static void a_request_for_other_memory_does_not_wait(void **state)
{
	struct two_hcas *d = with_few_bytes_sent();

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, FEW, FEW, AT + FEW);
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, FEW, FEW, AT - FEW);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	two_hcas_free(d);
}

static void an_atomic_sees_the_few_bytes_before_it(void **state)
{
	struct two_hcas *d = with_few_bytes_sent();

	two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 2 * FEW, 8, AT);
	two_hcas_post(d, 0);
	d->side[1].is_stopped = false;
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_memory_equal(d->side[0].memory.bytes + 2 * FEW,
			    d->side[0].memory.bytes, 8);
	two_hcas_free(d);
}

static void few_bytes_are_placed_before_memory_goes_away(void **state)
{
	struct two_hcas *d = with_few_bytes_sent();

	eager_settle(&d->side[1].hca);
	assert_memory_equal(d->side[1].memory.bytes + AT,
			    d->side[0].memory.bytes, FEW);
	memset(d->side[1].memory.bytes + AT, 0, FEW);
	assert_done(d, 1, HCA_SUCCESS);
	assert_memory_equal(d->side[1].memory.bytes + AT, nothing, FEW);
	two_hcas_free(d);
}

static void few_bytes_without_memory_fail_their_receive(void **state)
{
	struct two_hcas *d = with_few_bytes_sent();

	d->side[1].memory.size = AT + FEW - 1;
	assert_done(d, 1, HCA_LOC_PROT_ERR);
	d->side[1].is_stopped = false;
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_LOCAL_FAULT);
	assert_int_equal(d->side[1].explained.opcode, EXPLAIN_RECEIVE);
	assert_int_equal(d->side[1].explained.wr_id, 0x8000);
	assert_int_equal(d->side[1].explained.va, TWO_HCAS_BASE + AT);
	assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
	two_hcas_free(d);
}

/* The handler of QP_NOTIFY_LOST may still read the note about the first message
 * (rq_lost in struct qp) when another thread collects the second message. */
static void the_first_of_two_messages_without_memory_is_told(void **state)
{
	struct two_hcas *d = with_few_bytes_sent();

	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	d->side[1].memory.size = AT + FEW - 1;
	assert_done(d, 1, HCA_LOC_PROT_ERR);
	assert_done(d, 1, HCA_LOC_PROT_ERR);
	d->side[1].is_stopped = false;
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(d->side[1].explained.wr_id, 0x8000);
	two_hcas_free(d);
}

static void few_bytes_whose_key_has_gone_fail_their_receive(void **state)
{
	struct two_hcas *d = with_few_bytes_sent();

	mr_free(&d->side[1].hca, d->side[1].mr);
	assert_done(d, 1, HCA_LOC_PROT_ERR);
	assert_memory_equal(d->side[1].memory.bytes + AT, nothing, FEW);
	d->side[1].is_stopped = false;
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_LOCAL_KEY);
	two_hcas_free(d);
}

/* Posts a receive of side 1, and sends message i of MANY bytes from side 0 to
 * this receive. */
static void send_many(struct two_hcas *d, int i)
{
	memset(d->side[0].memory.bytes + i * MANY, i + 1, MANY);
	two_hcas_recv(d, 1, AT + (uint64_t)i * MANY, MANY);
	two_hcas_send(d, 0, HCA_WR_SEND, (uint64_t)i * MANY, MANY, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
}

static void expect_many(struct two_hcas *d, int i, const uint8_t *bytes)
{
	assert_memory_equal(d->side[1].memory.bytes + AT + i * MANY, bytes,
			    MANY);
}

/* Sends more messages than there are bounce buffers, twice: the buffers are
 * used again once the target has polled, and a message without a buffer is
 * copied at once. */
static void longer_messages_wait_in_buffers_of_their_own(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	const struct wq *rq = &d->side[1].qp->rq;
	int all = 2 * (WQ_BOUNCES + 1);

	assert_int_equal(rq->bounces, WQ_BOUNCES);
	d->side[1].is_stopped = true;
	for (int i = 0; i < all; i++) {
		bool is_copied = i % (WQ_BOUNCES + 1) == WQ_BOUNCES;

		send_many(d, i);
		expect_many(d, i,
			    is_copied ? d->side[0].memory.bytes + i * MANY
				      : nothing);
		assert_int_equal(d->side[0].side->direct.has_bounces,
				 !is_copied);
		if (!is_copied)
			continue;
		for (int k = 0; k <= (int)WQ_BOUNCES; k++)
			assert_done(d, 1, HCA_SUCCESS);
	}
	for (int i = 0; i < all; i++)
		expect_many(d, i, d->side[0].memory.bytes + i * MANY);
	assert_int_equal(packets_sent(d), 0);
	two_hcas_free(d);
}

static void longer_messages_to_mapped_memory_are_copied_at_once(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	d->side[1].elsewhere.is_mapped = true;
	d->side[1].is_stopped = true;
	for (int i = 0; i < 3; i++) {
		send_many(d, i);
		expect_many(d, i, d->side[0].memory.bytes + i * MANY);
		assert_done(d, 1, HCA_SUCCESS);
	}
	two_hcas_free(d);
}

/* The target's process writes a number of bounce buffers that is no power of
 * two or is greater than WQ_BOUNCES, or an offset by which a peer would write
 * outside the peers' part of the arena. */
static void unsound_bounce_buffers_are_not_used(void **state)
{
	static const struct {
		uint32_t bounces;
		aoff bounce;
	} bad[] = {{3, 0},
		   {1u << 31, 0},
		   {2 * WQ_BOUNCES, 0},
		   {1, UINT64_MAX - 63},
		   {1, 64},
		   {1, 8}};

	for (size_t i = 0; i < TEST_COUNT(bad); i++) {
		struct two_hcas *d = two_hcas_new(3, 16);
		struct wq *rq = &d->side[1].qp->rq;
		struct wq right = *rq;
		struct cqe c;

		rq->bounces = bad[i].bounces;
		if (bad[i].bounce)
			rq->bounce = bad[i].bounce;
		two_hcas_recv(d, 1, AT, MANY);
		two_hcas_send(d, 0, HCA_WR_SEND, 0, MANY, 0);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns);
		assert_false(two_hcas_poll(d, 0, &c));
		assert_false(two_hcas_poll(d, 1, &c));
		rq->bounces = right.bounces;
		rq->bounce = right.bounce;
		two_hcas_free(d);
	}
}

/* A peer writes a length that is longer than a bounce buffer. */
static void a_length_in_a_slot_is_limited_to_a_buffer(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	struct qp *qp = d->side[1].qp;
	struct wqe *w = rq_slot(&d->side[1].hca, qp);
	uint8_t *to = d->side[1].memory.bytes;

	two_hcas_recv(d, 1, 0, 2 * WQ_BOUNCE_BYTES);
	memset(wq_bounce(&d->side[1].hca, &qp->rq, rq_cursor(qp)), 0x33,
	       WQ_BOUNCE_BYTES);
	memset(to, 0, WQ_BOUNCE_BYTES + 1);
	w->bytes = UINT32_MAX;
	w->at = TWO_HCAS_BASE;
	assert_int_equal(eager_place(&d->side[1].hca, qp, w, rq_cursor(qp)), 0);
	assert_int_equal(to[WQ_BOUNCE_BYTES - 1], 0x33);
	assert_int_equal(to[WQ_BOUNCE_BYTES], 0);
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_search_looks_at_no_more_slots_than_the_queue_has),
		cmocka_unit_test(few_bytes_are_placed_when_the_target_polls),
		cmocka_unit_test(
			without_eager_messages_few_bytes_are_copied_at_once),
		cmocka_unit_test(
			a_request_for_the_same_memory_waits_for_eager_bytes),
		cmocka_unit_test(a_request_for_other_memory_does_not_wait),
		cmocka_unit_test(an_atomic_sees_the_few_bytes_before_it),
		cmocka_unit_test(few_bytes_are_placed_before_memory_goes_away),
		cmocka_unit_test(few_bytes_without_memory_fail_their_receive),
		cmocka_unit_test(
			the_first_of_two_messages_without_memory_is_told),
		cmocka_unit_test(
			few_bytes_whose_key_has_gone_fail_their_receive),
		cmocka_unit_test(longer_messages_wait_in_buffers_of_their_own),
		cmocka_unit_test(
			longer_messages_to_mapped_memory_are_copied_at_once),
		cmocka_unit_test(unsound_bounce_buffers_are_not_used),
		cmocka_unit_test(a_length_in_a_slot_is_limited_to_a_buffer),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
