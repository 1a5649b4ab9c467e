/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of another process as a struct space (hca/space.h).  Copies go by
 * process_vm_readv(2) and process_vm_writev(2).  The last bytes of a message
 * are an iovec element of their own, which the kernel stores after the rest of
 * the message (docs/decisions/008).  Memory that this process has mapped, too,
 * is copied without a system call (docs/decisions/020).
 *
 * A process that executes another program keeps its process id.  So the caller
 * calls hca_is_alive after each copy: true means that the process had not
 * executed another program when the copy was made.
 *
 * Lock: the progress lock and all post locks together, or the post lock of the
 * queue pairs that use the struct (host/local_peer.h).
 */
#ifndef MEMORY_SPACE_OTHER_H
#define MEMORY_SPACE_OTHER_H

#include <sys/types.h>

#include "hca/access.h"
#include "hca/space.h"

struct peer_maps;

struct space_other {
	struct space space;
	pid_t pid; /* the other process */
	/* This process's access slot in the other process's arena, not owned;
	 * NULL: the access is never revoked. */
	struct access *access;
	/* The mappings of the other process's memory in this process, not
	 * owned; NULL: none. */
	struct peer_maps *peer_maps;
};

/* Initialises s for process pid, with access and peer_maps NULL, which the
 * caller may set. */
void space_other_init(struct space_other *s, pid_t pid);

#endif
