/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message there and back by process_vm_writev, each end polling the last
 * byte of its own memory: one copy and one cache line a way, the raw limit of
 * a WRITE into a process that polls.
 */
#include "raw.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static pid_t *pids; /* shared */
static uint8_t *heard, *said;
static uint8_t turn;

static void vm_open(const struct raw_options *o, int end)
{
	/* written here, so that the pages are this end's own */
	memset(heard, 0, o->bytes);
	memset(said, 0, o->bytes);
	__atomic_store_n(&pids[end], getpid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&pids[!end], __ATOMIC_ACQUIRE))
		sched_yield();
}

static void vm_say(const struct raw_options *o, int end)
{
	turn = (uint8_t)(turn + (end == 0));
	said[o->bytes - 1] = turn;
	/* all memory of both ends lies at the same places */
	for (size_t done = 0; done < o->bytes;) {
		struct iovec from = {said + done, o->bytes - done};
		struct iovec to = {heard + done, o->bytes - done};
		ssize_t n = process_vm_writev(pids[!end], &from, 1, &to, 1, 0);

		if (n <= 0)
			raw_die("vm_pingpong: process_vm_writev");
		done += (size_t)n;
	}
}

static void vm_hear(const struct raw_options *o, int end)
{
	uint8_t want = (uint8_t)(turn + (end == 1));

	while (__atomic_load_n(&heard[o->bytes - 1], __ATOMIC_ACQUIRE) != want)
		raw_pause(o);
	turn = want;
}

int main(int argc, char **argv)
{
	static const struct raw_pingpong vm = {"vm_pingpong", vm_open, vm_say,
					       vm_hear};
	struct raw_options o = {.bytes = 8};
	int status;

	raw_options(argc, argv, "vm_pingpong [-1] [-s BYTES] [-n ROUNDS]", &o);
	pids = raw_shared(2 * sizeof(*pids));
	heard = malloc(o.bytes);
	said = malloc(o.bytes);
	if (!heard || !said)
		raw_die("vm_pingpong: malloc");
	status = raw_pingpong(&vm, &o);
	free(heard);
	free(said);
	return status;
}
