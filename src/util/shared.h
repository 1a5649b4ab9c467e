/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words that threads, or processes that map the same arena, read and write
 * without a lock.  A shared_u32 is a number, an identifier or bits; a
 * shared_flag is 0 or 1; the index of a ring is a ring_index (util/ring.h).
 * Each is one 32-bit word, which these functions load and store.  Code that
 * must load and store a word in one step uses an operation of stdatomic.h, such
 * as a compare-and-swap.
 */
#ifndef UTIL_SHARED_H
#define UTIL_SHARED_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint32_t shared_u32;
typedef _Atomic uint32_t shared_flag;

/* Returns *w.  Acquire: the caller's later loads see what the writer wrote
 * before its shared_store of the returned value. */
static inline uint32_t shared_load(const shared_u32 *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

/* Returns *w.  Relaxed: for the only thread that writes *w, for the holder of
 * the lock under which *w is written, and for a caller whose other accesses
 * need no order with this load. */
static inline uint32_t shared_own(const shared_u32 *w)
{
	return atomic_load_explicit(w, memory_order_relaxed);
}

/* Stores v.  Release: a thread whose shared_load returns v sees the caller's
 * earlier stores.  Without that order the thread could read old contents of the
 * memory that v announces. */
static inline void shared_store(shared_u32 *w, uint32_t v)
{
	atomic_store_explicit(w, v, memory_order_release);
}

/*
 * Orders the caller's stores before this call with the caller's loads after it.
 * Suppose that two threads each store to a word, call this function, and load
 * the word of the other thread: then at least one of them sees the store of the
 * other.  Without the fence each may miss the store of the other, and a wake-up
 * is lost.
 */
static inline void shared_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * Orders the loads and plain reads that precede the fence before the loads that
 * follow it.  A reader that takes no lock, and so checks a word of a record
 * before and after it reads the record, needs this fence before the second
 * check: without it the second check may find the word as it was before the
 * record changed.
 */
static inline void shared_fence_acquire(void)
{
	atomic_thread_fence(memory_order_acquire);
}

/*
 * Orders the stores that precede the fence before the stores and plain writes
 * that follow it.  A writer that changes a record needs this fence after it has
 * stored in the record's word that the record is invalid: without it a reader
 * may find the new record with the old word, both before and after
 * shared_fence_acquire.
 */
static inline void shared_fence_release(void)
{
	atomic_thread_fence(memory_order_release);
}

/*
 * Does what shared_fence does, if the caller's last store was a seq_cst
 * exchange: orders that store with the caller's loads after this call.  An
 * x86-64 processor executes no load before an earlier exchange, so only the
 * compiler must be kept from moving the loads.  Other processors need the
 * fence.
 */
static inline void shared_fence_after_exchange(void)
{
#if defined(__x86_64__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	shared_fence();
#endif
}

/* Stores v.  Does what a shared_store and then a shared_fence do, by one
 * exchange: it also orders this store with the caller's later loads. */
static inline void shared_publish(shared_u32 *w, uint32_t v)
{
	atomic_exchange_explicit(w, v, memory_order_seq_cst);
	shared_fence_after_exchange();
}

#endif
