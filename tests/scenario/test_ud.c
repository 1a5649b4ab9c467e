/* SPDX-License-Identifier: BSD-2-Clause */
/* The UD service between two adapters (IBTA 9.8.3) and multicast (10.5). */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "hca/explain.h"
#include "hdr/ip.h"
#include "hdr/pkt.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

#define GRH   40
#define AT    500000u
#define GROUP 0xffffffu

static const uint8_t group[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};

static struct wqe *prepare_send(struct two_hcas *d, uint32_t bytes,
				uint8_t with)
{
	memset(d->side[0].memory.bytes, with, bytes);
	return two_hcas_send(d, 0, HCA_WR_SEND, 0, bytes, 0);
}

static void post_and_run(struct two_hcas *d)
{
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
}

static void assert_sent(struct two_hcas *d, uint32_t status)
{
	struct cqe c;

	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, status);
}

/* Expects that side 1 got a datagram of `bytes` bytes, which all have the value
 * `with`.  Returns its completion. */
static struct cqe assert_got(struct two_hcas *d, uint32_t bytes, uint8_t with)
{
	const uint8_t *p = d->side[1].memory.bytes + AT;
	struct cqe c;

	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_int_equal(c.byte_len, GRH + bytes);
	assert_int_equal(c.src_qpn, d->side[0].qp->qpn);
	assert_true(c.wc_flags & HCA_WC_GRH);
	assert_int_equal(c.sl, 8 | 2); /* UDP over IPv4, as adapters report it
					*/
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(p[GRH + i], with);
	return c;
}

static const struct engine_counters *counters_of(struct two_hcas *d)
{
	return engine_counters(d->side[1].engine, 0);
}

static void a_datagram_comes_behind_its_ip_header(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	const uint8_t *grh = d->side[1].memory.bytes + AT;
	struct ip_v4 ip;

	two_hcas_recv(d, 1, AT, GRH + 4096);
	prepare_send(d, 4096, 7);
	post_and_run(d);
	assert_sent(d, HCA_SUCCESS);
	assert_got(d, 4096, 7);
	assert_true(ip_v4_parse(grh + 20, 20 + 4096 + 100, &ip));
	assert_true(ip_v4_checksum_ok(grh + 20, &ip));
	assert_int_equal(ip.src, 0x0a000001);
	assert_int_equal(ip.dst, 0x0a000002);
	assert_int_equal(ip.protocol, IP_PROTOCOL_UDP);
	two_hcas_free(d);
}

static void an_immediate_and_nothing_else_fits_a_receive_of_40_bytes(void **s)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct wqe *w;
	struct cqe c;

	two_hcas_recv(d, 1, AT, GRH);
	prepare_send(d, 1, 7);
	post_and_run(d);
	assert_sent(d, HCA_SUCCESS);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(counters_of(d)->rx_dropped, 1);
	w = prepare_send(d, 0, 0);
	w->opcode = HCA_WR_SEND_IMM;
	w->imm_be = 0x11223344;
	post_and_run(d);
	c = assert_got(d, 0, 0);
	assert_true(c.wc_flags & HCA_WC_WITH_IMM);
	assert_int_equal(c.imm_be, 0x11223344);
	two_hcas_free(d);
}

/* If sent datagrams counted as in flight, a program that posts more would wait
 * for ACKs, which UD does not have. */
static void sent_datagrams_are_not_in_flight(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	for (int k = 0; k < 8; k++)
		two_hcas_recv(d, 1, AT, 1000);
	two_hcas_post_row(d, 8, HCA_WR_SEND, 100, 0);
	two_hcas_run(d, d->now_ns + LONG);
	for (int k = 0; k < 8; k++)
		assert_sent(d, HCA_SUCCESS);
	assert_int_equal(engine_qp_flying(d->side[0].side), 0);
	two_hcas_free(d);
}

static void a_wrong_qkey_is_dropped_and_counted(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct wqe *w = prepare_send(d, 100, 1);
	struct cqe c;

	two_hcas_recv(d, 1, AT, 1000);
	wq_to(&d->side[0].qp->sq, w)->qkey = 5;
	post_and_run(d);
	assert_sent(d, HCA_SUCCESS);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(counters_of(d)->qkey_violations, 1);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_DROPPED);
	two_hcas_free(d);
}

