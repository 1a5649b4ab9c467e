/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management shares places for requests among senders, listeners and
 * owners. */
#include "cmworld.h"

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

	cm_listen(cm, NULL, 0, SERVICE, &any, 10000, &listener);
	for (uint32_t i = 1; i <= 5000; i++) {
		struct cmmsg m = {.kind = CMMSG_REQ,
				  .local_id = i,
				  .qp.qpn = i,
				  .service_id = SERVICE};

		peer[15] = i == 5000 ? 3 : 2;
		memcpy(m.primary.local_gid, peer, 16);
		memcpy(m.primary.remote_gid, me, 16);
		cmmsg_write(mad, &m);
		cm_rx(cm, peer, me, &(struct cm_way){0}, mad, sizeof(mad), i);
		while (cm_event(cm, &e))
			served += e.type == CM_REQUEST;
		while (cm_tx(cm, &f))
			;
	}
	/* a hundred requests of the flood and the other peer's request are
	 * served; 256 more wait */
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

/* A request that waits for its peer's share is served when another request of
 * that peer is settled. */
static void a_peers_share_is_handed_on(void **state)
{
	const struct cmmsg reply = {.qp.qpn = 9};
	struct world *w = world_new(8, 0);
	struct cm_config config = {
		.seed = 1, .conversations = ENDPOINTS, .half_open = 2};

	cm_free(w->cm[1]);
	w->cm[1] = cm_new(&config, w->now);
	listen_at(w, 1);
	for (int i = 0; i < 4; i++)
		start_connection(w, 0);
	drain_side(w, 0);
	run_world(w, w->now + SECOND / 100);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(w->ends[1], i < 2 ? 2 + i : 4);
		assert_int_equal(
			cm_accept(w->cm[1], w->end[1][i].id, &reply, w->now),
			0);
		drain_side(w, 1);
		cm_tick(w->cm[1], w->now);
		drain_side(w, 1);
	}
	assert_int_equal(cm_counters(w->cm[0])->retries, 0);
	world_free(w);
}

/* Returns a manager with listeners for SERVICE and SERVICE + 1 at any IPv4
 * address. */
static struct cm *manager_of(uint32_t half_open, const uint32_t backlog[2])
{
	struct cm_config config = {
		.seed = 1, .conversations = 100, .half_open = half_open};
	static const struct cm_where any = {.any_v4 = true};
	struct cm *cm = cm_new(&config, SECOND);
	uint32_t listener;

	for (uint32_t i = 0; i < 2; i++)
		cm_listen(cm, NULL, 0, SERVICE + i, &any, backlog[i],
			  &listener);
	return cm;
}

/* Returns the id of the next request that was served, or 0 if none was. */
static uint32_t next_served(struct cm *cm)
{
	struct cm_event e;
	struct cm_frame f;

	while (cm_tx(cm, &f))
		;
	while (cm_event(cm, &e))
		if (e.type == CM_REQUEST)
			return e.id;
	return 0;
}

/* The host 10.0.0.`host` sends a message to 10.0.0.1: a REQ with the
 * communication ID `id` for service SERVICE + `more`, or a REJ that gives up
 * such a REQ.  Returns what next_served returns. */
