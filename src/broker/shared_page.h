/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of a class: 8192 bytes that the class's process writes and other
 * processes of the same user read, for flow control.  A sealed memfd of the
 * broker's, kept as long as the class's socket: a process that has the page
 * mapped sees the next owner's contents, zeroed and with another generation.
 * The broker and readers treat the contents as input.
 *
 *	+ - - - - - - - - - - - - - - - - - - - - - - - - +------------+
 *	| the owner's, SHARED_PAGE_OWNER_BYTES            | generation |
 *	+ - - - - - - - - - - - - - - - - - - - - - - - - +------------+
 */
#ifndef BROKER_SHARED_PAGE_H
#define BROKER_SHARED_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARED_PAGE_BYTES	8192
#define SHARED_PAGE_OWNER_BYTES (SHARED_PAGE_BYTES - sizeof(uint64_t))

/* Makes a zeroed page.  Returns a descriptor for writing, owned by the caller;
 * -errno. */
int shared_page_new(void);
/* Returns a read-only descriptor of the page at fd, owned by the caller;
 * -errno. */
int shared_page_reader(int fd);
/* Zeroes the owner's part and writes the generation, which grows by one with
 * each owner of the class. */
void shared_page_clear(int fd, uint64_t generation);
/* Reads the generation of the page; 0 without a page (fd < 0). */
uint64_t shared_page_generation(int fd);
/* Copies bytes of the page from offset on; false without a page (fd < 0). */
bool shared_page_copy(int fd, size_t offset, size_t bytes, void *to);
/* Maps the page at fd, a descriptor for writing or a read-only one, with the
 * PROT_* bits `protection`; NULL: fd is not a sealed page, or there is no
 * memory. */
void *shared_page_map(int fd, int protection);
/* Unmaps a page that shared_page_map has mapped, or does nothing for NULL. */
void shared_page_unmap(const void *page);

#endif
