/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends the engine's frames.  Lock: the progress lock. */
#ifndef HOST_FRAMES_H
#define HOST_FRAMES_H

#include "host/progress.h"

/* Sends the first k of n frames, by UDP or by the link to a fabric, and returns
 * k.  Sets p->full_fd to the socket that was full if k < n, and else to -1. */
size_t frames_send(struct progress *p, const struct engine_frame *f, size_t n);

#endif
