/* SPDX-License-Identifier: BSD-2-Clause */
#include "encap/icrc.h"

#include <endian.h>
#include <string.h>

#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "hdr/lrh.h"
#include "util/crc.h"

/* The "hidden bytes": the id, the flags and the fragment offset of an IPv4
 * header, which a socket does not report.  BEFORE_HIDDEN is their offset. */
#define BEFORE_HIDDEN 4
#define HIDDEN_BYTES  4

/* x^(8 * 24): there are 24 bytes from the first hidden byte to the BTH. */
#define HIDDEN_FACTOR 0x32b39da3

/* Entry [id] is the xor of two CRC registers before the BTH: for the id `id`,
 * and for the id 0.  Most ids are below 256, since a frame has at most 128
 * packets (engine/burst.h). */
static uint32_t of_low_id[256];

static uint32_t of_id(uint16_t id)
{
	/* The first hidden byte is the lowest byte of the register. */
	uint32_t field = (uint32_t)(id & 0xff) << 8 | id >> 8;

	return crc32_multiply(field, HIDDEN_FACTOR);
}

__attribute__((constructor)) static void fill_low_id(void)
{
	for (uint16_t id = 1; id < 256; id++)
		of_low_id[id] = id & (id - 1) ? of_low_id[id & (id - 1)] ^
							of_low_id[id & -id]
					      : of_id(id);
}

/* `block` begins with `used` bytes: room for the dummy LRH, and the IP header.
 * Fills in the LRH and appends the UDP header.  Returns the CRC register after
 * the three headers. */
static uint32_t write_headers(uint8_t *block, size_t used,
			      const struct udp *udp)
{
	struct udp masked = *udp;

	masked.checksum = 0xffff;
	udp_write(block + used, &masked);
	memset(block, 0xff, LRH_BYTES);
	return crc32_update(CRC_INIT, block, used + UDP_BYTES);
}

uint32_t icrc_headers_v4(const struct ip_v4 *ip, const struct udp *udp)
{
	uint8_t block[LRH_BYTES + IP_V4_BYTES + UDP_BYTES];
	uint8_t *p = block + LRH_BYTES;

	p[0] = 0x45;
	p[1] = 0xff;
	bytes_put16(p + 2, ip->total_length);
	bytes_put16(p + 4, ip->id);
	bytes_put16(p + 6, ip->flags_fragment);
	p[8] = 0xff;
	p[9] = ip->protocol;
	bytes_put16(p + 10, 0xffff);
	bytes_put32(p + 12, ip->src);
	bytes_put32(p + 16, ip->dst);
	return write_headers(block, LRH_BYTES + IP_V4_BYTES, udp);
}

uint32_t icrc_headers_v6(const struct ip_v6 *ip, const struct udp *udp)
{
	uint8_t block[LRH_BYTES + IP_V6_BYTES + UDP_BYTES];
	struct ip_v6 masked = *ip;

	masked.traffic_class = 0xff;
	masked.flow_label = 0xfffff;
	masked.hop_limit = 0xff;
	ip_v6_write(block + LRH_BYTES, &masked);
	return write_headers(block, LRH_BYTES + IP_V6_BYTES, udp);
}

uint32_t icrc_with_id(uint32_t crc, uint16_t id)
{
	crc ^= of_low_id[id & 0xff];
	return id > 0xff ? crc ^ of_id(id & 0xff00) : crc;
}

uint32_t icrc_bth(uint32_t crc, const uint8_t *bth)
{
	uint32_t words[BTH_BYTES / 4];

	memcpy(words, bth, sizeof(words));
	words[1] |= htole32(0xff);
	return crc32_update(crc, words, sizeof(words));
}

uint32_t icrc_update(uint32_t crc, const void *data, size_t bytes)
{
	return crc32_update(crc, data, bytes);
}

void icrc_write(uint8_t *p, uint32_t crc)
{
	crc = ~crc;
	p[0] = (uint8_t)crc;
	p[1] = (uint8_t)(crc >> 8);
	p[2] = (uint8_t)(crc >> 16);
	p[3] = (uint8_t)(crc >> 24);
}

uint32_t icrc_read(const uint8_t *p)
{
	return ~((uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 |
		 (uint32_t)p[1] << 8 | p[0]);
}

bool icrc_syndrome_id(uint32_t syndrome, uint16_t total_length,
		      struct icrc_hidden assumed, struct icrc_hidden *actual)
{
	uint8_t field[HIDDEN_BYTES];
	uint16_t flags;

	if (total_length < IP_V4_BYTES + UDP_BYTES + BTH_BYTES + ICRC_BYTES)
		return false;
	/*
	 * Consider the difference (xor) of the sender's header and the assumed
	 * header: zeros, four bytes D in the place of the hidden bytes, and
	 * zeros.  The CRC register of this difference is 0 before D, and D then
	 * turns the register into some value R.  Four zero bytes turn a
	 * register that holds D, the first byte lowest, into the same R.  So
	 * the syndrome, shifted back to the start of the hidden bytes, is D.
	 */
	syndrome = crc32_unshift(syndrome,
				 total_length - ICRC_BYTES - BEFORE_HIDDEN);
	field[0] = (uint8_t)syndrome;
	field[1] = (uint8_t)(syndrome >> 8);
	field[2] = (uint8_t)(syndrome >> 16);
	field[3] = (uint8_t)(syndrome >> 24);
	flags = bytes_get16(field + 2);
	if (assumed.df)
		flags ^= IP_V4_DF;
	if (flags & ~IP_V4_DF)
		return false;
	actual->id = assumed.id ^ bytes_get16(field);
	actual->df = flags & IP_V4_DF;
	return true;
}
