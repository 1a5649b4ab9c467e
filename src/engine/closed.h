/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of closed queue pairs: those that were destroyed or are in ERR, and
 * so answer nothing.  Hardware adapters drop packets for such queue pairs
 * silently (IBTA 9.6.1.1, 10.3.1), and a sender gives up after its retries.
 *
 * An adverb sender waits longer, because the peer's process may only be slow.
 * So the sender has to tell a closed queue pair from a slow process.  Therefore
 * a process that drops a packet for a closed queue pair, or for a QPN that it
 * does not have, writes the QPN into its page.  The broker reads the page when
 * a sender asks whether the queue pair's process is alive.
 *
 * The list has the last CLOSED_SLOTS such QPNs.  A QPN that was overwritten is
 * written again when the next packet for it comes.  A queue pair in RESET is
 * not closed: it may be new, and its process may only be late to modify it.
 *
 * Owner of the list: the engine of the page's process.  Lock: the progress
 * lock.  Readers need no lock: they compare each word alone, and the order of
 * the stores does not matter to them.  Sans-IO.
 */
#ifndef ENGINE_CLOSED_H
#define ENGINE_CLOSED_H

#include <stdbool.h>
#include <stdint.h>

#include "util/ring.h"

#define CLOSED_SLOTS 63 /* how many QPNs a list has room for */

/* The list, which lies in a page. */
struct closed {
	ring_index next;	      /* the next slot to write, free-running */
	shared_u32 qpn[CLOSED_SLOTS]; /* 0: the slot is free */
};

/* Writes the QPN into the list of this process.  Called when a packet for this
 * QPN has come, and its queue pair is in ERR or does not exist. */
void closed_note(struct closed *c, uint32_t qpn);
/* Removes the QPN from the list of this process.  Called when its queue pair
 * enters INIT, and so is not closed any more. */
void closed_open(struct closed *c, uint32_t qpn);
/* Does the list, of this process or of another one, have this QPN?  Needs no
 * lock. */
bool closed_has(const struct closed *c, uint32_t qpn);

#endif
