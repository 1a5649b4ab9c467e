/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/ip, hdr/udp and encap/icrc: the input is an IP packet.  An IP header
 * without options that was parsed is written with the same bytes, but with the
 * right IPv4 checksum. */
#include "fuzz.h"

#include <string.h>

#include "encap/icrc.h"
#include "hdr/bth.h"

/* Computes the ICRC with the packet's own identification and flags, and with
 * assumed ones.  From the difference, icrc_syndrome_id must find the packet's
 * own identification and DF, or return false if the packet is a fragment or has
 * the reserved flag. */
static void try_syndrome(const uint8_t *p, const struct ip_v4 *ip,
			 const struct udp *udp)
{
	struct icrc_hidden assumed = {0, true}, actual;
	size_t bth = IP_V4_BYTES + UDP_BYTES;
	struct ip_v4 guess = *ip;
	uint32_t right, wrong;

	if (ip->total_length < bth + BTH_BYTES + ICRC_BYTES)
		return;
	guess.id = 0;
	guess.flags_fragment = IP_V4_DF;
	right = icrc_bth(icrc_headers_v4(ip, udp), p + bth);
	wrong = icrc_bth(icrc_headers_v4(&guess, udp), p + bth);
	bth += BTH_BYTES;
	right = icrc_update(right, p + bth,
			    ip->total_length - bth - ICRC_BYTES);
	wrong = icrc_update(wrong, p + bth,
			    ip->total_length - bth - ICRC_BYTES);
	if (icrc_syndrome_id(right ^ wrong, ip->total_length, assumed,
			     &actual)) {
		FUZZ_REQUIRE((ip->flags_fragment & ~IP_V4_DF) == 0);
		FUZZ_REQUIRE(actual.id == ip->id);
		FUZZ_REQUIRE(actual.df == (ip->flags_fragment != 0));
	} else {
		FUZZ_REQUIRE((ip->flags_fragment & ~IP_V4_DF) != 0);
	}
}

static void try_v4(const uint8_t *data, size_t size)
{
	uint8_t out[IP_V4_BYTES];
	struct udp udp;
	struct ip_v4 ip;

	if (!ip_v4_parse(data, size, &ip))
		return;
	FUZZ_REQUIRE(ip.total_length <= size);
	(void)ip_v4_checksum_ok(data, &ip);
	if (udp_parse(data + ip.header_bytes, ip.total_length - ip.header_bytes,
		      &udp))
		(void)udp_checksum_v4_ok(&ip, data + ip.header_bytes,
					 udp.length);
	if (ip.header_bytes != IP_V4_BYTES)
		return;
	ip_v4_write(out, &ip);
	FUZZ_REQUIRE(ip_v4_checksum_ok(out, &ip));
	memcpy(out + 10, data + 10, 2);
	FUZZ_REQUIRE(memcmp(out, data, IP_V4_BYTES) == 0);
	if (udp_parse(data + IP_V4_BYTES, ip.total_length - IP_V4_BYTES, &udp))
		try_syndrome(data, &ip, &udp);
}

static void try_v6(const uint8_t *data, size_t size)
{
	uint8_t out[IP_V6_BYTES];
	struct udp udp;
	struct ip_v6 ip;

	if (!ip_v6_parse(data, size, &ip))
		return;
	ip_v6_write(out, &ip);
	FUZZ_REQUIRE(memcmp(out, data, IP_V6_BYTES) == 0);
	if (udp_parse(data + IP_V6_BYTES, ip.payload_length, &udp))
		(void)udp_checksum_v6_ok(&ip, data + IP_V6_BYTES, udp.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_v4(data, size);
	try_v6(data, size);
	return 0;
}
