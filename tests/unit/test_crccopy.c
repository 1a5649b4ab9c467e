/* SPDX-License-Identifier: BSD-2-Clause */
/* util/crccopy: for each tier that sums while it copies, compares the
 * copy with memcpy, and the CRC with that of util/crc. */
#include "test.h"

#include <string.h>

#include "util/crc.h"
#include "util/crccopy.h"

#define BYTES 8192

static void check_one(const struct crctier *t, enum crc_kind kind, size_t n)
{
	static uint8_t from[BYTES + 64], to[BYTES + 128], want[BYTES + 128];
	size_t off = n / CRCCOPY_STEP % 64, at = (off * 11 + 12) % 64;
	uint32_t crc = (uint32_t)(n * 2654435761u), sum = crc;

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	memset(to, 0xee, sizeof(to));
	memset(want, 0xee, sizeof(want));
	memcpy(want + at, from + off, n);
	(kind == CRC_32 ? t->copy : t->copy_c)(to + at, from + off, n, &sum);
	assert_memory_equal(to, want, sizeof(to));
	assert_int_equal(sum, crc_update(kind, crc, from + off, n));
}

static void a_copy_and_its_sum_agree_with_those_of_two_steps(void **state)
{
	size_t here = 0;

	for (size_t i = 0; i < crctier_count; i++) {
		const struct crctier *t = &crctier_all[i];

		if (!t->copy || !t->is_here())
			continue;
		here++;
		for (size_t n = CRCCOPY_STEP; n <= BYTES; n += CRCCOPY_STEP) {
			check_one(t, CRC_32, n);
			check_one(t, CRC_32C, n);
		}
	}
	if (!here)
		SKIP_FOR("no tier of this processor sums while it copies");
}

/* The signal handler of memory/copy_nofault.c recognizes a fault in a copy by
 * the instruction's address: one section of the code has all copies and no
 * other function. */
static void a_handler_can_tell_a_copy_from_other_code(void **state)
{
	for (size_t i = 0; i < crctier_count; i++) {
		const struct crctier *t = &crctier_all[i];

		assert_false(crccopy_is_at((uintptr_t)t->many));
		if (!t->copy)
			continue;
		assert_true(crccopy_is_at((uintptr_t)t->copy));
		assert_true(crccopy_is_at((uintptr_t)t->copy_c));
	}
	assert_false(crccopy_is_at((uintptr_t)check_one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_copy_and_its_sum_agree_with_those_of_two_steps),
		cmocka_unit_test(a_handler_can_tell_a_copy_from_other_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
