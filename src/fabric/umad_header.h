/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header before a MAD that a program sends or receives: struct
 * ib_user_mad_hdr of the kernel's interface, with the P_Key index (ABI 5).
 * QPN, Q_Key, LID and flow label of the header are in network order, the other
 * fields in host order.
 */
#ifndef FABRIC_UMAD_HEADER_H
#define FABRIC_UMAD_HEADER_H

#include "fabric/end.h"

/* Reads the header, FABRIC_UMAD_BYTES bytes at `from`. */
void umad_header_parse(const uint8_t *from, struct umad *to);
/* Writes the header, FABRIC_UMAD_BYTES bytes at `to`, of a message whose MAD
 * has mad_bytes bytes.  The status is written as 0. */
void umad_header_write(const struct umad *from, size_t mad_bytes, uint8_t *to);
/* Sets two fields of a header: the status, a positive errno, and the length of
 * a message whose MAD has mad_bytes bytes. */
void umad_header_fail(uint8_t *header, int status, size_t mad_bytes);

#endif
