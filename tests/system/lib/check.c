/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int passed, failed;
static const char *running;
static char wrong[512]; /* what the running case found */

void check_wrong(int line, const char *good)
{
	if (!wrong[0])
		snprintf(wrong, sizeof(wrong), "line %d: not %s (errno %d)",
			 line, good, errno);
}

bool check_is_wrong(void)
{
	return wrong[0];
}

bool check_has_failed(void)
{
	return failed;
}

void check_expect(bool good, const char *format, ...)
{
	size_t used = strlen(wrong);
	va_list args;

	if (good)
		return;
	if (used)
		used += (size_t)snprintf(wrong + used, sizeof(wrong) - used,
					 "; ");
	if (used >= sizeof(wrong))
		return;
	va_start(args, format);
	vsnprintf(wrong + used, sizeof(wrong) - used, format, args);
	va_end(args);
}

void check_begin(const char *name)
{
	running = name;
	wrong[0] = 0;
}

void check_done(void)
{
	printf("%s %s%s%s\n", wrong[0] ? "FAIL" : "ok", running,
	       wrong[0] ? ": " : "", wrong);
	fflush(stdout);
	passed += !wrong[0];
	failed += !!wrong[0];
}

void check_run(const char *name, void (*body)(void))
{
	check_begin(name);
	body();
	check_done();
}

int check_end(void)
{
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed ? 1 : 0;
}
