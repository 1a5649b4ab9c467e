/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forged packets with the right addresses and queue pair of a connection do no
 * harm: packets with a guessed PSN, packets in the name of a peer whose path is
 * direct, and packets from the source port of another user.
 */
#include "test.h"

#include "engine/source_check.h"
#include "ibt/ibt.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

/* The longest time for which an early packet is held, in ns.  This is not the
 * product's own constant, so that the test fails if packets are held longer. */
#define HELD_NS	  10000000
#define SOON	  1000000 /* ns; before any timeout */
#define MTU_1024  3
#define ROW	  300 /* packets of a WRITE */
#define ROW_BYTES (ROW * 1024)

static const struct engine_counters *counters_of(struct two_hcas *d, int i)
{
	return engine_counters(d->side[i].engine, 0);
}

/* Forges a WRITE to side 1 whose PSN is the expected PSN plus `ahead`, without
 * AckReq and with an unknown key. */
static void forge_ahead(struct two_hcas *d, int ahead)
{
	struct pkt p = {.bth.opcode = OPCODE_RC_WRITE_ONLY,
			.reth = {TWO_HCAS_BASE, 0x12345678, 64},
			.payload_len = 64};

	p.bth.psn = serial24_add(d->side[1].side->resp.epsn, ahead).v;
	two_hcas_forge(d, 1, &p);
}

/* A WRITE of many packets from side 0 arrives unchanged. */
static void assert_works(struct two_hcas *d)
{
	struct cqe c;

	two_hcas_fill(d, 0, 0, ROW_BYTES);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, ROW_BYTES, 400000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_int_equal(d->side[1].qp->state, HCA_QP_RTS);
	assert_memory_equal(d->side[0].memory.bytes,
			    d->side[1].memory.bytes + 400000, ROW_BYTES);
}

static void a_packet_beyond_the_window_is_not_kept(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);

	for (int ahead = 512 + 1; ahead < 0x7fffff; ahead *= 3)
		forge_ahead(d, ahead);
	assert_int_equal(counters_of(d, 1)->rx_buffered, 0);
	assert_true(counters_of(d, 1)->rx_wrong_psn > 5);
	assert_works(d);
	two_hcas_free(d);
}

/* A sender that tries PSNs makes the requester go back now and then, but not
 * for each packet. */
static void guessed_psns_seldom_make_the_requester_go_back(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct pkt p = {.bth.opcode = OPCODE_RC_SEND_ONLY, .bth.ackreq = true};
	struct serial24 psn = d->side[1].side->resp.epsn;

	for (int k = 0; k < 100; k++) {
		p.bth.psn = serial24_add(psn, 5000 + k).v;
		two_hcas_forge(d, 1, &p);
		/* as if the expected packet had arrived */
		d->side[1].side->resp.nak_sent = false;
		d->now_ns += HELD_NS / 50;
	}
	assert_uint_in_range(counters_of(d, 1)->naks.seq_tx, 1, 3);
	assert_works(d);
	two_hcas_free(d);
}

static void early_packets_are_held_for_a_limited_time(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);

	forge_ahead(d, 100);
	assert_int_equal(counters_of(d, 1)->rx_buffered, 1);
	assert_false(engine_is_idle(d->side[1].engine));
	two_hcas_run(d, d->now_ns + 2 * HELD_NS);
	assert_true(engine_is_idle(d->side[1].engine));
	assert_works(d);
	two_hcas_free(d);
}

/* All queue pairs share the pool of held packets, so an idle queue pair must
 * not keep packets there. */
static void early_packets_take_no_room_for_ever(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);

	for (int ahead = 1; ahead <= IBT_HELD_PER_QP; ahead++)
		forge_ahead(d, ahead);
	assert_int_equal(counters_of(d, 1)->rx_buffered, IBT_HELD_PER_QP);
	two_hcas_run(d, d->now_ns + 2 * HELD_NS);
	assert_true(engine_is_idle(d->side[1].engine));
	assert_works(d);
	two_hcas_free(d);
}

/* If two early packets with one PSN differ, one of them is forged: both are
 * dropped. */
static void two_different_packets_with_one_psn_are_dropped(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct two_hcas_side *s = &d->side[1];
	struct serial24 psn = s->side->resp.epsn;
	struct pkt p = {.bth.opcode = OPCODE_RC_WRITE_ONLY,
			.reth = {TWO_HCAS_BASE, s->mr->rkey, 64},
			.payload_len = 64};

	forge_ahead(d, 1);
	p.bth.psn = serial24_add(psn, 1).v;
	two_hcas_forge(d, 1, &p);
	p.bth.psn = psn.v;
	two_hcas_forge(d, 1, &p);
	assert_int_equal(s->side->resp.epsn.v, serial24_add(psn, 1).v);
	assert_int_equal(s->qp->state, HCA_QP_RTS);
	two_hcas_free(d);
}

/* Returns two sides whose requests use no packets. */
static struct two_hcas *direct_new(uint32_t type)
{
	static char *direct[] = {"", "direct"}, *packets[] = {"", "packets"};
	struct two_hcas *d;

