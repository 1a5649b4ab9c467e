/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of libibumad to the user: one sentence on stderr for each cause,
 * once in a process.  ADVERB_EXPLAIN=0 turns them off.  Takes no lock.
 */
#ifndef UMAD_EXPLAIN_H
#define UMAD_EXPLAIN_H

/*
 * Writes the sentence that no port takes management datagrams, so that the
 * ABI's function `call` fails.  Sets errno to ENODEV and returns -ENODEV, as
 * this ABI does.
 */
int u_no_port(const char *call);

/*
 * Writes a sentence, unless one with the same format was written before.
 * Formats are compared by address, so the format must be a string literal.
 * Keeps errno.
 */
void u_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
