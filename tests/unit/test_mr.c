/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/mr: which memory a key names, and which queue pairs may use it. */
#include "test.h"

#include <errno.h>

#include "hca/hca.h"

#define ARENA_BYTES (16u << 20)
#define BASE	    0x10000u
#define IOVA	    0x7000000000000000u
#define BYTES	    4096u

static void *memory;
static struct hca h;
static struct qp qp;

static int set_up(void **state)
{
	uint64_t seed[4] = {1, 2, 3, 4};
	struct arena a;

	memory = aligned_alloc(4096, ARENA_BYTES);
	memset(memory, 0, ARENA_BYTES);
	arena_init(&a, memory, ARENA_BYTES);
	qp = (struct qp){.pd = 1, .qpn = 77};
	return hca_init(&h, a, NULL, seed);
}

static int tear_down(void **state)
{
	free(memory);
	return 0;
}

/* Some programs take a small key for "none". */
static void a_key_is_never_small(void **state)
{
	for (int i = 0; i < 200; i++) {
		struct mr *mr = mr_new(&h, 1, BASE, BYTES, IOVA, 0);

		assert_non_null(mr);
		assert_true(mr->rkey > 255);
		assert_ptr_equal(mr_find(&h, mr->rkey), mr);
		assert_null(mr_find(&h, mr->rkey ^ 1));
		assert_null(mr_find(&h, mr->rkey ^ 0x80000000u));
	}
	assert_null(mr_find(&h, 0));
}

static void a_region_has_one_key_for_both_sides(void **state)
{
	struct mr *mr = mr_new(&h, 1, BASE, BYTES, IOVA, ~0u);
	uint64_t at;

	assert_int_equal(mr->lkey, mr->rkey);
	assert_int_equal(mr_local(&h, 1, mr->lkey, IOVA + 5, 1, 0, &at), MR_OK);
	assert_int_equal(at, BASE + 5);
	assert_int_equal(mr_remote(&h, &qp, mr->rkey, IOVA + 7, 1, 0, &at),
			 MR_OK);
	assert_int_equal(at, BASE + 7);
}

/* A peer that knows the keys of some regions cannot compute the next key by a
 * constant step. */
static void keys_are_not_in_a_row(void **state)
{
	uint32_t last = mr_new(&h, 1, BASE, BYTES, IOVA, 0)->rkey;
	uint32_t steps[64];

	for (size_t i = 0; i < TEST_COUNT(steps); i++) {
		uint32_t key = mr_new(&h, 1, BASE, BYTES, IOVA, 0)->rkey;

		steps[i] = (key >> 8) - (last >> 8);
		last = key;
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(steps[i], steps[k]);
	}
}

/* A process that knows its own keys does not know those of another process. */
static void keys_of_two_adapters_differ(void **state)
{
	static struct hca other;
	void *room = aligned_alloc(4096, ARENA_BYTES);
	uint64_t seed[4] = {5, 6, 7, 8};
	struct arena a;
	uint32_t same = 0;

	memset(room, 0, ARENA_BYTES);
	arena_init(&a, room, ARENA_BYTES);
	assert_int_equal(hca_init(&other, a, NULL, seed), 0);
	for (int i = 0; i < 64; i++) {
		uint32_t mine = mr_new(&h, 1, BASE, BYTES, IOVA, 0)->rkey;
		uint32_t its = mr_new(&other, 1, BASE, BYTES, IOVA, 0)->rkey;

		same += mine == its;
	}
	assert_int_equal(same, 0);
	free(room);
}

