/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Without packets, several processes may work at the same target.  A queue pair
 * that finds the responder lock held tries again later.  Until then more
 * requests and packets may come to the queue pair, and the lock's holder may be
 * stopped.  An atomic is executed once, and nothing is written to a process
 * that has ended.
 */
#include "test.h"

#include <string.h>

#include "ibt/ibt.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

#define FEW   40
#define AT    100000
#define WHILE 6000000 /* ns; longer than the time between two tries */
#define PATIENCE                                                               \
	2000000000u /* ns; how long a datagram waits for its target            \
		     */
#define STOPPED 8
#define LIVING	7

static bool never_finds_dead(alock_owner owner)
{
	return false;
}

static const struct alock_judge judge = {never_finds_dead, NULL, NULL,
					 never_finds_dead};

static void post_send(struct two_hcas *d, int i)
{
	two_hcas_send(d, i, HCA_WR_SEND, 0, FEW, 0);
	two_hcas_post(d, i);
}

/* Side 0 sends to side 1 once, and then finds the responder lock held. */
static struct two_hcas *with_waiting_sender(void) NO_LOCK_ANALYSIS
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	for (int k = 0; k < 2; k++)
		two_hcas_recv(d, 1, AT, 100);
	post_send(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	alock_open(STOPPED, &judge);
	assert_false(alock_take(&qp_target(d->side[1].qp)->lock));
	alock_open(LIVING, &judge);
	post_send(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_false(two_hcas_poll(d, 0, &(struct cqe){0}));
	return d;
}

static void release_responder(struct qp *qp) NO_LOCK_ANALYSIS
{
	alock_give(&qp_target(qp)->lock);
}

static void end_scenario(struct two_hcas *d)
{
	alock_open(ALOCK_NAMELESS, NULL);
	two_hcas_free(d);
}

static void a_post_during_a_wait_may_be_for_another_target(void **state)
{
	struct two_hcas *d = with_waiting_sender();
	struct wqe *w;

	release_responder(d->side[1].qp);
	w = two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	wq_to(&d->side[0].qp->sq, w)->qpn += 2;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + WHILE);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	end_scenario(d);
}

static void sends_that_wait_complete_if_the_targets_process_ends(void **state)
{
	struct two_hcas *d = with_waiting_sender();

	two_hcas_end_process(d, 1);
	post_send(d, 0);
	two_hcas_run(d, d->now_ns);
	d->side[1].hca.shared->pulse.word = 1;
	release_responder(d->side[1].qp);
	two_hcas_run(d, d->now_ns + WHILE);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_SUCCESS);
	end_scenario(d);
}

/* Makes the functions of two_hcas.h use this queue pair of side 1. */
static void use_target(struct two_hcas *d, struct qp *qp, struct srq *srq)
{
	struct two_hcas_side *s = &d->side[1];

	s->qp = qp;
	s->side = engine_qp_find(s->engine, qp->qpn);
	s->srq = srq;
}

/* Gives side 1 another queue pair, and uses it.  srq: its shared receives;
 * NULL: it has receives of its own. */
static void add_target(struct two_hcas *d, struct srq *srq)
{
	const struct hca_qp_cap cap = {16, 16, 4, 4, 64, srq};
	struct two_hcas_side *s = &d->side[1];
	struct qp *qp = qp_new(&s->hca, s->qp->qpn + 2, HCA_QPT_UD, s->qp->pd,
			       s->cq, s->cq, &cap, false);

	assert_non_null(qp);
	assert_non_null(engine_qp_add(s->engine, qp));
	use_target(d, qp, srq);
	two_hcas_connect(d, 1, 5);
}

static void remove_target(struct two_hcas *d, struct qp *qp)
{
	struct two_hcas_side *s = &d->side[1];

	engine_qp_remove(s->engine, engine_qp_find(s->engine, qp->qpn));
	qp_withdraw(&s->hca, qp);
	qp_free(&s->hca, qp);
}

/* Side 0's first datagram waits for its target.  Posts four datagrams to
 * another target, and expects that all of them wait for PATIENCE, and that the
 * first datagram then goes by a packet. */
