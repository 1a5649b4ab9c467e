/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib.h"

#include "fabric.h"
#include "launch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The host of the fabric that the options name. */
struct host_choice {
	bool is_host;		   /* --fabric or --host was given */
	const char *fabric, *host; /* the values; NULL: not given */
};

/* Removes --fabric and --host, which `adverb run` has, too, from the arguments,
 * and stores their values in *choice.  Returns how many arguments are left. */
static int take_choice(int argc, char **argv, struct host_choice *choice)
{
	int left = 0;

	for (int i = 0; i < argc; i++) {
		char *word = argv[i];

		if (strncmp(word, "--fabric=", 9) == 0)
			choice->fabric = word + 9;
		else if (strncmp(word, "--host=", 7) == 0)
			choice->host = word + 7;
		else if (strcmp(word, "--host") == 0 && i + 1 < argc)
			choice->host = argv[++i];
		else if (strcmp(word, "--fabric") != 0) {
			argv[left++] = word;
			continue;
		}
		choice->is_host = true;
	}
	argv[left] = NULL;
	return left;
}

/* Finds the program adverb-ipoib, beside this program as in a build tree, or in
 * the libexec folder of an installation. */
static bool find_program(char path[PATH_MAX])
{
	static const char *const places[] = {"adverb-ipoib",
					     "../libexec/adverb-ipoib"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!launch_beside(places[i], path) && !access(path, F_OK))
			return true;
	fprintf(stderr, "adverb: adverb-ipoib is not beside this program; "
			"build or install adverb completely.\n");
	return false;
}

int ipoib_main(int argc, char **argv)
{
	struct host_choice choice = {0};
	char path[PATH_MAX];
	struct launch l;
	int status;

	take_choice(argc, argv, &choice);
	if (launch_init(&l) < 0)
		return 126;
	l.shim = false;
	if (!find_program(path))
		return 127;
	argv[0] = path;
	status = launch_check(&l, path);
	if (status)
		return status;
	if (choice.is_host && fabric_join(&l, choice.fabric, choice.host))
		return 126;
	return launch_exec(&l, argv);
}
