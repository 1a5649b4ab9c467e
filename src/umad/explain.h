/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libibumad says to the user: one sentence on stderr for each cause, once
 * a process.  ADVERB_EXPLAIN=0 silences it.  Takes no lock.
 */
#ifndef UMAD_EXPLAIN_H
#define UMAD_EXPLAIN_H

/*
 * No port takes management datagrams, says the sentence, naming the ABI's
 * function `call`.  Answers -ENODEV and sets errno, as this ABI does.
 */
int u_no_port(const char *call);

/*
 * Says the sentence; the cause is the format, by its address: give literals.
 * Keeps errno.
 */
void u_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
