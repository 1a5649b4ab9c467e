/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 (IEEE 802.3, the InfiniBand ICRC) and CRC-32C (Castagnoli, for MPA).
 *
 * Everything here works on the raw state of the shift register: nothing is
 * inverted on the way in or out.  A whole checksum is therefore
 *
 *	crc = ~crc32_update(CRC_INIT, data, bytes);
 *
 * and a checksum computed in pieces passes the state from call to call.  Both
 * are bit-reflected: bit 31 of the state is the coefficient of x^0.
 *
 * The raw state is linear in what was fed in, which the receive side of
 * RoCEv2 uses: the difference of two checksums is the checksum (from state 0)
 * of the difference of the data.
 *
 * Pure functions, no state, callable from anywhere.
 */
#ifndef UTIL_CRC_H
#define UTIL_CRC_H

#include <stddef.h>
#include <stdint.h>

#define CRC_INIT 0xffffffffu

/* The state after `bytes` bytes of data have followed state `crc`. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t bytes);
uint32_t crc32c_update(uint32_t crc, const void *data, size_t bytes);

/*
 * The state `bytes` zero bytes before state `crc`:
 * crc32_multiply(crc, crc32_inverse_factor(bytes)).  Cost O(log bytes).
 */
uint32_t crc32_unshift(uint32_t crc, size_t bytes);

/*
 * The state after `bytes` zero bytes have followed state c is
 * crc32_multiply(c, crc32_factor(bytes)); a caller that meets a length again
 * keeps its factor.  crc32_inverse_factor is the factor's inverse, so
 * crc32_multiply of the two is 0x80000000.
 */
uint32_t crc32_factor(size_t bytes);
uint32_t crc32_inverse_factor(size_t bytes);
uint32_t crc32_multiply(uint32_t a, uint32_t b);

#endif
