/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message and its answer by process_vm_writev; each end polls the last byte
 * of its own memory.  Each direction costs one copy and one cache line: the raw
 * limit of a WRITE to a process that polls.
 */
#include "raw.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The PIDs of both ends, in shared memory; 0: the end is not ready. */
static pid_t *pids;
static uint8_t *received, *sent;
static uint8_t turn;

static void vm_open(const struct raw_options *o, int end)
{
	/* writing gives this end pages of its own */
	memset(received, 0, o->bytes);
	memset(sent, 0, o->bytes);
	/* Release orders the memset of `received` before the store of the PID.
	 * The other end loads the PID with acquire, and then writes to
	 * `received`.  Without this order the memset might overwrite the
	 * message. */
	__atomic_store_n(&pids[end], getpid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&pids[!end], __ATOMIC_ACQUIRE))
		sched_yield();
}

static void vm_send(const struct raw_options *o, int end)
{
	turn = (uint8_t)(turn + (end == 0));
	sent[o->bytes - 1] = turn;
	/* both ends have their memory at the same addresses */
	for (size_t done = 0; done < o->bytes;) {
		struct iovec from = {sent + done, o->bytes - done};
		struct iovec to = {received + done, o->bytes - done};
		ssize_t n = process_vm_writev(pids[!end], &from, 1, &to, 1, 0);

		if (n <= 0)
			raw_die("vm_pingpong: process_vm_writev");
		done += (size_t)n;
	}
}

static void vm_receive(const struct raw_options *o, int end)
{
	uint8_t want = (uint8_t)(turn + (end == 1));

	/* A program that reads the rest of the message after the last byte
	 * needs acquire here.  This benchmark does not read the rest, so
	 * nothing would break without acquire. */
	while (__atomic_load_n(&received[o->bytes - 1], __ATOMIC_ACQUIRE) !=
	       want)
		raw_pause(o);
	turn = want;
}

int main(int argc, char **argv)
{
	static const struct raw_pingpong vm = {"vm_pingpong", vm_open, vm_send,
					       vm_receive};
	struct raw_options o = {.bytes = 8};
	int status;

	raw_options(argc, argv, "vm_pingpong [-1] [-s BYTES] [-n ROUNDS]", &o);
	pids = raw_shared(2 * sizeof(*pids));
	received = malloc(o.bytes);
	sent = malloc(o.bytes);
	if (!received || !sent)
		raw_die("vm_pingpong: malloc");
	status = raw_pingpong(&vm, &o);
	free(received);
	free(sent);
	return status;
}
