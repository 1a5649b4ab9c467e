/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two managers, and a wire between them that loses, repeats, delays and
 * reorders messages.  The owners of conversations act at random.  In the end
 * both ends of every conversation agree, and no conversation is left.  Managers
 * die at random too, and a manager's successor continues from the notes about
 * the conversations of living owners.  Owners also die while there is no
 * manager; then the successor releases the conversations that their notes
 * describe.
 */
#include "cmworld.h"

#include "hdr/bytes.h"

static uint64_t seeds = 60; /* how many; the first argument, if there is one */

static void both_ends_agree_whatever_the_wire_does(void **state)
{
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		one_world(seed, 0, false);
		one_world(seed, 250000, false);
	}
}

static void both_ends_agree_when_either_manager_dies(void **state)
{
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		one_world(seed, 0, true);
		one_world(seed, 250000, true);
	}
}

/* Sends the messages that wait at a side.  is_lost: the wire loses all of them.
 */
static void send_waiting(struct world *w, int side, bool is_lost)
{
	w->loss = is_lost ? 1000000 : 0;
	drain_side(w, side);
	w->loss = 0;
}

static void a_lost_message_of_a_connection_is_sent_again(void **state)
{
	static const uint8_t kinds[] = {CMMSG_REQ, CMMSG_MRA,  CMMSG_REP,
					CMMSG_RTU, CMMSG_DREQ, CMMSG_DREP};
	const struct cmmsg reply = {.qp.qpn = 9};

	for (size_t i = 0; i < TEST_COUNT(kinds); i++) {
		struct world *w = world_new(9, 0);
		struct end *a = &w->end[0][0], *b = &w->end[1][0];

		w->lost = kinds[i];
		start_connection(w, 0);
		drain_side(w, 0);
		run_world(w, w->now + SECOND);
		/* by then an MRA has come, the answer to a repeated request */
		assert_int_equal(conv_find(w->cm[0], a->id)->state,
				 CONV_REQ_WAIT);
		cm_accept(w->cm[1], b->id, &reply, w->now);
		drain_side(w, 1);
		run_world(w, w->now + SECOND / 2);
		assert_int_equal(cm_establish(w->cm[0], a->id, w->now), 0);
		drain_side(w, 0);
		run_world(w, w->now + 2 * SECOND);
		assert_int_equal(b->established, 1);
		cm_disconnect(w->cm[0], a->id, w->now);
		drain_side(w, 0);
		run_world(w, w->now + SECOND / 2);
		assert_int_equal(b->ended, 1);
		assert_int_equal(cm_disconnect(w->cm[1], b->id, w->now), 0);
		drain_side(w, 1);
		run_world(w, w->now + SECOND);
		assert_int_equal(a->ended, 1);
		assert_int_equal(b->ended, 1);
		assert_int_equal(w->lost, 0);
		world_free(w);
	}
}

static void a_lost_refusal_is_sent_again(void **state)
{
	const struct cmmsg no = {.reason = CMMSG_REJ_CONSUMER};
	struct world *w = world_new(9, 0);

	start_connection(w, 0);
	drain_side(w, 0);
	run_world(w,
		  w->now + SECOND / 100); /* before the request is repeated */
	w->lost = CMMSG_REJ;
	assert_int_equal(cm_reject(w->cm[1], w->end[1][0].id, &no, w->now), 0);
	drain_side(w, 1);
	assert_int_equal(w->lost, 0);
	assert_int_equal(w->end[0][0].ended, 0);
	run_world(w, w->now + SECOND);
	assert_int_equal(w->end[0][0].ended, 1);
	assert_int_equal(w->ends[1], 1); /* one event for the request */
	world_free(w);
}

/* Returns a world in which both ends were established, and side 1 has got the
 * disconnect request of side 0. */
static struct world *one_that_ends(void)
{
	struct world *w = world_new(11, 0);

	connect_one(w);
	run_world(w, w->now + SECOND);
	assert_int_equal(w->end[1][0].established, 1);
	assert_int_equal(cm_disconnect(w->cm[0], w->end[0][0].id, w->now), 0);
	drain_side(w, 0);
	run_world(w, w->now + SECOND / 10);
	assert_int_equal(w->end[1][0].ended, 1);
	return w;
}

