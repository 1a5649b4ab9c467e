/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of a class: 8192 bytes that the process of the class writes and
 * other processes of the same user read (engine/credit.h).  The page is a
 * sealed memfd of the broker.  When the class is released, and again before the
 * class gets another owner, the page is zeroed and its generation changes, so
 * that a process that still has the page mapped can tell the new owner from the
 * old one.  Only the shm acks (engine/shm_ack.h) stay until the class gets
 * another owner: the last ACK packets of the old owner may have been lost, and
 * its peers then read the shm acks.  A class that goes to another user gets a
 * new page (other_user.h).  The broker and the readers do not trust the
 * contents.  A fabric's process makes a page without a class by the same
 * functions, and shows the subnet's number of changes there
 * (tools/fabric_direct.h).
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

/* Makes a zeroed page.  Returns a descriptor for writing, owned by the caller,
 * or -errno. */
int shared_page_new(void);
/* Returns a read-only descriptor of the page at fd, owned by the caller, or
 * -errno. */
int shared_page_reader(int fd);
/* Zeroes the owner's part of the page at fd, and writes the generation.  The
 * caller adds one to the generation before each call.  False: there is no
 * memory, and the page may have its old contents. */
bool shared_page_clear(int fd, uint64_t generation);
/* For a class that was released: does what shared_page_clear does, but leaves
 * the shm acks, the member `posts` of struct credit_page. */
bool shared_page_end(int fd, uint64_t generation);
/* Returns the generation of the page at fd; 0 if fd is -1 or cannot be read. */
uint64_t shared_page_generation(int fd);
/* Copies `bytes` bytes of the page at fd from `offset` on.  False: fd is -1, or
 * the page is shorter. */
bool shared_page_copy(int fd, size_t offset, size_t bytes, void *to);
/* Returns whether fd can be a page: a memfd of SHARED_PAGE_BYTES that no
 * process can shorten or lengthen. */
bool shared_page_is(int fd);
/* Maps the page at fd, a descriptor for writing or a read-only one, with the
 * PROT_* bits `protection`.  The caller unmaps it by shared_page_unmap and may
 * close fd.  NULL: fd is not a sealed page, or there is no memory. */
void *shared_page_map(int fd, int protection);
/* Unmaps a page that shared_page_map has mapped; does nothing for NULL. */
void shared_page_unmap(const void *page);

#endif
