/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/stream.h"

#include <string.h>

#include "hdr/bytes.h"
#include "ipoib/inside.h"
#include "ipoib/toobig.h"

/* A connection that was unused for this time is closed.  IDLE_MS: one that this
 * side has made.  ACCEPTED_IDLE_MS: one that a neighbour has made. */
#define IDLE_MS		 60000
#define ACCEPTED_IDLE_MS 150000
/* A connection that was used within this time is not closed to make room. */
#define IN_USE_MS  10000
#define ACCEPTED   0x80000000u /* in the id of a neighbour's connection */
#define INDEX_BITS 8 /* the low bits of such an id: index in ipoib.accepted */

enum {
	ETHERNET_BYTES = 14,
	AT_SOURCE = 6,
	AT_TYPE = 12,
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
};

_Static_assert(STREAM_ACCEPTED_MAX < 1 << INDEX_BITS, "an index fits an id");

/* Returns the most bytes of a packet by UD. */
static size_t most_by_ud(const struct ipoib *m)
{
	return 128u << m->mtu;
}

void stream_enable(struct ipoib *m, uint32_t mtu)
{
	m->connected_mtu = mtu;
	m->self.is_connected = true;
}

static void write_data(const struct ipoib *m, uint8_t data[CONN_DATA_BYTES])
{
	const struct conn_data d = {.qpn = m->self.qpn,
				    .most = IPOIB_STREAM_MAX};

	conn_write(&d, data);
}

static uint32_t next_stream(struct ipoib *m)
{
	m->last_stream = (m->last_stream + 1) & ~ACCEPTED;
	m->last_stream += !m->last_stream;
	return m->last_stream;
}

static void ask_neighbour(struct ipoib *m, struct neigh *n, uint64_t now_ms)
{
	uint8_t data[CONN_DATA_BYTES];

	if (!m->connected_mtu || !n->address.is_connected || m->ends ||
	    !conn_may_begin(&n->conn, now_ms))
		return;
	conn_begin(&n->conn, next_stream(m), now_ms);
	n->conn.lid = n->route.lid;
	write_data(m, data);
	if (!m->sink->connect(m->ctx, n->conn.id, &n->route, data))
		conn_fail(&n->conn, now_ms);
}

/* Lets the kernel know how many bytes of IP a packet to the neighbour may have.
 */
static void tell_most(struct ipoib *m, const struct neigh *n, const uint8_t *p,
		      size_t bytes, size_t most)
{
	uint8_t frame[ETHERNET_BYTES + TOOBIG_MAX];
	size_t made = toobig_write(
		p + IPOIB_HEADER_BYTES, bytes - IPOIB_HEADER_BYTES,
		(uint32_t)most - IPOIB_HEADER_BYTES, frame + ETHERNET_BYTES);

	m->counters.too_long++;
	if (!made)
		return;
	memcpy(frame, m->mac, HWADDR_MAC_BYTES);
	memcpy(frame + AT_SOURCE, n->mac, HWADDR_MAC_BYTES);
	bytes_put16(frame + AT_TYPE,
		    frame[ETHERNET_BYTES] >> 4 == 4 ? TYPE_IPV4 : TYPE_IPV6);
	m->sink->frame(m->ctx, frame, ETHERNET_BYTES + made);
}

void stream_send(struct ipoib *m, struct neigh *n, const uint8_t *p,
		 size_t bytes, uint64_t now_ms)
{
	struct neigh_conn *c = &n->conn;
	size_t most = most_by_ud(m);

	ask_neighbour(m, n, now_ms);
	c->used_ms = now_ms;
	if (c->state == CONN_OPEN && bytes <= c->most)
		m->sink->stream(m->ctx, c->id, p, bytes);
	else if (bytes <= most)
		m->sink->packet(m->ctx, &n->route, p, bytes);
	else if (c->state == CONN_ASKED || conn_is_soon(c, now_ms)) {
		m->counters.waited += waiting_add(&n->waiting, p, bytes);
		m->deadline_ms = now_ms;
	} else if (c->state == CONN_OPEN && c->most > most)
		tell_most(m, n, p, bytes, c->most);
	else
		tell_most(m, n, p, bytes, most);
}

void stream_send_waiting(struct ipoib *m, struct neigh *n, uint64_t now_ms)
{
	/* a packet may wait again, for the connection */
	for (uint32_t i = n->waiting.count; i; i--) {
		struct waiting_packet w = waiting_take(&n->waiting);

		stream_send(m, n, w.p, w.bytes, now_ms);
		free(w.p);
	}
}

