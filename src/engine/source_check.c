/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/source_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/inside.h"
#include "util/bits.h"

/* A packet that waits for the answer about its port. */
struct parked {
	struct list node;      /* on sources.parked */
	struct engine_dgram d; /* one packet; its bytes follow this struct */
	uint32_t qpn;	       /* the peer's */
	uint16_t id;	       /* the expected IPv4 identification */
	uint64_t since_ns;     /* when the packet was parked */
};

int engine_sources_init(struct sources *s, bool is_asked,
			uint32_t (*class_of)(uint32_t qpn))
{
	list_init(&s->parked);
	s->class_of = class_of;
	if (!is_asked)
		return 0;
	s->believed = calloc(2 * SOURCE_SLOTS, sizeof(*s->believed));
	if (!s->believed)
		return -ENOMEM;
	s->others = s->believed + SOURCE_SLOTS;
	return 0;
}

static void unpark_packet(struct sources *s, struct parked *p)
{
	list_remove(&p->node);
	s->parked_count--;
	free(p);
}

void engine_sources_fini(struct sources *s)
{
	list_for_each_safe (n, &s->parked)
		unpark_packet(s, CONTAINER_OF(n, struct parked, node));
	free(s->believed);
}

void engine_sources_forget(struct sources *s)
{
	if (s->believed)
		memset(s->believed, 0, 2 * SOURCE_SLOTS * sizeof(*s->believed));
	s->want_tail = s->want_head;
}

/* Returns the number that names the process of a QPN of this host: the class of
 * the QPN, or, if there are no classes, the QPN. */
static uint32_t peer_of(const struct sources *s, uint32_t qpn)
{
	return s->class_of ? s->class_of(qpn) : qpn;
}

static struct source *slot_of(struct source *table, const struct inaddr *from,
			      uint32_t peer)
{
	uint32_t h = (peer * 0x9e3779b1u) ^ (from->port * 0x85ebca6bu);

	return &table[(h >> 16 ^ h) & (SOURCE_SLOTS - 1)];
}

static bool is_about(const struct source *o, const struct inaddr *from,
		     uint32_t peer)
{
	return o->port == from->port && o->peer == peer &&
	       o->is_v4 == inaddr_is_v4(from->ip);
}

/* Queues a question to the engine's caller.  False: SOURCE_ASKS questions were
 * asked in the SOURCE_ASK_NS that began at asks_ns, or SOURCE_ASKS questions
 * still wait for engine_wants_source. */
static bool ask_host(struct sources *s, const struct engine_dgram *d,
		     uint32_t qpn, uint64_t now_ns)
{
	if (now_ns - s->asks_ns >= SOURCE_ASK_NS) {
		s->asks_ns = now_ns;
		s->asks = 0;
	}
	if (s->asks == SOURCE_ASKS ||
	    s->want_head - s->want_tail == SOURCE_ASKS)
		return false;
	s->asks++;
	s->wanted[s->want_head++ % SOURCE_ASKS] =
		(struct engine_source){d->from, d->to, qpn, ENGINE_NO_USER};
	return true;
}

/* Is the slot free for another port?  Otherwise the slot belongs to a port
 * about which the engine's caller has not answered yet. */
static bool may_replace(const struct source *o, uint64_t now_ns)
{
	return !o->port || o->state != SOURCE_ASKED ||
	       now_ns - o->since_ns >= SOURCE_NS;
}

/* Notes in *o that the engine's caller was asked at since_ns about the port of
 * d. */
static void note_asked(struct source *o, const struct engine_dgram *d,
		       uint32_t peer, uint64_t since_ns)
{
	*o = (struct source){.peer = peer,
			     .port = d->from.port,
			     .state = SOURCE_ASKED,
			     .is_v4 = inaddr_is_v4(d->from.ip),
			     .user = ENGINE_NO_USER,
			     .since_ns = since_ns};
}

/* Stops believing the port of o.  If the engine's caller was asked about this
 * port less than SOURCE_NS ago, the answer may still come, so notes the
 * question in the table of other ports. */
static void disbelieve_port(struct sources *s, struct source *o,
			    const struct engine_dgram *d, uint64_t now_ns)
{
	struct source *other = slot_of(s->others, &d->from, o->peer);

	if (o->asked_ns && now_ns - o->asked_ns < SOURCE_NS &&
	    may_replace(other, now_ns))
		note_asked(other, d, o->peer, o->asked_ns);
	o->port = 0;
}

/* Is the port of o, which was believed, still believed?  Asks the engine's
 * caller again when the last answer is SOURCE_NS old.  Without a new answer the
 * port is believed until the last answer is 2 * SOURCE_NS old.  From then on
 * judge_other_port judges the port.  If disbelieve_port has noted the question,
 * the port counts as one about which the caller was asked; otherwise it counts
 * as a new port.  *until_ns: until when the result is valid. */
static bool is_believed(struct sources *s, struct source *o,
			const struct engine_dgram *d, uint32_t qpn,
			uint64_t now_ns, uint64_t *until_ns)
{
	uint64_t age = now_ns - o->since_ns;

	*until_ns = o->since_ns + SOURCE_NS;
	if (age < SOURCE_NS)
		return true;
	*until_ns = now_ns;
	if (age >= 2ull * SOURCE_NS) {
		disbelieve_port(s, o, d, now_ns);
		return false;
	}
	if (!o->asked_ns && ask_host(s, d, qpn, now_ns))
		o->asked_ns = now_ns;
	return true;
}