/* A step by which the end of side 1 answers the peer's disconnect request. */
typedef void answer(struct world *w, struct end *e);

static void by_disconnecting(struct world *w, struct end *e)
{
	assert_int_equal(cm_disconnect(w->cm[1], e->id, w->now), 0);
}

static void by_releasing(struct world *w, struct end *e)
{
	e->is_released = true;
	cm_release(w->cm[1], e->id, w->now);
}

/* Side 1's manager dies, and its successor gets the owner's note. */
static void after_a_succession(struct world *w, struct end *e)
{
	uint32_t id;

	cm_free(w->cm[1]);
	w->cm[1] = new_manager(w);
	assert_int_equal(
		cm_note_resume(w->cm[1], NULL, 0, &e->note, w->now, &id), 0);
	assert_int_equal(id, e->id);
	by_disconnecting(w, e);
}

/* The owner dies together with the manager, whose successor finds the note. */
static void by_a_dead_owners_note(struct world *w, struct end *e)
{
	cm_free(w->cm[1]);
	w->cm[1] = new_manager(w);
	e->is_released = true;
	cm_note_release(w->cm[1], NULL, &e->note, w->now);
}

static void a_disconnect_ends_when_the_peers_program_has_taken_it(void **state)
{
	answer *const answers[] = {by_disconnecting, by_releasing,
				   after_a_succession, by_a_dead_owners_note};

	for (size_t i = 0; i < TEST_COUNT(answers); i++) {
		struct world *w = one_that_ends();
		struct end *a = &w->end[0][0], *b = &w->end[1][0];
		uint64_t said;

		run_world(w, w->now + 20 * SECOND);
		assert_int_equal(a->ended, 0);
		/* side 0 asks again and again, and side 1 does not answer */
		assert_true(cm_counters(w->cm[0])->retries > 3);
		said = cm_counters(w->cm[1])->tx;
		assert_int_equal(cm_counters(w->cm[1])->duplicates,
				 cm_counters(w->cm[0])->retries);
		answers[i](w, b);
		assert_true(i > 1 || cm_counters(w->cm[1])->tx == said + 1);
		drain_side(w, 1);
		run_world(w, w->now + SECOND / 10);
		assert_int_equal(a->ended, 1);
		assert_int_equal(b->ended, 1);
		check_idle(w, i);
		world_free(w);
	}
}

/* cm_has_ended is true from the peer's disconnect request or reply until the
 * end of TIMEWAIT, after which the conversation still exists. */
static void the_end_of_a_queue_pairs_connection_is_known(void **state)
{
	struct world *w = world_new(11, 0);
	struct end *b = &w->end[1][0];
	uint32_t qpn;

	connect_one(w);
	run_world(w, w->now + SECOND);
	qpn = conv_find(w->cm[1], b->id)->remote_qpn;
	assert_false(cm_has_ended(w->cm[1], NULL, w->ip[0], qpn));
	cm_disconnect(w->cm[0], w->end[0][0].id, w->now);
	drain_side(w, 0);
	run_world(w, w->now + SECOND / 10);
	assert_true(cm_has_ended(w->cm[1], NULL, w->ip[0], qpn));
	assert_false(cm_has_ended(w->cm[1], NULL, w->ip[1], qpn));
	/* side 0 has asked for the end, and has no answer */
	assert_false(cm_has_ended(w->cm[0], NULL, w->ip[1], 9));
	by_disconnecting(w, b);
	drain_side(w, 1);
	run_world(w, w->now + SECOND / 10);
	assert_true(cm_has_ended(w->cm[1], NULL, w->ip[0], qpn));
	assert_true(cm_has_ended(w->cm[0], NULL, w->ip[1], 9));
	run_world(w, w->now + SECOND);
	assert_false(cm_has_ended(w->cm[1], NULL, w->ip[0], qpn));
	check_idle(w, 0);
	world_free(w);
}

/* Side 0 gives up after as many retries as its connect request allowed.  The
 * peer has said nothing, so cm_has_ended stays false, also at a successor of
 * side 0's manager. */
