/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/ddp, hdr/rdmap: headers and bodies have the bytes that the RFCs state,
 * and are read as they were written. */
#include "test.h"

#include "hdr/rdmap.h"

#include <string.h>

/* Writes h, checks that the result is the n bytes `wire`, and parses these
 * bytes. */
static void assert_wire(const struct ddp_header *h, const uint8_t *wire,
			size_t n)
{
	uint8_t p[DDP_HEAD_MAX];
	struct ddp_header read;

	assert_int_equal(ddp_write(p, h), n);
	assert_memory_equal(p, wire, n);
	assert_int_equal(ddp_header_bytes(p[0]), n);
	assert_int_equal(ddp_parse(p, 0, &read), 0);
	assert_int_equal(ddp_parse(p, n - 1, &read), 0);
	assert_int_equal(ddp_parse(p, n, &read), n);
	memset(p, 0, sizeof(p));
	assert_int_equal(ddp_write(p, &read), n);
	assert_memory_equal(p, wire, n);
}

/* RFC 5041 4.1 and 4.2. */
static void a_tagged_header_has_the_bytes_of_the_specification(void **state)
{
	static const uint8_t wire[] = {0xc1, 0x40, 1, 2, 3, 4, 0,
				       0,    0,	   0, 5, 6, 7, 8};
	const struct ddp_header h = {.is_tagged = true,
				     .is_last = true,
				     .ddp_version = DDP_VERSION,
				     .rdmap_version = RDMAP_VERSION,
				     .opcode = RDMAP_WRITE,
				     .stag = 0x01020304,
				     .offset = 0x05060708};

	assert_int_equal(sizeof(wire), DDP_TAGGED_BYTES);
	assert_wire(&h, wire, sizeof(wire));
}

/* RFC 5041 4.1 and 4.3. */
static void an_untagged_header_has_the_bytes_of_the_specification(void **state)
{
	static const uint8_t wire[] = {0x01, 0x44, 9, 8, 7, 6, 0, 0, 0,
				       0,    0,	   0, 0, 5, 0, 0, 2, 0};
	const struct ddp_header h = {.ddp_version = DDP_VERSION,
				     .rdmap_version = RDMAP_VERSION,
				     .opcode = RDMAP_SEND_INV,
				     .stag = 0x09080706,
				     .queue = DDP_QUEUE_SEND,
				     .sequence = 5,
				     .message_offset = 512};

	assert_int_equal(sizeof(wire), DDP_UNTAGGED_BYTES);
	assert_wire(&h, wire, sizeof(wire));
}

/* RFC 5040 4.1 and RFC 7306 4.1: which opcodes are tagged, and the queues of
 * the untagged opcodes. */
static void each_opcode_has_the_row_of_its_specification(void **state)
{
	static const uint8_t queues[RDMAP_OPCODES] = {
		[RDMAP_READ_REQUEST] = DDP_QUEUE_REQUEST,
		[RDMAP_TERMINATE] = DDP_QUEUE_TERMINATE,
		[RDMAP_ATOMIC_REQUEST] = DDP_QUEUE_REQUEST,
		[RDMAP_ATOMIC_RESPONSE] = DDP_QUEUE_ATOMIC_RESPONSE,
	};

	for (uint8_t i = 0; i < RDMAP_OPCODES; i++) {
		const struct rdmap_info *r = rdmap_info(i);

		assert_int_equal(r->is_tagged,
				 i == RDMAP_WRITE || i == RDMAP_READ_RESPONSE);
		assert_int_equal(r->queue, queues[i]);
		assert_int_equal(r->invalidates,
				 i == RDMAP_SEND_INV || i == RDMAP_SEND_SE_INV);
		assert_int_equal(r->is_solicited,
				 i == RDMAP_SEND_SE || i == RDMAP_SEND_SE_INV ||
					 i == RDMAP_IMMEDIATE_SE);
		assert_int_equal(r->is_extension, i >= RDMAP_IMMEDIATE);
	}
	for (int i = RDMAP_OPCODES; i < 256; i++)
		assert_null(rdmap_info((uint8_t)i));
}

static void a_read_request_is_read_as_it_was_written(void **state)
{
	const struct rdmap_read r = {.sink_stag = 1,
				     .bytes = 2,
				     .source_stag = 3,
				     .sink_offset = 1ull << 40,
				     .source_offset = 1ull << 50};
	uint8_t p[RDMAP_READ_BYTES];
	struct rdmap_read read;

	rdmap_read_write(p, &r);
	/* RFC 5040 4.4: the sink, the length, the source */
	assert_int_equal(p[3], 1);
	assert_int_equal(p[6], 1);
	assert_int_equal(p[15], 2);
	assert_int_equal(p[19], 3);
	assert_int_equal(p[21], 4);
	rdmap_read_parse(p, &read);
	assert_int_equal(read.sink_stag, r.sink_stag);
	assert_int_equal(read.bytes, r.bytes);
	assert_int_equal(read.source_stag, r.source_stag);
	assert_true(read.sink_offset == r.sink_offset &&
		    read.source_offset == r.source_offset);
}

/* RFC 5040 4.8. */
static void a_terminate_is_read_as_it_was_written(void **state)
{
	static const uint8_t wire[] = {0x12, 0x03, 0xc0, 0};
	const struct rdmap_terminate t = {.layer = 1,
					  .type = 2,
					  .code = 3,
					  .has_length = true,
					  .has_ddp = true};
	uint8_t p[RDMAP_TERMINATE_BYTES];
	struct rdmap_terminate read;

	rdmap_terminate_write(p, &t);
	assert_memory_equal(p, wire, sizeof(wire));
	rdmap_terminate_parse(p, &read);
	assert_int_equal(read.layer << 16 | read.type << 8 | read.code,
			 0x010203);
	assert_true(read.has_length && read.has_ddp && !read.has_rdmap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_tagged_header_has_the_bytes_of_the_specification),
		cmocka_unit_test(
			an_untagged_header_has_the_bytes_of_the_specification),
		cmocka_unit_test(each_opcode_has_the_row_of_its_specification),
		cmocka_unit_test(a_read_request_is_read_as_it_was_written),
		cmocka_unit_test(a_terminate_is_read_as_it_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
