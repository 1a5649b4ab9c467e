/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end writes to a TCP connection and the other end reads, -s bytes per
 * call: the rate of a program without RDMA.
 */
#include "raw.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in *at; /* shared: where end 1 listens */
static int *ready;	       /* shared: *at is set, and end 1 listens */

static void read_all(const struct raw_options *o, char *buffer)
{
	int listener, fd;
	ssize_t n;

	raw_enter(o, 1);
	listener = raw_listen(o, 1, "tcp_stream: listen", at);
	/* Release orders the write of *at before the write of *ready.  End 0
	 * acquires *ready and then reads *at.  Without this order end 0 might
	 * connect to an address that is not set. */
	__atomic_store_n(ready, 1, __ATOMIC_RELEASE);
	fd = accept(listener, NULL, NULL);
	do {
		n = read(fd, buffer, o->bytes);
	} while (n > 0);
	if (n < 0)
		raw_die("tcp_stream: accept or read");
	exit(0);
}

static int connect_end(const struct raw_options *o, pid_t child)
{
	int fd;

	raw_enter(o, 0);
	raw_await(o, ready, child);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)at, sizeof(*at)))
		raw_die("tcp_stream: connect");
	return fd;
}

static void write_all(int fd, const char *buffer, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = write(fd, buffer + done, bytes - done);

		if (n <= 0)
			raw_die("tcp_stream: write");
		done += (size_t)n;
	}
}

int main(int argc, char **argv)
{
	struct raw_options o = {.bytes = 65536};
	uint64_t messages = 0;
	int64_t began, ns;
	char *buffer;
	pid_t child;
	int fd;

	raw_options(argc, argv,
		    "tcp_stream [-1] [-s BYTES] [-t SECONDS] "
		    "[-N NETNS -A HERE,THERE]",
		    &o);
	at = raw_shared(sizeof(*at));
	ready = raw_shared(sizeof(*ready));
	buffer = calloc(1, o.bytes);
	if (!buffer)
		raw_die("tcp_stream: calloc");
	child = raw_fork("tcp_stream: fork");
	if (child == 0)
		read_all(&o, buffer);
	fd = connect_end(&o, child);
	began = raw_now_ns();
	do {
		write_all(fd, buffer, o.bytes);
		messages++;
		ns = raw_now_ns() - began;
	} while ((double)ns < o.seconds * 1e9);
	/* the time ends when the bytes in the sockets' buffers have arrived */
	shutdown(fd, SHUT_WR);
	raw_join(child);
	raw_print_stream("tcp_stream", &o, messages, 0, raw_now_ns() - began);
	free(buffer);
	return 0;
}
