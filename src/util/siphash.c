/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/siphash.h"

#include <endian.h>
#include <string.h>

static uint64_t rotate_left(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void mix_rounds(uint64_t v[4], int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate_left(v[1], 13) ^ v[0];
		v[3] = rotate_left(v[3], 16) ^ v[2];
		v[0] = rotate_left(v[0], 32) + v[3];
		v[2] += v[1];
		v[1] = rotate_left(v[1], 17) ^ v[2];
		v[3] = rotate_left(v[3], 21) ^ v[0];
		v[2] = rotate_left(v[2], 32);
	}
}

static void mix_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix_rounds(v, 2);
	v[0] ^= word;
}

/* Reads fewer than eight bytes as a little-endian number. */
static uint64_t get_word(const uint8_t *p, size_t bytes)
{
	uint64_t word = 0;

	for (size_t i = 0; i < bytes; i++)
		word |= (uint64_t)p[i] << 8 * i;
	return word;
}

uint64_t siphash(const struct siphash_key *key, const void *data, size_t bytes)
{
	uint64_t v[4] = {
		key->word[0] ^ 0x736f6d6570736575u,
		key->word[1] ^ 0x646f72616e646f6du,
		key->word[0] ^ 0x6c7967656e657261u,
		key->word[1] ^ 0x7465646279746573u,
	};
	const uint8_t *p = data;
	size_t left = bytes;
	uint64_t word;

	for (; left >= 8; left -= 8, p += 8) {
		memcpy(&word, p, sizeof(word));
		mix_word(v, le64toh(word));
	}
	mix_word(v, (uint64_t)bytes << 56 | get_word(p, left));
	v[2] ^= 0xff;
	mix_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
