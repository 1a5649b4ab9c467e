/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process copies from its memory into that of another process by
 * process_vm_writev, or with -r in the other direction by process_vm_readv: the
 * raw limit of one copy in which the target does nothing.  With -o a call of
 * process_vm_writev copies MESSAGES messages.  As in perftest, each message has
 * the same source and target.
 */
#include "raw.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 64 /* messages per call, with -o */

/* Copies MESSAGES messages by one call; returns their number. */
static uint64_t copy_many(pid_t to, void *memory, size_t bytes)
{
	struct iovec v[MESSAGES];

	for (int i = 0; i < MESSAGES; i++)
		v[i] = (struct iovec){memory, bytes};
	if (process_vm_writev(to, v, MESSAGES, v, MESSAGES, 0) !=
	    (ssize_t)(MESSAGES * bytes))
		raw_die("vm_copy: process_vm_writev");
	return MESSAGES;
}

static uint64_t copy_once(pid_t other, void *memory, size_t bytes, bool reads)
{
	for (size_t done = 0; done < bytes;) {
		struct iovec v = {(char *)memory + done, bytes - done};
		ssize_t n = reads ? process_vm_readv(other, &v, 1, &v, 1, 0)
				  : process_vm_writev(other, &v, 1, &v, 1, 0);

		if (n <= 0)
			raw_die("vm_copy: process_vm_writev or _readv");
		done += (size_t)n;
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct raw_options o = {.bytes = 65536};
	int *ready = raw_shared(sizeof(*ready));
	uint64_t messages = 0;
	int64_t began, ns;
	char *memory;
	pid_t child;

	raw_options(argc, argv, "vm_copy [-o|-r] [-s BYTES] [-t SECONDS]", &o);
	memory = malloc(o.bytes);
	if (!memory)
		raw_die("vm_copy: malloc");
	memset(memory, 1, o.bytes);
	child = raw_fork("vm_copy: fork");
	if (child == 0) {
		raw_enter(&o, 1);
		memset(memory, 2, o.bytes); /* gives the child its own pages */
		/* The release orders the memset before the store to *ready; the
		 * parent loads *ready with acquire before its first copy.
		 * Without this order the parent might copy to pages that the
		 * two processes still share, and measure how the kernel
		 * duplicates these pages (copy on write), too. */
		__atomic_store_n(ready, 1, __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	raw_enter(&o, 0);
	raw_await(&o, ready, child);
	began = raw_now_ns();
	do {
		messages +=
			o.single ? copy_many(child, memory, o.bytes)
				 : copy_once(child, memory, o.bytes, o.reads);
		ns = raw_now_ns() - began;
	} while ((double)ns < o.seconds * 1e9);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	raw_print_stream("vm_copy", &o, messages, 0, ns);
	free(memory);
	return 0;
}
