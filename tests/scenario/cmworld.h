/* SPDX-License-Identifier: BSD-2-Clause */
/* A world for the tests of connection management: two managers, the owners of
 * the managers' conversations, and a wire between the managers that loses,
 * repeats, delays and reorders packets. */
#ifndef TESTS_SCENARIO_CMWORLD_H
#define TESTS_SCENARIO_CMWORLD_H

#include "test.h"

#include <errno.h>

#include "cm/conv.h"

#define SECOND	  1000000000ull
#define SERVICE	  0x01061234
#define ENDPOINTS 400	     /* the most ends of a side */
#define OWNERS	  8	     /* owners on a side; owner k % OWNERS has end k */
#define ON_WIRE	  4096	     /* the most packets under way */
#define LISTENER  UINT64_MAX /* cm_event.user of a request */

struct packet {
	bool is_used;
	int to;	      /* the side that gets the packet */
	uint64_t due; /* when the packet arrives, in ns */
	struct cm_frame frame;
};

/* One end of a connection, as its owner knows the end from events. */
struct end {
	uint32_t id; /* 0: none */
	bool is_established, is_over, is_released;
	/* the owner died without a manager, and no manager has been told */
	bool is_left;
	bool is_unanswered; /* the end is over without a message of the peer */
	/* numbers of events; `requests` is not used */
	unsigned established, ended, requests;
	struct cm_note note; /* made at the owner's latest event or action */
};

struct world {
	struct cm *cm[2];
	uint8_t ip[2][16];
	struct end end[2][ENDPOINTS];
	uint32_t ends[2]; /* how many entries of end[] each side uses */
	bool listens[2];  /* the side listens for SERVICE */
	struct packet wire[ON_WIRE];
	int wires; /* wire[wires] and all packets after it are unused */
	struct rng rng;
	uint64_t now;		    /* ns */
	uint32_t loss, twice, late; /* chances in a million that a message is
				       lost, arrives twice or is late */
	uint8_t lost;	 /* the next message of this kind is lost; 0: none is */
	uint32_t doubts; /* CM_STALE events so far */
	bool is_stale;	 /* the answer to CM_STALE is cm_stale */
};

static inline void listen_at(struct world *w, int side)
{
	struct cm_where any = {.any_v4 = true};
	uint32_t listener;

	cm_listen(w->cm[side], NULL, LISTENER, SERVICE, &any, 16, &listener);
	w->listens[side] = true;
}

static inline struct cm *new_manager(struct world *w)
{
	struct cm_config config = {.seed = rng_u64(&w->rng),
				   .conversations = 4 * ENDPOINTS,
				   .half_open = 2 * ENDPOINTS};

	return cm_new(&config, w->now);
}

/* Makes two managers that listen for SERVICE.  faults: the chance in a million
 * of each of the faults loss, twice and late. */
static inline struct world *world_new(uint64_t seed, uint32_t faults)
{
	struct world *w = calloc(1, sizeof(*w));

	rng_init(&w->rng, seed);
	w->loss = w->twice = w->late = faults;
	w->now = SECOND;
	for (int i = 0; i < 2; i++) {
		memcpy(w->ip[i], &(struct cm_where){{[10] = 0xff, 0xff, 10}},
		       13);
		w->ip[i][15] = (uint8_t)(i + 1);
		w->cm[i] = new_manager(w);
		listen_at(w, i);
	}
	return w;
}

static inline void world_free(struct world *w)
{
	cm_free(w->cm[0]);
	cm_free(w->cm[1]);
	free(w);
}

/* Puts a message of side `from` on the wire, with a random delay. */
static inline void put_frame(struct world *w, int from,
			     const struct cm_frame *f)
{
	uint64_t delay = 1000000 + rng_below(&w->rng, 1000000);

	if (rng_chance(&w->rng, w->late))
		delay = rng_below(&w->rng, 3000000) * 1000ull;
	for (int i = 0; i < ON_WIRE; i++)
		if (!w->wire[i].is_used) {
			w->wire[i] = (struct packet){true, !from,
						     w->now + delay, *f};
			if (i >= w->wires)
				w->wires = i + 1;
			return;
		}
	fail_msg("the wire is full");
}

/* Returns the end with this id, or NULL. */
static inline struct end *end_of(struct world *w, int side, uint32_t id)
{
	for (uint32_t i = 0; i < w->ends[side]; i++)
		if (w->end[side][i].id == id)
			return &w->end[side][i];
	return NULL;
}

