/* SPDX-License-Identifier: BSD-2-Clause */
/* The program adverb-sim: runs the worlds of the seeds that the user names. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/pcap.h"
#include "sim/turns.h"
#include "sim/world.h"

/* PATH_WITHOUT: the kind of path that --direct chooses.  NAME: the program's
 * name in messages. */
#ifdef ADVERB_STEPS
#define PATH_WITHOUT WORLD_TURNS
#define NAME	     "adverb-sim-turns"
#else
#define PATH_WITHOUT WORLD_DIRECT
#define NAME	     "adverb sim"
#endif

#define LOSS_MAX 90u

/* An option that chooses the path of most connections, or of all connections.
 */
struct path {
	const char *word; /* the option */
	enum world_path kind;
};

static const struct path paths[] = {
	{"--direct", PATH_WITHOUT},
	{"--iwarp", WORLD_STREAMS},
	{"--infiniband", WORLD_SUBNET},
};

struct options {
	uint64_t from, to;	 /* the first and the last seed */
	uint32_t loss;		 /* in percent */
	bool verbose;		 /* --verbose */
	const struct path *path; /* NULL: packets of RoCEv2 */
	const char *pcap; /* the file of the capture; NULL: there is none */
};

/* The file of options.pcap; NULL: there is none. */
static FILE *capture;
/* The errno of the first write to the file that failed; 0: none has failed. */
static int capture_err;

static void print_usage(FILE *to)
{
	fputs("usage: " NAME " [--seeds A..B] [--loss PERCENT] "
	      "[--direct | --infiniband | --iwarp] [--pcap FILE] [--verbose]\n",
	      to);
}

static void print_help(void)
{
	print_usage(stdout);
	puts("\n"
	     "Runs the protocol engine of the libraries between simulated "
	     "hosts, over links\n"
	     "that lose, duplicate, reorder, delay, corrupt and truncate "
	     "frames.  The seed\n"
	     "and the options alone decide the run: for a seed that fails, the "
	     "command that\n"
	     "repeats the run is printed.\n"
	     "\n"
	     "  --seeds A..B     run these seeds, or one seed A (default "
	     "1..100)\n"
	     "  --loss PERCENT   the percentage of frames that a link loses, 0 to "
	     "90\n"
	     "                   (default 1); with --iwarp, of deliveries that "
	     "wait for a\n"
	     "                   retransmission\n"
	     "  --direct         simulate processes of one host: most RC "
	     "connections between\n"
	     "                   the processes use no packets\n"
	     "  --infiniband     all packets go by LID through an emulated "
	     "InfiniBand subnet,\n"
	     "                   whose links are cut and restored\n"
	     "  --iwarp          all connections are iWARP connections, over "
	     "byte streams,\n"
	     "                   which deliver the bytes in order, but late\n"
	     "  --pcap FILE      write the traffic of the one seed to a new "
	     "file, for tshark, at\n"
	     "                   simulated times\n"
	     "  --verbose        print the simulated time, a hash of the run and "
	     "the hosts'\n"
	     "                   counters for each seed\n"
	     "  -h, --help       this text\n"
	     "\n"
	     "More: man adverb-sim");
}

static bool starts_with_digit(const char *text)
{
	return *text >= '0' && *text <= '9';
}

static bool parse_seeds(const char *text, struct options *o)
{
	char *end;

	errno = 0;
	o->from = o->to = strtoull(text, &end, 10);
	if (!strncmp(end, "..", 2) && starts_with_digit(end + 2))
		o->to = strtoull(end + 2, &end, 10);
	if (starts_with_digit(text) && !*end && !errno && o->from <= o->to &&
	    o->to < UINT64_MAX)
		return true;
	fprintf(stderr, NAME ": --seeds takes A..B, or one seed, not \"%s\".\n",
		text);
	return false;
}

static bool parse_loss(const char *text, struct options *o)
{
	char *end;
	unsigned long percent = strtoul(text, &end, 10);

	o->loss = (uint32_t)percent;
	if (starts_with_digit(text) && !*end && percent <= LOSS_MAX)
		return true;
	fprintf(stderr,
		NAME ": --loss takes a percentage, at most %u, not \"%s\".\n",
		LOSS_MAX, text);
	return false;
}

static bool parse_pcap(const char *text, struct options *o)
{
	o->pcap = text;
	return true;
}

typedef bool parse_value(const char *text, struct options *o);

/* Returns the function that takes the value of an option; NULL: the word is no
 * option with a value. */
static parse_value *parser_of(const char *word)
{
	static const struct {
		const char *word;
		parse_value *parse;
	} table[] = {{"--seeds", parse_seeds},
		     {"--loss", parse_loss},
		     {"--pcap", parse_pcap}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(word, table[i].word))
			return table[i].parse;
	return NULL;
}

/* False: --pcap is given with more than one seed, and stderr says so. */
static bool check_options(const struct options *o)
{
	if (o->pcap && o->from != o->to)
		fputs(NAME ": --pcap takes the traffic of one world; name one "
			   "seed by --seeds.\n",
		      stderr);
	else
		return true;
	return false;
}

/* Returns the path that an option chooses; NULL: the word is no such option. */
static const struct path *path_of(const char *word)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (!strcmp(word, paths[i].word))
			return &paths[i];
	return NULL;
}

