/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll(2) of a table with gaps, which are entries with a negative fd.  poll
 * itself counts the gaps too, and fails if there are more entries than files
 * that may be open (RLIMIT_NOFILE).  A program in which the broker is a thread
 * may lower that limit below the number of files that are open already.  Then
 * the entries are polled in parts, and a wait ends after POLL_SPARSE_MS.
 */
#ifndef BROKER_POLL_SPARSE_H
#define BROKER_POLL_SPARSE_H

#include <poll.h>

/* The longest wait, in milliseconds, for more entries than files that may be
 * open: only some entries can end the wait, and the others are looked at after
 * it. */
#define POLL_SPARSE_MS 10

/* Polls those of the n entries of p that are no gaps, and returns the result of
 * poll; -1 with errno set.  revents of a gap becomes 0.  room: scratch memory
 * of n entries.  timeout_ms: as for poll; the wait may end earlier, with the
 * result 0.  If RLIMIT_NOFILE is 0, no entry can be polled and none is ready.
 */
int poll_sparse_all(struct pollfd *p, struct pollfd *room, nfds_t n,
		    int timeout_ms);

#endif
