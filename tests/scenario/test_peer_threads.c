/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads of an initiator work in one target's arena without packets, each
 * at a queue pair with a post lock and an access slot of its own:
 *
 * initiator: first thread  --qp------> target, whose two queue pairs share
 *            second thread --second--> a completion queue (and an SRQ)
 *
 * The second thread runs while the first thread stands at a step of its
 * request.  The second thread must not wait for the first.  If the initiator is
 * stopped or dies meanwhile, the target must continue to work, and no request
 * may stay half done.
 */
#include "test.h"

#include <string.h>

#include "scenario/crash_point.h"

#define SECOND_QPN	0x2003u /* the target's */
#define SECOND_OUR_QPN	0x3002u
#define SECOND_PSN	99
#define SECOND_AT	78000
#define SECOND_FROM	8192 /* in the initiator's memory */
#define SECOND_BYTES	16
#define SECOND_RECEIVES 2
#define SECOND_ID	0x9000u

static const struct crash_point_operation operations[] = {
	{HCA_WR_SEND, CRASH_POINT_FEW | CRASH_POINT_HEARD},
	{HCA_WR_SEND, CRASH_POINT_FEW | CRASH_POINT_HEARD | CRASH_POINT_SHARED},
	{HCA_WR_RDMA_WRITE, CRASH_POINT_FEW | CRASH_POINT_HEARD},
	{HCA_WR_RDMA_READ, CRASH_POINT_FEW | CRASH_POINT_HEARD},
	{HCA_WR_ATOMIC_FADD, CRASH_POINT_MAPPED | CRASH_POINT_HEARD},
};

static const enum hca_wr second_operations[] = {HCA_WR_SEND, HCA_WR_RDMA_WRITE};

/* The second thread's connection. */
static struct {
	struct crash_point *s;
	enum hca_wr op;
	struct cq *cq; /* the initiator's */
	struct qp *qp, *target;
	struct ibt_qp *side, *target_side;
	struct hca view; /* the target's adapter, as that thread sees it */
	bool is_inside;	 /* the thread is inside its request */
	bool is_done; /* the post left no work for a holder of the progress lock
		       */
} second;

static void modify_qp(struct two_hcas_side *s, struct ibt_qp *side,
		      struct hca_qp_attr *a, uint32_t mask)
{
	const char *why;

	assert_int_equal(engine_qp_modify(s->engine, side, a,
					  mask | HCA_QP_STATE, s->ip,
					  second.s->d->now_ns, &why),
			 0);
}

/* Moves the second queue pair of side i to RTS. */
static void connect_second(int i, struct ibt_qp *side, uint32_t peer)
{
	struct two_hcas *d = second.s->d;
	struct hca_qp_attr a = {
		.qp_state = HCA_QP_INIT, .port_num = 1, .access_flags = 15};

	modify_qp(&d->side[i], side, &a,
		  HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS);
	a = (struct hca_qp_attr){.qp_state = HCA_QP_RTR,
				 .path_mtu = 1,
				 .dest_qpn = peer,
				 .rq_psn = SECOND_PSN,
				 .max_dest_rd_atomic = 4};
	a.ah.is_global = a.ah.local = 1;
	memcpy(a.ah.dgid, d->side[!i].ip, 16);
	modify_qp(&d->side[i], side, &a,
		  HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
			  HCA_QP_RQ_PSN | HCA_QP_MAX_DEST_RD_ATOMIC |
			  HCA_QP_MIN_RNR_TIMER);
	a = (struct hca_qp_attr){.qp_state = HCA_QP_RTS,
				 .sq_psn = SECOND_PSN,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 4};
	modify_qp(&d->side[i], side, &a,
		  HCA_QP_SQ_PSN | HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT |
			  HCA_QP_RNR_RETRY | HCA_QP_MAX_QP_RD_ATOMIC);
}

static struct qp *make_qp(struct two_hcas_side *s, uint32_t qpn, struct cq *cq)
{
	struct hca_qp_cap cap = {4, SECOND_RECEIVES, 1, 1, 0, s->srq};
	struct qp *qp = qp_new(&s->hca, qpn, HCA_QPT_RC, s->qp->pd, cq, cq,
			       &cap, false);

	assert_non_null(qp);
	return qp;
}

static void post_receive(uint32_t i)
{
	struct two_hcas_side *t = second.s->target;
	struct wqe *w = wq_reserve(&t->hca, &second.target->rq);

	memset(w, 0, sizeof(*w));
	w->wr_id = SECOND_ID + i;
	w->num_sge = 1;
	*wqe_sges(w) = (struct wq_sge){TWO_HCAS_BASE + SECOND_AT, SECOND_BYTES,
				       t->mr->lkey};
	wq_commit_recv(&t->hca, &second.target->rq, w->wr_id);
}

