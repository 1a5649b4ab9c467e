/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/bth.h"

#include "hdr/bytes.h"

#define PKEY_FULL 0x8000 /* the bit of a full member */

bool bth_parse(const uint8_t *p, size_t len, struct bth *bth)
{
	if (len < BTH_BYTES)
		return false;
	bth->opcode = p[0];
	bth->se = p[1] & 0x80;
	bth->migreq = p[1] & 0x40;
	bth->pad = p[1] >> 4 & 3;
	bth->tver = p[1] & 0xf;
	bth->pkey = bytes_get16(p + 2);
	bth->fecn = p[4] & 0x80;
	bth->becn = p[4] & 0x40;
	bth->dest_qpn = bytes_get24(p + 5);
	bth->ackreq = p[8] & 0x80;
	bth->psn = bytes_get24(p + 9);
	return true;
}

void bth_write(uint8_t *p, const struct bth *bth)
{
	p[0] = bth->opcode;
	p[1] = (uint8_t)(bth->se << 7 | bth->migreq << 6 | (bth->pad & 3) << 4 |
			 (bth->tver & 0xf));
	bytes_put16(p + 2, bth->pkey);
	p[4] = (uint8_t)(bth->fecn << 7 | bth->becn << 6);
	bytes_put24(p + 5, bth->dest_qpn);
	bth_number(p, bth->psn, bth->ackreq);
}

void bth_number(uint8_t *p, uint32_t psn, bool ackreq)
{
	bytes_put32(p + 8, (uint32_t)ackreq << 31 | (psn & BTH_PSN_MASK));
}

void bth_put_pkey(uint8_t *p, uint16_t pkey)
{
	bytes_put16(p + 2, pkey);
}

bool bth_is_same_partition(uint16_t a, uint16_t b)
{
	return (a & ~PKEY_FULL) && !((a ^ b) & ~PKEY_FULL) &&
	       ((a | b) & PKEY_FULL);
}
