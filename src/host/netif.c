/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/netif.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/host.h"
#include "util/bits.h"
#include "util/inaddr.h"

/* IP, UDP, BTH, the longest extended headers and the ICRC, over IPv6. */
#define HEADER_BYTES 100

static struct host_device devices[HOST_MAX_DEVICES];
static uint32_t device_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool get_ip(const struct sockaddr *sa, uint8_t ip[16])
{
	if (!sa)
		return false;
	if (sa->sa_family == AF_INET) {
		memset(ip, 0, 10);
		memset(ip + 10, 0xff, 2);
		memcpy(ip + 12,
		       &((const struct sockaddr_in *)(const void *)sa)
				->sin_addr,
		       4);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		memcpy(ip,
		       &((const struct sockaddr_in6 *)(const void *)sa)
				->sin6_addr,
		       16);
		return true;
	}
	return false;
}

static bool is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

static bool is_loopback(const uint8_t ip[16])
{
	static const uint8_t one[16] = {[15] = 1};

	return inaddr_is_v4(ip) ? ip[12] == 127 : memcmp(ip, one, 16) == 0;
}

/* A bridge and its ports are a machine's plumbing, not its address. */
static bool is_plumbing(const char *name)
{
	char path[80];

	for (int port = 0; port < 2; port++) {
		snprintf(path, sizeof path, "/sys/class/net/%s/%s", name,
			 port ? "brport" : "bridge");
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

static bool is_routed_v4(const char *name)
{
	FILE *f = fopen("/proc/net/route", "re");
	char line[256], dev[32];
	unsigned long dst, mask;
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line, "%31s %lx %*s %*s %*s %*s %*s %lx", dev,
			       &dst, &mask) == 3 &&
			!dst && !mask && strcmp(dev, name) == 0;
	if (f)
		fclose(f);
	return found;
}

static bool is_routed_v6(const char *name)
{
	FILE *f = fopen("/proc/net/ipv6_route", "re");
	char line[256], dst[40], len[4], next[40], dev[32];
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line,
			       "%39s %3s %*s %*s %39s %*s %*s %*s %*s %31s",
			       dst, len, next, dev) == 4 &&
			strcmp(len, "00") == 0 &&
			strspn(next, "0") < strlen(next) &&
			strcmp(dev, name) == 0;
	if (f)
		fclose(f);
	return found;
}

enum wish { WISH_NAMED, WISH_ROUTED, WISH_GLOBAL, WISH_LOOPBACK };

static bool is_named(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, name, len) == 0 && (!p[len] || p[len] == ','))
			return true;
	}
	return false;
}

static bool fits(const struct ifaddrs *a, enum wish wish)
{
	uint8_t ip[16];

	if (!(a->ifa_flags & IFF_UP) || !get_ip(a->ifa_addr, ip))
		return false;
	switch (wish) {
	case WISH_NAMED:
		return is_named(getenv("ADVERB_DEVICES"), a->ifa_name);
	case WISH_ROUTED:
		return !is_plumbing(a->ifa_name) &&
		       (is_routed_v4(a->ifa_name) || is_routed_v6(a->ifa_name));
	case WISH_GLOBAL:
		return !(a->ifa_flags & IFF_LOOPBACK) && !is_link_local(ip) &&
		       !is_plumbing(a->ifa_name);
	case WISH_LOOPBACK:
		return a->ifa_flags & IFF_LOOPBACK;
	}
	return false;
}

static uint32_t path_mtu(uint32_t mtu)
{
	uint32_t code = 1; /* 256 bytes */

	while (code < 5 && (256u << code) + HEADER_BYTES <= mtu)
		code++;
	return code;
}

/* EUI-64 of the MAC; an interface without one is told by its index. */
static uint64_t guid_of(const struct host_device *d)
{
	uint8_t m[6];
	uint64_t hi, lo;

	memcpy(m, d->mac, 6);
	if (!(m[0] | m[1] | m[2] | m[3] | m[4] | m[5]))
		m[5] = (uint8_t)d->ifindex;
	hi = (uint64_t)(m[0] ^ 2) << 16 | (uint64_t)m[1] << 8 | m[2];
	lo = (uint64_t)m[3] << 16 | (uint64_t)m[4] << 8 | m[5];
	return hi << 40 | 0xfffeull << 24 | lo;
}

static void read_link(struct host_device *d, const struct ifaddrs *all)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = {0};

	d->ifindex = if_nametoindex(d->netdev);
	d->mtu = 1500;
	memcpy(r.ifr_name, d->netdev, sizeof r.ifr_name);
	if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &r) == 0)
		d->mtu = (uint32_t)r.ifr_mtu;
	if (fd >= 0)
		close(fd);
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_PACKET &&
		    strcmp(a->ifa_name, d->netdev) == 0)
			memcpy(d->mac,
			       ((const struct sockaddr_ll *)(const void *)
					a->ifa_addr)
				       ->sll_addr,
			       6);
	d->active_mtu = path_mtu(d->mtu);
	d->guid = guid_of(d);
}

