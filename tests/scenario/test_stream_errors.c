/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP with errors: requests that the peer refuses, and connections that end.
 */
#include "test.h"

#include "engine/inside.h"
#include "scenario/joined.h"

/* RFC 5040 7.1: the Terminate is sent in place of the request. */
static void an_operation_that_iwarp_lacks_ends_the_stream(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_SEND_IMM, HCA_WR_ATOMIC_CAS,
					  HCA_WR_RDMA_WRITE_IMM,
					  HCA_WR_ATOMIC_WRITE};

	for (uint32_t i = 0; i < TEST_COUNT(ops); i++) {
		struct joined j;

		joined_plain(&j);
		joined_post(&j, HCA_WR_RDMA_READ, 0, 8, 8);
		joined_post(&j, ops[i], 0, 8, 8);
		joined_post(&j, HCA_WR_RDMA_WRITE, 0, 8, 8);
		joined_run(&j);
		joined_done(&j, 0, HCA_SUCCESS);
		joined_done(&j, 0, HCA_LOC_QP_OP_ERR);
		joined_done(&j, 0, HCA_WR_FLUSH_ERR);
		assert_non_null(j.d->side[0].explained.detail);
		assert_int_equal(joined_phase(&j, 0), STREAM_OVER);
		assert_int_equal(joined_phase(&j, 1), STREAM_OVER);
		assert_int_equal(joined_state(&j, 1), HCA_QP_ERR);
		joined_part(&j);
	}
}

/* The response of an atomic has 8 bytes.  A request with room for fewer or more
 * bytes fails before it is sent, so the peer does not execute it. */
static void an_atomic_without_room_for_its_response_is_not_sent(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_ATOMIC_CAS,
					  HCA_WR_ATOMIC_FADD};
	static const uint32_t sizes[] = {0, 4, 16};
	struct stream_config c = joined_config;

	c.has_extensions = true;
	for (uint32_t i = 0; i < TEST_COUNT(ops) * TEST_COUNT(sizes); i++) {
		struct joined j;
		struct wqe *w;
		char text[256];

		joined_with(&j, &c);
		w = two_hcas_send(j.d, 0, ops[i % TEST_COUNT(ops)], 0,
				  sizes[i / TEST_COUNT(ops)], 800);
		w->swap_add = 5;
		two_hcas_post(j.d, 0);
		joined_run(&j);
		joined_done(&j, 0, HCA_LOC_LEN_ERR);
		explain_text(&j.d->side[0].explained, text, sizeof(text));
		assert_non_null(strstr(text, "must have 8 bytes in all"));
		assert_int_equal(joined_bytes(&j, 1)[800], 0);
		joined_part(&j);
	}
}

static void explain_refusal_of(enum hca_wr op, bool has_extensions,
			       const char *words)
{
	struct stream_config c = joined_config;
	struct joined j;
	char text[256];

	c.has_extensions = has_extensions;
	joined_with(&j, &c);
	joined_post(&j, op, 0, 8, 8);
	joined_run(&j);
	joined_done(&j, 0, HCA_LOC_QP_OP_ERR);
	explain_text(&j.d->side[0].explained, text, sizeof(text));
	assert_non_null(strstr(text, words));
	joined_part(&j);
}

static void the_message_says_why_iwarp_lacks_the_operation(void **state)
{
	explain_refusal_of(HCA_WR_SEND_IMM, false, "never has this operation");
	explain_refusal_of(HCA_WR_SEND_IMM, true, "never has this operation");
	explain_refusal_of(HCA_WR_ATOMIC_CAS, false, "only by RFC 7306");
	explain_refusal_of(HCA_WR_RDMA_WRITE_IMM, false, "only by RFC 7306");
}

static void assert_refused_as_first(struct joined *j)
{
	joined_run(j);
	joined_terminated(j, TERMINATE_RTR);
	assert_false(engine_stream_has_begun(j->d->side[1].side));
	assert_true(engine_stream_is_drained(j->d->side[1].side));
	assert_int_equal(joined_bytes(j, 1)[100], 0);
	joined_part(j);
}

/* RFC 6581 9.2. */
static void another_first_fpdu_than_was_agreed_ends_the_stream(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_SEND, HCA_WR_RDMA_WRITE,
					  HCA_WR_RDMA_READ};
	struct joined j;

	for (uint32_t kind = MPA_RTR_SEND; kind <= MPA_RTR_READ; kind <<= 1) {
		joined_kinds(&j, (uint8_t)kind, (uint8_t)(MPA_RTR_ALL & ~kind));
		assert_refused_as_first(&j);
	}
	for (uint32_t i = 0; i < TEST_COUNT(ops); i++) {
		joined_kinds(&j, 0, MPA_RTR_ALL);
		memset(joined_bytes(&j, 0), 0xee, 200);
		two_hcas_recv(j.d, 1, 0, 200);
		joined_post(&j, ops[i], 0, 200, 0);
		assert_refused_as_first(&j);
	}
}

