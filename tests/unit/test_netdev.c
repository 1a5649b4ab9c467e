/* SPDX-License-Identifier: BSD-2-Clause */
/* device/netdev: the interfaces that become devices, and the entries of the
 * devices' GID tables. */
#include "test.h"

#include <arpa/inet.h>

#include "device/netdev.h"

/* more interfaces and addresses than there are devices and GIDs */
#define MOST 80

static struct netdev_link links[MOST];
static struct netdev_addr addrs[MOST];
static struct netdev_scene scene;
static struct device devices[DEVICE_MAX];
static uint32_t changes[DEVICE_MAX];

static int clear_scene(void **state)
{
	memset(links, 0, sizeof(links));
	scene = (struct netdev_scene){links, addrs, 0, 0};
	return 0;
}

static struct netdev_link *add_link(const char *name)
{
	struct netdev_link *l = &links[scene.link_count++];

	l->ifindex = scene.link_count;
	snprintf(l->name, sizeof(l->name), "%s", name);
	l->mtu = 1500;
	l->mac[5] = (uint8_t)l->ifindex;
	l->is_up = l->has_carrier = true;
	l->is_loopback = strcmp(name, "lo") == 0;
	return l;
}

static void to_ip(const char *text, uint8_t ip[16])
{
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s",
		 strchr(text, '.') ? "::ffff:" : "", text);
	assert_int_equal(inet_pton(AF_INET6, mapped, ip), 1);
}

static void add_address(const struct netdev_link *l, const char *text)
{
	struct netdev_addr *a = &addrs[scene.addr_count++];

	a->ifindex = l->ifindex;
	to_ip(text, a->ip);
}

static void drop_address(const char *text)
{
	uint8_t ip[16];
	uint32_t i = 0;

	to_ip(text, ip);
	while (memcmp(addrs[i].ip, ip, 16) != 0)
		assert_true(++i < scene.addr_count);
	scene.addr_count--;
	memmove(&addrs[i], &addrs[i + 1],
		(scene.addr_count - i) * sizeof(*addrs));
}

static struct netdev_link *add_lo(void)
{
	struct netdev_link *lo = add_link("lo");

	lo->mtu = 65536;
	memset(lo->mac, 0, 6);
	add_address(lo, "127.0.0.1");
	add_address(lo, "::1");
	return lo;
}

static uint32_t choose_devices(const char *named)
{
	return netdev_choose(&scene, named, devices);
}

static void the_first_token_that_became_no_device_is_found(void **state)
{
	static const struct {
		const char *named, *missing;
		int len;
	} rows[] = {{"lo", NULL, 0},
		    {"", NULL, 0},
		    {",lo,,", NULL, 0},
		    {"lo,lo", NULL, 0},
		    {"lo,l,x", "l,x", 1},
		    {"loo", "loo", 3},
		    {"lo lo", "lo lo", 5},
		    {"roce,iwarp,lo,iwarp:lo,iwarp:lo", NULL, 0},
		    {"lo,iwarp:l,x", "iwarp:l,x", 7},
		    {"iwarp:,lo", "iwarp:,lo", 6},
		    {"lo,iwarp:loo", "iwarp:loo", 9},
		    {"lo,roce:lo", "roce:lo", 7},
		    {"lo,iwar:lo", "iwar:lo", 7},
		    {"lo,roc", "roc", 3}};

	add_lo();
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		int len = 0;
		uint32_t count = choose_devices(rows[i].named);
		const char *name = netdev_missing(&scene, rows[i].named,
						  devices, count, &len);

		if (!*rows[i].named || !rows[i].missing) {
			assert_null(name);
			continue;
		}
		assert_string_equal(name, rows[i].missing);
		assert_int_equal(len, rows[i].len);
	}
}

static void update_devices(uint32_t count)
{
	netdev_update(&scene, devices, count, changes);
}

/* Checks that the device's GID table has the GID of address @text and this type
 * at @index; text NULL: that the entry is empty. */
