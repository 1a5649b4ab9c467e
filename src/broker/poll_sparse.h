/* SPDX-License-Identifier: BSD-2-Clause */
/* poll(2) of a table with gaps, which are entries with a negative fd.  poll
 * itself counts the gaps too, and fails if there are more entries than files
 * that may be open (RLIMIT_NOFILE). */
#ifndef BROKER_POLL_SPARSE_H
#define BROKER_POLL_SPARSE_H

#include <poll.h>

/* Polls those of the n entries of p that are no gaps, and returns the result of
 * poll; -1 with errno set.  revents of a gap becomes 0.  room: scratch memory
 * of n entries.  timeout_ms: as for poll. */
int poll_sparse_all(struct pollfd *p, struct pollfd *room, nfds_t n,
		    int timeout_ms);

#endif
