/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Free-running ring indices, shared by one producer and one consumer, which may
 * be different processes.  The producer's shared_store of head (release) pairs
 * with the consumer's shared_load of head (acquire), so that the consumer sees
 * the entry that the producer wrote before the store.  Likewise the consumer's
 * shared_store of tail pairs with the producer's shared_load of tail: without
 * that order the producer could overwrite an entry that is still being read.
 * Indices wrap at 2^32; the number of entries between two indices is their
 * difference.  The slot of an index is index & (size - 1); size is a power of
 * two.
 *
 *        tail            head
 *          v               v
 *   . . . [c][c][c][c][c] . . .      count = head - tail <= size
 */
#ifndef UTIL_RING_H
#define UTIL_RING_H

#include "util/shared.h"

typedef shared_u32 ring_index;

#endif
