/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP with errors: the test damages and forges the byte streams between two
 * queue pairs, and ends connections. */
#include "test.h"

#include "engine/inside.h"
#include "scenario/joined.h"
#include "util/rng.h"

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

/* Both sides end, and the Terminate names this error. */
static void assert_terminated(struct joined *j, enum terminate_cause cause)
{
	const struct iwarp_stream *s = j->d->side[1].side->stream;
	char text[300];

	assert_int_equal(s->terminate.cause, cause);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(joined_phase(j, i), STREAM_OVER);
		assert_int_equal(joined_state(j, i), HCA_QP_ERR);
	}
	assert_string_equal(j->d->side[0].explained.detail,
			    terminate_row(cause)->text);
	explain_text(&j->d->side[0].explained, text, sizeof(text));
	assert_non_null(strstr(text, "the peer ended the iWARP connection"));
	assert_non_null(strstr(text, terminate_row(cause)->text));
}

static void assert_refused_as_first(struct joined *j)
{
	joined_run(j);
	assert_terminated(j, TERMINATE_RTR);
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
	uint32_t flip;	   /* bits of the key */
	uint64_t va;	   /* from the region's start */
	uint32_t no_right; /* the right that the region lacks */
	enum terminate_cause cause;
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
		assert_terminated(&j, m->cause);
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
	assert_terminated(&j, TERMINATE_SOURCE_STAG);
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
	/* the responder's engine has refused an access before */
	j.d->side[1].engine->ibt.sign = ENGINE_SIGN_KEY;
	joined_post(&j, HCA_WR_SEND, 0, 10, 0);
	joined_run(&j);
	assert_terminated(&j, TERMINATE_NO_BUFFER);
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
	assert_terminated(&j, TERMINATE_TOO_LONG);
	joined_part(&j);
}

/* The responder's key is withdrawn while the response is being sent. */
static void a_region_deregistered_during_a_read_ends_the_stream(void **state)
{
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
	assert_terminated(&j, TERMINATE_SOURCE_STAG);
	/* RFC 5040 4.8: the Terminate quotes the rest of the READ */
	rdmap_read_parse(j.d->side[1].side->stream->terminate.headers + 20,
			 &left);
	assert_true(left.bytes > 0 && left.bytes < 300000);
	assert_int_equal(left.sink_offset + left.bytes, TWO_HCAS_BASE + 300000);
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
	assert_terminated(&j, TERMINATE_RIGHT);
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
		assert_terminated(&j, TERMINATE_RIGHT);
		explain_text(&j.d->side[1].explained, text, sizeof(text));
		assert_non_null(strstr(text, "the queue pair lacks"));
		joined_part(&j);
	}
}

/* The region of the initiator loses the right after the request was sent. */
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
	assert_terminated(&j, TERMINATE_INVALIDATE);
	explain_text(&j.d->side[1].explained, text, sizeof(text));
	assert_non_null(strstr(text, "SEND with invalidate of key 0x"));
	assert_non_null(strstr(text, "; this ends the iWARP connection"));
	joined_part(&j);
}

/* RFC 5044 4.4, RFC 5044 8, RFC 5041 5.4. */
static void damage_is_found_by_the_crc_and_completes_nothing(void **state)
{
	for (uint32_t at = 2; at < 2 + 18 + 100; at++) {
		struct joined j;

		joined_plain(&j);
		joined_exchange(&j, 10);
		two_hcas_recv(j.d, 1, 1000, 100);
		joined_post(&j, HCA_WR_SEND, 0, 100, 0);
		joined_fill(&j, 0);
		j.pipe[0].bytes[at] ^= 0x10;
		joined_run(&j);
		joined_done(&j, 0, HCA_SUCCESS);
		joined_done(&j, 1, HCA_WR_FLUSH_ERR);
		assert_terminated(&j, TERMINATE_CRC);
		joined_part(&j);
	}
}