static void a_peer_that_never_answers_is_given_up(void **state)
{
	struct world *w = one_that_ends();
	struct end *a = &w->end[0][0];
	uint64_t began = w->now;
	uint64_t retries = cm_counters(w->cm[0])->retries;
	struct cm *heir;
	uint32_t id;

	run_world(w, w->now + 50 * SECOND);
	assert_int_equal(a->ended, 0);
	while (!a->ended)
		assert_true(run_world(w, w->now + SECOND / 10));
	assert_true(w->now - began < 70 * SECOND);
	assert_int_equal(cm_counters(w->cm[0])->retries - retries, 15);
	assert_true(a->is_unanswered);
	assert_int_equal(conv_find(w->cm[0], a->id)->state, CONV_TIMEWAIT);
	assert_false(cm_has_ended(w->cm[0], NULL, w->ip[1], 9));
	heir = new_manager(w);
	assert_int_equal(cm_note_resume(heir, NULL, 0, &a->note, w->now, &id),
			 0);
	assert_false(cm_has_ended(heir, NULL, w->ip[1], 9));
	cm_free(heir);
	/* a late disconnect is no error */
	by_disconnecting(w, &w->end[1][0]);
	drain_side(w, 1);
	run_world(w, w->now + SECOND / 10);
	assert_true(cm_has_ended(w->cm[0], NULL, w->ip[1], 9));
	run_world(w, w->now + SECOND);
	assert_int_equal(a->ended, 1);
	check_idle(w, 0);
	world_free(w);
}

/* Each side gets one event: by the disconnect request of its peer, or, if that
 * request is lost, by the peer's reply. */
static void both_sides_may_disconnect_at_once(void **state)
{
	for (int lost = 0; lost <= 1; lost++) {
		struct world *w = world_new(12, 0);

		connect_one(w);
		run_world(w, w->now + SECOND);
		for (int side = 0; side < 2; side++) {
			assert_int_equal(cm_disconnect(w->cm[side],
						       w->end[side][0].id,
						       w->now),
					 0);
			send_waiting(w, side, lost && side);
		}
		run_world(w, w->now + SECOND / 10);
		assert_int_equal(w->end[1][0].ended, 1);
		assert_int_equal(w->end[0][0].ended, !lost);
		by_disconnecting(w, &w->end[1][0]);
		drain_side(w, 1);
		run_world(w, w->now + SECOND / 10);
		assert_int_equal(w->end[0][0].ended, 1);
		check_idle(w, 0);
		assert_int_equal(w->end[0][0].ended, 1);
		assert_int_equal(w->end[1][0].ended, 1);
		world_free(w);
	}
}

/* As with the kernel, a disconnect before the connection is established changes
 * nothing and is no error. */
static void an_end_before_there_is_a_connection_changes_nothing(void **state)
{
	const struct cmmsg reply = {.qp.qpn = 9};
	struct world *w = world_new(13, 0);
	struct end *a = &w->end[0][0], *b = &w->end[1][0];

	start_connection(w, 0);
	assert_int_equal(cm_disconnect(w->cm[0], a->id, w->now), 0);
	drain_side(w, 0);
	run_world(w, w->now + SECOND / 10);
	assert_int_equal(cm_disconnect(w->cm[1], b->id, w->now), 0);
	assert_int_equal(cm_accept(w->cm[1], b->id, &reply, w->now), 0);
	drain_side(w, 1);
	run_world(w, w->now + SECOND / 10);
	assert_int_equal(cm_disconnect(w->cm[0], a->id, w->now), 0);
	assert_int_equal(cm_establish(w->cm[0], a->id, w->now), 0);
	a->is_established = true;
	drain_side(w, 0);
	run_world(w, w->now + SECOND / 10);
	assert_int_equal(b->established, 1);
	assert_int_equal(a->ended + b->ended, 0);
	check_agreement(w, 0);
	check_idle(w, 0);
	world_free(w);
}

/* Replaces side 1's manager by a manager that has got no notes of the owners.
 */
static void forget_notes(struct world *w)
{
	cm_free(w->cm[1]);
	w->cm[1] = new_manager(w);
	listen_at(w, 1);
}

