/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of an adapter under the names of the files that a kernel's
 * device has below ports/1: counters of every port in `counters`, counters of
 * RoCE devices in `hw_counters`.  A counter without a meaning in adverb is
 * always 0.  Pure functions; no state.
 */
#ifndef HCA_COUNTERS_H
#define HCA_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "hca/event.h"

/* The 64-bit words of struct engine_counters, as a process publishes them in
 * its page (credit.h). */
#define COUNTERS_WORDS (sizeof(struct engine_counters) / sizeof(uint64_t))

#define COUNTERS_FILES 62

/* Set in the number of the interface under which a process publishes the
 * counters of an iWARP device: the interface may be a RoCE device too. */
#define COUNTERS_IWARP 0x80000000u

struct counters_file {
	const char *name; /* "counters/port_xmit_data" */
	uint8_t word[3];  /* the words to add; UINT8_MAX: none */
	uint8_t unit;	  /* the sum is divided by this; 0: the file has 0 */
};

extern const struct counters_file counters_files[COUNTERS_FILES];

/* The value of file i, from words that are summed over all processes. */
uint64_t counters_value(uint32_t i, const uint64_t words[COUNTERS_WORDS]);

#endif