/* A message is printed once for each key, so each reason needs its own key. */
static void each_reason_of_a_drop_is_told(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct explain *x = &d->side[1].explained;
	uint64_t lacks_receive;

	prepare_send(d, 100, 1);
	post_and_run(d);
	assert_sent(d, HCA_SUCCESS);
	assert_int_equal(x->cause, EXPLAIN_DROPPED);
	lacks_receive = explain_key(x);
	wq_to(&d->side[0].qp->sq, prepare_send(d, 100, 1))->qkey = 5;
	post_and_run(d);
	assert_sent(d, HCA_SUCCESS);
	assert_non_null(strstr(x->detail, "Q_Key"));
	assert_int_not_equal(explain_key(x), lacks_receive);
	two_hcas_free(d);
}

static void a_qkey_with_its_high_bit_stands_for_the_senders_own(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct wqe *w = prepare_send(d, 100, 1);

	two_hcas_recv(d, 1, AT, 1000);
	wq_to(&d->side[0].qp->sq, w)->qkey = 0x80000000;
	post_and_run(d);
	assert_got(d, 100, 1);
	two_hcas_free(d);
}

static void each_reason_to_drop_is_reported_once(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	/* first without a receive, then with a wrong Q_Key */
	for (uint32_t reason = 1; reason <= 2; reason++) {
		for (int k = 0; k < 5; k++) {
			struct wqe *w = prepare_send(d, 100, 1);

			if (reason == 2)
				wq_to(&d->side[0].qp->sq, w)->qkey = 5;
			post_and_run(d);
		}
		assert_int_equal(d->side[1].events[ENGINE_EXPLAIN], reason);
	}
	assert_int_equal(counters_of(d)->rx_dropped, 10);
	assert_int_equal(counters_of(d)->qkey_violations, 5);
	two_hcas_free(d);
}

static void a_message_waits_a_little_for_its_receive(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct cqe c;

	for (uint8_t k = 1; k <= 3; k++) {
		prepare_send(d, 100, k);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + 10000000);
	}
	assert_false(two_hcas_poll(d, 1, &c));
	for (uint8_t k = 1; k <= 3; k++) {
		two_hcas_recv(d, 1, AT, 1000);
		assert_got(d, 100, k);
	}
	assert_int_equal(counters_of(d)->rx_dropped, 0);
	two_hcas_free(d);
}

/* The program posts one receive while two messages wait.  The second message
 * then still has the rest of its own time. */
static void each_message_waits_from_its_own_arrival_on(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	for (uint8_t k = 1; k <= 2; k++) {
		prepare_send(d, 100, k);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + 80000000);
	}
	for (uint8_t k = 1; k <= 2; k++) {
		two_hcas_recv(d, 1, AT, 1000);
		two_hcas_run(d, d->now_ns + 2000000);
		assert_got(d, 100, k);
		engine_polled(d->side[1].engine, d->now_ns);
		two_hcas_run(d, d->now_ns + 2000000);
	}
	assert_int_equal(counters_of(d)->rx_dropped, 0);
	two_hcas_free(d);
}

static void a_process_that_slept_has_its_time_on_waking(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	prepare_send(d, 100, 1);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1000000);
	d->now_ns += 3000000000;
	engine_was_asleep(d->side[1].engine, 3000000000, d->now_ns);
	two_hcas_run(d, d->now_ns + 1000000);
	two_hcas_recv(d, 1, AT, 1000);
	assert_got(d, 100, 1);
	two_hcas_free(d);
}

static void a_program_not_seen_to_poll_has_more_time(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	for (uint8_t k = 1; k <= 2; k++) {
		prepare_send(d, 100, k);
		two_hcas_post(d, 0);
		engine_polled(d->side[1].engine, d->now_ns);
		two_hcas_run(d, d->now_ns + 1000000000);
		if (k == 2)
			engine_polled(d->side[1].engine, d->now_ns);
		two_hcas_run(d, d->now_ns + 2000000);
		two_hcas_recv(d, 1, AT, 1000);
		if (k == 1)
			assert_got(d, 100, k);
	}
	assert_int_equal(counters_of(d)->rx_dropped, 1);
	two_hcas_free(d);
}