static void a_released_request_does_not_hide_its_repetition(void **state)
{
	const struct cmmsg reply = {.qp.qpn = 9};
	struct world *w = world_new(9, 0);

	start_connection(w, 0);
	drain_side(w, 0);
	run_world(w, w->now + SECOND / 10);
	forget_notes(w);
	run_world(w, w->now + SECOND);
	assert_int_equal(w->ends[1], 2); /* both ends are of the same request */
	cm_accept(w->cm[1], w->end[1][1].id, &reply, w->now);
	cm_note_make(w->cm[1], w->end[1][1].id, &w->end[1][1].note);
	drain_side(w, 1);
	run_world(w, w->now + SECOND / 10);
	assert_int_equal(cm_establish(w->cm[0], w->end[0][0].id, w->now), 0);
	send_waiting(w, 0, true);
	forget_notes(w);
	for (int i = 0; i < 2; i++) {
		cm_note_release(w->cm[1], NULL, &w->end[1][i].note, w->now);
		drain_side(w, 1);
	}
	run_world(w, w->now + SECOND / 10);
	assert_true(w->end[0][0].is_over);
	world_free(w);
}

static void a_busy_owner_holds_its_peer_for_as_long_as_it_takes(void **state)
{
	struct world *w = world_new(3, 0);

	start_connection(w, 0);
	drain_side(w, 0);
	run_world(w, w->now + 600 * SECOND); /* ten minutes in a debugger */
	assert_int_equal(w->ends[1], 1);
	assert_false(w->end[0][0].is_over);
	cm_accept(w->cm[1], w->end[1][0].id, &(struct cmmsg){.qp.qpn = 9},
		  w->now);
	drain_side(w, 1);
	run_world(w, w->now + SECOND);
	assert_int_equal(cm_establish(w->cm[0], w->end[0][0].id, w->now), 0);
	world_free(w);
}

static bool has_peer(struct world *w)
{
	const struct conv *c = conv_find(w->cm[0], w->end[0][0].id);

	return cm_has_peer(w->cm[0], w->cm[1], w->ip[1], c->remote_qpn);
}

static void the_other_end_of_a_connection_is_found_until_it_ends(void **state)
{
	struct world *w = world_new(3, 0);
	struct cm *empty = new_manager(w);
	const struct conv *c;

	connect_one(w);
	run_world(w, w->now + SECOND);
	assert_true(has_peer(w));
	c = conv_find(w->cm[0], w->end[0][0].id);
	assert_false(cm_has_peer(w->cm[0], empty, w->ip[1], c->remote_qpn));
	/* the DREQ is lost */
	w->lost = CMMSG_DREQ;
	cm_disconnect(w->cm[1], w->end[1][0].id, w->now);
	drain_side(w, 1);
	assert_int_equal(c->state, CONV_ESTABLISHED);
	assert_false(has_peer(w));
	cm_free(empty);
	world_free(w);
}

