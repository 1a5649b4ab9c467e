/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A class's page: 8192 bytes that its process writes and every other process
 * of the namespace may read, for flow control.  A sealed memfd of the
 * broker's, kept as long as the class's socket: who has it mapped sees the
 * next owner's contents, zeroed and with another generation.  Whatever stands
 * in it is input, not to be trusted.
 *
 *	+ - - - - - - - - - - - - - - - - - - - - - - - - +------------+
 *	| the owner's, SHARED_PAGE_OWNER_BYTES                   | generation |
 *	+ - - - - - - - - - - - - - - - - - - - - - - - - +------------+
 */
#ifndef BROKER_SHARED_PAGE_H
#define BROKER_SHARED_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARED_PAGE_BYTES	8192
#define SHARED_PAGE_OWNER_BYTES (SHARED_PAGE_BYTES - sizeof(uint64_t))

/* A zeroed page: a descriptor to write by, owned by the caller; -errno. */
int shared_page_new(void);
/* A descriptor that can only read it; -errno. */
int shared_page_reader(int fd);
/* Zero the owner's part; the generation is the class's, one higher a time. */
void shared_page_clear(int fd, uint64_t generation);
uint64_t shared_page_generation(int fd);
/* Copies a part of what stands in it; false without a page, fd < 0. */
bool shared_page_copy(int fd, size_t offset, size_t bytes, void *to);
/* Map it, by the descriptor of either kind; NULL when that does not go. */
void *shared_page_map(int fd, int protection);
void shared_page_unmap(const void *page);

#endif
