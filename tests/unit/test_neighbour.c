/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/neighbour: interfaces, routes and neighbours.  The tests need only the
 * loopback interface.  A test that adds an interface, an address or neighbours
 * does so in a new network namespace. */
#include "test.h"

#include "wire/neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t loop[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
/* a reserved address (RFC 5737), which no interface has outside find_labelled
 */
static const uint8_t nobody[16] = {[10] = 0xff, 0xff, 192, 0, 2, 77};

static bool is_refused; /* recv gets the kernel's refusal of the request */

ssize_t __real_recv(int fd, void *to, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags)
{
	const struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
	} m = {.head = {.nlmsg_len = sizeof(m), .nlmsg_type = NLMSG_ERROR},
	       .body = {.error = -EOPNOTSUPP}};

	if (!is_refused || bytes < sizeof(m))
		return __real_recv(fd, to, bytes, flags);
	memcpy(to, &m, sizeof(m));
	return sizeof(m);
}

static void an_interface_is_found_by_its_address(void **state)
{
	struct neighbour_interface i;
	uint32_t lo = if_nametoindex("lo");

	assert_int_equal(neighbour_own(loop, 0, &i), 0);
	assert_int_equal(i.ifindex, lo);
	assert_string_equal(i.name, "lo");
	assert_int_equal(neighbour_own(loop, lo, &i), 0);
	assert_int_equal(neighbour_own(loop, lo + 1, &i), -EADDRNOTAVAIL);
	assert_int_equal(neighbour_own(nobody, 0, &i), -EADDRNOTAVAIL);
}

static void a_route_without_a_gateway_has_the_address_as_its_hop(void **state)
{
	uint32_t lo = if_nametoindex("lo");
	uint8_t hop[16];

	assert_int_equal(neighbour_route(loop, lo, hop), 0);
	assert_memory_equal(hop, loop, 16);
	/* there is no interface with this number */
	assert_true(neighbour_route(nobody, 0x7ffffff0, hop) < 0);
}

/* A sandbox has no table of neighbours. */
static void a_refused_look_is_an_error(void **state)
{
	uint8_t mac[NEIGHBOUR_MAC_BYTES];
	int err;

	is_refused = true;
	err = neighbour_look(if_nametoindex("lo"), nobody, mac);
	is_refused = false;
	assert_int_equal(err, -EOPNOTSUPP);
}

static void packets_to_this_host_need_no_mac(void **state)
{
	struct neighbour_hop hop;

	assert_int_equal(neighbour_find_hop(loop, loop, 0, &hop),
			 -EADDRNOTAVAIL);
}

static void a_neighbour_that_nobody_has_asked_for_is_not_known(void **state)
{
	uint8_t mac[NEIGHBOUR_MAC_BYTES];

	assert_int_equal(neighbour_look(if_nametoindex("lo"), nobody, mac),
			 -ENOENT);
	assert_int_equal(neighbour_look(0x7ffffff0, nobody, mac), -ENODEV);
}

/* Adds an entry for fd00::x to the kernel's table, at lo.  Returns 0 or
 * -errno. */