static void a_refused_alternate_path_leaves_the_connection(void **state)
{
	struct world *w = world_new(3, 0);
	struct cmmsg m = {.kind = CMMSG_RTU}, apr;
	uint8_t mad[MAD_BYTES];
	struct cm_frame f;

	connect_one(w);
	run_world(w, w->now + SECOND);
	m.local_id = w->end[0][0].id;
	for (int known = 0; known <= 1; known++) {
		m.remote_id = w->end[1][0].id ^ !known;
		cmmsg_write(mad, &m);
		mad[17] = CMMSG_LAP;
		cm_rx(w->cm[1], w->ip[0], w->ip[1], &(struct cm_way){0}, mad,
		      MAD_BYTES, w->now);
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

/* Lets side 1 accept a REQ whose alternate path has the LID `lid` at both ends;
 * 0: the REQ has no such path.  The consumer's reply says `failover` about that
 * path.  Returns the REP. */
static struct cmmsg accept_request(struct world *w, uint16_t lid,
				   uint8_t failover)
{
	struct cmmsg m = {.kind = CMMSG_REQ,
			  .local_id = 77,
			  .service_id = SERVICE,
			  .qp.qpn = 5,
			  .alternate = {.local_lid = lid, .remote_lid = lid}};
	uint8_t mad[MAD_BYTES];
	struct cm_event e;
	struct cm_frame f;

	memcpy(m.primary.local_gid, w->ip[0], 16);
	memcpy(m.primary.remote_gid, w->ip[1], 16);
	cmmsg_write(mad, &m);
	cm_rx(w->cm[1], w->ip[0], w->ip[1], &(struct cm_way){0}, mad, MAD_BYTES,
	      w->now);
	assert_true(cm_event(w->cm[1], &e));
	assert_int_equal(e.type, CM_REQUEST);
	m = (struct cmmsg){.qp.qpn = 6, .failover = failover};
	assert_int_equal(cm_accept(w->cm[1], e.id, &m, w->now), 0);
	assert_true(cm_tx(w->cm[1], &f));
	assert_true(cmmsg_parse(f.mad, MAD_BYTES, &m));
	assert_int_equal(m.kind, CMMSG_REP);
	return m;
}

/* IBTA 12.6.8: the sender of the REQ may not arm its queue pair if the
 * alternate path was not loaded.  A REQ without an alternate path gets no
 * refusal. */
static void a_rep_says_whether_the_alternate_path_is_loaded(void **state)
{
	static const struct {
		uint16_t lid;
		uint8_t said, sent;
	} cases[] = {
		{7, CMMSG_FAILOVER_ACCEPTED, CMMSG_FAILOVER_ACCEPTED},
		{7, CMMSG_FAILOVER_UNSUPPORTED, CMMSG_FAILOVER_UNSUPPORTED},
		{0, CMMSG_FAILOVER_UNSUPPORTED, CMMSG_FAILOVER_ACCEPTED},
	};

	for (size_t i = 0; i < TEST_COUNT(cases); i++) {
		struct world *w = world_new(3, 0);

		assert_int_equal(
			accept_request(w, cases[i].lid, cases[i].said).failover,
			cases[i].sent);
		world_free(w);
	}
}

/* The request is held for a while first, for a program that is about to listen.
 */
static void without_a_listener_the_answer_comes_soon(void **state)
{
	struct world *w = world_new(4, 0);

	cm_unlisten(w->cm[1], 0, 0);
	start_connection(w, 0);
	drain_side(w, 0);
	run_world(w, w->now + CM_HOLD_NS);
	assert_int_equal(w->end[0][0].ended, 0);
	run_world(w, w->now + SECOND / 100);
	assert_int_equal(w->end[0][0].ended, 1);
	assert_int_equal(cm_counters(w->cm[1])->no_listener, 1);
	assert_int_equal(cm_counters(w->cm[0])->retries, 0);
	assert_int_equal(cm_count(w->cm[1]), 0);
	world_free(w);
}

/* Hands each message that a manager sends to itself back to that manager. */
static void loop_back(struct cm *cm, uint64_t now)
{
	struct cm_frame f;

	while (cm_tx(cm, &f))
		cm_rx(cm, f.from, f.to, &f.way, f.mad, MAD_BYTES, now);
}

/* Takes the next message of side `from`, which must be of this kind and go by
 * *way.  Hands the message to the other side, as one that came by *by. */
static void carry_by(struct world *w, int from, enum cmmsg_kind kind,
		     const struct cm_way *way, const struct cm_way *by)
{
	struct cm_frame f;

	assert_true(cm_tx(w->cm[from], &f));
	assert_int_equal(f.mad[17], kind);
	assert_int_equal(f.way.pkey, way->pkey);
	assert_int_equal(f.way.sl, way->sl);
	cm_rx(w->cm[!from], f.from, f.to, by, f.mad, MAD_BYTES, w->now);
}

/* Begins a conversation by the P_Key and the SL of a path. */
static uint32_t start_by(struct world *w, const struct cm_way *way,
			 enum cmmsg_kind kind, uint32_t service)
{
	struct cm_start s = {.msg = {.kind = kind,
				     .service_id = service,
				     .qp = {.qpn = 5, .pkey = way->pkey},
				     .primary.sl = way->sl,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};
	uint32_t id;

	memcpy(s.local, w->ip[0], 16);
	memcpy(s.peer, w->ip[1], 16);
	assert_int_equal(cm_connect(w->cm[0], &s, w->now, &id), 0);
	return id;
}

/* The active side is a full member of the partition, and the passive side a
 * limited one. */
static const struct cm_way out = {.pkey = 0x8005, .sl = 4};
static const struct cm_way back = {.pkey = 0x0005, .sl = 4};

static void all_messages_go_by_the_way_of_the_request(void **state)
{
	struct world *w = world_new(4, 0);
	const struct cmmsg reply = {.qp.qpn = 9};
	uint32_t id = start_by(w, &out, CMMSG_REQ, SERVICE);
	struct cm_event e;

	carry_by(w, 0, CMMSG_REQ, &out, &back);
	w->now += SECOND; /* longer than the first wait: a retry */
	cm_tick(w->cm[0], w->now);
	carry_by(w, 0, CMMSG_REQ, &out, &back);
	carry_by(w, 1, CMMSG_MRA, &back, &out);
	assert_true(cm_event(w->cm[1], &e));
	assert_int_equal(cm_accept(w->cm[1], e.id, &reply, w->now), 0);
	carry_by(w, 1, CMMSG_REP, &back, &out);
	assert_int_equal(cm_establish(w->cm[0], id, w->now), 0);
	carry_by(w, 0, CMMSG_RTU, &out, &back);
	assert_int_equal(cm_disconnect(w->cm[1], e.id, w->now), 0);
	carry_by(w, 1, CMMSG_DREQ, &back, &out);
	assert_int_equal(cm_disconnect(w->cm[0], id, w->now), 0);
	carry_by(w, 0, CMMSG_DREP, &out, &back);
	world_free(w);
}

/* Gives side 0 the DREQ f with this transaction ID.  The DREP of side 0 must
 * have the same transaction ID. */
static void repeat_dreq(struct world *w, struct cm_frame *f, uint64_t id)
{
	struct cm_frame drep;
	struct cmmsg m;

	bytes_put64(f->mad + 8, id);
	cm_rx(w->cm[0], f->from, f->to, &out, f->mad, MAD_BYTES, w->now);
	cm_disconnect(w->cm[0], w->end[0][0].id, w->now);
	assert_true(cm_tx(w->cm[0], &drep));
	assert_true(cmmsg_parse(drep.mad, MAD_BYTES, &m));
	assert_int_equal(m.kind, CMMSG_DREP);
	assert_int_equal(m.transaction_id, id);
	assert_false(cm_tx(w->cm[0], &drep));
}

static void a_drep_has_the_transaction_id_of_its_dreq(void **state)
{
	struct world *w = world_new(11, 0);
	struct cm_frame dreq;
	struct end *a = &w->end[0][0];

	connect_one(w);
	run_world(w, w->now + SECOND);
	assert_int_equal(cm_disconnect(w->cm[1], w->end[1][0].id, w->now), 0);
	assert_true(cm_tx(w->cm[1], &dreq));
	repeat_dreq(w, &dreq, 1);
	assert_int_equal(conv_find(w->cm[0], a->id)->state, CONV_TIMEWAIT);
	repeat_dreq(w, &dreq, 2);
	w->now += SECOND;
	cm_tick(w->cm[0], w->now);
	assert_int_equal(conv_find(w->cm[0], a->id)->state, CONV_CLOSED);
	repeat_dreq(w, &dreq, 3);
	world_free(w);
}

static void a_refusal_goes_by_the_way_of_the_request(void **state)
{
	static const struct {
		enum cmmsg_kind request, answer;
	} row[] = {{CMMSG_REQ, CMMSG_REJ}, {CMMSG_SIDR_REQ, CMMSG_SIDR_REP}};

	for (size_t i = 0; i < TEST_COUNT(row); i++) {
		struct world *w = world_new(4, 0);

		start_by(w, &out, row[i].request, SERVICE + 1);
		carry_by(w, 0, row[i].request, &out, &back);
		w->now += SECOND;
		cm_tick(w->cm[1], w->now);
		carry_by(w, 1, row[i].answer, &back, &out);
		world_free(w);
	}
}

/*
 * One manager has both ends, and knows that no message was lost.  Each message
 * is sent once, however long an owner takes.
 */
static void messages_within_a_host_are_not_repeated(void **state)
{
	struct world *w = world_new(4, 0);
	struct cm *cm = w->cm[1];
	struct cm_start s = {.msg = {.kind = CMMSG_REQ,
				     .service_id = SERVICE,
				     .qp.qpn = 5,
				     .remote_timeout = 20,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};
	const struct cmmsg reply = {.qp.qpn = 9};
	uint32_t active, passive;
	struct cm_event e;

	memcpy(s.local, w->ip[1], 16);
	memcpy(s.peer, w->ip[1], 16);
	assert_int_equal(cm_connect(cm, &s, w->now, &active), 0);
	loop_back(cm, w->now);
	assert_true(cm_event(cm, &e));
	passive = e.id;
	for (int step = 0; step < 4; step++) {
		/* longer than all retries would take */
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

static void strict_timing_rejects_a_request_without_listener_at_once(void **s)
{
	struct cm_start to_itself = {.msg = {.kind = CMMSG_REQ,
					     .service_id = SERVICE,
					     .qp.qpn = 5,
					     .remote_timeout = 20,
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

/* A listener that is bound to a loopback address (cm_where.only_own) accepts
 * requests of its own manager only. */
static void a_loopback_listener_refuses_other_hosts(void **state)
{
	static const struct cm_where own = {.any_v4 = true, .only_own = true};

	for (int near = 0; near <= 1; near++) {
		struct world *w = world_new(4, 0);
		struct cm_start s = {.msg = {.kind = CMMSG_REQ,
					     .service_id = SERVICE,
					     .qp.qpn = 5,
					     .remote_timeout = 20,
					     .local_timeout = 20,
					     .max_cm_retries = 15}};
		uint32_t listener, id;
		struct cm_event e;

		cm_unlisten(w->cm[1], 0, 0);
		cm_listen(w->cm[1], NULL, LISTENER, SERVICE, &own, 16,
			  &listener);
		memcpy(s.local, w->ip[near], 16);
		memcpy(s.peer, w->ip[1], 16);
		assert_int_equal(cm_connect(w->cm[near], &s, w->now, &id), 0);
		if (near) {
			loop_back(w->cm[1], w->now);
			assert_true(cm_event(w->cm[1], &e));
			assert_int_equal(e.type, CM_REQUEST);
		} else {
			w->end[0][w->ends[0]++].id = id;
			drain_side(w, 0);
			run_world(w, w->now + SECOND);
			assert_int_equal(w->ends[1], 0);
			assert_int_equal(w->end[0][0].ended, 1);
		}
		world_free(w);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_agree_whatever_the_wire_does),
		cmocka_unit_test(both_ends_agree_when_either_manager_dies),
		cmocka_unit_test(a_lost_message_of_a_connection_is_sent_again),
		cmocka_unit_test(a_lost_refusal_is_sent_again),
		cmocka_unit_test(
			a_disconnect_ends_when_the_peers_program_has_taken_it),
		cmocka_unit_test(a_peer_that_never_answers_is_given_up),
		cmocka_unit_test(the_end_of_a_queue_pairs_connection_is_known),
		cmocka_unit_test(both_sides_may_disconnect_at_once),
		cmocka_unit_test(
			an_end_before_there_is_a_connection_changes_nothing),
		cmocka_unit_test(
			a_released_request_does_not_hide_its_repetition),
		cmocka_unit_test(
			a_busy_owner_holds_its_peer_for_as_long_as_it_takes),
		cmocka_unit_test(
			the_other_end_of_a_connection_is_found_until_it_ends),
		cmocka_unit_test(
			a_refused_alternate_path_leaves_the_connection),
		cmocka_unit_test(
			a_rep_says_whether_the_alternate_path_is_loaded),
		cmocka_unit_test(without_a_listener_the_answer_comes_soon),
		cmocka_unit_test(all_messages_go_by_the_way_of_the_request),
		cmocka_unit_test(a_drep_has_the_transaction_id_of_its_dreq),
		cmocka_unit_test(a_refusal_goes_by_the_way_of_the_request),
		cmocka_unit_test(messages_within_a_host_are_not_repeated),
		cmocka_unit_test(
			strict_timing_rejects_a_request_without_listener_at_once),
		cmocka_unit_test(a_loopback_listener_refuses_other_hosts),
	};

	if (argc > 1)
		seeds = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