/* A request of side 0 with a wrong key, range or right. */
static const struct misuse {
	enum hca_wr op;
	uint32_t flip;		    /* bits of the key */
	uint64_t va;		    /* from the region's start */
	uint32_t no_right;	    /* the right that the region lacks */
	enum terminate_cause cause; /* the cause in the Terminate */
} misuses[] = {
	{HCA_WR_RDMA_WRITE, 0x100, 0, 0, TERMINATE_STAG},
	{HCA_WR_RDMA_WRITE, 0, TWO_HCAS_MEMORY - 10, 0, TERMINATE_BOUNDS},
	{HCA_WR_RDMA_WRITE, 0, 0, HCA_REMOTE_WRITE, TERMINATE_RIGHT},
	{HCA_WR_RDMA_WRITE, 0, -TWO_HCAS_BASE - 10, 0, TERMINATE_WRAP},
	{HCA_WR_RDMA_READ, 0x100, 0, 0, TERMINATE_SOURCE_STAG},
	{HCA_WR_RDMA_READ, 0, TWO_HCAS_MEMORY - 10, 0, TERMINATE_SOURCE_BOUNDS},
	{HCA_WR_RDMA_READ, 0, 0, HCA_REMOTE_READ, TERMINATE_RIGHT},
	{HCA_WR_RDMA_READ, 0, -TWO_HCAS_BASE - 10, 0, TERMINATE_SOURCE_WRAP},
};

/* RFC 5040 7.2, RFC 5041 7.1. */
static void a_refused_access_ends_both_sides_by_its_terminate(void **state)
{
	for (uint32_t i = 0; i < TEST_COUNT(misuses); i++) {
		const struct misuse *m = &misuses[i];
		bool is_read = m->op == HCA_WR_RDMA_READ;
		struct joined j;
		struct wqe *w;

		joined_plain(&j);
		j.d->side[1].mr->access &= ~m->no_right;
		w = two_hcas_send(j.d, 0, m->op, 0, 100, 0);
		w->va += m->va;
		w->rkey ^= m->flip;
		two_hcas_post(j.d, 0);
		joined_post(&j, HCA_WR_RDMA_READ, 0, 100, 0);
		joined_run(&j);
		joined_done(&j, 0, is_read ? HCA_REM_ACCESS_ERR : HCA_SUCCESS);
		joined_done(&j, 0, HCA_WR_FLUSH_ERR);
		joined_terminated(&j, m->cause);
		assert_int_equal(j.d->side[1].events[ENGINE_QP_ACCESS_ERR], 1);
		joined_part(&j);
	}
}

/* The refused READ lies in the slot of a READ that is complete. */
static void a_refused_read_in_a_used_slot_fails(void **state)
{
	struct joined j;
	struct wqe *w;

	joined_plain(&j);
	joined_post(&j, HCA_WR_RDMA_READ, 0, 10, 0);
	for (int i = 1; i < 64; i++) {
		joined_run(&j);
		joined_done(&j, 0, HCA_SUCCESS);
		joined_post(&j, HCA_WR_RDMA_WRITE, 0, 10, 0);
	}
	joined_run(&j);
	joined_done(&j, 0, HCA_SUCCESS);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_READ, 0, 10, 0);
	w->rkey ^= 0x100;
	two_hcas_post(j.d, 0);
	joined_run(&j);
	joined_done(&j, 0, HCA_REM_ACCESS_ERR);
	joined_terminated(&j, TERMINATE_SOURCE_STAG);
	joined_part(&j);
}

/* Responses that are due are sent before the Terminate, which is the last FPDU
 * (RFC 5040 5.4). */
static void the_reads_before_a_refused_one_complete(void **state)
{
	struct joined j;
	struct wqe *w;

	joined_plain(&j);
	two_hcas_fill(j.d, 1, 5000, 3000);
	joined_post(&j, HCA_WR_RDMA_READ, 0, 3000, 5000);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_READ, 10000, 10, 0);
	w->rkey ^= 0x100;
	two_hcas_post(j.d, 0);
	joined_post(&j, HCA_WR_RDMA_READ, 20000, 10, 0);
	joined_run(&j);
	joined_done(&j, 0, HCA_SUCCESS);
	joined_done(&j, 0, HCA_REM_ACCESS_ERR);
	joined_done(&j, 0, HCA_WR_FLUSH_ERR);
	joined_same(&j, 0, 5000, 3000);
	joined_part(&j);
}