static void a_late_receiver_is_not_waited_for_again(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	prepare_send(d, 100, 1);
	post_and_run(d);
	assert_int_equal(counters_of(d)->rx_dropped, 1);
	prepare_send(d, 100, 2);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1000000);
	assert_int_equal(counters_of(d)->rx_dropped, 2);
	two_hcas_recv(d, 1, AT, 1000);
	prepare_send(d, 100, 3);
	post_and_run(d);
	assert_got(d, 100, 3);
	prepare_send(d, 100, 4);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1000000);
	two_hcas_recv(d, 1, AT, 1000);
	assert_got(d, 100, 4);
	two_hcas_free(d);
}

static void many_waiting_datagrams_choke_the_receiver(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 256);

	for (int k = 0; k < 200; k++) {
		prepare_send(d, 100, 1);
		two_hcas_post(d, 0);
	}
	two_hcas_run(d, d->now_ns + 1000000);
	assert_true(engine_is_choked(d->side[1].engine));
	for (int k = 0; k < 200; k++)
		two_hcas_recv(d, 1, AT, 1000);
	assert_false(engine_is_choked(d->side[1].engine));
	for (int k = 0; k < 200; k++)
		assert_got(d, 100, 1);
	two_hcas_free(d);
}

/* Adds another queue pair to the process, so that no queue pair may have all
 * the room for packets that wait. */
static struct qp *add_qp(struct two_hcas_side *s)
{
	static const struct hca_qp_cap cap = {8, 8, 1, 1, 0, NULL};
	struct qp *qp = qp_new(&s->hca, 0x2000, HCA_QPT_RC, 1, s->cq, s->cq,
			       &cap, false);

	assert_non_null(engine_qp_add(s->engine, qp));
	return qp;
}

static void remove_qp(struct two_hcas_side *s, struct qp *qp)
{
	engine_qp_remove(s->engine, engine_qp_find(s->engine, qp->qpn));
	qp_withdraw(&s->hca, qp);
	qp_free(&s->hca, qp);
}

/* The packets of both queue pairs come by one socket. */
static void a_queue_pair_without_receives_does_not_hold_up_another(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 256);
	struct two_hcas_side *s = &d->side[1];
	struct qp *qp = add_qp(s);

	for (int k = 0; k < 200; k++) {
		prepare_send(d, 100, 1);
		two_hcas_post(d, 0);
	}
	two_hcas_run(d, d->now_ns + 1000000);
	assert_false(engine_is_choked(s->engine));
	for (int k = 0; k < 200; k++)
		two_hcas_recv(d, 1, AT, 1000);
	for (int k = 0; k < 128; k++)
		assert_got(d, 100, 1);
	assert_int_equal(counters_of(d)->rx_dropped, 72);
	assert_int_equal(counters_of(d)->rx_no_receive, 72);
	assert_int_equal(s->explained.dest_qpn, d->side[0].qp->qpn);
	remove_qp(s, qp);
	two_hcas_free(d);
}

static void too_small_a_receive_waits_for_the_next_message(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	two_hcas_recv(d, 1, AT, GRH + 99);
	prepare_send(d, 100, 1);
	post_and_run(d);
	prepare_send(d, 99, 2);
	post_and_run(d);
	assert_got(d, 99, 2);
	two_hcas_free(d);
}

static void more_than_the_mtu_is_a_local_error(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	prepare_send(d, 4097, 1);
	post_and_run(d);
	assert_sent(d, HCA_LOC_LEN_ERR);
	assert_int_equal(d->side[0].qp->state, HCA_QP_SQE);
	two_hcas_free(d);
}

static void a_queue_pair_in_sqe_still_receives(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct cqe c;

	prepare_send(d, 4097, 1);
	post_and_run(d);
	assert_sent(d, HCA_LOC_LEN_ERR);
	two_hcas_recv(d, 0, AT, 1000);
	two_hcas_send(d, 1, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns + LONG);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
	two_hcas_free(d);
}

static void a_receive_of_bad_memory_fails_the_queue_pair(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct cqe c;

	d->side[1].memory.size = AT;
	two_hcas_recv(d, 1, AT, 1000);
	prepare_send(d, 100, 1);
	post_and_run(d);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.status, HCA_LOC_PROT_ERR);
	/* two_hcas_poll may have found the bad memory when it copied an eager
	 * message; then the engine's next turn fails the QP */
	two_hcas_run(d, d->now_ns);
	assert_int_equal(d->side[1].qp->state, HCA_QP_ERR);
	two_hcas_free(d);
}

static int another_pkey(void *context, int from, const struct engine_frame *f)
{
	((uint8_t *)(uintptr_t)f->bytes)[3] ^= 1;
	return 1;
}

