/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to the user, on stderr.  A message is printed once per cause, and
 * not at all with ADVERB_EXPLAIN=0.  Thread-safe; leaves errno unchanged.
 */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include <stdint.h>

/*
 * Prints "adverb: ", the message and a newline in one write.  @key, which must
 * not be 0, identifies the cause: a second message with the same key is not
 * printed.
 */
void log_say(uint64_t key, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
