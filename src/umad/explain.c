/* SPDX-License-Identifier: BSD-2-Clause */
#include "umad/explain.h"

#include <errno.h>
#include <stdarg.h>

#include "log/log.h"
#include "util/seen_set.h"

static struct seen_set said;

void u_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_once(&said, (uintptr_t)format, format, args);
	va_end(args);
}

void u_say_of(uintptr_t cause, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_once(&said, cause, format, args);
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
