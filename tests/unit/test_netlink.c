/* SPDX-License-Identifier: BSD-2-Clause */
/* device/netlink: a dump that the kernel ends early is an error. */
#include "device/netlink.h"
#include "test.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

/* the error code in the last message of each dump; 0: the kernel's own */
static int32_t result;

ssize_t __real_recv(int fd, void *bytes, size_t room, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t room, int flags);

ssize_t __wrap_recv(int fd, void *bytes, size_t room, int flags)
{
	ssize_t n = __real_recv(fd, bytes, room, flags);
	size_t left = n < 0 ? 0 : (size_t)n;

	for (struct nlmsghdr *m = bytes; NLMSG_OK(m, left);
	     m = NLMSG_NEXT(m, left))
		if (m->nlmsg_type == NLMSG_DONE && result)
			memcpy(NLMSG_DATA(m), &result, sizeof(result));
	return n;
}

static void a_complete_dump_has_the_loopback_interface(void **state)
{
	struct netdev_scene scene;

	result = 0;
	assert_int_equal(netlink_read(&scene, true), 0);
	assert_true(scene.link_count > 0);
	netlink_free(&scene);
}

static void a_dump_that_ends_early_is_an_error(void **state)
{
	struct netdev_scene scene;

	result = -ENOMEM;
	assert_int_equal(netlink_read(&scene, true), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_complete_dump_has_the_loopback_interface),
		cmocka_unit_test(a_dump_that_ends_early_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