static void prepare_request(enum hca_wr op, uint32_t bytes)
{
	struct two_hcas_side *f = &second.s->d->side[0];
	struct wqe *w = wq_reserve(&f->hca, &second.qp->sq);

	memset(w, 0, sizeof(*w));
	w->opcode = (uint8_t)op;
	w->flags = HCA_SEND_SIGNALED;
	w->num_sge = 1;
	w->bytes = bytes;
	w->rkey = second.s->target->mr->rkey;
	w->va = TWO_HCAS_BASE + SECOND_AT;
	*wqe_sges(w) = (struct wq_sge){TWO_HCAS_BASE + SECOND_FROM, bytes,
				       f->mr->lkey};
	wq_commit(&second.qp->sq);
}

/* Makes the second connection, and executes an empty WRITE over it. */
static void make_second(struct crash_point *s, enum hca_wr op)
{
	struct two_hcas_side *f = &s->d->side[0], *t = s->target;
	struct access *access;
	struct cqe c;

	memset(&second, 0, sizeof(second));
	second.s = s;
	second.op = op;
	second.view = t->peers_view;
	access = access_claim(&second.view);
	assert_non_null(access);
	/* both access slots belong to the initiator */
	atomic_store(&access->process.owner, alock_holder(&t->access->process));
	second.cq = cq_new(&f->hca, 16, 79, true);
	second.qp = make_qp(f, SECOND_OUR_QPN, second.cq);
	second.side = engine_qp_add(f->engine, second.qp);
	assert_true(engine_qp_post_lock(second.side) !=
		    engine_qp_post_lock(f->side));
	second.target = make_qp(t, SECOND_QPN, t->cq);
	second.target_side = engine_qp_add(t->engine, second.target);
	connect_second(0, second.side, SECOND_QPN);
	connect_second(1, second.target_side, SECOND_OUR_QPN);
	for (uint32_t i = 0; !t->srq && i < SECOND_RECEIVES; i++)
		post_receive(i);
	memset(f->memory.bytes + SECOND_FROM, 0x33, SECOND_BYTES);
	assert_true(engine_set_path(f->engine, SECOND_OUR_QPN, &second.view,
				    access, s->d, true));
	prepare_request(HCA_WR_RDMA_WRITE, 0);
	engine_doorbell(f->engine, second.side, s->d->now_ns);
	two_hcas_run(s->d, s->d->now_ns);
	assert_int_equal(cq_poll(&f->hca, second.cq, &c, 1), 1);
	assert_int_equal(c.status, HCA_SUCCESS);
}

/* The second thread posts its request, under its own post lock alone. */
static void run_second(void)
{
	void *to_wake;

	second.is_inside = true;
	prepare_request(second.op, SECOND_BYTES);
	second.is_done =
		engine_post_apart(second.s->d->side[0].engine, second.side,
				  second.s->d->now_ns, &to_wake);
	second.is_inside = false;
}

static void end_second(void)
{
	crash_point_turns(1);
	engine_qp_remove(second.s->target->engine, second.target_side);
	if (!second.s->d->side[0].is_dead)
		engine_qp_remove(second.s->d->side[0].engine, second.side);
	mw_free(&second.s->target->hca, second.s->window);
	crash_point_end(second.s);
}

/* Posts the first thread's request.  The second thread runs at step j of that
 * request, and the victim ends at step k, counted over both threads.  True: the
 * victim has ended. */
static bool run_both(struct crash_point *s, uint32_t j, uint32_t k,
		     enum crash_point_victim victim)
{
	volatile bool ended = true;

	crash_point_now.victim = victim;
	crash_point_now.left = k;
	crash_point_now.other = run_second;
	crash_point_now.other_left = j;
	crash_point_turns(0);
	if (!setjmp(crash_point_now.death)) {
		crash_point_post(s);
		ended = false;
	}
	crash_point_now.victim = CRASH_POINT_NOBODY;
	return ended;
}

static bool is_in(uint32_t i, uint32_t at, uint32_t bytes)
{
	return i >= at && i < at + bytes;
}

static void assert_memory(const struct crash_point *s)
{
	const uint8_t *b = s->target->memory.bytes;
	uint32_t foreign = 0;

	for (uint32_t i = 0; i < TWO_HCAS_MEMORY; i++)
		foreign += b[i] &&
			   !is_in(i, CRASH_POINT_AT, CRASH_POINT_FEW_BYTES) &&
			   !is_in(i, CRASH_POINT_THIRD_AT,
				  CRASH_POINT_THIRD_BYTES) &&
			   !is_in(i, SECOND_AT, SECOND_BYTES);
	assert_int_equal(foreign, 0);
}

static void fail_target(struct two_hcas_side *t, struct ibt_qp *side,
			const struct qp *qp)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_ERR};

	crash_point_turns(1);
	if (qp->state != HCA_QP_ERR)
		modify_qp(t, side, &a, 0);
	two_hcas_run(second.s->d, second.s->d->now_ns);
}

