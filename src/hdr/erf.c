/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/erf.h"

#include <string.h>

#include "hdr/bytes.h"

#define NS_PER_S 1000000000u

enum {
	AT_FRACTION = 0,
	AT_SECONDS = 4,
	AT_TYPE = 8,
	AT_FLAGS = 9,
	AT_RECORD = 10,
	AT_WIRE = 14,
	TYPE_INFINIBAND = 21,
	FLAG_VARYING_LENGTH = 4,
};

static void put_little32(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

void erf_write(uint8_t p[ERF_BYTES], uint64_t s, uint32_t ns, size_t bytes)
{
	memset(p, 0, ERF_BYTES);
	put_little32(p + AT_FRACTION,
		     (uint32_t)(((uint64_t)ns << 32) / NS_PER_S));
	put_little32(p + AT_SECONDS, (uint32_t)s);
	p[AT_TYPE] = TYPE_INFINIBAND;
	p[AT_FLAGS] = FLAG_VARYING_LENGTH;
	bytes_put16(p + AT_RECORD, (uint16_t)(ERF_BYTES + bytes));
	bytes_put16(p + AT_WIRE, (uint16_t)bytes);
}