	two_hcas_mode(2, direct);
	d = two_hcas_new_of(type, MTU_1024, 16);
	two_hcas_mode(2, packets);
	return d;
}

static void to_reset(struct two_hcas *d, int i)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_RESET};
	struct two_hcas_side *s = &d->side[i];
	const char *why = "";

	assert_int_equal(engine_qp_modify(s->engine, s->side, &a, HCA_QP_STATE,
					  s->ip, d->now_ns, &why),
			 0);
}

/* The path of the peer is direct: the peer executes its requests at the
 * responder, without packets.  So packets in the name of this peer are forged.
 */
static void packets_in_the_name_of_a_direct_peer_are_refused(void **state)
{
	struct pkt p = {.bth.opcode = OPCODE_RC_SEND_ONLY, .payload_len = 64};
	struct two_hcas *d;
	struct cqe c;

	d = direct_new(HCA_QPT_RC);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 5000);
	two_hcas_post(d, 0);
	two_hcas_recv(d, 1, 0, 1000);
	two_hcas_run(d, d->now_ns + SOON);
	assert_true(two_hcas_poll(d, 0, &c));
	p.bth.psn = d->side[1].side->resp.epsn.v;
	two_hcas_forge(d, 1, &p);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(counters_of(d, 1)->refused.wrong_peer, 1);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + SOON);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.byte_len, 100);
	two_hcas_free(d);
}

/* The peer is in RESET; a forged ACK says that all requests have arrived. */
static void direct_requests_are_not_acknowledged_by_packets(void **state)
{
	struct two_hcas *d = direct_new(HCA_QPT_RC);
	struct pkt p = {.bth.opcode = OPCODE_RC_ACKNOWLEDGE,
			.aeth.syndrome = AETH_CREDITS_INVALID};
	struct cqe c;

	to_reset(d, 1);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 5000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + SOON);
	p.bth.psn = d->side[0].side->req.una.v;
	two_hcas_forge(d, 0, &p);
	assert_false(two_hcas_poll(d, 0, &c));
	assert_int_equal(counters_of(d, 0)->refused.wrong_peer, 1);
	two_hcas_free(d);
}

static void packets_in_the_name_of_a_direct_uc_peer_are_refused(void **state)
{
	struct two_hcas *d = direct_new(HCA_QPT_UC);
	struct pkt p = {.bth.opcode = OPCODE_UC_SEND_ONLY, .payload_len = 64};
	struct cqe c;

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 5000);
	two_hcas_post(d, 0);
	two_hcas_recv(d, 1, 0, 1000);
	two_hcas_run(d, d->now_ns + SOON);
	p.bth.psn = 77;
	two_hcas_forge(d, 1, &p);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(counters_of(d, 1)->refused.wrong_peer, 1);
	two_hcas_free(d);
}

/* The initiator finds no receive, uses packets from then on, and its packets
 * are accepted. */
static void a_uc_peer_that_leaves_the_direct_path_uses_packets(void **state)
{
	struct two_hcas *d = direct_new(HCA_QPT_UC);
	struct cqe c;

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 5000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + SOON);
	assert_true(two_hcas_poll(d, 0, &c));
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + SOON);
	assert_int_equal(d->side[0].side->direct.path, IBT_PATH_PACKETS);
	two_hcas_recv(d, 1, 0, 1000);
	two_hcas_run(d, d->now_ns + SOON);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.byte_len, 100);
	assert_int_equal(counters_of(d, 1)->refused.wrong_peer, 0);
	two_hcas_free(d);
}

/* ---- connections within this host ---- */

#define OTHERS_PORT 0xbeef

static struct two_hcas *local_new(uint32_t type)
{
	struct two_hcas *d = two_hcas_new_of(type, MTU_1024, 16);

	for (int i = 0; i < 2; i++) {
		d->side[i].qp->attr.ah.local = true;
		engine_page(d->side[i].engine, d->side[!i].qp->qpn, NULL);
	}
	return d;
}

/* Returns the SEND that side 1 expects next.  The caller chooses the source
 * port from which the SEND comes. */
static struct pkt forged_send(struct two_hcas *d, uint8_t opcode)
{
	struct pkt p = {.bth.opcode = opcode, .payload_len = 64};

	p.bth.psn = d->side[1].side->resp.epsn.v;
	return p;
}

static void a_port_of_another_user_sends_nothing(uint32_t type, uint8_t opcode)
{
	struct two_hcas *d = local_new(type);
	struct pkt p = forged_send(d, opcode);
	struct cqe c;

	two_hcas_recv(d, 1, 0, 1000);
	for (int k = 0; k < 10; k++)
		two_hcas_forge_from(d, 1, &p, OTHERS_PORT);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(counters_of(d, 1)->refused.wrong_source, 10);
	assert_int_equal(d->asked, 1);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + SOON);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.byte_len, 100);
	two_hcas_free(d);
}

static void another_users_port_sends_nothing_to_rc(void **state)
{
	a_port_of_another_user_sends_nothing(HCA_QPT_RC, OPCODE_RC_SEND_ONLY);
}

