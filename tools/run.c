/* SPDX-License-Identifier: BSD-2-Clause */
#include "run.h"

#include "fabric.h"
#include "launch.h"
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

static void print_help(FILE *out)
{
	fprintf(out,
		"usage: adverb run [options] [--] program [arguments]\n"
		"\n"
		"Runs an unmodified RDMA program with adverb's libibverbs, "
		"librdmacm and\n"
		"libibumad in place of the system's.  No hardware, kernel "
		"module or root is\n"
		"needed; the program sees a device, adv0, for the machine's "
		"main interface.\n"
		"\n"
		"%s%s"
		"  --env NAME=VALUE set one more variable for the program\n"
		"  --fabric[=SOCKET] make the program a host of the emulated\n"
		"                   subnet at SOCKET (default: the user's own;\n"
		"                   see adverb fabric)\n"
		"  --host NAME      which host (default: the first free adapter)\n"
		"  -h, --help       this text\n"
		"\n"
		"Look at the device:       adverb run -- ibv_devinfo -v\n"
		"Serve in one terminal:    adverb run -- ib_write_bw\n"
		"and connect in another:   adverb run -- ib_write_bw "
		"127.0.0.1\n"
		"or both at once:          adverb pair -- ib_write_bw\n"
		"Watch the frames:         adverb run --pcap f.pcapng -- ... ; "
		"tshark -r f.pcapng\n"
		"\n"
		"More: man adverb-run; every variable: man 7 adverb\n",
		launch_pcap_help, launch_help);
}

int run_main(int argc, char **argv)
{
	static const struct option options[] = {
		LAUNCH_OPTIONS,
		{"env", required_argument, NULL, 'E'},
		{"fabric", optional_argument, NULL, 'F'},
		{"host", required_argument, NULL, 'H'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *fabric = NULL, *host = NULL;
	bool is_host = false;
	struct launch l;
	int c, status;

	if (launch_init(&l) < 0)
		return 126;
	while ((c = getopt_long(argc, argv, "+hE:", options, NULL)) != -1) {
		if (launch_option(&l, c, optarg))
			continue;
		if (c == 'E') {
			if (!launch_env_is(optarg))
				return 2;
			launch_env(&l, optarg);
			continue;
		}
		if (c == 'F' || c == 'H') {
			is_host = true;
			fabric = c == 'F' ? optarg : fabric;
			host = c == 'H' ? optarg : host;
			continue;
		}
		print_help(c == 'h' ? stdout : stderr);
		return c == 'h' ? 0 : 2;
	}
	if (optind == argc) {
		fprintf(stderr, "adverb: which program?  Try `adverb run -- "
				"ibv_devinfo -v`.\n");
		return 2;
	}
	status = launch_check(&l, argv[optind]);
	if (status)
		return status;
	if (is_host && fabric_join(&l, fabric, host))
		return 126;
	if (l.private && private_enter())
		return 126;
	return launch_exec(&l, argv + optind);
}
