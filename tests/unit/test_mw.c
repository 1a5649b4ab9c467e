/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/mw: which memory a window opens, and for which queue pairs. */
#include "test.h"

#include <errno.h>

#include "hca/hca.h"
#include "util/step.h"

#define ARENA_BYTES (32u << 20)
#define ALL	    (HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC)

struct world {
	void *memory;
	struct hca h;
	struct mr *region, *w1, *w2;
	struct qp qp;
};

static void begin_world(struct world *w, uint32_t access)
{
	uint64_t seed[4] = {1, 2, 3, 4};
	struct arena a;

	memset(w, 0, sizeof(*w));
	w->memory = aligned_alloc(4096, ARENA_BYTES);
	memset(w->memory, 0, ARENA_BYTES);
	arena_init(&a, w->memory, ARENA_BYTES);
	assert_int_equal(hca_init(&w->h, a, NULL, seed), 0);
	w->qp.pd = 1;
	w->qp.qpn = 17;
	w->region = mr_new(&w->h, 1, 0x5000, 0x1000, 0x9000, access);
	w->w1 = mw_new(&w->h, 1, 1);
	w->w2 = mw_new(&w->h, 1, 2);
	assert_non_null(w->region);
	assert_non_null(w->w1);
	assert_non_null(w->w2);
}

static struct mw_bind make_binding(const struct world *w,
				   const struct mr *window)
{
	return (struct mw_bind){.window = window->lkey,
				.rkey = window->lkey ^ 1,
				.region = w->region->lkey,
				.access = ALL,
				.va = 0x9100,
				.bytes = 0x100};
}

/* The action of another thread when this thread is at the step at_step; NULL:
 * none. */
static void (*meanwhile)(void);
static const char *at_step;
static struct world *its; /* the world in which the action takes place */

void step_at(const char *name)
{
	void (*once)(void) = meanwhile;

	if (!once || strcmp(name, at_step) != 0)
		return;
	meanwhile = NULL;
	once();
}

static enum mr_verdict reach_window(struct world *w, uint32_t key, uint64_t va,
				    uint64_t *addr)
{
	return mr_remote(&w->h, &w->qp, key, va, 8, HCA_REMOTE_WRITE, addr);
}

/* Makes a world, and binds the window of this type.  Returns the binding. */
static struct mw_bind begin_bound(struct world *w, int type)
{
	struct mw_bind b;

	begin_world(w, HCA_LOCAL_WRITE | HCA_MW_BIND);
	b = make_binding(w, type == 1 ? w->w1 : w->w2);
	assert_int_equal(mw_bind(&w->h, &w->qp, &b), MR_OK);
	return b;
}

static void a_window_opens_its_range_alone(void **state)
{
	struct world w;
	struct mw_bind b;
	uint64_t addr = 0;

	begin_world(&w, HCA_LOCAL_WRITE | HCA_MW_BIND);
	b = make_binding(&w, w.w2);
	assert_int_equal(reach_window(&w, b.rkey, 0x9100, &addr), MR_BAD_KEY);
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_OK);
	assert_int_equal(reach_window(&w, b.rkey, 0x91f8, &addr), MR_OK);
	assert_int_equal(addr, 0x51f8);
	assert_int_equal(reach_window(&w, b.rkey, 0x91f9, &addr), MR_OUTSIDE);
	assert_int_equal(reach_window(&w, b.rkey, 0x90ff, &addr), MR_OUTSIDE);
	assert_int_equal(reach_window(&w, w.w2->lkey, 0x9100, &addr),
			 MR_BAD_KEY);
	assert_int_equal(mr_local(&w.h, 1, w.w2->lkey, 0x9100, 8, 0, &addr),
			 MR_BAD_KEY);
	/* the region itself gives no right to peers */
	assert_int_equal(reach_window(&w, w.region->rkey, 0x9100, &addr),
			 MR_NO_RIGHT);
	free(w.memory);
}

