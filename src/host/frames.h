/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends the engine's frames.  Lock: the progress lock. */
#ifndef HOST_FRAMES_H
#define HOST_FRAMES_H

#include "host/progress.h"

/* Sends the first k of the n frames of the last engine_tx, by UDP or by the
 * link to a fabric, and returns k.  If k < n, a socket or a ring is full, and
 * p->tx.full_fd is the descriptor that has POLLOUT once there is room (that of
 * a ring only after fabric_link_wants_room); otherwise p->tx.full_fd is -1.
 * Frames that the kernel refuses are lost, and counted and reported; k includes
 * them. */
size_t frames_send(struct progress *p, const struct engine_frame *f, size_t n);

#endif
