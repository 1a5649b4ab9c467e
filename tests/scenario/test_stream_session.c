/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP over SCTP: two queue pairs whose messages the test delivers in any
 * order. */
#include "test.h"

#include "scenario/joined.h"
#include "util/rng.h"

#define BOX 8000 /* messages */

/* The messages on their way from a side. */
struct box {
	struct {
		uint8_t *p; /* NULL: the message was delivered */
		uint32_t bytes;
	} at[BOX];
	uint32_t count;
};

static struct box boxes[2]; /* from side 0, from side 1 */

/* A segment carries at most 114 bytes of a tagged message, or 110 bytes of an
 * untagged one. */
static const struct stream_config config = {
	.is_session = true, .ulpdu_max = STREAM_ULPDU_MIN, .ird = 4, .ord = 4};

static void empty_box(struct box *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		free(b->at[i].p);
	b->count = 0;
}

static void open_session(struct joined *j)
{
	empty_box(&boxes[0]);
	empty_box(&boxes[1]);
	joined_with(j, &config);
	/* side 1 of a session may send first, too (RFC 6581 7) */
	j->config[1].is_responder = false;
	joined_open(j);
}

static void part_joined(struct joined *j)
{
	empty_box(&boxes[0]);
	empty_box(&boxes[1]);
	joined_part(j);
}

/* Puts the messages that side i has to send into boxes[i].  Returns how many.
 */
static uint32_t fill_box(struct joined *j, int i)
{
	struct two_hcas_side *s = &j->d->side[i];
	struct box *b = &boxes[i];
	uint32_t before = b->count, n;
	struct engine_frame frame;
	uint8_t buf[1000];
	struct ibt_qp *q;

	assert_int_equal(engine_tx(s->engine, &frame, 1, j->d->now_ns), 0);
	while ((q = engine_stream_next(s->engine))) {
		n = engine_stream_tx(s->engine, q, buf, sizeof(buf),
				     j->d->now_ns);
		if (!n)
			continue;
		assert_true(b->count < BOX);
		b->at[b->count].p = malloc(n);
		b->at[b->count].bytes = n;
		memcpy(b->at[b->count++].p, buf, n);
	}
	return b->count - before;
}

/* Gives side `to` these bytes as a message. */
static void hand_message(struct joined *j, int to, const uint8_t *p, uint32_t n)
{
	struct two_hcas_side *s = &j->d->side[to];
	/* a block of its own, so that the sanitizer sees reads past the end */
	uint8_t *copy = malloc(n ? n : 1);

	memcpy(copy, p, n);
	engine_stream_rx(s->engine, s->side, copy, n, j->d->now_ns);
	free(copy);
}

/* Delivers the message at this place in the box of side i. */
static void deliver_message(struct joined *j, int i, uint32_t at)
{
	struct box *b = &boxes[i];

	assert_non_null(b->at[at].p);
	hand_message(j, !i, b->at[at].p, b->at[at].bytes);
	free(b->at[at].p);
	b->at[at].p = NULL;
}

/* Delivers messages in random order until none is on its way. */
static void deliver_all(struct joined *j, struct rng *rng)
{
	for (;;) {
		two_hcas_run(j->d, j->d->now_ns);
		fill_box(j, 0);
		fill_box(j, 1);
		if (!boxes[0].count && !boxes[1].count)
			return;
		for (int i = 0; i < 2; i++) {
			struct box *b = &boxes[i];

			while (b->count) {
				uint32_t at = rng_below(rng, b->count);

				deliver_message(j, i, at);
				b->at[at] = b->at[--b->count];
			}
		}
	}
}

/* Sets `order` to the permutation of n places with this number. */
static void permute_order(uint32_t number, uint32_t n, uint32_t *order)
{
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i + number % (n - i), first = order[i];

		number /= n - i;
		order[i] = order[k];
		order[k] = first;
	}
}

static uint32_t factorial_of(uint32_t n)
{
	return n < 2 ? 1 : n * factorial_of(n - 1);
}

/* Delivers a box in the order of a permutation, and empties it. */
static void deliver_permuted(struct joined *j, int i, uint32_t number)
{
	uint32_t n = boxes[i].count, order[8];

	permute_order(number % factorial_of(n), n, order);
	for (uint32_t k = 0; k < n; k++)
		deliver_message(j, i, order[k]);
	boxes[i].count = 0;
}

