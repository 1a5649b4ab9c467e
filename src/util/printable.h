/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes text that another process has chosen, for example its name, safe for a
 * terminal and, apart from quotes and backslashes, for JSON. */
#ifndef UTIL_PRINTABLE_H
#define UTIL_PRINTABLE_H

/* Replaces by '?' each byte of the text, up to its NUL, that is not printable
 * ASCII. */
static inline void printable_make(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

#endif
