/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of this network namespace that listen at abstract names, with
 * their users, as the kernel lists them by sock_diag(7).  /proc/net/unix has
 * the names without the users.  No lock.
 */
#ifndef WIRE_LISTENERS_H
#define WIRE_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct listener {
	/* The name without the NUL that precedes an abstract name.  The bytes
	 * are borrowed until `see` returns; no NUL follows them, and any user
	 * may have chosen them. */
	const char *name;
	size_t bytes; /* the length of `name` */
	/* The user that made the socket, in the caller's user namespace. */
	uid_t user;
};

/* Calls `see` for each socket of SOCK_SEQPACKET that listens at an abstract
 * name, until `see` returns false.  Returns true if `see` was called for each
 * of them or has returned false.  Returns false if the process has no free
 * descriptor, or if the kernel does not list all sockets or their users (before
 * Linux 5.3); `see` may have been called then. */
bool listeners_each(bool (*see)(void *arg, const struct listener *l),
		    void *arg);

#endif