/* ---- without errors ---- */

/* RFC 5043 6.1 and 10, RFC 5041 5.3: the segments of a WRITE (three), a SEND
 * (two) and a READ (one, and three of its response) arrive in each order.  The
 * SEND is delivered when its segments and all earlier segments have come. */
static void each_order_of_arrival_gives_the_same(void **state)
{
	struct joined j;

	open_session(&j);
	for (uint32_t number = 0; number < 720; number++) {
		uint32_t order[6], come = 0;

		two_hcas_fill(j.d, 0, 0, 300);
		two_hcas_fill(j.d, 1, 5000, 300);
		memset(joined_bytes(&j, 1), 0, 4000);
		memset(joined_bytes(&j, 0) + 8000, 0, 300);
		two_hcas_recv(j.d, 1, 3000, 200);
		joined_post(&j, HCA_WR_RDMA_WRITE, 0, 300, 1000);
		joined_post(&j, HCA_WR_SEND, 0, 200, 0);
		joined_post(&j, HCA_WR_RDMA_READ, 8000, 300, 5000);
		assert_int_equal(fill_box(&j, 0), 6);
		permute_order(number, 6, order);
		for (uint32_t k = 0; k < 6; k++) {
			struct cqe c;

			joined_idle(&j, 1);
			deliver_message(&j, 0, order[k]);
			come |= 1u << order[k];
			if ((come & 0x1f) != 0x1f)
				continue;
			if (!two_hcas_poll(j.d, 1, &c))
				continue; /* the SEND was polled before */
			assert_int_equal(c.byte_len, 200);
			joined_same(&j, 0, 1000, 300);
			joined_same(&j, 0, 3000, 200);
			come |= 1u << 8;
		}
		assert_true(come & 1u << 8);
		boxes[0].count = 0;
		assert_int_equal(fill_box(&j, 1), 3);
		deliver_permuted(&j, 1, number);
		for (int i = 0; i < 3; i++)
			joined_done(&j, 0, HCA_SUCCESS);
		joined_same(&j, 8000, 5000, 300);
	}
	part_joined(&j);
}

static void exchange_data(struct joined *j, struct rng *rng, uint32_t bytes)
{
	two_hcas_fill(j->d, 0, 0, bytes);
	two_hcas_fill(j->d, 1, 500000, bytes);
	two_hcas_recv(j->d, 1, 300000, bytes);
	joined_post(j, HCA_WR_RDMA_WRITE, 0, bytes, 100000);
	joined_post(j, HCA_WR_SEND, 0, bytes, 0);
	joined_post(j, HCA_WR_RDMA_READ, 600000, bytes, 500000);
	deliver_all(j, rng);
	assert_int_equal(joined_polled(j, 0).opcode, HCA_WC_RDMA_WRITE);
	assert_int_equal(joined_polled(j, 0).opcode, HCA_WC_SEND);
	assert_int_equal(joined_polled(j, 0).opcode, HCA_WC_RDMA_READ);
	assert_int_equal(joined_polled(j, 1).byte_len, bytes);
	joined_same(j, 0, 100000, bytes);
	joined_same(j, 0, 300000, bytes);
	joined_same(j, 600000, 500000, bytes);
}

static void each_size_arrives_in_random_order(void **state)
{
	static const uint32_t sizes[] = {0,   1,   109, 110,  111,   113,
					 114, 115, 220, 1000, 30000, 60000};
	struct joined j;
	struct rng rng;

	rng_init(&rng, 1);
	open_session(&j);
	for (int round = 0; round < 5; round++)
		for (uint32_t i = 0; i < TEST_COUNT(sizes); i++)
			exchange_data(&j, &rng, sizes[i]);
	joined_idle(&j, 0);
	joined_idle(&j, 1);
	joined_counted(&j);
	part_joined(&j);
}

