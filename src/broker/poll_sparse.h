/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll(2) of a table with gaps.  It refuses more entries than files may be
 * open (RLIMIT_NOFILE), and counts those of which it is to take no notice.
 */
#ifndef BROKER_POLL_SPARSE_H
#define BROKER_POLL_SPARSE_H

#include <poll.h>

/*
 * As poll, whose answer it gives; the entries of p with fd -1 are not counted.
 * room has n entries too; what is in it then means nothing.
 */
int poll_sparse_all(struct pollfd *p, struct pollfd *room, nfds_t n,
		    int timeout_ms);

#endif
