/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies behind memory of this process: a file whose pages others can map
 * as well, and a descriptor of it.  Memory of a memfd, /dev/shm, huge pages or
 * any regular file, mapped shared, in one piece; of memory that is none of it
 * nothing is found.  No lock; reads /proc.
 */
#ifndef MEMORY_MR_FILE_H
#define MEMORY_MR_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/share.h"

/*
 * The mapping that [va, va + bytes) lies in.  True: *what is filled, but for
 * serial and users; its descriptor is the caller's to close.
 */
bool mr_file_find(uint64_t va, uint64_t bytes, struct share *what);
/* The same by the text of /proc/self/maps alone, as before Linux 6.11. */
bool mr_file_find_by_text(uint64_t va, uint64_t bytes, struct share *what);
/*
 * Does the kernel say so, too, of the memory of a process that does?  What a
 * peer has mapped for writing alone we may write in its place.
 */
bool mr_file_is(int pid, const struct share *what);

#endif
