/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of another process, by process_vm_readv and process_vm_writev.
 * A message's body and its last bytes are two stretches of one call, which
 * the kernel stores one after the other (docs/decisions/008).  What it shares
 * and we have mapped as well is copied without a call (docs/decisions/020).
 *
 * A process that executes another program keeps its number: who uses this
 * looks at hca_is_alive after a call, for what came before it has gone to the
 * program that was meant.
 */
#ifndef MEMORY_SPACE_OTHER_H
#define MEMORY_SPACE_OTHER_H

#include <sys/types.h>

#include "hca/access.h"
#include "hca/space.h"

struct peer_maps;

struct space_other {
	struct space space;
	pid_t pid;
	/* Borrowed: our access slot there; NULL: never revoked.  And what is
	 * mapped here; NULL: nothing. */
	struct access *access;
	struct peer_maps *peer_maps;
};

void space_other_init(struct space_other *s, pid_t pid);

#endif
