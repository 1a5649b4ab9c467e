/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This process's own memory as an hca/space.  Copies are guarded
 * (copy_nofault.h), or made by the kernel, which answers EFAULT where a plain
 * copy would crash on memory that the program has unmapped.  An atomic is a
 * real one; a page that the program unmaps between our look at it and the
 * operation crashes the program, as any use of unmapped memory does.
 *
 * Lock: the progress lock (the fallback's file is shared).
 */
#ifndef MEMORY_SPACE_SELF_H
#define MEMORY_SPACE_SELF_H

#include "hca/space.h"
#include "util/lock.h"

struct space_self {
	struct space space;
	int pid;
	_Atomic int memfd; /* -1 while process_vm_writev works */
	struct lock lock;  /* of what lies there on its way */
};

void space_self_init(struct space_self *s);
void space_self_fini(struct space_self *s);

#endif