static int add_entry(int fd, uint8_t x, const uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	struct {
		struct nlmsghdr head;
		struct ndmsg body;
		struct rtattr dst;
		uint8_t ip[16];
		struct rtattr link;
		uint8_t mac[8];
	} m = {
		.head = {.nlmsg_len = sizeof(m),
			 .nlmsg_type = RTM_NEWNEIGH,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
					NLM_F_CREATE | NLM_F_REPLACE},
		.body = {.ndm_family = AF_INET6,
			 .ndm_ifindex = (int)if_nametoindex("lo"),
			 .ndm_state = NUD_PERMANENT},
		.dst = {.rta_len = RTA_LENGTH(16), .rta_type = NDA_DST},
		.ip = {0xfd, [15] = x},
		.link = {.rta_len = RTA_LENGTH(NEIGHBOUR_MAC_BYTES),
			 .rta_type = NDA_LLADDR},
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
		uint8_t rest[256];
	} answer;

	memcpy(m.mac, mac, NEIGHBOUR_MAC_BYTES);
	if (send(fd, &m, sizeof(m), 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < 0)
		return -errno;
	return answer.body.error;
}

/* The table has so many entries that one receive does not get the kernel's
 * whole dump. */
static void search_many(void)
{
	enum { ENTRIES = 250 };
	uint8_t hop[16] = {0xfd};
	uint8_t mac[NEIGHBOUR_MAC_BYTES] = {2}, found[NEIGHBOUR_MAC_BYTES];
	uint32_t lo = if_nametoindex("lo");
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	for (uint8_t x = 1; x <= ENTRIES; x++) {
		mac[5] = x;
		assert_int_equal(add_entry(fd, x, mac), 0);
	}
	for (uint8_t x = 1; x <= ENTRIES; x++) {
		hop[15] = mac[5] = x;
		assert_int_equal(neighbour_search(lo, hop, found), 0);
		assert_memory_equal(found, mac, sizeof(mac));
		assert_int_equal(neighbour_look(lo, hop, found), 0);
		assert_memory_equal(found, mac, sizeof(mac));
	}
	hop[15] = ENTRIES + 1;
	assert_int_equal(neighbour_search(lo, hop, found), -ENOENT);
	hop[15] = 1;
	assert_int_equal(neighbour_search(lo + 1, hop, found), -ENOENT);
	close(fd);
}

static void give_address(int fd, const char *name, const uint8_t ip[4])
{
	struct ifreq r = {0};
	struct sockaddr_in *a = (struct sockaddr_in *)(void *)&r.ifr_addr;

	strncpy(r.ifr_name, name, IFNAMSIZ - 1);
	a->sin_family = AF_INET;
	memcpy(&a->sin_addr, ip, 4);
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &r), 0);
}

/* Gives lo a second address with the label lo:1, and looks for the interface
 * with that address. */
static void find_labelled(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct neighbour_interface i;

	give_address(fd, "lo:1", nobody + 12);
	close(fd);
	assert_int_equal(neighbour_own(nobody, 0, &i), 0);
	assert_int_equal(i.ifindex, if_nametoindex("lo"));
	assert_string_equal(i.name, "lo");
	assert_int_equal(neighbour_own(loop, 0, &i), 0);
}

/* Makes an interface that is up, and stores its index.  False: this process
 * cannot make a TAP device. */
static bool make_interface(int *index)
{
	struct ifreq tap = {.ifr_name = "tap0",
			    .ifr_flags = IFF_TAP | IFF_NO_PI};
	/* the interface stays until the process ends */
	int fd = open("/dev/net/tun", O_RDWR), udp;

	if (fd < 0 || ioctl(fd, TUNSETIFF, &tap))
		return false;
	udp = socket(AF_INET, SOCK_DGRAM, 0);
	tap.ifr_flags = IFF_UP;
	assert_int_equal(ioctl(udp, SIOCSIFFLAGS, &tap), 0);
	close(udp);
	*index = (int)if_nametoindex("tap0");
	return true;
}

/* Adds a route for `nobody` by a gateway of IPv6.  Returns 0 or -errno. */
static int add_route(int index, const uint8_t gateway[16])
{
	struct {
		struct nlmsghdr head;
		struct rtmsg body;
		struct rtattr dst;
		uint8_t to[4];
		struct rtattr oif;
		int index;
		struct rtattr via;
		uint16_t family;
		uint8_t hop[16];
	} m = {
		.head = {.nlmsg_len = offsetof(__typeof__(m), hop) + 16,
			 .nlmsg_type = RTM_NEWROUTE,
			 .nlmsg_flags =
				 NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
		.body = {.rtm_family = AF_INET,
			 .rtm_dst_len = 32,
			 .rtm_table = RT_TABLE_MAIN,
			 .rtm_protocol = RTPROT_STATIC,
			 .rtm_type = RTN_UNICAST},
		.dst = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_DST},
		.oif = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_OIF},
		.index = index,
		.via = {.rta_len = RTA_LENGTH(18), .rta_type = RTA_VIA},
		.family = AF_INET6,
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
		uint8_t rest[256];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	memcpy(m.to, nobody + 12, 4);
	memcpy(m.hop, gateway, 16);
	assert_int_equal(send(fd, &m, m.head.nlmsg_len, 0), m.head.nlmsg_len);
	assert_true(recv(fd, &answer, sizeof(answer), 0) > 0);
	close(fd);
	return answer.body.error;
}

