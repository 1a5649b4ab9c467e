/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hdr/lrh and encap/iblink.  The input is a packet of an InfiniBand link.  If
 * the last byte is odd, the harness also tries the packet with the right LVer
 * and PktLen and, if the frame is then right (lrh_frame), the right ICRC and
 * VCRC.  A packet that iblink_open accepts has its headers within its bytes,
 * and iblink_open accepts each packet that iblink_write and iblink_seal make.
 */
#include "fuzz.h"

#include <string.h>

#include "encap/iblink.h"
#include "encap/icrc.h"
#include "hdr/bth.h"

static void try_foreign(const uint8_t *p, size_t size)
{
	struct iblink_inner inner;
	uint8_t out[LRH_HEAD_MAX];
	struct iblink h;

	if (!iblink_open(p, size, &h, &inner))
		return;
	FUZZ_REQUIRE(inner.bth >= p + LRH_BYTES);
	FUZZ_REQUIRE(inner.bytes >= BTH_BYTES);
	FUZZ_REQUIRE(inner.bth + inner.bytes + IBLINK_TAIL_BYTES == p + size);
	FUZZ_REQUIRE(iblink_write(out, &h, inner.bytes) ==
		     (size_t)(inner.bth - p));
	/* iblink_write clears the reserved bits in the bytes 1 and 4, so these
	 * bytes may differ */
	FUZZ_REQUIRE(memcmp(out + 2, p + 2, 2) == 0);
	FUZZ_REQUIRE(memcmp(out + 6, p + 6, (size_t)(inner.bth - p) - 6) == 0);
}

/* Gives the packet at p the right LVer and PktLen and, if its frame is then
 * right (lrh_frame), the right ICRC and VCRC.  Returns the length of the
 * packet, which is up to 3 bytes less than `size`. */
static size_t mend_frame(uint8_t *p, size_t size)
{
	struct lrh lrh;
	size_t head;

	size -= (size - LRH_VCRC_BYTES) % 4;
	lrh_parse(p, size, &lrh);
	lrh.lver = 0;
	lrh.words = (uint16_t)((size - LRH_VCRC_BYTES) / 4);
	lrh_write(p, &lrh);
	head = lrh_frame(p, size, &lrh);
	if (head) /* the frame is right: BTH and CRCs have room */
		iblink_seal(p, head, p + head, size - head - IBLINK_TAIL_BYTES);
	return size;
}

static void try_own(const uint8_t *data, size_t size)
{
	struct iblink h = {.lrh = {.lnh = LRH_NEXT_LOCAL | (data[0] & 1),
				   .vl = data[1] & 15,
				   .dlid = 7}};
	uint8_t p[LRH_FRAME_MAX + 4], head[LRH_HEAD_MAX];
	struct iblink_inner inner;
	struct iblink got;
	size_t len = size & ~(size_t)3, at;

	if (len < BTH_BYTES)
		return;
	at = iblink_write(head, &h, len);
	memcpy(p, head, at);
	memcpy(p + at, data, len);
	len = iblink_seal(head, at, p + at, len);
	FUZZ_REQUIRE(iblink_open(p, at + len, &got, &inner));
	FUZZ_REQUIRE(inner.bth == p + at);
	FUZZ_REQUIRE(memcmp(inner.bth, data, inner.bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t p[2048];

	try_foreign(data, size);
	if (size < LRH_BYTES + LRH_VCRC_BYTES || size > sizeof(p))
		return 0;
	memcpy(p, data, size);
	if (data[size - 1] & 1)
		size = mend_frame(p, size);
	try_foreign(p, size);
	try_own(p, size);
	return 0;
}