static void expect_gid(int device, int index, const char *text, uint32_t type)
{
	const struct device_gid *g = &devices[device].ports[0].gids[index];
	char seen[64], want[64];
	uint8_t ip[16];

	if (!text) {
		assert_int_equal(g->ifindex, 0);
		return;
	}
	to_ip(text, ip);
	inet_ntop(AF_INET6, ip, want, sizeof(want));
	inet_ntop(AF_INET6, g->gid, seen, sizeof(seen));
	assert_string_equal(seen, want);
	assert_int_equal(g->type, type);
}

#define V1 DEVICE_GID_ROCE_V1
#define V2 DEVICE_GID_ROCE_V2

static void a_machine_with_nothing_but_lo_has_one_device(void **state)
{
	add_lo();
	assert_int_equal(choose_devices(NULL), 1);
	assert_string_equal(devices[0].name, "adv0");
	assert_string_equal(devices[0].netdev, "lo");
	assert_true(devices[0].guid);
	assert_int_equal(devices[0].ports[0].active_mtu, 5);
	expect_gid(0, 0, "fe80::200:ff:fe00:1", V1);
	expect_gid(0, 1, "127.0.0.1", V2);
	expect_gid(0, 2, "127.0.0.1", V1);
	expect_gid(0, 3, "127.0.0.1", V2);
	expect_gid(0, 4, "::1", V2);
	expect_gid(0, 5, NULL, 0);
}

static void a_loopback_that_is_down_is_a_device_that_is_down(void **state)
{
	add_lo()->is_up = false;
	assert_int_equal(choose_devices(NULL), 1);
	assert_false(devices[0].ports[0].is_up);
}

static void the_default_route_decides_then_a_global_address(void **state)
{
	struct netdev_link *a, *b;

	add_lo();
	a = add_link("eth0");
	b = add_link("eth1");
	add_link("eth2");
	add_address(a, "10.0.0.1");
	add_address(b, "fd00::1");
	add_address(&links[3], "fe80::5");
	assert_int_equal(choose_devices(NULL), 2);
	assert_string_equal(devices[0].netdev, "eth0");
	assert_string_equal(devices[1].netdev, "eth1");
	b->is_routed = true;
	assert_int_equal(choose_devices(NULL), 1);
	assert_string_equal(devices[0].netdev, "eth1");
	b->is_up = false;
	assert_int_equal(choose_devices(NULL), 1);
	assert_string_equal(devices[0].netdev, "eth0");
}

static void bridges_come_after_others_and_their_ports_never(void **state)
{
	struct netdev_link *bridge, *port, *eth;

	add_lo();
	bridge = add_link("virbr");
	port = add_link("veth1");
	eth = add_link("eth0");
	bridge->is_bridge = port->is_port = true;
	port->is_routed = true;
	add_address(bridge, "172.17.0.1");
	add_address(port, "172.17.0.2");
	/* a bridge without carrier does not come before lo */
	bridge->has_carrier = false;
	assert_int_equal(choose_devices(NULL), 1);
	assert_string_equal(devices[0].netdev, "lo");
	expect_gid(0, 5, "172.17.0.1", V2);
	bridge->has_carrier = true;
	assert_int_equal(choose_devices(NULL), 1);
	assert_string_equal(devices[0].netdev, "virbr");
	add_address(eth, "10.0.0.1");
	assert_int_equal(choose_devices(NULL), 1);
	assert_string_equal(devices[0].netdev, "eth0");
	/* an interface with the default route comes before one with an address
	 */
	bridge->is_routed = true;
	assert_int_equal(choose_devices(NULL), 1);
	assert_string_equal(devices[0].netdev, "virbr");
	eth->is_routed = true;
	assert_int_equal(choose_devices(NULL), 1);
	assert_string_equal(devices[0].netdev, "eth0");
	bridge->is_port = true;
	eth->is_up = false;
	assert_int_equal(choose_devices(NULL), 1);
	assert_string_equal(devices[0].netdev, "lo");
	assert_int_equal(choose_devices("virbr"), 1);
	assert_string_equal(devices[0].netdev, "virbr");
}

