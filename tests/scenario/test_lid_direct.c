/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections by LID.  The requests of RC use no packets while the subnet would
 * deliver packets and neither end has an alternate path.  Most tests change the
 * subnet during a connection. */
#include "test.h"

#include <string.h>

#include "fabric/fabric.h"
#include "fabric/inside.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

#define AT 500000u

/* Counts the frames of each side. */
static int count_frames(void *context, int from, const struct engine_frame *f)
{
	((uint32_t *)context)[from]++;
	return 1;
}

struct pair {
	struct two_hcas *d;
	uint32_t frames[2];
};

static bool has_grh; /* the packets of this run have a GRH */

static struct pair new_pair(uint32_t type)
{
	struct pair p = {.d = two_hcas_new_of(type, 5, 64)};

	return p;
}

/* Counts the frames from here on into *p, which must stay at its address. */
static void watch_frames(struct pair *p)
{
	p->d->fate = count_frames;
	p->d->context = p->frames;
}

/* Changes a table of the subnet as a subnet manager does. */
static void set_lft(const struct two_hcas *d, const char *name, uint16_t lid,
		    uint8_t port)
{
	struct fabric *f = subnet_fabric(d->subnet);

	fabric_find(f, name)->lft[lid] = port;
	f->changes++;
}

static void cut_path(const struct two_hcas *d)
{
	set_lft(d, "S2", subnet_lid(1), 0xff);
}

static void heal_path(const struct two_hcas *d)
{
	set_lft(d, "S2", subnet_lid(1), 2);
}

static void write_mark(struct two_hcas *d, uint8_t mark)
{
	d->side[0].memory.bytes[0] = mark;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 1, AT);
	two_hcas_post(d, 0);
}

/* Transfers one byte by a WRITE of side 0. */
static void write_once(struct two_hcas *d, uint8_t mark)
{
	write_mark(d, mark);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	assert_int_equal(d->side[1].memory.bytes[AT], mark);
}

/* Sends one byte with the value `mark` from side 0.  Side 1's receive for this
 * mark, which post_receives posts, is at AT + mark. */
static void send_mark(struct two_hcas *d, uint8_t mark)
{
	d->side[0].memory.bytes[mark] = mark;
	two_hcas_send(d, 0, HCA_WR_SEND, mark, 1, 0);
	two_hcas_post(d, 0);
}

static void expect_marks(struct two_hcas *d, uint8_t first, uint8_t count)
{
	for (uint8_t i = first; i < first + count; i++) {
		outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_SEND);
		outcome_assert_done(d, 1, HCA_SUCCESS, HCA_WC_RECV);
		assert_int_equal(d->side[1].memory.bytes[AT + i], i);
	}
}

static void post_receives(struct two_hcas *d, uint8_t first, uint8_t count)
{
	for (uint8_t i = first; i < first + count; i++)
		two_hcas_recv(d, 1, AT + i, 1);
}

static void modify_qp(struct two_hcas *d, int i, const struct hca_qp_attr *a,
		      uint32_t mask)
{
	const char *why = "";

	assert_int_equal(engine_qp_modify(d->side[i].engine, d->side[i].side, a,
					  mask, d->side[i].ip, d->now_ns, &why),
			 0);
}

/* Side 0 writes the marks from 1 to `writes`, and then sends the next 20 marks.
 * All of them arrive. */
static void write_and_send(struct two_hcas *d, uint8_t writes)
{
	const uint8_t first = writes + 1, count = 20;

	for (uint8_t i = 1; i < first; i++)
		write_once(d, i);
	post_receives(d, first, count);
	for (uint8_t i = first; i < first + count; i++)
		send_mark(d, i);
	two_hcas_run(d, d->now_ns + LONG);
	expect_marks(d, first, count);
}

