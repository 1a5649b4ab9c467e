/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sentences and findings that a broker keeps for a while.  Each thread has its
 * own: a process may have several brokers as threads (serve_thread.h), each in
 * another network namespace.  They lie on the heap and not in thread-local
 * memory: glibc has only 1664 bytes of that for all libraries that a program
 * opens by dlopen(3) and that use the initial-exec model.
 */
#ifndef BROKER_THREAD_STATE_H
#define BROKER_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct thread_state {
	/* The sentence about the process that holds the port; it counts until
	 * held_until_ms (CLOCK_MONOTONIC). */
	char held[128];
	uint64_t held_until_ms;
	/* Whether the broker of another version holds the port; it counts until
	 * version_until_ms. */
	bool is_other_version;
	uint64_t version_until_ms;
	char error[128]; /* the last other sentence */
	/* One more than the value of net.ipv4.ip_unprivileged_port_start that
	 * was read last; 0: none was read. */
	unsigned long ports_after;
};

/* Returns the state of the calling thread, which has all zeroes at first, or
 * NULL if no memory is left.  The thread's end frees it. */
struct thread_state *thread_state_get(void);
/* Writes a sentence to the `error` of the calling thread's state, in the format
 * of printf(3).  Returns the sentence, which is valid until the next call; if
 * no memory is left, returns another one. */
const char *thread_state_say(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#endif
