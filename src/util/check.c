/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_fail(const char *file, int line, const char *cond)
{
	fprintf(stderr,
		"adverb: broken invariant at %s:%d: %s: adverb has a bug and "
		"ends the program; report this line\n",
		file, line, cond);
	abort();
}
