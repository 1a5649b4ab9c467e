/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/conn.h"

#include "hdr/bytes.h"

#define PACKET_LEAST 5 /* bytes: the header of IPoIB, and 1 byte of IP */

void conn_write(const struct conn_data *d, uint8_t p[CONN_DATA_BYTES])
{
	bytes_put32(p, d->qpn & 0xffffff);
	bytes_put32(p + 4, d->most);
}

bool conn_read(const uint8_t *p, size_t bytes, struct conn_data *d)
{
	if (bytes < CONN_DATA_BYTES)
		return false;
	d->qpn = bytes_get24(p + 1);
	d->most = bytes_get32(p + 4);
	return d->most >= PACKET_LEAST;
}

bool conn_may_begin(const struct neigh_conn *c, uint64_t now_ms)
{
	return c->state == CONN_NONE && now_ms >= c->retry_ms;
}

bool conn_is_soon(const struct neigh_conn *c, uint64_t now_ms)
{
	return c->state == CONN_NONE && c->failures == 1 &&
	       now_ms < c->retry_ms;
}

void conn_begin(struct neigh_conn *c, uint32_t id, uint64_t now_ms)
{
	c->state = CONN_ASKED;
	c->id = id;
	c->used_ms = now_ms;
}

void conn_open(struct neigh_conn *c, uint32_t most, uint64_t now_ms)
{
	c->state = CONN_OPEN;
	c->most = most;
	c->used_ms = now_ms;
	c->opened_ms = now_ms;
}

void conn_fail(struct neigh_conn *c, uint64_t now_ms)
{
	uint64_t pause = CONN_PAUSE_MS;

	for (uint32_t i = 0; i < c->failures && pause < CONN_PAUSE_MOST_MS; i++)
		pause *= 2;
	c->state = CONN_NONE;
	c->failures++;
	c->retry_ms = now_ms + pause;
}

void conn_lose(struct neigh_conn *c, uint64_t now_ms)
{
	if (c->state == CONN_OPEN && now_ms - c->opened_ms >= CONN_SHORT_MS)
		conn_end(c);
	else if (c->state == CONN_OPEN && c->shorts < CONN_SHORTS) {
		c->state = CONN_NONE;
		c->shorts++;
	} else
		conn_fail(c, now_ms);
}

void conn_asked(struct neigh_conn *c)
{
	if (c->failures <= CONN_SHORTS)
		c->retry_ms = 0;
}

void conn_end(struct neigh_conn *c)
{
	*c = (struct neigh_conn){0};
}
