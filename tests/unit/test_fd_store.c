/* SPDX-License-Identifier: BSD-2-Clause */
/* The content of the fd store outlives a broker: member i is found as member i,
 * or not at all. */
#include "brought.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

/* Opens a "store" whose first message has `size` bytes and n descriptors. */
static void open_forged(struct brought *b, size_t size, size_t n)
{
	struct fd_store s;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	brought_send(b, pair[1], "x", size, n);
	assert_int_equal(fd_store_open(&s, pair[0]), -EPROTO);
	close(pair[1]);
}

/* A client that has the rights of the broker's user gives the store. */
static void what_is_no_store_leaves_no_descriptor(void **state)
{
	for (size_t size = 0; size < 2; size++) {
		struct brought b = brought_new();

		open_forged(&b, size, 3);
		assert_true(brought_are_closed(&b));
		brought_free(&b);
	}
}

/* The limit on open files leaves room for the first descriptor of the member
 * alone. */
static void a_member_is_found_whole_or_not_at_all(void **state)
{
	int found[FD_STORE_MEMBER_FDS], one = memfd_create("one", 0), top;
	struct rlimit was, few;
	struct brought b = brought_new();
	struct fd_store s;

	assert_int_equal(fd_store_new(&s), 0);
	assert_int_equal(fd_store_put(&s, 0, (int[]){b.lent, b.lent, one}), 0);
	close(b.lent);
	b.lent = -1;
	top = dup(0);
	close(top);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){(rlim_t)top + 1, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(fd_store_get(&s, 0, found), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(fd_store_get(&s, 0, found), 0);
	for (int i = 0; i < FD_STORE_MEMBER_FDS; i++)
		close(found[i]);
	fd_store_close(&s);
	assert_true(brought_are_closed(&b));
	brought_free(&b);
	close(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_descriptor_that_cannot_be_stored_moves_no_other),
		cmocka_unit_test(what_is_no_store_leaves_no_descriptor),
		cmocka_unit_test(a_member_is_found_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
