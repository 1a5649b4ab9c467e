/* SPDX-License-Identifier: BSD-2-Clause */
/* A requester that reads ACKs in shared memory gets no ACK packets. */
#include "scenario/polling_hcas.h"

#include "engine/shm_ack.h"
#include "scenario/outcome.h"

#define ROUNDS (2 * SHM_ACK_REQUEST_NS / (SHM_ACK_WAIT_NS / 5))

static int drop_answers(void *context, int from, const struct engine_frame *f)
{
	return !from;
}

/* Resets side i's queue pair, and connects it as `a` says. */
static void connect_anew(struct two_hcas *d, int i, struct hca_qp_attr a)
{
	struct two_hcas_side *side = &d->side[i];
	struct hca_qp_attr reset = {0};
	const uint32_t init = HCA_QP_STATE | HCA_QP_PKEY_INDEX | HCA_QP_PORT |
			      HCA_QP_ACCESS_FLAGS,
		       rtr = HCA_QP_STATE | HCA_QP_AV | HCA_QP_PATH_MTU |
			     HCA_QP_DEST_QPN | HCA_QP_RQ_PSN |
			     HCA_QP_MAX_DEST_RD_ATOMIC | HCA_QP_MIN_RNR_TIMER,
		       rts = HCA_QP_STATE | HCA_QP_SQ_PSN | HCA_QP_TIMEOUT |
			     HCA_QP_RETRY_CNT | HCA_QP_RNR_RETRY |
			     HCA_QP_MAX_QP_RD_ATOMIC;
	const uint32_t states[] = {HCA_QP_RESET, HCA_QP_INIT, HCA_QP_RTR,
				   HCA_QP_RTS},
		       masks[] = {HCA_QP_STATE, init, rtr, rts};
	const char *why = "";

	for (int k = 0; k < 4; k++) {
		struct hca_qp_attr *to = k ? &a : &reset;

		to->qp_state = states[k];
		assert_int_equal(engine_qp_modify(side->engine, side->side, to,
						  masks[k], side->ip, d->now_ns,
						  &why),
				 0);
	}
}

/* Makes two programs that read ACKs in each other's page.  The pages have a
 * capacity of 0, so no credits limit the bytes in flight. */
static struct two_hcas *two_with_pages(struct sent *s,
				       struct credit_page page[2])
{
	struct two_hcas *d = two_that_poll(s);

	memset(page, 0, 2 * sizeof(*page));
	for (int i = 0; i < 2; i++) {
		struct two_hcas_side *side = &d->side[i];

		engine_inbox(side->engine, &page[i], (uint32_t)i, 0, false);
		engine_page(side->engine, d->side[!i].qp->qpn, &page[!i]);
		shm_ack_open(engine_shm_ack(side->engine), &page[i]);
		connect_anew(d, i, side->qp->attr);
		two_hcas_recv(d, i, 0, 32768);
		two_hcas_recv(d, i, 0, 32768);
	}
	return d;
}

static void a_requester_that_reads_the_page_needs_no_ack(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);

	for (int i = 0; i < 2; i++) {
		send_message(d, i);
		assert_true(
			shm_ack_has_news(engine_shm_ack(d->side[i].engine)));
		shm_ack_look(engine_shm_ack(d->side[i].engine), d->now_ns);
		assert_false(
			shm_ack_has_news(engine_shm_ack(d->side[i].engine)));
		engine_hold_acks(d->side[!i].engine, false);
		two_hcas_run(d, d->now_ns + ALL_RETRIES);
		assert_int_equal(s.packets[i], 1);
		assert_int_equal(count_completions(d, i), 1 + (uint32_t)i);
	}
	two_hcas_free(d);
}

/* A requester that reads the page reads it before it handles the packets that
 * it has received, as src/host does. */
static int look_first(void *context, int from, const struct engine_frame *f)
{
	struct two_hcas *d = context;

	shm_ack_look(engine_shm_ack(d->side[!from].engine), d->now_ns);
	return 1;
}

