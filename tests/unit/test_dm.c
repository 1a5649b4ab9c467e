/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/dm: allocations get no more device memory than the limit, also if two
 * run at once; an allocation that fails takes none; imported handles of device
 * memory and of a domain are not freed while a memory region uses them. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs/dm.h"
#include "verbs/object.h"
#include "verbs/ops.h"

static struct v_context context;
/* Two such allocations exceed the limit. */
static struct ibv_alloc_dm_attr half = {.length = DM_BYTES / 2 + 4};
/* A second allocation is to come during the next one. */
static bool comes_between;
/* memfd_create is to fail. */
static bool has_none;
/* The result of the second allocation, and its errno. */
static struct ibv_dm *other;
static int other_err;

/* Replaces libc's memfd_create: makes a second allocation during the first, or
 * fails. */
int memfd_create(const char *name, unsigned flags)
{
	if (comes_between) {
		comes_between = false;
		errno = 0;
		other = v_alloc_dm(&context.verbs.context, &half);
		other_err = errno;
	}
	if (has_none) {
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

static void two_allocations_at_once_get_no_more_than_the_limit(void **state)
{
	struct ibv_dm *first;

	comes_between = true;
	first = v_alloc_dm(&context.verbs.context, &half);
	assert_non_null(first);
	assert_false(comes_between);
	assert_null(other);
	assert_int_equal(other_err, ENOMEM);
	assert_int_equal(v_free_dm(first), 0);
}

static void a_failed_allocation_takes_no_memory(void **state)
{
	struct ibv_dm *dm;

	has_none = true;
	assert_null(v_alloc_dm(&context.verbs.context, &half));
	assert_int_equal(errno, EMFILE);
	has_none = false;
	dm = v_alloc_dm(&context.verbs.context, &half);
	assert_non_null(dm);
	assert_int_equal(v_free_dm(dm), 0);
}

/* Returns a memory region of the protection domain on device memory dm; dm
 * NULL: on other memory. */
static struct v_mr *region_of(struct v_pd *pd, struct ibv_dm *dm)
{
	struct v_mr *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->base.context = &context.verbs.context;
	m->base.pd = &pd->base;
	m->dm = (struct v_dm *)(void *)dm;
	if (dm)
		count_up(&m->dm->users);
	count_up(&pd->users);
	count_up(&context.objects);
	return m;
}

static void an_imported_handle_stays_as_long_as_a_region_uses_it(void **state)
{
	struct ibv_dm *dm = v_alloc_dm(&context.verbs.context, &half);
	struct ibv_dm *imported;
	struct v_pd pd = {.users = {1}};
	struct v_mr *one, *two;

	assert_non_null(dm);
	imported = ibv_import_dm(&context.verbs.context, dm->handle);
	assert_non_null(imported);
	one = region_of(&pd, imported);
	two = region_of(&pd, imported);
	assert_int_equal(v_free_dm(dm), 0);
	ibv_unimport_dm(imported);
	assert_int_equal(count_now(&context.objects), 3);
	v_mr_drop(one);
	assert_int_equal(count_now(&context.objects), 2);
	v_mr_drop(two);
	assert_int_equal(count_now(&context.objects), 0);
}

static void an_imported_domain_stays_as_long_as_a_region_uses_it(void **state)
{
	struct v_pd *pd = calloc(1, sizeof(*pd));
	struct v_mr *one, *two;

	assert_non_null(pd);
	list_init(&pd->same);
	/* As if another process had opened the device: then v_pd_drop uses no
	 * host, and this context has none. */
	context.process = v_process() + 1;
	pd->base.context = &context.verbs.context;
	count_up(&pd->users);
	count_up(&context.objects);
	one = region_of(pd, NULL);
	two = region_of(pd, NULL);
	ibv_unimport_pd(&pd->base);
	assert_int_equal(count_now(&context.objects), 3);
	v_mr_drop(one);
	assert_int_equal(count_now(&context.objects), 2);
	v_mr_drop(two);
	assert_int_equal(count_now(&context.objects), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			two_allocations_at_once_get_no_more_than_the_limit),
		cmocka_unit_test(a_failed_allocation_takes_no_memory),
		cmocka_unit_test(
			an_imported_handle_stays_as_long_as_a_region_uses_it),
		cmocka_unit_test(
			an_imported_domain_stays_as_long_as_a_region_uses_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
