/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, as struct sockaddr and as GIDs. */
#include "rdmacm/object.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "util/inaddr.h"

#define SPACE_SHIFT 16 /* in a service ID, the bits below the port space */
#define WHOLE_ID    UINT64_MAX /* a mask by which each bit of the ID counts */
/* the bits of the flow information below the traffic class */
#define FLOW_LABEL_BITS 20

static const struct sockaddr_in *as_ipv4(const struct sockaddr *a)
{
	return (const struct sockaddr_in *)(const void *)a;
}

static const struct sockaddr_in6 *as_ipv6(const struct sockaddr *a)
{
	return (const struct sockaddr_in6 *)(const void *)a;
}

static const struct sockaddr_ib *as_ib(const struct sockaddr *a)
{
	return (const struct sockaddr_ib *)(const void *)a;
}

bool r_addr_is_ib(const struct sockaddr *a)
{
	return a->sa_family == AF_IB;
}

bool r_addr_is_known(const struct sockaddr *a)
{
	return a && (a->sa_family == AF_INET || a->sa_family == AF_INET6 ||
		     r_addr_is_ib(a));
}

int r_addr_check(const struct sockaddr *a, const char *call)
{
	bool is_gid = r_addr_is_known(a) && r_addr_is_ib(a);

	if (!r_addr_is_known(a))
		return r_fail(EAFNOSUPPORT,
			      "%s: an address is NULL or of an unknown family; "
			      "pass an IPv4 or IPv6 address, or on a host of a "
			      "fabric a GID (AF_IB)",
			      call);
	if (is_gid && !r_ib_is_used())
		return r_fail(EAFNOSUPPORT,
			      "%s: an address is a GID of InfiniBand (AF_IB), "
			      "and this host has no InfiniBand device; use an "
			      "IPv4 or IPv6 address, or run the program on a "
			      "host of a fabric (adverb run --fabric)",
			      call);
	return 0;
}

bool r_addr_is_any(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return as_ipv4(a)->sin_addr.s_addr == htonl(INADDR_ANY);
	if (r_addr_is_ib(a))
		return ib_addr_any(&as_ib(a)->sib_addr);
	return IN6_IS_ADDR_UNSPECIFIED(&as_ipv6(a)->sin6_addr);
}

bool r_addr_is_loopback(const struct sockaddr *a)
{
	uint8_t ip[16];

	r_addr_ip(a, ip);
	return inaddr_is_loopback(ip);
}

bool r_addr_is_multicast(const struct sockaddr *a)
{
	uint8_t ip[16];

	r_addr_ip(a, ip);
	return inaddr_is_multicast(ip);
}

/* No GID is a loopback address. */
bool r_addr_is_open(const struct sockaddr *a)
{
	return r_addr_is_any(a) || (!r_addr_is_ib(a) && r_addr_is_loopback(a));
}

socklen_t r_addr_size(const struct sockaddr *a)
{
	if (r_addr_is_ib(a))
		return sizeof(struct sockaddr_ib);
	return a->sa_family == AF_INET ? sizeof(struct sockaddr_in)
				       : sizeof(struct sockaddr_in6);
}

/* Returns the service ID, in host order; bits that the mask leaves open are 0.
 */
static uint64_t service_of(const struct sockaddr *a)
{
	return be64toh(as_ib(a)->sib_sid & as_ib(a)->sib_sid_mask);
}

uint64_t r_addr_service(const struct sockaddr *a)
{
	return service_of(a) >> SPACE_SHIFT ? service_of(a) : 0;
}

uint64_t r_addr_space(const struct sockaddr *a)
{
	return service_of(a) >> SPACE_SHIFT;
}

uint16_t r_addr_port(const struct sockaddr *a)
{
	if (r_addr_is_ib(a))
		return (uint16_t)service_of(a);
	return ntohs(a->sa_family == AF_INET ? as_ipv4(a)->sin_port
					     : as_ipv6(a)->sin6_port);
}

void r_addr_set_service(struct sockaddr *a, uint64_t space, uint16_t port)
{
	struct sockaddr_ib *ib = (struct sockaddr_ib *)(void *)a;

	ib->sib_sid = htobe64(space << SPACE_SHIFT | port);
	ib->sib_sid_mask = WHOLE_ID;
}

/* sin_port and sin6_port have the same offset. */
void r_addr_set_port(struct sockaddr *a, uint16_t port)
{
	if (r_addr_is_ib(a)) {
		r_addr_set_service(a, r_addr_space(a), port);
		return;
	}
	((struct sockaddr_in *)(void *)a)->sin_port = htons(port);
}

void r_addr_ip(const struct sockaddr *a, uint8_t ip[16])
{
	memset(ip, 0, 16);
	if (a->sa_family == AF_INET6) {
		memcpy(ip, &as_ipv6(a)->sin6_addr, 16);
		return;
	}
	if (r_addr_is_ib(a)) {
		memcpy(ip, &as_ib(a)->sib_addr, 16);
		return;
	}
	ip[10] = ip[11] = 0xff;
	memcpy(ip + 12, &as_ipv4(a)->sin_addr, 4);
}

void r_addr_make(struct sockaddr *a, const uint8_t ip[16], uint16_t port)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)a;
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)a;

	memset(six, 0, sizeof(*six));
	if (inaddr_is_v4(ip)) {
		four->sin_family = AF_INET;
		memcpy(&four->sin_addr, ip + 12, 4);
	} else {
		six->sin6_family = AF_INET6;
		memcpy(&six->sin6_addr, ip, 16);
	}
	r_addr_set_port(a, port);
}

void r_addr_make_ib(struct sockaddr *a, const uint8_t gid[16], uint64_t space,
		    uint16_t port, uint16_t pkey)
{
	struct sockaddr_ib *ib = (struct sockaddr_ib *)(void *)a;

	memset(ib, 0, sizeof(*ib));
	ib->sib_family = AF_IB;
	ib->sib_pkey = htobe16(pkey);
	memcpy(&ib->sib_addr, gid, 16);
	r_addr_set_service(a, space, port);
}

void r_addr_move(struct sockaddr *a, const uint8_t ip[16])
{
	if (r_addr_is_ib(a))
		memcpy(&((struct sockaddr_ib *)(void *)a)->sib_addr, ip, 16);
	else
		r_addr_make(a, ip, r_addr_port(a));
}

uint8_t r_addr_traffic_class(const struct sockaddr *a)
{
	return (uint8_t)(be32toh(as_ib(a)->sib_flowinfo) >> FLOW_LABEL_BITS);
}

uint32_t r_addr_scope(const struct sockaddr *a)
{
	return a->sa_family == AF_INET6 ? as_ipv6(a)->sin6_scope_id : 0;
}

uint16_t r_addr_pkey(const struct sockaddr *a)
{
	return be16toh(as_ib(a)->sib_pkey);
}

const char *r_addr_text(const struct sockaddr *a, char *text)
{
	char name[INET6_ADDRSTRLEN] = "an unknown address";
	const void *bytes =
		a->sa_family == AF_INET ? (const void *)&as_ipv4(a)->sin_addr
		: r_addr_is_ib(a)	? (const void *)&as_ib(a)->sib_addr
					: &as_ipv6(a)->sin6_addr;

	inet_ntop(r_addr_is_ib(a) ? AF_INET6 : a->sa_family, bytes, name,
		  sizeof(name));
	snprintf(text, R_ADDR_TEXT, "%s port %u", name, r_addr_port(a));
	return text;
}
