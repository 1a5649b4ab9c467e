/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of listeners, and the list of those that have ended (recent[]); see
 * cm/conv.h. */
#include <string.h>

#include "cm/conv.h"
#include "util/inaddr.h"

#define OF_SERVICE(node)                                                       \
	((struct conv_listener *)(void *)((char *)(node)-offsetof(             \
		struct conv_listener, link)))

static uint32_t bucket_of_service(const struct cm *cm, uint64_t service_id)
{
	return bucket_of(cm, &service_id, sizeof(service_id), 0);
}

static struct list *service_bucket(struct cm *cm, uint64_t service_id)
{
	return &cm->service[bucket_of_service(cm, service_id)];
}

void listener_enter(struct cm *cm, struct conv_listener *l)
{
	list_init(&l->link);
	list_push_tail(service_bucket(cm, l->service_id), &l->link);
}

/* Counts the places in recent[] that belong to the owner with this number. */
static uint32_t count_recent(const struct cm *cm, uint64_t owner)
{
	uint32_t count = 0;

	for (int i = 0; i < CONV_RECENT; i++)
		count += cm->recent[i].until_ns && cm->recent[i].owner == owner;
	return count;
}

/*
 * Chooses the place in recent[] for a listener of the owner with this number:
 * an unused place, or else the place with the earliest until_ns of the owner
 * that has the most places.  If no other owner has more places, this owner
 * loses a place of its own.  So an owner never loses a place to an owner that
 * has more.
 */
static struct conv_recent *recent_place(struct cm *cm, uint64_t owner)
{
	uint32_t most = count_recent(cm, owner);
	struct conv_recent *oldest = NULL;

	for (int i = 0; i < CONV_RECENT; i++) {
		struct conv_recent *r = &cm->recent[i];
		uint32_t count = count_recent(cm, r->owner);

		if (!r->until_ns)
			return r;
		if (count > most) {
			most = count;
			owner = r->owner;
			oldest = NULL;
		}
		if (r->owner == owner &&
		    (!oldest || r->until_ns < oldest->until_ns))
			oldest = r;
	}
	return oldest;
}

void listener_remember(struct cm *cm, const struct conv_listener *l,
		       uint64_t until_ns)
{
	uint64_t owner = l->owner ? l->owner->number : 0;

	*recent_place(cm, owner) = (struct conv_recent){
		.service_id = l->service_id,
		.until_ns = until_ns,
		.owner = owner,
		.where = l->where,
	};
}

/* Does a listener at the addresses w answer the request m, which has come to
 * the address `to`?  is_own: a conversation of this manager has sent m.
 * Anybody may have written the private data of m. */
static bool answers_at(const struct cm_where *w, const struct cmmsg *m,
		       const uint8_t to[16], bool is_own)
{
	struct cmmsg_ip ip;

	if (w->only_own && !is_own)
		return false;
	if (w->by_header && !cmmsg_ip_parse(m->private_data, &ip))
		return false;
	if (w->by_header)
		to = ip.dst;
	if (w->any_v4 || w->any_v6)
		return inaddr_is_v4(to) ? w->any_v4 : w->any_v6;
	return !memcmp(w->ip, to, 16);
}

struct conv_listener *listener_at(struct cm *cm, const struct cmmsg *m,
				  const uint8_t to[16], bool is_own)
{
	struct conv_listener *found = NULL;

	list_for_each (n, service_bucket(cm, m->service_id)) {
		struct conv_listener *l = OF_SERVICE(n);

		if (l->service_id != m->service_id ||
		    !answers_at(&l->where, m, to, is_own))
			continue;
		if (!l->where.any_v4 && !l->where.any_v6)
			return l;
		found = l;
	}
	return found;
}

static bool is_any(const struct cm_where *w)
{
	return w->any_v4 || w->any_v6;
}

bool listener_serves(const struct cm *cm, uint64_t service_id,
		     const struct cm_where *where)
{
	list_for_each (n, &cm->service[bucket_of_service(cm, service_id)]) {
		const struct conv_listener *l = OF_SERVICE(n);

		if (l->service_id == service_id &&
		    (is_any(&l->where) || is_any(where) ||
		     !memcmp(l->where.ip, where->ip, 16)))
			return true;
	}
	return false;
}

/* May the listener of the service `ended`, if it begins again, answer a request
 * for the service `asked`?  If both service IDs have a port, their port
 * spaces are not compared: some programs resolve by SIDR the port to which they
 * have connected. */
static bool is_expected(uint64_t ended, uint64_t asked)
{
	if (cmmsg_is_port(ended) && cmmsg_is_port(asked))
		return (uint16_t)ended == (uint16_t)asked;
	return ended == asked;
}

uint64_t listener_expected_until(const struct cm *cm, const struct cmmsg *m,
				 const uint8_t to[16])
{
	uint64_t until_ns = cm->expecting_until_ns;

	for (int i = 0; i < CONV_RECENT; i++)
		if (is_expected(cm->recent[i].service_id, m->service_id) &&
		    cm->recent[i].until_ns > until_ns &&
		    answers_at(&cm->recent[i].where, m, to, true))
			until_ns = cm->recent[i].until_ns;
	return until_ns;
}
