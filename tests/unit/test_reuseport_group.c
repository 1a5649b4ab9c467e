/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/reuseport_group: what a successor of the broker takes over. */
#include "brokers.h"

#include "broker/reuseport_group.h"

static struct reuseport_group group, next;

/* Begins a group with one class, which this process has. */
static void begin_group(void)
{
	const char *why = "";
	uint32_t class;

	reuseport_group_init(&group, true);
	if (reuseport_group_take(&group, geteuid(), getpid(), 1, &why, &class))
		fail_msg("%s", why);
}

/* Returns what a successor says of a store in which a process has put these
 * members 0 and 1. */
static int adopt_both(const int first[FD_STORE_MEMBER_FDS],
		      const int second[FD_STORE_MEMBER_FDS])
{
	int own = socket(AF_UNIX, SOCK_SEQPACKET, 0), err;
	struct fd_store s;

	assert_int_equal(fd_store_new(&s), 0);
	s.ledger->key = group.key;
	assert_int_equal(fd_store_put(&s, 0, first), 0);
	assert_int_equal(fd_store_put(&s, 1, second), 0);
	reuseport_group_init(&next, true);
	err = reuseport_group_adopt(&next, dup(s.fd), own, 1);
	assert_int_equal(next.count, err ? 0 : 2);
	reuseport_group_close(&next);
	fd_store_close(&s);
	close(own);
	return err;
}

/* The same, with member 0 of the group. */
static int adopt_with(const int second[FD_STORE_MEMBER_FDS])
{
	return adopt_both((int[]){group.member[0].fd, -1, -1}, second);
}

/* A store comes from a client, which may have put any files there. */
static void a_store_with_other_files_is_refused(void **state)
{
	int fd, page, pipes[2], loose, lone, pair[2];

	begin_group();
	fd = group.member[1].fd;
	page = group.member[1].page_fd;
	loose = memfd_create("page", MFD_ALLOW_SEALING);
	lone = socket(AF_INET6, SOCK_DGRAM, 0);
	assert_int_equal(ftruncate(loose, SHARED_PAGE_BYTES), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(adopt_with((int[]){fd, page, -1}), 0);
	assert_int_equal(adopt_with((int[]){fd, -1, -1}), 0);
	assert_int_equal(adopt_with((int[]){pair[1], page, pair[0]}), 0);
	assert_int_equal(adopt_with((int[]){lone, page, -1}), -EPROTO);
	assert_int_equal(adopt_with((int[]){pipes[0], page, -1}), -EPROTO);
	/* a broker that opened the pipe by its number in /proc would wait until
	 * somebody writes there */
	assert_int_equal(adopt_with((int[]){fd, pipes[0], -1}), -EPROTO);
	assert_int_equal(adopt_with((int[]){fd, loose, -1}), -EPROTO);
	assert_int_equal(adopt_with((int[]){pair[1], page, lone}), -EPROTO);
	/* the broker receives by a socket of the port, not by a relay */
	assert_int_equal(
		adopt_both((int[]){pair[1], -1, -1}, (int[]){fd, page, -1}),
		-EPROTO);
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(pair[i]);
	}
	close(loose);
	close(lone);
	reuseport_group_close(&group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_with_other_files_is_refused),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