static void named_interfaces_come_in_the_order_of_the_list(void **state)
{
	add_lo();
	add_link("eth0");
	add_link("eth0.100")->is_up = false;
	assert_int_equal(choose_devices("eth0.100,lo,eth0,lo,nothing,"), 3);
	assert_string_equal(devices[0].netdev, "eth0.100");
	assert_string_equal(devices[1].netdev, "lo");
	assert_string_equal(devices[2].netdev, "eth0");
	assert_string_equal(devices[2].name, "adv2");
	assert_int_equal(choose_devices("eth"), 0);
	assert_int_equal(choose_devices(""), 0);
}

/* Checks the names, kinds and interfaces of the devices that a list makes, as
 * "adv0 RoCE eth0".  NULL ends `want`. */
static void expect_devices(const char *named, const char *const *want)
{
	uint32_t count = choose_devices(named);
	char text[sizeof(devices->name) + sizeof(devices->netdev) + 8];

	for (uint32_t i = 0; i < count; i++, want++) {
		const struct device *d = &devices[i];

		snprintf(text, sizeof(text), "%.19s %s %.15s", d->name,
			 d->kind == DEVICE_IWARP ? "iWARP" : "RoCE", d->netdev);
		assert_non_null(*want);
		assert_string_equal(text, *want);
	}
	assert_null(*want);
}

#define EXPECT_DEVICES(named, ...)                                             \
	expect_devices(named, (const char *const[]){__VA_ARGS__, NULL})

static void each_kind_counts_its_own_devices(void **state)
{
	add_lo();
	add_link("eth0")->is_routed = true;
	EXPECT_DEVICES(NULL, "adv0 RoCE eth0");
	EXPECT_DEVICES("iwarp", "iw0 iWARP eth0");
	EXPECT_DEVICES("roce", "adv0 RoCE eth0");
	EXPECT_DEVICES("roce,iwarp", "adv0 RoCE eth0", "iw0 iWARP eth0");
	EXPECT_DEVICES("iwarp,roce", "iw0 iWARP eth0", "adv0 RoCE eth0");
	EXPECT_DEVICES("iwarp:lo,lo,iwarp,eth0", "iw0 iWARP lo", "adv0 RoCE lo",
		       "iw1 iWARP eth0", "adv1 RoCE eth0");
	EXPECT_DEVICES("iwarp:eth0,iwarp,eth0,roce", "iw0 iWARP eth0",
		       "adv0 RoCE eth0");
	assert_int_equal(
		choose_devices("iwarp:eth,iwarp:,iwarp:eth00,roce:eth0"), 0);
	assert_int_equal(choose_devices("iwar,rocee,iwarp:roce,IWARP"), 0);
	assert_true(devices[0].guid);
}

static void a_kind_alone_takes_the_preferred_interfaces(void **state)
{
	struct netdev_link *a, *b;

	add_lo();
	EXPECT_DEVICES("iwarp,roce", "iw0 iWARP lo", "adv0 RoCE lo");
	a = add_link("eth0");
	b = add_link("eth1");
	add_address(a, "10.0.0.1");
	add_address(b, "10.1.0.1");
	EXPECT_DEVICES("iwarp", "iw0 iWARP eth0", "iw1 iWARP eth1");
	b->is_routed = true;
	EXPECT_DEVICES("eth0,iwarp", "adv0 RoCE eth0", "iw0 iWARP eth1");
}

static void an_interface_may_have_the_name_of_a_kind(void **state)
{
	add_lo();
	add_link("iwarp");
	EXPECT_DEVICES("iwarp", "adv0 RoCE iwarp");
	EXPECT_DEVICES("iwarp:iwarp", "iw0 iWARP iwarp");
	EXPECT_DEVICES("roce", "adv0 RoCE lo");
	add_link("roce");
	EXPECT_DEVICES("roce,iwarp:lo", "adv0 RoCE roce", "iw0 iWARP lo");
}

