/* SPDX-License-Identifier: BSD-2-Clause */
#include "cases.h"

#include <errno.h>
#include <stdio.h>

static int passed, failed;
static char wrong[512]; /* what the running case found */

void cases_wrong(int line, const char *good)
{
	if (!wrong[0])
		snprintf(wrong, sizeof(wrong), "line %d: not %s (errno %d)",
			 line, good, errno);
}

bool cases_is_wrong(void)
{
	return wrong[0];
}

bool cases_has_failed(void)
{
	return failed;
}

void cases_run(const char *name, void (*body)(void))
{
	wrong[0] = 0;
	body();
	printf("%s %s%s%s\n", wrong[0] ? "FAIL" : "ok", name,
	       wrong[0] ? ": " : "", wrong);
	passed += !wrong[0];
	failed += !!wrong[0];
}

int cases_end(void)
{
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed ? 1 : 0;
}
