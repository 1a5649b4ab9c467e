/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/member: a socket leaves its groups. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/member.h"

/* So many groups that the kernel lists them in several parts. */
enum { GROUPS = 200 };

static void group_of(uint8_t ip[16], int number)
{
	assert_int_equal(inet_pton(AF_INET6, "ff15::ad:0", ip), 1);
	ip[15] = (uint8_t)number;
}

/* Returns 0 or -errno; -EADDRNOTAVAIL: the socket is not in the group. */
static int drop_group(int fd, const uint8_t ip[16], uint32_t ifindex)
{
	struct ipv6_mreq m = {.ipv6mr_interface = ifindex};

	memcpy(&m.ipv6mr_multiaddr, ip, 16);
	return setsockopt(fd, IPPROTO_IPV6, IPV6_DROP_MEMBERSHIP, &m, sizeof(m))
		       ? -errno
		       : 0;
}

static void a_socket_leaves_each_of_many_groups(void **state)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t lo = if_nametoindex("lo");
	uint8_t ip[16];
	int i, err = 0;

	if (fd < 0)
		SKIP_FOR("the kernel has no IPv6");
	for (i = 0; i < GROUPS && !err; i++) {
		group_of(ip, i);
		err = member_join(fd, ip, lo);
	}
	if (err && i == 1) {
		close(fd);
		SKIP_FOR("lo has no IPv6");
	}
	assert_int_equal(err, 0);
	member_leave_all(fd);
	for (i = 0; i < GROUPS; i++) {
		group_of(ip, i);
		assert_int_equal(drop_group(fd, ip, lo), -EADDRNOTAVAIL);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_socket_leaves_each_of_many_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
