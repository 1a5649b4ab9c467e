/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adverb: the command of the project, which chooses the subcommand.
 */
#include "bench.h"
#include "doctor.h"
#include "fabric.h"
#include "install.h"
#include "ipoib.h"
#include "launch.h"
#include "pair.h"
#include "run.h"
#include "top.h"
#include "util/standard_fds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_help(FILE *out)
{
	fprintf(out,
		"adverb " ADVERB_VERSION ": the RDMA adapter for machines that "
		"have none.\n"
		"\n"
		"usage: adverb run [options] -- program [arguments]\n"
		"           run an RDMA program on adverb's device\n"
		"       adverb pair [options] -- tool [arguments]\n"
		"           run server and client of a tool: ib_write_bw, "
		"ibv_rc_pingpong ...\n"
		"       adverb doctor\n"
		"           say what this machine allows, what will be slow, "
		"and why\n"
		"       adverb sim --seeds A..B [--loss P]\n"
		"           test the protocol code in a simulated network that "
		"loses packets\n"
		"       adverb top [--once] [--json]\n"
		"           show the traffic of each queue pair, and why it waits\n"
		"       adverb fabric FILE | --show | --stop\n"
		"           emulate an InfiniBand subnet, which a stock OpenSM manages\n"
		"       adverb ipoib [--name NAME] [--address A/LENGTH]\n"
		"           make an IP interface on a host of such a subnet\n"
		"       adverb bench [--quick]\n"
		"           measure adverb beside this machine's raw limits and "
		"other software\n"
		"       adverb install [--dry-run] DIR\n"
		"           put adverb into an image, so that programs need no "
		"`adverb run`;\n"
		"           adverb uninstall removes it\n"
		"       adverb --version | --help\n"
		"\n"
		"Start here:  adverb pair -- ib_write_bw\n"
		"             adverb run -- ibv_devinfo -v\n"
		"\n"
		"Each command has --help and a man page; man 7 adverb lists "
		"every variable.\n");
}

/* Executes the simulator, which is its own program, so that it links no host
 * code.  Returns only on failure, with an exit status, after a sentence on
 * stderr. */
static int sim_main(char **argv)
{
	char path[PATH_MAX];
	static const char *const places[] = {"adverb-sim", "../sim/adverb-sim",
					     "../libexec/adverb-sim"};
	static char name[] = "adverb-sim";

	argv[0] = name;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (launch_beside(places[i], path) || access(path, F_OK))
			continue;
		execv(path, argv);
		fprintf(stderr,
			"adverb: the simulator, %s, cannot be run: %s; build "
			"or install adverb completely, for this machine and "
			"where programs may be run.\n",
			path, strerror(errno));
		return 126;
	}
	fprintf(stderr, "adverb: adverb-sim is not beside this program; build "
			"or install adverb completely.\n");
	return 127;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";

	/* If /dev/null cannot be opened, the command runs with the descriptors
	 * with which it was started. */
	standard_fds_fill();
	if (strcmp(command, "run") == 0)
		return run_main(argc - 1, argv + 1);
	if (strcmp(command, "pair") == 0)
		return pair_main(argc - 1, argv + 1);
	if (strcmp(command, "doctor") == 0)
		return doctor_main(argc - 1, argv + 1);
	if (strcmp(command, "sim") == 0)
		return sim_main(argv + 1);
	if (strcmp(command, "top") == 0)
		return top_main(argc - 1, argv + 1);
	if (strcmp(command, "fabric") == 0)
		return fabric_main(argc - 1, argv + 1);
	if (strcmp(command, "ipoib") == 0)
		return ipoib_main(argc - 1, argv + 1);
	if (strcmp(command, "install") == 0)
		return install_main(argc - 1, argv + 1);
	if (strcmp(command, "uninstall") == 0)
		return install_undo_main(argc - 1, argv + 1);
	if (strcmp(command, "bench") == 0)
		return bench_main(argc - 1, argv + 1);
	if (strcmp(command, "--version") == 0 || strcmp(command, "-V") == 0) {
		printf("adverb %s\n", ADVERB_VERSION);
		return 0;
	}
	if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 ||
	    strcmp(command, "help") == 0) {
		print_help(stdout);
		return 0;
	}
	if (*command)
		fprintf(stderr,
			"adverb: there is no command \"%s\"; choose one of "
			"these.\n\n",
			command);
	print_help(stderr);
	return 2;
}
