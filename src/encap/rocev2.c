/* SPDX-License-Identifier: BSD-2-Clause */
#include "encap/rocev2.h"

#include <string.h>

#include "encap/icrc.h"
#include "hdr/bth.h"

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

/* The CRC register over [p, p + len), which ends before the ICRC. */
static uint32_t cover(const struct inaddr *from, const struct inaddr *to,
		      const uint8_t *p, size_t len, uint16_t id)
{
	uint16_t udp_len = (uint16_t)(UDP_BYTES + len + ICRC_BYTES);
	struct udp udp = {
		.sport = from->port, .dport = to->port, .length = udp_len};
	uint32_t crc;

	if (inaddr_is_v4(to->ip)) {
		struct ip_v4 ip = {
			.header_bytes = IP_V4_BYTES,
			.total_length = (uint16_t)(IP_V4_BYTES + udp_len),
			.id = id,
			.flags_fragment = IP_V4_DF,
			.protocol = IP_PROTOCOL_UDP,
			.src = be32(from->ip + 12),
			.dst = be32(to->ip + 12),
		};

		crc = icrc_begin_v4(&ip, &udp, p);
	} else {
		struct ip_v6 ip = {.payload_length = udp_len,
				   .next_header = IP_PROTOCOL_UDP};

		memcpy(ip.src, from->ip, 16);
		memcpy(ip.dst, to->ip, 16);
		crc = icrc_begin_v6(&ip, &udp, p);
	}
	return icrc_update(crc, p + BTH_BYTES, len - BTH_BYTES);
}

size_t rocev2_seal(const struct inaddr *from, const struct inaddr *to,
		   uint8_t *p, size_t len, uint16_t id)
{
	icrc_write(p + len, cover(from, to, p, len, id));
	return len + ICRC_BYTES;
}

bool rocev2_open(const struct inaddr *from, const struct inaddr *to,
		 const uint8_t *p, size_t len, uint16_t id, bool checksummed)
{
	struct icrc_hidden assumed = {id, true}, actual;
	uint32_t syndrome;
	size_t total = IP_V4_BYTES + UDP_BYTES + len;

	if (len < BTH_BYTES + ICRC_BYTES || total > UINT16_MAX)
		return false;
	syndrome = cover(from, to, p, len - ICRC_BYTES, id) ^
		   icrc_read(p + len - ICRC_BYTES);
	if (!syndrome)
		return true;
	return inaddr_is_v4(to->ip) &&
	       icrc_syndrome_id(syndrome, (uint16_t)total, assumed, &actual) &&
	       (checksummed || (actual.df && !actual.id));
}