/* RFC 5044 7.1.2: the responder has not received a correct FPDU. */
static void damage_of_the_first_fpdu_has_no_terminate(void **state)
{
	struct joined j;

	joined_plain(&j);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 100, 0);
	joined_fill(&j, 0);
	j.pipe[0].bytes[50] ^= 1;
	joined_deliver(&j, 1, UINT32_MAX);
	assert_false(joined_fill(&j, 1));
	assert_int_equal(joined_phase(&j, 1), STREAM_OVER);
	assert_int_equal(joined_state(&j, 1), HCA_QP_ERR);
	joined_part(&j);
}

/* The last bytes of a WRITE are not stored if its CRC is wrong. */
static void a_program_that_polls_the_last_byte_sees_no_damage(void **state)
{
	struct joined j;

	joined_plain(&j);
	memset(joined_bytes(&j, 0), 0xee, 1000);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 1000, 0);
	joined_fill(&j, 0);
	j.pipe[0].bytes[500] ^= 1;
	joined_run(&j);
	assert_int_equal(joined_bytes(&j, 1)[991], 0xee);
	for (uint32_t i = 992; i < 1000; i++)
		assert_int_equal(joined_bytes(&j, 1)[i], 0);
	joined_part(&j);
}

/* ---- forged segments ---- */

/* Gives side 1 an FPDU with this header and `bytes` bytes of body. */
static void forge_fpdu(struct joined *j, const struct ddp_header *h,
		       const void *body, uint32_t bytes)
{
	uint8_t buf[600];
	struct fpdu_tx tx;
	uint32_t n;

	fpdu_tx_init(&tx, true, false);
	n = (uint32_t)ddp_write(buf + FPDU_ULPDU_AT, h);
	if (bytes)
		memcpy(buf + FPDU_ULPDU_AT + n, body, bytes);
	n = fpdu_seal(&tx, buf, n + bytes);
	memcpy(j->pipe[0].bytes, buf, n);
	j->pipe[0].head = n;
	j->pipe[0].tail = 0;
}

#define VERSIONS .ddp_version = 1, .rdmap_version = 1

/* Segments that side 1 must refuse: the header, the bytes behind the header,
 * and the cause that the Terminate must name. */
static const struct forgery {
	struct ddp_header h;
	uint32_t bytes;
	enum terminate_cause cause;
} forgeries[] = {
	{{.is_last = true, .ddp_version = 2, .rdmap_version = 1, .opcode = 3},
	 8,
	 TERMINATE_UNTAGGED_VERSION},
	{{.is_tagged = true, .ddp_version = 0, .rdmap_version = 1},
	 8,
	 TERMINATE_TAGGED_VERSION},
	{{.ddp_version = 1, .rdmap_version = 2, .opcode = 3},
	 8,
	 TERMINATE_RDMAP_VERSION},
	{{VERSIONS, .opcode = 3, .queue = 4}, 8, TERMINATE_QUEUE},
	{{VERSIONS, .opcode = 3, .queue = 1}, 8, TERMINATE_QUEUE},
	{{VERSIONS, .opcode = 12}, 8, TERMINATE_OPCODE},
	/* an opcode of RFC 7306, which was not negotiated */
	{{VERSIONS, .opcode = 8, .sequence = 1}, 8, TERMINATE_OPCODE},
	{{.is_tagged = true, VERSIONS, .opcode = 3}, 8, TERMINATE_OPCODE},
	/* a response to no READ */
	{{.is_tagged = true, VERSIONS, .opcode = 2}, 8, TERMINATE_OPCODE},
	{{VERSIONS, .opcode = 3, .sequence = 2}, 8, TERMINATE_SEQUENCE},
	{{VERSIONS, .opcode = 3, .sequence = 1, .message_offset = 1},
	 8,
	 TERMINATE_OFFSET},
	/* a Read Request of another length, or in pieces */
	{{.is_last = true, VERSIONS, .opcode = 1, .queue = 1, .sequence = 1},
	 27,
	 TERMINATE_STREAM},
	{{VERSIONS, .opcode = 1, .queue = 1, .sequence = 1},
	 28,
	 TERMINATE_STREAM},
	{{.is_last = true, VERSIONS, .opcode = 1, .queue = 1, .sequence = 2},
	 28,
	 TERMINATE_SEQUENCE},
	/* longer than any correct Terminate */
	{{.is_last = true, VERSIONS, .opcode = 7, .queue = 2, .sequence = 1},
	 65,
	 TERMINATE_STREAM},
};

