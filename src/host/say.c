/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences for people, on stderr; never twice for one cause. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/heard.h"
#include "host/host.h"
#include "util/bits.h"
#include "util/firsts.h"

static struct firsts said; /* then it is silent */

void host_say(uint64_t key, const char *fmt, ...)
{
	const char *wish = getenv("ADVERB_EXPLAIN");
	char line[640] = "adverb: ";
	size_t at = strlen(line), room = sizeof line - at - 1;
	int n;
	va_list args;

	if ((wish && strcmp(wish, "0") == 0) || !firsts_add(&said, key))
		return;
	va_start(args, fmt);
	n = vsnprintf(line + at, room, fmt, args);
	va_end(args);
	if (n > 0)
		at += bits_min_u64((uint64_t)n, room - 1);
	line[at++] = '\n';
	heard_write(line, at);
}
