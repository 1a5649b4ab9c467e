/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory: see dm.c.  The memory may have several handles. */
#ifndef VERBS_DM_H
#define VERBS_DM_H

#include "util/list.h"
#include "verbs/object.h"

enum { DM_BYTES = 1 << 20 }; /* in all, a process */

struct dm_memory {
	struct list link;
	uint8_t *bytes;
	size_t length;
	uint32_t handle;
	uint32_t holders; /* handles on it, imported ones too */
	/* Open, so that peers of this host can map it (memory/mr_file.h); or
	 * -1.
	 */
	int fd;
};

struct v_dm {
	struct ibv_dm base;
	struct dm_memory *memory;
	struct count users; /* regions */
};

#endif
