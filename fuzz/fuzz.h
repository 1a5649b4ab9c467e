/* SPDX-License-Identifier: BSD-2-Clause */
/* What a harness shares with whoever drives it: libFuzzer or main_replay.c. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_REQUIRE(condition)                                                \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#condition);                                   \
			abort();                                               \
		}                                                              \
	} while (0)

#endif