static void a_shm_ack_is_read_before_the_request_behind_it(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);
	struct cqe c;

	d->fate = look_first;
	d->context = d;
	send_message(d, 0);
	send_message(d, 1);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.opcode, HCA_WC_SEND);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.opcode, HCA_WC_RECV);
	two_hcas_free(d);
}

/* The requester or the responder does not use ACKs in shared memory.  Then the
 * responder's ACK is a packet. */
static void all_acks_are_packets_if_a_side_uses_no_shm_acks(void **state)
{
	static struct credit_page page[2];
	struct sent s;

	for (int lacking = 0; lacking < 2; lacking++) {
		struct two_hcas *d;

		two_hcas_without(lacking,
				 (struct engine_without){.acks = true});
		d = two_with_pages(&s, page);
		send_message(d, 0);
		assert_false(
			shm_ack_has_news(engine_shm_ack(d->side[0].engine)));
		engine_hold_acks(d->side[1].engine, false);
		two_hcas_run(d, d->now_ns + ALL_RETRIES);
		assert_int_equal(s.packets[1], 1);
		assert_int_equal(count_completions(d, 0), 1);
		assert_int_equal(count_completions(d, 1), 1);
		assert_int_equal(d->side[0].qp->stats.retransmits, 0);
		for (int i = 0; i < CREDIT_POSTS; i++) {
			assert_int_equal(page[lacking].posts[i].accepted, 0);
			assert_int_equal(page[lacking].posts[i].taken, 0);
		}
		two_hcas_free(d);
		two_hcas_without(lacking, (struct engine_without){0});
	}
}

static void a_requester_that_does_not_read_gets_an_ack(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);

	send_message(d, 0);
	engine_hold_acks(d->side[1].engine, false);
	two_hcas_run(d, d->now_ns + ALL_RETRIES);
	assert_int_equal(s.packets[1], 1);
	assert_int_equal(count_completions(d, 0), 1);
	assert_int_equal(d->side[0].qp->stats.retransmits, 0);
	/* after the ACK the requester finds nothing new in the page */
	assert_false(shm_ack_has_news(engine_shm_ack(d->side[0].engine)));
	two_hcas_free(d);
}

/* Side `from` posts a request and sleeps.  The other side wakes, looks at the
 * page and polls.  Returns the number of completions of the other side. */
static uint32_t ask_once(struct two_hcas *d, int from)
{
	two_hcas_recv(d, !from, 0, 8);
	two_hcas_send(d, from, HCA_WR_SEND, 0, 2, 0);
	two_hcas_post(d, from);
	engine_hold_acks(d->side[from].engine, false);
	engine_hold_acks(d->side[!from].engine, true);
	two_hcas_run(d, d->now_ns + SHM_ACK_WAIT_NS / 5);
	d->now_ns += SHM_ACK_WAIT_NS / 5;
	shm_ack_look(engine_shm_ack(d->side[!from].engine), d->now_ns);
	return count_completions(d, !from);
}

static void a_shm_ack_is_read_when_the_next_request_comes(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);

	for (int i = 0; i < 4; i++) /* each learns that its peer reads */
		ask_once(d, i % 2);
	memset(&s, 0, sizeof(s));
	/* for longer than SHM_ACK_REQUEST_NS */
	for (int i = 0; i < ROUNDS; i++) {
		/* a receive, and the SEND that the same side posted before */
		assert_int_equal(ask_once(d, i % 2), 2);
		assert_int_equal(s.packets[i % 2], (uint32_t)i / 2 + 1);
	}
	/* no request follows the last one, so its ACK is a packet */
	engine_hold_acks(d->side[0].engine, false);
	two_hcas_run(d, d->now_ns + SHM_ACK_REQUEST_NS);
	assert_int_equal(s.packets[0], ROUNDS / 2 + 1);
	assert_int_equal(count_completions(d, 1), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(d->side[i].qp->stats.retransmits, 0);
	two_hcas_free(d);
}

