/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wake-up there and back through two eventfds, both ends asleep between:
 * the raw limit of a completion channel on one host.
 */
#include "raw.h"

#include <sys/eventfd.h>
#include <unistd.h>

static int bell[2]; /* rung by end 0, by end 1 */

static void bell_open(const struct raw_options *o, int end)
{
	(void)o;
}

static void bell_say(const struct raw_options *o, int end)
{
	if (eventfd_write(bell[end], 1))
		raw_die("eventfd_pingpong: write");
}

static void bell_hear(const struct raw_options *o, int end)
{
	eventfd_t count;

	if (eventfd_read(bell[!end], &count))
		raw_die("eventfd_pingpong: read");
}

int main(int argc, char **argv)
{
	static const struct raw_pingpong bells = {"eventfd_pingpong", bell_open,
						  bell_say, bell_hear};
	struct raw_options o = {.bytes = 8};

	raw_options(argc, argv, "eventfd_pingpong [-1] [-n ROUNDS]", &o);
	bell[0] = eventfd(0, EFD_CLOEXEC);
	bell[1] = eventfd(0, EFD_CLOEXEC);
	if (bell[0] < 0 || bell[1] < 0)
		raw_die("eventfd_pingpong: eventfd");
	return raw_pingpong(&bells, &o);
}
