/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For captures: the bytes, from LRH to VCRC, of a packet that leaves its first
 * port.  Of a management datagram, which is a UD packet of QP 0 or 1 (IBTA
 * 13.5.1), the fabric keeps only the MAD as bytes; the headers are made here.
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
