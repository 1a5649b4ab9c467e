/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/lrh.h"

#include <string.h>

#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "hdr/grh.h"
#include "util/crc16.h"

bool lrh_parse(const uint8_t *p, size_t len, struct lrh *lrh)
{
	if (len < LRH_BYTES)
		return false;
	lrh->vl = p[0] >> 4;
	lrh->lver = p[0] & 15;
	lrh->sl = p[1] >> 4;
	lrh->lnh = p[1] & 3;
	lrh->dlid = bytes_get16(p + 2);
	lrh->words = bytes_get16(p + 4) & LRH_WORDS_MAX;
	lrh->slid = bytes_get16(p + 6);
	return true;
}

void lrh_write(uint8_t *p, const struct lrh *lrh)
{
	p[0] = (uint8_t)(lrh->vl << 4 | (lrh->lver & 15));
	p[1] = (uint8_t)(lrh->sl << 4 | (lrh->lnh & 3));
	bytes_put16(p + 2, lrh->dlid);
	bytes_put16(p + 4, lrh->words & LRH_WORDS_MAX);
	bytes_put16(p + 6, lrh->slid);
}

/* Does the GRH at p announce an IBA transport header, and does PayLen count all
 * bytes from the end of the GRH to the end of the ICRC (IBTA 8.3)?  @len: bytes
 * from p to the end of the ICRC. */
static bool is_grh_right(const uint8_t *p, size_t len)
{
	struct grh grh;

	return grh_parse(p, len, &grh) &&
	       grh.next_header == GRH_NEXT_HEADER_IBA &&
	       grh.payload_length == len - GRH_BYTES;
}

size_t lrh_frame(const uint8_t *p, size_t len, struct lrh *lrh)
{
	size_t head = LRH_BYTES, covered;

	if (!lrh_parse(p, len, lrh) || lrh->lver ||
	    len != 4u * lrh->words + LRH_VCRC_BYTES)
		return 0;
	covered = len - LRH_VCRC_BYTES;
	if (lrh->lnh == LRH_NEXT_GLOBAL) {
		if (covered < LRH_BYTES ||
		    !is_grh_right(p + LRH_BYTES, covered - LRH_BYTES))
			return 0;
		head += GRH_BYTES;
	} else if (lrh->lnh != LRH_NEXT_LOCAL) {
		return 0;
	}
	return covered < head + BTH_BYTES + ICRC_BYTES ? 0 : head;
}

size_t lrh_first(const uint8_t *p, size_t len)
{
	struct lrh lrh;
	size_t covered;

	if (!lrh_parse(p, len, &lrh))
		return 0;
	covered = 4u * lrh.words;
	return covered < LRH_BYTES + BTH_BYTES + ICRC_BYTES ||
			       covered + LRH_VCRC_BYTES > len
		       ? 0
		       : covered + LRH_VCRC_BYTES;
}

void lrh_write_vcrc(uint8_t *p, uint16_t state)
{
	uint16_t vcrc = (uint16_t)~state;

	p[0] = (uint8_t)vcrc;
	p[1] = (uint8_t)(vcrc >> 8);
}

void lrh_seal(uint8_t *p, size_t len)
{
	lrh_write_vcrc(p + len, crc16_update(CRC16_INIT, p, len));
}

bool lrh_is_intact(const uint8_t *p, size_t len)
{
	uint8_t vcrc[LRH_VCRC_BYTES];

	if (len < LRH_VCRC_BYTES)
		return false;
	len -= LRH_VCRC_BYTES;
	lrh_write_vcrc(vcrc, crc16_update(CRC16_INIT, p, len));
	return memcmp(p + len, vcrc, LRH_VCRC_BYTES) == 0;
}
