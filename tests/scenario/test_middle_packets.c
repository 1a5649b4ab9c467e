/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of many packets arrive whole, even if packets are lost.  The engine
 * makes their Middle packets many at a time (ibt/middle_packets.h). */
#include "test.h"

#include <string.h>

#include "hca/explain.h"
#include "hdr/pkt.h"
#include "ibt/ibt.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"
#include "util/rng.h"

#define MTU_512	  2
#define MTU_1024  3
#define FROM	  4096
#define TO	  600001 /* no alignment is needed */
#define ASK_EVERY 16	 /* ACK_EVERY in rc_req.c */

static void end_request(struct two_hcas *d, uint32_t status)
{
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, status);
}

static void move_bytes(struct two_hcas *d, enum hca_wr op, uint32_t bytes)
{
	bool reads = op == HCA_WR_RDMA_READ;
	struct cqe c;

	two_hcas_fill(d, reads, FROM, bytes);
	if (op == HCA_WR_SEND)
		two_hcas_recv(d, 1, TO, bytes);
	two_hcas_send(d, 0, op, reads ? TO : FROM, bytes, reads ? FROM : TO);
	two_hcas_post(d, 0);
	end_request(d, HCA_SUCCESS);
	assert_int_equal(two_hcas_poll(d, 1, &c), op == HCA_WR_SEND);
	assert_memory_equal(d->side[reads].memory.bytes + FROM,
			    d->side[!reads].memory.bytes + TO, bytes);
}

static void messages_of_any_number_of_packets_arrive(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_RDMA_WRITE, HCA_WR_SEND,
					  HCA_WR_RDMA_READ};

	for (uint32_t mtu = MTU_512; mtu <= MTU_1024; mtu++) {
		uint32_t bytes = 128u << mtu;
		struct two_hcas *d = two_hcas_new(mtu, 16);

		for (size_t k = 0; k < sizeof(ops) / sizeof(*ops); k++)
			for (uint32_t n = 1; n < 40; n++)
				move_bytes(d, ops[k], n * bytes + n % 3 - 1);
		assert_int_equal(d->side[0].qp->stats.retransmits, 0);
		two_hcas_free(d);
	}
}

/* The packets of side 0. */
struct tally {
	uint32_t packets;
	uint32_t asked;	      /* packets with AckReq */
	uint32_t run;	      /* packets since the last AckReq */
	uint32_t longest;     /* the most packets in a row without AckReq */
	struct serial24 next; /* the PSN of the next packet */
};

/* Checks that PSNs follow one another, and counts packets with AckReq. */
static int watch_packets(void *context, int from, const struct engine_frame *f)
{
	struct tally *c = context;
	size_t step = f->segment ? f->segment : f->len;
	struct bth bth;

	for (size_t off = 0; from == 0 && off < f->len; off += step) {
		assert_true(bth_parse(f->bytes + off, f->len - off, &bth));
		if (c->packets++)
			assert_int_equal(bth.psn, c->next.v);
		c->next = serial24_add(serial24(bth.psn), 1);
		c->asked += bth.ackreq;
		c->run = bth.ackreq ? 0 : c->run + 1;
		if (c->run > c->longest)
			c->longest = c->run;
	}
	return 1;
}

static void an_ack_is_requested_every_few_packets_and_at_the_end(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	struct tally c = {0};

	d->fate = watch_packets;
	d->context = &c;
	move_bytes(d, HCA_WR_RDMA_WRITE, 300 * 1024);
	assert_int_equal(c.packets, 300);
	assert_int_equal(c.run, 0);
	assert_uint_in_range(c.longest, 1, ASK_EVERY - 1);
	two_hcas_free(d);
}

static void payload_of_several_parts_is_gathered(void **state)
{
	static const uint32_t parts[] = {5000, 1, 100000, 3000};
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);
	uint64_t at = FROM;
	uint32_t sum = 0;
	struct wqe *w;

	for (int k = 0; k < 4; k++)
		sum += parts[k];
	w = two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, FROM, sum, TO);
	for (uint32_t k = 0; k < 4; k++) {
		wqe_sges(w)[k] = wqe_sges(w)[0];
		wqe_sges(w)[k].va = TWO_HCAS_BASE + at;
		wqe_sges(w)[k].bytes = parts[k];
		two_hcas_fill(d, 0, at, parts[k]);
		at += parts[k] + 777; /* a gap */
	}
	w->num_sge = 4;
	two_hcas_post(d, 0);
	end_request(d, HCA_SUCCESS);
	at = FROM;
	for (uint32_t k = 0, to = TO; k < 4; k++) {
		assert_memory_equal(d->side[0].memory.bytes + at,
				    d->side[1].memory.bytes + to, parts[k]);
		at += parts[k] + 777;
		to += parts[k];
	}
	two_hcas_free(d);
}

static void unreadable_memory_fails_the_request(void **state)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);

	d->side[0].memory.size = FROM + 50000;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, FROM, 100000, TO);
	two_hcas_post(d, 0);
	end_request(d, HCA_LOC_PROT_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_LOCAL_FAULT);
	two_hcas_free(d);
}

static int lose_one_of_twenty(void *context, int from,
			      const struct engine_frame *f)
{
	return rng_below(context, 20) != 0;
}

static void lost_middle_packets_are_sent_again(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct two_hcas *d = two_hcas_new(MTU_1024, 16);
		struct rng r;

		rng_init(&r, seed);
		d->fate = lose_one_of_twenty;
		d->context = &r;
		move_bytes(d, HCA_WR_RDMA_WRITE, 200001);
		move_bytes(d, HCA_WR_SEND, 200002);
		move_bytes(d, HCA_WR_RDMA_READ, 200003);
		two_hcas_free(d);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_any_number_of_packets_arrive),
		cmocka_unit_test(
			an_ack_is_requested_every_few_packets_and_at_the_end),
		cmocka_unit_test(payload_of_several_parts_is_gathered),
		cmocka_unit_test(unreadable_memory_fails_the_request),
		cmocka_unit_test(lost_middle_packets_are_sent_again),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
