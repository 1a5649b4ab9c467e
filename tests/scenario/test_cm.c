/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two managers and a wire between them that loses, repeats, delays and
 * reorders.  Their owners act at random; in the end both ends of every
 * conversation agree, and nothing is left.  Managers die at random too, and
 * their successors go on from what the owners have noted; owners die, also
 * while there is no manager, and then from what that had noted of theirs.
 */
#include "test.h"

#include <errno.h>

#include "cm/conv.h"

#define SECOND	 1000000000ull
#define SERVICE	 0x01061234
#define ENDS	 400 /* conversations of one world */
#define OWNERS	 8   /* of a side; end k is of owner k % OWNERS */
#define ON_WIRE	 4096
#define LISTENER UINT64_MAX

static uint64_t seeds = 60; /* or the first argument */

struct packet {
	bool is_used;
	int to;
	uint64_t due;
	struct cm_frame frame;
};

/* What the owner of one end knows. */
struct end {
	uint32_t id; /* 0: none */
	bool is_established, is_over, is_released;
	/* its owner was stopped when the manager died, and then killed */
	bool is_left;
	bool is_unanswered; /* it was over without a word of the peer */
	unsigned established, ended, requests;
	struct cm_note note; /* as of what the owner heard last */
};

struct world {
	struct cm *cm[2];
	uint8_t ip[2][16];
	struct end end[2][ENDS];
	uint32_t ends[2];
	bool listens[2];
	struct packet wire[ON_WIRE];
	int wires; /* none beyond is used */
	struct rng rng;
	uint64_t now;
	uint32_t loss, twice, late; /* millionths */
	uint32_t doubts;	    /* CM_STALE, so often, */
	bool is_stale;		    /* and it is true */
};

static void listen_at(struct world *w, int side)
{
	struct cm_where any = {.any_v4 = true};
	uint32_t listener;

	cm_listen(w->cm[side], LISTENER, SERVICE, &any, 16, &listener);
	w->listens[side] = true;
}

static struct cm *manager(struct world *w)
{
	struct cm_config config = {.seed = rng_u64(&w->rng),
				   .conversations = 4 * ENDS,
				   .half_open = 2 * ENDS};

	return cm_new(&config, w->now);
}

static struct world *world_new(uint64_t seed, uint32_t faults)
{
	struct world *w = calloc(1, sizeof(*w));

	rng_init(&w->rng, seed);
	w->loss = w->twice = w->late = faults;
	w->now = SECOND;
	for (int i = 0; i < 2; i++) {
		memcpy(w->ip[i], &(struct cm_where){{[10] = 0xff, 0xff, 10}},
		       13);
		w->ip[i][15] = (uint8_t)(i + 1);
		w->cm[i] = manager(w);
		listen_at(w, i);
	}
	return w;
}

static void world_free(struct world *w)
{
	cm_free(w->cm[0]);
	cm_free(w->cm[1]);
	free(w);
}

static void put(struct world *w, int from, const struct cm_frame *f)
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

static struct end *end_of(struct world *w, int side, uint32_t id)
{
	for (uint32_t i = 0; i < w->ends[side]; i++)
		if (w->end[side][i].id == id)
			return &w->end[side][i];
	return NULL;
}

static void hear(struct world *w, int side, const struct cm_event *e)
{
	struct end *n = end_of(w, side, e->id);

	if (e->type == CM_REQUEST) {
		assert_null(n);
		assert_true(e->user == LISTENER);
		assert_true(w->ends[side] < ENDS);
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

static void drain(struct world *w, int side)
{
	struct cm_frame f;
	struct cm_event e;

	while (cm_tx(w->cm[side], &f)) {
		if (rng_chance(&w->rng, w->loss))
			continue;
		put(w, side, &f);
		if (rng_chance(&w->rng, w->twice))
			put(w, side, &f);
	}
	while (cm_event(w->cm[side], &e)) {
		if (e.type != CM_STALE) {
			hear(w, side, &e);
			continue;
		}
		w->doubts++;
		if (w->is_stale)
			cm_stale(w->cm[side], e.peer, e.msg.qpn, w->now);
	}
}

static void start(struct world *w, int side)
{
	struct cm_start s = {.msg = {.kind = CMMSG_REQ,
				     .service_id = SERVICE,
				     .qpn = rng_u32(&w->rng) & 0xffffff,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};
	struct end *n = &w->end[side][w->ends[side]];

	if (w->ends[side] == ENDS)
		return;
	memcpy(s.local, w->ip[side], 16);
	memcpy(s.peer, w->ip[!side], 16);
	*n = (struct end){0};
	assert_int_equal(cm_connect(w->cm[side], &s, w->now, &n->id), 0);
	cm_note_make(w->cm[side], n->id, &n->note);
	w->ends[side]++;
}

/* What an owner may do to one of its ends, sensible or not. */
static void act(struct world *w, int side, struct end *n)
{
	struct cmmsg reply = {.qpn = rng_u32(&w->rng) & 0xffffff,
			      .reason = CMMSG_REJ_CONSUMER};
	struct conv *c = conv_find(w->cm[side], n->id);

	if (n->is_released || !c)
		return;
	switch (rng_below(&w->rng, 12)) {
	case 0:
		if (!cm_reject(w->cm[side], n->id, &reply, w->now))
			n->is_over = true; /* and it hears no more */
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
	drain(w, side);
}

/* Its manager disconnects whom it had; one that is dead can do nothing. */
static void kill_owner(struct world *w, int side, bool has_manager)
{
	uint32_t owner = rng_below(&w->rng, OWNERS);
	bool is_left = !has_manager && rng_below(&w->rng, 2) == 0;

	for (uint32_t i = owner; i < w->ends[side]; i += OWNERS) {
		struct end *n = &w->end[side][i];

		if (n->is_released)
			continue;
		n->is_released = true;
		n->is_left = is_left;
		/* who is not there does not listen either, or a request that
		 * is repeated would be taken for another one */
		w->listens[side] &= !is_left;
		if (!has_manager)
			continue;
		cm_release(w->cm[side], n->id, w->now);
		drain(w, side);
	}
}

/* Now the successor knows of it. */
static void bury(struct world *w, int side)
{
	for (uint32_t i = 0; i < w->ends[side]; i++) {
		struct end *n = &w->end[side][i];

		if (!n->is_left)
			continue;
		n->is_left = false;
		cm_note_release(w->cm[side], &n->note, w->now);
		drain(w, side);
	}
	if (!w->listens[side])
		listen_at(w, side);
}

/* One manager dies.  Its successor gets what the owners have noted. */
static void rebirth(struct world *w, int side)
{
	uint64_t late = rng_below(&w->rng, 3000) * 1000000ull;

	cm_free(w->cm[side]);
	if (rng_below(&w->rng, 3) == 0)
		kill_owner(w, side, false);
	w->cm[side] = manager(w);
	cm_expect_listeners(w->cm[side], w->now + late + 4 * SECOND);
	for (int is_released = 0; is_released <= 1; is_released++)
		for (uint32_t i = 0; i < w->ends[side]; i++) {
			struct end *n = &w->end[side][i];
			uint32_t id = n->id;

			if (!n->note.state || n->is_left ||
			    n->is_released != is_released)
				continue;
			if (is_released)
				cm_note_release(w->cm[side], &n->note, w->now);
			else
				assert_int_equal(cm_note_resume(w->cm[side], 0,
								&n->note,
								w->now, &id),
						 0);
			assert_int_equal(id, n->id);
			drain(w, side);
		}
	if (w->listens[side])
		listen_at(w, side);
}

static uint64_t next_time(const struct world *w)
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

/* All that is due by `until`; false when nothing is left to wait for. */
static bool run(struct world *w, uint64_t until)
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
			cm_rx(w->cm[to], p->frame.from, p->frame.to, 0,
			      p->frame.mad, MAD_BYTES, w->now);
			drain(w, to);
		}
		while (w->wires && !w->wire[w->wires - 1].is_used)
			w->wires--;
		for (int i = 0; i < 2; i++) {
			cm_tick(w->cm[i], w->now);
			drain(w, i);
		}
	}
	if (until != UINT64_MAX)
		w->now = until;
	return next_time(w) != UINT64_MAX;
}

/* Every connection that was asked for is there, or is over: once. */
static void check_ends(struct world *w, uint64_t seed)
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

/* Both tables name each other, in the same state of affairs. */
static void check_agreement(struct world *w, uint64_t seed)
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
					 "the other in state %d)",
					 (unsigned long long)seed, c->local_id,
					 c->is_passive ? "passive" : "active",
					 d ? (int)d->state : -1);
		}
}

