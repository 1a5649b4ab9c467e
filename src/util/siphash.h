/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 (Aumasson, Bernstein: SipHash, a fast short-input PRF, 2012): a
 * 64-bit message authentication code, which cannot be computed without the key.
 * Pure.
 */
#ifndef UTIL_SIPHASH_H
#define UTIL_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t word[2]; /* k0 and k1 of the paper */
};

/* Returns the code of the `bytes` bytes at data under this key. */
uint64_t siphash(const struct siphash_key *key, const void *data, size_t bytes);

#endif
