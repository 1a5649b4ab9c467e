/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences for people, on stderr; never twice for one cause. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/heard.h"
#include "host/host.h"
#include "util/bits.h"
#include "util/lock.h"

#define SAY_CAUSES 64 /* then it is silent */

static bool is_new(uint64_t key)
{
	static struct alock lock;
	static uint64_t said[SAY_CAUSES];
	static uint32_t count;
	uint32_t i = 0;
	bool fresh;

	alock_take(&lock);
	while (i < count && said[i] != key)
		i++;
	fresh = i == count && count < SAY_CAUSES;
	if (fresh)
		said[count++] = key;
	alock_give(&lock);
	return fresh;
}

void host_say(uint64_t key, const char *fmt, ...)
{
	const char *wish = getenv("ADVERB_EXPLAIN");
	char line[640] = "adverb: ";
	size_t at = strlen(line), room = sizeof line - at - 1;
	int n;
	va_list args;

	if ((wish && strcmp(wish, "0") == 0) || !is_new(key))
		return;
	va_start(args, fmt);
	n = vsnprintf(line + at, room, fmt, args);
	va_end(args);
	if (n > 0)
		at += bits_min_u64((uint64_t)n, room - 1);
	line[at++] = '\n';
	heard_write(line, at);
}
