/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words that threads, or processes that map one arena, read and write without a
 * lock.  shared_u32: a number, an identifier or bits; shared_flag: 0 or 1; a
 * ring's index is a ring_index (util/ring.h).  Each is one 32-bit word and is
 * accessed by these functions alone.
 */
#ifndef UTIL_SHARED_H
#define UTIL_SHARED_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint32_t shared_u32;
typedef _Atomic uint32_t shared_flag;

/* Acquire: what the writer wrote before its shared_store of this value is seen
 * by the caller's later loads. */
static inline uint32_t shared_load(const shared_u32 *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

/* For the only thread that writes *w: its own last value, without an order. */
static inline uint32_t shared_own(const shared_u32 *w)
{
	return atomic_load_explicit(w, memory_order_relaxed);
}

/* Release: the caller's earlier stores are seen by the thread whose shared_load
 * returns v. */
static inline void shared_store(shared_u32 *w, uint32_t v)
{
	atomic_store_explicit(w, v, memory_order_release);
}

/*
 * Orders a store before this call with a load after it.  Two threads that each
 * store one word, call this, and load the other's word: at least one of them
 * sees the other's store.  Without it both may miss, and a wake-up is lost.
 */
static inline void shared_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * shared_fence for a caller whose store was an atomic exchange.  On x86-64 the
 * exchange itself keeps later loads behind it, so only the compiler must be
 * stopped from moving them; elsewhere the fence is needed.
 */
static inline void shared_fence_after_exchange(void)
{
#if defined(__x86_64__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	shared_fence();
#endif
}

/* Stores v, ordered before everything that the caller loads next. */
static inline void shared_publish(shared_u32 *w, uint32_t v)
{
	atomic_exchange_explicit(w, v, memory_order_seq_cst);
	shared_fence_after_exchange();
}

#endif
