/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/link_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/proto.h"
#include "hdr/lrh.h"

#define ROOM FABRIC_PROTO_BURST_BYTES

/* All calls of recvmmsg(2) use the same heads, of which the calls change only
 * lengths and flags. */
int link_batch_init(struct link_batch *b)
{
	memset(b, 0, sizeof(*b));
	b->bytes = malloc((size_t)LINK_BATCH_MESSAGES * ROOM);
	if (!b->bytes)
		return -ENOMEM;
	for (uint32_t i = 0; i < LINK_BATCH_MESSAGES; i++) {
		b->parts[i] = (struct iovec){b->bytes + (size_t)i * ROOM, ROOM};
		b->heads[i] = (struct mmsghdr){.msg_hdr.msg_iov = &b->parts[i],
					       .msg_hdr.msg_iovlen = 1};
	}
	return 0;
}

void link_batch_fini(struct link_batch *b)
{
	free(b->bytes);
	memset(b, 0, sizeof(*b));
}

int link_batch_fill(struct link_batch *b, int fd)
{
	long n;

	link_batch_clear(b);
	/* syscall(2) is no cancellation point, but recvmmsg(2) of the C library
	 * is one. */
	n = syscall(SYS_recvmmsg, fd, b->heads, LINK_BATCH_MESSAGES,
		    MSG_DONTWAIT, NULL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	b->count = (uint32_t)n;
	return 0;
}

void link_batch_clear(struct link_batch *b)
{
	b->count = b->next = b->taken = 0;
}

bool link_batch_has(const struct link_batch *b)
{
	return b->next < b->count;
}

int link_batch_take(struct link_batch *b, const uint8_t **bytes, size_t *n)
{
	const struct mmsghdr *head = &b->heads[b->next];
	const uint8_t *p = b->parts[b->next].iov_base;
	size_t left = head->msg_len - b->taken;
	size_t packet = lrh_first(p + b->taken, left);

	if (head->msg_hdr.msg_flags & MSG_TRUNC ||
	    (!packet && (b->taken || left > LRH_FRAME_MAX)))
		return -EPROTO;
	*bytes = p + b->taken;
	*n = packet ? packet : left;
	b->taken += (uint32_t)*n;
	if (b->taken == head->msg_len) {
		b->next++;
		b->taken = 0;
	}
	return 0;
}
