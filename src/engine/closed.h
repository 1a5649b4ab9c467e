/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that answer nothing: destroyed or in error.  Adapters drop
 * packets for them in silence (IBTA 9.6.1.1, 10.3.1), and the sender gives up
 * when its retries are used up.  A sender here also waits for peers that are
 * merely slow, so it has to tell a closed queue pair from a slow process: a
 * process that drops such a packet writes the QPN into its page, where the
 * processes of its host read it.
 *
 * The page has the last CLOSED_SLOTS such QPNs.  A QPN that was overwritten is
 * written again when the next packet for it comes.  A queue pair in RESET is
 * not closed: it may be new, and its process late.
 *
 * Owner of the page's part: the engine of the page's process.  Lock: the
 * progress lock; readers need none.  Sans-IO.
 */
#ifndef ENGINE_CLOSED_H
#define ENGINE_CLOSED_H

#include <stdbool.h>
#include <stdint.h>

#include "util/ring.h"

#define CLOSED_SLOTS 63

/* Lies in a page.  A slot with QPN 0 is free. */
struct closed {
	ring_index next;
	shared_u32 qpn[CLOSED_SLOTS];
};

/* A packet for this QPN was dropped: writes the QPN into the page. */
void closed_note(struct closed *c, uint32_t qpn);
/* The queue pair answers from now on: removes its QPN from the page. */
void closed_open(struct closed *c, uint32_t qpn);
/* Does the page, also that of another process, have this QPN? */
bool closed_has(const struct closed *c, uint32_t qpn);

#endif
