/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of an adapter, by the names of the files below ports/1.  The
 * folder `counters` has the files that the kernel has there for every RDMA
 * device whose driver answers performance management.  The folder `hw_counters`
 * has some files of the kernel's drivers mlx5 and rxe, and some files that only
 * adverb has.  A counter without a meaning in adverb is always 0.  Pure
 * functions; no state.
 */
#ifndef HCA_COUNTERS_H
#define HCA_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "hca/event.h"

/* How many 64-bit words struct engine_counters has.  A process publishes these
 * words in its page (engine/credit.h). */
#define COUNTERS_WORDS (sizeof(struct engine_counters) / sizeof(uint64_t))

#define COUNTERS_FILES 62 /* rows of counters_files */

/* A process publishes a device's counters under the index of the device's
 * network interface.  This bit is added for an iWARP device, because a RoCE
 * device may have the same interface. */
#define COUNTERS_IWARP 0x80000000u

struct counters_file {
	const char *name; /* below ports/1: "counters/port_xmit_data" */
	/* Indices of the words that are added; UINT8_MAX: none. */
	uint8_t word[3];
	uint8_t unit; /* the sum is divided by this; 0: the value is 0 */
};

/* The files of all counters. */
extern const struct counters_file counters_files[COUNTERS_FILES];

/* Returns the value of counters_files[i].  @words: the words of the device's
 * struct engine_counters, summed over all processes. */
uint64_t counters_value(uint32_t i, const uint64_t words[COUNTERS_WORDS]);

#endif
