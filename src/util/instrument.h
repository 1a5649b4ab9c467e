/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Annotations for programs that are built with ThreadSanitizer, while adverb is
 * not.  The sanitizer's runtime, which is part of such a program, sees the
 * memory that adverb's calls into libc access (memcpy, recvmsg, free), but not
 * adverb's atomics, which order these accesses: it would report races that do
 * not exist.  So the runtime ignores a thread's accesses while the thread holds
 * a lock of adverb's, and is told the order on which programs rely: what a
 * thread did before it posted a request happens before what a thread does after
 * it has polled the completion.
 *
 * In a program without the runtime the cost is one test of a variable.  In
 * adverb's own ThreadSanitizer build these functions do nothing.
 *
 * Lock: none.
 */
#ifndef UTIL_INSTRUMENT_H
#define UTIL_INSTRUMENT_H

#include <stdbool.h>

#if defined(__SANITIZE_THREAD__)
#define INSTRUMENT_ITSELF 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define INSTRUMENT_ITSELF 1
#endif
#endif

/* Returns whether this program runs under valgrind. */
bool instrument_by_valgrind(void);

/* True if the program has ThreadSanitizer's runtime; set once, by a
 * constructor.  The four functions below call the runtime and assume this to be
 * true. */
extern bool instrument_is_on;
void instrument_look_away(void);
void instrument_look_again(void);
void instrument_release(void *what);
void instrument_acquire(void *what);

#if defined(INSTRUMENT_ITSELF)
#define INSTRUMENT_IF(call) (void)0
#else
#define INSTRUMENT_IF(call)                                                    \
	do {                                                                   \
		if (__builtin_expect(instrument_is_on, false))                 \
			call;                                                  \
	} while (0)
#endif

/* From here until instrument_ignore_end the runtime ignores this thread's reads
 * and writes.  Calls may be nested. */
static inline void instrument_ignore(void)
{
	INSTRUMENT_IF(instrument_look_away());
}

/* Ends the effect of the matching instrument_ignore. */
static inline void instrument_ignore_end(void)
{
	INSTRUMENT_IF(instrument_look_again());
}

/* Orders what this thread did so far before what another thread does after its
 * call of instrument_happens_after with the same address. */
static inline void instrument_happens_before(void *what)
{
	INSTRUMENT_IF(instrument_release(what));
}

/* Orders what other threads did before their instrument_happens_before with the
 * same address before what this thread does from here on. */
static inline void instrument_happens_after(void *what)
{
	INSTRUMENT_IF(instrument_acquire(what));
}

#endif
