/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of strangers, as a process's name is: fit for a terminal and for JSON.
 */
#ifndef UTIL_PRINTABLE_H
#define UTIL_PRINTABLE_H

/* Each byte that is no printable ASCII becomes '?'. */
static inline void printable_make(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

#endif