static uint32_t send_from(struct cm *cm, enum cmmsg_kind kind, uint8_t host,
			  uint32_t id, uint32_t more)
{
	const uint8_t to[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	const uint8_t from[16] = {[10] = 0xff, 0xff, 10, 0, 0, host};
	struct cmmsg m = {.kind = kind,
			  .local_id = id,
			  .local_timeout = 31,
			  .max_cm_retries = 15,
			  .reason = CMMSG_REJ_TIMEOUT,
			  .qp.qpn = id,
			  .service_id = SERVICE + more};
	uint8_t mad[MAD_BYTES];

	if (kind == CMMSG_REJ)
		m.remote_id = conv_find_remote(cm, from, id)->local_id;
	memcpy(m.primary.local_gid, from, 16);
	memcpy(m.primary.remote_gid, to, 16);
	cmmsg_write(mad, &m);
	cm_rx(cm, from, to, &(struct cm_way){0}, mad, sizeof(mad), SECOND);
	return next_served(cm);
}

static uint32_t request_from(struct cm *cm, uint8_t host, uint32_t id,
			     uint32_t more)
{
	return send_from(cm, CMMSG_REQ, host, id, more);
}

/* The consumer takes request `taken`.  Returns the communication ID that the
 * sender gave the next request that is served, or 0 if none is served. */
static uint32_t served_by(struct cm *cm, uint32_t taken, uint64_t now_ns)
{
	uint32_t id;

	cm_taken(cm, taken);
	cm_tick(cm, now_ns);
	id = next_served(cm);
	return id ? conv_find(cm, id)->remote_id : 0;
}

/* The first request in the list waits for its sender's share.  A place that
 * becomes free goes to a later request, whose sender may use it. */
static void a_place_goes_to_a_sender_that_may_use_it(void **state)
{
	struct cm *cm = manager_of(2, (const uint32_t[]){2, 2});
	uint32_t waits[4];

	for (uint32_t i = 1; i <= 2; i++)
		cm_taken(cm, request_from(cm, 2, i, 0));
	assert_int_equal(request_from(cm, 2, 3, 0), 0);
	for (uint8_t i = 0; i < 4; i++)
		waits[i] = request_from(cm, 3 + i, 10 + i, 0);
	assert_true(waits[0] && waits[1]);
	assert_false(waits[2] || waits[3]);
	assert_int_equal(cm->waiting.held_count, 3);
	assert_int_equal(served_by(cm, waits[0], 6 * SECOND), 12);
	assert_int_equal(served_by(cm, waits[1], 6 * SECOND), 13);
	assert_int_equal(cm->waiting.held_count, 1);
	/* request 3 is not repeated, so it is forgotten after FULL_NS */
	cm_tick(cm, 11 * SECOND);
	assert_int_equal(cm->waiting.held_count, 0);
	cm_free(cm);
}

/* The first held request waits because its listener's backlog is full.  The
 * place that becomes free in the sender's share goes to a later request of that
 * sender, whose listener has room. */
static void a_senders_share_goes_to_a_listener_with_room(void **state)
{
	struct cm *cm = manager_of(1, (const uint32_t[]){1, 1});
	uint32_t first, other;

	other = request_from(cm, 3, 1, 0); /* takes the one place */
	first = request_from(cm, 2, 2, 1);
	cm_taken(cm, first);
	assert_int_equal(request_from(cm, 2, 3, 0), 0);
	assert_int_equal(request_from(cm, 2, 4, 1), 0);
	assert_int_equal(
		cm_reject(cm, first, &(struct cmmsg){.reason = 28}, SECOND), 0);
	cm_tick(cm, SECOND);
	assert_int_equal(conv_find(cm, next_served(cm))->remote_id, 4);
	assert_int_equal(served_by(cm, other, SECOND), 0);
	cm_free(cm);
}

/* A place is free, and the first held request is woken for it.  If that request
 * gets no place after all, or its sender gives it up, the next held request
 * gets the place. */
static void a_place_is_not_lost_with_a_request(void **state)
{
	for (int gives_up = 0; gives_up <= 1; gives_up++) {
		struct cm *cm = manager_of(1, (const uint32_t[]){1, 1});
		uint32_t first = request_from(cm, 2, 1, 0), id;

		assert_true(first);
		assert_int_equal(request_from(cm, 3, 2, 0), 0);
		assert_int_equal(request_from(cm, 4, 3, 0), 0);
		cm_taken(cm, first);
		if (gives_up)
			send_from(cm, CMMSG_REJ, 3, 2, 0);
		else /* uses up the share of the sender that was woken */
			assert_true(request_from(cm, 3, 4, 1));
		cm_tick(cm, SECOND);
		id = next_served(cm);
		if (!id) {
			cm_tick(cm, SECOND);
			id = next_served(cm);
		}
		assert_int_equal(id ? conv_find(cm, id)->remote_id : 0, 3);
		cm_free(cm);
	}
}

/* A sender withdraws each request at once.  The requests still wait for the
 * consumer, and count in the backlog and in the sender's share. */
static void a_withdrawn_request_keeps_its_place_until_it_is_taken(void **state)
{
	for (int is_released = 0; is_released <= 1; is_released++) {
		struct cm *cm = manager_of(1, (const uint32_t[]){1, 1});
		uint32_t first = request_from(cm, 2, 1, 0);

		send_from(cm, CMMSG_REJ, 2, 1, 0);
		assert_int_equal(conv_find(cm, first)->state, CONV_CLOSED);
		assert_int_equal(request_from(cm, 3, 2, 0), 0); /* backlog */
		assert_int_equal(request_from(cm, 2, 3, 1), 0); /* share */
		if (is_released)
			cm_release(cm, first, SECOND);
		else
			cm_taken(cm, first);
		cm_tick(cm, SECOND);
		assert_true(next_served(cm) && next_served(cm));
		cm_free(cm);
	}
}

/* A withdrawn request that the consumer has not taken counts in the backlog of
 * its own listener, and not in that of a later listener of the same service. */
static void a_withdrawn_request_ends_with_its_listener(void **state)
{
	struct cm *cm = manager_of(2, (const uint32_t[]){1, 1});
	static const struct cm_where any = {.any_v4 = true};
	uint32_t listener, first = request_from(cm, 2, 1, 0);

	send_from(cm, CMMSG_REJ, 2, 1, 0);
	cm_unlisten(cm, conv_find(cm, first)->listener, 0);
	cm_listen(cm, NULL, 0, SERVICE, &any, 1, &listener);
	assert_true(request_from(cm, 3, 2, 0));
	cm_taken(cm, first);
	assert_int_equal(request_from(cm, 4, 3, 0), 0);
	cm_free(cm);
}

/* The peer's REQ asks for 15 waits of the longest kind, and the peer is then
 * silent. */
static void a_released_connection_does_not_wait_for_minutes(void **state)
{
	for (int is_released_later = 0; is_released_later <= 1;
	     is_released_later++) {
		struct cm *cm = manager_of(1, (const uint32_t[]){1, 1});
		uint32_t id = request_from(cm, 2, 1, 0);

		assert_int_equal(
			cm_accept(cm, id, &(struct cmmsg){.qp.qpn = 9}, SECOND),
			0);
		if (is_released_later)
			assert_int_equal(cm_disconnect(cm, id, SECOND), 0);
		cm_release(cm, id, SECOND);
		assert_int_equal(cm_count(cm), 1);
		while (cm_deadline(cm) < 31 * SECOND) {
			cm_tick(cm, cm_deadline(cm));
			next_served(cm);
		}
		assert_int_equal(cm_count(cm), 0);
		cm_free(cm);
	}
}

/*
 * However many requests of a peer were answered lately, the next request is
 * taken at once.  The number of answers that are kept for repetition is
 * bounded.
 */
static void answers_delay_no_other_request(void **state)
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
			cm_rx(w->cm[1], w->ip[0], w->ip[1], &(struct cm_way){0},
			      mad, MAD_BYTES, w->now);
			if (!cm_event(w->cm[1], &e))
				fail_msg("request %u has to wait", i);
			if (k)
				cm_accept(w->cm[1], e.id, &reply, w->now);
			else
				cm_reject(w->cm[1], e.id, &reply, w->now);
			cm_release(w->cm[1], e.id, w->now);
			assert_true(cm_tx(w->cm[1], &f));
			/* a request whose answer was lost is answered again */
			cm_rx(w->cm[1], w->ip[0], w->ip[1], &(struct cm_way){0},
			      mad, MAD_BYTES, w->now);
			assert_true(cm_tx(w->cm[1], &f));
			assert_false(cm_event(w->cm[1], &e));
		}
		assert_int_equal(cm_count(w->cm[1]), CONV_ANSWERED_MAX);
		run_world(w, w->now + 10 * SECOND);
		assert_int_equal(cm_count(w->cm[1]), 0);
		world_free(w);
	}
}

