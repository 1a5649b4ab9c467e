/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/instrument.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define OF_PROGRAM __attribute__((weak))
#define RARE	   __attribute__((cold, noinline))

/* Functions of ThreadSanitizer's runtime; NULL in a program without it.  Reads
 * and writes have separate functions, since clang's runtime exports no function
 * for both. */
void AnnotateIgnoreReadsBegin(const char *file, int line) OF_PROGRAM;
void AnnotateIgnoreReadsEnd(const char *file, int line) OF_PROGRAM;
void AnnotateIgnoreWritesBegin(const char *file, int line) OF_PROGRAM;
void AnnotateIgnoreWritesEnd(const char *file, int line) OF_PROGRAM;
void __tsan_release(void *what) OF_PROGRAM;
void __tsan_acquire(void *what) OF_PROGRAM;

bool instrument_is_on;

/* Runs before any code takes a lock of adverb's.  If instrument_is_on
 * changed while a thread has a lock, instrument_ignore_end would reach the
 * runtime without the instrument_ignore before it. */
__attribute__((constructor(101))) static void find_runtime(void)
{
	instrument_is_on = __tsan_release != NULL;
}

RARE void instrument_look_away(void)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

RARE void instrument_look_again(void)
{
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

RARE void instrument_release(void *what)
{
	__tsan_release(what);
}

RARE void instrument_acquire(void *what)
{
	__tsan_acquire(what);
}

/* valgrind preloads libraries named vgpreload_* into the programs that it
 * runs. */
bool instrument_by_valgrind(void)
{
	const char *preloaded = secure_getenv("LD_PRELOAD");

	return preloaded && strstr(preloaded, "/vgpreload_");
}