/* The request is lost, so the peer does not look at the page. */
static void an_ack_behind_a_lost_request_waits_for_a_moment(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);

	for (int i = 0; i < 4; i++)
		ask_once(d, i % 2);
	ask_once(d, 0);
	memset(&s, 0, sizeof(s));
	d->fate = outcome_drop_all;
	two_hcas_recv(d, 0, 0, 8);
	two_hcas_send(d, 1, HCA_WR_SEND, 0, 2, 0);
	two_hcas_post(d, 1);
	engine_hold_acks(d->side[1].engine, false);
	two_hcas_run(d, d->now_ns + SHM_ACK_WAIT_NS / 5);
	d->fate = count_frames;
	assert_int_equal(s.packets[1], 0);
	two_hcas_run(d, d->now_ns + SHM_ACK_REQUEST_NS);
	assert_int_equal(s.packets[1], 1);
	assert_int_equal(count_completions(d, 0), 1);
	two_hcas_free(d);
}

/* Side 0 sends `bytes` bytes.  Runs long enough for the request and its ACK,
 * but not until an ACK that is held back leaves. */
static void say_bytes(struct two_hcas *d, uint32_t bytes)
{
	two_hcas_recv(d, 1, 0, bytes);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, bytes, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + SHM_ACK_WAIT_NS / 5);
}

/* Sends a request of five packets, since a requester that is fewer than four
 * packets behind gets each ACK at once (engine/shm_ack.h). */
static void say_soon(struct two_hcas *d)
{
	say_bytes(d, 5 * d->side[0].side->mtu);
}

/* Side 1 has sent ACKs for the first two of three requests of side 0. */
static struct two_hcas *two_amid_a_stream(struct sent *s,
					  struct credit_page page[2])
{
	struct two_hcas *d = two_with_pages(s, page);

	engine_hold_acks(d->side[1].engine, false);
	say_soon(d);
	assert_int_equal(s->packets[1], 1);
	d->fate = drop_answers;
	say_soon(d);
	d->fate = count_frames;
	/* Side 1 does not know that its last ACK was dropped, so the ACK of
	 * this request waits (engine/shm_ack.h). */
	say_soon(d);
	assert_int_equal(s->packets[1], 1);
	return d;
}

static void a_streams_requester_that_reads_needs_no_acks(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_amid_a_stream(&s, page);
	struct shm_ack *reader = engine_shm_ack(d->side[0].engine);

	for (int i = 0; i < 20; i++) {
		shm_ack_look(reader, d->now_ns);
		assert_int_equal(count_completions(d, 0), i ? 1 : 3);
		count_completions(d, 1);
		say_soon(d);
	}
	assert_int_equal(s.packets[1], 1);
	assert_true(shm_ack_has_news(reader));
	two_hcas_run(d, d->now_ns + SHM_ACK_WAIT_NS);
	assert_int_equal(s.packets[1], 2);
	assert_int_equal(count_completions(d, 0), 1);
	/* the requester no longer reads the page, so the ACK is a packet */
	say_soon(d);
	assert_int_equal(s.packets[1], 3);
	assert_int_equal(count_completions(d, 0), 1);
	assert_int_equal(d->side[0].qp->stats.retransmits, 0);
	two_hcas_free(d);
}

static void a_requester_that_waits_gets_each_ack_at_once(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_amid_a_stream(&s, page);

	shm_ack_look(engine_shm_ack(d->side[0].engine), d->now_ns);
	count_completions(d, 0);
	for (uint32_t i = 2; i < 6; i++) {
		say_bytes(d, 2);
		assert_int_equal(s.packets[1], i);
		assert_int_equal(count_completions(d, 0), 1);
	}
	two_hcas_free(d);
}

static void an_ending_queue_pair_keeps_no_ack(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_amid_a_stream(&s, page);

	engine_force_responses(d->side[1].engine, true);
	assert_true(engine_has_tx(d->side[1].engine));
	two_hcas_run(d, d->now_ns + 1);
	assert_int_equal(s.packets[1], 2);
	assert_int_equal(count_completions(d, 0), 3);
	two_hcas_free(d);
}