/* RFC 5041 7.1 and 7.2, RFC 5040 7.2, RFC 7306 8.2. */
static void each_wrong_header_has_its_terminate(void **state)
{
	static const uint8_t body[100];

	for (uint32_t i = 0; i < TEST_COUNT(forgeries); i++) {
		const struct forgery *f = &forgeries[i];
		struct joined j;

		joined_plain(&j);
		two_hcas_recv(j.d, 1, 0, 100);
		forge_fpdu(&j, &f->h, body, f->bytes);
		joined_run(&j);
		joined_done(&j, 1, HCA_WR_FLUSH_ERR);
		assert_terminated(&j, f->cause);
		joined_part(&j);
	}
}

/* The peer sends more READs than the connection allows (RFC 5040 6.1). */
static void a_peer_that_floods_with_reads_is_stopped(void **state)
{
	struct ddp_header h = {.is_last = true,
			       .ddp_version = 1,
			       .rdmap_version = 1,
			       .opcode = RDMAP_READ_REQUEST,
			       .queue = 1};
	uint8_t body[RDMAP_READ_BYTES] = {0};
	struct joined j;

	joined_plain(&j);
	for (uint32_t i = 1; joined_phase(&j, 1) == STREAM_OPEN; i++) {
		assert_true(i < 10);
		h.sequence = i;
		forge_fpdu(&j, &h, body, sizeof(body));
		joined_deliver(&j, 1, UINT32_MAX);
	}
	joined_run(&j);
	assert_int_equal(j.d->side[1].side->stream->terminate.cause,
			 TERMINATE_NO_BUFFER);
	/* the responses to the forged READs end the other side */
	assert_int_equal(joined_phase(&j, 0), STREAM_OVER);
	assert_int_equal(joined_phase(&j, 1), STREAM_OVER);
	joined_part(&j);
}

/* Gives side 1 an atomic of the word at 800. */
static void forge_atomic(struct joined *j, struct rdmap_atomic a)
{
	struct ddp_header h = {.is_last = true,
			       VERSIONS,
			       .opcode = RDMAP_ATOMIC_REQUEST,
			       .queue = DDP_QUEUE_REQUEST,
			       .sequence = 1};
	struct stream_config c = joined_config;
	uint8_t body[RDMAP_ATOMIC_BYTES];
	uint64_t word = 0x00ff00ff00ff00ff;

	c.has_extensions = true;
	joined_with(j, &c);
	memcpy(joined_bytes(j, 1) + 800, &word, 8);
	a.stag = j->d->side[1].mr->rkey;
	a.offset += TWO_HCAS_BASE + 800;
	rdmap_atomic_write(body, &a);
	forge_fpdu(j, &h, body, sizeof(body));
	joined_deliver(j, 1, UINT32_MAX);
}

/* RFC 7306 5.1.1, 5.1.2 and 5.2.1. */
static void an_atomic_works_on_the_bits_of_its_masks(void **state)
{
	static const struct {
		struct rdmap_atomic a;
		uint64_t word; /* after the atomic */
	} rows[] = {
		/* carries end at the fields of 8 bits */
		{{.opcode = RDMAP_FETCH_ADD,
		  .data = 0x0101010101010101,
		  .mask = 0x8080808080808080},
		 0x0100010001000100},
		{{.opcode = RDMAP_FETCH_ADD, .data = 1}, 0x00ff00ff00ff0100},
		{{.opcode = RDMAP_COMPARE_SWAP,
		  .data = 0x1234,
		  .mask = 0xff00,
		  .compare = 0xff,
		  .compare_mask = 0xff},
		 0x00ff00ff00ff12ff},
		{{.opcode = RDMAP_COMPARE_SWAP,
		  .data = 0x1234,
		  .mask = UINT64_MAX,
		  .compare_mask = 1},
		 0x00ff00ff00ff00ff},
	};

	for (uint32_t i = 0; i < TEST_COUNT(rows); i++) {
		struct joined j;
		uint64_t word;

		forge_atomic(&j, rows[i].a);
		memcpy(&word, joined_bytes(&j, 1) + 800, 8);
		assert_true(word == rows[i].word);
		assert_int_equal(joined_phase(&j, 1), STREAM_OPEN);
		joined_part(&j);
	}
}

