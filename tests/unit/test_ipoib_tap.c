/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/ipoib_tap: the addresses that an interface of IPoIB announces.  Here lo
 * takes the place of the TAP device. */
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "own_network.h"
#include "tools/ipoib_tap.h"

/* Adds an address of IPv4 with this label to the interface. */
static void add_labelled(const char *label, const char *address)
{
	struct ifreq r = {0};
	struct sockaddr_in in = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", label);
	memcpy(&r.ifr_addr, &in, sizeof(in));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &r), 0);
	close(fd);
}

static bool has_address(const struct announce_address *all, uint32_t count,
			const char *address)
{
	uint8_t ip[4];

	assert_int_equal(inet_pton(AF_INET, address, ip), 1);
	for (uint32_t i = 0; i < count; i++)
		if (!all[i].is_v6 && !memcmp(all[i].ip, ip, sizeof(ip)))
			return true;
	return false;
}

/* An address may have a label (`ip address add ... label ib0:1`). */
static void addresses_with_a_label_are_announced(void **state)
{
	struct ipoib_tap lo = {.fd = -1, .name = "lo"},
			 other = {.fd = -1, .name = "l"};
	struct announce_address all[8];
	uint32_t count;

	if (!own_network_enter())
		SKIP_FOR("no network namespace can be made");
	add_labelled("lo", "127.0.0.1");
	add_labelled("lo:1", "10.9.0.3");
	count = ipoib_tap_addresses(&lo, all, TEST_COUNT(all));
	assert_true(has_address(all, count, "127.0.0.1"));
	assert_true(has_address(all, count, "10.9.0.3"));
	assert_int_equal(ipoib_tap_addresses(&other, all, TEST_COUNT(all)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_with_a_label_are_announced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
