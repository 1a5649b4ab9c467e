/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that were built with ThreadSanitizer.  Its runtime, which such a
 * program brings along, sees what our calls into libc touch (memcpy, recvmsg,
 * free), but not the atomics that order them: it would report races of ours
 * that are none.  So it is asked to look away while a thread has a lock of
 * ours.  And it is told the order on which programs rely: what was done before
 * a request was posted comes before what is done after a completion was polled.
 *
 * Where a program has no such runtime, a look whether it is so is the cost.
 * What is itself built with ThreadSanitizer needs none
 * of it.
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

/* Another matter: does this program run under valgrind? */
bool instrument_by_valgrind(void);

/* instrument.c: is there such a runtime?  And what follows to it. */
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

/* What this thread does from here on is not looked at; may be nested. */
static inline void instrument_ignore(void)
{
	INSTRUMENT_IF(instrument_look_away());
}

static inline void instrument_ignore_end(void)
{
	INSTRUMENT_IF(instrument_look_again());
}

/* What this thread did so far comes before what another does after it heard of
 * the same. */
static inline void instrument_happens_before(void *what)
{
	INSTRUMENT_IF(instrument_release(what));
}

static inline void instrument_happens_after(void *what)
{
	INSTRUMENT_IF(instrument_acquire(what));
}

#endif
