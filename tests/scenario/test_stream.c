/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP without errors: two queue pairs whose byte streams the test cuts into
 * pieces. */
#include "test.h"

#include "scenario/joined.h"

/* RFC 5041 5.2, RFC 5041 5.3, RFC 5040 5.1, 5.2.1, 5.2.2 and 5.3. */
static void each_kind_of_request_arrives_at_each_size(void **state)
{
	static const uint32_t sizes[] = {0,    1,    7,	   8,	 9,    1000,
					 1381, 1382, 1383, 1386, 1387, 100000};
	struct joined j;

	for (int choice = 0; choice < 8; choice++) {
		struct stream_config c = joined_config;

		c.has_crc = choice & 1;
		c.tx_markers = choice & 2;
		c.rx_markers = choice & 4;
		joined_with(&j, &c);
		for (uint32_t i = 0; i < TEST_COUNT(sizes); i++)
			joined_exchange(&j, sizes[i]);
		joined_idle(&j, 0);
		joined_idle(&j, 1);
		joined_part(&j);
	}
}

static void a_stream_may_be_cut_at_each_byte(void **state)
{
	for (uint32_t piece = 1; piece < 200; piece += piece < 40 ? 1 : 13) {
		struct stream_config c = joined_config;
		struct joined j;

		c.tx_markers = piece % 2;
		c.ulpdu_max = STREAM_ULPDU_MIN + piece % 5;
		joined_with(&j, &c);
		j.piece = piece;
		joined_exchange(&j, 1000);
		joined_exchange(&j, 3);
		joined_part(&j);
	}
}

/* The first `cut` bytes come together, and then the other bytes. */
static void one_cut_at_any_place_changes_nothing(void **state)
{
	struct joined j;

	joined_plain(&j);
	for (uint32_t cut = 0; cut < 450; cut++) {
		two_hcas_fill(j.d, 0, 0, 200);
		two_hcas_recv(j.d, 1, 1000, 200);
		joined_post(&j, HCA_WR_SEND, 0, 200, 0);
		joined_post(&j, HCA_WR_RDMA_WRITE, 0, 200, 2000);
		joined_fill(&j, 0);
		joined_deliver(&j, 1, cut);
		joined_deliver(&j, 1, UINT32_MAX);
		joined_run(&j);
		joined_done(&j, 0, HCA_SUCCESS);
		joined_done(&j, 0, HCA_SUCCESS);
		joined_done(&j, 1, HCA_SUCCESS);
		joined_same(&j, 0, 1000, 200);
		joined_same(&j, 0, 2000, 200);
	}
	joined_part(&j);
}

/* Side 0 READs into three elements.  The Read Request names only the first. */
static void a_read_is_scattered_by_its_request(void **state)
{
	struct joined j;
	struct wqe *w;

	joined_plain(&j);
	two_hcas_fill(j.d, 1, 0, 5000);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_READ, 10000, 5000, 0);
	w->num_sge = 3;
	wqe_sges(w)[1] = wqe_sges(w)[2] = wqe_sges(w)[0];
	wqe_sges(w)[0].bytes = 1500;
	wqe_sges(w)[1].bytes = 1;
	wqe_sges(w)[1].va += 20000;
	wqe_sges(w)[2].bytes = 3499;
	wqe_sges(w)[2].va += 30000;
	two_hcas_post(j.d, 0);
	joined_run(&j);
	joined_done(&j, 0, HCA_SUCCESS);
	joined_same(&j, 10000, 0, 1500);
	joined_same(&j, 30000, 1500, 1);
	joined_same(&j, 40000, 1501, 3499);
	joined_part(&j);
}

/* RFC 5040 6.1. */
static void no_more_reads_are_under_way_than_ord(void **state)
{
	struct stream_config c = joined_config;
	struct joined j;

	c.ord = 2;
	joined_with(&j, &c);
	for (int i = 0; i < 9; i++)
		joined_post(&j, HCA_WR_RDMA_READ, 1000u * (uint32_t)i, 100,
			    5000);
	joined_fill(&j, 0);
	assert_int_equal(j.d->side[0].side->stream->out.reads_out, 2);
	assert_int_equal(j.pipe[0].head, 2 * (2 + 18 + 28 + 4));
	joined_run(&j);
	for (int i = 0; i < 9; i++)
		joined_done(&j, 0, HCA_SUCCESS);
	joined_part(&j);
}