static void assert_held_up_for_patience(struct two_hcas *d)
{
	uint64_t began_ns = d->now_ns;

	for (uint32_t k = 1; k <= 4; k++) {
		two_hcas_recv(d, 1, AT, 100);
		post_send(d, 0);
		two_hcas_run(d, began_ns + k * (PATIENCE / 4) - WHILE);
		assert_false(two_hcas_poll(d, 0, &(struct cqe){0}));
	}
	two_hcas_run(d, began_ns + PATIENCE + WHILE);
	for (uint32_t k = 0; k < 5; k++)
		assert_done(d, 0, HCA_SUCCESS);
	assert_int_equal(packets_sent(d), 1);
}

/* Expects that side 1 has got `count` datagrams, and none twice. */
static void assert_received(struct two_hcas *d, uint32_t count)
{
	while (count--)
		assert_done(d, 1, HCA_SUCCESS);
	assert_false(two_hcas_poll(d, 1, &(struct cqe){0}));
}

static void a_locked_target_holds_up_no_other_for_long(void **state)
{
	struct two_hcas *d = with_waiting_sender();
	struct qp *locked = d->side[1].qp;

	add_target(d, NULL);
	assert_held_up_for_patience(d);
	release_responder(locked);
	two_hcas_run(d, d->now_ns + WHILE);
	assert_received(d, 6);
	remove_target(d, locked);
	end_scenario(d);
}

/* Side 1 has 16 places for datagrams that come from the shared receive queue,
 * and makes none free while it is stopped. */
static void a_stopped_target_holds_up_no_other_for_long(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 32);
	struct two_hcas_side *s = &d->side[1];
	struct srq *srq = srq_new(&s->hca, s->qp->pd, 32, 4, 78);
	struct qp *other = s->qp, *full;

	add_target(d, srq);
	full = s->qp;
	s->is_stopped = true;
	for (int k = 0; k < 17; k++) {
		two_hcas_recv(d, 1, AT, 100);
		post_send(d, 0);
	}
	two_hcas_run(d, d->now_ns);
	for (int k = 0; k < 16; k++)
		assert_done(d, 0, HCA_SUCCESS);
	use_target(d, other, NULL);
	assert_held_up_for_patience(d);
	s->is_stopped = false;
	two_hcas_run(d, d->now_ns + WHILE);
	assert_received(d, 21);
	remove_target(d, full);
	two_hcas_free(d);
}

/* The target may have slept, too. */
static void a_sender_that_slept_waits_as_long_as_before(void **state)
{
	struct two_hcas *d = with_waiting_sender();

	two_hcas_run(d, d->now_ns + PATIENCE / 2);
	d->now_ns += LONG;
	engine_was_asleep(d->side[0].engine, LONG, d->now_ns);
	two_hcas_run(d, d->now_ns + PATIENCE / 4);
	assert_false(two_hcas_poll(d, 0, &(struct cqe){0}));
	release_responder(d->side[1].qp);
	two_hcas_run(d, d->now_ns + WHILE);
	assert_done(d, 0, HCA_SUCCESS);
	assert_int_equal(packets_sent(d), 0);
	end_scenario(d);
}

/* Side 1 sends a packet, for which side 0 has no receive.  Side 0 posts that
 * receive later, without a doorbell. */
static void a_packet_that_waits_meanwhile_is_not_forgotten(void **state)
{
	struct two_hcas *d = with_waiting_sender();
	struct two_hcas_side *s = &d->side[0];
	struct wqe *w = two_hcas_send(d, 1, HCA_WR_SEND, 0, FEW, 0);

	wq_to(&d->side[1].qp->sq, w)->local = 0;
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns);
	release_responder(d->side[1].qp);
	two_hcas_run(d, d->now_ns + WHILE);
	assert_done(d, 0, HCA_SUCCESS);
	w = wq_reserve(&s->hca, &s->qp->rq);
	memset(w, 0, sizeof(*w));
	w->num_sge = 1;
	*wqe_sges(w) = (struct wq_sge){TWO_HCAS_BASE + AT, 100, s->mr->lkey};
	wq_commit_recv(&s->hca, &s->qp->rq, w->wr_id);
	two_hcas_run(d, d->now_ns + WHILE);
	assert_done(d, 0, HCA_SUCCESS);
	end_scenario(d);
}

/* A peer has disarmed side 1's completion queue, and is stopped before that
 * peer sets the notify bit. */
