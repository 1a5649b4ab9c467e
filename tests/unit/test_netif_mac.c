/* SPDX-License-Identifier: BSD-2-Clause */
/* device/netif: the MAC of an address, and the devices that are left out, on a
 * machine whose interfaces the test describes. */
#include "said_by.h"

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

/* The result of netlink_read. */
static struct netdev_scene present = {links, addrs, TEST_COUNT(links),
				      TEST_COUNT(addrs)};

int __wrap_netlink_read(struct netdev_scene *scene, bool with_routes);
void __wrap_netlink_free(struct netdev_scene *scene);

int __wrap_netlink_read(struct netdev_scene *scene, bool with_routes)
{
	(void)with_routes;
	*scene = present;
	return 0;
}

void __wrap_netlink_free(struct netdev_scene *scene)
{
	(void)scene;
}

/* Makes the devices of a machine that has this many interfaces with default
 * routes.  Exits unless there are 8 devices. */
static void list_devices(uint32_t count)
{
	static struct netdev_link many[9];
	static struct netdev_addr their[9];
	const struct device *all;

	for (uint8_t i = 0; i < count; i++) {
		many[i] = (struct netdev_link){.ifindex = i + 2u,
					       .mtu = 1500,
					       .mac = {2, [5] = i},
					       .is_up = true,
					       .has_carrier = true,
					       .is_routed = true};
		snprintf(many[i].name, sizeof(many[i].name), "eth%u", i);
		their[i] = (struct netdev_addr){i + 2u, V4(i)};
	}
	present = (struct netdev_scene){many, their, count, count};
	unsetenv("ADVERB_DEVICES");
	if (device_list(&all) != 8)
		_exit(1);
}

static void list_eight(void)
{
	list_devices(8);
}

static void list_nine(void)
{
	list_devices(9);
}

static void interfaces_that_are_left_out_are_told(void **state)
{
	char text[1024];

	said_by(list_eight, text, sizeof(text));
	assert_string_equal(text, "");
	said_by(list_nine, text, sizeof(text));
	assert_non_null(strstr(text, "the interfaces after eth7 become none"));
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
	/* this process finds its devices only once, in the last test */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interfaces_that_are_left_out_are_told),
		cmocka_unit_test(an_address_has_the_mac_of_its_own_interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
