/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes, from LRH to VCRC, of a packet that leaves its first port, for
 * captures.  A management datagram is a UD packet of QP 0 or 1 (IBTA 13.5.1).
 * The fabric keeps only its MAD as bytes, so frame_write makes the headers.
 */
#ifndef FABRIC_FRAME_H
#define FABRIC_FRAME_H

#include "fabric/inside.h"

/* Bytes of the longest packet. */
#define FRAME_MAX 8190

/* Writes the packet to `to`, which has room for FRAME_MAX bytes.  Returns the
 * packet's length in bytes. */
size_t frame_write(const struct packet *p, uint8_t *to);

#endif