static void another_partition_is_counted_and_dropped(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct cqe c;

	d->fate = another_pkey;
	two_hcas_recv(d, 1, AT, 1000);
	prepare_send(d, 100, 1);
	post_and_run(d);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(counters_of(d)->pkey_violations, 1);
	two_hcas_free(d);
}

static void to_group(struct two_hcas *d, struct wqe *w)
{
	struct wq_to *to = wq_to(&d->side[0].qp->sq, w);

	memcpy(to->to, group, 16);
	to->qpn = GROUP;
}

static void a_queue_pair_gets_datagrams_of_a_group_while_attached(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct two_hcas_side *s = &d->side[1];
	struct cqe c;

	two_hcas_recv(d, 1, AT, 1000);
	to_group(d, prepare_send(d, 100, 1));
	post_and_run(d);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(engine_mcast_attach(s->engine, s->side, group), 0);
	assert_int_equal(engine_mcast_attach(s->engine, s->side, group), 0);
	to_group(d, prepare_send(d, 100, 2));
	post_and_run(d);
	assert_got(d, 100, 2);
	assert_int_equal(engine_mcast_detach(s->engine, s->side, group), 0);
	assert_int_equal(engine_mcast_detach(s->engine, s->side, group),
			 -EINVAL);
	two_hcas_recv(d, 1, AT, 1000);
	to_group(d, prepare_send(d, 100, 3));
	post_and_run(d);
	assert_false(two_hcas_poll(d, 1, &c));
	two_hcas_free(d);
}

/* Sends the group a datagram, which side 1 must get `times` times. */
static void assert_heard(struct two_hcas *d, uint8_t seed, int times)
{
	struct cqe c;

	two_hcas_recv(d, 1, AT, 1000);
	to_group(d, prepare_send(d, 100, seed));
	post_and_run(d);
	for (int i = 0; i < times; i++)
		assert_got(d, 100, seed);
	assert_false(two_hcas_poll(d, 1, &c));
}

/* `group` is the alias of two other groups, and is attached by its own name
 * too.  Each detach removes one of the three attachments. */
static void an_alias_and_its_group_are_detached_apart(void **state)
{
	static const uint8_t first[16] = {0xff, 0x0e, [15] = 1};
	static const uint8_t second[16] = {0xff, 0x0e, [15] = 2};
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct two_hcas_side *s = &d->side[1];
	struct engine *e = s->engine;

	assert_int_equal(engine_mcast_attach(e, s->side, first), 0);
	assert_int_equal(engine_mcast_attach_alias(e, s->side, first, group),
			 0);
	/* `group` is not attached by its own name yet */
	assert_int_equal(engine_mcast_detach(e, s->side, group), -EINVAL);
	assert_int_equal(engine_mcast_attach(e, s->side, group), 0);
	assert_int_equal(engine_mcast_attach(e, s->side, second), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			engine_mcast_attach_alias(e, s->side, second, group),
			0);
	assert_heard(d, 1, 1);
	assert_int_equal(engine_mcast_detach(e, s->side, first), 0);
	assert_heard(d, 2, 1);
	assert_int_equal(engine_mcast_detach(e, s->side, group), 0);
	assert_heard(d, 3, 1);
	assert_int_equal(engine_mcast_detach(e, s->side, second), 0);
	assert_false(engine_mcast_is_used(e, group));
	assert_heard(d, 4, 0);
	two_hcas_free(d);
}

static void a_sender_does_not_hear_itself(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct two_hcas_side *s = &d->side[0];
	struct engine_frame f[2];
	struct cqe c;

	assert_int_equal(engine_mcast_attach(s->engine, s->side, group), 0);
	two_hcas_recv(d, 0, AT, 1000);
	/* the second datagram is from another local address, and leaves before
	 * the first arrives */
	for (uint8_t i = 0; i < 2; i++) {
		struct wqe *w = prepare_send(d, 100, 1);

		to_group(d, w);
		wq_to(&s->qp->sq, w)->from[15] ^= i;
		two_hcas_post(d, 0);
	}
	assert_int_equal(engine_tx(s->engine, f, 2, d->now_ns), 2);
	for (int i = 0; i < 2; i++) {
		struct engine_dgram g = {.from = f[i].from,
					 .to = f[i].to,
					 .bytes = f[i].bytes,
					 .len = f[i].len,
					 .local = true};

		engine_rx(s->engine, &g, d->now_ns);
	}
	engine_tx_done(s->engine, 2);
	assert_sent(d, HCA_SUCCESS);
	assert_sent(d, HCA_SUCCESS);
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_free(d);
}

