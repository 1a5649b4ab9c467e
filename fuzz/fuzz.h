/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface of a harness to its driver, libFuzzer or main_replay.c. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs the harness on one input; returns 0.  The driver calls it again and
 * again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process by abort if the condition does not hold. */
#define FUZZ_REQUIRE(condition)                                                \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#condition);                                   \
			abort();                                               \
		}                                                              \
	} while (0)

#endif
