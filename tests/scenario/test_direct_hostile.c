/* SPDX-License-Identifier: BSD-2-Clause */
/* A living process keeps the responder lock, or does not end a copy.  Meanwhile
 * the other processes wait without blocking their progress, and they continue
 * when the lock is released or the copy ends.  The target judges a
 * request that a hostile peer leaves, and tells in a whole sentence any
 * reason that a hostile peer notes. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "ibt/ibt.h"
#include "scenario/outcome.h"

#define LIVING	7
#define STOPPED 8

static bool never_finds_dead(alock_owner owner)
{
	return false;
}

static void fail_if_slow(alock_owner owner)
{
	fail_msg("the holder of the progress lock waits for owner %u",
		 (unsigned)owner);
}

static const struct alock_judge judge = {never_finds_dead, fail_if_slow, NULL,
					 never_finds_dead};

static void stop_lock_holder(struct two_hcas *d) NO_LOCK_ANALYSIS
{
	alock_open(STOPPED, &judge);
	assert_false(alock_take(&qp_target(d->side[1].qp)->lock));
	alock_open(LIVING, &judge);
}

static void release_responder(struct two_hcas *d) NO_LOCK_ANALYSIS
{
	alock_give(&qp_target(d->side[1].qp)->lock);
}

static void close_locks(void)
{
	alock_open(ALOCK_NAMELESS, NULL);
}

static void an_error_flushes_the_receives_when_the_peer_has_left(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	struct cqe c;

	two_hcas_recv(d, 1, 0, 64);
	stop_lock_holder(d);
	enter_state(d, 1, HCA_QP_ERR);
	two_hcas_send(d, 1, HCA_WR_RDMA_WRITE, 0, 64, 0);
	two_hcas_post(d, 1);
	assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
	assert_done(d, 1, HCA_WR_FLUSH_ERR);
	for (int i = 0; i < 20; i++) {
		d->now_ns += 1000000;
		two_hcas_run(d, d->now_ns);
	}
	assert_false(two_hcas_poll(d, 1, &c));
	release_responder(d);
	two_hcas_run(d, d->now_ns + 6000000);
	assert_done(d, 1, HCA_WR_FLUSH_ERR);
	assert_false(two_hcas_poll(d, 1, &c));
	close_locks();
	two_hcas_free(d);
}

static void an_initiator_asks_again_while_another_is_at_work(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	struct cqe c;

	stop_lock_holder(d);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 100000);
	two_hcas_post(d, 0);
	for (int i = 0; i < 20; i++) {
		d->now_ns += 1000000;
		two_hcas_run(d, d->now_ns);
	}
	assert_false(two_hcas_poll(d, 0, &c));
	release_responder(d);
	two_hcas_run(d, d->now_ns + 6000000);
	assert_done(d, 0, HCA_SUCCESS);
	close_locks();
	two_hcas_free(d);
}

static void an_owner_that_wants_the_lock_comes_before_its_peers(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);
	struct hca_qp_attr a = {.qp_state = HCA_QP_RESET};
	struct two_hcas_side *s = &d->side[1];
	const char *why;
	struct cqe c;

	stop_lock_holder(d);
	assert_int_equal(engine_qp_modify(s->engine, s->side, &a, HCA_QP_STATE,
					  s->ip, d->now_ns, &why),
			 -EBUSY);
	assert_int_equal(engine_qp_accessor(s->side), STOPPED);
	release_responder(d);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 64, 100000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_false(two_hcas_poll(d, 0, &c));
	assert_int_equal(s->qp->state, HCA_QP_RTS);
	a.qp_state = HCA_QP_RTS; /* refused: from now on the owner does not wait
				    for the lock */
	assert_int_equal(engine_qp_modify(s->engine, s->side, &a,
					  HCA_QP_STATE | HCA_QP_PATH_MTU, s->ip,
					  d->now_ns, &why),
			 -EINVAL);
	two_hcas_run(d, d->now_ns + 6000000);
	assert_done(d, 0, HCA_SUCCESS);
	close_locks();
	two_hcas_free(d);
}

/*
 * Binds a window of side 1, and posts an invalidation of the window while side
 * 0 copies by the window's key.  Then posts a WRITE of side 1.  Returns the
 * window.
 */
static struct mr *begin_invalidation(struct two_hcas *d)
{
	struct two_hcas_side *s = &d->side[1];
	struct mr *w = mw_new(&s->hca, s->qp->pd, 2);
	struct wqe *e = two_hcas_send(d, 1, HCA_WR_BIND_MW, 0, 0, 0);
	uint32_t key;

