/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/way.h"

#include <string.h>

#include "ipoib/report.h"
#include "ipoib/stream.h"

#define OPEN_MAX_ASKS 16    /* open questions for paths */
#define OLD_MS	      30000 /* the age at which a path is asked for again */
#define MOVED_MS      1000  /* as OLD_MS, if packets come from another LID */

static void remove_neigh(struct ipoib *m, struct neigh *n)
{
	m->counters.waited += waiting_drop(&n->waiting);
	stream_forget(m, n);
	ipoib_release_route(m, &n->route);
	neigh_remove(&m->neighs, n);
}

static struct neigh *add_neigh(struct ipoib *m, const struct hwaddr *a)
{
	struct neigh *oldest = NULL, *n;

	if (m->neighs.count == NEIGH_MAX)
		oldest = neigh_oldest(&m->neighs, a->gid);
	if (oldest)
		remove_neigh(m, oldest);
	n = neigh_add(&m->neighs, a);
	return n;
}

/* Called when a packet has come from the neighbour, which may have another LID
 * now. */
static void note_sender(struct ipoib *m, struct neigh *n,
			const struct ipoib_from *from, uint64_t now_ms)
{
	/* by a connection: the LID is not known */
	if (!from->lid)
		return;
	neigh_note_source(&m->neighs, n, from->lid);
	if (n->route.lid && n->route.lid != from->lid &&
	    now_ms >= n->learned_ms + MOVED_MS) {
		n->wants_path = true;
		m->deadline_ms = now_ms;
	}
}

const uint8_t *way_learn(struct ipoib *m, const struct hwaddr *a,
			 const struct ipoib_from *from, uint64_t now_ms)
{
	uint8_t mac[HWADDR_MAC_BYTES];
	bool is_self = hwaddr_is_equal(a, &m->self);
	struct neigh *n;

	if (is_self)
		return m->mac;
	hwaddr_mac(a, mac);
	if (!memcmp(mac, m->mac, HWADDR_MAC_BYTES)) {
		report_collision(m, &m->self, a, now_ms);
		return NULL;
	}
	n = neigh_find(&m->neighs, mac);
	if (n && !hwaddr_is_equal(&n->address, a)) {
		if (now_ms < n->used_ms + NEIGH_UNUSED_MS) {
			report_collision(m, &n->address, a, now_ms);
			return NULL;
		}
		remove_neigh(m, n);
		n = NULL;
	}
	if (!n)
		n = add_neigh(m, a);
	if (!n)
		return NULL;
	n->address.is_connected = a->is_connected;
	if (from->qpn == a->qpn)
		note_sender(m, n, from, now_ms);
	return n->mac;
}

void way_send(struct ipoib *m, struct neigh *n, const uint8_t *p, size_t bytes,
	      uint64_t now_ms)
{
	bool is_old = now_ms >= n->learned_ms + OLD_MS;

	if (!n->wants_path && (!n->route.lid || is_old)) {
		n->wants_path = true;
		m->deadline_ms = now_ms;
	}
	if (n->route.lid) {
		n->used_ms = now_ms;
		stream_send(m, n, p, bytes, now_ms);
	} else if (n->ask.id || ask_may_begin(&n->ask, now_ms))
		m->counters.waited += waiting_add(&n->waiting, p, bytes);
	else
		m->counters.waited++; /* asked in vain a short time ago */
}

static void ask_now(struct ipoib *m, struct neigh *n, uint64_t now_ms)
{
	struct sa_path path = {.pkey = m->port.pkey};
	uint32_t id = ipoib_next_id(m);
	uint8_t mad[MAD_BYTES];

	memcpy(path.dgid, n->address.gid, 16);
	memcpy(path.sgid, m->self.gid, 16);
	ask_begin(&n->ask, id, now_ms);
	sa_write_path(mad, id, &path, SA_PATH_PKEY);
	m->sink->ask(m->ctx, mad);
}

