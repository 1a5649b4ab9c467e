/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header before a MAD that a program sends or receives: struct ib_user_mad
 * of the kernel's interface, with the P_Key index (ABI 5).  In its bytes the
 * QPN, Q_Key, LID and flow label are in network order, the other fields in host
 * order.
 */
#ifndef FABRIC_UMAD_HEADER_H
#define FABRIC_UMAD_HEADER_H

#include "fabric/end.h"

/* Reads a header of FABRIC_UMAD_BYTES bytes. */
void umad_header_parse(const uint8_t *from, struct umad *to);
/* Writes the header, FABRIC_UMAD_BYTES bytes, of a received message whose MAD
 * has mad_bytes bytes. */
void umad_header_write(const struct umad *from, size_t mad_bytes, uint8_t *to);
/* Sets the status, a positive errno, and the length in a header whose MAD has
 * mad_bytes bytes. */
void umad_header_fail(uint8_t *header, int status, size_t mad_bytes);

#endif
