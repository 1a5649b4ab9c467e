/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device/netdev: the input gives the interfaces and addresses of a machine and
 * the value of ADVERB_DEVICES, from which the devices are made.  Then the input
 * gives other interfaces and addresses, and the devices are updated.  There are
 * at most two devices for each interface, each device has a GUID and a name
 * that ends with a null byte, and a second update by the same interfaces and
 * addresses changes nothing.
 */
#include "fuzz.h"
#include "input.h"

#include <stdio.h>
#include <string.h>

#include "device/netdev.h"

#define LINKS 6
#define ADDRS 24

static void make_link(struct input_bytes *in, struct netdev_link *l, uint32_t i)
{
	static const char *const names[] = {"lo",	   "eth0",  "br0",
					    "veth1a2b3c4", "wlan0", "eth0.100"};
	uint8_t is = input_u8(in);

	memset(l, 0, sizeof(*l));
	l->ifindex = i + 1;
	l->mtu = (uint32_t)input_u8(in) << (is & 7);
	snprintf(l->name, sizeof(l->name), "%s", names[i]);
	l->is_up = is & 8;
	l->has_carrier = is & 16;
	l->is_bridge = is & 32;
	l->is_port = is & 128;
	l->is_routed = is & 64;
	l->is_loopback = !i;
	l->mac[0] = input_u8(in);
	l->mac[5] = (uint8_t)i;
}

static void make_addr(struct input_bytes *in, struct netdev_addr *a)
{
	a->ifindex = input_u8(in) % (LINKS + 2);
	memset(a->ip, 0, 16);
	switch (input_u8(in) % 4) {
	case 0:
		a->ip[0] = 0xfe;
		a->ip[1] = 0x80;
		break;
	case 1:
		a->ip[0] = 0xfd;
		break;
	default:
		a->ip[10] = a->ip[11] = 0xff;
		a->ip[12] = input_u8(in);
		break;
	}
	a->ip[15] = input_u8(in);
}

static void make_scene(struct input_bytes *in, struct netdev_scene *s)
{
	s->link_count = input_u8(in) % (LINKS + 1);
	s->addr_count = input_u8(in) % (ADDRS + 1);
	for (uint32_t i = 0; i < s->link_count; i++)
		make_link(in, &s->links[i], i);
	for (uint32_t i = 0; i < s->addr_count; i++)
		make_addr(in, &s->addrs[i]);
}

static void make_names(struct input_bytes *in, char *to, size_t size)
{
	static const char *const parts[] = {
		"e", "t", "h", "0", ",", "l",	 "o",	  " ",	   "b",	   "r",
		":", "*", "=", "@", "w", "eth0", "iwarp", "iwarp", "roce", ","};
	size_t used = 0;

	for (unsigned n = input_u8(in) % 64; n--;) {
		const char *part =
			parts[input_u8(in) % (sizeof(parts) / sizeof(*parts))];
		size_t len = strlen(part);

		if (used + len >= size)
			break;
		memcpy(to + used, part, len + 1);
		used += len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct device devices[DEVICE_MAX];
	struct netdev_link links[LINKS];
	struct netdev_addr addrs[ADDRS];
	struct netdev_scene scene = {.links = links, .addrs = addrs};
	struct input_bytes in = {data, data + size};
	uint32_t count, changes[DEVICE_MAX];
	char named[128] = "";

	make_scene(&in, &scene);
	make_names(&in, named, sizeof(named));
	memset(devices, 0, sizeof(devices));
	count = netdev_choose(&scene, input_u8(&in) & 1 ? named : NULL,
			      devices);
	FUZZ_REQUIRE(count <= DEVICE_MAX);
	FUZZ_REQUIRE(count <= 2 * scene.link_count);
	for (uint32_t i = 0; i < count; i++) {
		FUZZ_REQUIRE(devices[i].guid);
		FUZZ_REQUIRE(
			memchr(devices[i].name, 0, sizeof(devices[i].name)));
	}
	make_scene(&in, &scene);
	netdev_update(&scene, devices, count, changes);
	netdev_update(&scene, devices, count, changes);
	for (uint32_t i = 0; i < count; i++)
		FUZZ_REQUIRE(!changes[i]); /* the scene is the same */
	return 0;
}
