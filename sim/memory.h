/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain bytes as an application's address space, for worlds and scenarios that
 * have no process: va .. va + size are `bytes`, all else faults.
 * Owner: whoever has it; bytes are borrowed.  No lock.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/space.h"

struct memory {
	struct space space; /* first: the callbacks get this */
	uint8_t *bytes;
	uint64_t va;
	uint64_t size; /* may change: -EFAULT from here on */
};

/* The same as another process reaches it, which can do atomics there if it is
 * mapped by both. */
struct memory_elsewhere {
	struct space space;
	struct memory *of;
	bool is_mapped;
	bool is_closed; /* -EPERM from here on */
};

void memory_elsewhere(struct memory_elsewhere *e, struct memory *of,
		      bool is_mapped);
void memory_init(struct memory *m, uint8_t *bytes, uint64_t va, uint64_t size);

#endif
