/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_query.h"

#include "fabric_route.h"

#include "util/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The time for joins and leaves, in the form of cmproto.timeout: 4.096 us times
 * 2 to the power 20, 4.3 s. */
#define GROUP_TIMEOUT 20

/* A question about a path, which is not answered yet. */
struct path_query {
	struct list link;		 /* in cm_host.queries */
	struct fabric_cm_client *client; /* gets the answer */
	uint32_t id;	 /* the lower half of the transaction ID */
	uint32_t serial; /* of the client's request */
};

#define OF_QUERIES(l) CONTAINER_OF(l, struct path_query, link)

static void tell_done(struct fabric_cm_client *c, struct cmproto *m,
		      uint32_t serial, int err)
{
	m->kind = CMPROTO_DONE;
	m->serial = serial;
	m->err = err;
	m->is_ib = true;
	cmserver_tell(c->host->server, c->client, m);
}

static void answer_query(struct path_query *q, int err,
			 const struct cmproto_path *path)
{
	struct cmproto m = {0};

	if (!err)
		m.path = *path;
	tell_done(q->client, &m, q->serial, err);
}

static void free_query(struct path_query *q)
{
	list_remove(&q->link);
	q->client->query_count--;
	free(q);
}

/* Returns the host's query with this id; NULL: the id is that of a question
 * about a group, the query's client has ended, or no question had this id. */
static struct path_query *find_query(const struct cm_host *h, uint32_t id)
{
	list_for_each (l, &h->queries)
		if (OF_QUERIES(l)->id == id)
			return OF_QUERIES(l);
	return NULL;
}

void fabric_query_take(struct cm_host *h, const struct umad *from,
		       const uint8_t *mad, size_t bytes)
{
	int err = from->status ? -ETIMEDOUT : 0;
	struct path_query *q = find_query(h, sa_id(mad));
	struct cmproto_path path;

	if (!q) {
		fabric_group_take(&h->groups, sa_id(mad), err, mad, bytes);
		return;
	}
	if (!err)
		err = fabric_route_read(mad, bytes, &path);
	answer_query(q, err, &path);
	free_query(q);
}

/* Begins a query, whose answer comes later.  Returns 0 or -errno, as cmproto.h
 * says. */
static int begin_query(struct fabric_cm_client *c, const struct cmproto *m)
{
	struct fabric_cm *cm = c->host->cm;
	uint8_t mad[MAD_BYTES];
	struct path_query *q;
	int err;

	if (c->query_count == FABRIC_CM_QUERIES)
		return -ENOBUFS;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	fabric_route_write(m, ++cm->last_id, mad);
	err = fabric_host_ask(c->host, m->at.local, mad,
			      fabric_route_try_ms(m->timeout));
	if (err) {
		free(q);
		return err;
	}
	q->client = c;
	q->id = cm->last_id;
	q->serial = m->serial;
	list_init(&q->link);
	list_push_tail(&c->host->queries, &q->link);
	c->query_count++;
	return 0;
}

void fabric_query_route(struct fabric_cm_client *c, const struct cmproto *m)
{
	int err = begin_query(c, m);
	struct cmproto reply = {0};

	if (err)
		tell_done(c, &reply, m->serial, err);
}

static int ask_membership(void *user, const uint8_t gid[16],
			  const uint8_t mad[MAD_BYTES])
{
	return fabric_host_ask(user, gid, mad,
			       fabric_route_try_ms(GROUP_TIMEOUT));
}

static void answer_join(void *user, void *owner, uint32_t serial, int err,
			const struct sa_member *r)
{
	struct cmproto m = {0};

	if (!err) {
		m.group = fabric_group_write(r);
		m.path.pkey = r->pkey;
		memcpy(m.at.peer, r->mgid, 16);
	}
	tell_done(owner, &m, serial, err);
}

static void tell_lost(void *user, void *owner, uint32_t number)
{
	struct fabric_cm_client *c = owner;
	struct cmproto m = {.kind = CMPROTO_EVENT,
			    .event = CMPROTO_GROUP_LOST,
			    .call_id = number,
			    .is_ib = true};

	cmserver_tell(c->host->server, c->client, &m);
}

static const struct fabric_group_sink sink = {
	.ask = ask_membership, .answer = answer_join, .lost = tell_lost};

/* A port that has changed, for is_lost. */
struct changed_port {
	struct cm_host *host;
	uint32_t number; /* of the port */
	/* The port loses all its groups.  False: only those of partitions that
	 * the port is not in. */
	bool loses_all;
	struct fabric_port now; /* the port after the change */
};

/* Has the port of this membership lost the group?  arg: struct changed_port. */
static bool is_lost(const void *arg, const struct sa_member *r)
{
	const struct changed_port *p = arg;
	struct gid_place place;

	if (!fabric_host_port(p->host, r->port_gid, &place))
		return true; /* no port has the GID any more */
	return place.port == p->number &&
	       (p->loses_all ||
		fabric_host_pkey_index(&p->now, r->pkey) == FABRIC_HOST_PKEYS);
}

void fabric_query_changed(struct cm_host *h, uint32_t port, uint32_t changes)
{
	struct changed_port p = {.host = h, .number = port};

	if (fabric_show_port(h->node, port, &p.now))
		return;
	p.loses_all = (changes & (DATA_LID | DATA_REREGISTER)) ||
		      p.now.state != STATE_ACTIVE;
	if (p.loses_all || (changes & (DATA_PKEYS | DATA_GIDS)))
		fabric_group_lose(&h->groups, is_lost, &p);
}

void fabric_query_init(struct cm_host *h)
{
	list_init(&h->queries);
	fabric_group_init(&h->groups, &sink, h, &h->cm->last_id);
}

void fabric_query_free(struct cm_host *h)
{
	fabric_group_free(&h->groups);
}

void fabric_query_join(struct fabric_cm_client *c, const struct cmproto *m)
{
	int err = fabric_group_join(&c->host->groups, c, m);
	struct cmproto reply = {0};

	if (err)
		tell_done(c, &reply, m->serial, err);
}

void fabric_query_leave(struct fabric_cm_client *c, const struct cmproto *m)
{
	fabric_group_leave(&c->host->groups, c, m->call_id);
}

void fabric_query_drop(struct fabric_cm_client *c)
{
	list_for_each_safe (l, &c->host->queries)
		if (OF_QUERIES(l)->client == c)
			free_query(OF_QUERIES(l));
	fabric_group_drop(&c->host->groups, c);
}

bool fabric_query_is_busy(const struct cm_host *h)
{
	return fabric_group_is_busy(&h->groups);
}
