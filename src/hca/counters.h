/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of an adapter under the names that the files of a kernel's
 * device have below ports/1: those of every port in counters, those of RoCE
 * devices in hw_counters.  One that adverb has no meaning for is always 0.
 * Pure; no state.
 */
#ifndef HCA_COUNTERS_H
#define HCA_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "hca/event.h"

/* In a page (credit.h), as a process shows them to all others. */
#define COUNTERS_WORDS (sizeof(struct engine_counters) / sizeof(uint64_t))

#define COUNTERS_FILES 62

struct counters_file {
	const char *name; /* "counters/port_xmit_data" */
	uint8_t word[3];  /* of struct engine_counters, added up; */
	uint8_t unit;	  /* what one of the file is worth; 0: always 0 */
};

extern const struct counters_file counters_files[COUNTERS_FILES];

/* What file i says when these are the sums over all processes. */
uint64_t counters_value(uint32_t i, const uint64_t words[COUNTERS_WORDS]);

#endif
