/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cases: runs the cases of a check program, a line each, `ok NAME` or `FAIL
 * NAME: why`, and their count at the end.  One thread.
 */
#ifndef TESTS_SYSTEM_LIB_CHECK_H
#define TESTS_SYSTEM_LIB_CHECK_H

#include <stdbool.h>

/* The first that does not hold is what the running case says. */
#define EXPECT(good)                                                           \
	do {                                                                   \
		if (!(good))                                                   \
			check_wrong(__LINE__, #good);                          \
	} while (0)

void check_run(const char *name, void (*body)(void));
/* Used by EXPECT; errno is printed too. */
void check_wrong(int line, const char *good);
/* The same as pieces, for cases with arguments; name is borrowed until done. */
void check_begin(const char *name);
void check_done(void);
/* All that do not hold are said, in these words. */
void check_expect(bool good, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Has the running case found something wrong? */
bool check_is_wrong(void);
/* Has a case failed that has ended? */
bool check_has_failed(void);
/* Prints the count; the exit status. */
int check_end(void);

#endif