/* RFC 5041 7.1. */
static void a_send_without_a_receive_ends_the_stream(void **state)
{
	const struct engine_counters *counters;
	struct joined j;

	joined_plain(&j);
	/* as if the responder's engine had refused an access before */
	j.d->side[1].engine->ibt.sign = ENGINE_SIGN_KEY;
	joined_post(&j, HCA_WR_SEND, 0, 10, 0);
	joined_run(&j);
	joined_terminated(&j, TERMINATE_NO_BUFFER);
	counters = engine_counters(j.d->side[1].engine, 0);
	assert_int_equal(counters->naks.fatal_tx, 1);
	assert_int_equal(counters->naks.access_tx, 0);
	joined_part(&j);
}

/* RFC 5041 7.1, RFC 5040 5.3. */
static void a_send_that_is_too_long_fails_its_receive(void **state)
{
	struct joined j;

	joined_plain(&j);
	two_hcas_recv(j.d, 1, 0, 2000);
	two_hcas_recv(j.d, 1, 0, 2000);
	joined_post(&j, HCA_WR_SEND, 0, 2001, 0);
	joined_run(&j);
	joined_done(&j, 1, HCA_LOC_LEN_ERR);
	joined_done(&j, 1, HCA_WR_FLUSH_ERR);
	joined_terminated(&j, TERMINATE_TOO_LONG);
	joined_part(&j);
}

/* The responder's key is withdrawn while the response is being sent. */
static void a_region_deregistered_during_a_read_ends_the_stream(void **state)
{
	const struct engine_counters *counters;
	struct rdmap_read left;
	struct joined j;

	joined_plain(&j);
	joined_post(&j, HCA_WR_RDMA_READ, 0, 300000, 0);
	joined_fill(&j, 0);
	joined_deliver(&j, 1, UINT32_MAX);
	joined_fill(&j, 1);
	mr_free(&j.d->side[1].hca, j.d->side[1].mr);
	joined_run(&j);
	joined_done(&j, 0, HCA_REM_ACCESS_ERR);
	joined_terminated(&j, TERMINATE_SOURCE_STAG);
	counters = engine_counters(j.d->side[1].engine, 0);
	assert_int_equal(counters->naks.fatal_tx, 1);
	assert_int_equal(counters->naks.access_tx, 1);
	/* RFC 5040 4.8: the Terminate quotes the rest of the READ */
	rdmap_read_parse(j.d->side[1].side->stream->terminate.headers + 20,
			 &left);
	assert_true(left.bytes > 0 && left.bytes < 300000);
	assert_int_equal(left.sink_offset + left.bytes, TWO_HCAS_BASE + 300000);
	joined_part(&j);
}

/* A segment is judged by its header, and its payload is placed as it comes.
 * The region is deregistered when a part of the payload has come. */
static void a_region_deregistered_within_a_segment_ends_the_stream(void **state)
{
	struct joined j;

	joined_plain(&j);
	memset(joined_bytes(&j, 0), 0xee, 1000);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 1000, 0);
	joined_fill(&j, 0);
	joined_deliver(&j, 1, 600);
	assert_int_equal(joined_bytes(&j, 1)[500], 0xee);
	mr_free(&j.d->side[1].hca, j.d->side[1].mr);
	joined_run(&j);
	joined_terminated(&j, TERMINATE_STAG);
	for (int i = 600; i < 1000; i++)
		assert_int_equal(joined_bytes(&j, 1)[i], 0);
	joined_part(&j);
}

/* The queue pair, not the region, loses the right while the response is sent.
 */
static void a_right_withdrawn_during_a_read_ends_the_stream(void **state)
{
	char text[512];
	struct joined j;

	joined_plain(&j);
	memset(joined_bytes(&j, 1), 0x5a, 300000);
	joined_post(&j, HCA_WR_RDMA_READ, 0, 300000, 0);
	joined_fill(&j, 0);
	joined_deliver(&j, 1, UINT32_MAX);
	joined_fill(&j, 1);
	j.d->side[1].side->qp->attr.access_flags &= ~(uint32_t)HCA_REMOTE_READ;
	joined_run(&j);
	joined_done(&j, 0, HCA_REM_ACCESS_ERR);
	joined_terminated(&j, TERMINATE_RIGHT);
	explain_text(&j.d->side[1].explained, text, sizeof(text));
	assert_non_null(strstr(text, "the queue pair lacks"));
	joined_part(&j);
}

