/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a harness without libFuzzer: on seeds, then on mutations of seeds.
 *
 *	replay_x [--frames FILE [--skip N] [--trim N]] [--noise BYTES]
 *		 [--dump DIRECTORY]
 *		 [--runs N | --smoke SECONDS] [--seed S] [--first RUN]
 *		 [FILE...]
 *
 * A seed is a FILE, a frame of --frames without its first --skip and its last
 * --trim bytes, or BYTES random bytes of --noise.  --dump writes the seeds into
 * DIRECTORY.  Each seed is run unchanged first.  Then come N runs of mutated
 * seeds, or as many as begin within SECONDS; the first of these runs has the
 * number RUN, by default 0.  The seeds, S and the run's number alone decide the
 * input of a run.  If a run of a mutated seed crashes, the options that repeat
 * the run are printed.
 */
#include "fuzz.h"

#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vectors/frames.h"

#define MAX_INPUT     65536
#define MAX_MUTATIONS 8
#define NOISES	      64 /* seeds of random bytes with --noise */

struct input {
	size_t size;
	uint8_t bytes[];
};

static struct {
	const char *frames, *dump;
	size_t skip, trim, noise;
	unsigned long long runs, first, seed;
	double smoke_seconds;
} options = {.seed = 1};

static struct input **seeds;
static size_t seed_count;
/* The message that is printed if the current run ends the process. */
static char epitaph[160];
static uint64_t rng;