static void a_zero_based_window_counts_from_its_start(void **state)
{
	struct world w;
	struct mw_bind b;
	uint64_t addr = 0;

	begin_world(&w, HCA_LOCAL_WRITE | HCA_MW_BIND);
	b = make_binding(&w, w.w2);
	b.access |= HCA_ZERO_BASED;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_OK);
	assert_int_equal(reach_window(&w, b.rkey, 8, &addr), MR_OK);
	assert_int_equal(addr, 0x5108);
	b.window = w.w1->lkey;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_ZERO_BASED);
	free(w.memory);
}

static void a_new_key_has_the_windows_upper_24_bits(void **state)
{
	struct world w;

	begin_world(&w, HCA_LOCAL_WRITE | HCA_MW_BIND);
	for (int type = 1; type <= 2; type++) {
		struct mr *window = type == 1 ? w.w1 : w.w2;
		struct mw_bind b = make_binding(&w, window);
		uint32_t key = (window->lkey & 0xffffff00) | 0x5a;
		uint64_t addr;

		b.rkey = 0x12345a;
		assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_OK);
		assert_int_equal(reach_window(&w, b.rkey, 0x9100, &addr),
				 MR_BAD_KEY);
		assert_int_equal(reach_window(&w, key, 0x9100, &addr), MR_OK);
	}
	free(w.memory);
}

static void type_2_is_never_bound_to_nothing(void **state)
{
	struct world w;
	struct mw_bind b;

	begin_world(&w, HCA_LOCAL_WRITE | HCA_MW_BIND);
	b = make_binding(&w, w.w2);
	b.bytes = 0;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_NO_BYTES);
	b.region = 0;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_NO_BYTES);
	b.window = w.w1->lkey;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_OK);
	b.bytes = 1;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_BAD_KEY);
	free(w.memory);
}

static void type_2_serves_one_queue_pair_until_it_is_invalidated(void **state)
{
	struct world w;
	struct mw_bind b;
	uint64_t addr;

	b = begin_bound(&w, 2);
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_IS_BOUND);
	w.qp.qpn = 18;
	assert_int_equal(reach_window(&w, b.rkey, 0x9100, &addr), MR_BAD_QP);
	assert_int_equal(mw_invalidate(&w.h, &w.qp, b.rkey), MR_BAD_QP);
	w.qp.qpn = 17;
	assert_int_equal(mw_invalidate(&w.h, &w.qp, b.rkey ^ 3), MR_BAD_KEY);
	assert_int_equal(mw_invalidate(&w.h, &w.qp, b.rkey), MR_OK);
	assert_int_equal(mw_invalidate(&w.h, &w.qp, b.rkey), MR_BAD_KEY);
	assert_int_equal(reach_window(&w, b.rkey, 0x9100, &addr), MR_BAD_KEY);
	b.rkey ^= 2;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_OK);
	free(w.memory);
}

static void type_1_is_bound_again_and_never_invalidated(void **state)
{
	struct world w;
	struct mw_bind b;
	uint64_t addr;

	b = begin_bound(&w, 1);
	w.qp.qpn = 18;
	assert_int_equal(reach_window(&w, b.rkey, 0x9100, &addr), MR_OK);
	assert_int_equal(mw_invalidate(&w.h, &w.qp, b.rkey), MR_NO_RIGHT);
	b.rkey ^= 2;
	b.va = 0x9200;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_OK);
	assert_int_equal(reach_window(&w, b.rkey ^ 2, 0x9200, &addr),
			 MR_BAD_KEY);
	assert_int_equal(w.region->bound, 1);
	b.bytes = 0;
	b.rkey ^= 4;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_OK);
	assert_int_equal(reach_window(&w, b.rkey, 0x9200, &addr), MR_BAD_KEY);
	assert_int_equal(w.region->bound, 0);
	free(w.memory);
}

