/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the raw limit of a process that forwards packets, such as that of
 * `adverb fabric`.  The relay, end 0 (raw.h), receives each message from one
 * Unix socket and sends it by another.  Two children, both on the core of end
 * 1, send and receive as fast as the relay lets them.  The result is the
 * relay's own CPU time for a message, since on few cores the three processes
 * take turns.
 */
#include "raw.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define WARMUP 1000

static char *buffer;

/* Returns the CPU time of this process in nanoseconds. */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void send_one(int fd, size_t bytes)
{
	if (send(fd, buffer, bytes, MSG_NOSIGNAL) < 0)
		raw_die("relay: send");
}

static void receive_one(int fd, size_t bytes)
{
	if (recv(fd, buffer, bytes, 0) <= 0)
		raw_die("relay: recv");
}

/* Makes a child that calls @run, which is send_one or receive_one, for ever. */
static pid_t make_end(const struct raw_options *o,
		      void (*run)(int fd, size_t bytes), int fd)
{
	pid_t child = raw_fork("relay: fork");

	if (child)
		return child;
	raw_enter(o, 1);
	for (;;)
		run(fd, o->bytes);
}

static void relay_many(int from, int to, size_t bytes, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		receive_one(from, bytes);
		send_one(to, bytes);
	}
}

int main(int argc, char **argv)
{
	struct raw_options o = {.bytes = 4096};
	int in[2], out[2];
	pid_t children[2];
	int64_t ns;

	raw_options(argc, argv, "relay [-1] [-s BYTES] [-n ROUNDS]", &o);
	buffer = calloc(1, o.bytes);
	if (!buffer || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, in) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, out))
		raw_die("relay: socketpair");
	children[0] = make_end(&o, send_one, in[0]);
	children[1] = make_end(&o, receive_one, out[1]);
	raw_enter(&o, 0);
	relay_many(in[1], out[0], o.bytes, WARMUP);
	ns = cpu_ns();
	relay_many(in[1], out[0], o.bytes, o.rounds);
	ns = cpu_ns() - ns;
	for (int i = 0; i < 2; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	printf("{\"name\": \"relay\", \"bytes\": %zu, \"us\": %.3f}\n", o.bytes,
	       (double)ns / o.rounds / 1000);
	free(buffer);
	return 0;
}
