/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptors that the leader waits on: the receive socket, the eventfd,
 * the connection to the broker, and the epoll sets of the streams and of the
 * link to a fabric.  Owner: leader.c; lock: leader_lock. */
#ifndef HOST_WAITSET_H
#define HOST_WAITSET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct progress;

struct waitset {
	int fd;		  /* an epoll descriptor, or -1 */
	uint32_t version; /* version_of (waitset.c) when fd was made */
	/* epoll cannot be used, so poll is used: the kernel, the C library, a
	 * sandbox or valgrind has no epoll_pwait2, or descriptors or memory
	 * have run out. */
	bool is_refused;
	/* The socket is known to be empty: the last wait ended with events of
	 * other descriptors and without one of the socket.  leader.c also sets
	 * this while all traffic goes through the arenas. */
	bool socket_is_empty;
	bool has_timed_out; /* the last wait ended without an event */
	/* The signal mask during a wait; NULL: the thread's own.  With a mask,
	 * waitset_wait uses poll: a handler that the mask lets run ends the
	 * wait, and a stop of the process does not, although it would end a
	 * wait by epoll. */
	const sigset_t *mask;
};

/* Makes the epoll set.  Sets is_refused if epoll cannot be used. */
void waitset_open(struct waitset *in, struct progress *p);
/* Closes the epoll set, if it is open. */
void waitset_close(struct waitset *in);
/*
 * Waits until the broker, the eventfd or a stream has something to read.  If
 * socket_events has POLLIN, the receive socket and the link to a fabric also
 * end the wait.  With POLLOUT, room in the socket progress_wake.awaited_fd ends
 * the wait.  Waits at most until the time `until` (monotonic_ns; UINT64_MAX:
 * without end).  Sets has_timed_out and, unless the program has closed the
 * descriptors, socket_is_empty.  Returns 0, also if the wait failed, or -EINTR.
 */
int waitset_wait(struct waitset *in, struct progress *p, uint64_t until,
		 short socket_events);
/*
 * Waits until the broker or the eventfd has something to read, and at most
 * until the time `until` (monotonic_ns; UINT64_MAX: without end).  Packets, and
 * bytes of streams, do not end the wait: a thread that polls receives them.
 * Sets has_timed_out.  Sets socket_is_empty to false, unless the program has
 * closed the descriptors.  Returns 0, also if the wait failed, or -EINTR.
 */
int waitset_nap(struct waitset *in, struct progress *p, uint64_t until);

#endif