static void bind_it_anew(void)
{
	struct mw_bind b = make_binding(its, its->w1);

	b.rkey ^= 2;
	b.va = 0x9800;
	assert_int_equal(mw_bind(&its->h, &its->qp, &b), MR_OK);
}

static void a_window_bound_anew_opens_nothing_to_the_old_key(void **state)
{
	struct world w;
	struct mw_bind b;
	uint64_t addr;

	b = begin_bound(&w, 1);
	its = &w;
	meanwhile = bind_it_anew;
	at_step = "a key's row is found";
	assert_int_equal(reach_window(&w, b.rkey, 0x9800, &addr), MR_BAD_KEY);
	assert_null(meanwhile);
	assert_int_equal(reach_window(&w, b.rkey ^ 2, 0x9800, &addr), MR_OK);
	free(w.memory);
}

static struct qp other_qp = {.pd = 1, .qpn = 18};
/* The queue pair at which bind_by_the_same_key binds the window. */
static const struct qp *binder;

/* Invalidates the window, and binds it to other memory by the key that it had.
 */
static void bind_by_the_same_key(void)
{
	struct mw_bind b = make_binding(its, its->w2);
	uint64_t addr;

	assert_int_equal(mw_invalidate(&its->h, &its->qp, b.rkey), MR_OK);
	b.access |= HCA_ZERO_BASED;
	b.va = 0x9800;
	assert_int_equal(mw_bind(&its->h, binder, &b), MR_OK);
	if (binder == &its->qp)
		assert_int_equal(reach_window(its, b.rkey, 0, &addr), MR_OK);
}

/* A key does not show whether its window was bound again after the key was
 * judged. */
static void a_binding_by_the_same_key_is_another_one(void **state)
{
	static const char *const steps[] = {"a key's row is found",
					    "a key's range is judged"};

	for (size_t i = 0; i < 2 * TEST_COUNT(steps); i++) {
		struct world w;
		struct mw_bind b = begin_bound(&w, 2);
		uint64_t addr;

		its = &w;
		binder = i % 2 ? &other_qp : &w.qp;
		meanwhile = bind_by_the_same_key;
		at_step = steps[i / 2];
		assert_int_equal(reach_window(&w, b.rkey, 0x9100, &addr),
				 MR_BAD_KEY);
		assert_null(meanwhile);
		free(w.memory);
	}
}

/* Another peer invalidates the window, which is then bound by another key. */
static void invalidate_and_bind(void)
{
	struct mw_bind b = make_binding(its, its->w2);

	assert_int_equal(mw_invalidate(&its->h, &its->qp, b.rkey), MR_OK);
	b.rkey ^= 2;
	assert_int_equal(mw_bind(&its->h, &its->qp, &b), MR_OK);
}

static void invalidate_twice(void)
{
	struct mw_bind b = make_binding(its, its->w2);

	invalidate_and_bind();
	assert_int_equal(mw_invalidate(&its->h, &its->qp, b.rkey ^ 2), MR_OK);
}

/* Two peers invalidate the old key at the same time.  The invalidation of one
 * peer comes too late: it fails, and does not change whether the new key is
 * valid. */
static void a_late_invalidation_leaves_the_new_key(void **state)
{
	for (int twice = 0; twice <= 1; twice++) {
		struct world w;
		struct mw_bind b = begin_bound(&w, 2);
		uint64_t addr;

		its = &w;
		meanwhile = twice ? invalidate_twice : invalidate_and_bind;
		at_step = "a window's key is judged";
		assert_int_equal(mw_invalidate(&w.h, &w.qp, b.rkey),
				 MR_BAD_KEY);
		assert_null(meanwhile);
		assert_int_equal(reach_window(&w, b.rkey ^ 2, 0x9100, &addr),
				 twice ? MR_BAD_KEY : MR_OK);
		free(w.memory);
	}
}

/* Acts as a peer that has judged an old key of the window, and only now notes
 * that key as invalidated. */