/* RFC 7306 5.2.1 and 8.2. */
static void an_atomic_of_another_code_or_place_changes_nothing(void **state)
{
	static const struct {
		struct rdmap_atomic a;
		enum terminate_cause cause;
	} rows[] = {
		{{.opcode = 1, .data = 5, .mask = UINT64_MAX},
		 TERMINATE_OPCODE},
		{{.opcode = 3, .data = 5}, TERMINATE_OPCODE},
		{{.offset = 4, .data = 5}, TERMINATE_STREAM},
		{{.offset = 1ull << 40, .data = 5}, TERMINATE_SOURCE_BOUNDS},
	};

	for (uint32_t i = 0; i < TEST_COUNT(rows); i++) {
		struct joined j;
		uint64_t word;

		forge_atomic(&j, rows[i].a);
		memcpy(&word, joined_bytes(&j, 1) + 800, 8);
		assert_true(word == 0x00ff00ff00ff00ff);
		joined_run(&j);
		assert_terminated(&j, rows[i].cause);
		joined_part(&j);
	}
}

/* RFC 5041 5.2: a message without bytes names no memory. */
static void an_empty_response_may_name_any_memory(void **state)
{
	struct ddp_header h = {.is_tagged = true,
			       .is_last = true,
			       VERSIONS,
			       .opcode = RDMAP_READ_RESPONSE,
			       .stag = 77,
			       .offset = 1};
	struct joined j;

	joined_plain(&j);
	two_hcas_send(j.d, 1, HCA_WR_RDMA_READ, 0, 0, 0);
	two_hcas_post(j.d, 1);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 0, 0);
	joined_fill(&j, 0);
	joined_deliver(&j, 1, UINT32_MAX);
	joined_fill(&j, 1);
	forge_fpdu(&j, &h, NULL, 0);
	joined_deliver(&j, 1, UINT32_MAX);
	joined_done(&j, 1, HCA_SUCCESS);
	joined_part(&j);
}

/* RFC 5040 4.8, figure 10. */
static void a_terminate_quotes_what_its_error_is_about(void **state)
{
	assert_true(terminate_quotes_read(TERMINATE_SOURCE_STAG));
	assert_true(terminate_quotes_ddp(TERMINATE_OPCODE));
	assert_false(terminate_quotes_read(TERMINATE_OPCODE));
	assert_true(terminate_quotes_ddp(TERMINATE_SEQUENCE));
	assert_false(terminate_quotes_read(TERMINATE_SEQUENCE));
	assert_false(terminate_quotes_ddp(TERMINATE_LOCAL));
	assert_false(terminate_quotes_ddp(TERMINATE_CRC));
}

/* A response is refused, and nothing is placed, if its key, offset or length is
 * not that of its READ, or if its last segment lacks the flag L. */
static void a_response_that_does_not_match_its_read_is_refused(void **state)
{
	static const uint8_t body[100] = {[0 ... 99] = 0xbb};

	for (int i = 0; i < 4; i++) {
		struct ddp_header h = {.is_tagged = true,
				       .is_last = i != 3,
				       .ddp_version = 1,
				       .rdmap_version = 1,
				       .opcode = RDMAP_READ_RESPONSE};
		struct joined j;
		uint64_t before;

		joined_plain(&j);
		/* side 1 is the initiator, since forge_fpdu writes to side 1 */
		two_hcas_send(j.d, 1, HCA_WR_RDMA_READ, 5000, 100, 0);
		two_hcas_post(j.d, 1);
		joined_post(&j, HCA_WR_RDMA_WRITE, 0, 0, 0);
		joined_fill(&j, 0);
		joined_deliver(&j, 1, UINT32_MAX);
		joined_fill(&j, 1);
		h.stag = j.d->side[1].mr->lkey ^ (i == 0 ? 1 : 0);
		h.offset = TWO_HCAS_BASE + (i == 1 ? 4999 : 5000);
		memcpy(&before, joined_bytes(&j, 1) + 5000, 8);
		forge_fpdu(&j, &h, body, i == 2 ? 99 : 100);
		j.pipe[1].head = j.pipe[1].tail = 0;
		joined_run(&j);
		joined_done(&j, 1, HCA_WR_FLUSH_ERR);
		assert_int_equal(joined_state(&j, 1), HCA_QP_ERR);
		assert_memory_equal(joined_bytes(&j, 1) + 5000, &before, 8);
		joined_part(&j);
	}
}

