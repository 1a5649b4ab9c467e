/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This process's own memory as a struct space (hca/space.h).  The functions of
 * copy_nofault.h make the copies; while copy_nofault_is_on returns false, the
 * kernel makes them.  Both report memory that the program has unmapped, where
 * memcpy would crash.  An atomic is a processor instruction after a check of
 * the page.  If the program unmaps the page between the check and the
 * instruction, the program crashes, as with any use of unmapped memory.
 *
 * Several threads may copy at once: one that makes progress, and others that
 * poll a completion queue or execute requests under a post lock.  The only
 * state that they share, the memfd, has its own lock.
 */
#ifndef MEMORY_SPACE_SELF_H
#define MEMORY_SPACE_SELF_H

#include "hca/space.h"
#include "util/lock.h"

struct space_self {
	struct space space;
	int pid; /* this process */
	/* The file by which copies go where a filter (seccomp) refuses
	 * process_vm_readv and process_vm_writev; -1: no copy has needed it, or
	 * it could not be made.
	 */
	_Atomic int memfd;
	/* Held while memfd is made, and while its contents are used. */
	struct lock lock;
};

/* Initialises s for the calling process. */
void space_self_init(struct space_self *s);
/* Closes the memfd. */
void space_self_fini(struct space_self *s);

#endif