static inline void take_event(struct world *w, int side,
			      const struct cm_event *e)
{
	struct end *n = end_of(w, side, e->id);

	if (e->type == CM_REQUEST) {
		assert_null(n);
		assert_true(e->user == LISTENER);
		assert_true(w->ends[side] < ENDPOINTS);
		n = &w->end[side][w->ends[side]++];
		*n = (struct end){.id = e->id};
		cm_note_make(w->cm[side], e->id, &n->note);
		return;
	}
	assert_non_null(n);
	assert_false(n->is_released);
	cm_note_make(w->cm[side], e->id, &n->note);
	switch (e->type) {
	case CM_ESTABLISHED:
		n->is_established = true;
		n->established++;
		break;
	case CM_REJECTED:
	case CM_UNREACHABLE:
	case CM_DISCONNECTED:
		assert_false(n->is_over);
		n->is_over = true;
		n->is_unanswered = e->msg.kind == 0;
		n->ended++;
		break;
	case CM_REQUEST:
	case CM_RESPONSE:
	case CM_TIMEWAIT_EXIT:
	case CM_STALE:
	case CM_RESOLVED:
		break;
	}
}

/* Puts the messages of a side on the wire, with the faults of the world, and
 * takes the events of the side. */
static inline void drain_side(struct world *w, int side)
{
	struct cm_frame f;
	struct cm_event e;

	while (cm_tx(w->cm[side], &f)) {
		if (w->lost && f.mad[17] == w->lost) {
			w->lost = 0;
			continue;
		}
		if (rng_chance(&w->rng, w->loss))
			continue;
		put_frame(w, side, &f);
		if (rng_chance(&w->rng, w->twice))
			put_frame(w, side, &f);
	}
	while (cm_event(w->cm[side], &e)) {
		if (e.type != CM_STALE) {
			take_event(w, side, &e);
			continue;
		}
		w->doubts++;
		if (w->is_stale)
			cm_stale(w->cm[side], e.peer, e.msg.qp.qpn, w->now);
	}
}

/* Begins a connection of a side by a REQ, unless the side has ENDPOINTS ends.
 */
