/* SPDX-License-Identifier: BSD-2-Clause */
/* The content of the fd store outlives a broker: member i is found as member i,
 * or not at all. */
#include "test.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/fd_store.h"

static ino_t number_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void assert_member(struct fd_store *s, uint32_t i, int fd)
{
	int found[FD_STORE_MEMBER_FDS];

	assert_int_equal(fd_store_get(s, i, found), 0);
	assert_int_equal(number_of(found[0]), number_of(fd));
	assert_int_equal(found[1], -1);
	close(found[0]);
}

/* A put fails, for example, when the user has too many descriptors in flight.
 */
static void a_descriptor_that_cannot_be_stored_moves_no_other(void **state)
{
	int first = memfd_create("first", 0), third = memfd_create("third", 0);
	int closed, found[FD_STORE_MEMBER_FDS];
	struct fd_store s;

	assert_int_equal(fd_store_new(&s), 0);
	closed = dup(first);
	close(closed);
	assert_int_equal(fd_store_put(&s, 0, (int[]){first, -1, -1}), 0);
	assert_int_equal(fd_store_put(&s, 1, (int[]){closed, -1, -1}), -EBADF);
	assert_int_not_equal(fd_store_put(&s, 2, (int[]){third, -1, -1}), 0);
	assert_member(&s, 0, first);
	assert_int_equal(fd_store_get(&s, 1, found), -ENOENT);
	fd_store_close(&s);
	close(first);
	close(third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_descriptor_that_cannot_be_stored_moves_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