static void another_users_port_sends_nothing_to_uc(void **state)
{
	a_port_of_another_user_sends_nothing(HCA_QPT_UC, OPCODE_UC_SEND_ONLY);
}

/* UC retransmits nothing, so packets that wait for the answer must not be lost.
 */
static void packets_wait_for_the_answer_about_their_source(void **state)
{
	struct two_hcas *d = local_new(HCA_QPT_UC);
	struct engine_source s;
	struct cqe c;

	d->is_silent = true;
	for (int k = 0; k < 3; k++) {
		two_hcas_recv(d, 1, 0, 5000);
		two_hcas_send(d, 0, HCA_WR_SEND, 0, 3000, 0);
		two_hcas_post(d, 0);
	}
	two_hcas_run(d, d->now_ns + SOON);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_true(engine_wants_source(d->side[1].engine, &s));
	assert_int_equal(s.qpn, d->side[0].qp->qpn);
	engine_source(d->side[1].engine, &s, true, d->now_ns);
	for (int k = 0; k < 3; k++) {
		assert_true(two_hcas_poll(d, 1, &c));
		assert_int_equal(c.byte_len, 3000);
	}
	assert_false(engine_wants_source(d->side[1].engine, &s));
	two_hcas_free(d);
}

/* The peer's process has ended, and another process has its port. */
static void a_port_is_not_trusted_for_ever(void **state)
{
	struct two_hcas *d = local_new(HCA_QPT_RC);
	struct pkt p = forged_send(d, OPCODE_RC_SEND_ONLY);
	uint16_t port = d->side[0].side->self.port;
	struct engine_source s;
	struct cqe c;

	two_hcas_forge_from(d, 1, &p, port); /* there is no receive */
	assert_int_equal(d->asked, 1);
	two_hcas_recv(d, 1, 0, 1000);
	d->is_silent = true;
	engine_forget_sources(d->side[1].engine);
	p = forged_send(d, OPCODE_RC_SEND_ONLY);
	two_hcas_forge_from(d, 1, &p, port);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_true(engine_wants_source(d->side[1].engine, &s));
	engine_source(d->side[1].engine, &s, false, d->now_ns);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(counters_of(d, 1)->refused.wrong_source, 1);
	two_hcas_free(d);
}

/* The engine asks again about a trusted port now and then, and trusts the port
 * meanwhile. */
static void packets_of_a_trusted_port_wait_for_no_answer(void **state)
{
	struct two_hcas *d = local_new(HCA_QPT_RC);

	assert_works(d);
	assert_uint_in_range(d->asked, 2, 4); /* each side asks once or twice */
	for (int k = 0; k < 5; k++) {
		d->asked = 0;
		d->now_ns += SOURCE_NS;
		assert_works(d);
		assert_uint_in_range(d->asked, 2, 4);
	}
	d->is_silent = true;
	d->now_ns += SOURCE_NS;
	assert_works(d);
	two_hcas_free(d);
}

/* The engine asks the host about new source ports.  A sender with many source
 * ports causes few questions. */
static void many_ports_are_not_all_asked_about(void **state)
{
	struct two_hcas *d = local_new(HCA_QPT_RC);
	struct pkt p = forged_send(d, OPCODE_RC_SEND_ONLY);

	assert_works(d);
	p.bth.psn = d->side[1].side->resp.epsn.v;
	d->asked = 0;
	d->now_ns += SOURCE_ASK_NS;
	for (uint16_t port = 1; port < 20000; port++)
		two_hcas_forge_from(d, 1, &p, port);
	assert_uint_in_range(d->asked, 1, SOURCE_ASKS);
	assert_true(counters_of(d, 1)->refused.limited > 10000);
	assert_int_equal(counters_of(d, 1)->refused.wrong_source, d->asked);
	assert_works(d);
	two_hcas_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_beyond_the_window_is_not_kept),
		cmocka_unit_test(
			guessed_psns_seldom_make_the_requester_go_back),
		cmocka_unit_test(early_packets_are_held_for_a_limited_time),
		cmocka_unit_test(early_packets_take_no_room_for_ever),
		cmocka_unit_test(
			two_different_packets_with_one_psn_are_dropped),
		cmocka_unit_test(
			packets_in_the_name_of_a_direct_peer_are_refused),
		cmocka_unit_test(
			direct_requests_are_not_acknowledged_by_packets),
		cmocka_unit_test(
			packets_in_the_name_of_a_direct_uc_peer_are_refused),
		cmocka_unit_test(
			a_uc_peer_that_leaves_the_direct_path_uses_packets),
		cmocka_unit_test(another_users_port_sends_nothing_to_rc),
		cmocka_unit_test(another_users_port_sends_nothing_to_uc),
		cmocka_unit_test(
			packets_wait_for_the_answer_about_their_source),
		cmocka_unit_test(a_port_is_not_trusted_for_ever),
		cmocka_unit_test(packets_of_a_trusted_port_wait_for_no_answer),
		cmocka_unit_test(many_ports_are_not_all_asked_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
