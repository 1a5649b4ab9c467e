/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* how many cases have passed, have failed */
static int passed, failed;
/* the name of the case that runs */
static const char *running;
/* Why the case that runs has failed; empty: it has not.  The threads of a case
 * write this under wrong_lock. */
static char wrong[512];
static pthread_mutex_t wrong_lock = PTHREAD_MUTEX_INITIALIZER;

void check_wrong(int line, const char *good)
{
	int err = errno;

	pthread_mutex_lock(&wrong_lock);
	if (!wrong[0])
		snprintf(wrong, sizeof(wrong), "line %d: not %s (errno %d)",
			 line, good, err);
	pthread_mutex_unlock(&wrong_lock);
}

void check_die(int line, const char *good)
{
	printf("FAIL line %d: not %s (errno %d)\n", line, good, errno);
	exit(1);
}

void check_need(bool good, const char *what)
{
	if (good)
		return;
	printf("FAIL %s (errno %d)\n", what, errno);
	exit(1);
}

bool check_is_wrong(void)
{
	bool is_wrong;

	pthread_mutex_lock(&wrong_lock);
	is_wrong = wrong[0];
	pthread_mutex_unlock(&wrong_lock);
	return is_wrong;
}

bool check_has_failed(void)
{
	return failed;
}

static void add_reason(const char *format, va_list args)
{
	size_t used = strlen(wrong);

	if (used)
		used += (size_t)snprintf(wrong + used, sizeof(wrong) - used,
					 "; ");
	if (used < sizeof(wrong))
		vsnprintf(wrong + used, sizeof(wrong) - used, format, args);
}

void check_expect(bool good, const char *format, ...)
{
	va_list args;

	if (good)
		return;
	va_start(args, format);
	pthread_mutex_lock(&wrong_lock);
	add_reason(format, args);
	pthread_mutex_unlock(&wrong_lock);
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

bool check_lists(void)
{
	return getenv("CHECK_LIST");
}

bool check_is_chosen(const char *name)
{
	const char *only = getenv("CHECK_ONLY");

	if (only && fnmatch(only, name, 0))
		return false;
	if (!check_lists())
		return true;
	printf("case %s\n", name);
	return false;
}

void check_run(const char *name, void (*body)(void))
{
	if (!check_is_chosen(name))
		return;
	check_begin(name);
	body();
	check_done();
}

int check_end(void)
{
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed ? 1 : 0;
}
