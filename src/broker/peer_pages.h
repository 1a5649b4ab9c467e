/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages (shared_page.h) of other processes, which a client has asked the
 * broker for.  Owner: the client (client.h).  The lock of the client's owner
 * covers the pages.
 */
#ifndef BROKER_PEER_PAGES_H
#define BROKER_PEER_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct peer_pages;

/* Returns an empty set of pages; NULL: there is no memory. */
struct peer_pages *peer_pages_new(void);
/* Unmaps all pages.  NULL is allowed. */
void peer_pages_free(struct peer_pages *p);
/*
 * Finds the page of a class, at most STEER_CLASS_MAX.  Before the call, *page
 * is the page that the caller has, or NULL.  True with *page: the page is
 * mapped until peer_pages_free, or until a call with the page that has replaced
 * it.  True with *page NULL: the last answer of the broker brought no page; the
 * next call returns false.  False: no other page than *page is known.
 */
bool peer_pages_find(struct peer_pages *p, uint32_t class, const void **page);
/* May the caller ask the broker for the page of a class?  True: no question
 * about the page is open.  class: at most STEER_CLASS_MAX. */
bool peer_pages_is_due(const struct peer_pages *p, uint32_t class);
/* Notes that the broker was asked for the page of a class, at most
 * STEER_CLASS_MAX. */
void peer_pages_asked(struct peer_pages *p, uint32_t class);
/* Takes the broker's answer about a class.  fd: a descriptor of the page, which
 * stays the caller's; -1: there is no page, and a page that is known stays.
 * Ignores an answer if no question about the class is open.  p may be NULL. */
void peer_pages_take(struct peer_pages *p, uint32_t class, int fd);
/* Forgets the open questions, since the broker that was asked is gone.  p may
 * be NULL. */
void peer_pages_forget(struct peer_pages *p);

#endif
