/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check: the cases of a test program that uses no test library.  The program
 * prints a line for each case, `ok NAME` or `FAIL NAME: why`, and the counts at
 * the end.  One case runs at a time; any number of threads may run in the case.
 *
 * Two environment variables choose cases.  CHECK_ONLY: a pattern of fnmatch(3);
 * only cases whose names match run.  CHECK_LIST: no case runs, and a line `case
 * NAME` is printed for each case that would run.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdbool.h>

/* The case that runs has failed if `good` is false, and goes on.  The line of
 * the case gives the first such expression, unless check_expect failed before.
 */
#define EXPECT(good)                                                           \
	do {                                                                   \
		if (!(good))                                                   \
			check_wrong(__LINE__, #good);                          \
	} while (0)

/* Ends the program, from any thread, if `good` is false: for programs whose
 * other threads would otherwise wait for ever. */
#define NEED(good)                                                             \
	do {                                                                   \
		if (!(good))                                                   \
			check_die(__LINE__, #good);                            \
	} while (0)

/* Does this run list the cases only?  Then a program need not open what its
 * cases use. */
bool check_lists(void);
/* Returns whether a case of this name is to run.  If the run only lists the
 * cases, prints the name if CHECK_ONLY chooses the case, and returns false. */
bool check_is_chosen(const char *name);
/* Runs one case, if it is chosen.  name is borrowed until the return. */
void check_run(const char *name, void (*body)(void));
/* Used by EXPECT: makes the line, the expression and errno the reason why the
 * case that runs has failed, unless the case has a reason already. */
void check_wrong(int line, const char *good);
/* Used by NEED; prints errno too, and exits with status 1. */
_Noreturn void check_die(int line, const char *good);
/* Ends the program as NEED does if `good` is false; the line that is printed
 * names `what` in place of the expression. */
void check_need(bool good, const char *what);
/* check_run in two calls, for a case with arguments that is chosen.  name is
 * borrowed until check_done. */
void check_begin(const char *name);
void check_done(void);
/* The case that runs has failed if `good` is false.  The line of the case gives
 * the texts of all such calls, as far as 511 bytes hold them. */
void check_expect(bool good, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Has the case that runs failed so far? */
bool check_is_wrong(void);
/* Has any case that has ended failed? */
bool check_has_failed(void);
/* Prints the counts.  Returns the exit status: 1 if a case has failed, else 0.
 */
int check_end(void);

#endif
