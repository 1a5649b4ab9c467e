/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include "launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int bench_main(int argc, char **argv)
{
	static const char *const places[] = {
		"../bench/__main__.py", "../libexec/adverb/bench/__main__.py"};
	static char python[] = "python3", quiet[] = "-B";
	char *words[64];
	char driver[PATH_MAX];
	char self[PATH_MAX];
	size_t i = 0;

	while (i < 2 && (launch_beside(places[i], driver) < 0 ||
			 access(driver, R_OK) < 0))
		i++;
	if (i == 2 || launch_beside("adverb", self) < 0) {
		fprintf(stderr, "adverb: the program of bench, "
				"bench/__main__.py, is not beside this "
				"program; build or install adverb "
				"completely.\n");
		return 127;
	}
	if (argc > 60) {
		fprintf(stderr, "adverb: bench takes at most 59 arguments.\n");
		return 2;
	}
	words[0] = python;
	words[1] = quiet; /* Python writes no files beside the program */
	words[2] = driver;
	memcpy(words + 3, argv + 1, (size_t)argc * sizeof(*words));
	setenv("ADVERB_COMMAND", self, 1);
	execvp(python, words);
	fprintf(stderr,
		"adverb: bench cannot run python3: %s; install python3.\n",
		strerror(errno));
	return 127;
}
