/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptors that the leader waits on: the receive socket, the eventfd,
 * the broker's connection.  Owner and lock: leader.c's.
 */
#ifndef HOST_WAITSET_H
#define HOST_WAITSET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct progress;

struct waitset {
	int fd;		  /* an epoll descriptor, or -1 */
	uint32_t version; /* broker_link_changes when fd was made */
	/* The kernel or the C library has no epoll_pwait2: poll is used. */
	bool is_refused;
	bool is_deaf;	    /* the last wait found nothing in the socket */
	bool has_timed_out; /* the last wait found nothing at all */
	/* The signal mask during a wait; NULL: the thread's own. */
	const sigset_t *mask;
};

void waitset_open(struct waitset *in, struct progress *l);
void waitset_close(struct waitset *in);
/*
 * Waits for these events of the socket (POLLIN, POLLOUT or none), for the
 * broker and the eventfd, and at most until `until` (UINT64_MAX: without end).
 * 0 or -EINTR.
 */
int waitset_wait(struct waitset *in, struct progress *l, uint64_t until,
		 short socket_events);

#endif
