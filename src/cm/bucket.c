/* SPDX-License-Identifier: BSD-2-Clause */
/* The hash of the manager's tables and of its counts for each sender; see
 * cm/conv.h. */
#include "cm/conv.h"

/* The key is secret, so that a peer that chooses its own ids cannot make all of
 * them fall into one bucket. */
uint32_t bucket_of(const struct cm *cm, const void *data, size_t bytes,
		   uint64_t more)
{
	const uint8_t *p = data;
	uint64_t h = cm->hash_key ^ more * 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(h >> 40) & (CONV_BUCKETS - 1);
}
