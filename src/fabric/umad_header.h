/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header in front of a MAD that a program sends or receives: struct
 * ib_user_mad of the kernel's interface, with the P_Key index (ABI 5).  Fields
 * of the address are in network order, the others in host order.
 */
#ifndef FABRIC_UMAD_HEADER_H
#define FABRIC_UMAD_HEADER_H

#include "fabric/end.h"

/* Reads FABRIC_UMAD_BYTES. */
void umad_header_parse(const uint8_t *from, struct umad *to);
/* Writes the header of a message with a MAD of that many bytes. */
void umad_header_write(const struct umad *from, size_t mad_bytes, uint8_t *to);
/* Sets the status, a positive errno, and the length of the MAD. */
void umad_header_fail(uint8_t *header, int status, size_t mad_bytes);

#endif