static void an_event_that_a_stopped_peer_owes_is_raised(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_RC, 3, 16);
	struct two_hcas_side *s = &d->side[1];

	for (int k = 0; k < 3; k++)
		two_hcas_recv(d, 1, AT, 100);
	atomic_store(&cq_shared(s->cq)->arm, CQ_UNREPORTED_ONE);
	engine_asleep(s->engine, true);
	s->is_stopped = true;
	for (int k = 0; k < 3; k++) {
		post_send(d, 0);
		two_hcas_run(d, d->now_ns);
	}
	assert_int_equal(s->woken, 1);
	s->is_stopped = false;
	two_hcas_run(d, d->now_ns);
	assert_int_equal(s->events[ENGINE_CQ_EVENT], 1);
	two_hcas_free(d);
}

/* Side 0 has mapped side 1's memory, and adds 2 to the 5 there. */
static struct two_hcas *with_an_atomic(void)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_RC, 3, 16);
	uint64_t five = 5;

	memcpy(d->side[1].memory.bytes + AT, &five, 8);
	d->side[1].elsewhere.is_mapped = true;
	two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 0, 8, AT)->swap_add = 2;
	two_hcas_post(d, 0);
	return d;
}

static void assert_added_once(struct two_hcas *d)
{
	uint64_t found, sum;

	assert_done(d, 0, HCA_SUCCESS);
	memcpy(&found, d->side[0].memory.bytes, 8);
	memcpy(&sum, d->side[1].memory.bytes + AT, 8);
	assert_int_equal(found, 5);
	assert_int_equal(sum, 7);
	two_hcas_free(d);
}

static void
an_atomic_in_mapped_memory_does_not_wait_for_the_target(void **state)
{
	struct two_hcas *d = with_an_atomic();

	d->side[1].is_stopped = true;
	two_hcas_run(d, d->now_ns);
	assert_added_once(d);
}

static struct access *revoked;
static struct memory *revoked_memory;

/* Executes an atomic while the owner revokes the peer's access. */
static int execute_and_revoke(struct space *s, enum space_atomic op,
			      uint64_t va, uint64_t swap_add, uint64_t compare,
			      uint64_t *old)
{
	struct space *own = &revoked_memory->space;

	atomic_store(&revoked->touches, ACCESS_REVOKED);
	return own->ops->atomic(own, op, va, swap_add, compare, old);
}

static void an_atomic_that_was_done_is_not_done_again(void **state)
{
	static const struct space_ops ops = {.atomic = execute_and_revoke};
	struct two_hcas *d = with_an_atomic();

	revoked = d->side[1].access;
	revoked_memory = &d->side[1].memory;
	d->side[1].elsewhere.space.ops = &ops;
	two_hcas_run(d, d->now_ns + WHILE);
	assert_added_once(d);
}

static uint32_t writes_left; /* until the owner revokes the peer's access */

/* Writes as the peer does.  After the last write, the owner revokes the peer's
 * access, and the owner's program then stores to the same memory. */
static int write_and_revoke(struct space *s, const struct space_vec *to,
			    size_t n, const void *from)
{
	struct space *own = &revoked_memory->space;
	int err = own->ops->write(own, to, n, from);

	if (writes_left && !--writes_left) {
		atomic_store(&revoked->touches, ACCESS_REVOKED);
		memset(revoked_memory->bytes + AT, 9, FEW);
	}
	return err;
}

/* Lets side 1 revoke the access of side 0 after side 0's write number `until`.
 */
static struct two_hcas *with_revocation(struct space_ops *ops, uint32_t until)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	/* a batch is executed only after another request of the connection */
	two_hcas_post_row(d, 1, HCA_WR_RDMA_WRITE, FEW, AT);
	two_hcas_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	revoked = d->side[1].access;
	revoked_memory = &d->side[1].memory;
	writes_left = until;
	*ops = *d->side[1].elsewhere.space.ops;
	ops->write = write_and_revoke;
	d->side[1].elsewhere.space.ops = ops;
	memset(d->side[0].bytes, 1, FEW);
	return d;
}

/* Runs `count` requests.  Fails the test unless all succeed, the access was
 * revoked, and side 1 then has FEW bytes of the value `byte` at AT. */
static void assert_written(struct two_hcas *d, uint32_t count, uint8_t byte)
{
	two_hcas_run(d, d->now_ns + WHILE);
	for (uint32_t i = 0; i < count; i++)
		assert_done(d, 0, HCA_SUCCESS);
	assert_int_equal(writes_left, 0);
	for (uint32_t i = 0; i < FEW; i++)
		assert_int_equal(d->side[1].bytes[AT + i], byte);
}

