/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What turns up for the first time, of as many as there is room for.  There is
 * no lock that a fork's child could inherit from a thread that is not there.
 */
#ifndef UTIL_SEEN_SET_H
#define UTIL_SEEN_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/check.h"

#define SEEN_SET_ROOM 64

/* Zero is empty. */
struct seen_set {
	_Atomic uint64_t key[SEEN_SET_ROOM];
};

/* True: nobody has added this key, which is not 0, before; false also when the
 * room is used up. */
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