/* All ACK packets of the responder are lost, and its program destroys the queue
 * pair as soon as it has the message. */
static void a_removed_queue_pair_leaves_its_shm_ack(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);
	struct shm_ack *shm_ack = engine_shm_ack(d->side[0].engine);

	d->fate = drop_answers;
	send_message(d, 0);
	engine_qp_remove(d->side[1].engine, d->side[1].side);
	assert_true(shm_ack_has_news(shm_ack));
	shm_ack_look(shm_ack, d->now_ns);
	assert_int_equal(count_completions(d, 0), 1);
	d->side[1].side = engine_qp_add(d->side[1].engine, d->side[1].qp);
	two_hcas_free(d);
}

/* The second queue pair has the QPN of the removed one. */
static void a_new_queue_pair_has_no_shm_ack_of_a_removed_one(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);

	d->fate = drop_answers;
	send_message(d, 0);
	engine_qp_remove(d->side[1].engine, d->side[1].side);
	d->side[1].side = engine_qp_add(d->side[1].engine, d->side[1].qp);
	assert_false(shm_ack_has_news(engine_shm_ack(d->side[0].engine)));
	two_hcas_free(d);
}

static void shm_acks_of_another_connection_are_ignored(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);
	struct credit_post *p =
		&page[1].posts[d->side[1].qp->qpn % CREDIT_POSTS];

	send_message(d, 0);
	assert_true(shm_ack_has_news(engine_shm_ack(d->side[0].engine)));
	atomic_fetch_xor(&p->accepted, 1ull << 40);
	assert_false(shm_ack_has_news(engine_shm_ack(d->side[0].engine)));
	atomic_fetch_xor(&p->accepted, 1ull << 40 | 1ull << 20);
	/* a PSN that was never sent */
	assert_false(shm_ack_has_news(engine_shm_ack(d->side[0].engine)));
	shm_ack_look(engine_shm_ack(d->side[0].engine), d->now_ns);
	assert_int_equal(count_completions(d, 0), 0);
	two_hcas_free(d);
}

/* The peer is in ERR when this side connects again with the same first PSN.
 * The peer's word for the earlier connection is no ACK for the new requests. */
static void a_shm_ack_of_an_earlier_connection_is_ignored(void **state)
{
	const struct hca_qp_attr err = {.qp_state = HCA_QP_ERR};
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);
	struct two_hcas_side *peer = &d->side[1];
	struct shm_ack *shm_ack = engine_shm_ack(d->side[0].engine);
	const char *why = "";
	struct cqe c;

	send_message(d, 0);
	shm_ack_look(shm_ack, d->now_ns);
	engine_hold_acks(peer->engine, false);
	two_hcas_run(d, d->now_ns + 1);
	assert_int_equal(count_completions(d, 0), 1);
	assert_int_equal(engine_qp_modify(peer->engine, peer->side, &err,
					  HCA_QP_STATE, peer->ip, d->now_ns,
					  &why),
			 0);
	connect_anew(d, 0, d->side[0].qp->attr);
	send_message(d, 0);
	assert_false(shm_ack_has_news(shm_ack));
	shm_ack_look(shm_ack, d->now_ns);
	two_hcas_run(d, d->now_ns + ALL_RETRIES);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, HCA_RETRY_EXC_ERR);
	two_hcas_free(d);
}

/* The reset of the peer's queue pair clears that queue pair's word in the page.
 * So this side finds no word to ignore when it enters RTR. */
static void shm_acks_work_after_both_sides_connect_again(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);
	struct shm_ack *shm_ack = engine_shm_ack(d->side[0].engine);

	for (int round = 0; round < 2; round++) {
		send_message(d, 0);
		assert_true(shm_ack_has_news(shm_ack));
		shm_ack_look(shm_ack, d->now_ns);
		assert_int_equal(count_completions(d, 0), 1);
		connect_anew(d, 1, d->side[1].qp->attr);
		connect_anew(d, 0, d->side[0].qp->attr);
		two_hcas_recv(d, 1, 0, 32768);
	}
	two_hcas_free(d);
}