/* The DDP-SSN has 16 bits. */
static void the_numbers_wrap(void **state)
{
	struct session *from, *to;
	struct joined j;
	struct rng rng;

	rng_init(&rng, 2);
	open_session(&j);
	from = j.d->side[0].side->stream->session;
	to = j.d->side[1].side->stream->session;
	from->tx_ssn = to->rx_ssn = 0xff80;
	to->tx_ssn = from->rx_ssn = 0xfff0;
	for (int i = 0; i < 20; i++)
		exchange_data(&j, &rng, 2000);
	assert_true(from->tx_ssn < 0xff80 && to->tx_ssn < 0xfff0);
	part_joined(&j);
}

/* The last segment of a message waits until all earlier segments have come,
 * since programs poll the last byte of a WRITE. */
static void a_segment_within_a_message_is_placed_at_once(void **state)
{
	struct joined j;

	open_session(&j);
	two_hcas_fill(j.d, 0, 0, 300);
	joined_post(&j, HCA_WR_RDMA_WRITE, 0, 300, 1000);
	fill_box(&j, 0);
	deliver_message(&j, 0, 1);
	joined_same(&j, 114, 1114, 114);
	deliver_message(&j, 0, 2);
	assert_int_equal(joined_bytes(&j, 1)[1228], 0);
	deliver_message(&j, 0, 0);
	joined_same(&j, 0, 1000, 300);
	boxes[0].count = 0;
	/* a segment of a SEND is placed at once too, if the SEND's first
	 * segment has come */
	two_hcas_recv(j.d, 1, 3000, 400);
	joined_post(&j, HCA_WR_SEND, 0, 350, 0);
	fill_box(&j, 0);
	deliver_message(&j, 0, 0);
	deliver_message(&j, 0, 2);
	joined_same(&j, 220, 3220, 110);
	deliver_message(&j, 0, 3);
	joined_idle(&j, 1);
	deliver_message(&j, 0, 1);
	assert_int_equal(joined_polled(&j, 1).byte_len, 350);
	joined_same(&j, 0, 3000, 350);
	boxes[0].count = 0;
	/* a segment of the response to a READ is placed at once too */
	two_hcas_fill(j.d, 1, 5000, 300);
	joined_post(&j, HCA_WR_RDMA_READ, 8000, 300, 5000);
	fill_box(&j, 0);
	deliver_message(&j, 0, 0);
	fill_box(&j, 1);
	deliver_message(&j, 1, 1);
	joined_same(&j, 8114, 5114, 114);
	part_joined(&j);
}

/* Two WRITEs of two segments go to the same memory, and so do the responses to
 * two READs. */
static void the_later_of_two_messages_stays(void **state)
{
	struct joined j;

	open_session(&j);
	for (uint32_t number = 0; number < 24; number++) {
		two_hcas_fill(j.d, 0, 0, 200);
		memset(joined_bytes(&j, 0) + 1000, 0x11, 200);
		memset(joined_bytes(&j, 1) + 3000, 0x22, 200);
		two_hcas_fill(j.d, 1, 4000, 200);
		joined_post(&j, HCA_WR_RDMA_WRITE, 1000, 200, 0);
		joined_post(&j, HCA_WR_RDMA_WRITE, 0, 200, 0);
		fill_box(&j, 0);
		deliver_permuted(&j, 0, number);
		joined_same(&j, 0, 0, 200);
		joined_post(&j, HCA_WR_RDMA_READ, 5000, 200, 3000);
		joined_post(&j, HCA_WR_RDMA_READ, 5000, 200, 4000);
		fill_box(&j, 0);
		deliver_permuted(&j, 0, 1);
		assert_int_equal(fill_box(&j, 1), 4);
		deliver_permuted(&j, 1, number);
		joined_same(&j, 5000, 4000, 200);
		for (int i = 0; i < 4; i++)
			joined_done(&j, 0, HCA_SUCCESS);
	}
	part_joined(&j);
}

/* RFC 6581 7. */
static void the_passive_side_may_send_first(void **state)
{
	struct joined j;

	open_session(&j);
	two_hcas_fill(j.d, 1, 0, 10);
	two_hcas_send(j.d, 1, HCA_WR_RDMA_WRITE, 0, 10, 100);
	two_hcas_post(j.d, 1);
	assert_int_equal(fill_box(&j, 1), 1);
	deliver_message(&j, 1, 0);
	joined_same(&j, 100, 0, 10);
	joined_done(&j, 1, HCA_SUCCESS);
	part_joined(&j);
}

/* ---- the end ---- */

