/* SPDX-License-Identifier: BSD-2-Clause */
/* An input that a harness reads byte by byte; behind its end all bytes are 0.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdint.h>

/* [at, end): the bytes that are left; borrowed. */
struct input_bytes {
	const uint8_t *at, *end;
};

/* Takes one byte. */
static inline uint8_t input_u8(struct input_bytes *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* Takes a number of two bytes, the most significant byte first. */
static inline uint32_t input_u16(struct input_bytes *in)
{
	uint32_t high = input_u8(in);

	return high << 8 | input_u8(in);
}

/* Takes a number of four bytes, the least significant byte first. */
static inline uint32_t input_u32(struct input_bytes *in)
{
	uint32_t v = input_u8(in);

	v |= (uint32_t)input_u8(in) << 8;
	v |= (uint32_t)input_u8(in) << 16;
	return v | (uint32_t)input_u8(in) << 24;
}

#endif
