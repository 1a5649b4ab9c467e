/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which users' brokers a process trusts.  A broker gives the receive socket.
 * It can read, forge and drop frames, and by the keys in them read and write
 * registered memory: so a process refuses the broker of another ordinary user,
 * and sends it nothing.
 *
 * The kernel says which user it is (SO_PEERCRED).  In a user namespace all
 * users without a number there share one, the overflow uid, which is not
 * trusted; but if the network namespace belongs to that user namespace, no such
 * user is there, and the uid is one user's.
 *
 * No state.  Thread-safe.
 */
#ifndef BROKER_TRUST_H
#define BROKER_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The system account is the user that owns this folder, if the folder
 * exists. */
#define TRUST_FOLDER "/run/adverb"

enum trust {
	TRUST_NOT,
	TRUST_OWN,    /* this process's own user */
	TRUST_SYSTEM, /* root, or the system account */
	TRUST_TOLD,   /* the user that ADVERB_BROKER_USER names */
};

/* Whether a broker of that user may serve this process.  Root, and a program
 * with more rights than its caller (AT_SECURE), trust TRUST_SYSTEM alone. */
enum trust trust_in(uid_t user);
/* Whether the process at the other end of a connection may serve this one.
 * Sets *user, and *pid; 0: the process is not visible. */
enum trust trust_peer(int socket, uid_t *user, pid_t *pid);
/* Writes why that broker is not trusted, and what to do: a sentence without a
 * full stop. */
void trust_refusal(uid_t user, pid_t pid, char *text, size_t size);
/* Whether this program has more rights than its caller (set-user-ID, file
 * capabilities).  Then it starts no broker, which that caller could disturb. */
bool trust_is_privileged(void);

#endif
