/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Free-running ring indices shared between one producer and one consumer,
 * possibly of different processes: the producer's release (shared_store) pairs
 * with the consumer's acquire (shared_load).  Indices wrap at 2^32; the number
 * of entries between two of them is their difference.  A slot is
 * index & (size - 1), size a power of two.
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
