/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts descriptors, for harnesses that find out whether an input has left
 * some open. */
#ifndef FUZZ_DESCRIPTORS_H
#define FUZZ_DESCRIPTORS_H

#include "fuzz.h"

#include <dirent.h>

/* Returns the number of descriptors of this process, plus a constant. */
static inline uint32_t count_descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	uint32_t n = 0;

	FUZZ_REQUIRE(all);
	while (readdir(all))
		n++;
	closedir(all);
	return n;
}

#endif
