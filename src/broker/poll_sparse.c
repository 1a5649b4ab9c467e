/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/poll_sparse.h"

#include "util/bits.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

/* Polls n entries by calls of poll(2) for at most `most` entries.  Only the
 * first call waits.  Returns how many entries are ready, or -1 with errno. */
static int poll_parts(struct pollfd *p, nfds_t n, nfds_t most, int timeout_ms)
{
	int ready = poll(p, bits_min_u64(n, most), timeout_ms), part = ready;

	for (nfds_t i = most; most && part >= 0 && i < n; i += most) {
		part = poll(&p[i], bits_min_u64(n - i, most), 0);
		ready += part;
	}
	return part < 0 ? part : ready;
}

/* Does what poll(2) does, for more entries than the limit on open files. */
static int poll_beyond_limit(struct pollfd *p, nfds_t n, int timeout_ms)
{
	bool is_short = timeout_ms >= 0 && timeout_ms < POLL_SPARSE_MS;
	struct rlimit files = {0};
	int ready;

	getrlimit(RLIMIT_NOFILE, &files);
	ready = poll_parts(p, n, files.rlim_cur, 0);
	if (ready || !timeout_ms)
		return ready;
	return poll_parts(p, n, files.rlim_cur,
			  is_short ? timeout_ms : POLL_SPARSE_MS);
}

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
	if (ready < 0 && errno == EINVAL)
		ready = poll_beyond_limit(room, count, timeout_ms);
	count = 0;
	for (nfds_t i = 0; ready > 0 && i < n; i++)
		if (p[i].fd >= 0)
			p[i].revents = room[count++].revents;
	return ready;
}