/* Executes `count` WRITEs of the same bytes.  The access is revoked after WRITE
 * number `until`, counted from 1. */
static void write_until_revoked(uint32_t count, uint32_t until)
{
	struct space_ops ops;
	struct two_hcas *d = with_revocation(&ops, until);

	two_hcas_post_row(d, count, HCA_WR_RDMA_WRITE, FEW, AT);
	assert_written(d, count, until == count ? 9 : 1);
	two_hcas_free(d);
}

/* A WRITE, or a row of WRITEs, was executed before the revocation.  A second
 * execution would overwrite the bytes that the owner's program has stored since
 * then. */
static void a_write_that_was_done_is_not_done_again(void **state)
{
	write_until_revoked(1, 1);
	write_until_revoked(4, 4);
}

static void writes_that_were_not_done_are_done_later(void **state)
{
	write_until_revoked(4, 2);
}

/* The second WRITE comes when the receive of the first is complete, and must be
 * copied although the first was not copied again. */
static void
a_write_with_immediate_that_was_copied_completes_its_receive(void **state)
{
	struct space_ops ops;
	struct two_hcas *d = with_revocation(&ops, 1);
	struct cqe c;

	for (uint32_t i = 0; i < 2; i++) {
		two_hcas_recv(d, 1, AT + FEW, 0);
		two_hcas_send(d, 0, HCA_WR_RDMA_WRITE_IMM, 0, FEW, AT)->imm_be =
			i;
		two_hcas_post(d, 0);
		assert_written(d, 1, i ? 1 : 9);
		assert_true(two_hcas_poll(d, 1, &c));
		assert_int_equal(c.opcode, HCA_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(c.imm_be, i);
		assert_int_equal(c.byte_len, FEW);
		assert_false(two_hcas_poll(d, 1, &c));
	}
	two_hcas_free(d);
}

static struct two_hcas *dying;

/* space_ops.refresh may take long: the target's process ends meanwhile. */
static void end_target(struct space *s)
{
	two_hcas_end_process(dying, 1);
}

static void assert_untouched(const struct two_hcas *d)
{
	for (size_t i = 0; i < sizeof(d->side[1].bytes); i++)
		assert_int_equal(d->side[1].bytes[i], 0);
}

static void write_to_ending_target(uint32_t count)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct space_ops ops = *d->side[1].elsewhere.space.ops;

	two_hcas_post_row(d, 1, HCA_WR_RDMA_READ, FEW, AT);
	two_hcas_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	dying = d;
	ops.refresh = end_target;
	d->side[1].elsewhere.space.ops = &ops;
	memset(d->side[0].bytes, 1, FEW);
	two_hcas_post_row(d, count, HCA_WR_RDMA_WRITE, FEW, AT);
	d->liveness = ENGINE_PEER_GONE;
	two_hcas_run(d, d->now_ns + LONG);
	assert_untouched(d);
	two_hcas_free(d);
}

/* A request, or a row of requests, writes nothing if the target's process ended
 * during space_ops.refresh. */
static void a_process_that_ends_during_refresh_is_not_written_to(void **state)
{
	write_to_ending_target(1);
	write_to_ending_target(4);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_post_during_a_wait_may_be_for_another_target),
		cmocka_unit_test(
			sends_that_wait_complete_if_the_targets_process_ends),
		cmocka_unit_test(a_locked_target_holds_up_no_other_for_long),
		cmocka_unit_test(a_stopped_target_holds_up_no_other_for_long),
		cmocka_unit_test(a_sender_that_slept_waits_as_long_as_before),
		cmocka_unit_test(
			a_packet_that_waits_meanwhile_is_not_forgotten),
		cmocka_unit_test(an_event_that_a_stopped_peer_owes_is_raised),
		cmocka_unit_test(
			an_atomic_in_mapped_memory_does_not_wait_for_the_target),
		cmocka_unit_test(an_atomic_that_was_done_is_not_done_again),
		cmocka_unit_test(a_write_that_was_done_is_not_done_again),
		cmocka_unit_test(writes_that_were_not_done_are_done_later),
		cmocka_unit_test(
			a_write_with_immediate_that_was_copied_completes_its_receive),
		cmocka_unit_test(
			a_process_that_ends_during_refresh_is_not_written_to),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