static inline void start_connection(struct world *w, int side)
{
	struct cm_start s = {.msg = {.kind = CMMSG_REQ,
				     .service_id = SERVICE,
				     .qp.qpn = rng_u32(&w->rng) & 0xffffff,
				     .remote_timeout = 20,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};
	struct end *n = &w->end[side][w->ends[side]];

	if (w->ends[side] == ENDPOINTS)
		return;
	memcpy(s.local, w->ip[side], 16);
	memcpy(s.peer, w->ip[!side], 16);
	*n = (struct end){0};
	assert_int_equal(cm_connect(w->cm[side], &s, w->now, &n->id), 0);
	cm_note_make(w->cm[side], n->id, &n->note);
	w->ends[side]++;
}

/* Executes a random action of an owner on its end *n.  The action need not fit
 * the state of the end. */
static inline void act_at_random(struct world *w, int side, struct end *n)
{
	struct cmmsg reply = {.qp.qpn = rng_u32(&w->rng) & 0xffffff,
			      .reason = CMMSG_REJ_CONSUMER};
	struct conv *c = conv_find(w->cm[side], n->id);

	if (n->is_released || !c)
		return;
	switch (rng_below(&w->rng, 12)) {
	case 0:
		if (!cm_reject(w->cm[side], n->id, &reply, w->now))
			n->is_over = true; /* the end gets no more events */
		break;
	case 1:
		if (!cm_disconnect(w->cm[side], n->id, w->now))
			n->is_established = false;
		break;
	case 2:
		n->is_released = true;
		cm_release(w->cm[side], n->id, w->now);
		break;
	case 3:
	case 4:
		cm_taken(w->cm[side], n->id);
		break;
	default:
		if (cm_accept(w->cm[side], n->id, &reply, w->now) == -EINVAL &&
		    c->state == CONV_REP_RCVD &&
		    !cm_establish(w->cm[side], n->id, w->now))
			n->is_established = true;
	}
	if (!n->is_released)
		cm_note_make(w->cm[side], n->id, &n->note);
	drain_side(w, side);
}

/* An owner dies.  A living manager releases the owner's ends.  Without a
 * manager the ends wait for the successor, which with a chance of one half
 * learns of the death only by report_deaths. */
static inline void kill_owner(struct world *w, int side, bool has_manager)
{
	uint32_t owner = rng_below(&w->rng, OWNERS);
	bool is_left = !has_manager && rng_below(&w->rng, 2) == 0;

	for (uint32_t i = owner; i < w->ends[side]; i += OWNERS) {
		struct end *n = &w->end[side][i];

		if (n->is_released)
			continue;
		n->is_released = true;
		n->is_left = is_left;
		/* The successor does not know an end that is left, and would
		 * take a repeated REQ of the end's peer for a new request.  So
		 * the side does not listen until report_deaths(). */
		w->listens[side] &= !is_left;
		if (!has_manager)
			continue;
		cm_release(w->cm[side], n->id, w->now);
		drain_side(w, side);
	}
}

/* Tells the manager of a side of the deaths of which no manager has been told
 * (is_left).  A side that has not listened since such a death listens again. */
static inline void report_deaths(struct world *w, int side)
{
	for (uint32_t i = 0; i < w->ends[side]; i++) {
		struct end *n = &w->end[side][i];

		if (!n->is_left)
			continue;
		n->is_left = false;
		cm_note_release(w->cm[side], NULL, &n->note, w->now);
		drain_side(w, side);
	}
	if (!w->listens[side])
		listen_at(w, side);
}

/* One manager dies.  The successor gets the notes of the owners. */
static inline void replace_manager(struct world *w, int side)
{
	uint64_t late = rng_below(&w->rng, 3000) * 1000000ull;

	cm_free(w->cm[side]);
	if (rng_below(&w->rng, 3) == 0)
		kill_owner(w, side, false);
	w->cm[side] = new_manager(w);
	cm_expect_listeners(w->cm[side], w->now + late + 4 * SECOND);
	for (int is_released = 0; is_released <= 1; is_released++)
		for (uint32_t i = 0; i < w->ends[side]; i++) {
			struct end *n = &w->end[side][i];
			uint32_t id = n->id;

			if (!n->note.state || n->is_left ||
			    n->is_released != is_released)
				continue;
			if (is_released)
				cm_note_release(w->cm[side], NULL, &n->note,
						w->now);
			else
				assert_int_equal(
					cm_note_resume(w->cm[side], NULL, 0,
						       &n->note, w->now, &id),
					0);
			assert_int_equal(id, n->id);
			drain_side(w, side);
		}
	if (w->listens[side])
		listen_at(w, side);
}

/* Returns when a manager or a packet is due next, in ns; UINT64_MAX: never. */
static inline uint64_t next_time(const struct world *w)
{
	uint64_t t = UINT64_MAX;

	for (int i = 0; i < 2; i++)
		if (cm_deadline(w->cm[i]) < t)
			t = cm_deadline(w->cm[i]);
	for (int i = 0; i < w->wires; i++)
		if (w->wire[i].is_used && w->wire[i].due < t)
			t = w->wire[i].due;
	return t;
}

/* Runs the world until the time `until`, in ns; UINT64_MAX: until nothing is
 * due.  Returns false if nothing is left to wait for. */
static inline bool run_world(struct world *w, uint64_t until)
{
	for (uint64_t t = next_time(w); t <= until && t != UINT64_MAX;
	     t = next_time(w)) {
		w->now = t > w->now ? t : w->now;
		for (int i = 0; i < w->wires; i++) {
			struct packet *p = &w->wire[i];
			int to = p->to;

			if (!p->is_used || p->due > w->now)
				continue;
			p->is_used = false;
			cm_rx(w->cm[to], p->frame.from, p->frame.to,
			      &p->frame.way, p->frame.mad, MAD_BYTES, w->now);
			drain_side(w, to);
		}
		while (w->wires && !w->wire[w->wires - 1].is_used)
			w->wires--;
		for (int i = 0; i < 2; i++) {
			cm_tick(w->cm[i], w->now);
			drain_side(w, i);
		}
	}
	if (until != UINT64_MAX)
		w->now = until;
	return next_time(w) != UINT64_MAX;
}

/* Each end that its owner has not released is either established or over.  For
 * each end an owner gets at most one event that the connection is established,
 * and one that the end is over. */
static inline void check_ends(struct world *w, uint64_t seed)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < w->ends[s]; i++) {
			struct end *n = &w->end[s][i];
			struct conv *c = conv_find(w->cm[s], n->id);
			bool is_up = c && c->state == CONV_ESTABLISHED;

			if (n->ended > 1 || n->established > 1 ||
			    (!n->is_released && is_up == n->is_over))
				fail_msg("seed %llu: end %u of side %d is %s, "
					 "ended %u times, established %u",
					 (unsigned long long)seed, i, s,
					 is_up ? "up" : "not up", n->ended,
					 n->established);
		}
}

/* The two ends of each established connection name each other. */
static inline void check_agreement(struct world *w, uint64_t seed)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < w->ends[s]; i++) {
			struct conv *c = conv_find(w->cm[s], w->end[s][i].id);
			struct conv *d;

			if (!c || c->state != CONV_ESTABLISHED)
				continue;
			d = conv_find(w->cm[!s], c->remote_id);
			if (!d || d->state != CONV_ESTABLISHED ||
			    d->remote_id != c->local_id)
				fail_msg("seed %llu: one end of %x is up (%s, "
					 "its peer in state %d)",
					 (unsigned long long)seed, c->local_id,
					 c->is_passive ? "passive" : "active",
					 d ? (int)d->state : -1);
		}
}

