/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes text that another process has chosen, as its name, fit for a terminal
 * and for JSON. */
#ifndef UTIL_PRINTABLE_H
#define UTIL_PRINTABLE_H

/* Replaces each byte that is not printable ASCII by '?'. */
static inline void printable_make(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

#endif