/* RFC 5040 7.2. */
static void a_queue_pair_without_the_right_is_named(void **state)
{
	static const struct {
		enum hca_wr op;
		uint32_t right;
	} table[] = {{HCA_WR_RDMA_WRITE, HCA_REMOTE_WRITE},
		     {HCA_WR_RDMA_READ, HCA_REMOTE_READ}};
	char text[512];

	for (size_t i = 0; i < TEST_COUNT(table); i++) {
		struct joined j;

		joined_plain(&j);
		j.d->side[1].side->qp->attr.access_flags &= ~table[i].right;
		joined_post(&j, table[i].op, 0, 100, 0);
		joined_run(&j);
		joined_terminated(&j, TERMINATE_RIGHT);
		explain_text(&j.d->side[1].explained, text, sizeof(text));
		assert_non_null(strstr(text, "the queue pair lacks"));
		joined_part(&j);
	}
}

/* The region of the initiator loses the right to local writes after the request
 * was sent. */
static void a_response_that_cannot_be_stored_names_its_request(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_RDMA_READ, HCA_WR_ATOMIC_FADD};
	struct stream_config c = joined_config;
	char text[512], want[64];

	c.has_extensions = true;
	for (size_t i = 0; i < TEST_COUNT(ops); i++) {
		struct joined j;
		struct wqe *w;

		joined_with(&j, &c);
		w = two_hcas_send(j.d, 0, ops[i], 8, 8, 16);
		w->wr_id = 0x1234;
		two_hcas_post(j.d, 0);
		joined_fill(&j, 0);
		j.d->side[0].mr->access &= ~(uint32_t)HCA_LOCAL_WRITE;
		joined_run(&j);
		assert_int_equal(joined_phase(&j, 0), STREAM_OVER);
		explain_text(&j.d->side[0].explained, text, sizeof(text));
		snprintf(want, sizeof(want),
			 "%s wr_id 0x1234 failed: local key",
			 i ? "FETCH AND ADD" : "RDMA READ");
		assert_non_null(strstr(text, want));
		joined_part(&j);
	}
}

/* RFC 5040 5.3: unlike in InfiniBand, the peer learns of the refusal. */
static void a_key_that_cannot_be_invalidated_ends_the_stream(void **state)
{
	char text[512];
	struct joined j;
	struct wqe *w;

	joined_plain(&j);
	two_hcas_recv(j.d, 1, 1000, 100);
	w = two_hcas_send(j.d, 0, HCA_WR_SEND_INV, 0, 100, 0);
	w->imm_be = 0x100;
	two_hcas_post(j.d, 0);
	joined_run(&j);
	joined_terminated(&j, TERMINATE_INVALIDATE);
	explain_text(&j.d->side[1].explained, text, sizeof(text));
	assert_non_null(strstr(text, "SEND with invalidate of key 0x"));
	assert_non_null(strstr(text, "; this ends the iWARP connection"));
	joined_part(&j);
}

/* RFC 5041 6.2.2. */
static void a_lost_connection_flushes_both_sides(void **state)
{
	struct joined j;

	joined_plain(&j);
	two_hcas_recv(j.d, 1, 0, 100);
	joined_post(&j, HCA_WR_RDMA_READ, 0, 100, 0);
	joined_fill(&j, 0);
	for (int i = 0; i < 2; i++)
		engine_stream_lost(j.d->side[i].engine, j.d->side[i].side,
				   j.d->now_ns);
	two_hcas_run(j.d, j.d->now_ns);
	joined_done(&j, 0, HCA_WR_FLUSH_ERR);
	joined_done(&j, 1, HCA_WR_FLUSH_ERR);
	assert_int_equal(j.d->side[0].explained.cause, EXPLAIN_PEER_LEFT);
	assert_int_equal(j.d->side[0].explained.opcode, HCA_WR_RDMA_READ);
	joined_part(&j);
}

/* The program destroys the queue pair of side i.  Returns the cause of the only
 * event that is left, or EXPLAIN_NONE if there is no event.  Frees what *j has.
 */
static enum explain_cause cause_after_destroy(struct joined *j, int i)
{
	struct two_hcas_side *s = &j->d->side[i];
	struct engine_event e[2];
	size_t n;

	engine_qp_remove(s->engine, s->side);
	n = engine_events(s->engine, e, 2);
	assert_true(n < 2);
	s->side = engine_qp_add(s->engine, s->qp);
	joined_part(j);
	if (!n)
		return EXPLAIN_NONE;
	assert_int_equal(e[0].type, ENGINE_EXPLAIN);
	assert_int_not_equal(e[0].explain.cause, EXPLAIN_NONE);
	return e[0].explain.cause;
}

