/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences for people, on stderr; never twice for one cause. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/stderr.h"
#include "host/host.h"
#include "device/netif.h"
#include "util/bits.h"
#include "util/seen_set.h"
#include "util/inaddr.h"

#define SAY_LOOPBACK 0x3400

static struct seen_set said; /* then it is silent */

void log_say(uint64_t key, const char *fmt, ...)
{
	const char *wish = secure_getenv("ADVERB_EXPLAIN");
	char line[640] = "adverb: ";
	size_t at = strlen(line), room = sizeof line - at - 1;
	int n;
	va_list args;

	if ((wish && strcmp(wish, "0") == 0) || !seen_set_add(&said, key))
		return;
	va_start(args, fmt);
	n = vsnprintf(line + at, room, fmt, args);
	va_end(args);
	if (n > 0)
		at += bits_min_u64((uint64_t)n, room - 1);
	line[at++] = '\n';
	stderr_write(line, at);
}

static const char *address(const uint8_t ip[16], char *text)
{
	bool is_v4 = inaddr_is_v4(ip);

	inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? ip + 12 : ip, text,
		  INET6_ADDRSTRLEN);
	return text;
}

void netif_say_unreachable(const uint8_t from[16], const struct hca_ah *ah)
{
	char here[INET6_ADDRSTRLEN] = "", there[INET6_ADDRSTRLEN] = "";

	if (!inaddr_is_loopback(from) || inaddr_is_loopback(ah->dgid) ||
	    inaddr_is_multicast(ah->dgid) || netif_is_local(ah->dgid))
		return;
	log_say(SAY_LOOPBACK,
		"the GID at index %u is %s, which is reached from this "
		"machine alone, and the peer is %s: neither hears the other; "
		"take the index of an address that the peer reaches "
		"(ibv_devinfo -v), or another device (adverb run --device "
		"NAME)",
		ah->sgid_index, address(from, here), address(ah->dgid, there));
}
