/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/opcode: all 256 opcodes, compared with IBTA 9.2.1. */
#include "test.h"

#include "hdr/bth.h"
#include "hdr/opcode.h"

#define PER_SERVICE 32

/* Is this one of the opcodes of RC that are reserved? */
static bool is_reserved(uint8_t opcode)
{
	return opcode == 0x15 || (opcode >= 0x18 && opcode <= 0x1b) ||
	       opcode == 0x1e || opcode == 0x1f;
}

static bool is_assigned(uint8_t opcode)
{
	unsigned int low = opcode % PER_SERVICE;

	if (opcode == 0x81)
		return true;
	switch (opcode >> 5) {
	case 0:
	case 5:
		return low <= 0x14 || low == 0x16 || low == 0x17 ||
		       low == 0x1c || low == 0x1d;
	case 1:
		return low <= 0x0b;
	case 3:
		return low == 4 || low == 5;
	}
	return false;
}

static void assigned_opcodes_and_reserved_rc_opcodes_have_a_row(void **state)
{
	for (unsigned int op = 0; op < 256; op++)
		assert_int_equal(opcode_info((uint8_t)op) != NULL,
				 is_assigned((uint8_t)op) ||
					 is_reserved((uint8_t)op));
}

/* The row lets the responder refuse such an opcode: IBTA 9.9.3. */
static void a_reserved_rc_opcode_is_a_request_of_unknown_headers(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);

		assert_int_equal(info && info->kind == OPCODE_KIND_RESERVED,
				 is_reserved((uint8_t)op));
		if (!is_reserved((uint8_t)op))
			continue;
		assert_true(info->request);
		assert_int_equal(info->ext, 0);
	}
}

static void the_service_is_the_top_three_bits(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);

		if (info) {
			assert_int_equal(info->service, op >> 5);
			assert_int_equal(opcode_service((uint8_t)op), op >> 5);
		}
	}
}

static void requests_and_responses_share_no_extension_header(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);
		unsigned int answers =
			OPCODE_EXT_AETH | OPCODE_EXT_ATOMICACKETH;

		if (info && info->request)
			assert_int_equal(info->ext & answers, 0);
		else if (info)
			assert_int_equal(info->ext & ~answers, 0);
	}
}

static void an_operation_is_the_same_in_every_service(void **state)
{
	for (unsigned int op = 0x20; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);
		const struct opcode_info *rc =
			opcode_info((uint8_t)(op % PER_SERVICE));
		unsigned int own = OPCODE_EXT_DETH | OPCODE_EXT_XRCETH;

		if (!info || op == OPCODE_CNP)
			continue;
		assert_int_equal(info->kind, rc->kind);
		assert_int_equal(info->position, rc->position);
		assert_int_equal(info->request, rc->request);
		assert_int_equal(info->payload, rc->payload);
		assert_int_equal(info->ext & ~own, rc->ext);
		assert_int_equal((info->ext & OPCODE_EXT_DETH) != 0,
				 info->service == OPCODE_SERVICE_UD);
		assert_int_equal((info->ext & OPCODE_EXT_XRCETH) != 0,
				 info->service == OPCODE_SERVICE_XRC &&
					 info->request);
		assert_string_equal(strchr(info->name, ' '),
				    strchr(rc->name, ' '));
	}
}

static void rc_rows_have_the_headers_of_the_opcode_table(void **state)
{
	/* clang-format off */
	static const uint8_t header_bytes[PER_SERVICE] = {
		12, 12, 12, 16, 12, 16, 28, 12, 12, 16, 28, 32,
		28, 16, 12, 16, 16, 16, 24, 40, 40, 12, 16, 16,
		12, 12, 12, 12, 32, 28, 12, 12,
	};
	/* clang-format on */

	for (uint8_t op = 0; op < PER_SERVICE; op++) {
		const struct opcode_info *info = opcode_info(op);

		assert_int_equal(info ? info->header_bytes : 0,
				 header_bytes[op]);
	}
	assert_int_equal(opcode_info(OPCODE_UD_SEND_ONLY)->header_bytes, 20);
	assert_int_equal(opcode_info(OPCODE_UD_SEND_ONLY_IMM)->header_bytes,
			 24);
	assert_int_equal(opcode_info(OPCODE_CNP)->header_bytes, BTH_BYTES);
}

static void messages_start_and_end_where_their_names_say(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);

		if (!info)
			continue;
		if (strstr(info->name, "_FIRST"))
			assert_int_equal(info->position, OPCODE_FIRST);
		else if (strstr(info->name, "_MIDDLE"))
			assert_int_equal(info->position, OPCODE_MIDDLE);
		else if (strstr(info->name, "_LAST"))
			assert_int_equal(info->position, OPCODE_LAST);
		else
			assert_int_equal(info->position, OPCODE_ONLY);
		assert_int_equal(opcode_starts(info),
				 info->position == OPCODE_FIRST ||
					 info->position == OPCODE_ONLY);
		assert_int_equal(opcode_ends(info),
				 info->position == OPCODE_LAST ||
					 info->position == OPCODE_ONLY);
	}
}

static void opcode_of_finds_every_row_that_carries_a_message(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);
		unsigned int tails = OPCODE_EXT_IMMDT | OPCODE_EXT_IETH;

		if (!info || !info->payload || info->memory_placement ||
		    op == OPCODE_CNP || info->kind == OPCODE_KIND_RESERVED)
			continue;
		assert_int_equal(
			opcode_of(info->service, info->kind, info->position,
				  (enum opcode_ext)(info->ext & tails)),
			op);
	}
	assert_int_equal(opcode_of(OPCODE_SERVICE_RC, OPCODE_KIND_SEND,
				   OPCODE_MIDDLE, OPCODE_EXT_IETH),
			 OPCODE_RC_SEND_MIDDLE);
	assert_int_equal(opcode_of(OPCODE_SERVICE_RC, OPCODE_KIND_WRITE,
				   OPCODE_FIRST, OPCODE_EXT_IMMDT),
			 OPCODE_RC_WRITE_FIRST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			assigned_opcodes_and_reserved_rc_opcodes_have_a_row),
		cmocka_unit_test(
			a_reserved_rc_opcode_is_a_request_of_unknown_headers),
		cmocka_unit_test(the_service_is_the_top_three_bits),
		cmocka_unit_test(
			requests_and_responses_share_no_extension_header),
		cmocka_unit_test(an_operation_is_the_same_in_every_service),
		cmocka_unit_test(rc_rows_have_the_headers_of_the_opcode_table),
		cmocka_unit_test(messages_start_and_end_where_their_names_say),
		cmocka_unit_test(
			opcode_of_finds_every_row_that_carries_a_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