/* splitmix64 */
static uint64_t next_random(void)
{
	uint64_t z = rng += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static size_t random_below(size_t n)
{
	return n ? next_random() % n : 0;
}

static void prepare_epitaph(unsigned long long run)
{
	snprintf(epitaph, sizeof(epitaph),
		 "replay: run %llu ended the process; to repeat: the same "
		 "arguments, but --seed %llu --first %llu --runs 1\n",
		 run, options.seed, run);
}

static void say_epitaph(void)
{
	ssize_t ignored = write(STDERR_FILENO, epitaph, strlen(epitaph));

	(void)ignored;
}

static void on_signal(int number)
{
	signal(number, SIG_DFL);
	say_epitaph();
	raise(number);
}

/* In a program with a sanitizer, the sanitizer defines this function, and calls
 * `callback` before it ends the process because of an error or a signal. */
void __sanitizer_set_death_callback(void (*callback)(void))
	__attribute__((weak));

static void catch_deaths(void)
{
	static const int others[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

	snprintf(epitaph, sizeof(epitaph),
		 "replay: an unchanged seed ended the process\n");
	signal(SIGABRT, on_signal);
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(say_epitaph);
		return;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		signal(others[i], on_signal);
}

static void end_failed(const char *what, const char *which)
{
	fprintf(stderr, "replay: %s: %s\n", which, what);
	exit(2);
}

static struct input *input_new(const uint8_t *bytes, size_t size)
{
	struct input *input = malloc(sizeof(*input) + size);

	if (!input)
		end_failed("out of memory", "input");
	input->size = size;
	memcpy(input->bytes, bytes, size);
	return input;
}

static void add_seed(const uint8_t *bytes, size_t size)
{
	seeds = realloc(seeds, (seed_count + 1) * sizeof(*seeds));
	if (!seeds)
		end_failed("out of memory", "seeds");
	seeds[seed_count++] = input_new(bytes, size);
}

static void load_file(const char *path)
{
	static uint8_t buffer[MAX_INPUT];
	FILE *file = fopen(path, "rb");

	if (!file)
		end_failed("cannot be opened", path);
	add_seed(buffer, fread(buffer, 1, sizeof(buffer), file));
	fclose(file);
}

static void load_frames(void)
{
	struct frames all = frames_load(options.frames);

	for (size_t i = 0; i < all.count; i++) {
		const struct frame *f = &all.frame[i];

		if (f->len < options.skip + options.trim)
			end_failed("a frame is shorter than --skip and --trim",
				   options.frames);
		add_seed(f->bytes + options.skip,
			 f->len - options.skip - options.trim);
	}
	frames_free(&all);
}

/* Adds seeds of random bytes, for a harness whose input is a program: any bytes
 * are a valid program. */
static void load_noise(void)
{
	static uint8_t noise[MAX_INPUT];

	if (options.noise > sizeof(noise))
		end_failed("too much", "--noise");
	rng = options.seed;
	for (int k = 0; k < NOISES; k++) {
		for (size_t i = 0; i < options.noise; i++)
			noise[i] = (uint8_t)(next_random() >> 32);
		add_seed(noise, options.noise);
	}
}

/* Writes the seeds for libFuzzer's corpus. */
static void dump_seeds(void)
{
	char path[4096];

	for (size_t i = 0; i < seed_count; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/seed-%03zu", options.dump, i);
		file = fopen(path, "wb");
		if (!file ||
		    fwrite(seeds[i]->bytes, 1, seeds[i]->size, file) !=
			    seeds[i]->size ||
		    fclose(file) != 0)
			end_failed("cannot be written", path);
	}
}

/* Runs a copy of the input in a block of exactly its size, so that sanitizers
 * find accesses behind the input. */
static void run_one(const uint8_t *bytes, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		end_failed("out of memory", "run");
	memcpy(exact, bytes, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static size_t remove_range(uint8_t *p, size_t size)
{
	size_t at = random_below(size), n = random_below(size - at + 1);

	memmove(p + at, p + at + n, size - at - n);
	return size - n;
}

static size_t insert_range(uint8_t *p, size_t size)
{
	size_t at = random_below(size + 1), n = 1 + random_below(32);

	if (size + n > MAX_INPUT)
		return size;
	memmove(p + at + n, p + at, size - at);
	for (size_t i = 0; i < n; i++)
		p[at + i] = (uint8_t)next_random();
	return size + n;
}

/* Replaces the bytes from a random offset on by those of another seed from the
 * same offset on. */
static size_t splice_seed(uint8_t *p, size_t size)
{
	const struct input *other = seeds[random_below(seed_count)];
	size_t at = random_below(size < other->size ? size : other->size);

	memcpy(p + at, other->bytes + at, other->size - at);
	return other->size;
}

static size_t mutate_input(uint8_t *p, size_t size)
{
	static const uint8_t edge[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
	/* at least half of the changes of one byte are in the first 64 bytes,
	 * where headers are */
	size_t reach = next_random() & 1 && size > 64 ? 64 : size;

	switch (random_below(8)) {
	case 0:
		return remove_range(p, size);
	case 1:
		return insert_range(p, size);
	case 2:
		return splice_seed(p, size);
	case 3:
		return random_below(size + 1);
	case 4:
		if (size > 0)
			p[random_below(reach)] =
				edge[random_below(sizeof(edge))];
		return size;
	case 5:
		if (size > 0)
			p[random_below(reach)] = (uint8_t)next_random();
		return size;
	default:
		if (size > 0)
			p[random_below(reach)] ^=
				(uint8_t)(1 << random_below(8));
		return size;
	}
}

static void run_mutated(unsigned long long number)
{
	static uint8_t p[MAX_INPUT];
	const struct input *seed;
	size_t size;

	rng = options.seed * 0x2545f4914f6cdd1d + number;
	prepare_epitaph(number);
	seed = seeds[random_below(seed_count)];
	size = seed->size;
	memcpy(p, seed->bytes, size);
	for (size_t n = 1 + random_below(MAX_MUTATIONS); n > 0; n--)
		size = mutate_input(p, size);
	run_one(p, size);
}

/* Returns the time of a clock that no harness changes (fuzz_socket.h). */
static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_usage(const char *name)
{
	fprintf(stderr,
		"usage: %s [--frames FILE [--skip N] [--trim N]] "
		"[--noise BYTES]\n\t[--dump DIR] [--runs N | --smoke SECONDS] [--seed S] [--first RUN] "
		"[FILE...]\n",
		name);
	exit(2);
}

static void parse_options(int argc, char **argv)
{
	static const struct option known[] = {
		{"frames", required_argument, NULL, 'f'},
		{"skip", required_argument, NULL, 's'},
		{"trim", required_argument, NULL, 't'},
		{"dump", required_argument, NULL, 'd'},
		{"noise", required_argument, NULL, 'n'},
		{"runs", required_argument, NULL, 'r'},
		{"smoke", required_argument, NULL, 'S'},
		{"seed", required_argument, NULL, 'e'},
		{"first", required_argument, NULL, '1'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'f':
			options.frames = optarg;
			break;
		case 's':
			options.skip = strtoul(optarg, NULL, 0);
			break;
		case 't':
			options.trim = strtoul(optarg, NULL, 0);
			break;
		case 'd':
			options.dump = optarg;
			break;
		case 'n':
			options.noise = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			options.runs = strtoull(optarg, NULL, 0);
			break;
		case 'S':
			options.smoke_seconds = strtod(optarg, NULL);
			break;
		case 'e':
			options.seed = strtoull(optarg, NULL, 0);
			break;
		case '1':
			options.first = strtoull(optarg, NULL, 0);
			break;
		default:
			print_usage(argv[0]);
		}
	}
}

static unsigned long long run_all(void)
{
	double end = now_s() + options.smoke_seconds;
	unsigned long long done = 0;

	for (size_t i = 0; i < seed_count; i++)
		run_one(seeds[i]->bytes, seeds[i]->size);
	while (done < options.runs ||
	       (options.smoke_seconds > 0 && now_s() < end))
		run_mutated(options.first + done++);
	return done;
}

int main(int argc, char **argv)
{
	unsigned long long done;

	parse_options(argc, argv);
	if (options.frames)
		load_frames();
	if (options.noise)
		load_noise();
	for (int i = optind; i < argc; i++)
		load_file(argv[i]);
	if (seed_count == 0)
		add_seed((const uint8_t *)"", 0);
	if (options.dump)
		dump_seeds();
	catch_deaths();
	done = run_all();
	printf("%zu seeds and %llu mutations of them: no failure\n", seed_count,
	       done);
	while (seed_count > 0)
		free(seeds[--seed_count]);
	free(seeds);
	return 0;
}
