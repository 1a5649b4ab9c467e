/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/share: if a peer looks at the table between two stores of the owner, the
 * peer looks again after the last of these stores.  test_mr_file.c tests the
 * rows. */
#include "test.h"

#include "hca/share.h"
#include "util/step.h"

#define ARENA_BYTES (64u << 20)
#define VA	    0x10000
#define BYTES	    0x4000

static struct space nothing;
static struct hca hca;

/* The version that the peer found at its last look, and how many rows were in
 * use then. */
static uint32_t version, rows;

/* Does what peer_maps_look does. */
static void look_at_rows(void)
{
	if (version == share_version(&hca))
		return;
	version = share_version(&hca);
	rows = 0;
	for (uint32_t i = 0; i < SHARE_MAX; i++) {
		struct share s = share_read(&hca, i);

		rows += shared_own(&s.serial) != 0;
	}
}

/* how often the owner was between two of its stores */
static uint32_t steps;

void step_at(const char *name)
{
	steps++;
	look_at_rows();
}

static int set_up(void **state)
{
	uint64_t seed[4] = {1, 2, 3, 4};
	struct arena a;
	void *memory = aligned_alloc(4096, ARENA_BYTES);

	memset(memory, 0, ARENA_BYTES);
	arena_init(&a, memory, ARENA_BYTES);
	version = rows = steps = 0;
	return hca_init(&hca, a, &nothing, seed);
}

static int tear_down(void **state)
{
	free(hca.arena.base);
	return 0;
}

static void a_peer_sees_each_change_at_its_next_look(void **state)
{
	const struct share what = {
		.fd = 7, .va = VA, .bytes = BYTES, .dev = 1, .ino = 2};
	uint32_t number = share_enter(&hca, VA, BYTES, &what);

	assert_int_equal(steps, 1);
	look_at_rows();
	assert_int_equal(rows, 1);
	assert_int_equal(share_leave(&hca, number), 7);
	assert_int_equal(steps, 2);
	look_at_rows();
	assert_int_equal(rows, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_peer_sees_each_change_at_its_next_look, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
