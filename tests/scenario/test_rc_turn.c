/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of an RC queue pair whose peer has READs outstanding all the time:
 * they go between the answers to the READs, but after each reply that was due
 * when they were posted. */
#include "ibt/ibt.h"
#include "scenario/outcome.h"

#define READ_BYTES 65536u
#define READS	   4   /* outstanding at a time: max_rd_atomic */
#define STEPS	   400 /* in so many steps of step_worlds READs do not end */

/* Side 0 READs, and `lost` request packets of side 1 are still to be lost. */
struct reader {
	struct two_hcas *d;
	uint32_t lost;
	uint32_t received; /* completed receives of side 0 */
	uint32_t done;	   /* completed requests of side 0 */
};

/* Makes two sides that have each executed a request, and so know that they send
 * packets. */
static struct two_hcas *two_that_send(void)
{
	struct two_hcas *d = two_hcas_new(5, 64);

	for (int i = 0; i < 2; i++) {
		two_hcas_send(d, i, HCA_WR_RDMA_WRITE, 0, 8, 0);
		two_hcas_post(d, i);
		two_hcas_run(d, d->now_ns);
		assert_done(d, i, HCA_SUCCESS);
	}
	return d;
}

static void post_read(struct two_hcas *d, uint32_t bytes)
{
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 0, bytes, 0);
	two_hcas_post(d, 0);
}

static bool is_response(const struct engine_frame *f)
{
	uint8_t opcode = f->bytes[0];

	return opcode >= OPCODE_RC_READ_RESPONSE_FIRST &&
	       opcode <= OPCODE_RC_ATOMIC_ACKNOWLEDGE;
}

/* Moves at most `most` frames of side i to its peer. */
static void move_frames(struct reader *r, int i, size_t most)
{
	struct two_hcas_side *s = &r->d->side[i];
	struct engine_frame f[8];
	size_t n = engine_tx(s->engine, f, most, r->d->now_ns);

	for (size_t k = 0; k < n; k++) {
		const struct engine_dgram g = {.from = f[k].from,
					       .to = f[k].to,
					       .bytes = f[k].bytes,
					       .len = f[k].len,
					       .segment = f[k].segment};

		if (i == 1 && r->lost && !is_response(&f[k]))
			r->lost--;
		else
			engine_rx(r->d->side[!i].engine, &g, r->d->now_ns);
	}
	engine_tx_done(s->engine, n);
}

/* Side 0 polls, and posts a READ for each request that has completed. */
static void poll_reader(struct reader *r)
{
	struct cqe c;

	while (two_hcas_poll(r->d, 0, &c)) {
		assert_int_equal(c.status, HCA_SUCCESS);
		if (c.opcode == HCA_WC_RECV) {
			r->received++;
			continue;
		}
		r->done++;
		post_read(r->d, READ_BYTES);
	}
}

/* Side 0 sends all that it can, and side 1 one frame.  Returns whether side 1
 * has more answers than the frames that it has made. */
static bool step_worlds(struct reader *r)
{
	bool is_behind;

	move_frames(r, 0, 8);
	is_behind = rc_reply_first(r->d->side[1].side);
	move_frames(r, 1, 1);
	poll_reader(r);
	r->d->now_ns += 100000;
	for (int i = 0; i < 2; i++)
		engine_tick(r->d->side[i].engine, r->d->now_ns);
	return is_behind;
}

/* Makes two sides of which side 0 READs from side 1, and lets them run until
 * side 1 always has answers to send. */
static struct reader begin_reading(void)
{
	struct reader r = {.d = two_that_send()};
	int in_row = 0;

	two_hcas_recv(r.d, 0, READ_BYTES, 64);
	for (int i = 0; i < READS; i++)
		post_read(r.d, READ_BYTES);
	for (int i = 0; i < 10 * STEPS && in_row < 50; i++)
		in_row = step_worlds(&r) ? in_row + 1 : 0;
	assert_int_equal(in_row, 50);
	return r;
}

static void post_send(struct two_hcas *d)
{
	two_hcas_send(d, 1, HCA_WR_SEND, 0, 64, 0);
	two_hcas_post(d, 1);
}

/* Lets the outstanding requests end, and frees the sides. */
static void end_reading(struct reader *r)
{
	two_hcas_run(r->d, r->d->now_ns + LONG);
	two_hcas_free(r->d);
}

static void a_request_goes_between_the_answers_to_reads(void **state)
{
	struct reader r = begin_reading();
	struct cqe c;

	post_send(r.d);
	for (int i = 0; !two_hcas_poll(r.d, 1, &c); i++) {
		assert_true(i < STEPS);
		step_worlds(&r);
	}
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_int_equal(r.received, 1);
	assert_int_equal(r.d->side[1].qp->stats.retransmits, 0);
	end_reading(&r);
}