static void a_kind_without_room_for_all_is_missing(void **state)
{
	int len = 0;

	for (int i = 0; i < DEVICE_MAX; i++) {
		struct netdev_link *l = add_link("eth");

		l->name[3] = (char)('0' + i);
		l->is_routed = true;
	}
	assert_int_equal(choose_devices("iwarp"), DEVICE_MAX);
	assert_null(netdev_missing(&scene, "iwarp", devices, DEVICE_MAX, &len));
	assert_int_equal(choose_devices("eth0,iwarp"), DEVICE_MAX);
	assert_string_equal(devices[DEVICE_MAX - 1].name, "iw6");
	assert_string_equal(
		netdev_missing(&scene, "eth0,iwarp", devices, DEVICE_MAX, &len),
		"iwarp");
	/* netdev_fits shows that a missing device is due to the limit, and not
	 * to a wrong name */
	assert_true(netdev_fits(&scene, "iwarp", 5));
	assert_true(netdev_fits(&scene, "iwarp:eth1,eth2", 10));
	assert_false(netdev_fits(&scene, "eht0,iwarp", 4));
	assert_false(netdev_fits(&scene, "iwarp:eht0", 10));
}

static void the_devices_of_one_interface_have_their_own_tables(void **state)
{
	struct netdev_link *eth;

	add_lo();
	eth = add_link("eth0");
	eth->mac[0] = 2;
	add_address(eth, "10.0.0.1");
	EXPECT_DEVICES("eth0,iwarp:lo,iwarp:eth0,iwarp", "adv0 RoCE eth0",
		       "iw0 iWARP lo", "iw1 iWARP eth0");
	expect_gid(0, 1, "10.0.0.1", V2);
	expect_gid(0, 4, "127.0.0.1", V2);
	/* the first device of a kind also has the addresses of interfaces that
	 * are no devices of this kind */
	expect_gid(1, 0, NULL, 0);
	expect_gid(1, 1, "127.0.0.1", V2);
	expect_gid(1, 4, "::1", V2);
	expect_gid(1, 5, NULL, 0);
	expect_gid(2, 1, "10.0.0.1", V2);
	expect_gid(2, 4, NULL, 0);
	assert_int_equal(choose_devices("eth0,iwarp:eth0"), 2);
	expect_gid(1, 4, "127.0.0.1", V2);
	assert_int_not_equal(devices[0].guid, devices[1].guid);
	drop_address("10.0.0.1");
	update_devices(2);
	assert_int_equal(changes[0], NETDEV_GIDS);
	assert_int_equal(changes[1], NETDEV_GIDS);
	expect_gid(1, 1, NULL, 0);
	expect_gid(1, 4, "127.0.0.1", V2);
}

static void programs_see_one_gid_of_an_iwarp_device(void **state)
{
	static const uint8_t mac[16] = {2, 0, 0, 0, 0, 2}, lo[16] = {[5] = 1};
	struct netdev_link *eth;
	struct device_gid g;

	add_lo();
	eth = add_link("eth0");
	eth->mac[0] = 2;
	add_address(eth, "10.0.0.1");
	assert_int_equal(choose_devices("iwarp:eth0,iwarp:lo,eth0"), 3);
	assert_int_equal(netdev_gid_count(&devices[0]), 1);
	assert_true(netdev_gid(&devices[0], &devices[0].ports[0], 0, &g));
	assert_memory_equal(g.gid, mac, 16);
	assert_int_equal(g.ifindex, eth->ifindex);
	assert_int_equal(g.type, V1);
	assert_false(netdev_gid(&devices[0], &devices[0].ports[0], 1, &g));
	assert_int_equal(g.ifindex, 0);
	assert_true(netdev_gid(&devices[1], &devices[1].ports[0], 0, &g));
	assert_memory_equal(g.gid, lo, 16);
	assert_int_equal(netdev_gid_count(&devices[2]), DEVICE_MAX_GIDS);
	assert_true(netdev_gid(&devices[2], &devices[2].ports[0], 3, &g));
	assert_int_equal(g.type, V2);
	assert_false(netdev_gid(&devices[2], &devices[2].ports[0], 9, &g));
	assert_false(netdev_gid(&devices[2], &devices[2].ports[0],
				DEVICE_MAX_GIDS, &g));
}

