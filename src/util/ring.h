/*
 * Free-running ring indices shared between one producer and one consumer,
 * possibly of different processes: the producer's release pairs with the
 * consumer's acquire.  They wrap at 2^32; the number of entries between two
 * of them is their difference.  A slot is index & (size - 1), size a power
 * of two.
 *
 *        tail            head
 *          v               v
 *   . . . [c][c][c][c][c] . . .      count = head - tail <= size
 */
#ifndef UTIL_RING_H
#define UTIL_RING_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint32_t ring_index;

static inline uint32_t ring_load(const ring_index *i)
{
	return atomic_load_explicit(i, memory_order_acquire);
}

/* The owner's own view of the index that only it writes. */
static inline uint32_t ring_own(const ring_index *i)
{
	return atomic_load_explicit(i, memory_order_relaxed);
}

static inline void ring_store(ring_index *i, uint32_t v)
{
	atomic_store_explicit(i, v, memory_order_release);
}

/* Of two threads that store, fence and load, one sees the other's store. */
static inline void ring_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/* The same behind an exchange, or the like, that is such a store: which alone
 * keeps later loads from being done before it only where it is a fence, too. */
static inline void ring_fence_behind(void)
{
#if defined(__x86_64__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	ring_fence();
#endif
}

/* A store that comes before anything that the caller reads next. */
static inline void ring_publish(ring_index *i, uint32_t v)
{
	atomic_exchange_explicit(i, v, memory_order_seq_cst);
	ring_fence_behind();
}

#endif