static void check_idle(struct world *w, uint64_t seed)
{
	for (int s = 0; s < 2; s++) {
		for (uint32_t i = 0; i < w->ends[s]; i++)
			if (!w->end[s][i].is_released)
				cm_release(w->cm[s], w->end[s][i].id, w->now);
		drain(w, s);
	}
	run(w, UINT64_MAX);
	for (int s = 0; s < 2; s++) {
		if (cm_count(w->cm[s]))
			fail_msg("seed %llu: %u conversations are left",
				 (unsigned long long)seed, cm_count(w->cm[s]));
		assert_int_equal(w->cm[s]->listener[0].waiting, 0);
		for (int i = 0; i < CONV_BUCKETS; i++)
			assert_int_equal(w->cm[s]->half_open[i], 0);
	}
}

/* Nobody stays undecided, or its peer waits for good. */
static void answer_all(struct world *w)
{
	const struct cmmsg reply = {.qpn = 77};
	int turns = 0;

	/* In a minute of losses fifteen tries and the word that they were in
	 * vain may all get lost: then one end stays up. */
	w->loss = w->twice = w->late = 0;
	while (run(w, w->now + 10 * SECOND)) {
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
				drain(w, s);
			}
	}
}

static void one_world(uint64_t seed, uint32_t faults, bool is_mortal)
{
	struct world *w = world_new(seed, faults);

	for (int i = 0; i < 60; i++) {
		start(w, (int)rng_below(&w->rng, 2));
		drain(w, 0);
		drain(w, 1);
		for (int k = 0; k < 6; k++) {
			int side = (int)rng_below(&w->rng, 2);

			if (w->ends[side])
				act(w, side,
				    &w->end[side]
					   [rng_below(&w->rng, w->ends[side])]);
		}
		run(w, w->now + rng_below(&w->rng, 2000) * 1000000ull);
		if (is_mortal && rng_below(&w->rng, 12) == 0)
			rebirth(w, (int)rng_below(&w->rng, 2));
		if (rng_below(&w->rng, 30) == 0)
			kill_owner(w, (int)rng_below(&w->rng, 2), true);
		if (rng_below(&w->rng, 4) == 0)
			bury(w, (int)rng_below(&w->rng, 2));
	}
	bury(w, 0);
	bury(w, 1);
	answer_all(w);
	check_ends(w, seed);
	check_agreement(w, seed);
	check_idle(w, seed);
	world_free(w);
}

static void both_ends_agree_whatever_the_wire_does(void **state)
{
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		one_world(seed, 0, false);
		one_world(seed, 250000, false);
	}
}

static void both_ends_agree_whoever_of_the_managers_dies(void **state)
{
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		one_world(seed, 0, true);
		one_world(seed, 250000, true);
	}
}

/* One connection by hand: side 0 calls, side 1 accepts. */
static void connect_one(struct world *w)
{
	struct cmmsg reply = {.qpn = 9};

	start(w, 0);
	drain(w, 0);
	while (!w->ends[1])
		assert_true(run(w, w->now + SECOND));
	cm_accept(w->cm[1], w->end[1][0].id, &reply, w->now);
	drain(w, 1);
	while (cm_establish(w->cm[0], w->end[0][0].id, w->now))
		assert_true(run(w, w->now + SECOND / 10));
	w->end[0][0].is_established = true;
	drain(w, 0);
}

