/* SPDX-License-Identifier: BSD-2-Clause */
#include "sleeps.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned long sleeps_count(void)
{
	static const char what[] = "voluntary_ctxt_switches:";
	unsigned long sum = 0;
	char line[256];
	glob_t found;

	if (glob("/proc/self/task/*/status", 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i];
		FILE *f = atoi(path + strlen("/proc/self/task/")) == getpid()
				  ? NULL
				  : fopen(path, "re");

		while (f && fgets(line, sizeof(line), f))
			if (!strncmp(line, what, strlen(what)))
				sum += strtoul(line + strlen(what), NULL, 10);
		if (f)
			fclose(f);
	}
	globfree(&found);
	return sum;
}
