/* SPDX-License-Identifier: BSD-2-Clause */
#include "encap/iblink.h"

#include <string.h>

#include "encap/icrc.h"
#include "hdr/bth.h"
#include "util/check.h"
#include "util/crc.h"
#include "util/crc16.h"

size_t iblink_write(uint8_t *head, const struct iblink *h, size_t len)
{
	bool is_global = h->lrh.lnh == LRH_NEXT_GLOBAL;
	size_t bytes = LRH_BYTES + (is_global ? GRH_BYTES : 0);
	size_t words = (bytes + len + ICRC_BYTES) / 4;
	struct lrh lrh = h->lrh;
	struct grh grh = h->grh;

	CHECK(len % 4 == 0 && words <= LRH_WORDS_MAX);
	lrh.words = (uint16_t)words;
	lrh_write(head, &lrh);
	if (is_global) {
		grh.payload_length = (uint16_t)(len + ICRC_BYTES);
		grh.next_header = GRH_NEXT_HEADER_IBA;
		grh_write(head + LRH_BYTES, &grh);
	}
	return bytes;
}

/* Returns the CRC register after LRH and GRH.  Variant fields count as ones. */
static uint32_t icrc_head(const uint8_t *head, size_t head_bytes)
{
	uint8_t masked[LRH_HEAD_MAX], *grh = masked + LRH_BYTES;

	memcpy(masked, head, head_bytes);
	if (head_bytes == LRH_BYTES) {
		masked[0] |= 0xf0;
	} else {
		memset(masked, 0xff, LRH_BYTES);
		grh[0] |= 0x0f;
		grh[1] = grh[2] = grh[3] = grh[7] = 0xff;
	}
	return crc32_update(CRC_INIT, masked, head_bytes);
}

static uint32_t icrc_of(const uint8_t *head, size_t head_bytes,
			const uint8_t *p, size_t len)
{
	uint32_t crc = icrc_bth(icrc_head(head, head_bytes), p);

	return icrc_update(crc, p + BTH_BYTES, len - BTH_BYTES);
}

/* Appends the ICRC that the CRC register `crc` gives, and the VCRC. */
static size_t append_crcs(const uint8_t *head, size_t head_bytes, uint8_t *p,
			  size_t len, uint32_t crc)
{
	uint16_t state = crc16_update(CRC16_INIT, head, head_bytes);

	icrc_write(p + len, crc);
	len += ICRC_BYTES;
	lrh_write_vcrc(p + len, crc16_update(state, p, len));
	return len + LRH_VCRC_BYTES;
}

size_t iblink_seal(const uint8_t *head, size_t head_bytes, uint8_t *p,
		   size_t len)
{
	CHECK(head_bytes <= LRH_HEAD_MAX && len >= BTH_BYTES);
	return append_crcs(head, head_bytes, p, len,
			   icrc_of(head, head_bytes, p, len));
}

size_t iblink_seal_summed(const uint8_t *head, size_t head_bytes, uint8_t *p,
			  size_t len, const struct rocev2_sum *sum)
{
	size_t pad = -sum->bytes & 3, before = len - pad - sum->bytes;
	uint32_t crc;

	CHECK(head_bytes <= LRH_HEAD_MAX && before >= BTH_BYTES &&
	      before <= len);
	crc = icrc_of(head, head_bytes, p, before);
	crc = crc32_multiply(crc, sum->factor) ^ sum->crc;
	crc = icrc_update(crc, p + len - pad, pad);
	return append_crcs(head, head_bytes, p, len, crc);
}

bool iblink_open(const uint8_t *p, size_t len, struct iblink *h,
		 struct iblink_inner *inner)
{
	size_t head = lrh_frame(p, len, &h->lrh);

	if (!head)
		return false;
	if (head > LRH_BYTES)
		grh_parse(p + LRH_BYTES, len - LRH_BYTES, &h->grh);
	inner->bth = p + head;
	inner->bytes = len - head - IBLINK_TAIL_BYTES;
	return icrc_read(inner->bth + inner->bytes) ==
	       icrc_of(p, head, inner->bth, inner->bytes);
}
