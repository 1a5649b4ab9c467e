/* SPDX-License-Identifier: BSD-2-Clause */
/* One sentence a cause: see explain.h. */
#include "umad/explain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/stderr.h"
#include "util/seen_set.h"

static struct seen_set said;

void u_say(const char *format, ...)
{
	const char *wish = secure_getenv("ADVERB_EXPLAIN");
	char line[640] = "adverb: ";
	size_t at = strlen(line), room = sizeof(line) - at - 1;
	va_list args;
	int saved = errno, n;

	if ((wish && !strcmp(wish, "0")) ||
	    !seen_set_add(&said, (uintptr_t)format))
		return;
	va_start(args, format);
	n = vsnprintf(line + at, room, format, args);
	va_end(args);
	if (n > 0)
		at += (size_t)n < room ? (size_t)n : room - 1;
	line[at++] = '\n';
	stderr_write(line, at);
	errno = saved;
}

int u_no_port(const char *call)
{
	u_say("management datagrams (umad) are not built yet: %s fails with "
	      "ENODEV; ibv_devinfo shows the devices there are",
	      call);
	errno = ENODEV;
	return -ENODEV;
}
