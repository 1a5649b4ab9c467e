/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums of completion counters (hca/comp.h): each operation counts once, even if
 * packets are lost or arrive twice. */
#include "test.h"

#include "scenario/outcome.h"
#include "scenario/two_hcas.h"
#include "util/rng.h"

enum { DONE, BYTES, FAILED };

static uint64_t sum_of(const struct two_hcas *d, int i, enum comp_op op,
		       int which)
{
	const struct comp_sum *s = &qp_target(d->side[i].qp)->comp.of[op];

	return which == DONE	? atomic_load(&s->done)
	       : which == BYTES ? atomic_load(&s->bytes)
				: atomic_load(&s->failed);
}

static void assert_sums(const struct two_hcas *d, int i, enum comp_op op,
			uint64_t done, uint64_t bytes, uint64_t failed)
{
	assert_int_equal(sum_of(d, i, op, DONE), done);
	assert_int_equal(sum_of(d, i, op, BYTES), bytes);
	assert_int_equal(sum_of(d, i, op, FAILED), failed);
}

static struct two_hcas *new_counted(uint32_t type)
{
	struct two_hcas *d = two_hcas_new_of(type, 1, 64);

	for (int i = 0; i < 2; i++)
		shared_store(&qp_target(d->side[i].qp)->comp.ops,
			     (1u << COMP_OPS) - 1);
	return d;
}

static void drain_cqs(struct two_hcas *d)
{
	struct cqe c;

	two_hcas_run(d, d->now_ns + LONG);
	for (int i = 0; i < 2; i++)
		while (two_hcas_poll(d, i, &c))
			;
}

/* A fifth of the frames is lost, and a fifth arrives twice. */
static int lose_some(void *context, int from, const struct engine_frame *f)
{
	uint32_t n = rng_below(context, 5);

	return n == 0 ? 0 : n == 1 ? 2 : 1;
}

/* Messages of one packet and of many, posted in rows of six. */
static void each_operation_is_counted_once(void **state)
{
	static const uint32_t lengths[] = {0, 1, 100, 5000};
	struct two_hcas *d = new_counted(HCA_QPT_RC);
	uint64_t bytes = 0, each;
	struct rng rng;

	rng_init(&rng, 7);
	d->context = &rng;
	d->fate = lose_some;
	for (uint32_t i = 0; i < TEST_COUNT(lengths); i++) {
		uint32_t length = lengths[i];

		two_hcas_post_row(d, 6, HCA_WR_RDMA_WRITE, length, 20000);
		drain_cqs(d);
		two_hcas_post_row(d, 6, HCA_WR_RDMA_READ, length, 30000);
		drain_cqs(d);
		for (int k = 0; k < 12; k++)
			two_hcas_recv(d, 1, 40000, 8000);
		two_hcas_post_row(d, 6, HCA_WR_SEND, length, 0);
		drain_cqs(d);
		two_hcas_post_row(d, 6, HCA_WR_RDMA_WRITE_IMM, length, 50000);
		drain_cqs(d);
		bytes += 6 * length;
	}
	each = 6 * TEST_COUNT(lengths);
	assert_sums(d, 0, COMP_WRITE, 2 * each, 2 * bytes, 0);
	assert_sums(d, 0, COMP_READ, each, bytes, 0);
	assert_sums(d, 0, COMP_SEND, each, bytes, 0);
	assert_sums(d, 0, COMP_RECV, 0, 0, 0);
	assert_sums(d, 0, COMP_REMOTE_WRITE, 0, 0, 0);
	assert_sums(d, 1, COMP_REMOTE_WRITE, 2 * each, 2 * bytes, 0);
	assert_sums(d, 1, COMP_RECV, 2 * each, 2 * bytes, 0);
	assert_sums(d, 1, COMP_WRITE, 0, 0, 0);
	two_hcas_free(d);
}

static void atomics_are_not_counted(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_ATOMIC_CAS, HCA_WR_ATOMIC_FADD,
					  HCA_WR_ATOMIC_WRITE};
	struct two_hcas *d = new_counted(HCA_QPT_RC);

	for (uint32_t i = 0; i < TEST_COUNT(ops); i++)
		two_hcas_post_row(d, 3, ops[i], 8, 4096);
	drain_cqs(d);
	for (int i = 0; i < 2; i++)
		for (int op = 0; op < COMP_OPS; op++)
			assert_sums(d, i, (enum comp_op)op, 0, 0, 0);
	assert_int_equal(d->side[0].qp->state, HCA_QP_RTS);
	two_hcas_free(d);
}