/* What side `side` has to say is lost if it is the n-th that we try. */
static void say(struct world *w, int side, bool is_lost)
{
	w->loss = is_lost ? 1000000 : 0;
	drain(w, side);
	w->loss = 0;
}

static void a_lost_message_of_any_kind_is_made_up_for(void **state)
{
	const struct cmmsg reply = {.qpn = 9};

	for (int lost = CMMSG_REQ; lost <= CMMSG_DREP; lost++) {
		struct world *w = world_new(9, 0);
		struct end *a = &w->end[0][0], *b = &w->end[1][0];
		uint64_t began = w->now;

		start(w, 0);
		say(w, 0, lost == CMMSG_REQ);
		run(w, w->now + SECOND / 2);
		cm_accept(w->cm[1], b->id, &reply, w->now);
		say(w, 1, lost == CMMSG_REP);
		run(w, w->now + SECOND / 2);
		assert_int_equal(cm_establish(w->cm[0], a->id, w->now), 0);
		say(w, 0, lost == CMMSG_RTU);
		run(w, w->now + 2 * SECOND);
		assert_int_equal(b->established, 1);
		cm_disconnect(w->cm[0], a->id, w->now);
		say(w, 0, lost == CMMSG_DREQ);
		run(w, w->now + SECOND / 2);
		assert_int_equal(b->ended, 1);
		assert_int_equal(cm_disconnect(w->cm[1], b->id, w->now), 0);
		say(w, 1, lost == CMMSG_DREP);
		run(w, w->now + SECOND);
		assert_int_equal(a->ended, 1);
		assert_int_equal(b->ended, 1);
		assert_true(w->now - began < 5 * SECOND);
		world_free(w);
	}
}

/* Both ends are up, and one has asked for the end; both have time for it. */
static struct world *one_that_ends(void)
{
	struct world *w = world_new(11, 0);

	connect_one(w);
	run(w, w->now + SECOND);
	assert_int_equal(w->end[1][0].established, 1);
	assert_int_equal(cm_disconnect(w->cm[0], w->end[0][0].id, w->now), 0);
	drain(w, 0);
	run(w, w->now + SECOND / 10);
	assert_int_equal(w->end[1][0].ended, 1);
	return w;
}

/* One more step of that end's owner, which lets the peer know. */
typedef void answer(struct world *w, struct end *e);

static void by_disconnecting(struct world *w, struct end *e)
{
	assert_int_equal(cm_disconnect(w->cm[1], e->id, w->now), 0);
}

static void by_going(struct world *w, struct end *e)
{
	e->is_released = true;
	cm_release(w->cm[1], e->id, w->now);
}

/* Its manager dies, and the next one is given what it has noted. */
static void after_a_succession(struct world *w, struct end *e)
{
	uint32_t id;

	cm_free(w->cm[1]);
	w->cm[1] = manager(w);
	assert_int_equal(cm_note_resume(w->cm[1], 0, &e->note, w->now, &id), 0);
	assert_int_equal(id, e->id);
	by_disconnecting(w, e);
}

/* It dies with its manager, whose successor finds the note. */
static void as_a_will(struct world *w, struct end *e)
{
	cm_free(w->cm[1]);
	w->cm[1] = manager(w);
	e->is_released = true;
	cm_note_release(w->cm[1], &e->note, w->now);
}

static void who_ends_it_hears_of_it_when_the_peers_owner_has(void **state)
{
	answer *const answers[] = {by_disconnecting, by_going,
				   after_a_succession, as_a_will};

	for (size_t i = 0; i < TEST_COUNT(answers); i++) {
		struct world *w = one_that_ends();
		struct end *a = &w->end[0][0], *b = &w->end[1][0];
		uint64_t said;

		run(w, w->now + 20 * SECOND);
		assert_int_equal(a->ended, 0);
		/* it asks again and again, and the other one waits silently */
		assert_true(cm_counters(w->cm[0])->retries > 3);
		said = cm_counters(w->cm[1])->tx;
		assert_int_equal(cm_counters(w->cm[1])->duplicates,
				 cm_counters(w->cm[0])->retries);
		answers[i](w, b);
		assert_true(i > 1 || cm_counters(w->cm[1])->tx == said + 1);
		drain(w, 1);
		run(w, w->now + SECOND / 10);
		assert_int_equal(a->ended, 1);
		assert_int_equal(b->ended, 1);
		check_idle(w, i);
		world_free(w);
	}
}

/* For who still waits for an answer of that queue pair. */
static void it_is_known_of_a_queue_pair_that_its_connection_ended(void **state)
{
	struct world *w = world_new(11, 0);
	struct end *b = &w->end[1][0];
	uint32_t qpn;

	connect_one(w);
	run(w, w->now + SECOND);
	qpn = conv_find(w->cm[1], b->id)->remote_qpn;
	assert_false(cm_has_ended(w->cm[1], w->ip[0], qpn));
	cm_disconnect(w->cm[0], w->end[0][0].id, w->now);
	drain(w, 0);
	run(w, w->now + SECOND / 10);
	assert_true(cm_has_ended(w->cm[1], w->ip[0], qpn));
	assert_false(cm_has_ended(w->cm[1], w->ip[1], qpn));
	/* ours has asked for it, and has no word */
	assert_false(cm_has_ended(w->cm[0], w->ip[1], 9));
	by_disconnecting(w, b);
	drain(w, 1);
	run(w, w->now + SECOND / 10);
	assert_true(cm_has_ended(w->cm[1], w->ip[0], qpn));
	assert_true(cm_has_ended(w->cm[0], w->ip[1], 9));
	run(w, w->now + SECOND);
	assert_false(cm_has_ended(w->cm[1], w->ip[0], qpn));
	check_idle(w, 0);
	world_free(w);
}