static void add_gid(struct host_device *d, const uint8_t ip[16], uint8_t type,
		    uint32_t ifindex)
{
	struct host_gid *g = &d->gids[d->gid_count];

	if (d->gid_count == HOST_MAX_GIDS)
		return;
	memcpy(g->gid, ip, 16);
	g->type = type;
	g->ifindex = ifindex;
	d->gid_count++;
}

/* The first address of the interface that is IPv4, or IPv6 link local. */
static bool first_ip(const struct host_device *d, const struct ifaddrs *all,
		     bool v4, uint8_t ip[16])
{
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		if (strcmp(a->ifa_name, d->netdev) == 0 &&
		    get_ip(a->ifa_addr, ip) &&
		    (v4 ? inaddr_is_v4(ip) : is_link_local(ip)))
			return true;
	return false;
}

bool netif_is_local(const uint8_t ip[16])
{
	for (uint32_t i = 0; i < device_count; i++)
		for (uint32_t k = 0; k < devices[i].gid_count; k++)
			if (memcmp(devices[i].gids[k].gid, ip, 16) == 0)
				return true;
	return false;
}

/*
 * Index 0 link local, 1 and 3 the IPv4 address, 2 its v1 twin; without an
 * IPv4 address the first global IPv6 one stands there.  Then the others.
 */
static void fill_gids(struct host_device *d, const struct ifaddrs *all)
{
	uint8_t ip[16], local[16] = {0xfe, 0x80};
	bool has_local = first_ip(d, all, false, ip);

	if (has_local)
		memcpy(local, ip, 16);
	for (unsigned i = 0; !has_local && i < 8; i++)
		local[8 + i] = (uint8_t)(d->guid >> (56 - 8 * i));
	add_gid(d, local, has_local ? HOST_GID_ROCE_V2 : HOST_GID_ROCE_V1,
		d->ifindex);
	if (first_ip(d, all, true, ip)) {
		add_gid(d, ip, HOST_GID_ROCE_V2, d->ifindex);
		add_gid(d, ip, HOST_GID_ROCE_V1, d->ifindex);
		add_gid(d, ip, HOST_GID_ROCE_V2, d->ifindex);
	}
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		if (strcmp(a->ifa_name, d->netdev) == 0 &&
		    get_ip(a->ifa_addr, ip) && !netif_is_local(ip))
			add_gid(d, ip, HOST_GID_ROCE_V2, d->ifindex);
}

/* All other addresses of this machine, loopback's last. */
static void fill_tail(struct host_device *d, const struct ifaddrs *all)
{
	uint8_t ip[16];

	for (int loopback = 0; loopback < 2; loopback++)
		for (const struct ifaddrs *a = all; a; a = a->ifa_next)
			if (a->ifa_flags & IFF_UP && get_ip(a->ifa_addr, ip) &&
			    is_loopback(ip) == loopback && !is_link_local(ip) &&
			    !netif_is_local(ip))
				add_gid(d, ip, HOST_GID_ROCE_V2,
					if_nametoindex(a->ifa_name));
}

static bool is_known(const char *name)
{
	for (uint32_t i = 0; i < device_count; i++)
		if (strcmp(devices[i].netdev, name) == 0)
			return true;
	return false;
}

static void find(const struct ifaddrs *all, enum wish wish)
{
	for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
		struct host_device *d = &devices[device_count];

		if (device_count == HOST_MAX_DEVICES || is_known(a->ifa_name) ||
		    !fits(a, wish))
			continue;
		snprintf(d->name, sizeof d->name, "adv%u", device_count);
		snprintf(d->netdev, sizeof d->netdev, "%s", a->ifa_name);
		read_link(d, all);
		device_count++;
		fill_gids(d, all);
	}
}

static void enumerate(void)
{
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return;
	if (getenv("ADVERB_DEVICES"))
		find(all, WISH_NAMED);
	else
		for (enum wish w = WISH_ROUTED;
		     w <= WISH_LOOPBACK && !device_count; w++)
			find(all, w);
	if (device_count)
		fill_tail(&devices[0], all);
	freeifaddrs(all);
}

uint32_t host_devices(const struct host_device **out)
{
	pthread_once(&once, enumerate);
	*out = devices;
	return device_count;
}

uint32_t netif_scope(const uint8_t ip[16])
{
	if (!is_link_local(ip))
		return 0;
	for (uint32_t i = 0; i < device_count; i++)
		for (uint32_t k = 0; k < devices[i].gid_count; k++)
			if (memcmp(devices[i].gids[k].gid, ip, 16) == 0)
				return devices[i].gids[k].ifindex;
	return 0;
}

void netif_mac(const uint8_t ip[16], uint8_t mac[6])
{
	memset(mac, 0, 6);
	for (uint32_t i = 0; i < device_count; i++)
		for (uint32_t k = 0; k < devices[i].gid_count; k++)
			if (memcmp(devices[i].gids[k].gid, ip, 16) == 0 &&
			    devices[i].gids[k].ifindex == devices[i].ifindex)
				memcpy(mac, devices[i].mac, 6);
}
