/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions for verbs that fail.  Each but v_tells_tries prints a message to
 * the user by log_say, once for each cause and text, sets errno, and returns
 * what the verb returns.  In the comments of this folder, "with a message"
 * means that a function of this file prints a message.  No lock.
 */
#ifndef VERBS_FAIL_H
#define VERBS_FAIL_H

#include <stdbool.h>
#include <stdint.h>

/* The cause of a failure, which selects the message.  The caller's string is
 * inserted into the message.  The comment of each value says what the string
 * names. */
enum v_cause {
	V_FORKED = 1,	 /* the call that a forked child made */
	V_NOT_SUPPORTED, /* the feature */
	V_LIMIT,	 /* the quantity that exceeds its limit */
	V_ACCESS,	 /* why the memory is not registered */
	V_BUSY,		 /* the call, and the objects that prevent it */
	V_INPUT,	 /* the call, and which of its arguments is wrong */
	V_MODIFY,	 /* why ibv_modify_qp fails */
	V_CONNECT,	 /* why the QP cannot take librdmacm's connection */
	V_AH,		 /* why ibv_create_ah fails */
	V_MCAST,	 /* why ibv_attach_mcast or ibv_detach_mcast fails */
	V_STATE,	 /* the state of the QP, which forbids posting */
	V_FULL,		 /* the queue to which the program posts */
	V_MEMORY,	 /* the call for which there is no memory */
	V_SYSTEM,	 /* the call that fails; strerror(err) follows */
};

/* Prints the message, which is cut to 255 bytes; with V_SYSTEM, strerror(err)
 * follows it, uncut.  Sets errno to err, and returns err.  A message is printed
 * once for each cause and text of `what`.  So `what` must not contain a value
 * that differs from call to call, such as a number. */
int v_fail(int err, enum v_cause cause, const char *what);
/* Returns whether the user wants messages about a call by which a program
 * searches for a limit (ADVERB_EXPLAIN=2).  The program expects that such a
 * call fails. */
bool v_tells_tries(void);
/* Does the work of v_fail for a verb that returns a pointer.  Returns NULL. */
void *v_fail_null(int err, enum v_cause cause, const char *what);
/* Does the work of v_fail_null with V_INPUT for an argument that is a number.
 * argument: the call and the argument's name.  why: what is wrong with the
 * number, and what to do.  The message has the number, but is printed once for
 * each text of `argument` and `why`. */
void *v_fail_number(int err, const char *argument, int64_t number,
		    const char *why);
/* Does the work of v_fail for a verb that returns -1 and errno.  Returns -1. */
int v_fail_errno(int err, enum v_cause cause, const char *what);

#endif
