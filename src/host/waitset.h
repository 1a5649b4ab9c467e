/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that may wake who minds the lane: its socket, its eventfd, the broker.
 *
 * Owner: leader.c, which says who may call.
 */
#ifndef HOST_WAITSET_H
#define HOST_WAITSET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct progress;

struct waitset {
	int fd;		      /* an epoll; -1 */
	uint32_t version;     /* of its descriptors */
	bool is_refused;      /* or not in this C library: poll it is */
	bool is_deaf;	      /* the last wait found nothing in the socket */
	const sigset_t *mask; /* while it waits; NULL: as it is */
};

void waitset_open(struct waitset *in, struct progress *l);
void waitset_close(struct waitset *in);
/*
 * Sleep until these events of the socket (POLLIN, POLLOUT or none), the
 * broker, the eventfd or `until` (UINT64_MAX: for good).  0 or -EINTR.
 */
int waitset_wait(struct waitset *in, struct progress *l, uint64_t until,
		 short socket_events);

#endif
