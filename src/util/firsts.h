/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What turns up for the first time, of as many as there is room for.  There is
 * no lock that a fork's child could inherit from a thread that is not there.
 */
#ifndef UTIL_FIRSTS_H
#define UTIL_FIRSTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/check.h"

#define FIRSTS_ROOM 64

/* Zero is empty. */
struct firsts {
	_Atomic uint64_t key[FIRSTS_ROOM];
};

/* True: nobody has added this key, which is not 0, before; false also when the
 * room is used up. */
static inline bool firsts_add(struct firsts *f, uint64_t key)
{
	CHECK(key);
	for (size_t i = 0; i < FIRSTS_ROOM; i++) {
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(&f->key[i], &found, key))
			return true;
		if (found == key)
			return false;
	}
	return false;
}

#endif
