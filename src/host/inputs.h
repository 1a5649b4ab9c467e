/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that may wake who minds the lane: its socket, its eventfd, the broker.
 *
 * Owner: minder.c, which says who may call.
 */
#ifndef HOST_INPUTS_H
#define HOST_INPUTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct lane;

struct inputs {
	int fd;		      /* an epoll; -1 */
	uint32_t version;     /* of its descriptors */
	bool is_refused;      /* or not in this C library: poll it is */
	bool is_deaf;	      /* the last wait found nothing in the socket */
	const sigset_t *mask; /* while it waits; NULL: as it is */
};

void inputs_open(struct inputs *in, struct lane *l);
void inputs_close(struct inputs *in);
/*
 * Sleep until these events of the socket (POLLIN, POLLOUT or none), the
 * broker, the eventfd or `until` (UINT64_MAX: for good).  0 or -EINTR.
 */
int inputs_wait(struct inputs *in, struct lane *l, uint64_t until,
		short socket_events);

#endif