static void write_old_key(void)
{
	struct mw_bind b = make_binding(its, its->w2);

	its->h.peer_area->gone[its->w2 - its->h.mrs] = b.rkey ^ 2;
}

static void a_late_write_of_an_old_key_stops_no_invalidation(void **state)
{
	struct world w;
	struct mw_bind b = begin_bound(&w, 2);
	uint64_t addr;

	its = &w;
	meanwhile = write_old_key;
	at_step = "a window's key is judged";
	assert_int_equal(mw_invalidate(&w.h, &w.qp, b.rkey), MR_OK);
	assert_null(meanwhile);
	assert_int_equal(reach_window(&w, b.rkey, 0x9100, &addr), MR_BAD_KEY);
	free(w.memory);
}

static void a_region_with_a_bound_window_is_not_freed(void **state)
{
	struct world w;

	begin_bound(&w, 2);
	assert_int_equal(mr_free(&w.h, w.region), -EBUSY);
	mw_free(&w.h, w.w2);
	assert_int_equal(mr_free(&w.h, w.region), 0);
	free(w.memory);
}

static void a_region_is_freed_after_its_window_is_invalidated(void **state)
{
	struct world w;
	struct mw_bind b;

	b = begin_bound(&w, 2);
	assert_int_equal(mw_invalidate(&w.h, &w.qp, b.rkey), MR_OK);
	assert_int_equal(mw_invalidate(&w.h, &w.qp, b.rkey), MR_BAD_KEY);
	assert_int_equal(mr_free(&w.h, w.region), 0);
	mw_free(&w.h, w.w2);
	free(w.memory);
}

static void a_binding_that_breaks_a_rule_is_refused(void **state)
{
	struct world w;
	struct mw_bind b;

	begin_world(&w, HCA_LOCAL_WRITE);
	b = make_binding(&w, w.w2);
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_NO_RIGHT);
	w.region->access = HCA_MW_BIND;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_NO_RIGHT);
	w.region->access |= HCA_LOCAL_WRITE;
	b.va = 0x9f01;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_OUTSIDE);
	b.va = UINT64_MAX - 8;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_OUTSIDE);
	w.region->access |= HCA_ZERO_BASED;
	b = make_binding(&w, w.w2);
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_ZERO_BASED);
	w.region->access &= ~(uint32_t)HCA_ZERO_BASED;
	b.region = w.w1->lkey; /* a window on a window */
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_BAD_KEY);
	b = make_binding(&w, w.w2);
	b.window = w.region->lkey;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_BAD_KEY);
	b = make_binding(&w, w.w2);
	w.qp.pd = 2;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_BAD_PD);
	w.qp.pd = 1;
	w.region->pd = 2;
	assert_int_equal(mw_bind(&w.h, &w.qp, &b), MR_BAD_PD);
	free(w.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_opens_its_range_alone),
		cmocka_unit_test(a_zero_based_window_counts_from_its_start),
		cmocka_unit_test(a_new_key_has_the_windows_upper_24_bits),
		cmocka_unit_test(type_2_is_never_bound_to_nothing),
		cmocka_unit_test(
			type_2_serves_one_queue_pair_until_it_is_invalidated),
		cmocka_unit_test(type_1_is_bound_again_and_never_invalidated),
		cmocka_unit_test(
			a_window_bound_anew_opens_nothing_to_the_old_key),
		cmocka_unit_test(a_binding_by_the_same_key_is_another_one),
		cmocka_unit_test(a_late_invalidation_leaves_the_new_key),
		cmocka_unit_test(
			a_late_write_of_an_old_key_stops_no_invalidation),
		cmocka_unit_test(a_region_with_a_bound_window_is_not_freed),
		cmocka_unit_test(
			a_region_is_freed_after_its_window_is_invalidated),
		cmocka_unit_test(a_binding_that_breaks_a_rule_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
