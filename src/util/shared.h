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

/* Acquire: the caller's later loads see what the writer wrote before its
 * shared_store of the returned value. */
static inline uint32_t shared_load(const shared_u32 *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

/* Relaxed: for the only thread that writes *w, to read its own last value. */
static inline uint32_t shared_own(const shared_u32 *w)
{
	return atomic_load_explicit(w, memory_order_relaxed);
}

/* Release: a thread whose shared_load returns v sees the caller's earlier
 * stores. */
static inline void shared_store(shared_u32 *w, uint32_t v)
{
	atomic_store_explicit(w, v, memory_order_release);
}

/*
 * Orders the caller's stores before this call with its loads after the call. If
 * two threads each store one word, call this function, and load the other's
 * word, at least one of them sees the other's store.  Without the fence both
 * may miss the other's store, and a wake-up is lost.
 */
static inline void shared_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * Orders a store, which was a seq_cst exchange, with the caller's loads after
 * this call, as shared_fence does.  On x86-64 the processor does no load before
 * an earlier exchange, so only the compiler must not move the loads; elsewhere
 * the fence is needed.
 */
static inline void shared_fence_after_exchange(void)
{
#if defined(__x86_64__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	shared_fence();
#endif
}

/* Stores v, and orders this store with the caller's later loads, as a
 * shared_store and a shared_fence do. */
static inline void shared_publish(shared_u32 *w, uint32_t v)
{
	atomic_exchange_explicit(w, v, memory_order_seq_cst);
	shared_fence_after_exchange();
}

#endif
