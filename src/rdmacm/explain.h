/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm's messages to the user, on stderr: each cause once in a process,
 * and none with ADVERB_EXPLAIN=0.  The functions take no lock, so that they can
 * be called under any lock.  r_say and r_say_of leave errno unchanged.
 */
#ifndef RDMACM_EXPLAIN_H
#define RDMACM_EXPLAIN_H

/* Prints the message.  The address of the format identifies the cause, so the
 * format must be a literal. */
void r_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the sentence, which another module has made.  `cause` identifies the
 * cause of the message: a number below 4095. */
void r_say_of(unsigned cause, const char *sentence);

/* Returns why the broker or the fabric refuses a request.  err: the errno value
 * of the answer, positive.  The string is valid until this thread calls
 * r_reason or strerror. */
const char *r_reason(int err);

/*
 * Prints the message as r_say does, sets errno to err, and returns -1, the
 * result of a call of the ABI that fails.  The message names the call, or
 * begins with "rdma_cm" where several calls can fail so.
 */
int r_fail(int err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
