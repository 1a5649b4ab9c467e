/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 (IEEE 802.3, the InfiniBand ICRC) and CRC-32C (Castagnoli, for MPA).
 *
 * All functions take and return the raw state of the shift register: they
 * invert nothing.  A whole checksum is therefore
 *
 *	crc = ~crc32_update(CRC_INIT, data, bytes);
 *
 * To compute a checksum in pieces, the caller passes the state from call to
 * call.  Both CRCs are bit-reflected: bit 31 of the state is the coefficient of
 * x^0.
 *
 * The raw state is linear in the data.  Suppose that two inputs of equal length
 * are processed from the same state.  Then the exclusive or of the two final
 * states is the final state of a third computation, which processes the
 * exclusive or of the inputs from state 0.  The receive side of RoCEv2 uses
 * this (encap/icrc.h).
 *
 * Pure functions, callable from any thread.
 */
#ifndef UTIL_CRC_H
#define UTIL_CRC_H

#include <stddef.h>
#include <stdint.h>

#define CRC_INIT 0xffffffffu

enum crc_kind { CRC_32, CRC_32C, CRC_KINDS };

/* Returns the CRC-32 state after `bytes` bytes of data from state `crc`. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t bytes);
/* Returns the CRC-32C state after `bytes` bytes of data from state `crc`. */
uint32_t crc32c_update(uint32_t crc, const void *data, size_t bytes);
/* Calls crc32_update or crc32c_update. */
static inline uint32_t crc_update(enum crc_kind kind, uint32_t crc,
				  const void *data, size_t bytes)
{
	return kind == CRC_32 ? crc32_update(crc, data, bytes)
			      : crc32c_update(crc, data, bytes);
}

/*
 * Returns the CRC-32 state from which `bytes` zero bytes lead to state `crc`:
 * crc32_multiply(crc, crc32_inverse_factor(bytes)).  Cost O(log bytes).
 */
uint32_t crc32_unshift(uint32_t crc, size_t bytes);

/*
 * Returns x^(8 * bytes) modulo the polynomial of CRC-32: the state after
 * `bytes` zero bytes from state c is crc32_multiply(c, crc32_factor(bytes)).  A
 * caller that often needs the same length keeps the factor.  Cost O(log bytes).
 */
uint32_t crc32_factor(size_t bytes);
/* Returns the inverse of crc32_factor(bytes): crc32_multiply of both numbers is
 * 0x80000000, which is x^0.  Cost O(log bytes). */
uint32_t crc32_inverse_factor(size_t bytes);
/* Returns a * b modulo the polynomial of CRC-32; both are bit-reflected. */
uint32_t crc32_multiply(uint32_t a, uint32_t b);

#endif
