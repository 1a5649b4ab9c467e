/* SPDX-License-Identifier: BSD-2-Clause */
#include "umad/explain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/stderr.h"
#include "util/seen_set.h"

static struct seen_set said;

static void say_once(uintptr_t cause, const char *format, va_list args)
{
	const char *setting = secure_getenv("ADVERB_EXPLAIN");
	char line[640] = "adverb: ";
	size_t at = strlen(line), room = sizeof(line) - at - 1;
	int saved = errno, n;

	if ((setting && !strcmp(setting, "0")) || !seen_set_add(&said, cause))
		return;
	n = vsnprintf(line + at, room, format, args);
	if (n > 0)
		at += (size_t)n < room ? (size_t)n : room - 1;
	line[at++] = '\n';
	stderr_write(line, at);
	errno = saved;
}

void u_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_once((uintptr_t)format, format, args);
	va_end(args);
}

void u_say_of(uintptr_t cause, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_once(cause, format, args);
	va_end(args);
}

int u_no_port(const char *call)
{
	u_say("umad: %s fails with ENODEV: the ports of adverb's RoCE and iWARP "
	      "devices take no management datagrams; `adverb run --fabric` "
	      "starts a program with a port that does",
	      call);
	errno = ENODEV;
	return -ENODEV;
}
