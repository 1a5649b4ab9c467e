/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads (get) and writes (put) big-endian numbers of 16, 24, 32 and 64 bits at
 * any address.  Compilers turn each function of 16, 32 or 64 bits into one load
 * or store with a byte swap.
 */
#ifndef HDR_BYTES_H
#define HDR_BYTES_H

#include <stdint.h>

static inline uint16_t bytes_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t bytes_get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t bytes_get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | bytes_get24(p + 1);
}

static inline uint64_t bytes_get64(const uint8_t *p)
{
	return (uint64_t)bytes_get32(p) << 32 | bytes_get32(p + 4);
}

static inline void bytes_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void bytes_put24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)v;
}

static inline void bytes_put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	bytes_put24(p + 1, v);
}

static inline void bytes_put64(uint8_t *p, uint64_t v)
{
	bytes_put32(p, (uint32_t)(v >> 32));
	bytes_put32(p + 4, (uint32_t)v);
}

#endif
