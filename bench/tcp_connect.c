/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures TCP connections, with which rdma_cm's connections are compared.  End
 * 0 requests as many as -n says at once.  End 1 accepts them one after the
 * other.
 */
#include "raw.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

static void accept_all(const struct raw_options *o, int listener)
{
	raw_enter(o, 1);
	for (;;)
		if (accept(listener, NULL, NULL) < 0)
			raw_die("tcp_connect: accept");
}

/* Returns the nanoseconds from the first connect(2) until all sockets are
 * connected. */
static int64_t measure_connects(const struct raw_options *o,
				const struct sockaddr_in *to)
{
	struct pollfd *p = calloc((size_t)o->rounds, sizeof(*p));
	int64_t began;

	if (!p)
		raw_die("tcp_connect: calloc");
	raw_enter(o, 0);
	for (int i = 0; i < o->rounds; i++) {
		p[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		p[i].events = POLLOUT;
		if (p[i].fd < 0)
			raw_die("tcp_connect: socket");
	}
	began = raw_now_ns();
	for (int i = 0; i < o->rounds; i++)
		if (connect(p[i].fd, (const struct sockaddr *)to,
			    sizeof(*to)) &&
		    errno != EINPROGRESS)
			raw_die("tcp_connect: connect");
	for (int i = 0; i < o->rounds; i++) {
		int err = 0;
		socklen_t size = sizeof(err);

		if (poll(&p[i], 1, -1) < 0)
			raw_die("tcp_connect: poll");
		if (getsockopt(p[i].fd, SOL_SOCKET, SO_ERROR, &err, &size))
			raw_die("tcp_connect: getsockopt");
		if (err) {
			errno = err;
			raw_die("tcp_connect: connect");
		}
	}
	free(p);
	return raw_now_ns() - began;
}

int main(int argc, char **argv)
{
	struct raw_options o = {0};
	struct sockaddr_in at;
	int64_t ns;
	pid_t child;
	int listener;

	raw_options(argc, argv, "tcp_connect [-1] -n CONNECTIONS", &o);
	listener = raw_listen(&o, BACKLOG, "tcp_connect: listen", &at);
	child = raw_fork("tcp_connect: fork");
	if (child == 0)
		accept_all(&o, listener);
	ns = measure_connects(&o, &at);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("{\"name\": \"tcp_connect\", \"bytes\": 0, \"us\": %.3f}\n",
	       (double)ns / 1000 / o.rounds);
	return 0;
}