	e->imm_be = w->lkey;
	e->rkey = w->lkey + 1;
	e->va = TWO_HCAS_BASE;
	e->compare = 4096;
	e->swap_add = (uint64_t)s->mr->lkey << 32 | HCA_REMOTE_WRITE;
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns);
	assert_done(d, 1, HCA_SUCCESS);
	key = w->rkey;
	access_enter(s->access, access_qp(s->qp->qpn));
	access_copy(s->access, access_qp(s->qp->qpn) | access_key(key));
	e = two_hcas_send(d, 1, HCA_WR_LOCAL_INV, 0, 0, 0);
	e->imm_be = key;
	two_hcas_post(d, 1);
	two_hcas_send(d, 1, HCA_WR_RDMA_WRITE, 0, 64, 0);
	two_hcas_post(d, 1);
	return w;
}

/* The copy of side 0 is under way, so the invalidation of w does not complete.
 */
static void assert_waiting(struct two_hcas *d, struct mr *w)
{
	struct cqe c;

	for (int i = 0; i < 20; i++) {
		d->now_ns += 1000000;
		two_hcas_run(d, d->now_ns);
	}
	assert_false(two_hcas_poll(d, 1, &c));
	/* no other access by the key can begin */
	assert_int_equal(mr_key(&d->side[1].hca, w), 0);
}

/* Ends side 0's copy, and lets both sides work. */
static void end_access(struct two_hcas *d)
{
	access_leave(d->side[1].access);
	two_hcas_run(d, d->now_ns + 6000000);
}

static void free_window(struct two_hcas *d, struct mr *w)
{
	mw_free(&d->side[1].hca, w);
	two_hcas_free(d);
}

static const uint32_t connected[] = {HCA_QPT_RC, HCA_QPT_UC};

static void a_window_is_invalidated_when_accesses_by_its_key_end(void **state)
{
	for (size_t k = 0; k < TEST_COUNT(connected); k++) {
		struct two_hcas *d = two_hcas_new_of(connected[k], 3, 16);
		struct mr *w = begin_invalidation(d);

		assert_waiting(d, w);
		end_access(d);
		assert_done(d, 1, HCA_SUCCESS);
		assert_done(d, 1, HCA_SUCCESS);
		free_window(d, w);
	}
}

static void an_invalidation_outlasts_a_drain_that_ends_early(void **state)
{
	for (size_t k = 0; k < TEST_COUNT(connected); k++) {
		struct two_hcas *d = two_hcas_new_of(connected[k], 3, 16);
		struct mr *w = begin_invalidation(d);

		assert_waiting(d, w);
		enter_state(d, 1, HCA_QP_SQD);
		enter_state(d, 1, HCA_QP_RTS);
		assert_waiting(d, w);
		end_access(d);
		assert_done(d, 1, HCA_SUCCESS);
		assert_done(d, 1, HCA_SUCCESS);
		free_window(d, w);
	}
}

static bool is_draining(struct two_hcas *d)
{
	struct hca_qp_attr a;

	engine_qp_query(d->side[1].engine, d->side[1].side, &a);
	return a.sq_draining;
}

/* An invalidation has begun, so a drain lasts until the invalidation completes.
 * The WRITE after the invalidation has not begun. */
static void a_drain_waits_for_an_invalidation(void **state)
{
	for (size_t k = 0; k < TEST_COUNT(connected); k++) {
		struct two_hcas *d = two_hcas_new_of(connected[k], 3, 16);
		struct mr *w = begin_invalidation(d);
		uint32_t *drained = &d->side[1].events[ENGINE_SQ_DRAINED];
		struct cqe c;

		assert_waiting(d, w);
		drain_sends(d, 1);
		assert_waiting(d, w);
		assert_int_equal(*drained, 0);
		assert_true(is_draining(d));
		end_access(d);
		assert_done(d, 1, HCA_SUCCESS);
		assert_false(two_hcas_poll(d, 1, &c));
		assert_int_equal(*drained, 1);
		assert_false(is_draining(d));
		enter_state(d, 1, HCA_QP_RTS);
		two_hcas_run(d, d->now_ns + 6000000);
		assert_done(d, 1, HCA_SUCCESS);
		free_window(d, w);
	}
}

static void a_flushed_invalidation_leaves_no_wait(void **state)
{
	for (size_t k = 0; k < TEST_COUNT(connected); k++) {
		struct two_hcas *d = two_hcas_new_of(connected[k], 3, 16);
		struct mr *first = begin_invalidation(d), *second;

		assert_waiting(d, first);
		enter_state(d, 1, HCA_QP_ERR);
		assert_done(d, 1, HCA_WR_FLUSH_ERR);
		assert_done(d, 1, HCA_WR_FLUSH_ERR);
		end_access(d);
		for (int i = 0; i < 2; i++)
			enter_state(d, i, HCA_QP_RESET);
		for (int i = 0; i < 2; i++)
			two_hcas_connect(d, i, 3);
		second = begin_invalidation(d);
		assert_waiting(d, second);
		end_access(d);
		assert_done(d, 1, HCA_SUCCESS);
		assert_done(d, 1, HCA_SUCCESS);
		mw_free(&d->side[1].hca, first);
		free_window(d, second);
	}
}

/* Side 0 leaves a request to side 1 as a hostile process would, without judging
 * it.  Returns whether side 1 has executed the request. */