void stream_forget(struct ipoib *m, struct neigh *n)
{
	if (n->conn.state != CONN_NONE)
		m->sink->close(m->ctx, n->conn.id);
	conn_end(&n->conn);
}

/* ---- the connections that neighbours have made ---- */

static void close_accepted(struct ipoib *m, struct stream_accepted *a)
{
	m->sink->close(m->ctx, a->id);
	a->id = 0;
}

void stream_end(struct ipoib *m)
{
	struct neigh *n = NULL;

	while ((n = neigh_next(&m->neighs, n)))
		stream_forget(m, n);
	for (uint32_t i = 0; i < STREAM_ACCEPTED_MAX; i++)
		if (m->accepted[i].id)
			close_accepted(m, &m->accepted[i]);
}

/* Returns the entry of the neighbour, or NULL. */
static struct stream_accepted *find_peer(struct ipoib *m,
					 const struct hwaddr *a)
{
	for (uint32_t i = 0; i < STREAM_ACCEPTED_MAX; i++)
		if (m->accepted[i].id &&
		    hwaddr_is_equal(&m->accepted[i].peer, a))
			return &m->accepted[i];
	return NULL;
}

static struct stream_accepted *free_place(struct ipoib *m)
{
	for (uint32_t i = 0; i < STREAM_ACCEPTED_MAX; i++)
		if (!m->accepted[i].id)
			return &m->accepted[i];
	return NULL;
}

/* Is `at` in use for a neighbour with this GID, and was it used less recently
 * than `other`?  other NULL: no other entry was found yet. */
static bool is_older(const struct stream_accepted *at, const uint8_t gid[16],
		     const struct stream_accepted *other)
{
	return at->id && !memcmp(at->peer.gid, gid, 16) &&
	       (!other || at->used_ms < other->used_ms);
}

/* May the port with the GID have one more connection?  If the port has
 * STREAM_PER_PORT_MAX connections, closes the one that was unused for longest,
 * unless all were used in the last IN_USE_MS.  Without this bound one sender
 * could take all entries, by requests with invented QPNs. */
static bool bound_port(struct ipoib *m, const uint8_t gid[16], uint64_t now_ms)
{
	struct stream_accepted *oldest = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < STREAM_ACCEPTED_MAX; i++) {
		struct stream_accepted *at = &m->accepted[i];

		count += at->id && !memcmp(at->peer.gid, gid, 16);
		if (is_older(at, gid, oldest))
			oldest = at;
	}
	if (count < STREAM_PER_PORT_MAX)
		return true;
	if (now_ms - oldest->used_ms < IN_USE_MS)
		return false;
	close_accepted(m, oldest);
	return true;
}

/* Returns the neighbour with this address, or NULL. */
static struct neigh *find_neighbour(struct ipoib *m, const struct hwaddr *a)
{
	uint8_t mac[HWADDR_MAC_BYTES];
	struct neigh *n;

	hwaddr_mac(a, mac);
	n = neigh_find(&m->neighs, mac);
	return n && hwaddr_is_equal(&n->address, a) ? n : NULL;
}

/* The neighbour asks again, so it has lost the connection that it had made: its
 * port or its interface was down.  So the connection that this side has made is
 * lost, too. */
static void lose_both(struct ipoib *m, struct stream_accepted *a)
{
	struct neigh *n = find_neighbour(m, &a->peer);

	close_accepted(m, a);
	if (n && n->conn.state == CONN_OPEN)
		stream_forget(m, n);
}

/* The neighbour `peer` has asked for a connection: ends the pause before this
 * side's next request to that neighbour, if conn_asked permits. */
static void end_refusals(struct ipoib *m, const struct hwaddr *peer)
{
	struct neigh *n = find_neighbour(m, peer);

	if (n)
		conn_asked(&n->conn);
}