/* RFC 5043 6.2: the Terminate of a session has the last DDP-SSN, so the session
 * ends only when all messages before the Terminate have come. */
static void a_session_ends_behind_its_last_message(void **state)
{
	uint8_t end[ENGINE_FINISH_BYTES], again[ENGINE_FINISH_BYTES];
	struct ibt_qp *q[2];
	struct joined j;

	open_session(&j);
	for (int i = 0; i < 2; i++)
		q[i] = j.d->side[i].side;
	two_hcas_recv(j.d, 1, 0, 200);
	joined_post(&j, HCA_WR_SEND, 0, 200, 0);
	fill_box(&j, 0);
	assert_true(engine_stream_is_drained(q[0]));
	assert_int_equal(engine_stream_finish(q[0], end), sizeof(end));
	assert_int_equal(engine_stream_finish(q[0], again), 0);
	hand_message(&j, 1, end, sizeof(end));
	assert_false(engine_stream_has_peer_ended(q[1]));
	deliver_message(&j, 0, 1);
	joined_idle(&j, 1);
	deliver_message(&j, 0, 0);
	joined_done(&j, 1, HCA_SUCCESS);
	assert_true(engine_stream_has_peer_ended(q[1]));
	part_joined(&j);
}

/* RFC 5040 7.2.  The RDMAP Terminate is a segment of DDP, and not a control
 * message of the session. */
static void a_refused_access_ends_both_sides(void **state)
{
	struct joined j;
	struct wqe *w;

	for (uint32_t number = 0; number < 6; number++) {
		open_session(&j);
		two_hcas_recv(j.d, 1, 0, 100);
		two_hcas_recv(j.d, 1, 0, 100);
		joined_post(&j, HCA_WR_SEND, 0, 100, 0);
		w = two_hcas_send(j.d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
		w->rkey ^= 0x100;
		two_hcas_post(j.d, 0);
		joined_post(&j, HCA_WR_SEND, 0, 100, 0);
		assert_int_equal(fill_box(&j, 0), 3);
		deliver_permuted(&j, 0, number);
		joined_done(&j, 1, HCA_SUCCESS);
		joined_done(&j, 1, HCA_WR_FLUSH_ERR);
		joined_idle(&j, 1);
		assert_int_equal(fill_box(&j, 1), 1);
		deliver_message(&j, 1, 0);
		two_hcas_run(j.d, j.d->now_ns);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(joined_phase(&j, i), STREAM_OVER);
			assert_int_equal(joined_state(&j, i), HCA_QP_ERR);
		}
		assert_string_equal(j.d->side[0].explained.detail,
				    terminate_row(TERMINATE_STAG)->text);
		part_joined(&j);
	}
}

/* ---- hostile messages ---- */

static void assert_session_ended(struct joined *j, const char *words)
{
	two_hcas_run(j->d, j->d->now_ns);
	assert_int_equal(joined_state(j, 1), HCA_QP_ERR);
	assert_non_null(j->d->side[1].explained.detail);
	assert_non_null(strstr(j->d->side[1].explained.detail, words));
	assert_int_equal(fill_box(j, 1), 1); /* its Terminate */
	assert_int_equal(joined_phase(j, 1), STREAM_OVER);
	/* a message that comes now is not placed */
	two_hcas_fill(j->d, 0, 0, 100);
	if (boxes[0].count && boxes[0].at[0].p)
		deliver_message(j, 0, 0);
	assert_int_equal(joined_bytes(j, 1)[1000], 0);
	part_joined(j);
}

/* Opens a session.  A WRITE of one segment, with DDP-SSN 1, is on its way. */
static void open_with_write(struct joined *j)
{
	open_session(j);
	two_hcas_fill(j->d, 0, 0, 100);
	joined_post(j, HCA_WR_RDMA_WRITE, 0, 100, 1000);
	fill_box(j, 0);
}

