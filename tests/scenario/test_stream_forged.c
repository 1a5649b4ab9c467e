/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP between two queue pairs.  The test damages and forges the bytes of the
 * streams between them. */
#include "test.h"

#include "scenario/joined.h"
#include "util/rng.h"

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
		joined_terminated(&j, TERMINATE_CRC);
		joined_part(&j);
	}
}

/* RFC 5044 7.1.2: a responder that has not received a correct FPDU sends no
 * FPDU, and so no Terminate. */
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

/* The last bytes of a WRITE are not stored if the CRC of their FPDU is wrong.
 */
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

/* Replaces the bytes on their way to side 1 by an FPDU with this header and
 * `bytes` bytes of body. */
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

/* Segments that side 1 must refuse: the header, the number of bytes behind the
 * header, and the cause that the Terminate must name. */
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
		joined_terminated(&j, f->cause);
		joined_part(&j);
	}
}

/* Gives side 1 forged READs until it refuses one; returns how many it has
 * taken. */
static uint32_t reads_until_refusal(struct joined *j)
{
	struct ddp_header h = {.is_last = true,
			       .ddp_version = 1,
			       .rdmap_version = 1,
			       .opcode = RDMAP_READ_REQUEST,
			       .queue = 1};
	uint8_t body[RDMAP_READ_BYTES] = {0};

	while (joined_phase(j, 1) == STREAM_OPEN) {
		h.sequence++;
		assert_true(h.sequence < 10);
		forge_fpdu(j, &h, body, sizeof(body));
		joined_deliver(j, 1, UINT32_MAX);
	}
	return h.sequence - 1;
}

/* The peer sends more READs than the connection allows (RFC 5040 6.1). */
static void a_peer_that_floods_with_reads_is_stopped(void **state)
{
	struct joined j;

	joined_plain(&j);
	assert_int_equal(reads_until_refusal(&j), joined_config.ird);
	joined_run(&j);
	assert_int_equal(j.d->side[1].side->stream->terminate.cause,
			 TERMINATE_NO_BUFFER);
	/* the responses to the forged READs end side 0's stream */
	assert_int_equal(joined_phase(&j, 0), STREAM_OVER);
	assert_int_equal(joined_phase(&j, 1), STREAM_OVER);
	joined_part(&j);
}

/* Side 1 takes the first forged READ as the ready-to-receive, and then still
 * takes as many READs as the connection allows. */
static void a_ready_to_receive_does_not_count_as_a_read(void **state)
{
	struct joined j;

	joined_kinds(&j, 0, MPA_RTR_READ);
	assert_int_equal(reads_until_refusal(&j), joined_config.ird + 1);
	joined_part(&j);
}

/* Begins a connection with the extensions, and gives side 1 an atomic of the
 * word at 800 plus a.offset. */
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
		/* no carry goes from a field of 8 bits into the next */
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
		joined_terminated(&j, rows[i].cause);
		joined_part(&j);
	}
}

/* RFC 5041 5.2: the key and the offset of a message without payload are not
 * checked. */
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

/* Up to six bytes of the stream to side 1 are replaced by random bytes.  Side 1
 * may accept them or end the stream; the test fails if CHECK or a sanitizer
 * finds harm. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			damage_is_found_by_the_crc_and_completes_nothing),
		cmocka_unit_test(damage_of_the_first_fpdu_has_no_terminate),
		cmocka_unit_test(
			a_program_that_polls_the_last_byte_sees_no_damage),
		cmocka_unit_test(each_wrong_header_has_its_terminate),
		cmocka_unit_test(a_peer_that_floods_with_reads_is_stopped),
		cmocka_unit_test(a_ready_to_receive_does_not_count_as_a_read),
		cmocka_unit_test(
			a_response_that_does_not_match_its_read_is_refused),
		cmocka_unit_test(an_atomic_works_on_the_bits_of_its_masks),
		cmocka_unit_test(
			an_atomic_of_another_code_or_place_changes_nothing),
		cmocka_unit_test(an_empty_response_may_name_any_memory),
		cmocka_unit_test(a_terminate_quotes_what_its_error_is_about),
		cmocka_unit_test(random_streams_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
