/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that parse the arguments of the check programs.  A program must
 * reject an unknown word or an invalid number: it must not run a check for
 * which its caller has not asked. */
#ifndef TESTS_SYSTEM_LIB_ARGUMENT_H
#define TESTS_SYSTEM_LIB_ARGUMENT_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Is the text a decimal number from @least, which is not negative, to INT_MAX?
 * Stores the number in *value if so. */
static inline bool argument_number(const char *text, int least, int *value)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (!*text || *end || errno || n < least || n > INT_MAX)
		return false;
	*value = (int)n;
	return true;
}

/* Is the text one of the words?  @words ends with NULL. */
static inline bool argument_is(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(text, *words))
			return true;
	return false;
}

#endif
