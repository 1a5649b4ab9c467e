/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/arbiter: which VL sends next. */
#include "test.h"

#include "fabric/arbiter.h"

enum { PICKS = 1200, VLS = 8, BLOCKS = 2 };

struct picks {
	uint32_t count[VLS]; /* by VL */
	uint32_t longest;    /* most picks of VL 1 in sequence */
};

/* Picks PICKS times; each packet has BLOCKS blocks. */
static struct picks pick_many(const struct arbiter_tables *t, uint32_t ready)
{
	const uint32_t blocks[VLS] = {2, 2, 2, 2, 2, 2, 2, 2};
	struct arbiter a = {.high_blocks = 0};
	struct picks p = {.longest = 0};
	uint32_t in_sequence = 0;

	for (int i = 0; i < PICKS; i++) {
		uint32_t vl = arbiter_pick(&a, t, ready, blocks);

		assert_true(vl < VLS && (ready >> vl & 1));
		p.count[vl]++;
		in_sequence = vl == 1 ? in_sequence + 1 : 0;
		if (in_sequence > p.longest)
			p.longest = in_sequence;
	}
	return p;
}

static void vls_of_a_table_take_turns_by_weight(void **state)
{
	static const uint8_t none[2 * ARBITER_ENTRIES],
		low[2 * ARBITER_ENTRIES] = {0, 4, 1, 6, 2, 2, 1, 0, 15, 9};
	const struct arbiter_tables t = {none, low, 0};
	struct picks p = pick_many(&t, 7);

	assert_int_equal(p.count[0], PICKS * 4 / 12);
	assert_int_equal(p.count[1], PICKS * 6 / 12);
	assert_int_equal(p.count[2], PICKS * 2 / 12);
	assert_int_equal(p.longest, 3);
	/* a VL that is not ready loses its turn */
	p = pick_many(&t, 5);
	assert_int_equal(p.count[0], PICKS * 4 / 6);
}

/* A packet may be longer than the rest of the weight. */
static void a_weight_below_a_packet_sends_one(void **state)
{
	static const uint8_t none[2 * ARBITER_ENTRIES],
		low[2 * ARBITER_ENTRIES] = {0, 1, 1, 3};
	const struct arbiter_tables t = {none, low, 0};
	struct picks p = pick_many(&t, 3);

	assert_int_equal(p.count[0], PICKS / 3);
	assert_int_equal(p.count[1], PICKS * 2 / 3);
}

static void high_priority_has_a_limit(void **state)
{
	static const uint8_t high[2 * ARBITER_ENTRIES] = {1, 8},
				      low[2 * ARBITER_ENTRIES] = {0, 8};
	struct arbiter_tables t = {high, low, 1};

	/* 64 blocks of high priority, then a packet of low priority */
	assert_int_equal(pick_many(&t, 3).longest, 32);
	t.high_limit = 3;
	assert_int_equal(pick_many(&t, 3).longest, 96);
	t.high_limit = 0;
	assert_int_equal(pick_many(&t, 3).longest, 1);
	t.high_limit = 255;
	assert_int_equal(pick_many(&t, 3).longest, PICKS);
	/* no packet of low priority waits */
	t.high_limit = 1;
	assert_int_equal(pick_many(&t, 2).longest, PICKS);
}

/* A VL may be in both tables. */
static void a_vl_in_both_tables_uses_both(void **state)
{
	static const uint8_t high[2 * ARBITER_ENTRIES] = {1, 2},
				      low[2 * ARBITER_ENTRIES] = {0, 2, 1, 2};
	const struct arbiter_tables t = {high, low, 0};
	struct picks p = pick_many(&t, 3);

	assert_int_equal(p.count[0], PICKS / 4);
	assert_int_equal(p.count[1], PICKS * 3 / 4);
}

static void a_vl_in_no_table_sends_last(void **state)
{
	static const uint8_t none[2 * ARBITER_ENTRIES],
		low[2 * ARBITER_ENTRIES] = {[14] = 4, [15] = 9};
	const struct arbiter_tables t = {none, low, 0};

	assert_int_equal(pick_many(&t, 1 << 4 | 1 << 6).count[4], PICKS);
	assert_int_equal(pick_many(&t, 1 << 5 | 1 << 6).count[5], PICKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vls_of_a_table_take_turns_by_weight),
		cmocka_unit_test(a_weight_below_a_packet_sends_one),
		cmocka_unit_test(high_priority_has_a_limit),
		cmocka_unit_test(a_vl_in_both_tables_uses_both),
		cmocka_unit_test(a_vl_in_no_table_sends_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
