/* SPDX-License-Identifier: BSD-2-Clause */
#include "raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/relax.h"

#define WARMUP 1000

void raw_die(const char *what)
{
	perror(what);
	exit(1);
}

static void parse_addresses(struct raw_options *o, char *text)
{
	char *comma = strchr(text, ',');

	if (comma)
		*comma++ = '\0';
	if (!comma || inet_pton(AF_INET, text, &o->here) != 1 ||
	    inet_pton(AF_INET, comma, &o->there) != 1) {
		fprintf(stderr, "-A takes two IPv4 addresses: HERE,THERE\n");
		exit(2);
	}
}

static bool take_option(struct raw_options *o, int c, char *value)
{
	switch (c) {
	case 's':
		o->bytes = strtoul(value, NULL, 0);
		return o->bytes > 0;
	case 'm':
		o->packet = strtoul(value, NULL, 0);
		return o->packet > 0;
	case 'n':
		o->rounds = atoi(value);
		return o->rounds > 0;
	case 't':
		o->seconds = atof(value);
		return o->seconds > 0;
	case 'b':
		o->blocking = true;
		return true;
	case '1':
		o->one_core = true;
		return true;
	case 'o':
		o->single = true;
		return true;
	case 'p':
		o->plain = true;
		return true;
	case 'k':
		o->peek = true;
		return true;
	case 'r':
		o->reads = true;
		return true;
	case 'c':
		o->castagnoli = true;
		return true;
	case 'N':
		o->netns = value;
		return true;
	case 'A':
		parse_addresses(o, value);
		return true;
	default:
		return false;
	}
}

void raw_options(int argc, char **argv, const char *usage,
		 struct raw_options *o)
{
	struct raw_options start = {
		.bytes = o->bytes ? o->bytes : 2,
		.packet = o->packet,
		.rounds = 20000,
		.seconds = 0.3,
	};
	int c;

	*o = start;
	o->here.s_addr = o->there.s_addr = htonl(INADDR_LOOPBACK);
	while ((c = getopt(argc, argv, "s:m:n:t:b1opkrcN:A:")) != -1) {
		if (!take_option(o, c, optarg)) {
			fprintf(stderr, "usage: %s\n", usage);
			exit(2);
		}
	}
}

int64_t raw_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void *raw_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		raw_die("mmap");
	return p;
}

/* The CPUs that the program may use, for all of its processes. */
static cpu_set_t allowed;

/* Finds the allowed CPUs, unless they are known: an end that is pinned may use
 * only its own. */
static void find_cpus(void)
{
	if (!CPU_COUNT(&allowed) &&
	    sched_getaffinity(0, sizeof(allowed), &allowed))
		raw_die("sched_getaffinity");
}

pid_t raw_fork(const char *what)
{
	pid_t parent = getpid(), pid;

	find_cpus();
	pid = fork();
	if (pid < 0)
		raw_die(what);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			exit(1);
	}
	return pid;
}

static int nth_allowed(int n)
{
	int cpu = 0;

	while (!CPU_ISSET(cpu, &allowed) || n-- > 0)
		cpu++;
	return cpu;
}

void raw_pin(int n)
{
	cpu_set_t own;
	int cpu;

	find_cpus();
	cpu = nth_allowed(n % CPU_COUNT(&allowed));
	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	if (!sched_setaffinity(0, sizeof(own), &own))
		return;
	fprintf(stderr,
		"a thread of the benchmark cannot be pinned to CPU %d: %s; "
		"allow sched_setaffinity(2) in the sandbox, and do not change "
		"the CPUs of a program that runs\n",
		cpu, strerror(errno));
	exit(1);
}

void raw_enter(const struct raw_options *o, int end)
{
	raw_pin(o->one_core ? 0 : end);
	if (end == 1 && o->netns) {
		int fd = open(o->netns, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || setns(fd, CLONE_NEWNET))
			raw_die(o->netns);
		close(fd);
	}
}

