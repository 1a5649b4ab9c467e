/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the user, once for each cause: see explain.h. */
#include "rdmacm/explain.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "log/log.h"
#include "rdmacm/ib.h"
#include "util/seen_set.h"

#define FULL_SHARE                                                             \
	"one user may hold at most as many ids, listeners and connections "    \
	"as remain free for all users, and this user already holds that "      \
	"many; close some"

/* The causes for which a message was printed.  After the set is full, no
 * message is printed. */
static struct seen_set said;

void r_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_once(&said, (uintptr_t)format, format, args);
	va_end(args);
}

static void say_as(uintptr_t cause, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_once(&said, cause, format, args);
	va_end(args);
}

/* A key below 4096 differs from the address of any format: nothing is mapped in
 * the first page. */
void r_say_of(unsigned cause, const char *sentence)
{
	say_as(cause + 1, "%s", sentence);
}

const char *r_reason(int err)
{
	if (err != EDQUOT)
		return strerror(err);
	return r_ib_is_used() ? FULL_SHARE
			      : FULL_SHARE ", or use a broker of your own "
					   "(adverb run --private -- PROGRAM)";
}

int r_fail(int err, const char *format, ...)
{
	va_list args;

	errno = err;
	va_start(args, format);
	log_once(&said, (uintptr_t)format, format, args);
	va_end(args);
	errno = err;
	return -1;
}
