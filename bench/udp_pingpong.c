/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A datagram and its answer; both ends poll or, with -b, sleep in recv: the raw
 * limit of a message's latency over a socket.
 */
#include "raw.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#define MOST 65507

static struct sockaddr_in *at; /* shared: the address of each end */
static int *ready;	       /* shared: for each end, its address is set */
static int fd;
static char buffer[MOST];

static void udp_open(const struct raw_options *o, int end)
{
	struct sockaddr_in self = raw_address(o, end);
	socklen_t size = sizeof(self);
	int polling = o->blocking ? 0 : SOCK_NONBLOCK;

	fd = socket(AF_INET, SOCK_DGRAM | polling, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&self, size) ||
	    getsockname(fd, (struct sockaddr *)&self, &size))
		raw_die("udp_pingpong: socket");
	at[end] = self;
	/* Release orders the write of at[end] before the write of ready[end].
	 * End !end acquires ready[end] and then reads at[end].  Without this
	 * order end !end might send to an address that is not set. */
	__atomic_store_n(&ready[end], 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&ready[!end], __ATOMIC_ACQUIRE))
		raw_pause(o);
}

static void udp_send(const struct raw_options *o, int end)
{
	if (sendto(fd, buffer, o->bytes, 0, (struct sockaddr *)&at[!end],
		   sizeof(at[0])) < 0)
		raw_die("udp_pingpong: sendto");
}

static void udp_receive(const struct raw_options *o, int end)
{
	while (recv(fd, buffer, sizeof(buffer), 0) < 0) {
		if (errno != EAGAIN)
			raw_die("udp_pingpong: recv");
		if (o->one_core)
			raw_pause(o);
	}
}

int main(int argc, char **argv)
{
	static const struct raw_pingpong udp = {"udp_pingpong", udp_open,
						udp_send, udp_receive};
	struct raw_options o = {.bytes = 2};

	raw_options(argc, argv,
		    "udp_pingpong [-b] [-1] [-s BYTES] [-n ROUNDS] "
		    "[-N NETNS -A HERE,THERE]",
		    &o);
	if (o.bytes > MOST)
		o.bytes = MOST;
	at = raw_shared(2 * sizeof(*at));
	ready = raw_shared(2 * sizeof(*ready));
	return raw_pingpong(&udp, &o);
}
