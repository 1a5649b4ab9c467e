/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a verb fails: one sentence for the user (log_say, once a cause), then
 * the answer in the convention of the call.  No state, no lock.
 */
#ifndef VERBS_FAIL_H
#define VERBS_FAIL_H

#include <stdint.h>

/* The causes that have a sentence; `what` fills it in. */
enum v_cause {
	V_FORKED = 1, /* what: the call */
	V_NOT_BUILT,  /* what: the feature */
	V_LIMIT,      /* what: the limit that was passed */
	V_ACCESS,     /* what: the access flags at fault */
	V_BUSY,	      /* what: what is still in use by what */
	V_INPUT,      /* what: which argument is wrong and how */
	V_MODIFY,     /* what: why */
	V_AH,	      /* what: why */
	V_MCAST,      /* what: why */
	V_STATE,      /* what: the state of the QP */
	V_FULL,	      /* what: the queue */
	V_SYSTEM,     /* what: what could not be had; errno is added */
};

/* Say it and give err back, which errno is too: programs show that. */
int v_fail(int err, enum v_cause cause, const char *what);
/* The same of a try by which a program looks for a limit: the refusal is its
 * answer, and is told with ADVERB_EXPLAIN=2 alone. */
int v_fail_try(int err, enum v_cause cause, const char *what);
/* The same as v_fail for calls that return a pointer: NULL. */
void *v_fail_null(int err, enum v_cause cause, const char *what);
/* And for those that return -1. */
int v_fail_errno(int err, enum v_cause cause, const char *what);

#endif