static void a_fence_waits_for_the_reads_before(void **state)
{
	struct joined j;
	struct wqe *w;

	joined_plain(&j);
	two_hcas_fill(j.d, 1, 5000, 100);
	joined_post(&j, HCA_WR_RDMA_READ, 0, 100, 5000);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_WRITE, 0, 100, 7000);
	w->flags |= HCA_SEND_FENCE;
	two_hcas_post(j.d, 0);
	joined_run(&j);
	joined_done(&j, 0, HCA_SUCCESS);
	joined_done(&j, 0, HCA_SUCCESS);
	assert_memory_equal(joined_bytes(&j, 1) + 7000,
			    joined_bytes(&j, 1) + 5000, 100);
	joined_part(&j);
}

/* A WRITE that was sent completes after the READ that was posted before it (RFC
 * 5040 5.5). */
static void requests_complete_in_order(void **state)
{
	struct joined j;

	joined_plain(&j);
	joined_post(&j, HCA_WR_RDMA_READ, 0, 100, 5000);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 100, 7000);
	joined_fill(&j, 0);
	joined_idle(&j, 0);
	joined_run(&j);
	assert_int_equal(joined_polled(&j, 0).opcode, HCA_WC_RDMA_READ);
	assert_int_equal(joined_polled(&j, 0).opcode, HCA_WC_RDMA_WRITE);
	joined_part(&j);
}

/* RFC 5044 7.1.2. */
static void a_responder_sends_nothing_before_it_has_received(void **state)
{
	struct joined j;

	joined_plain(&j);
	two_hcas_send(j.d, 1, HCA_WR_RDMA_WRITE, 0, 10, 100);
	two_hcas_post(j.d, 1);
	joined_run(&j);
	joined_idle(&j, 1);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 1, 0);
	joined_run(&j);
	joined_done(&j, 1, HCA_SUCCESS);
	joined_part(&j);
}

/* The initiator should send first, but waits for the responder. */
static void a_responder_may_begin_without_the_peer(void **state)
{
	struct joined j;

	joined_plain(&j);
	two_hcas_fill(j.d, 1, 0, 10);
	two_hcas_send(j.d, 1, HCA_WR_RDMA_WRITE, 0, 10, 100);
	two_hcas_post(j.d, 1);
	joined_run(&j);
	joined_idle(&j, 1);
	engine_stream_begin(j.d->side[1].engine, j.d->side[1].side);
	joined_run(&j);
	joined_done(&j, 1, HCA_SUCCESS);
	joined_same(&j, 100, 0, 10);
	joined_exchange(&j, 100);
	joined_part(&j);
}

/* A WRITE without bytes changes nothing.  engine_stream_nudge sends it only
 * while no message is being sent. */
static void a_nudge_is_a_write_without_bytes(void **state)
{
	struct joined j;

	joined_plain(&j);
	engine_stream_nudge(j.d->side[0].engine, j.d->side[0].side);
	joined_fill(&j, 0);
	assert_int_equal(j.pipe[0].head, 2 + 14 + 4);
	joined_run(&j);
	joined_idle(&j, 0);
	joined_idle(&j, 1);
	assert_true(engine_stream_has_begun(j.d->side[1].side));
	joined_exchange(&j, 5000);
	joined_part(&j);
}

/* RFC 6581 9.2.  No kind needs an access right. */
static void each_kind_of_ready_to_receive_lets_the_peer_send(void **state)
{
	for (uint32_t rtr = MPA_RTR_SEND; rtr <= MPA_RTR_READ; rtr <<= 1) {
		struct stream_config c = joined_config;
		struct joined j;

		c.rtr = (uint8_t)rtr;
		c.ird = 0;
		joined_with(&j, &c);
		j.d->side[1].qp->attr.access_flags = 0;
		two_hcas_send(j.d, 1, HCA_WR_RDMA_WRITE, 0, 10, 100);
		two_hcas_post(j.d, 1);
		joined_run(&j);
		joined_done(&j, 1, HCA_SUCCESS);
		joined_idle(&j, 0);
		assert_false(j.d->side[0].side->stream->out.awaits_rtr);
		joined_part(&j);
	}
}

/* RFC 6581 1.1: a ready-to-receive SEND takes no receive, and may be an FPDU
 * without bytes. */
static void a_ready_to_receive_by_send_takes_no_receive(void **state)
{
	struct joined j;
	struct fpdu_tx tx;

	joined_kinds(&j, MPA_RTR_SEND, MPA_RTR_SEND);
	joined_run(&j);
	joined_idle(&j, 1);
	assert_true(engine_stream_has_begun(j.d->side[1].side));
	joined_exchange(&j, 100);
	joined_part(&j);
	joined_kinds(&j, 0, MPA_RTR_SEND);
	fpdu_tx_init(&tx, true, false);
	j.pipe[0].head = fpdu_seal(&tx, j.pipe[0].bytes, 0);
	joined_run(&j);
	assert_true(engine_stream_has_begun(j.d->side[1].side));
	joined_exchange(&j, 100);
	joined_part(&j);
}

