/* SPDX-License-Identifier: BSD-2-Clause */
/* util/map: a map agrees with a plain array, also after many collisions. */
#include "test.h"

#include "util/map.h"
#include "util/rng.h"

static void an_empty_map_finds_nothing(void **state)
{
	struct map m = {0};
	uint32_t at = 0;

	assert_null(map_find(&m, 0));
	assert_null(map_next(&m, &at));
	map_remove(&m, 7);
	map_fini(&m);
}

static void key_zero_is_a_key(void **state)
{
	struct map m = {0};
	int x;

	assert_int_equal(map_add(&m, 0, &x), 0);
	assert_ptr_equal(map_find(&m, 0), &x);
	map_remove(&m, 0);
	assert_null(map_find(&m, 0));
	map_fini(&m);
}

/* Random adds, removals and lookups, with many collisions, against an array. */
static void a_map_agrees_with_a_plain_array(void **state)
{
	static int there[512];
	struct map m = {0};
	uint32_t count = 0;
	struct rng r;

	rng_init(&r, 5);
	for (int i = 0; i < 100000; i++) {
		uint32_t n = rng_below(&r, 512);
		uint32_t key = n << 12;

		assert_ptr_equal(map_find(&m, key),
				 there[n] ? &there[n] : NULL);
		if (there[n])
			map_remove(&m, key);
		else
			assert_int_equal(map_add(&m, key, &there[n]), 0);
		there[n] = !there[n];
		count += there[n] ? 1 : UINT32_MAX;
		assert_int_equal(m.count, count);
	}
	map_fini(&m);
}

static void next_gives_each_key_once(void **state)
{
	static int seen[1000];
	struct map m = {0};
	uint32_t at = 0;
	int *x;

	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(map_add(&m, i * 7919, &seen[i]), 0);
	while ((x = map_next(&m, &at)))
		(*x)++;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(seen[i], 1);
	map_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_finds_nothing),
		cmocka_unit_test(key_zero_is_a_key),
		cmocka_unit_test(a_map_agrees_with_a_plain_array),
		cmocka_unit_test(next_gives_each_key_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