static void only_selected_operations_are_summed(void **state)
{
	struct two_hcas *d = new_counted(HCA_QPT_RC);

	shared_store(&qp_target(d->side[0].qp)->comp.ops, 1u << COMP_READ);
	shared_store(&qp_target(d->side[1].qp)->comp.ops,
		     1u << COMP_REMOTE_WRITE);
	two_hcas_post_row(d, 3, HCA_WR_RDMA_WRITE, 10, 4096);
	two_hcas_post_row(d, 2, HCA_WR_RDMA_READ, 10, 4096);
	drain_cqs(d);
	assert_sums(d, 0, COMP_WRITE, 0, 0, 0);
	assert_sums(d, 0, COMP_READ, 2, 20, 0);
	assert_sums(d, 1, COMP_REMOTE_WRITE, 3, 30, 0);
	two_hcas_free(d);
}

/* The sums of failures count the request that failed, and the requests and
 * receives that were flushed after it. */
static void failures_are_summed_apart(void **state)
{
	struct two_hcas *d = new_counted(HCA_QPT_RC);

	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 4; k++)
			two_hcas_recv(d, i, 40000, 8000);
	two_hcas_post_row(d, 2, HCA_WR_RDMA_WRITE, 10, 4096);
	drain_cqs(d);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 10, 4096)->rkey ^= 0x5555;
	two_hcas_post(d, 0);
	two_hcas_post_row(d, 2, HCA_WR_RDMA_READ, 10, 4096);
	two_hcas_post_row(d, 3, HCA_WR_SEND, 10, 0);
	drain_cqs(d);
	assert_sums(d, 0, COMP_WRITE, 2, 20, 1);
	assert_sums(d, 0, COMP_READ, 0, 0, 2);
	assert_sums(d, 0, COMP_SEND, 0, 0, 3);
	assert_sums(d, 0, COMP_RECV, 0, 0, 4);
	assert_sums(d, 1, COMP_RECV, 0, 0, 4);
	assert_sums(d, 1, COMP_REMOTE_WRITE, 2, 20, 0);
	two_hcas_free(d);
}

/* A flush error finds the completion queue full, so the queue pair enters ERR
 * during the flush of SQE, and is flushed again. */
static void a_flush_during_a_flush_counts_no_request_twice(void **state)
{
	struct two_hcas *d = new_counted(HCA_QPT_UC);

	d->side[0].cq->cqe = 2;
	wqe_sges(two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0))->lkey ^= 1;
	two_hcas_post(d, 0);
	two_hcas_post_row(d, 5, HCA_WR_SEND, 100, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(d->side[0].qp->state, HCA_QP_ERR);
	assert_sums(d, 0, COMP_SEND, 0, 0, 6);
	two_hcas_free(d);
}

static void unreliable_messages_are_counted_where_they_arrive(void **state)
{
	struct two_hcas *d = new_counted(HCA_QPT_UC);

	for (int k = 0; k < 4; k++)
		two_hcas_recv(d, 1, 40000, 8000);
	two_hcas_post_row(d, 3, HCA_WR_SEND, 3000, 0);
	drain_cqs(d);
	two_hcas_post_row(d, 2, HCA_WR_RDMA_WRITE, 3000, 50000);
	drain_cqs(d);
	assert_sums(d, 0, COMP_SEND, 3, 9000, 0);
	assert_sums(d, 0, COMP_WRITE, 2, 6000, 0);
	assert_sums(d, 1, COMP_RECV, 3, 9000, 0);
	assert_sums(d, 1, COMP_REMOTE_WRITE, 2, 6000, 0);
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_operation_is_counted_once),
		cmocka_unit_test(atomics_are_not_counted),
		cmocka_unit_test(only_selected_operations_are_summed),
		cmocka_unit_test(failures_are_summed_apart),
		cmocka_unit_test(
			a_flush_during_a_flush_counts_no_request_twice),
		cmocka_unit_test(
			unreliable_messages_are_counted_where_they_arrive),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
