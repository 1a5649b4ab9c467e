/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of libibumad to the user: one sentence on stderr for each cause,
 * printed once in a process.  ADVERB_EXPLAIN=0 turns the messages off.  The
 * functions take no lock.
 */
#ifndef UMAD_EXPLAIN_H
#define UMAD_EXPLAIN_H

#include <stdint.h>

/* Prints that `call`, a function of the ABI, fails because the ports of RoCE
 * and iWARP devices take no management datagrams.  Prints this only for the
 * first function of a process that fails so.  Sets errno to ENODEV and returns
 * -ENODEV, as functions of this ABI do. */
int u_no_port(const char *call);

/* Prints a sentence, unless one with the same format was printed before.
 * Formats are compared by address, so the format must be a string literal.
 * Keeps errno. */
void u_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a sentence, unless one with the same `cause` was printed before.
 * `cause` is a number other than 0 that is no address of a format.  Keeps
 * errno. */
void u_say_of(uintptr_t cause, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
