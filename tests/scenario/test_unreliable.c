/* SPDX-License-Identifier: BSD-2-Clause */
/* UD and UC on the direct path, without packets, and when they use packets
 * instead. */
#include "test.h"

#include <string.h>

#include "ibt/ibt.h"
#include "scenario/outcome.h"

#define FEW 40
#define AT  100000

/* ---- UD ---- */

static void datagrams_use_no_packets(void **state)
{
	static const uint32_t lengths[] = {0, 1, 16, 17, 2048};
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	for (size_t k = 0; k < TEST_COUNT(lengths); k++) {
		struct cqe c;

		two_hcas_fill(d, 0, 0, lengths[k]);
		two_hcas_recv(d, 1, AT, 40 + lengths[k]);
		two_hcas_send(d, 0, k % 2 ? HCA_WR_SEND_IMM : HCA_WR_SEND, 0,
			      lengths[k], 0)
			->imm_be = 77;
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns);
		assert_done(d, 0, HCA_SUCCESS);
		assert_true(two_hcas_poll(d, 1, &c));
		assert_int_equal(c.status, HCA_SUCCESS);
		assert_int_equal(c.byte_len, 40 + lengths[k]);
		assert_int_equal(c.src_qpn, d->side[0].qp->qpn);
		assert_int_equal(c.sl, 8 | 2);
		assert_int_equal(c.imm_be, k % 2 ? 77 : 0);
		assert_memory_equal(d->side[1].memory.bytes + AT + 40,
				    d->side[0].memory.bytes, lengths[k]);
	}
	assert_int_equal(packets_sent(d), 0);
	two_hcas_free(d);
}

static void a_dead_process_gets_packets_and_its_successor_none(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	for (int k = 0; k < 3; k++) {
		two_hcas_recv(d, 1, AT, 100);
		two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
		two_hcas_post(d, 0);
		if (k == 1) {
			two_hcas_end_process(d, 1);
			two_hcas_run(d, d->now_ns);
			assert_int_equal(packets_sent(d), 1);
			d->side[1].hca.shared->pulse.word = 1;
			assert_ptr_equal(engine_released(d->side[0].engine), d);
			assert_null(engine_released(d->side[0].engine));
		}
		two_hcas_run(d, d->now_ns);
		assert_done(d, 0, HCA_SUCCESS);
		assert_done(d, 1, HCA_SUCCESS);
	}
	assert_int_equal(packets_sent(d), 1);
	two_hcas_free(d);
}

/* A doorbell that finds no request does not move the queue pair to packets. */
static void an_empty_queue_keeps_its_path(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct two_hcas_side *s = &d->side[0];

	for (int k = 0; k < 3; k++) {
		if (k == 1) {
			two_hcas_recv(d, 1, AT, 100);
			two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
			wq_commit(&s->qp->sq);
		}
		engine_doorbell(s->engine, s->side, d->now_ns);
		two_hcas_run(d, d->now_ns);
		assert_int_not_equal(s->side->direct.path, IBT_PATH_PACKETS);
	}
	assert_done(d, 1, HCA_SUCCESS);
	two_hcas_free(d);
}

/* Side 0 sends to two QPNs of one process, one of which belongs to no queue
 * pair. */
static void each_target_has_its_own_path(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	uint32_t there = d->side[1].qp->qpn, nobody = there + 2;

	for (int k = 0; k < 8; k++) {
		struct wqe *w = two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);

		wq_to(&d->side[0].qp->sq, w)->qpn = k % 4 < 2 ? there : nobody;
		two_hcas_recv(d, 1, AT, 100);
		two_hcas_post(d, 0);
	}
	two_hcas_run(d, d->now_ns);
	for (int k = 0; k < 8; k++)
		assert_done(d, 0, HCA_SUCCESS);
	for (int k = 0; k < 4; k++)
		assert_done(d, 1, HCA_SUCCESS);
	assert_false(two_hcas_poll(d, 1, &(struct cqe){0}));
	assert_int_equal(packets_sent(d), 4);
	two_hcas_free(d);
}

/* ---- UC ---- */

static void messages_of_uc_use_no_packets(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 3, 16);

	two_hcas_fill(d, 0, 0, 2500);
	for (int i = 0; i < 2; i++)
		two_hcas_recv(d, 1, AT, 2500);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 2500, 0);
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 2500, 2 * AT);
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_SEND_IMM, 0, FEW, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	for (int i = 0; i < 3; i++)
		assert_done(d, 0, HCA_SUCCESS);
	for (int i = 0; i < 2; i++)
		assert_done(d, 1, HCA_SUCCESS);
	assert_memory_equal(d->side[1].memory.bytes + AT,
			    d->side[0].memory.bytes, 2500);
	assert_memory_equal(d->side[1].memory.bytes + 2 * AT,
			    d->side[0].memory.bytes, 2500);
	assert_int_equal(packets_sent(d), 0);
	two_hcas_free(d);
}

/* A packet waits at the target for its receive, and later messages must not
 * overtake that packet. */
static void uc_uses_packets_after_a_send_without_a_receive(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 3, 16);

	for (uint8_t k = 0; k < 3; k++) {
		d->side[0].memory.bytes[k * FEW] = (uint8_t)(k + 1);
		two_hcas_send(d, 0, HCA_WR_SEND, k * FEW, FEW, 0);
		two_hcas_post(d, 0);
		if (k == 0)
			two_hcas_recv(d, 1, AT, FEW);
		two_hcas_run(d, d->now_ns);
		assert_done(d, 0, HCA_SUCCESS);
	}
	assert_int_equal(packets_sent(d), 2);
	assert_done(d, 1, HCA_SUCCESS);
	for (uint8_t k = 1; k < 3; k++) {
		two_hcas_recv(d, 1, AT, FEW);
		two_hcas_run(d, d->now_ns + 20000000);
		assert_done(d, 1, HCA_SUCCESS);
		assert_int_equal(d->side[1].memory.bytes[AT], k + 1);
	}
	two_hcas_free(d);
}

static void uc_requests_complete_when_the_peers_process_has_ended(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 3, 16);

	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_done(d, 0, HCA_SUCCESS);
	two_hcas_end_process(d, 1);
	d->side[1].is_dead = true;
	two_hcas_send(d, 0, HCA_WR_SEND, 0, FEW, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	d->side[1].is_dead = false;
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams_use_no_packets),
		cmocka_unit_test(
			a_dead_process_gets_packets_and_its_successor_none),
		cmocka_unit_test(an_empty_queue_keeps_its_path),
		cmocka_unit_test(each_target_has_its_own_path),
		cmocka_unit_test(messages_of_uc_use_no_packets),
		cmocka_unit_test(
			uc_uses_packets_after_a_send_without_a_receive),
		cmocka_unit_test(
			uc_requests_complete_when_the_peers_process_has_ended),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
