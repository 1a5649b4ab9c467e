/* SPDX-License-Identifier: BSD-2-Clause */
/* The argument of librdmacm's thread (link.c): the number of the thread, and
 * the descriptor that the thread reads first.  A pointer holds both, in halves
 * of 32 bits, since a descriptor may have any number up to fs.nr_open. */
#ifndef RDMACM_LINK_THREAD_H
#define RDMACM_LINK_THREAD_H

#include <stdint.h>

_Static_assert(sizeof(void *) == sizeof(uint64_t),
	       "a pointer holds a number and a descriptor");

/* Returns the argument of the thread with this number, which reads fd.  fd is
 * not negative. */
static inline void *r_thread_pack(uint32_t number, int fd)
{
	return (void *)(uintptr_t)((uint64_t)number << 32 | (uint32_t)fd);
}

/* Returns the number of the thread with this argument. */
static inline uint32_t r_thread_number(const void *packed)
{
	return (uint32_t)((uint64_t)(uintptr_t)packed >> 32);
}

/* Returns the descriptor that the thread with this argument reads first. */
static inline int r_thread_fd(const void *packed)
{
	return (int)(uint32_t)(uintptr_t)packed;
}

#endif
