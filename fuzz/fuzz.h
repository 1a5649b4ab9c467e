/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface between a harness and its driver, which is libFuzzer or
 * main_replay.c. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs the harness on one input of size bytes, which stays the driver's;
 * returns 0.  The driver calls this function once for each input, in one
 * process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Prints the condition and ends the process by abort if the condition is false.
 */
#define FUZZ_REQUIRE(condition)                                                \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#condition);                                   \
			abort();                                               \
		}                                                              \
	} while (0)

#endif
