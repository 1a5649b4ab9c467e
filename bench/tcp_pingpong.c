/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the latency of a stream socket: end 0 sends a message over TCP, and
 * end 1 answers.  Both ends poll or, with -b, sleep in recv.
 */
#include "raw.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in *at; /* shared: where end 1 listens */
static int *ready;	       /* shared: *at is set, and end 1 listens */
static int fd;
static char *buffer;

static int connect_end(const struct raw_options *o, int end)
{
	int s;

	if (end == 0) {
		while (!__atomic_load_n(ready, __ATOMIC_ACQUIRE))
			raw_pause(o);
		s = socket(AF_INET, SOCK_STREAM, 0);
		if (s < 0 || connect(s, (struct sockaddr *)at, sizeof(*at)))
			raw_die("tcp_pingpong: connect");
		return s;
	}
	s = raw_listen(o, 1, "tcp_pingpong: listen", at);
	/* Release orders the write of *at before the write of *ready.  End 0
	 * acquires *ready and then reads *at.  Without this order end 0 might
	 * connect to an address that is not set. */
	__atomic_store_n(ready, 1, __ATOMIC_RELEASE);
	return accept(s, NULL, NULL);
}

static void tcp_open(const struct raw_options *o, int end)
{
	int yes = 1;

	fd = connect_end(o, end);
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, 4))
		raw_die("tcp_pingpong: accept or TCP_NODELAY");
}

static void tcp_send(const struct raw_options *o, int end)
{
	int flags = o->blocking ? 0 : MSG_DONTWAIT;

	for (size_t done = 0; done < o->bytes;) {
		ssize_t n = send(fd, buffer + done, o->bytes - done,
				 flags | MSG_NOSIGNAL);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EAGAIN)
			raw_die("tcp_pingpong: send");
		else
			raw_pause(o);
	}
}

static void __attribute__((noreturn)) die_of_end(void)
{
	fprintf(stderr,
		"tcp_pingpong: the other end has closed the connection\n");
	exit(1);
}

static void tcp_receive(const struct raw_options *o, int end)
{
	int flags = o->blocking ? 0 : MSG_DONTWAIT;

	for (size_t done = 0; done < o->bytes;) {
		ssize_t n = recv(fd, buffer + done, o->bytes - done, flags);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			die_of_end();
		else if (errno != EAGAIN)
			raw_die("tcp_pingpong: recv");
		else if (o->one_core)
			raw_pause(o);
	}
}

int main(int argc, char **argv)
{
	static const struct raw_pingpong tcp = {"tcp_pingpong", tcp_open,
						tcp_send, tcp_receive};
	struct raw_options o = {.bytes = 2};

	raw_options(argc, argv,
		    "tcp_pingpong [-b] [-1] [-s BYTES] [-n ROUNDS] "
		    "[-N NETNS -A HERE,THERE]",
		    &o);
	at = raw_shared(sizeof(*at));
	ready = raw_shared(sizeof(*ready));
	buffer = calloc(1, o.bytes);
	if (!buffer)
		raw_die("tcp_pingpong: calloc");
	return raw_pingpong(&tcp, &o);
}
