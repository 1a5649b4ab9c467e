/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set of at most SEEN_SET_ROOM keys, which tells whether a key is new.  The
 * set has no lock: at a fork, a thread that does not exist in the child could
 * hold the lock, and the child would wait for ever.
 */
#ifndef UTIL_SEEN_SET_H
#define UTIL_SEEN_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/check.h"

#define SEEN_SET_ROOM 64

/* All zero is an empty set. */
struct seen_set {
	_Atomic uint64_t key[SEEN_SET_ROOM]; /* 0: free */
};

/* Adds key, which must not be 0.  Returns true if the key is new.  Returns
 * false if the set has the key already or is full. */
static inline bool seen_set_add(struct seen_set *f, uint64_t key)
{
	CHECK(key);
	for (size_t i = 0; i < SEEN_SET_ROOM; i++) {
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(&f->key[i], &found, key))
			return true;
		if (found == key)
			return false;
	}
	return false;
}

#endif
