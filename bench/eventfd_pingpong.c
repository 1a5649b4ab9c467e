/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes wake each other through two eventfds, and each end sleeps in a
 * read: the raw limit of a completion channel on one host.
 */
#include "raw.h"

#include <sys/eventfd.h>
#include <unistd.h>

static int eventfds[2]; /* end e writes eventfds[e], end !e reads it */

static void eventfd_open(const struct raw_options *o, int end)
{
	(void)o;
}

static void eventfd_send(const struct raw_options *o, int end)
{
	if (eventfd_write(eventfds[end], 1))
		raw_die("eventfd_pingpong: write");
}

static void eventfd_receive(const struct raw_options *o, int end)
{
	eventfd_t count;

	if (eventfd_read(eventfds[!end], &count))
		raw_die("eventfd_pingpong: read");
}

int main(int argc, char **argv)
{
	static const struct raw_pingpong pingpong = {"eventfd_pingpong",
						     eventfd_open, eventfd_send,
						     eventfd_receive};
	struct raw_options o = {.bytes = 8};

	raw_options(argc, argv, "eventfd_pingpong [-1] [-n ROUNDS]", &o);
	eventfds[0] = eventfd(0, EFD_CLOEXEC);
	eventfds[1] = eventfd(0, EFD_CLOEXEC);
	if (eventfds[0] < 0 || eventfds[1] < 0)
		raw_die("eventfd_pingpong: eventfd");
	return raw_pingpong(&pingpong, &o);
}
