/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sentences for people, on stderr.  A sentence is printed once per cause, and
 * not at all with ADVERB_EXPLAIN=0.  Thread-safe; keeps errno.
 */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include <stdint.h>

/*
 * Prints "adverb: ", the sentence and a newline in one write.  @key names the
 * cause: a second sentence with the same key is not printed.  Zero is no key.
 */
void log_say(uint64_t key, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