/* After as many requests as its own request allowed. */
static void a_peer_that_never_looks_is_given_up(void **state)
{
	struct world *w = one_that_ends();
	struct end *a = &w->end[0][0];
	uint64_t began = w->now;
	uint64_t retries = cm_counters(w->cm[0])->retries;

	run(w, w->now + 50 * SECOND);
	assert_int_equal(a->ended, 0);
	while (!a->ended)
		assert_true(run(w, w->now + SECOND));
	assert_true(w->now - began < 70 * SECOND);
	assert_int_equal(cm_counters(w->cm[0])->retries - retries, 15);
	assert_true(a->is_unanswered);
	/* late, but no error */
	by_disconnecting(w, &w->end[1][0]);
	drain(w, 1);
	run(w, w->now + SECOND);
	assert_int_equal(a->ended, 1);
	check_idle(w, 0);
	world_free(w);
}

/* Each has its word from the other's request, and no second one. */
static void both_may_end_it_at_once(void **state)
{
	for (int lost = 0; lost <= 1; lost++) {
		struct world *w = world_new(12, 0);

		connect_one(w);
		run(w, w->now + SECOND);
		for (int side = 0; side < 2; side++) {
			assert_int_equal(cm_disconnect(w->cm[side],
						       w->end[side][0].id,
						       w->now),
					 0);
			say(w, side, lost && side);
		}
		run(w, w->now + SECOND / 10);
		assert_int_equal(w->end[1][0].ended, 1);
		assert_int_equal(w->end[0][0].ended, !lost);
		by_disconnecting(w, &w->end[1][0]);
		drain(w, 1);
		run(w, w->now + SECOND / 10);
		assert_int_equal(w->end[0][0].ended, 1);
		check_idle(w, 0);
		assert_int_equal(w->end[0][0].ended, 1);
		assert_int_equal(w->end[1][0].ended, 1);
		world_free(w);
	}
}

/* As with the kernel: it changes nothing, and is no error. */
static void an_end_before_there_is_a_connection_changes_nothing(void **state)
{
	const struct cmmsg reply = {.qpn = 9};
	struct world *w = world_new(13, 0);
	struct end *a = &w->end[0][0], *b = &w->end[1][0];

	start(w, 0);
	assert_int_equal(cm_disconnect(w->cm[0], a->id, w->now), 0);
	drain(w, 0);
	run(w, w->now + SECOND / 10);
	assert_int_equal(cm_disconnect(w->cm[1], b->id, w->now), 0);
	assert_int_equal(cm_accept(w->cm[1], b->id, &reply, w->now), 0);
	drain(w, 1);
	run(w, w->now + SECOND / 10);
	assert_int_equal(cm_disconnect(w->cm[0], a->id, w->now), 0);
	assert_int_equal(cm_establish(w->cm[0], a->id, w->now), 0);
	a->is_established = true;
	drain(w, 0);
	run(w, w->now + SECOND / 10);
	assert_int_equal(b->established, 1);
	assert_int_equal(a->ended + b->ended, 0);
	check_agreement(w, 0);
	check_idle(w, 0);
	world_free(w);
}

/* A manager in place of side 1's, whose owners tell it nothing. */
static void forget(struct world *w)
{
	cm_free(w->cm[1]);
	w->cm[1] = manager(w);
	listen_at(w, 1);
}

static void a_request_let_go_does_not_hide_its_repetition(void **state)
{
	const struct cmmsg reply = {.qpn = 9};
	struct world *w = world_new(9, 0);

	start(w, 0);
	drain(w, 0);
	run(w, w->now + SECOND / 10);
	forget(w);
	run(w, w->now + SECOND);
	assert_int_equal(w->ends[1], 2); /* of the same request */
	cm_accept(w->cm[1], w->end[1][1].id, &reply, w->now);
	cm_note_make(w->cm[1], w->end[1][1].id, &w->end[1][1].note);
	drain(w, 1);
	run(w, w->now + SECOND / 10);
	assert_int_equal(cm_establish(w->cm[0], w->end[0][0].id, w->now), 0);
	say(w, 0, true);
	forget(w);
	for (int i = 0; i < 2; i++) {
		cm_note_release(w->cm[1], &w->end[1][i].note, w->now);
		drain(w, 1);
	}
	run(w, w->now + SECOND / 10);
	assert_true(w->end[0][0].is_over);
	world_free(w);
}

static void a_busy_owner_holds_its_peer_for_as_long_as_it_takes(void **state)
{
	struct world *w = world_new(3, 0);

	start(w, 0);
	drain(w, 0);
	run(w, w->now + 600 * SECOND); /* ten minutes in a debugger */
	assert_int_equal(w->ends[1], 1);
	assert_false(w->end[0][0].is_over);
	cm_accept(w->cm[1], w->end[1][0].id, &(struct cmmsg){.qpn = 9}, w->now);
	drain(w, 1);
	run(w, w->now + SECOND);
	assert_int_equal(cm_establish(w->cm[0], w->end[0][0].id, w->now), 0);
	world_free(w);
}

static void an_alternate_path_is_refused_and_no_more(void **state)
{
	struct world *w = world_new(3, 0);
	struct cmmsg m = {.kind = CMMSG_RTU}, apr;
	uint8_t mad[MAD_BYTES];
	struct cm_frame f;

	connect_one(w);
	run(w, w->now + SECOND);
	m.local_id = w->end[0][0].id;
	for (int known = 0; known <= 1; known++) {
		m.remote_id = w->end[1][0].id ^ !known;
		cmmsg_write(mad, &m);
		mad[17] = CMMSG_LAP;
		cm_rx(w->cm[1], w->ip[0], w->ip[1], 0, mad, MAD_BYTES, w->now);
		assert_true(cm_tx(w->cm[1], &f));
		assert_true(cmmsg_parse(f.mad, MAD_BYTES, &apr));
		assert_int_equal(apr.kind, CMMSG_APR);
		assert_int_equal(apr.remote_id, m.local_id);
		assert_int_equal(apr.status, known ? CMMSG_APR_UNSUPPORTED
						   : CMMSG_APR_BAD_COMM_ID);
		assert_false(cm_tx(w->cm[1], &f));
	}
	assert_int_equal(w->end[1][0].ended, 0);
	world_free(w);
}