/* FIN may follow when the ready-to-receive message, all posted requests and all
 * due responses have been sent. */
static void a_stream_is_drained_when_all_is_sent(void **state)
{
	struct ibt_qp *q[2];
	struct joined j;

	joined_kinds(&j, MPA_RTR_WRITE, MPA_RTR_WRITE);
	for (int i = 0; i < 2; i++)
		q[i] = j.d->side[i].side;
	assert_false(engine_stream_is_drained(q[0]));
	assert_true(engine_stream_is_drained(q[1]));
	assert_true(engine_stream_has_begun(q[0]));
	assert_false(engine_stream_has_begun(q[1]));
	joined_post(&j, HCA_WR_RDMA_READ, 0, 10, 0);
	joined_fill(&j, 0);
	assert_true(engine_stream_is_drained(q[0]));
	joined_deliver(&j, 1, UINT32_MAX);
	assert_false(engine_stream_is_drained(q[1]));
	assert_true(engine_stream_has_begun(q[1]));
	joined_run(&j);
	assert_true(engine_stream_is_drained(q[1]));
	joined_done(&j, 0, HCA_SUCCESS);
	joined_part(&j);
}

/* RFC 7306 5.2.2, 5.4 and 6.3. */
static void the_extensions_work_where_both_sides_know_them(void **state)
{
	struct stream_config c = joined_config;
	struct joined j;
	struct wqe *w;
	struct cqe e;
	uint64_t word = 41;

	c.has_extensions = true;
	joined_with(&j, &c);
	memcpy(joined_bytes(&j, 1) + 800, &word, 8);
	w = two_hcas_send(j.d, 0, HCA_WR_ATOMIC_FADD, 0, 8, 800);
	w->swap_add = 1;
	two_hcas_post(j.d, 0);
	w = two_hcas_send(j.d, 0, HCA_WR_ATOMIC_CAS, 8, 8, 800);
	w->compare = 42;
	w->swap_add = 7;
	two_hcas_post(j.d, 0);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_WRITE_IMM, 0, 3000, 4000);
	w->imm_be = 0x12345678;
	two_hcas_post(j.d, 0);
	two_hcas_recv(j.d, 1, 0, 0);
	joined_run(&j);
	for (int i = 0; i < 3; i++)
		joined_done(&j, 0, HCA_SUCCESS);
	e = joined_polled(&j, 1);
	assert_int_equal(e.opcode, HCA_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(e.imm_be, 0x12345678);
	assert_int_equal(e.byte_len, 3000);
	memcpy(&word, joined_bytes(&j, 0), 8);
	assert_int_equal(word, 41);
	memcpy(&word, joined_bytes(&j, 0) + 8, 8);
	assert_int_equal(word, 42);
	memcpy(&word, joined_bytes(&j, 1) + 800, 8);
	assert_int_equal(word, 7);
	joined_part(&j);
}

/* The counters leave out the FPDUs' lengths, markers, pads and CRCs. */
static void receive_counters_equal_the_peers_send_counters(void **state)
{
	struct stream_config c = joined_config;
	struct joined j;

	c.tx_markers = true;
	joined_with(&j, &c);
	joined_exchange(&j, 3001);
	joined_counted(&j);
	joined_part(&j);
}

/* Runs for 20 ms. */
static void run_on(struct joined *j)
{
	for (int i = 0; i < 20; i++) {
		j->d->now_ns += 1000000;
		joined_run(j);
	}
}

/* Binds a window of side 1, and posts an invalidation of the window while side
 * 0 copies by the window's key.  Returns the window. */
static struct mr *begin_invalidation(struct joined *j)
{
	struct two_hcas_side *s = &j->d->side[1];
	struct mr *window = mw_new(&s->hca, s->qp->pd, 2);
	struct wqe *w = two_hcas_send(j->d, 1, HCA_WR_BIND_MW, 0, 0, 0);
	uint32_t key;

	assert_non_null(window);
	w->imm_be = window->lkey;
	w->rkey = window->lkey + 1;
	w->va = TWO_HCAS_BASE;
	w->compare = 4096;
	w->swap_add = (uint64_t)s->mr->lkey << 32 | HCA_REMOTE_WRITE;
	two_hcas_post(j->d, 1);
	joined_run(j);
	joined_done(j, 1, HCA_SUCCESS);
	key = window->rkey;
	access_enter(s->access, access_qp(s->qp->qpn));
	access_copy(s->access, access_qp(s->qp->qpn) | access_key(key));
	w = two_hcas_send(j->d, 1, HCA_WR_LOCAL_INV, 0, 0, 0);
	w->imm_be = key;
	two_hcas_post(j->d, 1);
	return window;
}