/* Random bytes are accepted, or end the stream. */
static void random_streams_do_no_harm(void **state)
{
	struct rng rng;

	rng_init(&rng, 23);
	for (int round = 0; round < 300; round++) {
		struct stream_config c = joined_config;
		struct joined j;
		uint32_t hits;

		c.has_crc = false;
		c.has_extensions = round % 2;
		joined_with(&j, &c);
		for (int i = 0; i < 4; i++)
			two_hcas_recv(j.d, 1, 0, 500);
		joined_post(&j, HCA_WR_SEND, 0, 400, 0);
		joined_post(&j, HCA_WR_RDMA_READ, 0, 4000, 0);
		joined_post(&j, HCA_WR_RDMA_WRITE, 0, 3000, 0);
		joined_post(&j, HCA_WR_SEND, 0, 10, 0);
		joined_fill(&j, 0);
		hits = 1 + (uint32_t)rng_below(&rng, 6);
		while (hits--)
			j.pipe[0].bytes[rng_below(&rng, j.pipe[0].head)] =
				(uint8_t)rng_below(&rng, 256);
		joined_run(&j);
		joined_part(&j);
	}
}

/* ---- the end ---- */

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
 * event that is left, or EXPLAIN_NONE if there is no event. */
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

/* A request is under way when a connection ends. */
static void begin_request(struct joined *j, uint64_t remote)
{
	joined_plain(j);
	joined_post(j, HCA_WR_RDMA_WRITE, 0, 100, remote);
	joined_post(j, HCA_WR_RDMA_READ, 0, 100, 0);
	joined_fill(j, 0);
}

/* The events have not been taken yet. */
static void a_destroyed_queue_pair_leaves_its_explanation(void **state)
{
	struct joined j;

	begin_request(&j, 0);
	engine_stream_lost(j.d->side[0].engine, j.d->side[0].side, j.d->now_ns);
	assert_int_equal(cause_after_destroy(&j, 0), EXPLAIN_PEER_LEFT);
	/* refused, so that there is also an event of the queue pair */
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
			a_response_that_cannot_be_stored_names_its_request),
		cmocka_unit_test(
			a_key_that_cannot_be_invalidated_ends_the_stream),
		cmocka_unit_test(
			damage_is_found_by_the_crc_and_completes_nothing),
		cmocka_unit_test(damage_of_the_first_fpdu_has_no_terminate),
		cmocka_unit_test(
			a_program_that_polls_the_last_byte_sees_no_damage),
		cmocka_unit_test(each_wrong_header_has_its_terminate),
		cmocka_unit_test(a_peer_that_floods_with_reads_is_stopped),
		cmocka_unit_test(
			a_response_that_does_not_match_its_read_is_refused),
		cmocka_unit_test(an_atomic_works_on_the_bits_of_its_masks),
		cmocka_unit_test(
			an_atomic_of_another_code_or_place_changes_nothing),
		cmocka_unit_test(an_empty_response_may_name_any_memory),
		cmocka_unit_test(a_terminate_quotes_what_its_error_is_about),
		cmocka_unit_test(random_streams_do_no_harm),
		cmocka_unit_test(a_lost_connection_flushes_both_sides),
		cmocka_unit_test(a_destroyed_queue_pair_leaves_its_explanation),
		cmocka_unit_test(a_queue_pair_in_err_takes_no_bytes),
		cmocka_unit_test(a_queue_pair_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
