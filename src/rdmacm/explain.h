/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdmacm says to the user: one sentence on stderr for each cause, once
 * a process.  ADVERB_EXPLAIN=0 silences it.  Takes no lock, keeps errno.
 */
#ifndef RDMACM_EXPLAIN_H
#define RDMACM_EXPLAIN_H

enum r_cause {
	R_NO_CM,     /* a connection-manager call */
	R_NO_SOCKET, /* a call of the socket emulation */
	R_CAUSES
};

/* `call` is the name of the ABI's function that fails. */
void r_explain(enum r_cause cause, const char *call);

/* Explain, then answer in the ABI's convention: -1 and errno ENODEV. */
int r_no_cm(const char *call);

#endif