/* Answers arrive again, and no side holds back ACKs. */
static void let_all_through(struct two_hcas *d)
{
	d->fate = count_frames;
	for (int i = 0; i < 2; i++)
		engine_hold_acks(d->side[i].engine, false);
	two_hcas_run(d, d->now_ns + ALL_RETRIES);
}

/* A requester that has not found the peer's page yet cannot read ACKs there. */
static void a_requester_without_the_page_gets_the_ack_first(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct order o = {0};
	struct two_hcas *d = two_with_pages(&s, page);

	engine_page(d->side[0].engine, d->side[1].qp->qpn, NULL);
	send_message(d, 1);
	d->fate = note_order;
	d->context = &o;
	send_message(d, 0);
	send_message(d, 1);
	assert_int_equal(o.count, 2);
	assert_int_equal(o.opcodes[0], OPCODE_RC_ACKNOWLEDGE);
	assert_int_equal(count_completions(d, 0), 3);
	let_all_through(d);
	two_hcas_free(d);
}

static void a_shm_ack_waits_for_the_response_to_a_read(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);

	d->fate = drop_answers;
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 0, 8, 300);
	two_hcas_post(d, 0);
	send_message(d, 0);
	assert_false(shm_ack_has_news(engine_shm_ack(d->side[0].engine)));
	let_all_through(d);
	assert_int_equal(count_completions(d, 0), 2);
	two_hcas_free(d);
}

/* The response to a READ may come late.  Until then the ACK of the request
 * before the READ stays in the page. */
static void a_read_hides_no_shm_ack_of_an_earlier_request(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);
	struct shm_ack *shm_ack = engine_shm_ack(d->side[0].engine);

	d->fate = drop_answers;
	send_message(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 0, 8, 300);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1);
	assert_true(shm_ack_has_news(shm_ack));
	shm_ack_look(shm_ack, d->now_ns);
	assert_int_equal(count_completions(d, 0), 1);
	assert_false(shm_ack_has_news(shm_ack));
	let_all_through(d);
	assert_int_equal(count_completions(d, 0), 1);
	two_hcas_free(d);
}

static void an_entry_of_the_page_goes_to_the_active_queue_pair(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);
	struct shm_ack *shm_ack = engine_shm_ack(d->side[0].engine);
	struct qp qp = *d->side[0].qp;
	struct ibt_qp other = {.qp = &qp};

	qp.qpn += CREDIT_POSTS; /* the same entry */
	shm_ack_want(shm_ack, &other);
	send_message(d, 0);
	assert_true(shm_ack_has_news(shm_ack));
	shm_ack_look(shm_ack, d->now_ns);
	engine_hold_acks(d->side[1].engine, false);
	two_hcas_run(d, d->now_ns + ALL_RETRIES);
	assert_int_equal(s.packets[1], 0);
	assert_int_equal(count_completions(d, 0), 1);
	/* while the other queue pair waits for an answer it keeps the entry */
	shm_ack_want(shm_ack, &other);
	other.req.max = serial24(1);
	send_message(d, 0);
	assert_false(shm_ack_has_news(shm_ack));
	two_hcas_run(d, d->now_ns + ALL_RETRIES);
	assert_int_equal(s.packets[1], 1);
	assert_int_equal(count_completions(d, 0), 1);
	shm_ack_leave(shm_ack, &other);
	two_hcas_free(d);
}

/* A queue pair without an entry in the page cannot report that it reads ACKs
 * there.  So each ACK must leave as a packet, with the peer's next message. */
