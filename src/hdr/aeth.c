/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/aeth.h"

#include "hdr/bytes.h"

/* clang-format off */
/* The times of the RNR timer codes (IBTA 9.7.5.2.8), in units of 10 us. */
static const uint32_t rnr_timer_10us[32] = {
	65536,     1,     2,     3,     4,     6,     8,    12,
	   16,    24,    32,    48,    64,    96,   128,   192,
	  256,   384,   512,   768,  1024,  1536,  2048,  3072,
	 4096,  6144,  8192, 12288, 16384, 24576, 32768, 49152,
};
/* clang-format on */

void aeth_parse(const uint8_t *p, struct aeth *aeth)
{
	aeth->syndrome = p[0];
	aeth->msn = bytes_get24(p + 1);
}

void aeth_write(uint8_t *p, const struct aeth *aeth)
{
	p[0] = aeth->syndrome;
	bytes_put24(p + 1, aeth->msn);
}

uint64_t aeth_rnr_timer_ns(uint8_t code)
{
	return rnr_timer_10us[code & AETH_VALUE_MASK] * UINT64_C(10000);
}

uint64_t aeth_ack_timeout_ns(uint8_t code)
{
	code &= 0x1f;
	return code == 0 ? 0 : UINT64_C(4096) << code;
}
