/* SPDX-License-Identifier: BSD-2-Clause */
/* The port spaces; see ports.h. */
#include "cm/ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/inaddr.h"
#include "util/list.h"

/* A space has 28232 ephemeral ports, 3.4 for each bucket.  A search for a free
 * port looks at all bindings in the bucket of each port that it tries. */
#define BUCKETS 8192

struct binding {
	struct list link;
	struct ports_want want; /* with the port that was given */
	bool is_listening;
};

struct ports {
	/* Counts of the entries of binding[]: of all entries (limit), of those
	 * that were used at least once (fresh), of those in free_list
	 * (free_count), and of those in use now (used). */
	uint32_t limit, fresh, free_count, used;
	struct binding *binding;
	uint32_t *free_list;	     /* indices that are free again */
	struct list bucket[BUCKETS]; /* bindings by their space and port */
};

struct ports *ports_new(uint32_t bindings)
{
	struct ports *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->limit = bindings;
	p->binding = calloc(bindings, sizeof(*p->binding));
	p->free_list = calloc(bindings, sizeof(*p->free_list));
	if (!p->binding || !p->free_list) {
		ports_free(p);
		return NULL;
	}
	for (int i = 0; i < BUCKETS; i++)
		list_init(&p->bucket[i]);
	return p;
}

void ports_free(struct ports *p)
{
	free(p->binding);
	free(p->free_list);
	free(p);
}

static struct list *bucket_of(struct ports *p, uint16_t space, uint16_t port)
{
	return &p->bucket[(space * 31u + port) % BUCKETS];
}

static bool is_any(const struct cm_where *w)
{
	return w->any_v4 || w->any_v6;
}

/* InfiniBand: the private data of a request to a GID may look like the header
 * of RDMA IP CM (struct cmmsg_ip), and then listeners at a GID and at an IP
 * address could both answer the request.  So a port is bound either at IP
 * addresses (by_header) or at GIDs. */
static bool overlaps_with(const struct cm_where *a, const struct cm_where *b)
{
	if (a->by_header != b->by_header)
		return true;
	if (is_any(a) && is_any(b))
		return (a->any_v4 && b->any_v4) || (a->any_v6 && b->any_v6);
	if (is_any(a))
		return inaddr_is_v4(b->ip) ? a->any_v4 : a->any_v6;
	if (is_any(b))
		return overlaps_with(b, a);
	return !memcmp(a->ip, b->ip, 16);
}

/* Does a binding other than self have the port at one of the wanted addresses?
 * With `listening`, only bindings that listen count.  Without it, a binding
 * that may share the port does not count if `want` may share it, too. */
static bool is_taken(struct ports *p, const struct ports_want *want,
		     const struct binding *self, bool listening)
{
	list_for_each (n, bucket_of(p, want->space, want->port)) {
		const struct binding *b =
			(const struct binding *)(void *)n; /* link is first */

		if (b == self || b->want.space != want->space ||
		    b->want.port != want->port ||
		    (listening && !b->is_listening))
			continue;
		if (!listening && want->may_share && b->want.may_share)
			continue;
		if (overlaps_with(&b->want.where, &want->where))
			return true;
	}
	return false;
}

/* Sets want->port to a free port of the `count` ports from `first` on; false:
 * none is free. */
static bool choose_of(struct ports *p, struct ports_want *want, uint32_t first,
		      uint32_t count, uint32_t random)
{
	for (uint32_t i = 0; i < count; i++) {
		want->port = (uint16_t)(first + (random % count + i) % count);
		if (!is_taken(p, want, NULL, false))
			return true;
	}
	return false;
}

/* Sets want->port to a free port if it is 0.  False: the wanted port is taken,
 * or no port is free. */
static bool choose_port(struct ports *p, struct ports_want *want,
			uint32_t random)
{
	const uint32_t end = PORTS_EPHEMERAL_LAST + 1;

	if (want->port)
		return !is_taken(p, want, NULL, false);
	/* a port that this function chooses is not shared */
	want->may_share = false;
	/* if there are as many bindings as preferred ports, a search of the
	 * preferred ports would probably find few free ones, or none */
	if (p->used < PORTS_PREFERRED &&
	    choose_of(p, want, end - PORTS_PREFERRED, PORTS_PREFERRED, random))
		return true;
	return choose_of(p, want, PORTS_EPHEMERAL_FIRST,
			 end - PORTS_EPHEMERAL_FIRST, random);
}

int ports_bind(struct ports *p, const struct ports_want *want, uint32_t random,
	       uint32_t *binding, uint16_t *port)
{
	struct ports_want got = *want;
	struct binding *b;

	if (p->used == p->limit)
		return -ENOMEM;
	if (!choose_port(p, &got, random))
		return -EADDRINUSE;
	b = &p->binding[p->free_count ? p->free_list[--p->free_count]
				      : p->fresh++];
	p->used++;
	*b = (struct binding){.want = got};
	list_init(&b->link);
	list_push_tail(bucket_of(p, got.space, got.port), &b->link);
	*binding = (uint32_t)(b - p->binding);
	*port = got.port;
	return 0;
}

int ports_listen(struct ports *p, uint32_t binding)
{
	struct binding *b = &p->binding[binding];

	if (is_taken(p, &b->want, b, true))
		return -EADDRINUSE;
	b->is_listening = true;
	return 0;
}

void ports_unlisten(struct ports *p, uint32_t binding)
{
	p->binding[binding].is_listening = false;
}

void ports_unbind(struct ports *p, uint32_t binding)
{
	list_remove(&p->binding[binding].link);
	p->free_list[p->free_count++] = binding;
	p->used--;
}
