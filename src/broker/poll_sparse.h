/* SPDX-License-Identifier: BSD-2-Clause */
/* poll(2) of a table with gaps.  poll refuses more entries than files may be
 * open (RLIMIT_NOFILE), and counts those with fd -1. */
#ifndef BROKER_POLL_SPARSE_H
#define BROKER_POLL_SPARSE_H

#include <poll.h>

/* Polls the entries of p that have an fd other than -1, and returns poll's
 * result. room: scratch of n entries. */
int poll_sparse_all(struct pollfd *p, struct pollfd *room, nfds_t n,
		    int timeout_ms);

#endif