/* Not before it was held for a while, for one who is about to listen. */
static void without_a_listener_the_answer_comes_soon(void **state)
{
	struct world *w = world_new(4, 0);

	cm_unlisten(w->cm[1], 0, 0);
	start(w, 0);
	drain(w, 0);
	run(w, w->now + CM_HOLD_NS);
	assert_int_equal(w->end[0][0].ended, 0);
	run(w, w->now + SECOND / 100);
	assert_int_equal(w->end[0][0].ended, 1);
	assert_int_equal(cm_counters(w->cm[1])->no_listener, 1);
	assert_int_equal(cm_counters(w->cm[0])->retries, 0);
	assert_int_equal(cm_count(w->cm[1]), 0);
	world_free(w);
}

/* What one manager says to itself is handed to it. */
static void loop_back(struct cm *cm, uint64_t now)
{
	struct cm_frame f;

	while (cm_tx(cm, &f))
		cm_rx(cm, f.from, f.to, 0, f.mad, MAD_BYTES, now);
}

/*
 * Both ends are one manager's, which knows that nothing was lost: whoever takes
 * his time, each message is sent once.
 */
static void what_a_host_says_to_itself_is_not_repeated(void **state)
{
	struct world *w = world_new(4, 0);
	struct cm *cm = w->cm[1];
	struct cm_start s = {.msg = {.kind = CMMSG_REQ,
				     .service_id = SERVICE,
				     .qpn = 5,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};
	const struct cmmsg reply = {.qpn = 9};
	uint32_t active, passive;
	struct cm_event e;

	memcpy(s.local, w->ip[1], 16);
	memcpy(s.peer, w->ip[1], 16);
	assert_int_equal(cm_connect(cm, &s, w->now, &active), 0);
	loop_back(cm, w->now);
	assert_true(cm_event(cm, &e));
	passive = e.id;
	for (int step = 0; step < 4; step++) {
		/* longer than all its tries would take */
		for (int k = 0; step < 3 && k < 100; k++) {
			w->now += SECOND;
			cm_tick(cm, w->now);
			loop_back(cm, w->now);
		}
		if (step == 0)
			assert_int_equal(cm_accept(cm, passive, &reply, w->now),
					 0);
		else if (step == 1)
			assert_int_equal(cm_establish(cm, active, w->now), 0);
		else if (step == 2)
			assert_int_equal(cm_disconnect(cm, active, w->now), 0);
		else
			assert_int_equal(cm_disconnect(cm, passive, w->now), 0);
		loop_back(cm, w->now);
		assert_true(cm_event(cm, &e));
	}
	assert_int_equal(e.type, CM_DISCONNECTED);
	assert_int_equal(cm_counters(cm)->retries, 0);
	assert_int_equal(cm_counters(cm)->rx, 5);
	assert_int_equal(cm_counters(cm)->duplicates, 0);
	world_free(w);
}

static void who_wants_strict_timing_hears_at_once_that_nobody_listens(void **s)
{
	struct cm_start to_itself = {.msg = {.kind = CMMSG_REQ,
					     .service_id = SERVICE,
					     .qpn = 5,
					     .local_timeout = 20,
					     .max_cm_retries = 15}};

	for (int strict = 0; strict <= 1; strict++) {
		struct world *w = world_new(4, 0);
		struct cm_event e;
		uint32_t id;

		cm_unlisten(w->cm[1], 0, 0);
		to_itself.strict = strict;
		memcpy(to_itself.local, w->ip[1], 16);
		memcpy(to_itself.peer, w->ip[1], 16);
		assert_int_equal(cm_connect(w->cm[1], &to_itself, w->now, &id),
				 0);
		loop_back(w->cm[1], w->now);
		assert_int_equal(cm_event(w->cm[1], &e), strict);
		assert_true(!strict || e.type == CM_REJECTED);
		world_free(w);
	}
}

/* As one who has bound to loopback; whoever else calls is refused. */
static void a_listener_for_its_own_answers_nobody_else(void **state)
{
	static const struct cm_where own = {.any_v4 = true, .only_own = true};

	for (int near = 0; near <= 1; near++) {
		struct world *w = world_new(4, 0);
		struct cm_start s = {.msg = {.kind = CMMSG_REQ,
					     .service_id = SERVICE,
					     .qpn = 5,
					     .local_timeout = 20,
					     .max_cm_retries = 15}};
		uint32_t listener, id;
		struct cm_event e;

		cm_unlisten(w->cm[1], 0, 0);
		cm_listen(w->cm[1], LISTENER, SERVICE, &own, 16, &listener);
		memcpy(s.local, w->ip[near], 16);
		memcpy(s.peer, w->ip[1], 16);
		assert_int_equal(cm_connect(w->cm[near], &s, w->now, &id), 0);
		if (near) {
			loop_back(w->cm[1], w->now);
			assert_true(cm_event(w->cm[1], &e));
			assert_int_equal(e.type, CM_REQUEST);
		} else {
			w->end[0][w->ends[0]++].id = id;
			drain(w, 0);
			run(w, w->now + SECOND);
			assert_int_equal(w->ends[1], 0);
			assert_int_equal(w->end[0][0].ended, 1);
		}
		world_free(w);
	}
}

/* From side 0 to side 1. */
static struct cm_start request_of(struct world *w, enum cmmsg_kind kind,
				  uint32_t qpn)
{
	struct cm_start s = {.msg = {.kind = kind,
				     .service_id = SERVICE,
				     .qpn = qpn,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};

	memcpy(s.local, w->ip[0], 16);
	memcpy(s.peer, w->ip[1], 16);
	return s;
}

static void a_listener_that_comes_later_is_called_at_once(void **state)
{
	static const struct cm_where elsewhere = {
		{[10] = 0xff, 0xff, 10, 0, 0, 9}};
	static const struct cm_where any = {.any_v4 = true};
	static const enum cmmsg_kind kinds[] = {CMMSG_REQ, CMMSG_SIDR_REQ};

	for (size_t i = 0; i < TEST_COUNT(kinds); i++) {
		struct world *w = world_new(6, 0);
		struct cm_start s = request_of(w, kinds[i], 5);
		uint32_t other, listener, id;

		cm_unlisten(w->cm[1], 0, 0);
		assert_int_equal(cm_connect(w->cm[0], &s, w->now, &id), 0);
		w->end[0][w->ends[0]++].id = id;
		drain(w, 0);
		run(w, w->now + CM_HOLD_NS / 2);
		/* these are not for it, and do not hurt it */
		cm_listen(w->cm[1], LISTENER, SERVICE + 1, &any, 16, &other);
		cm_listen(w->cm[1], LISTENER, SERVICE, &elsewhere, 16, &other);
		run(w, w->now + CM_HOLD_NS / 4);
		assert_int_equal(w->ends[1], 0);
		assert_int_equal(cm_count(w->cm[1]), 1);
		cm_listen(w->cm[1], LISTENER, SERVICE, &any, 16, &listener);
		assert_true(cm_deadline(w->cm[1]) <= w->now);
		cm_tick(w->cm[1], w->now);
		drain(w, 1);
		assert_int_equal(w->ends[1], 1);
		assert_int_equal(conv_find(w->cm[1], w->end[1][0].id)->state,
				 i ? CONV_SIDR_RCVD : CONV_REQ_RCVD);
		assert_int_equal(cm_counters(w->cm[1])->held, 1);
		/* what is repeated is the same request */
		run(w, w->now + SECOND);
		assert_int_equal(w->ends[1], 1);
		assert_int_equal(w->end[0][0].ended, 0);
		check_idle(w, i);
		world_free(w);
	}
}

static void a_caller_waits_for_a_listener_that_has_just_gone(void **state)
{
	struct cm_where any = {.any_v4 = true};
	uint32_t listener;

	for (int again = 0; again <= 1; again++) {
		struct world *w = world_new(6, 0);

		cm_unlisten(w->cm[1], 0, w->now + SECOND);
		start(w, 0);
		drain(w, 0);
		run(w, w->now + SECOND / 2);
		assert_int_equal(w->end[0][0].ended, 0);
		if (again) {
			cm_listen(w->cm[1], LISTENER, SERVICE, &any, 16,
				  &listener);
			cm_tick(w->cm[1], w->now);
			drain(w, 1);
			assert_int_equal(w->ends[1], 1);
		}
		run(w, w->now + 2 * SECOND);
		assert_int_equal(w->end[0][0].ended, !again);
		assert_int_equal(w->ends[1], again);
		world_free(w);
	}
}

/* They are served in the order in which they came, and no one twice. */
static void a_full_backlog_holds_who_calls_until_there_is_room(void **state)
{
	static const struct cm_where any = {.any_v4 = true};
	struct world *w = world_new(8, 0);
	uint32_t listener;

	cm_unlisten(w->cm[1], 0, 0);
	cm_listen(w->cm[1], LISTENER, SERVICE, &any, 2, &listener);
	for (int i = 0; i < 6; i++) {
		start(w, 0);
		drain(w, 0);
		run(w, w->now + SECOND / 100);
	}
	assert_int_equal(w->ends[1], 2);
	run(w, w->now + 20 * SECOND); /* and they are repeated */
	assert_int_equal(w->ends[1], 2);
	for (uint32_t i = 0; i < 2; i++) {
		cm_taken(w->cm[1], w->end[1][i].id);
		cm_tick(w->cm[1], w->now);
		drain(w, 1);
		assert_int_equal(w->ends[1], 3 + i);
		assert_int_equal(
			conv_find(w->cm[1], w->end[1][2 + i].id)->remote_id,
			w->end[0][2 + i].id);
	}
	/* who gives it up is forgotten */
	cm_release(w->cm[0], w->end[0][4].id, w->now);
	w->end[0][4].is_released = true;
	drain(w, 0);
	run(w, w->now + SECOND / 100);
	assert_int_equal(cm_count(w->cm[1]), 5);
	/* and who waits for one that goes is refused */
	cm_unlisten(w->cm[1], listener, 0);
	run(w, w->now + SECOND / 100);
	assert_int_equal(w->end[0][5].ended, 1);
	assert_int_equal(cm_count(w->cm[1]), 4);
	w->listens[1] = false;
	world_free(w);
}

/* Its conversation comes back after its request was repeated. */
static void a_successor_knows_what_it_held_by_its_note(void **state)
{
	const struct cmmsg reply = {.qpn = 9};
	struct world *w = world_new(9, 0);
	struct end *b = &w->end[1][0];
	uint32_t id;

	start(w, 0);
	drain(w, 0);
	run(w, w->now + SECOND / 10);
	cm_free(w->cm[1]);
	w->cm[1] = manager(w);
	cm_expect_listeners(w->cm[1], w->now + 4 * SECOND);
	run(w, w->now + SECOND);
	assert_int_equal(cm_counters(w->cm[1])->held, 1);
	assert_int_equal(cm_note_resume(w->cm[1], 0, &b->note, w->now, &id), 0);
	assert_int_equal(cm_count(w->cm[1]), 1);
	listen_at(w, 1);
	run(w, w->now + SECOND);
	assert_int_equal(w->ends[1], 1);
	assert_int_equal(cm_accept(w->cm[1], b->id, &reply, w->now), 0);
	drain(w, 1);
	run(w, w->now + SECOND / 10);
	assert_int_equal(conv_find(w->cm[0], w->end[0][0].id)->state,
			 CONV_REP_RCVD);
	world_free(w);
}

static void
a_peer_reborn_with_the_same_queue_pair_ends_the_old_connection(void **state)
{
	struct world *w = world_new(5, 0);
	struct cm_config config = {
		.seed = 77, .conversations = ENDS, .half_open = ENDS};
	uint32_t qpn, id;
	struct cm_start s = {.msg = {.kind = CMMSG_REQ,
				     .service_id = SERVICE,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};

	connect_one(w);
	run(w, w->now + SECOND);
	assert_true(w->end[1][0].is_established);
	w->is_stale = true;
	qpn = conv_find(w->cm[1], w->end[1][0].id)->remote_qpn;
	cm_free(w->cm[0]);
	w->cm[0] = cm_new(&config, w->now);
	w->ends[0] = 0;
	s.msg.qpn = qpn;
	memcpy(s.local, w->ip[0], 16);
	memcpy(s.peer, w->ip[1], 16);
	cm_connect(w->cm[0], &s, w->now, &id);
	w->end[0][w->ends[0]++] = (struct end){.id = id};
	drain(w, 0);
	run(w, w->now + SECOND);
	assert_int_equal(w->end[1][0].ended, 1);
	assert_int_equal(w->end[0][0].ended, 1); /* refused as stale */
	cm_connect(w->cm[0], &s, w->now, &id);
	w->end[0][w->ends[0]++] = (struct end){.id = id};
	drain(w, 0);
	run(w, w->now + SECOND);
	assert_int_equal(w->ends[1], 2);
	world_free(w);
}

/* Who knows the queue pair of a connection says in the peer's name that it is
 * another's: the peer, who is asked, does not. */
static void a_connection_is_not_stale_because_somebody_says_so(void **state)
{
	struct world *w = world_new(5, 0);
	struct cmmsg m = {.kind = CMMSG_REQ,
			  .service_id = SERVICE,
			  .local_timeout = 20,
			  .max_cm_retries = 15};
	uint8_t mad[MAD_BYTES];

	connect_one(w);
	run(w, w->now + SECOND);
	m.qpn = conv_find(w->cm[1], w->end[1][0].id)->remote_qpn;
	memcpy(m.primary.local_gid, w->ip[0], 16);
	memcpy(m.primary.remote_gid, w->ip[1], 16);
	for (uint32_t k = 1; k <= 1000; k++) {
		m.local_id = 0x1000 + k;
		cmmsg_write(mad, &m);
		cm_rx(w->cm[1], w->ip[0], w->ip[1], 0, mad, MAD_BYTES, w->now);
		drain(w, 1);
	}
	run(w, w->now + SECOND);
	assert_int_equal(cm_counters(w->cm[1])->stale, 1000);
	assert_int_equal(w->doubts, 1);
	assert_int_equal(w->end[1][0].ended, 0);
	assert_int_equal(conv_find(w->cm[1], w->end[1][0].id)->state,
			 CONV_ESTABLISHED);
	world_free(w);
}

static void a_flood_of_requests_is_bounded(void **state)
{
	struct cm_config config = {
		.seed = 1, .conversations = 1000, .half_open = 100};
	struct cm_where any = {.any_v4 = true};
	struct cm *cm = cm_new(&config, 0);
	uint8_t me[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2}, mad[MAD_BYTES];
	struct cm_event e;
	struct cm_frame f;
	uint32_t listener, served = 0;

	cm_listen(cm, 0, SERVICE, &any, 10000, &listener);
	for (uint32_t i = 1; i <= 5000; i++) {
		struct cmmsg m = {.kind = CMMSG_REQ,
				  .local_id = i,
				  .qpn = i,
				  .service_id = SERVICE};

		peer[15] = i == 5000 ? 3 : 2;
		memcpy(m.primary.local_gid, peer, 16);
		memcpy(m.primary.remote_gid, me, 16);
		cmmsg_write(mad, &m);
		cm_rx(cm, peer, me, 0, mad, sizeof(mad), i);
		while (cm_event(cm, &e))
			served += e.type == CM_REQUEST;
		while (cm_tx(cm, &f))
			;
	}
	/* a hundred of the flood, and the other peer's one; and some wait */
	assert_int_equal(served, 101);
	assert_int_equal(cm_count(cm), 101 + 256);
	for (uint64_t now = 0; cm_deadline(cm) != WHEEL_NEVER;) {
		now = cm_deadline(cm);
		assert_true(now < 10 * SECOND);
		cm_tick(cm, now);
	}
	assert_int_equal(cm_count(cm), 101);
	cm_free(cm);
}

/* Who waits for a peer's share is served when another one of it is settled. */
static void a_peers_share_is_handed_on(void **state)
{
	const struct cmmsg reply = {.qpn = 9};
	struct world *w = world_new(8, 0);
	struct cm_config config = {
		.seed = 1, .conversations = ENDS, .half_open = 2};

	cm_free(w->cm[1]);
	w->cm[1] = cm_new(&config, w->now);
	listen_at(w, 1);
	for (int i = 0; i < 4; i++)
		start(w, 0);
	drain(w, 0);
	run(w, w->now + SECOND / 100);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(w->ends[1], i < 2 ? 2 + i : 4);
		assert_int_equal(
			cm_accept(w->cm[1], w->end[1][i].id, &reply, w->now),
			0);
		drain(w, 1);
		cm_tick(w->cm[1], w->now);
		drain(w, 1);
	}
	assert_int_equal(cm_counters(w->cm[0])->retries, 0);
	world_free(w);
}

/*
 * However many a peer has been answered lately, the next is taken at once; and
 * what is kept to be repeated is bounded.
 */
static void answers_stand_in_nobodys_way(void **state)
{
	static const enum cmmsg_kind kinds[] = {CMMSG_REQ, CMMSG_SIDR_REQ};
	const struct cmmsg reply = {.reason = CMMSG_REJ_CONSUMER};

	for (size_t k = 0; k < TEST_COUNT(kinds); k++) {
		struct world *w = world_new(14, 0);
		struct cm_config config = {
			.seed = 1, .conversations = 8000, .half_open = 4};
		struct cm_event e;
		struct cm_frame f;

		cm_free(w->cm[1]);
		w->cm[1] = cm_new(&config, w->now);
		listen_at(w, 1);
		for (uint32_t i = 1; i <= 6000; i++) {
			struct cmmsg m = request_of(w, kinds[k], i).msg;
			uint8_t mad[MAD_BYTES];

			m.local_id = i;
			memcpy(m.primary.local_gid, w->ip[0], 16);
			memcpy(m.primary.remote_gid, w->ip[1], 16);
			cmmsg_write(mad, &m);
			cm_rx(w->cm[1], w->ip[0], w->ip[1], 0, mad, MAD_BYTES,
			      w->now);
			if (!cm_event(w->cm[1], &e))
				fail_msg("request %u has to wait", i);
			if (k)
				cm_accept(w->cm[1], e.id, &reply, w->now);
			else
				cm_reject(w->cm[1], e.id, &reply, w->now);
			cm_release(w->cm[1], e.id, w->now);
			assert_true(cm_tx(w->cm[1], &f));
			/* what got lost is answered again */
			cm_rx(w->cm[1], w->ip[0], w->ip[1], 0, mad, MAD_BYTES,
			      w->now);
			assert_true(cm_tx(w->cm[1], &f));
			assert_false(cm_event(w->cm[1], &e));
		}
		assert_int_equal(cm_count(w->cm[1]), CONV_ANSWERED_MAX);
		run(w, w->now + 10 * SECOND);
		assert_int_equal(cm_count(w->cm[1]), 0);
		world_free(w);
	}
}

/* A peer's share, then everybody's; what is more is refused at once. */
static void a_flood_of_requests_to_nobody_is_bounded(void **state)
{
	enum { PEERS = 8, EACH = 1000 };
	struct cm_config config = {
		.seed = 1, .conversations = 30000, .half_open = 100};
	struct cm_where any = {.any_v4 = true};
	struct cm *cm = cm_new(&config, 0);
	uint8_t me[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 0}, mad[MAD_BYTES];
	uint32_t listener, refused = 0, served = 0;
	struct cm_event e;
	struct cm_frame f;

	cm_listen(cm, 0, SERVICE, &any, 10000, &listener);
	for (uint32_t i = 0; i < PEERS * EACH + PEERS; i++) {
		struct cmmsg m = {.kind = CMMSG_REQ,
				  .local_id = i + 1,
				  .qpn = i,
				  .service_id = SERVICE + 1};

		peer[15] = (uint8_t)(2 + i / EACH % PEERS);
		if (i >= PEERS * EACH) { /* to one who listens, beside it */
			m.service_id = SERVICE;
			peer[15] = (uint8_t)(2 + i % PEERS);
		}
		memcpy(m.primary.local_gid, peer, 16);
		memcpy(m.primary.remote_gid, me, 16);
		cmmsg_write(mad, &m);
		cm_rx(cm, peer, me, 0, mad, sizeof(mad), 1);
		while (cm_event(cm, &e))
			served += e.type == CM_REQUEST;
		while (cm_tx(cm, &f))
			refused++;
		if (i == EACH - 1)
			assert_int_equal(cm_count(cm), 256);
	}
	assert_int_equal(served, PEERS);
	assert_int_equal(cm_count(cm), 1024 + PEERS);
	assert_int_equal(refused, PEERS * EACH - 1024);
	for (uint64_t now = 0; cm_deadline(cm) != WHEEL_NEVER;) {
		now = cm_deadline(cm);
		assert_true(now < 2 * (uint64_t)CM_HOLD_NS);
		cm_tick(cm, now);
		while (cm_tx(cm, &f))
			refused++;
	}
	assert_int_equal(refused, PEERS * EACH);
	assert_int_equal(cm_count(cm), PEERS);
	cm_free(cm);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_agree_whatever_the_wire_does),
		cmocka_unit_test(both_ends_agree_whoever_of_the_managers_dies),
		cmocka_unit_test(a_lost_message_of_any_kind_is_made_up_for),
		cmocka_unit_test(
			who_ends_it_hears_of_it_when_the_peers_owner_has),
		cmocka_unit_test(a_peer_that_never_looks_is_given_up),
		cmocka_unit_test(
			it_is_known_of_a_queue_pair_that_its_connection_ended),
		cmocka_unit_test(both_may_end_it_at_once),
		cmocka_unit_test(
			an_end_before_there_is_a_connection_changes_nothing),
		cmocka_unit_test(a_request_let_go_does_not_hide_its_repetition),
		cmocka_unit_test(
			a_busy_owner_holds_its_peer_for_as_long_as_it_takes),
		cmocka_unit_test(an_alternate_path_is_refused_and_no_more),
		cmocka_unit_test(without_a_listener_the_answer_comes_soon),
		cmocka_unit_test(what_a_host_says_to_itself_is_not_repeated),
		cmocka_unit_test(
			who_wants_strict_timing_hears_at_once_that_nobody_listens),
		cmocka_unit_test(a_listener_for_its_own_answers_nobody_else),
		cmocka_unit_test(a_listener_that_comes_later_is_called_at_once),
		cmocka_unit_test(
			a_caller_waits_for_a_listener_that_has_just_gone),
		cmocka_unit_test(
			a_full_backlog_holds_who_calls_until_there_is_room),
		cmocka_unit_test(a_successor_knows_what_it_held_by_its_note),
		cmocka_unit_test(
			a_peer_reborn_with_the_same_queue_pair_ends_the_old_connection),
		cmocka_unit_test(
			a_connection_is_not_stale_because_somebody_says_so),
		cmocka_unit_test(a_flood_of_requests_is_bounded),
		cmocka_unit_test(a_flood_of_requests_to_nobody_is_bounded),
		cmocka_unit_test(a_peers_share_is_handed_on),
		cmocka_unit_test(answers_stand_in_nobodys_way),
	};

	if (argc > 1)
		seeds = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
