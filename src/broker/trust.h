/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose broker a process lets itself be served by.  A broker lends the receive
 * socket, can read, forge and drop frames, and by the keys in them read and
 * write registered memory: so that of another ordinary user is refused, and is
 * sent nothing at all.
 *
 * A user is known by the kernel's word (SO_PEERCRED).  In a user namespace all
 * users that have no number there share one, the overflow uid, which is nobody:
 * unless the network namespace belongs to that user namespace, and so nobody
 * else is in it.
 *
 * No state.  Thread-safe.
 */
#ifndef BROKER_TRUST_H
#define BROKER_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Owned by the system account, if there is one. */
#define TRUST_FOLDER "/run/adverb"

enum trust {
	TRUST_NOT,
	TRUST_OWN,    /* this process's own user */
	TRUST_SYSTEM, /* root, or the system account */
	TRUST_TOLD,   /* ADVERB_BROKER_USER */
};

/*
 * May a broker of that user serve this process?  Root, and a program with
 * rights that its caller has not (AT_SECURE), trust TRUST_SYSTEM alone.
 */
enum trust trust_in(uid_t user);
/* The same of the other end of a connection; its pid, 0: it is not visible. */
enum trust trust_peer(int socket, uid_t *user, pid_t *pid);
/* It is not trusted: why, and what to do; a sentence without an end. */
void trust_refusal(uid_t user, pid_t pid, char *text, size_t size);
/*
 * Does this program have rights that its caller has not (set-user-ID, file
 * capabilities)?  Then it starts no broker, which that caller could disturb.
 */
bool trust_is_privileged(void);

#endif