static void take_path(struct ipoib *m, struct neigh *n,
		      const struct sa_path *path, uint64_t now_ms)
{
	struct route *r = &n->route;

	ipoib_release_route(m, &n->route);
	ask_reset(&n->ask);
	n->wants_path = false;
	n->learned_ms = now_ms;
	memcpy(r->gid, n->address.gid, 16);
	r->qpn = n->address.qpn;
	r->flow_label = path->flow_label;
	r->lid = path->dlid;
	r->sl = path->sl;
	r->rate = path->rate;
	r->traffic_class = path->traffic_class;
	r->hop_limit = path->hop_limit;
	r->mtu = path->mtu;
	r->life_time = path->life_time;
	/* a packet that no router forwards needs no GRH */
	r->is_global = path->hop_limit > 1;
	neigh_note_source(&m->neighs, n, path->dlid);
	/* a connection goes by the LID that the neighbour had */
	if (n->conn.lid != path->dlid)
		stream_forget(m, n);
	if (n->waiting.count)
		n->used_ms = now_ms;
	stream_send_waiting(m, n, now_ms);
}

/* Called when a question has failed.  is_refused: the SA has refused the path,
 * which is unknown from now on.  False: no answer came, and an old path stays
 * in use. */
static void fail_path(struct ipoib *m, struct neigh *n, bool is_refused,
		      uint64_t now_ms)
{
	ask_fail(&n->ask, now_ms);
	n->wants_path = false;
	if (is_refused)
		n->route.lid = 0;
	/* with a path in use, these packets wait for a connection */
	if (!n->route.lid)
		m->counters.waited += waiting_drop(&n->waiting);
}

bool way_answer(struct ipoib *m, const struct sa_answer *answer,
		uint64_t now_ms)
{
	struct neigh *n = NULL;

	if (answer->kind != SA_PATH)
		return false;
	while ((n = neigh_next(&m->neighs, n)))
		if (n->ask.id == answer->id)
			break;
	if (!n)
		return false;
	if (answer->status)
		fail_path(m, n, true, now_ms);
	else if (!memcmp(answer->path.dgid, n->address.gid, 16))
		take_path(m, n, &answer->path, now_ms);
	return true;
}

void way_renew(struct ipoib *m)
{
	struct neigh *n = NULL;

	while ((n = neigh_next(&m->neighs, n))) {
		ask_reset(&n->ask);
		n->route.lid = 0;
		n->wants_path = n->waiting.count > 0;
	}
}

void way_forget(struct ipoib *m)
{
	struct neigh *n;

	while ((n = neigh_next(&m->neighs, NULL)))
		remove_neigh(m, n);
}

static void step_neigh(struct ipoib *m, struct neigh *n, uint32_t *open,
		       uint64_t now_ms)
{
	if (ask_is_late(&n->ask, now_ms)) {
		if (n->ask.tries < ASK_TRIES)
			ask_now(m, n, now_ms);
		else {
			fail_path(m, n, false, now_ms);
			--*open;
		}
	} else if (n->wants_path && *open < OPEN_MAX_ASKS &&
		   ask_may_begin(&n->ask, now_ms)) {
		ask_now(m, n, now_ms);
		++*open;
	}
}

static uint32_t count_open(const struct ipoib *m)
{
	struct neigh *n = NULL;
	uint32_t open = 0;

	while ((n = neigh_next(&m->neighs, n)))
		open += n->ask.id != 0;
	return open;
}

uint64_t way_turn(struct ipoib *m, uint64_t now_ms)
{
	uint64_t next = ASK_NEVER, due;
	uint32_t open = count_open(m);
	bool has_skipped = false;
	struct neigh *n = NULL;

	while ((n = neigh_next(&m->neighs, n))) {
		step_neigh(m, n, &open, now_ms);
		if (!n->ask.id && (!n->wants_path || open >= OPEN_MAX_ASKS)) {
			has_skipped |= n->wants_path;
			continue;
		}
		due = ask_deadline(&n->ask);
		next = due < next ? due : next;
	}
	/* After a neighbour was skipped, the question of a later one has ended,
	 * so the skipped one may ask now. */
	return has_skipped && open < OPEN_MAX_ASKS ? now_ms : next;
}
