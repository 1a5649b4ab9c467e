/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, as struct sockaddr and as GIDs. */
#include "rdmacm/object.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "util/inaddr.h"

static const struct sockaddr_in *as_ipv4(const struct sockaddr *a)
{
	return (const struct sockaddr_in *)(const void *)a;
}

static const struct sockaddr_in6 *as_ipv6(const struct sockaddr *a)
{
	return (const struct sockaddr_in6 *)(const void *)a;
}

bool r_addr_is_known(const struct sockaddr *a)
{
	return a && (a->sa_family == AF_INET || a->sa_family == AF_INET6);
}

bool r_addr_is_any(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return as_ipv4(a)->sin_addr.s_addr == htonl(INADDR_ANY);
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

bool r_addr_is_open(const struct sockaddr *a)
{
	return r_addr_is_any(a) || r_addr_is_loopback(a);
}

socklen_t r_addr_size(const struct sockaddr *a)
{
	return a->sa_family == AF_INET ? sizeof(struct sockaddr_in)
				       : sizeof(struct sockaddr_in6);
}

uint16_t r_addr_port(const struct sockaddr *a)
{
	return ntohs(a->sa_family == AF_INET ? as_ipv4(a)->sin_port
					     : as_ipv6(a)->sin6_port);
}

/* sin_port and sin6_port have the same offset. */
void r_addr_set_port(struct sockaddr *a, uint16_t port)
{
	((struct sockaddr_in *)(void *)a)->sin_port = htons(port);
}

void r_addr_ip(const struct sockaddr *a, uint8_t ip[16])
{
	memset(ip, 0, 16);
	if (a->sa_family == AF_INET6) {
		memcpy(ip, &as_ipv6(a)->sin6_addr, 16);
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

const char *r_addr_text(const struct sockaddr *a, char *text)
{
	char name[INET6_ADDRSTRLEN] = "an unknown address";
	const void *bytes = a->sa_family == AF_INET
				    ? (const void *)&as_ipv4(a)->sin_addr
				    : &as_ipv6(a)->sin6_addr;

	inet_ntop(a->sa_family, bytes, name, sizeof(name));
	snprintf(text, R_ADDR_TEXT, "%s port %u", name, r_addr_port(a));
	return text;
}
