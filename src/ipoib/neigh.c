/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/neigh.h"

#include <stdlib.h>
#include <string.h>

#include "hdr/bytes.h"

/* A MAC is a hash already (hwaddr_mac). */
static uint32_t bucket_of(const uint8_t mac[HWADDR_MAC_BYTES])
{
	return bytes_get32(mac + 2) % NEIGH_BUCKETS;
}

struct neigh *neigh_find(const struct neigh_table *t,
			 const uint8_t mac[HWADDR_MAC_BYTES])
{
	struct neigh *n = t->buckets[bucket_of(mac)];

	while (n && memcmp(n->mac, mac, HWADDR_MAC_BYTES) != 0)
		n = n->next;
	return n;
}

struct neigh *neigh_add(struct neigh_table *t, const struct hwaddr *a)
{
	struct neigh *n = t->count < NEIGH_MAX ? calloc(1, sizeof(*n)) : NULL;
	uint32_t bucket;

	if (!n)
		return NULL;
	n->address = *a;
	hwaddr_mac(a, n->mac);
	bucket = bucket_of(n->mac);
	n->next = t->buckets[bucket];
	t->buckets[bucket] = n;
	t->count++;
	return n;
}

/* Is the neighbour forgotten before the other one?  other NULL: there is none.
 */
static bool is_older(const struct neigh *n, const struct neigh *other)
{
	if (!other || n->used_ms != other->used_ms)
		return !other || n->used_ms < other->used_ms;
	return !n->waiting.count && other->waiting.count;
}

struct neigh *neigh_oldest(const struct neigh_table *t, const uint8_t gid[16])
{
	struct neigh *oldest = NULL, *same = NULL, *n = NULL;
	uint32_t count = 0; /* neighbours with this GID */

	while ((n = neigh_next(t, n))) {
		if (is_older(n, oldest))
			oldest = n;
		if (memcmp(n->address.gid, gid, 16) != 0)
			continue;
		count++;
		if (is_older(n, same))
			same = n;
		/* no other one with this GID is older */
		if (count >= NEIGH_PER_GID && !same->used_ms &&
		    !same->waiting.count)
			break;
	}
	return count < NEIGH_PER_GID ? oldest : same;
}

void neigh_remove(struct neigh_table *t, struct neigh *n)
{
	struct neigh **at = &t->buckets[bucket_of(n->mac)];

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	t->count--;
	free(n);
}

struct neigh *neigh_next(const struct neigh_table *t, const struct neigh *n)
{
	uint32_t bucket = 0;

	if (n && n->next)
		return n->next;
	if (n)
		bucket = bucket_of(n->mac) + 1;
	while (bucket < NEIGH_BUCKETS && !t->buckets[bucket])
		bucket++;
	return bucket < NEIGH_BUCKETS ? t->buckets[bucket] : NULL;
}

static uint32_t slot_of(uint16_t lid, uint32_t qpn)
{
	return (lid * 31u + qpn) % NEIGH_SOURCES;
}

void neigh_note_source(struct neigh_table *t, const struct neigh *n,
		       uint16_t lid)
{
	struct neigh_source *s = &t->sources[slot_of(lid, n->address.qpn)];

	s->lid = lid;
	s->qpn = n->address.qpn;
	memcpy(s->mac, n->mac, HWADDR_MAC_BYTES);
}

const uint8_t *neigh_source(const struct neigh_table *t, uint16_t lid,
			    uint32_t qpn)
{
	const struct neigh_source *s = &t->sources[slot_of(lid, qpn)];

	return s->qpn && s->lid == lid && s->qpn == qpn ? s->mac : NULL;
}
