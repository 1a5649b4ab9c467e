/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares util/crc with check values, a bitwise reference and itself. */
#include "test.h"

#include "util/crc.h"
#include "util/crctier.h"

static uint32_t crc_bitwise(uint32_t poly, uint32_t crc, const uint8_t *p,
			    size_t n)
{
	while (n--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = (crc >> 1) ^ (crc & 1 ? poly : 0);
	}
	return crc;
}

static void fill_bytes(uint8_t *p, size_t n)
{
	uint32_t x = 12345;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = (uint8_t)(x >> 24);
	}
}

static void check_values_of_the_standards_are_met(void **state)
{
	assert_int_equal(~crc32_update(CRC_INIT, "123456789", 9), 0xcbf43926u);
	assert_int_equal(~crc32c_update(CRC_INIT, "123456789", 9), 0xe3069283u);
}

static void every_length_agrees_with_the_bitwise_reference(void **state)
{
	uint8_t data[600];

	fill_bytes(data, sizeof(data));
	for (size_t n = 0; n < sizeof(data); n++) {
		uint32_t seed = (uint32_t)n;

		assert_int_equal(crc32_update(seed, data, n),
				 crc_bitwise(0xedb88320u, seed, data, n));
		assert_int_equal(crc32c_update(seed, data, n),
				 crc_bitwise(0x82f63b78u, seed, data, n));
	}
}

static void pieces_give_the_same_as_the_whole(void **state)
{
	uint8_t data[300];
	uint32_t whole, wholec;

	fill_bytes(data, sizeof(data));
	whole = crc32_update(CRC_INIT, data, sizeof(data));
	wholec = crc32c_update(CRC_INIT, data, sizeof(data));
	for (size_t n = 0; n <= sizeof(data); n++) {
		uint32_t a = crc32_update(CRC_INIT, data, n);
		uint32_t c = crc32c_update(CRC_INIT, data, n);

		assert_int_equal(crc32_update(a, data + n, sizeof(data) - n),
				 whole);
		assert_int_equal(crc32c_update(c, data + n, sizeof(data) - n),
				 wholec);
	}
}

/* Returns the product by its definition: the sum of a * x^k for each x^k in b.
 */
static uint32_t slow_product(uint32_t a, uint32_t b)
{
	uint32_t sum = 0;

	for (uint32_t bit = 0x80000000u; bit; bit >>= 1) {
		sum ^= b & bit ? a : 0;
		a = a >> 1 ^ (a & 1 ? 0xedb88320u : 0);
	}
	return sum;
}

static void products_are_those_of_polynomials(void **state)
{
	const struct crctier before = crctier_chosen;

	for (size_t i = 0; i < crctier_count; i++) {
		uint32_t a = 1, b = 0x80000000u;

		if (!crctier_all[i].is_here())
			continue;
		crctier_choose(&crctier_all[i]);
		for (int k = 0; k < 5000; k++) {
			assert_int_equal(crc32_multiply(a, b),
					 slow_product(a, b));
			a = k < 64 ? 1u << k / 2 : a * 1664525u + 1013904223u;
			b = k < 64 ? 1u << k % 32 : b * 22695477u + a;
		}
	}
	crctier_choose(&before);
}

/* Squaring x^8 again and again gives x^(8 << k), for each bit k of a length. */
static void each_power_follows_from_the_polynomial(void **state)
{
	uint32_t power = 0x80000000u >> 8;

	for (int k = 0; k < 64; k++) {
		size_t bytes = (size_t)1 << k;

		assert_int_equal(crc32_factor(bytes), power);
		assert_int_equal(
			slow_product(power, crc32_inverse_factor(bytes)),
			0x80000000u);
		power = slow_product(power, power);
	}
}

static uint32_t shift_state(uint32_t crc, size_t bytes)
{
	return crc32_multiply(crc, crc32_factor(bytes));
}

static void multiplying_by_a_factor_feeds_zero_bytes(void **state)
{
	static const uint8_t zero[5000];

	for (size_t n = 0; n < sizeof(zero); n++) {
		assert_int_equal(shift_state(0xdeadbeefu, n),
				 crc32_update(0xdeadbeefu, zero, n));
	}
}

static void unshift_undoes_a_factor(void **state)
{
	static const size_t many[] = {0,	  1,	       0x1fffffff,
				      0x20000000, 0xfffffffe,  0xffffffff,
				      SIZE_MAX,	  SIZE_MAX / 3};

	for (size_t n = 0; n < 10000; n++) {
		uint32_t c = (uint32_t)(n * 2654435761u);

		assert_int_equal(crc32_unshift(shift_state(c, n), n), c);
	}
	for (size_t i = 0; i < TEST_COUNT(many); i++) {
		assert_int_equal(
			crc32_unshift(shift_state(0x1234567, many[i]), many[i]),
			0x1234567);
	}
}

static void factors_add_up(void **state)
{
	for (size_t n = 1; n < ((size_t)1 << 60); n = n * 3 + 1) {
		assert_int_equal(shift_state(shift_state(77, n), n + 5),
				 shift_state(77, 2 * n + 5));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_values_of_the_standards_are_met),
		cmocka_unit_test(
			every_length_agrees_with_the_bitwise_reference),
		cmocka_unit_test(pieces_give_the_same_as_the_whole),
		cmocka_unit_test(products_are_those_of_polynomials),
		cmocka_unit_test(each_power_follows_from_the_polynomial),
		cmocka_unit_test(multiplying_by_a_factor_feeds_zero_bytes),
		cmocka_unit_test(unshift_undoes_a_factor),
		cmocka_unit_test(factors_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
