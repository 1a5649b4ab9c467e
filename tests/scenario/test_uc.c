/* SPDX-License-Identifier: BSD-2-Clause */
/* UC between two adapters (IBTA 9.8.2): a message arrives whole, or is dropped
 * and the next message arrives. */
#include "test.h"

#include <string.h>

#include "hca/explain.h"
#include "hdr/pkt.h"
#include "ibt/ibt.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

static void fill_bytes(struct two_hcas *d, uint64_t at, uint32_t bytes,
		       uint8_t with)
{
	memset(d->side[0].memory.bytes + at, with, bytes);
}

static void run_request(struct two_hcas *d, enum hca_wr op, uint32_t bytes,
			uint8_t with)
{
	fill_bytes(d, 0, bytes, with);
	two_hcas_send(d, 0, op, 0, bytes, 300000)->imm_be = with;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
}

static void assert_sent(struct two_hcas *d, uint32_t status)
{
	struct cqe c;

	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, status);
}

/* Expects that side 1 got a message of `bytes` bytes, which all have the value
 * `with`, at `at`. */
static void assert_got(struct two_hcas *d, uint64_t at, uint32_t bytes,
		       uint8_t with)
{
	const uint8_t *p = d->side[1].memory.bytes + at;
	struct cqe c;

	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_int_equal(c.byte_len, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(p[i], with);
}

static void messages_of_every_length_arrive(void **state)
{
	static const uint32_t lengths[] = {0, 1, 256, 257, 4096, 100001};
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);

	for (uint8_t k = 0; k < 6; k++) {
		two_hcas_recv(d, 1, 500000, 200000);
		run_request(d, HCA_WR_SEND_IMM, lengths[k], (uint8_t)(k + 1));
		assert_sent(d, HCA_SUCCESS);
		assert_got(d, 500000, lengths[k], (uint8_t)(k + 1));
		two_hcas_recv(d, 1, 0, 0);
		run_request(d, HCA_WR_RDMA_WRITE_IMM, lengths[k],
			    (uint8_t)(k + 9));
		assert_sent(d, HCA_SUCCESS);
		assert_got(d, 300000, lengths[k], (uint8_t)(k + 9));
	}
	two_hcas_free(d);
}

/* If sent messages counted as in flight, a program that posts more would wait
 * for ACKs, which UC does not have. */
static void sent_messages_are_not_in_flight(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 5, 16);

	for (int k = 0; k < 8; k++)
		two_hcas_recv(d, 1, 500000, 1000);
	two_hcas_post_row(d, 8, HCA_WR_SEND, 100, 0);
	two_hcas_run(d, d->now_ns + LONG);
	for (int k = 0; k < 8; k++)
		assert_sent(d, HCA_SUCCESS);
	assert_int_equal(engine_qp_flying(d->side[0].side), 0);
	two_hcas_free(d);
}

/* Frame n, counted from 0, is lost.  seen: the frames so far. */
struct nth {
	int n, seen;
};

static int lose_nth(void *context, int from, const struct engine_frame *f)
{
	struct nth *t = context;

	return t->seen++ != t->n;
}

static void a_gap_drops_its_message_and_the_next_one_arrives(void **state)
{
	for (int lost = 0; lost < 5; lost++) {
		struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);
		struct nth n = {lost, 0};
		struct cqe c;

		d->fate = lose_nth;
		d->context = &n;
		two_hcas_recv(d, 1, 500000, 2000);
		two_hcas_recv(d, 1, 500000, 2000);
		run_request(d, HCA_WR_SEND, 5 * 256, 1);
		assert_sent(d, HCA_SUCCESS);
		assert_false(two_hcas_poll(d, 1, &c));
		run_request(d, HCA_WR_SEND, 3 * 256, 2);
		assert_sent(d, HCA_SUCCESS);
		assert_got(d, 500000, 3 * 256, 2);
		assert_int_equal(d->side[1].explained.cause, EXPLAIN_DROPPED);
		assert_int_equal(
			engine_counters(d->side[1].engine, 0)->rx_dropped, 1);
		two_hcas_free(d);
	}
}

