/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/poll_sparse.h"

int poll_sparse_all(struct pollfd *p, struct pollfd *room, nfds_t n,
		    int timeout_ms)
{
	nfds_t count = 0;
	int ready;

	for (nfds_t i = 0; i < n; i++) {
		p[i].revents = 0;
		if (p[i].fd >= 0)
			room[count++] = p[i];
	}
	ready = poll(room, count, timeout_ms);
	count = 0;
	for (nfds_t i = 0; ready > 0 && i < n; i++)
		if (p[i].fd >= 0)
			p[i].revents = room[count++].revents;
	return ready;
}
