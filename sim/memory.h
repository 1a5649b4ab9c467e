/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain bytes as an application's address space, for worlds and scenarios that
 * have no process: the addresses [va, va + size) are those of `bytes`, and any
 * other address gives -EFAULT.  The caller owns the structures and the bytes.
 * No lock.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/space.h"

struct memory {
	struct space space; /* the first member: the ops cast its address */
	uint8_t *bytes;
	uint64_t va;
	uint64_t size; /* how many bytes `bytes` has; the caller may change
			it at any time */
};

/* A struct memory as another process reaches it.  That process can execute
 * atomics there only if the process has mapped the memory. */
struct memory_elsewhere {
	struct space space; /* the first member: the ops cast its address */
	struct memory *of;  /* the memory; borrowed */
	bool is_mapped;	    /* the other process has mapped the memory */
	bool is_closed;	    /* reads and writes give -EPERM; the owner of this
			       struct sets it */
};

/* Makes *e the address space by which another process reaches *of, which is
 * borrowed.  If is_mapped is false, an atomic gives -EPERM. */
void memory_elsewhere(struct memory_elsewhere *e, struct memory *of,
		      bool is_mapped);
/* Makes *m an address space of size bytes at address va; bytes are borrowed. */
void memory_init(struct memory *m, uint8_t *bytes, uint64_t va, uint64_t size);

#endif