static void the_mtu_of_an_iwarp_device_needs_no_room_for_headers(void **state)
{
	static const struct {
		uint32_t mtu, code;
	} rows[] = {{68, 1},   {511, 1},  {512, 2},  {1500, 3}, {2047, 3},
		    {2048, 4}, {4095, 4}, {4096, 5}, {9000, 5}, {65536, 5}};
	struct netdev_link *lo = add_lo();

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		lo->mtu = rows[i].mtu;
		assert_int_equal(choose_devices("iwarp:lo"), 1);
		assert_int_equal(devices[0].ports[0].active_mtu, rows[i].code);
	}
}

static void interfaces_without_a_mac_have_guids_of_their_own(void **state)
{
	static const uint32_t index[] = {5, 261, 0x10005, 0x1000005};
	uint32_t n = TEST_COUNT(index);

	for (uint32_t i = 0; i < n; i++) {
		struct netdev_link *l = add_link(i ? "more" : "tun");

		l->ifindex = index[i];
		l->is_routed = true;
		memset(l->mac, 0, 6);
	}
	assert_int_equal(choose_devices(NULL), n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_true(devices[i].guid != devices[k].guid);
}

static void each_kind_of_address_has_its_index(void **state)
{
	struct netdev_link *eth, *dummy, *lo = add_lo();

	eth = add_link("eth0");
	dummy = add_link("dummy0");
	eth->is_routed = true;
	add_address(eth, "fd00::1");
	add_address(eth, "fe80::1");
	add_address(eth, "10.0.0.1");
	add_address(eth, "10.0.0.2");
	add_address(lo, "127.0.0.9");
	add_address(dummy, "192.168.0.1");
	add_address(dummy, "fe80::7");
	assert_int_equal(choose_devices(NULL), 1);
	expect_gid(0, 0, "fe80::1", V2);
	expect_gid(0, 1, "10.0.0.1", V2);
	expect_gid(0, 2, "10.0.0.1", V1);
	expect_gid(0, 3, "10.0.0.1", V2);
	expect_gid(0, 4, "fd00::1", V2);
	expect_gid(0, 5, "10.0.0.2", V2);
	expect_gid(0, 6, "192.168.0.1", V2);
	expect_gid(0, 7, "127.0.0.1", V2);
	expect_gid(0, 8, "::1", V2);
	expect_gid(0, 9, "127.0.0.9", V2);
	expect_gid(0, 10, NULL, 0);
	expect_gid(0, DEVICE_MAX_GIDS - 1, "10.0.0.1", V2);
}

static void
without_ipv4_the_first_global_address_stands_at_1_and_3(void **state)
{
	struct netdev_link *eth;

	add_lo();
	eth = add_link("eth0");
	add_address(eth, "fe80::1");
	add_address(eth, "fd00::1");
	add_address(eth, "fd00::2");
	assert_int_equal(choose_devices(NULL), 1);
	expect_gid(0, 1, "fd00::1", V2);
	expect_gid(0, 2, "fd00::1", V1);
	expect_gid(0, 3, "fd00::1", V2);
	expect_gid(0, 4, "fd00::2", V2);
	expect_gid(0, 5, "127.0.0.1", V2);
}

static void two_devices_share_no_address(void **state)
{
	struct netdev_link *a, *b;

	add_lo();
	a = add_link("eth0");
	b = add_link("eth1");
	add_address(a, "10.0.0.1");
	add_address(b, "10.1.0.1");
	assert_int_equal(choose_devices(NULL), 2);
	expect_gid(0, 1, "10.0.0.1", V2);
	expect_gid(0, 4, "127.0.0.1", V2);
	expect_gid(0, 6, NULL, 0);
	expect_gid(1, 1, "10.1.0.1", V2);
	expect_gid(1, 4, NULL, 0);
}

static void an_entry_stays_where_it_is_while_others_come_and_go(void **state)
{
	struct netdev_link *eth;

	add_lo();
	eth = add_link("eth0");
	add_address(eth, "10.0.0.1");
	add_address(eth, "10.0.0.2");
	add_address(eth, "10.0.0.3");
	assert_int_equal(choose_devices(NULL), 1);
	update_devices(1);
	assert_int_equal(changes[0], 0);
	drop_address("10.0.0.2");
	update_devices(1);
	assert_int_equal(changes[0], NETDEV_GIDS);
	expect_gid(0, 4, NULL, 0);
	expect_gid(0, 5, "10.0.0.3", V2);
	expect_gid(0, 6, "127.0.0.1", V2);
	add_address(eth, "fd00::1");
	add_address(eth, "fd00::2");
	update_devices(1);
	expect_gid(0, 4, "fd00::1", V2);
	expect_gid(0, 6, "127.0.0.1", V2);
	expect_gid(0, 8, "fd00::2", V2);
}

static void gid_1_changes_only_for_ipv4_or_a_lost_address(void **state)
{
	struct netdev_link *eth;

	add_lo();
	eth = add_link("eth0");
	add_address(eth, "fd00::1");
	assert_int_equal(choose_devices(NULL), 1);
	add_address(eth, "10.0.0.1");
	add_address(eth, "10.0.0.2");
	update_devices(1);
	expect_gid(0, 1, "10.0.0.1", V2);
	expect_gid(0, 6, "fd00::1", V2);
	expect_gid(0, 7, "10.0.0.2", V2);
	addrs[3] = addrs[4]; /* the order of the addresses does not matter */
	scene.addr_count--;
	add_address(eth, "10.0.0.1");
	update_devices(1);
	expect_gid(0, 1, "10.0.0.1", V2);
	drop_address("10.0.0.1");
	update_devices(1);
	expect_gid(0, 1, "10.0.0.2", V2);
	expect_gid(0, 3, "10.0.0.2", V2);
	expect_gid(0, 6, "fd00::1", V2);
	expect_gid(0, 7, NULL, 0);
	drop_address("10.0.0.2");
	update_devices(1);
	expect_gid(0, 1, "fd00::1", V2);
	drop_address("fd00::1");
	update_devices(1);
	expect_gid(0, 1, NULL, 0);
	expect_gid(0, 3, NULL, 0);
	expect_gid(0, 4, "127.0.0.1", V2);
	add_address(eth, "fe80::9");
	update_devices(1);
	expect_gid(0, 0, "fe80::9", V2);
}

static void links_go_down_and_up_and_away_and_change_their_mtu(void **state)
{
	struct netdev_link *eth;

	add_lo();
	eth = add_link("eth0");
	add_address(eth, "10.0.0.1");
	assert_int_equal(choose_devices(NULL), 1);
	assert_true(devices[0].ports[0].is_up);
	assert_int_equal(devices[0].ports[0].active_mtu, 3);
	eth->has_carrier = false;
	update_devices(1);
	assert_int_equal(changes[0], NETDEV_DOWN);
	eth->has_carrier = true;
	eth->mtu = 9000;
	update_devices(1);
	assert_int_equal(changes[0], NETDEV_UP | NETDEV_MTU);
	assert_int_equal(devices[0].ports[0].active_mtu, 5);
	scene.link_count--;
	drop_address("10.0.0.1");
	update_devices(1);
	assert_int_equal(changes[0], NETDEV_DOWN | NETDEV_GIDS);
}

static void a_path_mtu_fits_with_all_its_headers(void **state)
{
	static const struct {
		uint32_t mtu, code;
	} rows[] = {{68, 1},   {576, 1},  {1280, 3}, {1123, 2},
		    {1124, 3}, {1500, 3}, {2147, 3}, {2148, 4},
		    {4195, 4}, {4196, 5}, {9000, 5}, {65536, 5}};
	struct netdev_link *lo = add_lo();

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		lo->mtu = rows[i].mtu;
		choose_devices(NULL);
		assert_int_equal(devices[0].ports[0].active_mtu, rows[i].code);
	}
}