/* A queue pair of another host may have the same QPN. */
static void a_sender_with_the_same_qpn_elsewhere_is_heard(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct two_hcas_side *s = &d->side[1];

	assert_int_equal(engine_mcast_attach(s->engine, s->side, group), 0);
	two_hcas_recv(d, 1, AT, 1000);
	d->side[0].qp->qpn = s->qp->qpn;
	to_group(d, prepare_send(d, 100, 1));
	post_and_run(d);
	assert_got(d, 100, 1);
	two_hcas_free(d);
}

/* Two devices of a process may be on different networks. */
static void a_datagram_to_a_group_is_for_the_device_that_got_it(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct two_hcas_side *s = &d->side[1];
	struct cqe c;

	assert_int_equal(engine_mcast_attach(s->engine, s->side, group), 0);
	two_hcas_recv(d, 1, AT, 1000);
	s->qp->device = 1; /* the datagram comes to device 0 */
	to_group(d, prepare_send(d, 100, 1));
	post_and_run(d);
	assert_false(two_hcas_poll(d, 1, &c));
	s->qp->device = 0;
	to_group(d, prepare_send(d, 100, 2));
	post_and_run(d);
	assert_got(d, 100, 2);
	two_hcas_free(d);
}

/* IBTA 10.5.1: a datagram to a group names the multicast QPN. */
static void a_datagram_to_a_group_names_no_queue_pair(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct two_hcas_side *s = &d->side[1];
	struct wqe *w;
	struct cqe c;

	assert_int_equal(engine_mcast_attach(s->engine, s->side, group), 0);
	two_hcas_recv(d, 1, AT, 1000);
	w = prepare_send(d, 100, 1);
	to_group(d, w);
	wq_to(&d->side[0].qp->sq, w)->qpn = s->qp->qpn;
	/* so the datagram goes in a packet, and not direct */
	wq_to(&d->side[0].qp->sq, w)->local = false;
	post_and_run(d);
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(counters_of(d)->refused.wrong_peer, 1);
	two_hcas_free(d);
}

/* ---- a peer of this host works at the queue pair ---- */

/* A peer of this host may write the memory that rq_take reads, so that rq_take
 * returns a slot into which no receive was posted.  Such a slot still describes
 * the memory of a receive that has completed. */
static void a_receive_that_was_not_posted_does_not_complete(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct qp *qp = d->side[1].qp;
	uint32_t size = qp->rq.size;
	struct cqe c;

	for (uint32_t k = 0; k <= size; k++) {
		if (k < size)
			two_hcas_recv(d, 1, AT, 1000);
		else
			qp_target(qp)->held = size + 1;
		prepare_send(d, 100, 1);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + 1000000000);
		assert_int_equal(two_hcas_poll(d, 1, &c), k < size);
		two_hcas_poll(d, 0, &c);
	}
	assert_int_equal(shared_load(&qp->rq.collected), size);
	two_hcas_free(d);
}

static bool is_dead(alock_owner owner)
{
	return false;
}

static void report_slow(alock_owner owner)
{
}

static const struct alock_judge judge = {is_dead, report_slow, NULL, is_dead};

static void set_lock_holder(struct two_hcas *d, alock_owner peer)
{
	alock_open(1, &judge);
	atomic_store(&qp_target(d->side[1].qp)->lock.owner, peer);
}

static void a_datagram_waits_for_the_holder_of_the_responder_lock(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct cqe c;

	for (uint8_t k = 1; k <= 2; k++)
		two_hcas_recv(d, 1, AT, 1000);
	set_lock_holder(d, 99);
	for (uint8_t k = 1; k <= 2; k++) {
		prepare_send(d, 100, k);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + 1000000000);
	}
	assert_false(two_hcas_poll(d, 1, &c));
	assert_int_equal(counters_of(d)->rx_dropped, 0);
	set_lock_holder(d, 0);
	two_hcas_run(d, d->now_ns + 2000000);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_got(d, 100, 2);
	two_hcas_free(d);
}

