/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adverb-ipoib: an IPoIB interface of a host of an emulated subnet.  `adverb
 * ipoib` starts this program with adverb's libraries.
 */
#include "background.h"
#include "ipoib_loop.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipoib/ipoib.h"
#include "util/standard_fds.h"

#define MTU_LEAST 68 /* of IPv4 */

static void print_help(FILE *out)
{
	fprintf(out,
		"usage: adverb ipoib [--name NAME] [--address A/LENGTH] ... "
		"[--pkey P_KEY]\n"
		"                    [--port N] [--mode MODE] [--mtu BYTES] "
		"[--background]\n"
		"                    [--fabric[=SOCKET]] [--host NAME]\n"
		"\n"
		"Makes an IP interface over InfiniBand (IPoIB) on a host of "
		"an\n"
		"emulated subnet, in this network namespace.  A subnet "
		"manager, such as OpenSM,\n"
		"must have made the partition's broadcast group.\n"
		"\n"
		"  --name NAME         the interface (default: ib0)\n"
		"  --address A/LENGTH  an address of IPv4 or IPv6, and the "
		"length of its prefix\n"
		"  --pkey P_KEY        the partition (default: the first one "
		"of the port)\n"
		"  --port N            the port of the host (default: the first one with a link)\n"
		"  --mode MODE         datagram (the default), or connected: "
		"packets up to 64 KiB\n"
		"  --mtu BYTES         the upper limit of the MTU of IP\n"
		"  --background        return when the interface is up\n"
		"  --fabric[=SOCKET], --host NAME\n"
		"                      which host, as in adverb run\n"
		"  -h, --help          this text\n"
		"\n"
		"Example:  adverb run --private --fabric --host Hca1 -- sh -c "
		"\\\n"
		"              'adverb ipoib --background --address "
		"10.9.0.1/24 && ping 10.9.0.2'\n"
		"\n"
		"More: man adverb-ipoib\n");
}

static bool read_number(const char *text, unsigned long least,
			unsigned long most, unsigned long *number)
{
	char *end;

	errno = 0;
	*number = strtoul(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno &&
	       *number >= least && *number <= most;
}

/* Reads a P_Key, and sets the bit of full membership.  Low 15 bits of 0 are
 * refused, since no P_Key matches such a P_Key (IBTA 10.9.1.1). */
static bool read_pkey(const char *text, uint16_t *pkey)
{
	unsigned long n;

	if (!read_number(text, 1, 0xffff, &n) || n == 0x8000)
		return false;
	*pkey = (uint16_t)(n | 0x8000);
	return true;
}

static int refuse_value(const char *option, const char *value, const char *want)
{
	fprintf(stderr, "adverb: --%s %s is not %s.\n", option, value, want);
	return 2;
}

static int set_name(struct ipoib_loop_config *c, const char *text)
{
	if (strlen(text) >= IFNAMSIZ)
		return refuse_value(
			"name", text,
			"the name of an interface: it has more than 15 "
			"bytes");
	c->name = text;
	return 0;
}

static int add_address(struct ipoib_loop_config *c, const char *text)
{
	if (c->address_count == IPOIB_LOOP_ADDRESSES)
		return refuse_value("address", text,
				    "accepted, because the interface has as "
				    "many addresses as adverb ipoib can set; "
				    "add it by ip(8)");
	if (!ipoib_tap_parse(text, &c->addresses[c->address_count]))
		return refuse_value("address", text,
				    "an address and the length of its prefix, "
				    "such as 10.9.0.1/24");
	c->address_count++;
	return 0;
}

static int set_pkey(struct ipoib_loop_config *c, const char *text)
{
	return read_pkey(text, &c->pkey)
		       ? 0
		       : refuse_value("pkey", text,
				      "a P_Key, such as 0x8001: the low 15 "
				      "bits must not be 0");
}

static int set_port(struct ipoib_loop_config *c, const char *text)
{
	unsigned long n;

	if (!read_number(text, 1, 254, &n))
		return refuse_value("port", text, "the number of a port");
	c->port = (uint8_t)n;
	return 0;
}

static int set_mode(struct ipoib_loop_config *c, const char *text)
{
	c->is_connected = !strcmp(text, "connected");
	if (!c->is_connected && strcmp(text, "datagram") != 0)
		return refuse_value("mode", text, "datagram or connected");
	return 0;
}

static int set_mtu(struct ipoib_loop_config *c, const char *text)
{
	unsigned long n;

	if (!read_number(text, MTU_LEAST, IPOIB_CONNECTED_MTU, &n))
		return refuse_value("mtu", text,
				    "an MTU of 68 to 65520 bytes (IPv6 needs "
				    "at least 1280)");
	c->mtu = (uint32_t)n;
	return 0;
}

/* Returns 0, or the exit status. */
static int read_options(int argc, char **argv, struct ipoib_loop_config *c,
			bool *background)
{
	static const struct option options[] = {
		{"name", required_argument, NULL, 'n'},
		{"address", required_argument, NULL, 'a'},
		{"pkey", required_argument, NULL, 'p'},
		{"port", required_argument, NULL, 'P'},
		{"mode", required_argument, NULL, 'm'},
		{"mtu", required_argument, NULL, 'M'},
		{"background", no_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int o, status = 0;

	while (!status &&
	       (o = getopt_long(argc, argv, "h", options, NULL)) != -1)
		if (o == 'n')
			status = set_name(c, optarg);
		else if (o == 'a')
			status = add_address(c, optarg);
		else if (o == 'p')
			status = set_pkey(c, optarg);
		else if (o == 'P')
			status = set_port(c, optarg);
		else if (o == 'm')
			status = set_mode(c, optarg);
		else if (o == 'M')
			status = set_mtu(c, optarg);
		else if (o == 'b')
			*background = true;
		else if (o == 'h') {
			print_help(stdout);
			exit(0);
		} else
			status = 2;
	if (status || optind == argc)
		return status;
	fprintf(stderr,
		"adverb: adverb ipoib has no argument %s; see adverb ipoib "
		"--help.\n",
		argv[optind]);
	return 2;
}

/* Was this program started on a host of an emulated subnet? */
static bool is_host(void)
{
	const char *fabric = secure_getenv("ADVERB_FABRIC");

	if (fabric && *fabric)
		return true;
	fprintf(stderr, "adverb: adverb ipoib needs a host of an emulated "
			"subnet; start it inside `adverb run --fabric --host "
			"NAME --`, or give it these options.\n");
	return false;
}

int main(int argc, char **argv)
{
	struct ipoib_loop_config c = {.name = "ib0", .up = background_ready};
	bool background = false;
	pid_t pid = 0;
	int status;

	/* If /dev/null cannot be opened, the program runs with the descriptors
	 * with which it was started. */
	standard_fds_fill();
	status = read_options(argc, argv, &c, &background);
	if (status)
		return status;
	if (!is_host())
		return 1;
	if (background)
		pid = background_enter("adverb ipoib");
	return pid ? pid < 0 : ipoib_loop_run(&c);
}