static void devices_and_gids_beyond_the_tables_are_left_out(void **state)
{
	struct netdev_link *eth;
	char text[32];

	eth = add_link("eth0");
	for (int i = 0; i < MOST; i++) {
		snprintf(text, sizeof(text), "10.0.0.%d", i + 1);
		add_address(eth, text);
	}
	for (int i = 1; i < MOST; i++)
		add_link("more")->is_routed = true;
	assert_int_equal(choose_devices(NULL), DEVICE_MAX);
	assert_int_equal(choose_devices("eth0"), 1);
	expect_gid(0, DEVICE_MAX_GIDS - 2, "10.0.0.60", V2);
	expect_gid(0, DEVICE_MAX_GIDS - 1, "10.0.0.1", V2);
	update_devices(1);
	assert_int_equal(changes[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			the_first_token_that_became_no_device_is_found,
			clear_scene),
		cmocka_unit_test_setup(
			a_machine_with_nothing_but_lo_has_one_device,
			clear_scene),
		cmocka_unit_test_setup(
			a_loopback_that_is_down_is_a_device_that_is_down,
			clear_scene),
		cmocka_unit_test_setup(
			the_default_route_decides_then_a_global_address,
			clear_scene),
		cmocka_unit_test_setup(
			bridges_come_after_others_and_their_ports_never,
			clear_scene),
		cmocka_unit_test_setup(
			named_interfaces_come_in_the_order_of_the_list,
			clear_scene),
		cmocka_unit_test_setup(each_kind_counts_its_own_devices,
				       clear_scene),
		cmocka_unit_test_setup(
			a_kind_alone_takes_the_preferred_interfaces,
			clear_scene),
		cmocka_unit_test_setup(an_interface_may_have_the_name_of_a_kind,
				       clear_scene),
		cmocka_unit_test_setup(a_kind_without_room_for_all_is_missing,
				       clear_scene),
		cmocka_unit_test_setup(
			the_devices_of_one_interface_have_their_own_tables,
			clear_scene),
		cmocka_unit_test_setup(programs_see_one_gid_of_an_iwarp_device,
				       clear_scene),
		cmocka_unit_test_setup(
			the_mtu_of_an_iwarp_device_needs_no_room_for_headers,
			clear_scene),
		cmocka_unit_test_setup(
			interfaces_without_a_mac_have_guids_of_their_own,
			clear_scene),
		cmocka_unit_test_setup(each_kind_of_address_has_its_index,
				       clear_scene),
		cmocka_unit_test_setup(
			without_ipv4_the_first_global_address_stands_at_1_and_3,
			clear_scene),
		cmocka_unit_test_setup(two_devices_share_no_address,
				       clear_scene),
		cmocka_unit_test_setup(
			an_entry_stays_where_it_is_while_others_come_and_go,
			clear_scene),
		cmocka_unit_test_setup(
			gid_1_changes_only_for_ipv4_or_a_lost_address,
			clear_scene),
		cmocka_unit_test_setup(
			links_go_down_and_up_and_away_and_change_their_mtu,
			clear_scene),
		cmocka_unit_test_setup(a_path_mtu_fits_with_all_its_headers,
				       clear_scene),
		cmocka_unit_test_setup(
			devices_and_gids_beyond_the_tables_are_left_out,
			clear_scene),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
