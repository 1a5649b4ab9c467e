/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides whether a process trusts the broker of a user.  A process gets its
 * receive socket from the broker.  So the broker can read, forge and drop
 * frames, and by the keys in the frames it can read and write registered
 * memory.  A process therefore refuses the broker of another ordinary user,
 * unless ADVERB_BROKER_USER names that user, and sends nothing to a broker that
 * it refuses.
 *
 * SO_PEERCRED gives the uid of a broker's user.  In a user namespace it gives
 * the overflow uid for every user that has no number there.  So a broker of the
 * overflow uid is not trusted.  If the network namespace belongs to the user
 * namespace, the overflow uid is judged like any other uid: only a process with
 * power over both namespaces can bring a user without a number into such a
 * network namespace.
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
	TRUST_NAMED,  /* another user, which ADVERB_BROKER_USER names */
};

/* Says whether a broker of that user may serve this process, and why.  Root,
 * and a program with more rights than its caller (AT_SECURE), trust
 * TRUST_SYSTEM alone. */
enum trust trust_in(uid_t user);
/* Writes to text, of size bytes, why the broker of that user is not trusted and
 * what to do: a sentence without a full stop.  pid: the broker; 0: the
 * broker is not visible. */
void trust_refusal(uid_t user, pid_t pid, char *text, size_t size);
/* Returns whether this program has more rights than its caller (set-user-ID,
 * file capabilities).  Such a program starts no broker, since its caller could
 * disturb that broker. */
bool trust_is_privileged(void);

#endif