/* Ends the program, since end 1 has failed. */
__attribute__((noreturn)) static void end_with_other(void)
{
	fprintf(stderr, "the end that receives has failed; its own message, if "
			"there is one, says why\n");
	exit(1);
}

void raw_check(pid_t child)
{
	if (waitpid(child, NULL, WNOHANG))
		end_with_other();
}

void raw_await(const struct raw_options *o, const int *ready, pid_t child)
{
	while (!__atomic_load_n(ready, __ATOMIC_ACQUIRE)) {
		raw_check(child);
		raw_pause(o);
	}
}

void raw_join(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || status)
		end_with_other();
}

void raw_pause(const struct raw_options *o)
{
	if (o->one_core)
		sched_yield();
	else
		relax();
}

struct sockaddr_in raw_address(const struct raw_options *o, int end)
{
	struct sockaddr_in a = {.sin_family = AF_INET};

	a.sin_addr = end ? o->there : o->here;
	return a;
}

int raw_listen(const struct raw_options *o, int backlog, const char *what,
	       struct sockaddr_in *at)
{
	struct sockaddr_in self = raw_address(o, 1);
	socklen_t size = sizeof(self);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&self, size) ||
	    listen(fd, backlog) ||
	    getsockname(fd, (struct sockaddr *)at, &size))
		raw_die(what);
	return fd;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

double raw_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_double);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void answer_forever(const struct raw_pingpong *p,
			   const struct raw_options *o)
{
	raw_enter(o, 1);
	p->open(o, 1);
	for (;;) {
		p->receive(o, 1);
		p->send(o, 1);
	}
}

static void measure_rounds(const struct raw_pingpong *p,
			   const struct raw_options *o, int64_t *ns)
{
	raw_enter(o, 0);
	p->open(o, 0);
	for (int i = -WARMUP; i < o->rounds; i++) {
		int64_t began = raw_now_ns();

		p->send(o, 0);
		p->receive(o, 0);
		if (i >= 0)
			ns[i] = raw_now_ns() - began;
	}
}

/* Handles SIGCHLD in end 0: end 1 has ended, so end 0 would wait for its answer
 * for ever. */
static void end_without_answer(int signal_number)
{
	static const char text[] =
		"the end of the ping-pong that answers has ended; if it has "
		"failed, its own message says why\n";

	(void)signal_number;
	_exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

int raw_pingpong(const struct raw_pingpong *p, const struct raw_options *o)
{
	int64_t *ns = calloc((size_t)o->rounds, sizeof(*ns));
	const struct sigaction failed = {.sa_handler = end_without_answer,
					 .sa_flags = SA_NOCLDSTOP};
	int64_t sum = 0;
	int middle;
	pid_t child;

	if (!ns || sigaction(SIGCHLD, &failed, NULL))
		raw_die("calloc or sigaction");
	child = raw_fork("fork");
	if (child == 0)
		answer_forever(p, o);
	measure_rounds(p, o, ns);
	signal(SIGCHLD, SIG_DFL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	middle = o->rounds / 2;
	for (int i = 0; i < o->rounds; i++)
		sum += ns[i];
	qsort(ns, (size_t)o->rounds, sizeof(*ns), compare_ns);
	printf("{\"name\": \"%s\", \"bytes\": %zu, \"us\": %.3f, "
	       "\"mean_us\": %.3f}\n",
	       p->name, o->bytes, (double)ns[middle] / 2000,
	       (double)sum / o->rounds / 2000);
	free(ns);
	return 0;
}

void raw_print_stream(const char *name, const struct raw_options *o,
		      uint64_t messages, uint64_t lost, int64_t ns)
{
	double per_s = (double)messages / ((double)ns * 1e-9);

	printf("{\"name\": \"%s\", \"bytes\": %zu, \"messages\": %lu, "
	       "\"lost\": %lu, \"GBps\": %.6g, \"Mps\": %.6g}\n",
	       name, o->bytes, (unsigned long)messages, (unsigned long)lost,
	       per_s * (double)o->bytes * 1e-9, per_s * 1e-6);
}
