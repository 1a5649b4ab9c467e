/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder checks only that part of a receive's scatter list which the
 * bytes of the message fill.  The requester checks the scatter list of a READ
 * or an atomic when it places the response.
 */
#include "test.h"

#include <string.h>

#include "scenario/outcome.h"

#define GOOD	   100000 /* where the first element lies */
#define GOOD_BYTES 700u
#define GRH_BYTES  40u

enum bad { BAD_KEY, BAD_RANGE };

/* Adds a bad element to the receive that was posted last. */
static void spoil_receive(struct two_hcas_side *s, enum bad bad)
{
	struct wq *rq = s->srq ? &s->srq->wq : &s->qp->rq;
	struct wqe *w = wq_at(&s->hca, rq, shared_own(&rq->head) - 1);
	struct wq_sge *more = wqe_sges(w) + w->num_sge++;

	*more = (struct wq_sge){TWO_HCAS_BASE, 100, s->mr->lkey};
	if (bad == BAD_KEY)
		more->lkey ^= 0x5a00;
	else
		more->va += TWO_HCAS_MEMORY - 1;
}

/* Posts a receive of two elements: a good one of `good` bytes, and a bad one.
 * If `good` is 0, the receive has the bad element alone. */
static void post_receive(struct two_hcas *d, uint32_t good, enum bad bad)
{
	struct two_hcas_side *s = &d->side[1];
	bool is_empty = !good;

	two_hcas_recv(d, 1, GOOD, is_empty ? 1 : good);
	if (is_empty) {
		struct wq *rq = s->srq ? &s->srq->wq : &s->qp->rq;

		wq_at(&s->hca, rq, shared_own(&rq->head) - 1)->num_sge = 0;
	}
	spoil_receive(s, bad);
}

static struct two_hcas *make_hcas(uint32_t type, bool shared)
{
	return shared ? two_hcas_new_shared(1, 16)
		      : two_hcas_new_of(type, 1, 16);
}