static void no_receive_drops_the_message_only(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);

	run_request(d, HCA_WR_SEND, 1000, 1);
	two_hcas_recv(d, 1, 500000, 2000);
	run_request(d, HCA_WR_SEND, 1000, 2);
	assert_got(d, 500000, 1000, 2);
	assert_int_equal(d->side[1].qp->state, HCA_QP_RTS);
	two_hcas_free(d);
}

static void a_message_of_many_packets_waits_for_its_receive(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);

	fill_bytes(d, 0, 5000, 7);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 5000, 0);
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE_IMM, 0, 700, 300000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 50000000);
	two_hcas_recv(d, 1, 500000, 8000);
	two_hcas_recv(d, 1, 0, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_got(d, 500000, 5000, 7);
	assert_got(d, 300000, 700, 7);
	two_hcas_free(d);
}

/* The rest of the first message needs no receive, and so does not let the next
 * message wait. */
static void a_late_receiver_is_not_waited_for_again(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);
	const struct engine_counters *c = engine_counters(d->side[1].engine, 0);

	two_hcas_post_row(d, 1, HCA_WR_SEND, 400, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(c->rx_dropped, 1);
	two_hcas_post_row(d, 1, HCA_WR_SEND, 400, 0);
	two_hcas_run(d, d->now_ns + 1000000);
	assert_int_equal(c->rx_dropped, 2);
	two_hcas_free(d);
}

static void too_long_a_message_leaves_its_receive(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);

	two_hcas_recv(d, 1, 500000, 600);
	run_request(d, HCA_WR_SEND, 601, 1);
	run_request(d, HCA_WR_SEND, 600, 2);
	assert_got(d, 500000, 600, 2);
	two_hcas_free(d);
}

static void a_wrong_key_drops_the_write_and_tells_the_responder(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 1000, 300000)->rkey ^= 0x100;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_sent(d, HCA_SUCCESS);
	assert_int_equal(d->side[1].qp->state, HCA_QP_RTS);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_DROPPED);
	two_hcas_recv(d, 1, 0, 0);
	run_request(d, HCA_WR_RDMA_WRITE_IMM, 1000, 3);
	assert_sent(d, HCA_SUCCESS);
	assert_got(d, 300000, 1000, 3);
	two_hcas_free(d);
}

/* The responder checks the length of a WRITE before the right, but the
 * explanation names the missing right and not the length. */
static void a_write_without_the_right_is_not_called_too_long(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);
	const struct explain *x = &d->side[1].explained;

	d->side[1].qp->attr.access_flags &= ~(uint32_t)HCA_REMOTE_WRITE;
	run_request(d, HCA_WR_RDMA_WRITE, 1000, 1);
	assert_sent(d, HCA_SUCCESS);
	assert_int_equal(d->side[1].qp->state, HCA_QP_RTS);
	assert_int_equal(d->side[1].events[ENGINE_EXPLAIN], 2);
	assert_int_equal(x->cause, EXPLAIN_DROPPED);
	assert_int_equal(x->need, HCA_REMOTE_WRITE);
	assert_non_null(strstr(x->detail, "the memory of a WRITE was refused"));
	two_hcas_free(d);
}

/* A packet that breaks the rules, and before which another message was
 * unfinished, is not taken for a WRITE with a wrong key. */
static void a_wrong_packet_after_an_unfinished_message_is_named(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);
	const struct explain *x = &d->side[1].explained;
	struct pkt first = {.bth.opcode = OPCODE_UC_SEND_FIRST,
			    .payload_len = 256};
	struct pkt wrong = {.bth.opcode = OPCODE_UC_SEND_ONLY,
			    .payload_len = 257};

	two_hcas_recv(d, 1, 500000, 2000);
	first.bth.psn = d->side[1].side->resp.epsn.v;
	two_hcas_forge(d, 1, &first);
	wrong.bth.psn = d->side[1].side->resp.epsn.v;
	two_hcas_forge(d, 1, &wrong);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(d->side[1].events[ENGINE_EXPLAIN], 2);
	assert_int_equal(x->cause, EXPLAIN_DROPPED);
	assert_int_equal(x->drop, IBT_DROP_INVALID);
	two_hcas_free(d);
}