static void a_queue_pair_without_an_entry_gets_each_ack(void **state)
{
	static struct credit_page page[2];
	struct sent s;
	struct two_hcas *d = two_with_pages(&s, page);
	struct shm_ack *shm_ack = engine_shm_ack(d->side[0].engine);
	struct qp qp = *d->side[0].qp;
	struct ibt_qp other = {.qp = &qp, .req.max = serial24(1)};

	qp.qpn += CREDIT_POSTS; /* the same entry */
	send_message(d, 0);
	shm_ack_look(shm_ack, d->now_ns);
	engine_hold_acks(d->side[1].engine, false);
	two_hcas_run(d, d->now_ns + SHM_ACK_WAIT_NS);
	assert_int_equal(s.packets[1], 0);
	assert_int_equal(count_completions(d, 0), 1);
	/* from here on the queue pair cannot report what it read */
	shm_ack_want(shm_ack, &other);
	engine_hold_acks(d->side[1].engine, true);
	for (int i = 0; i < 4; i++) {
		two_hcas_recv(d, 0, 0, 32768);
		two_hcas_recv(d, 1, 0, 32768);
		send_message(d, 0);
		send_message(d, 1);
		assert_int_equal(count_completions(d, 0), 2);
	}
	shm_ack_leave(shm_ack, &other);
	two_hcas_free(d);
}

static int stop_after_a_frame(void *context, int from,
			      const struct engine_frame *f)
{
	struct two_hcas *d = context;

	d->side[from].is_stopped = from == 1;
	return 1;
}

/*
 * IBTA 10.3.1: in the Error state nothing is processed.  A READ in progress
 * stops.  The SEND before the READ has been acknowledged already.
 */
static void a_queue_pair_in_err_reads_no_more(void **state)
{
	const struct hca_qp_attr err = {.qp_state = HCA_QP_ERR};
	struct sent s = {0};
	struct two_hcas *d = two_hcas_new(5, 16);
	struct two_hcas_side *answers = &d->side[1];
	const char *why = "";
	struct cqe c;

	d->fate = stop_after_a_frame;
	d->context = d;
	two_hcas_recv(d, 1, 0, 100);
	send_message(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 0, TWO_HCAS_MEMORY / 2,
		      TWO_HCAS_MEMORY / 2);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_true(answers->is_stopped);
	assert_int_equal(count_completions(d, 0), 1);
	assert_int_equal(engine_qp_modify(answers->engine, answers->side, &err,
					  HCA_QP_STATE, answers->ip, d->now_ns,
					  &why),
			 0);
	answers->is_stopped = false;
	d->fate = count_frames;
	d->context = &s;
	two_hcas_run(d, d->now_ns + ALL_RETRIES);
	assert_int_equal(s.packets[1], 0);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, HCA_RETRY_EXC_ERR);
	two_hcas_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_shm_ack_is_read_before_the_request_behind_it),
		cmocka_unit_test(
			a_requester_without_the_page_gets_the_ack_first),
		cmocka_unit_test(a_requester_that_reads_the_page_needs_no_ack),
		cmocka_unit_test(
			all_acks_are_packets_if_a_side_uses_no_shm_acks),
		cmocka_unit_test(a_shm_ack_is_read_when_the_next_request_comes),
		cmocka_unit_test(
			an_ack_behind_a_lost_request_waits_for_a_moment),
		cmocka_unit_test(a_requester_that_does_not_read_gets_an_ack),
		cmocka_unit_test(a_streams_requester_that_reads_needs_no_acks),
		cmocka_unit_test(a_requester_that_waits_gets_each_ack_at_once),
		cmocka_unit_test(an_ending_queue_pair_keeps_no_ack),
		cmocka_unit_test(a_removed_queue_pair_leaves_its_shm_ack),
		cmocka_unit_test(
			a_new_queue_pair_has_no_shm_ack_of_a_removed_one),
		cmocka_unit_test(shm_acks_of_another_connection_are_ignored),
		cmocka_unit_test(a_shm_ack_of_an_earlier_connection_is_ignored),
		cmocka_unit_test(shm_acks_work_after_both_sides_connect_again),
		cmocka_unit_test(a_shm_ack_waits_for_the_response_to_a_read),
		cmocka_unit_test(a_read_hides_no_shm_ack_of_an_earlier_request),
		cmocka_unit_test(
			an_entry_of_the_page_goes_to_the_active_queue_pair),
		cmocka_unit_test(a_queue_pair_without_an_entry_gets_each_ack),
		cmocka_unit_test(a_queue_pair_in_err_reads_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
