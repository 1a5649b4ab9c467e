/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Annotations for a program that is built with ThreadSanitizer and uses adverb
 * libraries that are built without it.  The sanitizer's runtime, which is part
 * of such a program, sees the memory that adverb's calls of libc functions
 * access (memcpy, recvmsg, free).  It does not see adverb's atomics, which
 * order these accesses, and would report races that do not exist.  So the
 * annotations have the runtime ignore a thread's accesses while the thread
 * holds a lock of adverb's.  They also tell the runtime the order on which
 * programs rely: what a thread did before it posted a request happens before
 * what a thread does after it has polled the completion.
 *
 * In a program without the runtime, an annotation costs one test of a variable.
 * In adverb's own ThreadSanitizer build the annotations do nothing.
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
 * constructor.  The four functions below may be called only if the variable is
 * true: they call the runtime for the annotations at the end of this file. */
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

/* Has the runtime ignore this thread's reads and writes until
 * instrument_ignore_end.  Calls may be nested. */
static inline void instrument_ignore(void)
{
	INSTRUMENT_IF(instrument_look_away());
}

/* Ends the effect of the matching instrument_ignore. */
static inline void instrument_ignore_end(void)
{
	INSTRUMENT_IF(instrument_look_again());
}

/* Tells the runtime that what this thread has done so far happens before what
 * another thread does after its instrument_happens_after of the same address.
 */
static inline void instrument_happens_before(void *what)
{
	INSTRUMENT_IF(instrument_release(what));
}

/* Tells the runtime that what this thread does next happens after what other
 * threads did before their instrument_happens_before of the same address. */
static inline void instrument_happens_after(void *what)
{
	INSTRUMENT_IF(instrument_acquire(what));
}

#endif