/* The SEND is lost once.  Its repetition is not held back until the retries are
 * used up. */
static void a_lost_request_is_repeated_between_the_answers(void **state)
{
	struct reader r = begin_reading();
	struct cqe c;
	int steps = 0;

	r.lost = 1;
	post_send(r.d);
	while (!two_hcas_poll(r.d, 1, &c)) {
		assert_true(steps++ < 2 * STEPS);
		step_worlds(&r);
	}
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_int_equal(r.lost, 0);
	assert_int_equal(r.received, 1);
	end_reading(&r);
}

/* A long WRITE and the answers share the packets. */
static void a_long_request_shares_the_packets_with_the_answers(void **state)
{
	struct reader r = begin_reading();
	uint32_t before = r.done;
	struct cqe c;

	two_hcas_fill(r.d, 1, 0, 8 * READ_BYTES);
	two_hcas_send(r.d, 1, HCA_WR_RDMA_WRITE, 0, 8 * READ_BYTES,
		      8 * READ_BYTES);
	two_hcas_post(r.d, 1);
	for (int i = 0; !two_hcas_poll(r.d, 1, &c); i++) {
		assert_true(i < STEPS);
		step_worlds(&r);
	}
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_memory_equal(r.d->side[0].bytes + 8 * READ_BYTES,
			    r.d->side[1].bytes, 8 * READ_BYTES);
	/* as many bytes of answers as of the WRITE, give or take half */
	assert_uint_in_range(r.done - before, 4, 16);
	end_reading(&r);
}

/* Side 1 posts its request after it has got side 0's SEND.  So side 0 completes
 * the SEND, and the READs before it, before the request arrives. */
static void an_answering_request_goes_after_the_replies(void **state)
{
	struct two_hcas *d = two_that_send();
	struct reader r = {.d = d};
	struct cqe c;

	two_hcas_recv(d, 0, READ_BYTES, 64);
	two_hcas_recv(d, 1, READ_BYTES, 64);
	for (int i = 0; i < READS; i++)
		post_read(d, 2 * 4096);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 64, 0);
	two_hcas_post(d, 0);
	while (!two_hcas_poll(d, 1, &c))
		move_frames(&r, 0, 8);
	assert_int_equal(c.opcode, HCA_WC_RECV);
	post_send(d);
	while (!two_hcas_poll(d, 1, &c)) {
		move_frames(&r, 1, 1);
		move_frames(&r, 0, 8);
	}
	for (int i = 0; i < READS; i++)
		outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_READ);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_SEND);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RECV);
	two_hcas_free(d);
}

/* A space_ops.read_crc that leaves, on failure, another CRC than before. */
static int read_or_spoil(struct space *s, const struct space_vec *from,
			 size_t n, void *dst, enum crc_kind kind, uint32_t *crc)
{
	int err = s->ops->read(s, from, n, dst);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += from[i].bytes;
	*crc = err ? ~*crc : crc_update(kind, *crc, dst, bytes);
	return err;
}

/* The second piece of the WRITE is not mapped.  The WRITE fails only when the
 * SEND before it, whose ACK is lost, has ended, and meanwhile answers go on. */
static void a_request_without_its_memory_changes_no_answer(void **state)
{
	struct reader r = begin_reading();
	struct two_hcas_side *s = &r.d->side[1];
	uint32_t before = r.done;
	struct space_ops ops = *s->hca.space->ops;
	struct wqe *w;

	ops.read_crc = read_or_spoil;
	s->hca.space->ops = &ops;
	r.lost = 1;
	post_send(r.d);
	w = two_hcas_send(r.d, 1, HCA_WR_RDMA_WRITE, 0, 2048, 0);
	wqe_sges(w)[1] = wqe_sges(w)[0];
	wqe_sges(w)[1].va = TWO_HCAS_BASE + sizeof(s->bytes);
	w->num_sge = 2;
	w->bytes = 4096;
	s->mr->bytes += 4096;
	two_hcas_post(r.d, 1);
	for (int i = 0; i < STEPS && r.done < before + 8; i++)
		step_worlds(&r);
	assert_int_equal(
		engine_counters(r.d->side[0].engine, 0)->refused.bad_icrc, 0);
	two_hcas_free(r.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_goes_between_the_answers_to_reads),
		cmocka_unit_test(
			a_lost_request_is_repeated_between_the_answers),
		cmocka_unit_test(
			a_long_request_shares_the_packets_with_the_answers),
		cmocka_unit_test(an_answering_request_goes_after_the_replies),
		cmocka_unit_test(
			a_request_without_its_memory_changes_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