static bool leave_request(struct two_hcas *d, uint32_t opcode, uint64_t va)
{
	struct two_hcas_side *s = &d->side[1];
	struct qp_target *f = qp_target(s->qp);

	f->asked = (struct target_request){opcode, s->mr->rkey, va, 7, 0};
	atomic_store(&f->ask, TARGET_ASK_POSTED);
	notify_post(&s->hca, s->qp, QP_NOTIFY_ASK);
	engine_serve_notify(s->engine);
	assert_int_not_equal(f->ask, TARGET_ASK_POSTED);
	return f->ask == TARGET_ASK_ANSWERED;
}

static void a_request_that_a_peer_leaves_is_judged_again(void **state)
{
	static const struct {
		uint32_t opcode;
		uint64_t at;
		uint8_t max_dest;
		bool is_good;
	} left[] = {
		{HCA_WR_ATOMIC_FADD, 64, 1, true},
		{HCA_WR_ATOMIC_CAS, 64, 1, true},
		{HCA_WR_ATOMIC_WRITE, 64, 1, true},
		{HCA_WR_ATOMIC_FADD, 65, 1, false},
		{HCA_WR_ATOMIC_WRITE, 68, 1, false},
		{HCA_WR_ATOMIC_CAS, 64, 0, false},
		{HCA_WR_RDMA_READ, 64, 1, false},
		{1000, 64, 1, false},
	};

	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		struct two_hcas *d = two_hcas_new(3, 16);
		struct two_hcas_side *s = &d->side[1];
		static const uint8_t zero[16];

		s->qp->attr.max_dest_rd_atomic = left[i].max_dest;
		memset(s->memory.bytes + 64, 0, 16);
		assert_int_equal(leave_request(d, left[i].opcode,
					       TWO_HCAS_BASE + left[i].at),
				 left[i].is_good);
		assert_int_equal(s->qp->state,
				 left[i].is_good ? HCA_QP_RTS : HCA_QP_ERR);
		assert_int_equal(memcmp(s->memory.bytes + 64, zero, 16) != 0,
				 left[i].is_good);
		two_hcas_free(d);
	}
}

/* Side 0 fails the queue pair of side 1 and notes a reason, as a hostile
 * process would.  Returns side 1's message in `text`. */
static void leave_note(const struct target_failure *note, char text[1024])
{
	struct two_hcas *d = two_hcas_new(3, 16);
	struct two_hcas_side *s = &d->side[1];

	qp_target(s->qp)->note = *note;
	qp_target(s->qp)->has_failed = 1;
	notify_post(&s->hca, s->qp, QP_NOTIFY_FAIL);
	two_hcas_run(d, d->now_ns + 1);
	assert_int_equal(s->qp->state, HCA_QP_ERR);
	explain_text(&s->explained, text, 1024);
	two_hcas_free(d);
}

/* The message has a reason after its last colon, and nowhere "(null)" in place
 * of a text. */
static void assert_is_whole(const char *text)
{
	const char *reason = strrchr(text, ':');

	assert_non_null(strstr(text, "QP 0x"));
	assert_non_null(reason);
	assert_true(strlen(reason) > 2);
	assert_null(strstr(text, "(null)"));
}

static void a_note_with_any_cause_makes_a_whole_sentence(void **state)
{
	char text[1024], invalid[1024];

	leave_note(&(struct target_failure){.cause = EXPLAIN_REMOTE_INVALID},
		   invalid);
	for (uint32_t cause = 0; cause < 40; cause++) {
		leave_note(&(struct target_failure){.cause = cause}, text);
		assert_is_whole(text);
		if (cause > EXPLAIN_INVALIDATE || cause == EXPLAIN_NONE)
			assert_string_equal(text, invalid);
	}
	leave_note(&(struct target_failure){.cause = UINT32_MAX}, text);
	assert_string_equal(text, invalid);
	for (uint32_t v = 0; v <= MR_ZERO_BASED + 1; v++) {
		leave_note(&(struct target_failure){.cause = EXPLAIN_REMOTE_KEY,
						    .mr_verdict = v},
			   text);
		assert_is_whole(text);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_error_flushes_the_receives_when_the_peer_has_left),
		cmocka_unit_test(
			a_window_is_invalidated_when_accesses_by_its_key_end),
		cmocka_unit_test(
			an_invalidation_outlasts_a_drain_that_ends_early),
		cmocka_unit_test(a_drain_waits_for_an_invalidation),
		cmocka_unit_test(a_request_that_a_peer_leaves_is_judged_again),
		cmocka_unit_test(a_note_with_any_cause_makes_a_whole_sentence),
		cmocka_unit_test(a_flushed_invalidation_leaves_no_wait),
		cmocka_unit_test(
			an_initiator_asks_again_while_another_is_at_work),
		cmocka_unit_test(
			an_owner_that_wants_the_lock_comes_before_its_peers),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
