/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libibumad says to the user: one sentence on stderr, once a process.
 * ADVERB_EXPLAIN=0 silences it.  Takes no lock, keeps errno.
 */
#ifndef UMAD_EXPLAIN_H
#define UMAD_EXPLAIN_H

/*
 * No port takes management datagrams, says the sentence, naming the ABI's
 * function `call`.  Answers -ENODEV and sets errno, as this ABI does.
 */
int u_no_port(const char *call);

#endif
