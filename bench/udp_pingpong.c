/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The raw limit that latencies are measured against: 2 bytes of UDP payload
 * there and back on 127.0.0.1 between two processes, both polling without a
 * wait.  Prints the median half round trip in microseconds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARMUP 1000

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	/* On one core both stay where they are, and the figure says so. */
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int udp_socket(struct sockaddr_in *self)
{
	socklen_t size = sizeof(*self);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	*self = (struct sockaddr_in){.sin_family = AF_INET};
	self->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)self, size) ||
	    getsockname(fd, (struct sockaddr *)self, &size))
		die("udp_pingpong: socket");
	return fd;
}

static void send_to(int fd, const struct sockaddr_in *peer)
{
	const char two[2] = {0};

	if (sendto(fd, two, sizeof(two), 0, (const struct sockaddr *)peer,
		   sizeof(*peer)) < 0)
		die("udp_pingpong: sendto");
}

static void wait_for(int fd)
{
	char buffer[64];

	while (recv(fd, buffer, sizeof(buffer), 0) < 0) {
		if (errno != EAGAIN)
			die("udp_pingpong: recv");
	}
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void answer_forever(int fd, const struct sockaddr_in *peer)
{
	pin(1);
	for (;;) {
		wait_for(fd);
		send_to(fd, peer);
	}
}

static void measure(int fd, const struct sockaddr_in *peer, int64_t *ns,
		    int rounds)
{
	pin(0);
	for (int i = -WARMUP; i < rounds; i++) {
		int64_t began = now_ns();

		send_to(fd, peer);
		wait_for(fd);
		if (i >= 0)
			ns[i] = now_ns() - began;
	}
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20000;
	struct sockaddr_in here;
	struct sockaddr_in there;
	const int64_t *median;
	int64_t *ns;
	pid_t child;
	int a;
	int b;

	if (rounds < 1 || rounds > 100000000) {
		fprintf(stderr, "usage: udp_pingpong [ROUNDS]\n");
		return 2;
	}
	ns = calloc((size_t)rounds, sizeof(*ns));
	if (!ns)
		die("udp_pingpong: calloc");
	a = udp_socket(&here);
	b = udp_socket(&there);
	child = fork();
	if (child < 0)
		die("udp_pingpong: fork");
	if (child == 0)
		answer_forever(b, &here);
	measure(a, &there, ns, (int)rounds);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	qsort(ns, (size_t)rounds, sizeof(*ns), compare);
	median = &ns[rounds / 2];
	printf("%.2f\n", (double)*median / 2000.0);
	free(ns);
	return 0;
}