/* Releases all ends.  Nothing is left then. */
static inline void check_idle(struct world *w, uint64_t seed)
{
	for (int s = 0; s < 2; s++) {
		for (uint32_t i = 0; i < w->ends[s]; i++)
			if (!w->end[s][i].is_released)
				cm_release(w->cm[s], w->end[s][i].id, w->now);
		drain_side(w, s);
	}
	run_world(w, UINT64_MAX);
	for (int s = 0; s < 2; s++) {
		if (cm_count(w->cm[s]))
			fail_msg("seed %llu: %u conversations are left",
				 (unsigned long long)seed, cm_count(w->cm[s]));
		assert_int_equal(w->cm[s]->listener[0].waiting, 0);
		for (int i = 0; i < CONV_BUCKETS; i++)
			assert_int_equal(w->cm[s]->half_open[i], 0);
	}
}

/* Accepts and establishes all open conversations, so that no peer waits for
 * ever. */
static inline void answer_all(struct world *w)
{
	const struct cmmsg reply = {.qp.qpn = 77};
	int turns = 0;

	/* with losses, a request, its fifteen retries and the message that
	 * reports the failure may all be lost; then one end would stay
	 * established */
	w->loss = w->twice = w->late = 0;
	while (run_world(w, w->now + 10 * SECOND)) {
		assert_true(turns++ < 1000);
		for (int s = 0; s < 2; s++)
			for (uint32_t i = 0; i < w->ends[s]; i++) {
				struct end *n = &w->end[s][i];

				cm_taken(w->cm[s], n->id);
				cm_accept(w->cm[s], n->id, &reply, w->now);
				if (conv_find(w->cm[s], n->id) &&
				    conv_find(w->cm[s], n->id)->state ==
					    CONV_REP_RCVD)
					cm_establish(w->cm[s], n->id, w->now);
				drain_side(w, s);
			}
	}
}

/* Runs connections with random actions and faults, and checks their ends.
 * is_mortal: managers also die. */
static inline void one_world(uint64_t seed, uint32_t faults, bool is_mortal)
{
	struct world *w = world_new(seed, faults);

	for (int i = 0; i < 60; i++) {
		start_connection(w, (int)rng_below(&w->rng, 2));
		drain_side(w, 0);
		drain_side(w, 1);
		for (int k = 0; k < 6; k++) {
			int side = (int)rng_below(&w->rng, 2);

			if (w->ends[side])
				act_at_random(w, side,
					      &w->end[side][rng_below(
						      &w->rng, w->ends[side])]);
		}
		run_world(w, w->now + rng_below(&w->rng, 2000) * 1000000ull);
		if (is_mortal && rng_below(&w->rng, 12) == 0)
			replace_manager(w, (int)rng_below(&w->rng, 2));
		if (rng_below(&w->rng, 30) == 0)
			kill_owner(w, (int)rng_below(&w->rng, 2), true);
		if (rng_below(&w->rng, 4) == 0)
			report_deaths(w, (int)rng_below(&w->rng, 2));
	}
	report_deaths(w, 0);
	report_deaths(w, 1);
	answer_all(w);
	check_ends(w, seed);
	check_agreement(w, seed);
	check_idle(w, seed);
	world_free(w);
}

/* Makes one connection: side 0 sends the REQ, side 1 accepts. */
static inline void connect_one(struct world *w)
{
	struct cmmsg reply = {.qp.qpn = 9};

	start_connection(w, 0);
	drain_side(w, 0);
	while (!w->ends[1])
		assert_true(run_world(w, w->now + SECOND));
	cm_accept(w->cm[1], w->end[1][0].id, &reply, w->now);
	drain_side(w, 1);
	while (cm_establish(w->cm[0], w->end[0][0].id, w->now))
		assert_true(run_world(w, w->now + SECOND / 10));
	w->end[0][0].is_established = true;
	drain_side(w, 0);
}

/* Returns a request of this kind from QP `qpn` of side 0 to side 1. */
static inline struct cm_start request_of(struct world *w, enum cmmsg_kind kind,
					 uint32_t qpn)
{
	struct cm_start s = {.msg = {.kind = kind,
				     .service_id = SERVICE,
				     .qp.qpn = qpn,
				     .remote_timeout = 20,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};

	memcpy(s.local, w->ip[0], 16);
	memcpy(s.peer, w->ip[1], 16);
	return s;
}

#endif