/* Requests to a service without a listener are held, up to the share of a peer
 * and that of all peers.  Further requests are rejected at once. */
static void a_flood_of_requests_to_no_listener_is_bounded(void **state)
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

	cm_listen(cm, NULL, 0, SERVICE, &any, 10000, &listener);
	for (uint32_t i = 0; i < PEERS * EACH + PEERS; i++) {
		struct cmmsg m = {.kind = CMMSG_REQ,
				  .local_id = i + 1,
				  .qp.qpn = i,
				  .service_id = SERVICE + 1};

		peer[15] = (uint8_t)(2 + i / EACH % PEERS);
		if (i >= PEERS * EACH) { /* to the service that listens */
			m.service_id = SERVICE;
			peer[15] = (uint8_t)(2 + i % PEERS);
		}
		memcpy(m.primary.local_gid, peer, 16);
		memcpy(m.primary.remote_gid, me, 16);
		cmmsg_write(mad, &m);
		cm_rx(cm, peer, me, &(struct cm_way){0}, mad, sizeof(mad), 1);
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

/* Returns a manager of up to 64 conversations, which has no peer. */
static struct cm *small_manager(void)
{
	struct cm_config config = {
		.seed = 1, .conversations = 64, .half_open = 64};

	return cm_new(&config, 0);
}

static void forget_output(struct cm *cm)
{
	struct cm_event e;
	struct cm_frame f;

	while (cm_event(cm, &e))
		;
	while (cm_tx(cm, &f))
		;
}

static void run_alone(struct cm *cm)
{
	for (uint64_t now = 0; cm_deadline(cm) != WHEEL_NEVER;) {
		now = cm_deadline(cm);
		cm_tick(cm, now);
		forget_output(cm);
	}
}

static const uint8_t me[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};

static struct cm_start start_of(struct cm_owner *owner)
{
	struct cm_start s = {.owner = owner,
			     .msg = {.kind = CMMSG_REQ,
				     .service_id = SERVICE,
				     .remote_timeout = 20,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};

	memcpy(s.local, me, 16);
	memcpy(s.peer, peer, 16);
	return s;
}

/* A released conversation is part of its owner's share until it has left
 * TIMEWAIT. */
static void an_owner_leaves_conversations_to_other_owners(void **state)
{
	const struct cmmsg rtu = {.kind = CMMSG_RTU};
	struct cm_owner first = {0}, second = {0}, exempt = {.is_exempt = true};
	struct cm_start a = start_of(&first), b = start_of(&second),
			c = start_of(&exempt);
	struct cm *cm = small_manager();
	struct cm_note note = {.state = CONV_ESTABLISHED};
	uint32_t id, count = 0;

	cmmsg_write(note.last, &rtu);
	while (count < 100) {
		note.local_id = note.remote_id = ++count;
		if (cm_note_resume(cm, &first, 0, &note, 0, &id))
			break;
		cm_release(cm, id, 0);
		assert_int_equal(conv_find(cm, id)->state, CONV_DREQ_SENT);
		forget_output(cm);
	}
	assert_int_equal(first.conversations, 32);
	assert_int_equal(cm_note_resume(cm, &first, 0, &note, 0, &id), -EDQUOT);
	assert_int_equal(cm_connect(cm, &a, 0, &id), -EDQUOT);
	for (count = 0; !cm_connect(cm, &b, 0, &id); count++)
		forget_output(cm);
	assert_int_equal(count, 16);
	for (count = 0; !cm_connect(cm, &c, 0, &id); count++)
		forget_output(cm);
	assert_int_equal(count, 16);
	assert_int_equal(cm_connect(cm, &a, 0, &id), -ENOMEM);
	run_alone(cm);
	assert_int_equal(first.conversations, 0);
	assert_int_equal(cm_connect(cm, &a, 0, &id), 0);
	cm_free(cm);
}

static void an_owner_leaves_listeners_to_other_owners(void **state)
{
	struct cm_owner first = {0}, second = {0};
	struct cm_where any = {.any_v4 = true};
	struct cm *cm = small_manager();
	uint32_t listener, count = 0;

	while (!cm_listen(cm, &first, 0, SERVICE + count, &any, 1, &listener))
		count++;
	assert_int_equal(count, CONV_LISTENERS / 2);
	assert_int_equal(
		cm_listen(cm, &first, 0, SERVICE + count, &any, 1, &listener),
		-EDQUOT);
	assert_int_equal(
		cm_listen(cm, &second, 0, SERVICE + count, &any, 1, &listener),
		0);
	cm_unlisten(cm, 0, 0);
	assert_int_equal(first.listeners, count - 1);
	assert_int_equal(cm_listen(cm, &first, 0, SERVICE, &any, 1, &listener),
			 0);
	cm_free(cm);
}

/* A caller is refused at once if the listener's owner has too many
 * conversations. */
static void a_listener_beyond_its_share_refuses(void **state)
{
	static const enum cmmsg_kind kinds[] = {CMMSG_REQ, CMMSG_SIDR_REQ};
	struct cm_where any = {.any_v4 = true};
	uint8_t mad[MAD_BYTES];

	for (size_t k = 0; k < TEST_COUNT(kinds); k++) {
		struct cm_owner owner = {0};
		struct cm *cm = small_manager();
		struct cmmsg m = {.kind = kinds[k], .service_id = SERVICE};
		struct cm_frame f;
		uint32_t listener;

		cm_listen(cm, &owner, 0, SERVICE, &any, 100, &listener);
		memcpy(m.primary.local_gid, peer, 16);
		memcpy(m.primary.remote_gid, me, 16);
		for (uint32_t i = 1; i <= 33; i++) {
			m.local_id = m.qp.qpn = i;
			cmmsg_write(mad, &m);
			assert_false(cm_tx(cm, &f));
			cm_rx(cm, peer, me, &(struct cm_way){0}, mad,
			      sizeof(mad), i);
		}
		assert_true(cm_tx(cm, &f));
		assert_true(cmmsg_parse(f.mad, MAD_BYTES, &m));
		if (k)
			assert_int_equal(m.status, CMMSG_SIDR_NO_QP);
		else
			assert_int_equal(m.reason, CMMSG_REJ_NO_RESOURCES);
		assert_int_equal(cm_count(cm), 32);
		assert_int_equal(owner.conversations, 32);
		cm_free(cm);
	}
}

/* Delivers the manager's messages to the manager itself, which has both ends of
 * each connection.  Returns the number of requests. */
static uint32_t loop_back(struct cm *cm, uint64_t now_ns)
{
	uint32_t requests = 0;
	struct cm_event e;
	struct cm_frame f;

	while (cm_tx(cm, &f)) {
		cm_rx(cm, f.from, f.to, &f.way, f.mad, MAD_BYTES, now_ns);
		while (cm_event(cm, &e))
			requests += e.type == CM_REQUEST;
	}
	return requests;
}

/* The broker needs the owner: it has a queue for each owner, with the frames
 * that wait for the broker's socket (broker/gsi.h). */
static void a_frame_names_the_owner_of_its_conversation(void **state)
{
	struct cm_owner owner = {.number = 7};
	struct cm_start s = start_of(&owner);
	struct cmmsg m = {.kind = CMMSG_REQ, .local_id = 1, .qp.qpn = 1};
	struct cm_config config = {
		.seed = 1, .conversations = 400, .half_open = 100};
	struct cm *cm = cm_new(&config, 0);
	uint8_t mad[MAD_BYTES];
	struct cm_frame f;
	uint32_t id;

	cmmsg_write(mad, &m);
	for (int i = 0; i < 2 * CONV_RING; i++) {
		assert_int_equal(cm_connect(cm, &s, 0, &id), 0);
		assert_true(cm_tx(cm, &f));
		assert_int_equal(f.owner, 7);
		cm_reject(cm, id, &(struct cmmsg){.kind = CMMSG_REJ}, 0);
		forget_output(cm);
		/* the answer is of no conversation: there is no listener */
		cm_rx(cm, peer, me, &(struct cm_way){0}, mad, MAD_BYTES, 0);
		assert_true(cm_tx(cm, &f));
		assert_int_equal(f.owner, 0);
		forget_output(cm);
	}
	cm_free(cm);
}

/* The first owner calls from three addresses of the host. */
static void the_requests_of_one_owner_delay_no_other_owner(void **state)
{
	struct cm_owner first = {.number = 1}, second = {.number = 2};
	struct cm_config config = {
		.seed = 1, .conversations = 4000, .half_open = 100};
	struct cm_start a = start_of(&first), b = start_of(&second);
	struct cm_where any = {.any_v4 = true};
	struct cm *cm = cm_new(&config, 0);
	uint32_t listener, id, served = 0;

	cm_listen(cm, &first, 0, SERVICE, &any, 10000, &listener);
	cm_listen(cm, &second, 0, SERVICE + 1, &any, 10000, &listener);
	b.msg.service_id = SERVICE + 1;
	memcpy(b.peer, me, 16);
	memcpy(a.peer, me, 16);
	for (uint32_t i = 0; i < 600; i++) {
		a.local[15] = (uint8_t)(1 + i % 3);
		a.msg.qp.qpn = i + 1;
		assert_int_equal(cm_connect(cm, &a, 0, &id), 0);
		served += loop_back(cm, 0);
	}
	assert_int_equal(served, 100);
	assert_int_equal(cm->waiting.held_count, 256);
	assert_int_equal(cm_connect(cm, &b, 0, &id), 0);
	assert_int_equal(loop_back(cm, 0), 1);
	cm_free(cm);
}

/* Connects two ends at the address `me`.  The active end belongs to *owner, and
 * its queue pair has the number `qpn`.  Returns the passive end; NULL: no
 * listener got the request. */
static struct conv *connect_within(struct cm *cm, struct cm_owner *owner,
				   uint64_t service, uint32_t qpn)
{
	struct cm_start s = start_of(owner);
	const struct cmmsg reply = {.qp.qpn = 77};
	struct cm_event e = {0};
	struct cm_frame f;
	uint32_t id, passive = 0;

	memcpy(s.peer, me, 16);
	s.msg.service_id = service;
	s.msg.qp.qpn = qpn;
	assert_int_equal(cm_connect(cm, &s, 0, &id), 0);
	while (cm_tx(cm, &f)) {
		cm_rx(cm, f.from, f.to, &f.way, f.mad, MAD_BYTES, 0);
		while (cm_event(cm, &e)) {
			if (e.type == CM_REQUEST) {
				passive = e.id;
				cm_accept(cm, passive, &reply, 0);
			}
			if (e.type == CM_RESPONSE)
				cm_establish(cm, id, 0);
		}
	}
	return passive ? conv_find(cm, passive) : NULL;
}

/* A program that names another user's queue pair ends no connection of that
 * queue pair.  A user's request is accepted even if another user's program has
 * named the same queue pair before. */
static void another_owner_cannot_end_a_connection_by_naming_its_qp(void **state)
{
	struct cm_owner first = {.number = 1}, second = {.number = 2};
	struct cm_config config = {
		.seed = 1, .conversations = 400, .half_open = 100};
	struct cm_where any = {.any_v4 = true};
	struct cm *cm = cm_new(&config, 0);
	struct conv *own, *other;
	uint32_t listener;

	cm_listen(cm, &first, 0, SERVICE, &any, 10, &listener);
	cm_listen(cm, &second, 0, SERVICE + 1, &any, 10, &listener);
	own = connect_within(cm, &first, SERVICE, 5);
	assert_int_equal(own->state, CONV_ESTABLISHED);
	other = connect_within(cm, &second, SERVICE + 1, 5);
	assert_int_equal(own->state, CONV_ESTABLISHED);
	assert_int_equal(other->state, CONV_ESTABLISHED);
	/* the second owner names queue pair 6 first */
	other = connect_within(cm, &second, SERVICE + 1, 6);
	assert_int_equal(other->state, CONV_ESTABLISHED);
	own = connect_within(cm, &first, SERVICE, 6);
	assert_int_equal(own->state, CONV_ESTABLISHED);
	assert_int_equal(cm_counters(cm)->stale, 0);
	/* an owner is believed about its own queue pair */
	assert_null(connect_within(cm, &first, SERVICE, 6));
	assert_int_equal(cm_counters(cm)->stale, 1);
	assert_int_not_equal(own->state, CONV_ESTABLISHED);
	assert_int_equal(other->state, CONV_ESTABLISHED);
	/* an owner that stands for several users is not believed */
	second.is_many = true;
	assert_non_null(connect_within(cm, &second, SERVICE + 1, 6));
	assert_int_equal(other->state, CONV_ESTABLISHED);
	cm_free(cm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_of_requests_is_bounded),
		cmocka_unit_test(a_flood_of_requests_to_no_listener_is_bounded),
		cmocka_unit_test(a_peers_share_is_handed_on),
		cmocka_unit_test(a_place_goes_to_a_sender_that_may_use_it),
		cmocka_unit_test(a_senders_share_goes_to_a_listener_with_room),
		cmocka_unit_test(a_place_is_not_lost_with_a_request),
		cmocka_unit_test(
			a_withdrawn_request_keeps_its_place_until_it_is_taken),
		cmocka_unit_test(a_withdrawn_request_ends_with_its_listener),
		cmocka_unit_test(
			a_released_connection_does_not_wait_for_minutes),
		cmocka_unit_test(answers_delay_no_other_request),
		cmocka_unit_test(a_frame_names_the_owner_of_its_conversation),
		cmocka_unit_test(an_owner_leaves_conversations_to_other_owners),
		cmocka_unit_test(an_owner_leaves_listeners_to_other_owners),
		cmocka_unit_test(a_listener_beyond_its_share_refuses),
		cmocka_unit_test(
			the_requests_of_one_owner_delay_no_other_owner),
		cmocka_unit_test(
			another_owner_cannot_end_a_connection_by_naming_its_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
