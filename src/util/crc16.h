/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-16 of InfiniBand's VCRC: the polynomial x^16 + x^12 + x^3 + x + 1, bit
 * reflected (IBTA Vol 1, 7.8.2).  As in util/crc.h, the function takes and
 * returns the raw state of the shift register and inverts nothing, so that the
 * state is linear in the data.
 *
 * Callable from any thread.  The first call computes tables, under a lock.
 */
#ifndef UTIL_CRC16_H
#define UTIL_CRC16_H

#include <stddef.h>
#include <stdint.h>

#define CRC16_INIT 0xffffu

/* Returns the state after `bytes` bytes of data from state `crc`. */
uint16_t crc16_update(uint16_t crc, const void *data, size_t bytes);

#endif
