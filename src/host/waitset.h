/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptors that the leader waits on: the receive socket, the eventfd,
 * the broker's connection, the epoll set of the streams.  Owner: leader.c;
 * lock: the lock of leader.c. */
#ifndef HOST_WAITSET_H
#define HOST_WAITSET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct progress;

struct waitset {
	int fd;		  /* an epoll descriptor, or -1 */
	uint32_t version; /* version_of (waitset.c) when fd was made */
	/* The kernel or the C library has no epoll_pwait2: poll is used. */
	bool is_refused;
	/* something else than the socket ended the last wait */
	bool is_deaf;
	bool has_timed_out; /* the last wait found nothing at all */
	/* The signal mask during a wait; NULL: the thread's own. */
	const sigset_t *mask;
};

/* Makes the epoll set, unless poll has to be used. */
void waitset_open(struct waitset *in, struct progress *l);
/* Closes the epoll set, if it is open. */
void waitset_close(struct waitset *in);
/*
 * Waits for these events of the socket (POLLIN, POLLOUT or none), for the
 * broker and the eventfd, and at most until `until` (UINT64_MAX: without end).
 * Sets is_deaf and has_timed_out.  0 or -EINTR.
 */
int waitset_wait(struct waitset *in, struct progress *l, uint64_t until,
		 short socket_events);

#endif