/* Each receive has completed once, or still waits in the shared queue. */
static void assert_receives(struct crash_point *s)
{
	uint32_t seen[CRASH_POINT_RECEIVES] = {0};
	uint32_t seconds[SECOND_RECEIVES] = {0};
	struct two_hcas_side *t = s->target;
	struct cqe c;

	while (two_hcas_poll(s->d, 1, &c))
		if (is_in((uint32_t)c.wr_id, SECOND_ID, SECOND_RECEIVES))
			seconds[c.wr_id - SECOND_ID]++;
		else if (c.qpn != CRASH_POINT_THIRD_QPN || t->srq) {
			assert_uint_in_range(c.wr_id, 0x8000,
					     0x8000 + CRASH_POINT_RECEIVES - 1);
			seen[c.wr_id - 0x8000]++;
		}
	for (uint32_t i = t->srq ? srq_next(t->srq) : CRASH_POINT_RECEIVES;
	     i < CRASH_POINT_RECEIVES; i++)
		seen[i]++;
	for (uint32_t i = 0; i < CRASH_POINT_RECEIVES; i++)
		assert_int_equal(seen[i], 1);
	for (uint32_t i = 0; i < SECOND_RECEIVES; i++)
		assert_int_equal(seconds[i], !t->srq);
}

/* While the initiator is stopped, two waits of the target come to an end (one
 * for the peers inside at the third process's QP, one for the peers that copy
 * by the keys of the target's region), and the third process's message arrives.
 */
static void assert_target_works(struct crash_point *s)
{
	struct two_hcas_side *t = s->target;

	crash_point_now.is_stopped = true;
	crash_point_turns(1);
	access_wait(&t->hca, access_qp(CRASH_POINT_THIRD_QPN));
	access_wait(&t->hca, access_key(t->mr->lkey) | access_key(t->mr->rkey));
	crash_point_send_third(s);
	cq_collect(&t->hca, t->cq, NULL);
	crash_point_now.is_stopped = false;
}

enum end {
	NEVER_RAN, /* the second thread did not run */
	/* the initiator ended after the second thread's request, or not at all
	 */
	ENDED_LATER,
	ENDED_IN_BOTH /* the initiator ended inside both requests */
};

/* Lets the initiator end as run_both does, and checks the target.  Returns
 * where the second thread was at the end. */
static enum end both_end(const struct crash_point_operation *o, enum hca_wr op,
			 uint32_t j, uint32_t k)
{
	enum end end = NEVER_RAN;
	struct crash_point s;

	crash_point_prepare(&s, o);
	make_second(&s, op);
	s.d->side[0].is_dead = run_both(&s, j, k, CRASH_POINT_INITIATOR);
	if (!crash_point_now.other)
		end = second.is_inside ? ENDED_IN_BOTH : ENDED_LATER;
	crash_point_now.other = NULL;
	assert_target_works(&s);
	access_wait(&s.target->hca, ACCESS_ALL);
	crash_point_repair(&s);
	assert_int_equal(alock_holder(&qp_target(second.target)->lock), 0);
	assert_memory(&s);
	fail_target(s.target, s.target->side, s.target->qp);
	fail_target(s.target, second.target_side, second.target);
	assert_receives(&s);
	end_second();
	return end;
}

/* The initiator ends at each step of the second thread's request, for each step
 * of the first thread's request. */
static void two_threads_that_die_inside_leave_nothing_half_done(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(operations); i++)
		for (size_t n = 0; n < TEST_COUNT(second_operations); n++) {
			enum end end = ENDED_LATER;
			uint32_t j;

			for (j = 0; end != NEVER_RAN; j++) {
				uint32_t k = j;

				while ((end = both_end(&operations[i],
						       second_operations[n], j,
						       k)) == ENDED_IN_BOTH)
					k++;
				assert_true(end == NEVER_RAN || k >= j + 6);
			}
			assert_true(j >= 6);
		}
}

static void assert_success(struct hca *h, struct cq *cq)
{
	struct cqe c;

	assert_int_equal(cq_poll(h, cq, &c, 1), 1);
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_int_equal(cq_poll(h, cq, &c, 1), 0);
}

/* Lets the second thread run at step j of the first thread's request, and
 * checks that both requests succeed.  True: there is such a step. */
static bool second_works(const struct crash_point_operation *o, enum hca_wr op,
			 uint32_t j)
{
	bool sends = o->op == HCA_WR_SEND, ran;
	struct two_hcas_side *f;
	struct crash_point s;
	uint32_t came = 0;
	struct cqe c;

	crash_point_prepare(&s, o);
	make_second(&s, op);
	run_both(&s, j, 0, CRASH_POINT_NOBODY);
	ran = !crash_point_now.other;
	crash_point_now.other = NULL;
	f = &s.d->side[0];
	assert_success(&f->hca, f->cq);
	if (ran) {
		assert_true(second.is_done);
		assert_success(&f->hca, second.cq);
	}
	two_hcas_run(s.d, s.d->now_ns);
	crash_point_turns(1);
	while (two_hcas_poll(s.d, 1, &c))
		came += c.status == HCA_SUCCESS;
	assert_int_equal(came, sends + (ran && op == HCA_WR_SEND));
	end_second();
	return ran;
}

static void a_thread_works_while_another_stands_at_any_step(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(operations); i++)
		for (size_t n = 0; n < TEST_COUNT(second_operations); n++) {
			uint32_t j = 0;

			while (second_works(&operations[i],
					    second_operations[n], j))
				j++;
			assert_true(j >= 6);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_thread_works_while_another_stands_at_any_step),
		cmocka_unit_test(
			two_threads_that_die_inside_leave_nothing_half_done),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
