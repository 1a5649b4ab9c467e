/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/unread.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

/* The longest time after which the broker asks again how many bytes a client
 * has not read.  No event tells that the client has read enough, so the broker
 * asks again and again: each LOOK_MS if is_over is set, and more often at first
 * if behind_ms is set. */
#define LOOK_MS 100

uint32_t unread_bytes(int fd)
{
	int bytes = 0;

	return ioctl(fd, SIOCOUTQ, &bytes) || bytes < 0 ? 0 : (uint32_t)bytes;
}

bool unread_may_send(struct conn *c, uint64_t now_ms)
{
	if (unread_bytes(c->fd) <= UNREAD_BYTES)
		return true;
	c->behind_ms = now_ms;
	return false;
}

short unread_poll(struct conn *c)
{
	if (c->behind_ms && unread_bytes(c->fd) <= UNREAD_BYTES)
		c->behind_ms = 0;
	return c->behind_ms ? 0 : POLLIN;
}

int unread_patience(const struct server *s, uint64_t now_ms, int wait)
{
	uint64_t look = UINT64_MAX;

	for (uint32_t i = 0; i < s->conns; i++) {
		const struct conn *c = &s->conn[i];
		uint64_t since =
			c->behind_ms ? now_ms - c->behind_ms + 1 : LOOK_MS;

		if ((c->behind_ms || c->is_over) && since < look)
			look = since;
	}
	if (look == UINT64_MAX)
		return wait;
	if (look > LOOK_MS)
		look = LOOK_MS;
	return wait < 0 || (int)look < wait ? (int)look : wait;
}
