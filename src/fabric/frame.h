/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a packet as it leaves its first port, from LRH to VCRC: for
 * captures.  A management datagram is a datagram of QP 0 or 1 (IBTA 13.5.1),
 * whose headers the fabric does not keep as bytes.
 */
#ifndef FABRIC_FRAME_H
#define FABRIC_FRAME_H

#include "fabric/inside.h"

/* Bytes of the longest packet. */
#define FRAME_MAX 8190

/* Writes the packet to `to`, which has FRAME_MAX bytes.  Returns its length. */
size_t frame_write(const struct packet *p, uint8_t *to);

#endif