/* Begins a connection, and sends a WRITE and a READ, which are under way when
 * the test ends the connection.  remote: where the WRITE stores its bytes. */
static void begin_request(struct joined *j, uint64_t remote)
{
	joined_plain(j);
	joined_post(j, HCA_WR_RDMA_WRITE, 0, 100, remote);
	joined_post(j, HCA_WR_RDMA_READ, 0, 100, 0);
	joined_fill(j, 0);
}

/* The queue pairs are destroyed before their events are taken. */
static void a_destroyed_queue_pair_leaves_its_explanation(void **state)
{
	struct joined j;

	begin_request(&j, 0);
	engine_stream_lost(j.d->side[0].engine, j.d->side[0].side, j.d->now_ns);
	assert_int_equal(cause_after_destroy(&j, 0), EXPLAIN_PEER_LEFT);
	/* the WRITE is refused, so there is also an event of the queue pair */
	begin_request(&j, TWO_HCAS_MEMORY);
	joined_deliver(&j, 1, UINT32_MAX);
	assert_int_equal(cause_after_destroy(&j, 1), EXPLAIN_REMOTE_KEY);
	/* the program knows that it has destroyed the queue pair */
	begin_request(&j, 0);
	engine_stream_end(j.d->side[0].engine, j.d->side[0].side, j.d->now_ns);
	assert_int_equal(cause_after_destroy(&j, 0), EXPLAIN_NONE);
}

/* The program moves its queue pair to ERR: nothing more is sent or placed. */
static void a_queue_pair_in_err_takes_no_bytes(void **state)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_ERR};
	struct joined j;
	const char *why;

	joined_plain(&j);
	memset(joined_bytes(&j, 0), 0xee, 100);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 100, 0);
	joined_fill(&j, 0);
	joined_deliver(&j, 1, 30);
	assert_int_equal(engine_qp_modify(j.d->side[1].engine,
					  j.d->side[1].side, &a, HCA_QP_STATE,
					  j.d->side[1].ip, 0, &why),
			 0);
	joined_run(&j);
	assert_int_equal(joined_bytes(&j, 1)[80], 0);
	assert_true(engine_stream_is_over(j.d->side[1].side));
	joined_part(&j);
}

/* RESET frees the stream, and the queue pair may be used again. */
static void a_queue_pair_is_used_again(void **state)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_RESET};
	struct joined j;
	const char *why;

	joined_plain(&j);
	joined_exchange(&j, 10);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(engine_qp_modify(j.d->side[i].engine,
						  j.d->side[i].side, &a,
						  HCA_QP_STATE, j.d->side[i].ip,
						  0, &why),
				 0);
		assert_null(j.d->side[i].side->stream);
		two_hcas_connect(j.d, i, 3);
	}
	joined_open(&j);
	joined_exchange(&j, 10);
	joined_part(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_operation_that_iwarp_lacks_ends_the_stream),
		cmocka_unit_test(
			an_atomic_without_room_for_its_response_is_not_sent),
		cmocka_unit_test(
			the_message_says_why_iwarp_lacks_the_operation),
		cmocka_unit_test(
			a_right_withdrawn_during_a_read_ends_the_stream),
		cmocka_unit_test(a_queue_pair_without_the_right_is_named),
		cmocka_unit_test(
			a_refused_access_ends_both_sides_by_its_terminate),
		cmocka_unit_test(
			another_first_fpdu_than_was_agreed_ends_the_stream),
		cmocka_unit_test(a_refused_read_in_a_used_slot_fails),
		cmocka_unit_test(the_reads_before_a_refused_one_complete),
		cmocka_unit_test(a_send_without_a_receive_ends_the_stream),
		cmocka_unit_test(a_send_that_is_too_long_fails_its_receive),
		cmocka_unit_test(
			a_region_deregistered_during_a_read_ends_the_stream),
		cmocka_unit_test(
			a_region_deregistered_within_a_segment_ends_the_stream),
		cmocka_unit_test(
			a_response_that_cannot_be_stored_names_its_request),
		cmocka_unit_test(
			a_key_that_cannot_be_invalidated_ends_the_stream),
		cmocka_unit_test(a_lost_connection_flushes_both_sides),
		cmocka_unit_test(a_destroyed_queue_pair_leaves_its_explanation),
		cmocka_unit_test(a_queue_pair_in_err_takes_no_bytes),
		cmocka_unit_test(a_queue_pair_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