/* Judges a port that is not believed: the port may be refused, asked about or
 * new.  Asks the engine's caller about a new port.  *user: the owner of a
 * refused port. */
static enum source_word judge_other_port(struct sources *s,
					 const struct engine_dgram *d,
					 uint32_t qpn, uint64_t now_ns,
					 uint32_t *user)
{
	uint32_t peer = peer_of(s, qpn);
	struct source *o = slot_of(s->others, &d->from, peer);

	if (o->port && now_ns - o->since_ns < SOURCE_NS) {
		if (is_about(o, &d->from, peer)) {
			*user = o->user;
			return o->state == SOURCE_REFUSED ? SOURCE_IS_OTHERS
							  : SOURCE_IS_OPEN;
		}
		/* The slot belongs to another port, about which the engine's
		 * caller has not answered yet. */
		if (o->state == SOURCE_ASKED)
			return SOURCE_IS_LIMITED;
	}
	if (!ask_host(s, d, qpn, now_ns))
		return SOURCE_IS_LIMITED;
	note_asked(o, d, peer, now_ns);
	return SOURCE_IS_OPEN;
}

struct source_found engine_sources_look(struct sources *s,
					const struct engine_dgram *d,
					uint32_t qpn, uint64_t now_ns)
{
	struct source_found f = {SOURCE_IS_PEERS, UINT64_MAX, ENGINE_NO_USER};
	uint32_t peer = peer_of(s, qpn);
	struct source *o;

	if (!s->believed)
		return f;
	f.word = SOURCE_IS_OTHERS;
	if (!d->from.port)
		return f;
	o = slot_of(s->believed, &d->from, peer);
	if (is_about(o, &d->from, peer) &&
	    is_believed(s, o, d, qpn, now_ns, &f.until_ns))
		f.word = SOURCE_IS_PEERS;
	else
		f.word = judge_other_port(s, d, qpn, now_ns, &f.user);
	return f;
}

/* Drops the packets that have waited SOURCE_NS for an answer. */
static void drop_old_packets(struct sources *s, uint64_t now_ns)
{
	list_for_each_safe (n, &s->parked) {
		struct parked *p = CONTAINER_OF(n, struct parked, node);

		if (now_ns - p->since_ns < SOURCE_NS)
			return;
		unpark_packet(s, p);
	}
}

bool engine_sources_park(struct sources *s, const struct engine_dgram *d,
			 uint32_t qpn, const uint8_t *bytes, size_t len,
			 uint16_t id, uint64_t now_ns)
{
	struct parked *p;

	drop_old_packets(s, now_ns);
	if (s->parked_count == SOURCE_PARKED || len > IBT_PACKET_BYTES)
		return false;
	p = malloc(sizeof(*p) + len);
	if (!p)
		return false;
	*p = (struct parked){.d = *d, .qpn = qpn, .id = id, .since_ns = now_ns};
	memcpy(p + 1, bytes, len);
	p->d.bytes = (const uint8_t *)(p + 1);
	p->d.len = p->d.segment = len;
	list_push_tail(&s->parked, &p->node);
	s->parked_count++;
	return true;
}

bool engine_wants_source(struct engine *e, struct engine_source *want)
{
	struct sources *s = &e->sources;

	if (s->want_tail == s->want_head)
		return false;
	*want = s->wanted[s->want_tail++ % SOURCE_ASKS];
	return true;
}

/* Handles the packets that waited for the answer a. */
static void serve_parked(struct engine *e, const struct engine_source *a,
			 uint32_t peer, uint64_t now_ns)
{
	struct sources *s = &e->sources;
	struct list mine;

	list_init(&mine);
	list_for_each_safe (n, &s->parked) {
		struct parked *p = CONTAINER_OF(n, struct parked, node);

		if (peer_of(s, p->qpn) != peer ||
		    p->d.from.port != a->from.port ||
		    !inaddr_has_same_ip(p->d.from.ip, a->from.ip))
			continue;
		list_remove(n);
		list_push_tail(&mine, n);
	}
	list_for_each_safe (n, &mine) {
		struct parked *p = CONTAINER_OF(n, struct parked, node);

		engine_rx_parked(e, &p->d, p->id, now_ns);
		unpark_packet(s, p);
	}
}

void engine_source(struct engine *e, const struct engine_source *a,
		   bool is_peers, uint64_t now_ns)
{
	struct sources *s = &e->sources;
	uint32_t peer = peer_of(s, a->qpn);
	struct source *o;

	if (!s->believed)
		return;
	o = slot_of(s->believed, &a->from, peer);
	if (!is_peers && is_about(o, &a->from, peer))
		o->port = 0;
	if (!is_peers)
		o = slot_of(s->others, &a->from, peer);
	else if (is_about(slot_of(s->others, &a->from, peer), &a->from, peer))
		slot_of(s->others, &a->from, peer)->port = 0;
	*o = (struct source){
		.peer = peer,
		.port = a->from.port,
		.state = is_peers ? SOURCE_BELIEVED : SOURCE_REFUSED,
		.is_v4 = inaddr_is_v4(a->from.ip),
		.user = a->user,
		.since_ns = now_ns,
	};
	serve_parked(e, a, peer, now_ns);
}

void engine_forget_sources(struct engine *e)
{
	struct ibt_qp *q;
	uint32_t at = 0;

	engine_sources_forget(&e->sources);
	while ((q = map_next(&e->qpns, &at)))
		q->source.until_ns = 0;
}
