/* SPDX-License-Identifier: BSD-2-Clause */
/* device/netif: the MAC of an address, on a machine whose interfaces the test
 * describes. */
#include "test.h"

#include <string.h>

#include "device/netif.h"
#include "device/netlink.h"

enum { LO = 1, ETH0, ETH1 };

static struct netdev_link links[] = {
	{LO, 65536, "lo", {0}, true, true, true, false, false, false},
	{ETH0, 1500, "eth0", {2, 0, 0, 0, 0, 1}, true, true},
	{ETH1, 1500, "eth1", {2, 0, 0, 0, 0, 2}, true, true},
};

#define V4(last)                                                               \
	{                                                                      \
		[10] = 0xff, 0xff, 10, 0, 0, last                              \
	}

static struct netdev_addr addrs[] = {
	{LO, {[10] = 0xff, 0xff, 127, 0, 0, 1}},
	{ETH0, V4(1)},
	{ETH1, V4(2)},
};

int __wrap_netlink_read(struct netdev_scene *scene, bool with_routes);
void __wrap_netlink_free(struct netdev_scene *scene);

int __wrap_netlink_read(struct netdev_scene *scene, bool with_routes)
{
	(void)with_routes;
	*scene = (struct netdev_scene){links, addrs, TEST_COUNT(links),
				       TEST_COUNT(addrs)};
	return 0;
}

void __wrap_netlink_free(struct netdev_scene *scene)
{
	(void)scene;
}

/* The RoCE device of lo has the addresses of eth0 and eth1 in its GID table,
 * too. */
static void an_address_has_the_mac_of_its_own_interface(void **state)
{
	static const uint8_t iwarp[16] = V4(1), none[16] = V4(2);
	static const uint8_t unknown[16] = V4(3), zeros[6];
	const struct device *all;
	uint8_t mac[6];

	(void)state;
	setenv("ADVERB_DEVICES", "lo,iwarp:eth0", 1);
	assert_int_equal(device_list(&all), 2);
	assert_int_equal(all[1].kind, DEVICE_IWARP);
	assert_true(netif_has_address(&all[0], iwarp));
	netif_mac(iwarp, mac);
	assert_memory_equal(mac, links[1].mac, 6);
	netif_mac(none, mac);
	assert_memory_equal(mac, zeros, 6);
	netif_mac(unknown, mac);
	assert_memory_equal(mac, zeros, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_has_the_mac_of_its_own_interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
