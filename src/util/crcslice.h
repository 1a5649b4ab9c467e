/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 by tables, sixteen bytes a step, and what is long by shifts, for
 * processors that cannot multiply without carries: old ones and emulated ones.
 * ISA-L goes byte by byte there, six times slower than the tables.  As
 * crc32_update otherwise.
 */
#ifndef UTIL_CRCSLICE_H
#define UTIL_CRCSLICE_H

#include <stddef.h>
#include <stdint.h>

uint32_t crcslice_update(uint32_t crc, const void *data, size_t bytes);

#endif
