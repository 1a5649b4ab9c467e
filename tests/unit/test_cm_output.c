/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/cm_output: messages that wait for a client survive a lack of memory.
 */
#include "test.h"

#include <errno.h>
#include <sys/socket.h>

#include "broker/cm_output.h"

/* The errno with which sendmmsg fails; 0: the kernel executes the call. */
static int refused;

int __real_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	if (!refused)
		return __real_sendmmsg(fd, m, n, flags);
	errno = refused;
	return -1;
}

static void a_lack_of_memory_loses_no_message(void **state)
{
	static const int passing[] = {EAGAIN, EINTR, ENOBUFS, ENOMEM};
	struct user_share share = {0};
	const struct cmproto m = {.kind = CMPROTO_EVENT};
	struct cm_output o;
	struct cmproto got;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	cm_output_init(&o, ends[0], &share);
	assert_true(cm_output_push(&o, &m));
	for (size_t i = 0; i < TEST_COUNT(passing); i++) {
		refused = passing[i];
		assert_true(cm_output_send(&o));
		assert_int_equal(o.waiting, 1);
		assert_int_equal(o.lacks_memory,
				 passing[i] == ENOBUFS || passing[i] == ENOMEM);
	}
	refused = EPIPE;
	assert_false(cm_output_send(&o));
	refused = 0;
	assert_true(cm_output_send(&o));
	assert_int_equal(o.waiting, 0);
	assert_false(o.lacks_memory);
	assert_int_equal(recv(ends[1], &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(got.kind, CMPROTO_EVENT);
	cm_output_fini(&o);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lack_of_memory_loses_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