/* False: an earlier option has chosen another path, and stderr says so. */
static bool choose_path(const struct path *path, struct options *o)
{
	if (o->path && o->path != path) {
		fprintf(stderr, NAME ": %s and %s exclude each other.\n",
			o->path->word, path->word);
		return false;
	}
	o->path = path;
	return true;
}

/* False: an argument is wrong, and stderr says which. */
static bool parse_options(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		parse_value *parse = parser_of(word);
		const struct path *path = path_of(word);

		if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			print_help();
			exit(0);
		} else if (!strcmp(word, "--verbose")) {
			o->verbose = true;
		} else if (path) {
			if (!choose_path(path, o))
				return false;
		} else if (!parse) {
			fprintf(stderr, NAME ": unknown option \"%s\".\n",
				word);
			print_usage(stderr);
			return false;
		} else if (++i == argc) {
			fprintf(stderr, NAME ": %s wants a value.\n", word);
			return false;
		} else if (!parse(argv[i], o)) {
			return false;
		}
	}
	return check_options(o);
}

/* ---- the capture ---- */

/* False: the file cannot be made, and stderr says why. */
static bool open_capture(const char *name)
{
	/* a write beyond the limit of ulimit -f then fails */
	signal(SIGXFSZ, SIG_IGN);
	capture = fopen(name, "wxe");
	if (!capture)
		fprintf(stderr,
			NAME ": no capture can be written to %s: %s; name a "
			     "file that does not exist yet.\n",
			name, strerror(errno));
	return capture;
}

/* Writes bytes to the file `arg`, until a write fails. */
static void write_capture(void *arg, const void *bytes, size_t n)
{
	if (!capture_err && fwrite(bytes, 1, n, arg) != n)
		capture_err = errno;
}

/* Closes the file.  False: it has not taken all bytes, and stderr says so. */
static bool close_capture(const char *name)
{
	if (fclose(capture) && !capture_err)
		capture_err = errno;
	if (capture_err)
		fprintf(stderr,
			NAME ": the capture %s is incomplete, since its file "
			     "takes no more: %s; name a file in another "
			     "folder.\n",
			name, strerror(capture_err));
	return !capture_err;
}

static void print_world(const struct world *w, uint64_t seed)
{
	printf("seed %" PRIu64 ": %" PRIu64 " us, hash %016" PRIx64 "\n", seed,
	       w->now_ns / 1000, w->hash);
	for (uint32_t i = 0; i < w->host_count; i++) {
		const struct engine_counters *c;

		if (w->hosts[i].dead)
			continue;
		c = engine_counters(w->hosts[i].engine, 0);
		printf("  host %u: rx %" PRIu64 " tx %" PRIu64
		       " retransmitted %" PRIu64 " timeouts %" PRIu64
		       " duplicates %" PRIu64 " out of order %" PRIu64
		       " bad icrc %" PRIu64 " rnr %" PRIu64 "\n",
		       i, c->rx_packets, c->tx_packets, c->retransmits,
		       c->timeouts, c->rx_duplicates, c->rx_out_of_order,
		       c->refused.bad_icrc, c->naks.rnr_tx);
	}
}

static struct world w;

/* Runs the world of a seed, and returns the hash of the run.  to: the file of
 * the capture, or NULL.  why: the failure; "": none. */
static uint64_t run_once(uint64_t seed, const struct options *o, FILE *to,
			 char why[200])
{
	enum world_path kind = o->path ? o->path->kind : WORLD_PACKETS;
	uint64_t hash;

	world_init(&w, seed, o->loss, kind);
#ifdef ADVERB_STEPS
	w.take_turns = kind == WORLD_TURNS ? turns_take : NULL;
#endif
	if (to)
		pcap_begin(&w, write_capture, to);
	world_run(&w);
	if (o->verbose)
		print_world(&w, seed);
	hash = w.hash;
	world_fini(&w); /* checks what the processes have left */
	memcpy(why, w.failure, 200);
	return hash;
}

/* Runs a seed, and prints the failure, if any.  If the seed has passed and is a
 * multiple of 16, runs the seed a second time: both runs must have the same
 * hash.  Returns whether the seed has passed. */
static bool run_seed(uint64_t seed, const struct options *o)
{
	char why[200], again[200];
	uint64_t hash = run_once(seed, o, capture, why);

	if (!why[0] && seed % 16 == 0 && run_once(seed, o, NULL, again) != hash)
		strcpy(why, "a second run of the seed differs");
	if (why[0])
		printf("FAIL seed %" PRIu64 ": %s; reproduce: " NAME " "
		       "--seeds %" PRIu64 "..%" PRIu64 " --loss %u%s%s\n",
		       seed, why, seed, seed, o->loss, o->path ? " " : "",
		       o->path ? o->path->word : "");
	fflush(stdout);
	return !why[0];
}

int main(int argc, char **argv)
{
	struct options o = {.from = 1, .to = 100, .loss = 1};
	uint64_t passed = 0, failed = 0;

	if (!parse_options(argc, argv, &o) || (o.pcap && !open_capture(o.pcap)))
		return 2;
	for (uint64_t seed = o.from; seed <= o.to; seed++)
		if (run_seed(seed, &o))
			passed++;
		else
			failed++;
	world_free(&w);
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", passed, failed);
	if (capture && !close_capture(o.pcap))
		return 2;
	return failed ? 1 : 0;
}
