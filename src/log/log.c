/* SPDX-License-Identifier: BSD-2-Clause */
#include "log/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log/stderr.h"
#include "util/bits.h"
#include "util/seen_set.h"

#define DETAIL_BITS 56

static struct seen_set said; /* once the set is full, no message is printed */

/* Returns a number for the cause and the low DETAIL_BITS bits of `detail`.  The
 * number is not 0. */
static uint64_t key_of(enum log_cause cause, uint64_t detail)
{
	return ((uint64_t)cause + 1) << DETAIL_BITS |
	       (detail & ((1ull << DETAIL_BITS) - 1));
}

void log_once(struct seen_set *seen, uint64_t cause, const char *format,
	      va_list args)
{
	char line[640] = "adverb: ";
	size_t at = strlen(line), room = sizeof(line) - at - 1;
	int saved = errno, n;

	if (stderr_is_silent() || !seen_set_add(seen, cause))
		return;
	n = vsnprintf(line + at, room, format, args);
	if (n > 0)
		at += bits_min_u64((uint64_t)n, room - 1);
	line[at++] = '\n';
	stderr_write(line, at);
	errno = saved;
}

void log_say(enum log_cause cause, uint64_t detail, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_once(&said, key_of(cause, detail), format, args);
	va_end(args);
}
