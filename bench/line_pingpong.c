/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A number goes from a process to another through a cache line that both share,
 * and back through another line: no message between processes can be faster.
 */
#include "raw.h"

struct line {
	_Alignas(128) uint64_t turn;
};

static struct line *lines; /* shared; end e writes lines[e] */
static uint64_t turn;

static void line_open(const struct raw_options *o, int end)
{
	(void)o;
}

static void line_send(const struct raw_options *o, int end)
{
	/* End 0 sends the next number, end 1 sends the number that it received.
	 * Release here and acquire in line_receive are what a message with data
	 * needs.  This program sends no data but the number, so nothing breaks
	 * without them. */
	turn += end == 0;
	__atomic_store_n(&lines[end].turn, turn, __ATOMIC_RELEASE);
}

static void line_receive(const struct raw_options *o, int end)
{
	uint64_t want = turn + (end == 1);

	while (__atomic_load_n(&lines[!end].turn, __ATOMIC_ACQUIRE) != want)
		raw_pause(o);
	turn = want;
}

int main(int argc, char **argv)
{
	static const struct raw_pingpong line = {"line_pingpong", line_open,
						 line_send, line_receive};
	struct raw_options o = {.bytes = 8};

	raw_options(argc, argv, "line_pingpong [-1] [-n ROUNDS]", &o);
	lines = raw_shared(2 * sizeof(*lines));
	return raw_pingpong(&line, &o);
}