/* The region may lose the right while a WRITE of several packets arrives. */
static void a_region_that_has_changed_is_named(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);
	struct two_hcas_side *s = &d->side[1];
	struct pkt first = {.bth.opcode = OPCODE_UC_WRITE_FIRST,
			    .reth = {TWO_HCAS_BASE, s->mr->rkey, 300},
			    .payload_len = 256};
	struct pkt last = {.bth.opcode = OPCODE_UC_WRITE_LAST,
			   .payload_len = 44};

	first.bth.psn = s->side->resp.epsn.v;
	two_hcas_forge(d, 1, &first);
	s->mr->access &= ~(uint32_t)HCA_REMOTE_WRITE;
	last.bth.psn = s->side->resp.epsn.v;
	two_hcas_forge(d, 1, &last);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(s->explained.cause, EXPLAIN_DROPPED);
	assert_int_equal(s->explained.verdict, MR_NO_RIGHT);
	assert_int_equal(s->explained.need, HCA_REMOTE_WRITE);
	assert_int_equal(s->explained.region_va, s->mr->iova);
	assert_int_equal(s->explained.region_bytes, s->mr->bytes);
	two_hcas_free(d);
}

static void a_local_error_stops_the_send_queue_alone(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);
	struct hca_qp_attr a = {.qp_state = HCA_QP_RTS,
				.cur_qp_state = HCA_QP_SQE};
	const char *why;

	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	wqe_sges(two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0))->lkey ^= 1;
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_sent(d, HCA_SUCCESS);
	assert_sent(d, HCA_LOC_PROT_ERR);
	assert_sent(d, HCA_WR_FLUSH_ERR);
	assert_int_equal(d->side[0].qp->state, HCA_QP_SQE);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	assert_sent(d, HCA_WR_FLUSH_ERR);
	assert_int_equal(engine_qp_modify(d->side[0].engine, d->side[0].side,
					  &a, HCA_QP_STATE | HCA_QP_CUR_STATE,
					  d->side[0].ip, d->now_ns, &why),
			 0);
	two_hcas_recv(d, 1, 500000, 2000);
	run_request(d, HCA_WR_SEND, 700, 4);
	assert_sent(d, HCA_SUCCESS);
	assert_got(d, 500000, 700, 4);
	two_hcas_free(d);
}

static void a_read_is_refused(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);

	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_sent(d, HCA_LOC_QP_OP_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_LOCAL_OP);
	two_hcas_free(d);
}

static void a_request_ends_when_its_frame_has_left(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 1, 16);
	struct engine_frame f[8];
	struct cqe c;
	size_t n;

	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	n = engine_tx(d->side[0].engine, f, 8, d->now_ns);
	assert_int_equal(n, 1);
	assert_false(two_hcas_poll(d, 0, &c));
	engine_tx_done(d->side[0].engine, n);
	assert_true(two_hcas_poll(d, 0, &c));
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_every_length_arrive),
		cmocka_unit_test(sent_messages_are_not_in_flight),
		cmocka_unit_test(no_receive_drops_the_message_only),
		cmocka_unit_test(
			a_message_of_many_packets_waits_for_its_receive),
		cmocka_unit_test(too_long_a_message_leaves_its_receive),
		cmocka_unit_test(
			a_wrong_key_drops_the_write_and_tells_the_responder),
		cmocka_unit_test(
			a_write_without_the_right_is_not_called_too_long),
		cmocka_unit_test(
			a_wrong_packet_after_an_unfinished_message_is_named),
		cmocka_unit_test(a_region_that_has_changed_is_named),
		cmocka_unit_test(a_local_error_stops_the_send_queue_alone),
		cmocka_unit_test(a_read_is_refused),
	};
	const struct CMUnitTest of_packets[] = {
		cmocka_unit_test(a_late_receiver_is_not_waited_for_again),
		cmocka_unit_test(
			a_gap_drops_its_message_and_the_next_one_arrives),
		cmocka_unit_test(a_request_ends_when_its_frame_has_left),
	};
	int failed;

	two_hcas_mode(argc, argv);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (!two_hcas_is_direct())
		failed += cmocka_run_group_tests(of_packets, NULL, NULL);
	return failed;
}
