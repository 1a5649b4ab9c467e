/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This process's own memory as a struct space (hca/space.h).  Copies are those
 * of copy_nofault.h, or the kernel copies: both report memory that the program
 * has unmapped, where memcpy would crash.  An atomic is a processor instruction
 * after a check of the page; if the program unmaps the page between the two,
 * the program crashes, as with any use of unmapped memory.
 *
 * Several threads may copy at once: one that makes progress, and others that
 * poll a completion queue.  The only shared state, the memfd, has a lock of its
 * own.
 */
#ifndef MEMORY_SPACE_SELF_H
#define MEMORY_SPACE_SELF_H

#include "hca/space.h"
#include "util/lock.h"

struct space_self {
	struct space space;
	int pid;
	_Atomic int memfd; /* the fallback; -1 while process_vm_writev works */
	struct lock lock;  /* protects the contents of memfd */
};

/* Initialises s for the calling process. */
void space_self_init(struct space_self *s);
/* Closes the memfd. */
void space_self_fini(struct space_self *s);

#endif
