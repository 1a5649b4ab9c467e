/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory (ibv_alloc_dm): see dm.c.  Several handles may refer to the
 * same memory.  Lock: dm_lock of dm.c, a leaf, covers struct dm_memory and
 * v_dm.is_given_back.
 */
#ifndef VERBS_DM_H
#define VERBS_DM_H

#include "util/list.h"
#include "verbs/object.h"

enum { DM_BYTES = 1 << 20 }; /* the device memory of a process */

struct dm_memory {
	struct list link; /* in dm.c's list of all device memory */
	uint8_t *bytes;	  /* the mapping of the memory's file */
	size_t length;	  /* bytes */
	uint32_t handle;  /* by which ibv_import_dm finds the memory */
	uint32_t holders; /* the number of handles, imported ones included */
	/* The memory's file, kept open for peers of this host that map the file
	 * (memory/mr_file.h); -1: the file was closed. */
	int fd;
};

struct v_dm {
	struct ibv_dm base;
	struct dm_memory *memory; /* one of its holders is this handle */
	struct count users;	  /* memory regions on this handle */
	/* ibv_unimport_dm was called while `users` was not 0.  The last region
	 * frees the handle. */
	bool is_given_back;
};

/* Ends the use of the handle by a memory region. */
void v_dm_drop(struct v_dm *dm);

#endif
