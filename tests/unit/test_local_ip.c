/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/local_ip: which addresses are local in a network namespace that the test
 * makes. */
#include "test.h"

#include "wire/local_ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool refuses_rtnetlink;

/* Replaces the function of libc.  With refuses_rtnetlink, acts like a sandbox
 * without rtnetlink. */
int socket(int domain, int type, int protocol)
{
	if (refuses_rtnetlink && domain == AF_NETLINK) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

static bool is_local(const char *text, uint32_t scope)
{
	uint8_t ip[16] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET6, text, ip) != 1)
		assert_int_equal(inet_pton(AF_INET, text, ip + 12), 1);
	return local_ip_is(ip, scope);
}

static int begin_refusal(void **state)
{
	refuses_rtnetlink = true;
	return 0;
}

static int end_refusal(void **state)
{
	refuses_rtnetlink = false;
	return 0;
}

static void add_link_local(void)
{
	struct {
		uint8_t ip[16];
		uint32_t prefix;
		int ifindex;
	} request = {.ip = {0xfe, 0x80, [15] = 0xaa},
		     .prefix = 128,
		     .ifindex = (int)if_nametoindex("lo")};
	struct sockaddr_in6 name = {.sin6_family = AF_INET6,
				    .sin6_scope_id = if_nametoindex("lo")};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	memcpy(&name.sin6_addr, request.ip, 16);
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &request), 0);
	/* a thread of the kernel makes the address usable */
	while (bind(fd, (struct sockaddr *)&name, sizeof(name))) {
		assert_int_equal(errno, EADDRNOTAVAIL);
		usleep(1000);
	}
	close(fd);
}

static int setup_loopback(void **state)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	struct ifreq second = {.ifr_name = "lo:1"};
	struct sockaddr_in ip = {.sin_family = AF_INET};
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		printf("skipped: no network namespace of our own\n");
		_exit(77);
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	inet_pton(AF_INET, "10.1.2.3", &ip.sin_addr);
	memcpy(&second.ifr_addr, &ip, sizeof(ip));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &second), 0);
	/* with the default netmask all of 10.0.0.0/8 would be local */
	ip.sin_addr.s_addr = INADDR_BROADCAST;
	memcpy(&second.ifr_netmask, &ip, sizeof(ip));
	assert_int_equal(ioctl(fd, SIOCSIFNETMASK, &second), 0);
	close(fd);
	add_link_local();
	return 0;
}

static void an_address_of_an_interface_is_local(void **state)
{
	assert_true(is_local("127.0.0.1", 0));
	assert_true(is_local("127.1.2.3", 0));
	assert_true(is_local("::1", 0));
	assert_true(is_local("10.1.2.3", 0));
	assert_true(is_local("10.1.2.3", if_nametoindex("lo")));
}

static void an_address_of_no_interface_is_not_local(void **state)
{
	assert_false(is_local("10.1.2.4", 0));
	assert_false(is_local("192.0.2.1", 0));
	assert_false(is_local("fd01::1", 0));
	assert_false(is_local("fe80::1", if_nametoindex("lo")));
}

static void check_link_local(void)
{
	uint32_t lo = if_nametoindex("lo");

	assert_true(is_local("fe80::aa", 0));
	assert_true(is_local("fe80::aa", lo));
	assert_false(is_local("fe80::ab", 0));
	assert_false(is_local("fe80::ab", lo));
}

static void a_link_local_address_is_found_at_any_interface(void **state)
{
	check_link_local();
}

static void without_rtnetlink_the_answers_are_the_same(void **state)
{
	check_link_local();
	assert_true(is_local("10.1.2.3", 0));
	assert_true(is_local("::1", 0));
	assert_false(is_local("10.1.2.4", 0));
	assert_false(is_local("fd01::1", 0));
}

/* With ip_nonlocal_bind a program may bind any address, but the packets to that
 * address go to another host. */
static void an_address_that_can_merely_be_bound_is_not_local(void **state)
{
	int fd = open("/proc/sys/net/ipv4/ip_nonlocal_bind", O_WRONLY);

	if (fd < 0 || write(fd, "1", 1) != 1)
		SKIP_FOR("this user may not set ip_nonlocal_bind");
	close(fd);
	assert_false(is_local("192.0.2.1", 0));
	assert_true(is_local("10.1.2.3", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_of_an_interface_is_local),
		cmocka_unit_test(an_address_of_no_interface_is_not_local),
		cmocka_unit_test(
			a_link_local_address_is_found_at_any_interface),
		cmocka_unit_test_setup_teardown(
			without_rtnetlink_the_answers_are_the_same,
			begin_refusal, end_refusal),
		cmocka_unit_test(
			an_address_that_can_merely_be_bound_is_not_local),
	};

	return cmocka_run_group_tests(tests, setup_loopback, NULL);
}