static void run_request(struct two_hcas *d, enum hca_wr op, uint32_t bytes)
{
	two_hcas_fill(d, 0, 0, bytes);
	two_hcas_send(d, 0, op, 0, bytes, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
}

static const struct service {
	uint32_t type;
	bool shared;	 /* receives are from an SRQ */
	uint32_t before; /* bytes that are placed before the message */
	uint32_t most;	 /* bytes of the longest message */
} services[] = {
	{HCA_QPT_RC, false, 0, GOOD_BYTES},
	{HCA_QPT_RC, true, 0, GOOD_BYTES},
	{HCA_QPT_UC, false, 0, GOOD_BYTES},
	{HCA_QPT_UD, false, GRH_BYTES, 256},
};

static void a_receive_is_checked_for_the_bytes_that_come(void **state)
{
	static const uint32_t lengths[] = {0, 1, 255, 256, 257, GOOD_BYTES};

	for (size_t k = 0; k < TEST_COUNT(services) * TEST_COUNT(lengths) * 2;
	     k++) {
		const struct service *s =
			&services[k / 2 % TEST_COUNT(services)];
		uint32_t bytes = lengths[k / 2 / TEST_COUNT(services)];
		struct two_hcas *d = make_hcas(s->type, s->shared);
		struct cqe c;

		if (bytes > s->most)
			bytes = s->most;
		post_receive(d, s->before + bytes, k % 2 ? BAD_KEY : BAD_RANGE);
		run_request(d, HCA_WR_SEND, bytes);
		assert_done(d, 0, HCA_SUCCESS);
		assert_true(two_hcas_poll(d, 1, &c));
		assert_int_equal(c.status, HCA_SUCCESS);
		assert_int_equal(c.byte_len, s->before + bytes);
		assert_memory_equal(d->side[0].memory.bytes,
				    d->side[1].memory.bytes + GOOD + s->before,
				    bytes);
		two_hcas_free(d);
	}
}

static void a_byte_for_a_bad_element_is_a_local_protection_error(void **state)
{
	for (size_t k = 0; k < TEST_COUNT(services) * 2; k++) {
		const struct service *s = &services[k / 2];
		struct two_hcas *d = make_hcas(s->type, s->shared);
		struct cqe c;

		post_receive(d, s->before + s->most - 1,
			     k % 2 ? BAD_KEY : BAD_RANGE);
		if (k % 2 ==
		    0) /* otherwise the element's first byte would be good */
			wqe_sges(wq_at(&d->side[1].hca,
				       s->shared ? &d->side[1].srq->wq
						 : &d->side[1].qp->rq,
				       0))[1]
				.va++;
		run_request(d, HCA_WR_SEND, s->most);
		assert_done(d, 0,
			    s->type == HCA_QPT_RC ? HCA_REM_OP_ERR
						  : HCA_SUCCESS);
		assert_true(two_hcas_poll(d, 1, &c));
		assert_int_equal(c.status, HCA_LOC_PROT_ERR);
		assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
		assert_int_equal(d->side[1].explained.cause, EXPLAIN_LOCAL_KEY);
		assert_int_equal(d->side[1].explained.opcode, EXPLAIN_RECEIVE);
		assert_int_equal(d->side[1].explained.wr_id, c.wr_id);
		assert_int_equal(d->side[1].explained.bytes, 1);
		two_hcas_free(d);
	}
}

static void the_explanation_names_the_receive(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	char text[256];

	post_receive(d, 0, BAD_KEY);
	run_request(d, HCA_WR_SEND, 1);
	explain_text(&d->side[1].explained, text, sizeof(text));
	assert_non_null(strstr(text, ": RECEIVE wr_id 0x8000 failed: "));
	two_hcas_free(d);
}

static void an_element_may_reach_past_its_region(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	two_hcas_recv(d, 1, TWO_HCAS_MEMORY - 16, 8192);
	run_request(d, HCA_WR_SEND, 16);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	two_hcas_recv(d, 1, TWO_HCAS_MEMORY - 16, 8192);
	run_request(d, HCA_WR_SEND, 17);
	assert_done(d, 0, HCA_REM_OP_ERR);
	assert_done(d, 1, HCA_LOC_PROT_ERR);
	two_hcas_free(d);
}

static void an_immediate_takes_a_receive_and_none_of_its_memory(void **state)
{
	static const uint32_t types[] = {HCA_QPT_RC, HCA_QPT_UC};

	for (size_t k = 0; k < TEST_COUNT(types) * 2; k++) {
		struct two_hcas *d = two_hcas_new_of(types[k / 2], 1, 16);
		struct cqe c;

		post_receive(d, 0, k % 2 ? BAD_KEY : BAD_RANGE);
		run_request(d, HCA_WR_RDMA_WRITE_IMM, GOOD_BYTES);
		assert_done(d, 0, HCA_SUCCESS);
		assert_true(two_hcas_poll(d, 1, &c));
		assert_int_equal(c.status, HCA_SUCCESS);
		assert_int_equal(c.byte_len, GOOD_BYTES);
		two_hcas_free(d);
	}
}

static struct wqe *read_into_bad_element(struct two_hcas *d, uint32_t bytes)
{
	struct wqe *w = two_hcas_send(d, 0, HCA_WR_RDMA_READ, 0, bytes, 0);

	wqe_sges(w)->lkey ^= 0x5a00;
	return w;
}

static void
a_read_into_a_bad_element_fails_when_its_response_comes(void **state)
{
	static const uint32_t lengths[] = {8, GOOD_BYTES, 12345};

	for (size_t k = 0; k < TEST_COUNT(lengths); k++) {
		struct two_hcas *d = two_hcas_new(1, 16);

		read_into_bad_element(d, lengths[k]);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + LONG);
		assert_done(d, 0, HCA_LOC_PROT_ERR);
		assert_int_equal(d->side[0].explained.cause, EXPLAIN_LOCAL_KEY);
		assert_int_equal(d->side[0].explained.opcode, HCA_WR_RDMA_READ);
		assert_int_equal(d->side[0].qp->state, HCA_QP_ERR);
		assert_int_equal(d->side[1].qp->state, HCA_QP_RTS);
		two_hcas_free(d);
	}
}

static void a_refusal_of_the_peer_precedes_a_bad_element(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	read_into_bad_element(d, GOOD_BYTES)->rkey ^= 0x5a00;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_REM_ACCESS_ERR);
	assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
	two_hcas_free(d);
}

static void an_atomic_with_a_bad_element_is_executed(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct wqe *w = two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 0, 8, 8);
	uint64_t left = 5;

	memcpy(d->side[1].memory.bytes + 8, &left, 8);
	w->swap_add = 2;
	wqe_sges(w)->lkey ^= 0x5a00;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_LOC_PROT_ERR);
	memcpy(&left, d->side[1].memory.bytes + 8, 8);
	assert_int_equal(left, 7);
	assert_int_equal(d->side[1].qp->state, HCA_QP_RTS);
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receive_is_checked_for_the_bytes_that_come),
		cmocka_unit_test(
			a_byte_for_a_bad_element_is_a_local_protection_error),
		cmocka_unit_test(the_explanation_names_the_receive),
		cmocka_unit_test(an_element_may_reach_past_its_region),
		cmocka_unit_test(
			an_immediate_takes_a_receive_and_none_of_its_memory),
		cmocka_unit_test(
			a_read_into_a_bad_element_fails_when_its_response_comes),
		cmocka_unit_test(a_refusal_of_the_peer_precedes_a_bad_element),
		cmocka_unit_test(an_atomic_with_a_bad_element_is_executed),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