uint32_t stream_asked(struct ipoib *m, const uint8_t gid[16],
		      const uint8_t *data, size_t bytes,
		      uint8_t answer[CONN_DATA_BYTES], uint64_t now_ms)
{
	struct stream_accepted *place;
	struct hwaddr peer = {.is_connected = true};
	struct conn_data d;

	if (!m->is_up || m->ends || !m->connected_mtu ||
	    !conn_read(data, bytes, &d))
		return 0;
	peer.qpn = d.qpn;
	memcpy(peer.gid, gid, 16);
	if (!hwaddr_is_interface(&peer))
		return 0;
	place = find_peer(m, &peer);
	if (place)
		lose_both(m, place);
	else if (!bound_port(m, gid, now_ms))
		return 0;
	place = free_place(m);
	if (!place)
		return 0;
	end_refusals(m, &peer);
	place->peer = peer;
	place->used_ms = now_ms;
	place->id = ACCEPTED | (next_stream(m) << INDEX_BITS & ~ACCEPTED) |
		    (uint32_t)(place - m->accepted);
	write_data(m, answer);
	m->deadline_ms = now_ms;
	return place->id;
}

static struct stream_accepted *find_accepted(struct ipoib *m, uint32_t id)
{
	uint32_t index = id & ((1u << INDEX_BITS) - 1);

	if (!(id & ACCEPTED) || index >= STREAM_ACCEPTED_MAX ||
	    m->accepted[index].id != id)
		return NULL;
	return &m->accepted[index];
}

bool stream_from(struct ipoib *m, uint32_t id, struct ipoib_from *from,
		 uint64_t now_ms)
{
	struct stream_accepted *a = find_accepted(m, id);

	if (!a)
		return false;
	a->used_ms = now_ms;
	*from = (struct ipoib_from){.qpn = a->peer.qpn, .is_global = true};
	memcpy(from->sgid, a->peer.gid, 16);
	memcpy(from->dgid, m->self.gid, 16);
	return true;
}

/* ---- what becomes of connections ---- */

static struct neigh *find_asker(struct ipoib *m, uint32_t id)
{
	struct neigh *n = NULL;

	while ((n = neigh_next(&m->neighs, n)))
		if (n->conn.state != CONN_NONE && n->conn.id == id)
			return n;
	return NULL;
}

bool stream_opened(struct ipoib *m, uint32_t id, const uint8_t *data,
		   size_t bytes, uint64_t now_ms)
{
	struct neigh *n = find_asker(m, id);
	struct conn_data d;

	if (!n || n->conn.state != CONN_ASKED || !conn_read(data, bytes, &d) ||
	    d.qpn != n->address.qpn)
		return false;
	conn_open(&n->conn, d.most, now_ms);
	stream_send_waiting(m, n, now_ms);
	m->deadline_ms = now_ms;
	return true;
}

void stream_closed(struct ipoib *m, uint32_t id, uint64_t now_ms)
{
	struct stream_accepted *a = find_accepted(m, id);
	struct neigh *n = a ? NULL : find_asker(m, id);

	if (a)
		a->id = 0;
	if (!n)
		return;
	conn_lose(&n->conn, now_ms);
	if (n->route.lid)
		stream_send_waiting(m, n, now_ms);
}

/* Is a connection to be closed, since it was not used until `due`?  If it
 * stays open, makes *next at most `due`. */
static bool is_idle(uint64_t due, uint64_t now_ms, uint64_t *next)
{
	if (now_ms >= due)
		return true;
	*next = due < *next ? due : *next;
	return false;
}

/* If packets wait for the end of a pause: asks again when the pause has ended,
 * and otherwise makes *next at most the end of the pause. */
static void end_pause(struct ipoib *m, struct neigh *n, uint64_t now_ms,
		      uint64_t *next)
{
	if (n->conn.state != CONN_NONE || !n->route.lid || !n->waiting.count)
		return;
	if (!conn_is_soon(&n->conn, now_ms))
		stream_send_waiting(m, n, now_ms);
	if (conn_is_soon(&n->conn, now_ms) && n->conn.retry_ms < *next)
		*next = n->conn.retry_ms;
}

uint64_t stream_turn(struct ipoib *m, uint64_t now_ms)
{
	uint64_t next = IPOIB_NEVER;
	struct neigh *n = NULL;

	if (!m->connected_mtu)
		return next;
	while ((n = neigh_next(&m->neighs, n))) {
		if (n->conn.state == CONN_OPEN &&
		    is_idle(n->conn.used_ms + IDLE_MS, now_ms, &next))
			stream_forget(m, n);
		end_pause(m, n, now_ms, &next);
	}
	for (uint32_t i = 0; i < STREAM_ACCEPTED_MAX; i++)
		if (m->accepted[i].id &&
		    is_idle(m->accepted[i].used_ms + ACCEPTED_IDLE_MS, now_ms,
			    &next))
			close_accepted(m, &m->accepted[i]);
	return next;
}
