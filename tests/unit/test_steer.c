/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/steer: the bijection between QPN and (class, rest), as the C code
 * computes it.  test_broker tests the BPF program in the kernel. */
#include "test.h"

#include "broker/steer.h"

static void every_qpn_has_one_class_and_every_class_its_share(void **state)
{
	static uint32_t share[1024];

	for (uint32_t qpn = 0; qpn < 1u << 24; qpn++)
		share[steer_class(qpn)]++;
	for (uint32_t class = 0; class < 1024; class ++)
		assert_int_equal(share[class], 1u << STEER_REST_BITS);
}

static void a_class_comes_back_from_its_qpns(void **state)
{
	for (uint32_t class = 1; class <= STEER_CLASS_MAX; class ++)
		for (uint32_t rest = 0; rest < 1u << STEER_REST_BITS; rest++)
			if (steer_class(steer_qpn(class, rest)) != class)
				fail_msg("class %u rest %u", class, rest);
}

static void no_two_qpns_of_a_class_are_the_same(void **state)
{
	static uint8_t seen[1u << 24];

	for (uint32_t rest = 0; rest < 1u << STEER_REST_BITS; rest++)
		assert_int_equal(seen[steer_qpn(7, rest)]++, 0);
}

static void reserved_qpns_belong_to_no_client(void **state)
{
	assert_int_equal(steer_class(0), 0);
	assert_int_equal(steer_class(1), 0);
	assert_true(steer_class(0xffffff) > STEER_CLASS_MAX);
}

static void every_key_is_a_bijection_that_keeps_both_ends(void **state)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		bool seen[1024] = {false};
		struct steer_key key;

		steer_draw(&key, seed);
		assert_true(steer_is_key(&key));
		assert_int_equal(steer_index(&key, 0), 0);
		assert_int_equal(steer_index(&key, 1023), 1023);
		for (uint32_t class = 0; class < 1024; class ++) {
			uint32_t i = steer_index(&key, class);

			assert_true(i < 1024 && !seen[i]);
			seen[i] = true;
			assert_int_equal(steer_class_at(&key, i), class);
		}
	}
}

/* The class at index 1 does not reveal the class at index 2: over many keys, no
 * difference between the two is common. */
static void keys_spread_classes_evenly(void **state)
{
	uint32_t count[1024] = {0};
	struct steer_key key;

	for (uint64_t seed = 0; seed < 100000; seed++) {
		steer_draw(&key, seed);
		count[(steer_class_at(&key, 2) - steer_class_at(&key, 1)) &
		      1023]++;
	}
	for (uint32_t i = 0; i < 1024; i++)
		assert_true(count[i] < 1000); /* 98 are expected */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_qpn_has_one_class_and_every_class_its_share),
		cmocka_unit_test(a_class_comes_back_from_its_qpns),
		cmocka_unit_test(no_two_qpns_of_a_class_are_the_same),
		cmocka_unit_test(reserved_qpns_belong_to_no_client),
		cmocka_unit_test(every_key_is_a_bijection_that_keeps_both_ends),
		cmocka_unit_test(keys_spread_classes_evenly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