/* RFC 5043 6.1 and 10. */
static void messages_against_the_rules_end_the_session(void **state)
{
	static const struct {
		uint8_t bytes[9];
		uint32_t count;
		const char *words;
	} bad[] = {
		{{0, 0, 0, 16, 0, 0}, 6, "come before"},
		{{0, 0, 0, 16, 0x80, 1}, 6, "come before"},
		{{0, 0, 0, 16, 0x7f, 0xff}, 6, "too far ahead"},
		{{0, 0, 0, 16, 0x10, 1}, 6, "too far ahead"},
		{{0, 0, 0, 18, 0, 1}, 6, "not of DDP"},
		{{0, 0, 0, 16, 0}, 5, "not of DDP"},
		{{0}, 0, "not of DDP"},
		{{0, 0, 0, 17, 0, 1, 0, 2}, 8, "does not allow"},
		{{0, 0, 0, 17, 0, 1, 0, 4, 0}, 9, "does not allow"},
		{{0, 0, 0, 17, 0, 1, 0}, 7, "does not allow"},
		{{0, 0, 0, 16, 0, 1, 0x41, 0x43}, 8, "its DDP header"},
		{{0, 0, 0, 16, 0, 1}, 6, "its DDP header"},
	};
	struct joined j;

	for (uint32_t i = 0; i < TEST_COUNT(bad); i++) {
		open_with_write(&j);
		hand_message(&j, 1, bad[i].bytes, bad[i].count);
		assert_session_ended(&j, bad[i].words);
	}
}

static void a_message_twice_ends_the_session(void **state)
{
	static const uint8_t early[] = {0, 0, 0, 16, 0, 3, 0x41, 0x43};
	struct joined j;

	open_with_write(&j);
	hand_message(&j, 1, early, sizeof(early));
	assert_int_equal(joined_state(&j, 1), HCA_QP_RTS);
	hand_message(&j, 1, early, sizeof(early));
	assert_session_ended(&j, "come before");
}

static void nothing_follows_the_end(void **state)
{
	static const uint8_t end[] = {0, 0, 0, 17, 0, 2, 0, 4};
	static const uint8_t more[] = {0, 0, 0, 16, 0, 3, 0x41, 0x43};
	struct joined j;

	open_with_write(&j);
	hand_message(&j, 1, more, sizeof(more));
	hand_message(&j, 1, end, sizeof(end));
	assert_int_equal(joined_state(&j, 1), HCA_QP_RTS);
	deliver_message(&j, 0, 0);
	joined_same(&j, 0, 1000, 100);
	two_hcas_run(j.d, j.d->now_ns);
	assert_int_equal(joined_state(&j, 1), HCA_QP_ERR);
	assert_non_null(strstr(j.d->side[1].explained.detail, "after the end"));
	part_joined(&j);
}

/* Neither the count nor the bytes of kept messages grow without bound. */
static void a_peer_that_leaves_a_gap_is_given_up(void **state)
{
	static uint8_t early[30000];

	for (uint32_t bytes = 6; bytes <= sizeof(early); bytes += 7498) {
		uint32_t ssn = 2, most;
		struct session *s;
		struct joined j;

		open_with_write(&j);
		s = j.d->side[1].side->stream->session;
		for (; joined_state(&j, 1) == HCA_QP_RTS; ssn++) {
			assert_true(ssn < 6000);
			assert_true(s->kept <= SESSION_KEPT_MAX);
			session_write_head(early, SESSION_SEGMENT,
					   (uint16_t)ssn);
			hand_message(&j, 1, early, bytes);
		}
		most = SESSION_KEPT_MAX / (bytes + 64);
		if (most > SESSION_WINDOW - 1)
			most = SESSION_WINDOW - 1;
		assert_int_equal(ssn - 3, most);
		assert_session_ended(&j, bytes == 6 ? "too far" : "missing");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_order_of_arrival_gives_the_same),
		cmocka_unit_test(each_size_arrives_in_random_order),
		cmocka_unit_test(the_numbers_wrap),
		cmocka_unit_test(a_segment_within_a_message_is_placed_at_once),
		cmocka_unit_test(the_later_of_two_messages_stays),
		cmocka_unit_test(the_passive_side_may_send_first),
		cmocka_unit_test(a_session_ends_behind_its_last_message),
		cmocka_unit_test(a_refused_access_ends_both_sides),
		cmocka_unit_test(messages_against_the_rules_end_the_session),
		cmocka_unit_test(a_message_twice_ends_the_session),
		cmocka_unit_test(nothing_follows_the_end),
		cmocka_unit_test(a_peer_that_leaves_a_gap_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
