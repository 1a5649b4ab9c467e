/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/instrument.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define OF_PROGRAM __attribute__((weak))
#define RARE	   __attribute__((cold, noinline))

/* Functions of ThreadSanitizer's runtime, in the program.  clang's runtime
 * exports no single function that ignores reads and writes. */
void AnnotateIgnoreReadsBegin(const char *file, int line) OF_PROGRAM;
void AnnotateIgnoreReadsEnd(const char *file, int line) OF_PROGRAM;
void AnnotateIgnoreWritesBegin(const char *file, int line) OF_PROGRAM;
void AnnotateIgnoreWritesEnd(const char *file, int line) OF_PROGRAM;
void __tsan_release(void *what) OF_PROGRAM;
void __tsan_acquire(void *what) OF_PROGRAM;

bool instrument_is_on;

/* Runs before the program or another library of adverb's can take a lock, so
 * that ignore and ignore_end always come in pairs. */
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