static void requests_use_no_packets(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	watch_frames(&p);
	write_and_send(p.d, 19);
	two_hcas_send(p.d, 0, HCA_WR_RDMA_READ, 1000, 50000, AT);
	two_hcas_post(p.d, 0);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	outcome_assert_done(p.d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	assert_memory_equal(p.d->side[0].memory.bytes + 1000,
			    p.d->side[1].memory.bytes + AT, 50000);
	assert_int_equal(p.frames[0] + p.frames[1], 0);
	assert_int_equal(p.d->asked_path, 1);
	two_hcas_free(p.d);
}

static void a_change_that_harms_nothing_costs_a_question(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	watch_frames(&p);
	write_once(p.d, 1);
	for (uint8_t i = 2; i < 5; i++) {
		set_lft(p.d, "S2", 63, i);
		write_once(p.d, i);
		write_once(p.d, i + 100);
		assert_int_equal(p.d->asked_path, i);
	}
	assert_int_equal(p.frames[0] + p.frames[1], 0);
	two_hcas_free(p.d);
}

/* The subnet changes after each of its answers, so each answer is out of date
 * when the engine gets it. */
static void
a_subnet_that_changes_faster_than_it_answers_stops_none(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	p.d->is_restless = true;
	watch_frames(&p);
	write_and_send(p.d, 9);
	assert_int_equal(p.frames[0] + p.frames[1], 0);
	/* one answer lets one request pass */
	assert_true(p.d->asked_path > 29);
	two_hcas_free(p.d);
}

static void a_cut_path_ends_the_connection_as_with_packets(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	p.d->liveness = ENGINE_PEER_UNKNOWN;
	watch_frames(&p);
	write_once(p.d, 1);
	cut_path(p.d);
	write_mark(p.d, 2);
	two_hcas_run(p.d, p.d->now_ns + 100 * LONG);
	outcome_assert_done(p.d, 0, HCA_RETRY_EXC_ERR, HCA_WC_RDMA_WRITE);
	assert_int_equal(p.d->side[1].memory.bytes[AT], 1);
	assert_true(p.frames[0] > 7);
	assert_int_equal(p.frames[1], 0);
	two_hcas_free(p.d);
}

static void a_path_that_is_cut_from_the_start_is_not_direct(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	watch_frames(&p);
	cut_path(p.d);
	write_mark(p.d, 2);
	two_hcas_run(p.d, p.d->now_ns + 1000000);
	assert_true(p.frames[0] > 0);
	heal_path(p.d);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	outcome_assert_done(p.d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	two_hcas_free(p.d);
}

/* Messages before, during and after a cut: all arrive, once and in order. */
static void nothing_is_lost_or_doubled_by_the_change_to_packets(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	watch_frames(&p);
	post_receives(p.d, 1, 60);
	for (uint8_t i = 1; i <= 20; i++)
		send_mark(p.d, i);
	two_hcas_run(p.d, p.d->now_ns + 1000);
	expect_marks(p.d, 1, 20);
	assert_int_equal(p.frames[0], 0);
	cut_path(p.d);
	for (uint8_t i = 21; i <= 40; i++)
		send_mark(p.d, i);
	two_hcas_run(p.d, p.d->now_ns + 1000000);
	assert_true(p.frames[0] > 0);
	assert_int_equal(p.frames[1], 0);
	heal_path(p.d);
	for (uint8_t i = 41; i <= 60; i++)
		send_mark(p.d, i);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	expect_marks(p.d, 21, 40);
	/* the connection does not return to requests without packets */
	p.frames[0] = 0;
	write_once(p.d, 99);
	assert_true(p.frames[0] > 0);
	assert_int_equal(p.d->side[1].events[ENGINE_EXPLAIN], 0);
	two_hcas_free(p.d);
}

/* Each end of a connection chooses its path by itself. */
static void the_other_end_goes_on_without_packets(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	write_once(p.d, 1);
	cut_path(p.d);
	write_mark(p.d, 2);
	two_hcas_run(p.d, p.d->now_ns + 1000);
	heal_path(p.d);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	outcome_assert_done(p.d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	watch_frames(&p);
	two_hcas_send(p.d, 1, HCA_WR_RDMA_WRITE, AT, 1, 7);
	two_hcas_post(p.d, 1);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	outcome_assert_done(p.d, 1, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	assert_int_equal(p.d->side[0].memory.bytes[7], 2);
	assert_int_equal(p.frames[0] + p.frames[1], 0);
	two_hcas_free(p.d);
}

/* The target has executed nothing of the message, so the initiator sends the
 * whole message in packets. */
static void a_send_that_waits_for_a_receive_goes_on_by_packets(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	watch_frames(&p);
	write_once(p.d, 1);
	send_mark(p.d, 5);
	two_hcas_run(p.d, p.d->now_ns + 100000);
	cut_path(p.d);
	two_hcas_run(p.d, p.d->now_ns + 1000000);
	post_receives(p.d, 5, 2);
	send_mark(p.d, 6);
	two_hcas_run(p.d, p.d->now_ns + 10000000);
	heal_path(p.d);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	expect_marks(p.d, 5, 2);
	assert_true(p.frames[0] > 0);
	two_hcas_free(p.d);
}

/* The target has executed nothing of the message.  So the message, which is to
 * go by packets now, begins anew, and only in RTS: the send queue is drained
 * before. */
static void a_message_that_begins_anew_delays_no_drain(void **state)
{
	const struct hca_qp_attr drain = {.qp_state = HCA_QP_SQD,
					  .en_sqd_async_notify = 1};
	struct pair p = new_pair(HCA_QPT_RC);
	uint32_t *drained = &p.d->side[0].events[ENGINE_SQ_DRAINED];
	struct cqe c;

	write_once(p.d, 1);
	send_mark(p.d, 5);
	two_hcas_run(p.d, p.d->now_ns + 100000);
	modify_qp(p.d, 0, &drain, HCA_QP_STATE | HCA_QP_EN_SQD_ASYNC);
	two_hcas_run(p.d, p.d->now_ns);
	assert_int_equal(*drained, 0);
	cut_path(p.d);
	two_hcas_run(p.d, p.d->now_ns + 1000000);
	assert_int_equal(*drained, 1);
	heal_path(p.d);
	post_receives(p.d, 5, 1);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	assert_false(two_hcas_poll(p.d, 0, &c));
	enter_state(p.d, 0, HCA_QP_RTS);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	expect_marks(p.d, 5, 1);
	two_hcas_free(p.d);
}

static void a_read_goes_on_by_packets(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	write_once(p.d, 1);
	cut_path(p.d);
	for (int i = 0; i < 6; i++) { /* more than max_rd_atomic */
		two_hcas_send(p.d, 0, HCA_WR_RDMA_READ, 1000, 5000, AT);
		two_hcas_post(p.d, 0);
	}
	two_hcas_run(p.d, p.d->now_ns + 1000);
	heal_path(p.d);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	for (int i = 0; i < 6; i++)
		outcome_assert_done(p.d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	assert_memory_equal(p.d->side[0].memory.bytes + 1000,
			    p.d->side[1].memory.bytes + AT, 5000);
	two_hcas_free(p.d);
}

/* The program has not polled the message that came without packets, and that
 * is still in the slot of its receive. */
static void packets_find_the_messages_that_came_before(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	post_receives(p.d, 5, 2);
	send_mark(p.d, 5);
	two_hcas_run(p.d, p.d->now_ns + 1000);
	cut_path(p.d);
	two_hcas_send(p.d, 0, HCA_WR_RDMA_READ, 1000, 1, AT + 5);
	two_hcas_post(p.d, 0);
	two_hcas_run(p.d, p.d->now_ns + 1000);
	heal_path(p.d);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	outcome_assert_done(p.d, 0, HCA_SUCCESS, HCA_WC_SEND);
	outcome_assert_done(p.d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	assert_int_equal(p.d->side[0].memory.bytes[1000], 5);
	send_mark(p.d, 6);
	two_hcas_run(p.d, p.d->now_ns + LONG);
	outcome_assert_done(p.d, 1, HCA_SUCCESS, HCA_WC_RECV);
	expect_marks(p.d, 6, 1);
	two_hcas_free(p.d);
}

static void a_pkey_that_is_withdrawn_ends_the_connection(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	p.d->liveness = ENGINE_PEER_UNKNOWN;
	write_once(p.d, 1);
	subnet_set_pkey(p.d->subnet, 1, 0, 0x8001);
	subnet_fabric(p.d->subnet)->changes++;
	write_mark(p.d, 2);
	two_hcas_run(p.d, p.d->now_ns + 100 * LONG);
	outcome_assert_done(p.d, 0, HCA_RETRY_EXC_ERR, HCA_WC_RDMA_WRITE);
	assert_int_equal(p.d->side[1].memory.bytes[AT], 1);
	two_hcas_free(p.d);
}

/* The entries 0 and 1 of the P_Key table of side 0's port change.  The
 * initiator has not learned of the change, so its packets have the old P_Key,
 * and pass.  The question to the subnet is about the new P_Key of entry 0,
 * which the peer does not have. */
static void the_subnet_is_asked_about_the_present_pkey(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	watch_frames(&p);
	write_once(p.d, 1);
	assert_int_equal(p.frames[0], 0);
	subnet_set_pkey(p.d->subnet, 0, 0, 0x8001);
	subnet_set_pkey(p.d->subnet, 0, 1, 0xffff);
	subnet_fabric(p.d->subnet)->changes++;
	write_once(p.d, 2);
	assert_true(p.frames[0] > 0);
	two_hcas_free(p.d);
}

/* The port of side i gets GIDs with another prefix.  Its packets with the old
 * SGID do not leave the port. */
static void change_prefix(int i)
{
	struct pair p = new_pair(HCA_QPT_RC);

	p.d->liveness = ENGINE_PEER_UNKNOWN;
	p.d->has_old_gids = true;
	watch_frames(&p);
	write_once(p.d, 1);
	assert_int_equal(p.frames[0], 0);
	subnet_set_prefix(p.d->subnet, i, 0xfec0000000000001);
	subnet_fabric(p.d->subnet)->changes++;
	write_mark(p.d, 2);
	two_hcas_run(p.d, p.d->now_ns + 100 * LONG);
	outcome_assert_done(p.d, 0, HCA_RETRY_EXC_ERR, HCA_WC_RDMA_WRITE);
	assert_true(p.frames[0] > 0);
	if (!i) /* else only the acknowledgements are lost */
		assert_int_equal(p.d->side[1].memory.bytes[AT], 1);
	two_hcas_free(p.d);
}

static void gids_with_an_old_prefix_end_the_connection(void **state)
{
	two_hcas_by_lid(true);
	change_prefix(0);
	change_prefix(1);
	two_hcas_by_lid(has_grh);
}

static void give_alternate(struct two_hcas *d, int i)
{
	const struct hca_qp_attr a = {
		.path_mig_state = HCA_MIG_REARM,
		.alt_port_num = 2,
		.alt_timeout = 13,
		.alt_ah = {.dlid = subnet_second_lid(!i), .port_num = 2}};

	modify_qp(d, i, &a, HCA_QP_ALT_PATH | HCA_QP_PATH_MIG_STATE);
}

/* An atomic that the initiator has left to the target is not sent again in
 * packets. */
static void an_atomic_that_the_target_has_is_not_doubled(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);
	struct qp *there = p.d->side[1].qp;
	uint64_t *sum = (uint64_t *)(p.d->side[1].memory.bytes + 50000);
	struct wqe *w;

	write_once(p.d, 1);
	*sum = 5;
	p.d->side[1].is_stopped = true;
	w = two_hcas_send(p.d, 0, HCA_WR_ATOMIC_FADD, 8, 8, 50000);
	w->swap_add = 1;
	two_hcas_post(p.d, 0);
	two_hcas_run(p.d, p.d->now_ns + 100000);
	assert_int_equal(*sum, 5);
	/* as if the target's program loaded an alternate path now */
	there->attr.alt_ah.dlid = subnet_second_lid(0);
	there->attr_serial++;
	write_mark(p.d, 2);
	two_hcas_run(p.d, p.d->now_ns + 1000000);
	p.d->side[1].is_stopped = false;
	two_hcas_run(p.d, p.d->now_ns + LONG);
	outcome_assert_done(p.d, 0, HCA_SUCCESS, HCA_WC_FETCH_ADD);
	outcome_assert_done(p.d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	assert_int_equal(*sum, 6);
	two_hcas_free(p.d);
}

/* In SQD a program may change the path (IBTA 11.2.5.2). */
static void a_path_that_the_program_changes_is_asked_about(void **state)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_SQD};
	struct pair p = new_pair(HCA_QPT_RC);

	p.d->liveness = ENGINE_PEER_UNKNOWN;
	write_once(p.d, 1);
	modify_qp(p.d, 0, &a, HCA_QP_STATE);
	a = p.d->side[0].qp->attr;
	a.ah.dlid = subnet_second_lid(1); /* no way leads there from port 1 */
	modify_qp(p.d, 0, &a, HCA_QP_AV);
	a.qp_state = HCA_QP_RTS;
	modify_qp(p.d, 0, &a, HCA_QP_STATE);
	write_mark(p.d, 2);
	two_hcas_run(p.d, p.d->now_ns + 100 * LONG);
	outcome_assert_done(p.d, 0, HCA_RETRY_EXC_ERR, HCA_WC_RDMA_WRITE);
	assert_int_equal(p.d->side[1].memory.bytes[AT], 1);
	two_hcas_free(p.d);
}

/* Only packets ask the peer to migrate. */
static void a_queue_pair_with_an_alternate_path_sends_packets(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct pair p = new_pair(HCA_QPT_RC);

		watch_frames(&p);
		if (i < 2)
			write_once(p.d, 1);
		assert_int_equal(p.frames[0], 0);
		give_alternate(p.d, i % 2);
		write_once(p.d, 2);
		assert_true(p.frames[0] > 0);
		give_alternate(p.d, !(i % 2));
		write_once(p.d, 3);
		/* the first path is cut, and side 0 migrates */
		if (i == 0 || i == 1) {
			write_once(p.d, 4);
			cut_path(p.d);
			write_once(p.d, 5);
			assert_int_equal(p.d->side[0].events[ENGINE_PATH_MIG],
					 1);
		}
		two_hcas_free(p.d);
	}
}

/* The question to the subnet assumes that the peer answers by the same SL. */
static void a_peer_with_another_sl_gets_packets(void **state)
{
	struct pair p = new_pair(HCA_QPT_RC);

	watch_frames(&p);
	p.d->side[1].qp->attr.ah.sl = 3;
	write_once(p.d, 1);
	assert_true(p.frames[0] > 0 && p.frames[1] > 0);
	two_hcas_free(p.d);
}

static void unreliable_services_send_packets(void **state)
{
	static const uint32_t types[] = {HCA_QPT_UC, HCA_QPT_UD};

	for (int i = 0; i < 2; i++) {
		struct pair p = new_pair(types[i]);

		watch_frames(&p);
		two_hcas_recv(p.d, 1, AT, 100);
		two_hcas_send(p.d, 0, HCA_WR_SEND, 0, 1, 0);
		two_hcas_post(p.d, 0);
		two_hcas_run(p.d, p.d->now_ns + LONG);
		outcome_assert_done(p.d, 0, HCA_SUCCESS, HCA_WC_SEND);
		outcome_assert_done(p.d, 1, HCA_SUCCESS, HCA_WC_RECV);
		assert_int_equal(p.frames[0], 1);
		two_hcas_free(p.d);
	}
}

static void a_new_connection_forgets_the_packets_of_the_last_one(void **state)
{
	const struct hca_qp_attr reset = {.qp_state = HCA_QP_RESET};
	struct pair p = new_pair(HCA_QPT_RC);

	write_once(p.d, 1);
	cut_path(p.d);
	write_mark(p.d, 2);
	two_hcas_run(p.d, p.d->now_ns + 1000);
	heal_path(p.d);
	for (int i = 0; i < 2; i++)
		modify_qp(p.d, i, &reset, HCA_QP_STATE);
	for (int i = 0; i < 2; i++)
		two_hcas_connect(p.d, i, 5);
	watch_frames(&p);
	write_once(p.d, 3);
	assert_int_equal(p.frames[0], 0);
	two_hcas_free(p.d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_use_no_packets),
		cmocka_unit_test(a_change_that_harms_nothing_costs_a_question),
		cmocka_unit_test(
			a_subnet_that_changes_faster_than_it_answers_stops_none),
		cmocka_unit_test(
			a_cut_path_ends_the_connection_as_with_packets),
		cmocka_unit_test(
			a_path_that_is_cut_from_the_start_is_not_direct),
		cmocka_unit_test(
			nothing_is_lost_or_doubled_by_the_change_to_packets),
		cmocka_unit_test(the_other_end_goes_on_without_packets),
		cmocka_unit_test(
			a_send_that_waits_for_a_receive_goes_on_by_packets),
		cmocka_unit_test(a_message_that_begins_anew_delays_no_drain),
		cmocka_unit_test(a_read_goes_on_by_packets),
		cmocka_unit_test(packets_find_the_messages_that_came_before),
		cmocka_unit_test(a_pkey_that_is_withdrawn_ends_the_connection),
		cmocka_unit_test(the_subnet_is_asked_about_the_present_pkey),
		cmocka_unit_test(gids_with_an_old_prefix_end_the_connection),
		cmocka_unit_test(an_atomic_that_the_target_has_is_not_doubled),
		cmocka_unit_test(
			a_path_that_the_program_changes_is_asked_about),
		cmocka_unit_test(
			a_queue_pair_with_an_alternate_path_sends_packets),
		cmocka_unit_test(a_peer_with_another_sl_gets_packets),
		cmocka_unit_test(unreliable_services_send_packets),
		cmocka_unit_test(
			a_new_connection_forgets_the_packets_of_the_last_one),
	};

	two_hcas_mode(argc, argv);
	has_grh = argc > 2;
	two_hcas_by_lid(has_grh);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
