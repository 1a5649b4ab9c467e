/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that answer nothing: destroyed or in error.  Adapters
 * drop in silence what comes for them (IBTA 9.6.1.1, 10.3.1), and the sender
 * gives up when its retries are used up.  A sender that waits for a process
 * which merely is slow has to tell the two apart, so a process that drops such
 * a packet writes the QPN into its page, for its own host to read.
 *
 * The last CLOSED_SLOTS of them: one that has been written over is written
 * again by the next packet for it.
 *
 * One in RESET is not among them: it may be new, and its process late.
 *
 * Owner of the page's part: its process's engine; lock: the progress lock.
 * Sans-IO.
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

/* A packet came for it and was dropped. */
void closed_note(struct closed *c, uint32_t qpn);
/* It answers from now on. */
void closed_open(struct closed *c, uint32_t qpn);
bool closed_has(const struct closed *c, uint32_t qpn);

#endif