static void a_range_lies_inside_or_is_refused(void **state)
{
	static const struct {
		uint64_t va, bytes;
		enum mr_verdict want;
	} rows[] = {
		{IOVA, BYTES, MR_OK},
		{IOVA, 0, MR_OK},
		{IOVA + BYTES, 0, MR_OK},
		{IOVA + BYTES - 1, 1, MR_OK},
		{IOVA - 1, 1, MR_OUTSIDE},
		{IOVA - 1, 0, MR_OUTSIDE},
		{IOVA, BYTES + 1, MR_OUTSIDE},
		{IOVA + 1, BYTES, MR_OUTSIDE},
		{IOVA + BYTES + 1, 0, MR_OUTSIDE},
		{IOVA + 16, UINT64_MAX, MR_OUTSIDE},
		{IOVA + 16, UINT64_MAX - IOVA, MR_OUTSIDE},
		{0, BYTES, MR_OUTSIDE},
		{UINT64_MAX, 2, MR_OUTSIDE},
	};
	struct mr *mr = mr_new(&h, 1, BASE, BYTES, IOVA, 0);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint64_t at;

		assert_int_equal(mr_local(&h, 1, mr->lkey, rows[i].va,
					  rows[i].bytes, 0, &at),
				 rows[i].want);
	}
}

static void the_whole_address_space_is_a_region(void **state)
{
	struct mr *mr = mr_new(&h, 1, 0, UINT64_MAX, 0, 0);
	uint64_t at;

	assert_int_equal(mr_local(&h, 1, mr->lkey, 1, UINT64_MAX - 1, 0, &at),
			 MR_OK);
	assert_int_equal(mr_local(&h, 1, mr->lkey, 2, UINT64_MAX - 1, 0, &at),
			 MR_OUTSIDE);
}

static void rights_and_protection_domains_are_checked(void **state)
{
	static const uint32_t rights[] = {HCA_LOCAL_WRITE, HCA_REMOTE_WRITE,
					  HCA_REMOTE_READ, HCA_REMOTE_ATOMIC};
	uint64_t at;

	for (size_t i = 0; i < TEST_COUNT(rights); i++) {
		struct mr *mr = mr_new(&h, 1, BASE, BYTES, IOVA, rights[i]);

		for (size_t k = 0; k < TEST_COUNT(rights); k++)
			assert_int_equal(mr_remote(&h, &qp, mr->rkey, IOVA, 1,
						   rights[k], &at),
					 i == k ? MR_OK : MR_NO_RIGHT);
		assert_int_equal(mr_local(&h, 2, mr->lkey, IOVA, 1, 0, &at),
				 MR_BAD_PD);
		qp.pd = 2;
		assert_int_equal(mr_remote(&h, &qp, mr->rkey, IOVA, 1, 0, &at),
				 MR_BAD_PD);
		qp.pd = 1;
		mr->qpn = 78;
		assert_int_equal(mr_remote(&h, &qp, mr->rkey, IOVA, 1, 0, &at),
				 MR_BAD_QP);
	}
}

static void a_freed_key_stays_invalid(void **state)
{
	uint32_t stale[300];
	uint64_t at;

	for (int i = 0; i < 300; i++) {
		struct mr *mr = mr_new(&h, 1, BASE, BYTES, IOVA, 0);

		stale[i] = mr->rkey;
		assert_int_equal(mr_free(&h, mr), 0);
		for (int k = 0; k <= i; k++)
			assert_int_equal(
				mr_remote(&h, &qp, stale[k], IOVA, 1, 0, &at),
				MR_BAD_KEY);
	}
}

static void a_full_table_gives_no_region_and_reuses_a_freed_row(void **state)
{
	struct mr *last = NULL, *mr;
	uint32_t count = 0;

	while ((mr = mr_new(&h, 1, BASE, BYTES, IOVA, 0))) {
		last = mr;
		count++;
	}
	/* the limit that a device reports */
	assert_int_equal(count, HCA_MAX_MR - 1);
	assert_int_equal(mr_free(&h, last), 0);
	assert_ptr_equal(mr_new(&h, 1, BASE, BYTES, IOVA, 0), last);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_key_is_never_small),
		CASE(a_region_has_one_key_for_both_sides),
		CASE(keys_are_not_in_a_row),
		CASE(keys_of_two_adapters_differ),
		CASE(a_range_lies_inside_or_is_refused),
		CASE(the_whole_address_space_is_a_region),
		CASE(rights_and_protection_domains_are_checked),
		CASE(a_freed_key_stays_invalid),
		CASE(a_full_table_gives_no_region_and_reuses_a_freed_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
