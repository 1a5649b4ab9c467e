/* SPDX-License-Identifier: BSD-2-Clause */
/* RC QPs bind and invalidate memory windows in order with their other requests,
 * and a peer has access only while a window is bound. */
#include "test.h"

#include "scenario/outcome.h"
#include "scenario/two_hcas.h"
#include "util/rng.h"

static struct mr *new_window(struct two_hcas *d, int i)
{
	struct two_hcas_side *s = &d->side[i];
	struct mr *w = mw_new(&s->hca, s->qp->pd, 2);

	assert_non_null(w);
	return w;
}

/* Prepares a request that binds w to [0, 4096) of side i's memory. */
static struct wqe *prepare_bind(struct two_hcas *d, int i, const struct mr *w,
				uint32_t rkey)
{
	struct wqe *e = two_hcas_send(d, i, HCA_WR_BIND_MW, 0, 0, 0);

	e->imm_be = w->lkey;
	e->rkey = rkey;
	e->va = TWO_HCAS_BASE;
	e->compare = 4096;
	e->swap_add = (uint64_t)d->side[i].mr->lkey << 32 | HCA_REMOTE_WRITE;
	return e;
}

static void post_request(struct two_hcas *d, int i, enum hca_wr op,
			 uint32_t key)
{
	struct wqe *e =
		two_hcas_send(d, i, op, 0, op == HCA_WR_LOCAL_INV ? 0 : 100, 0);

	if (op == HCA_WR_RDMA_WRITE || op == HCA_WR_RDMA_READ)
		e->rkey = key;
	else
		e->imm_be = key;
	two_hcas_post(d, i);
}

static void a_peer_writes_until_it_invalidates(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct mr *w = new_window(d, 1);
	uint32_t key = w->lkey ^ 9;
	struct cqe c;

	prepare_bind(d, 1, w, key);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 1, HCA_SUCCESS, HCA_WC_BIND_MW);
	post_request(d, 0, HCA_WR_RDMA_WRITE, key);
	two_hcas_recv(d, 1, 8192, 4096);
	post_request(d, 0, HCA_WR_SEND_INV, key);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_SEND);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.wc_flags, HCA_WC_WITH_INV);
	assert_int_equal(c.imm_be, key);
	post_request(d, 0, HCA_WR_RDMA_WRITE, key);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_REM_ACCESS_ERR, 0);
	two_hcas_free(d);
}

/*
 * IBTA 9.9.6.3, class J: the responder completes its receive in error, fails
 * and sends no answer.
 */
static void refuse_invalidation_of(struct two_hcas *d, uint32_t key,
				   uint32_t why)
{
	struct cqe c;

	two_hcas_recv(d, 1, 8192, 4096);
	two_hcas_recv(d, 1, 8192, 4096);
	post_request(d, 0, HCA_WR_SEND, 0);
	post_request(d, 0, HCA_WR_SEND_INV, key);
	two_hcas_run(d, d->now_ns + two_hcas_tries_ns(d, 0) / 2);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_SEND);
	assert_false(two_hcas_poll(d, 0, &c));
	assert_int_equal(d->side[0].qp->state, HCA_QP_RTS);
	outcome_assert_done(d, 1, HCA_SUCCESS, HCA_WC_RECV);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.status, HCA_REM_INV_REQ_ERR);
	assert_int_equal(c.wc_flags, 0);
	assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_INVALIDATE);
	assert_int_equal(d->side[1].explained.key, key);
	assert_int_equal(d->side[1].explained.verdict, why);
	d->liveness = ENGINE_PEER_UNKNOWN;
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
}

static void a_wrong_key_to_invalidate_is_not_answered(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	refuse_invalidation_of(d, d->side[1].mr->rkey ^ 0x5a00, MR_BAD_KEY);
	two_hcas_free(d);
}

static void a_region_is_not_invalidated(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	refuse_invalidation_of(d, d->side[1].mr->rkey, MR_NO_RIGHT);
	two_hcas_free(d);
}

static void a_window_of_another_queue_pair_is_not_invalidated(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct mr *w = new_window(d, 1);
	uint32_t key = w->lkey ^ 9;

	prepare_bind(d, 1, w, key);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 1, HCA_SUCCESS, HCA_WC_BIND_MW);
	w->qpn ^= 1;
	refuse_invalidation_of(d, key, MR_BAD_QP);
	assert_int_equal(w->rkey, key);
	two_hcas_free(d);
}

static int lose_some(void *context, int from, const struct engine_frame *f)
{
	return rng_u32(context) % 4 != 0;
}

static void local_requests_complete_in_their_turn(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 64);
	struct mr *w = new_window(d, 0);
	struct rng r;

	rng_init(&r, 5);
	d->fate = lose_some;
	d->context = &r;
	for (uint32_t round = 0; round < 20; round++) {
		uint32_t key = w->lkey ^ (round & 0xff);

		for (int k = 0; k < 4; k++) {
			post_request(d, 0, HCA_WR_RDMA_WRITE,
				     d->side[1].mr->rkey);
			prepare_bind(d, 0, w, key);
			two_hcas_post(d, 0);
			post_request(d, 0, HCA_WR_LOCAL_INV, key);
		}
		post_request(d, 0, HCA_WR_RDMA_READ, d->side[1].mr->rkey);
		two_hcas_run(d, d->now_ns + LONG);
		for (int k = 0; k < 4; k++) {
			outcome_assert_done(d, 0, HCA_SUCCESS,
					    HCA_WC_RDMA_WRITE);
			outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_BIND_MW);
			outcome_assert_done(d, 0, HCA_SUCCESS,
					    HCA_WC_LOCAL_INV);
		}
		outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	}
	two_hcas_free(d);
}

static void a_fenced_binding_waits_for_the_read(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct mr *w = new_window(d, 0);

	post_request(d, 0, HCA_WR_RDMA_READ, d->side[1].mr->rkey);
	prepare_bind(d, 0, w, w->lkey ^ 1)->flags |= HCA_SEND_FENCE;
	two_hcas_post(d, 0);
	d->fate = outcome_drop_all;
	two_hcas_run(d, d->now_ns);
	assert_int_equal(w->rkey, 0);
	d->fate = NULL;
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_BIND_MW);
	assert_int_equal(w->rkey, w->lkey ^ 1);
	two_hcas_free(d);
}

static void a_refused_binding_ends_the_queue_pair_in_turn(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct mr *w = new_window(d, 0);

	post_request(d, 0, HCA_WR_RDMA_WRITE, d->side[1].mr->rkey);
	prepare_bind(d, 0, w, w->lkey)->compare = 0;
	two_hcas_post(d, 0);
	post_request(d, 0, HCA_WR_RDMA_WRITE, d->side[1].mr->rkey);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	outcome_assert_done(d, 0, HCA_MW_BIND_ERR, 0);
	outcome_assert_done(d, 0, HCA_WR_FLUSH_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_LOCAL_OP);
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_writes_until_it_invalidates),
		cmocka_unit_test(a_wrong_key_to_invalidate_is_not_answered),
		cmocka_unit_test(a_region_is_not_invalidated),
		cmocka_unit_test(
			a_window_of_another_queue_pair_is_not_invalidated),
		cmocka_unit_test(local_requests_complete_in_their_turn),
		cmocka_unit_test(a_refused_binding_ends_the_queue_pair_in_turn),
	};
	const struct CMUnitTest of_packets[] = {
		cmocka_unit_test(a_fenced_binding_waits_for_the_read),
	};

	two_hcas_mode(argc, argv);
	if (!two_hcas_is_direct() &&
	    cmocka_run_group_tests(of_packets, NULL, NULL))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