static void
datagrams_are_dropped_while_the_responder_lock_stays_held(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);

	two_hcas_recv(d, 1, AT, 1000);
	set_lock_holder(d, 99);
	prepare_send(d, 100, 1);
	post_and_run(d);
	assert_int_equal(counters_of(d)->rx_dropped, 1);
	assert_int_equal(d->side[1].explained.cause, EXPLAIN_DROPPED);
	assert_int_equal(d->side[1].explained.dest_qpn, d->side[0].qp->qpn);
	prepare_send(d, 100, 2);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1000000);
	assert_int_equal(counters_of(d)->rx_dropped, 2);
	set_lock_holder(d, 0);
	prepare_send(d, 100, 3);
	post_and_run(d);
	assert_got(d, 100, 3);
	two_hcas_free(d);
}

/* The receives are posted, so the lock alone is the reason. */
static void
the_lock_is_the_reason_if_there_is_no_room_to_wait_for_it(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 256);
	struct two_hcas_side *s = &d->side[1];
	struct qp *qp = add_qp(s);

	for (int k = 0; k < 200; k++)
		two_hcas_recv(d, 1, AT, 1000);
	set_lock_holder(d, 99);
	for (int k = 0; k < 200; k++) {
		prepare_send(d, 100, 1);
		two_hcas_post(d, 0);
	}
	two_hcas_run(d, d->now_ns + 1000000);
	assert_int_equal(counters_of(d)->rx_dropped, 72);
	assert_int_equal(counters_of(d)->rx_no_receive, 0);
	assert_non_null(strstr(s->explained.detail, "locked"));
	assert_int_equal(s->explained.dest_qpn, d->side[0].qp->qpn);
	set_lock_holder(d, 0);
	two_hcas_run(d, d->now_ns + 2000000);
	for (int k = 0; k < 128; k++)
		assert_got(d, 100, 1);
	remove_qp(s, qp);
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_datagram_comes_behind_its_ip_header),
		cmocka_unit_test(sent_datagrams_are_not_in_flight),
		cmocka_unit_test(
			an_immediate_and_nothing_else_fits_a_receive_of_40_bytes),
		cmocka_unit_test(a_wrong_qkey_is_dropped_and_counted),
		cmocka_unit_test(each_reason_of_a_drop_is_told),
		cmocka_unit_test(
			a_qkey_with_its_high_bit_stands_for_the_senders_own),
		cmocka_unit_test(each_reason_to_drop_is_reported_once),
		cmocka_unit_test(a_message_waits_a_little_for_its_receive),
		cmocka_unit_test(each_message_waits_from_its_own_arrival_on),
		cmocka_unit_test(a_process_that_slept_has_its_time_on_waking),
		cmocka_unit_test(a_program_not_seen_to_poll_has_more_time),
		cmocka_unit_test(a_late_receiver_is_not_waited_for_again),
		cmocka_unit_test(
			too_small_a_receive_waits_for_the_next_message),
		cmocka_unit_test(more_than_the_mtu_is_a_local_error),
		cmocka_unit_test(a_queue_pair_in_sqe_still_receives),
		cmocka_unit_test(a_receive_of_bad_memory_fails_the_queue_pair),
		cmocka_unit_test(
			a_queue_pair_gets_datagrams_of_a_group_while_attached),
		cmocka_unit_test(an_alias_and_its_group_are_detached_apart),
		cmocka_unit_test(a_sender_does_not_hear_itself),
		cmocka_unit_test(a_sender_with_the_same_qpn_elsewhere_is_heard),
		cmocka_unit_test(a_datagram_to_a_group_names_no_queue_pair),
		cmocka_unit_test(
			a_datagram_to_a_group_is_for_the_device_that_got_it),
	};
	const struct CMUnitTest of_packets[] = {
		cmocka_unit_test(many_waiting_datagrams_choke_the_receiver),
		cmocka_unit_test(
			a_queue_pair_without_receives_does_not_hold_up_another),
		cmocka_unit_test(another_partition_is_counted_and_dropped),
		cmocka_unit_test(
			a_receive_that_was_not_posted_does_not_complete),
		cmocka_unit_test(
			a_datagram_waits_for_the_holder_of_the_responder_lock),
		cmocka_unit_test(
			datagrams_are_dropped_while_the_responder_lock_stays_held),
		cmocka_unit_test(
			the_lock_is_the_reason_if_there_is_no_room_to_wait_for_it),
	};
	int failed;

	two_hcas_mode(argc, argv);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (!two_hcas_is_direct())
		failed += cmocka_run_group_tests(of_packets, NULL, NULL);
	return failed;
}
