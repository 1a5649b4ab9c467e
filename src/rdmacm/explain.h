/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdmacm says to the user: one sentence on stderr for each cause, once
 * a process.  ADVERB_EXPLAIN=0 silences it.  Takes no lock, keeps errno.
 */
#ifndef RDMACM_EXPLAIN_H
#define RDMACM_EXPLAIN_H

/* The cause is the format, by its address: give literals. */
void r_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, the cause being a number below 4096: for a sentence of others. */
void r_say_of(unsigned cause, const char *sentence);

/* Why the broker refuses a request, from the errno value of its answer.  The
 * text lasts until this thread's next call. */
const char *r_reason(int err);

/*
 * Say it, then fail as the ABI does: -1 and errno.  The sentence names the
 * call first.
 */
int r_fail(int err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
