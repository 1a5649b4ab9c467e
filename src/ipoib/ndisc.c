/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/ndisc.h"

#include <string.h>

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "ipoib/hwaddr.h"

enum {
	ICMPV6 = 58, /* next header */
	HOP_LIMIT = 255,
	ROUTER_SOLICITATION = 133,
	REDIRECT = 137,
	OPTION_SOURCE = 1,
	OPTION_TARGET = 2,
	OPTION_UNIT = 8, /* bytes: the unit of an option's length */
	AT_CODE = 1,
	AT_CHECKSUM = 2,
	MAC_UNITS = 1,
	HWADDR_UNITS = 3,
	MAC_AT = 2,    /* in an option */
	HWADDR_AT = 4, /* in an option */
};

/* Bytes of a message before its options, by its type. */
static const uint8_t fixed_bytes[] = {8, 16, 24, 24, 40};

/* A message under translation: the rest of the input, and the output. */
struct pass {
	const uint8_t *at, *end;
	uint8_t *out, *out_end;
	/* bit N: an option N that has a hardware address was translated */
	uint8_t translated;
	enum ndisc_way way;
	ndisc_find *find;
	void *ctx;
};

bool ndisc_is(const uint8_t *p, size_t len)
{
	return len > IP_V6_BYTES && p[0] >> 4 == 6 && p[6] == ICMPV6 &&
	       p[IP_V6_BYTES] >= ROUTER_SOLICITATION &&
	       p[IP_V6_BYTES] <= REDIRECT;
}

/* Returns the checksum of an ICMPv6 message and its pseudo-header, the checksum
 * field included: 0 if that field is right (RFC 4443, 2.3). */
static uint16_t checksum_of(const uint8_t *ip, size_t bytes)
{
	uint64_t sum = ip_sum(ICMPV6 + (uint64_t)bytes, ip + 8, 32);

	return ip_sum_fold(ip_sum(sum, ip + IP_V6_BYTES, bytes));
}

static bool copy_bytes(struct pass *t, size_t bytes)
{
	if ((size_t)(t->end - t->at) < bytes ||
	    (size_t)(t->out_end - t->out) < bytes)
		return false;
	memcpy(t->out, t->at, bytes);
	t->at += bytes;
	t->out += bytes;
	return true;
}

/* Translates an option that has a hardware address.  The caller has checked
 * that the whole option is there.  A message has at most one source and one
 * target (RFC 4861, 4); `find` is not asked for more, since each question may
 * make a neighbour. */
static bool translate_address(struct pass *t)
{
	bool widens = t->way == NDISC_TO_HWADDR;
	uint8_t from = widens ? MAC_UNITS : HWADDR_UNITS;
	uint8_t to = widens ? HWADDR_UNITS : MAC_UNITS;
	uint8_t bit = (uint8_t)(1u << t->at[0]);

	if (t->translated & bit || t->at[1] != from ||
	    t->out_end - t->out < to * OPTION_UNIT)
		return false;
	t->translated |= bit;
	memset(t->out, 0, (size_t)to * OPTION_UNIT);
	t->out[0] = t->at[0];
	t->out[1] = to;
	if (!t->find(t->ctx, t->at + (widens ? MAC_AT : HWADDR_AT),
		     t->out + (widens ? HWADDR_AT : MAC_AT)))
		return false;
	t->at += from * OPTION_UNIT;
	t->out += to * OPTION_UNIT;
	return true;
}

static bool translate_option(struct pass *t)
{
	size_t left = (size_t)(t->end - t->at), bytes;

	if (left < OPTION_UNIT)
		return false;
	bytes = (size_t)t->at[1] * OPTION_UNIT;
	if (!bytes || bytes > left)
		return false;
	if (t->at[0] == OPTION_SOURCE || t->at[0] == OPTION_TARGET)
		return translate_address(t);
	return copy_bytes(t, bytes);
}

/* Has the message the hop limit, the length, the code and the checksum that
 * receivers demand (RFC 4861, 6.1, 7.1, 8.1)? */
static bool is_right(const uint8_t *p, const struct ip_v6 *ip)
{
	const uint8_t *icmp = p + IP_V6_BYTES;

	return ip->hop_limit == HOP_LIMIT &&
	       ip->payload_length >=
		       fixed_bytes[icmp[0] - ROUTER_SOLICITATION] &&
	       icmp[AT_CODE] == 0 && checksum_of(p, ip->payload_length) == 0;
}

size_t ndisc_translate(const uint8_t *p, size_t len, enum ndisc_way way,
		       ndisc_find *find, void *ctx, uint8_t *out, size_t room)
{
	struct pass t = {.at = p,
			 .out = out,
			 .out_end = out + room,
			 .way = way,
			 .find = find,
			 .ctx = ctx};
	struct ip_v6 ip;
	size_t bytes;

	if (!ip_v6_parse(p, len, &ip) || !is_right(p, &ip))
		return 0;
	t.end = p + IP_V6_BYTES + ip.payload_length;
	if (!copy_bytes(
		    &t,
		    IP_V6_BYTES +
			    fixed_bytes[p[IP_V6_BYTES] - ROUTER_SOLICITATION]))
		return 0;
	while (t.at < t.end)
		if (!translate_option(&t))
			return 0;
	bytes = (size_t)(t.out - out) - IP_V6_BYTES;
	if (bytes > UINT16_MAX)
		return 0;
	bytes_put16(out + 4, (uint16_t)bytes);
	bytes_put16(out + IP_V6_BYTES + AT_CHECKSUM, 0);
	bytes_put16(out + IP_V6_BYTES + AT_CHECKSUM, checksum_of(out, bytes));
	return (size_t)(t.out - out);
}