/* A route of IPv4 whose gateway has an address of IPv6 (RTA_VIA). */
static void route_over_ipv6(void)
{
	const uint8_t gateway[16] = {0xfe, 0x80, [15] = 9};
	const uint8_t own[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
	uint8_t hop[16];
	struct neighbour_hop next;
	struct ifreq tap = {0};
	int index, err, fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (!make_interface(&index))
		_exit(77);
	give_address(fd, "tap0", own + 12);
	err = add_route(index, gateway);
	/* a kernel before Linux 5.2, or without IPv6 */
	if (err == -EINVAL || err == -EAFNOSUPPORT)
		_exit(77);
	assert_int_equal(err, 0);
	assert_int_equal(neighbour_route(nobody, (uint32_t)index, hop), 0);
	assert_memory_equal(hop, gateway, 16);
	assert_int_equal(neighbour_find_hop(nobody, own, 0, &next), 0);
	assert_int_equal(next.ifindex, index);
	assert_memory_equal(next.ip, gateway, 16);
	/* an interface without ARP */
	strcpy(tap.ifr_name, "tap0");
	tap.ifr_flags = IFF_UP | IFF_NOARP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &tap), 0);
	close(fd);
	assert_int_equal(neighbour_find_hop(nobody, own, 0, &next),
			 -EADDRNOTAVAIL);
}

static void enter_namespace(void)
{
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		_exit(77);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &up), 0);
	close(fd);
}

/* Calls `work` in a child, in a new network namespace.  Skips the test if no
 * namespace can be made, or if `work` exits with 77. */
static void run_apart(void (*work)(void))
{
	pid_t parent = getpid(), child = fork();
	int status = -1;

	if (!child) {
		test_begin_child(parent);
		enter_namespace();
		work();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP_FOR("no network namespace can be made, or it has not what "
			 "the test needs");
	assert_int_equal(status, 0);
}

static void a_search_finds_what_a_look_finds(void **state)
{
	run_apart(search_many);
}

static void an_address_with_a_label_is_that_of_its_interface(void **state)
{
	run_apart(find_labelled);
}

static void a_route_of_ipv4_may_have_a_gateway_of_ipv6(void **state)
{
	run_apart(route_over_ipv6);
}

static void watching_does_not_block(void **state)
{
	int fd = neighbour_watch();

	assert_true(fd >= 0);
	neighbour_ask(if_nametoindex("lo"), loop);
	neighbour_drain(fd);
	close(fd);
}

static void a_watch_can_be_woken(void **state)
{
	struct pollfd p = {.fd = neighbour_watch(), .events = POLLIN};

	neighbour_wake(p.fd);
	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	neighbour_drain(p.fd);
	close(p.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interface_is_found_by_its_address),
		cmocka_unit_test(
			a_route_without_a_gateway_has_the_address_as_its_hop),
		cmocka_unit_test(a_refused_look_is_an_error),
		cmocka_unit_test(packets_to_this_host_need_no_mac),
		cmocka_unit_test(
			a_neighbour_that_nobody_has_asked_for_is_not_known),
		cmocka_unit_test(a_search_finds_what_a_look_finds),
		cmocka_unit_test(
			an_address_with_a_label_is_that_of_its_interface),
		cmocka_unit_test(a_route_of_ipv4_may_have_a_gateway_of_ipv6),
		cmocka_unit_test(watching_does_not_block),
		cmocka_unit_test(a_watch_can_be_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