/* An invalidation has begun, so a drain lasts until the invalidation completes.
 */
static void a_drain_waits_for_an_invalidation(void **state)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_SQD,
				.en_sqd_async_notify = 1};
	struct two_hcas_side *s;
	struct mr *window;
	const char *why;
	struct joined j;

	joined_plain(&j);
	joined_exchange(&j, 100); /* side 1 may send after it */
	s = &j.d->side[1];
	window = begin_invalidation(&j);
	run_on(&j);
	assert_int_equal(engine_qp_modify(s->engine, s->side, &a,
					  HCA_QP_STATE | HCA_QP_EN_SQD_ASYNC,
					  s->ip, j.d->now_ns, &why),
			 0);
	run_on(&j);
	two_hcas_run(j.d, j.d->now_ns);
	joined_idle(&j, 1);
	assert_int_equal(s->events[ENGINE_SQ_DRAINED], 0);
	access_leave(s->access);
	run_on(&j);
	two_hcas_run(j.d, j.d->now_ns);
	joined_done(&j, 1, HCA_SUCCESS);
	assert_int_equal(s->events[ENGINE_SQ_DRAINED], 1);
	mw_free(&s->hca, window);
	joined_part(&j);
}

/* Asks for a drain, and for the event of its end. */
static void begin_drain(struct joined *j)
{
	struct two_hcas_side *s = &j->d->side[0];
	struct hca_qp_attr a = {.qp_state = HCA_QP_SQD,
				.en_sqd_async_notify = 1};
	const char *why;

	assert_int_equal(engine_qp_modify(s->engine, s->side, &a,
					  HCA_QP_STATE | HCA_QP_EN_SQD_ASYNC,
					  s->ip, j->d->now_ns, &why),
			 0);
}

static bool is_draining(const struct joined *j)
{
	struct hca_qp_attr a;

	engine_qp_query(j->d->side[0].engine, j->d->side[0].side, &a);
	return a.sq_draining;
}

static uint32_t drained_events(struct joined *j)
{
	two_hcas_run(j->d, j->d->now_ns);
	return j->d->side[0].events[ENGINE_SQ_DRAINED];
}

/* A READ that was sent completes when its response has come, and the WRITE
 * behind the READ completes after that.  A request that was not sent yet does
 * not begin. */
static void a_drain_waits_for_the_responses_to_reads(void **state)
{
	struct joined j;

	joined_plain(&j);
	joined_post(&j, HCA_WR_RDMA_READ, 0, 100, 5000);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 100, 7000);
	joined_fill(&j, 0);
	begin_drain(&j);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 100, 8000);
	joined_fill(&j, 0);
	assert_int_equal(drained_events(&j), 0);
	assert_true(is_draining(&j));
	joined_run(&j);
	assert_int_equal(drained_events(&j), 1);
	assert_false(is_draining(&j));
	joined_done(&j, 0, HCA_SUCCESS);
	joined_done(&j, 0, HCA_SUCCESS);
	joined_idle(&j, 0);
	joined_part(&j);
}

static void a_drain_without_open_requests_ends_at_once(void **state)
{
	struct joined j;

	joined_plain(&j);
	joined_exchange(&j, 100);
	assert_false(is_draining(&j));
	begin_drain(&j);
	joined_fill(&j, 0);
	assert_int_equal(drained_events(&j), 1);
	assert_false(is_draining(&j));
	joined_part(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_request_arrives_at_each_size),
		cmocka_unit_test(a_stream_may_be_cut_at_each_byte),
		cmocka_unit_test(one_cut_at_any_place_changes_nothing),
		cmocka_unit_test(a_read_is_scattered_by_its_request),
		cmocka_unit_test(no_more_reads_are_under_way_than_ord),
		cmocka_unit_test(a_fence_waits_for_the_reads_before),
		cmocka_unit_test(requests_complete_in_order),
		cmocka_unit_test(
			a_responder_sends_nothing_before_it_has_received),
		cmocka_unit_test(a_responder_may_begin_without_the_peer),
		cmocka_unit_test(a_nudge_is_a_write_without_bytes),
		cmocka_unit_test(
			each_kind_of_ready_to_receive_lets_the_peer_send),
		cmocka_unit_test(a_ready_to_receive_by_send_takes_no_receive),
		cmocka_unit_test(a_stream_is_drained_when_all_is_sent),
		cmocka_unit_test(
			the_extensions_work_where_both_sides_know_them),
		cmocka_unit_test(
			receive_counters_equal_the_peers_send_counters),
		cmocka_unit_test(a_drain_waits_for_an_invalidation),
		cmocka_unit_test(a_drain_waits_for_the_responses_to_reads),
		cmocka_unit_test(a_drain_without_open_requests_ends_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
