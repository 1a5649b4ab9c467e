/* SPDX-License-Identifier: BSD-2-Clause */
/* Responses to READs overtake one another, or are lost.  The requester asks
 * again only after a loss. */
#include "test.h"

#include <string.h>

#include "hdr/pkt.h"
#include "ibt/ibt.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"
#include "util/rng.h"

#define MTU   256
#define BYTES (12 * MTU) /* of a READ, which needs one READ request */

/* Delays response number `first`, counted from 0, until `by` later responses
 * have arrived.  If `by` is 0, response number `first` is lost.  If `first` is
 * -1, no response is delayed or lost. */
struct road {
	struct two_hcas *d;
	int first, by;
	int answers, requests; /* seen */
	bool is_kept;
	struct engine_dgram kept;
	uint8_t bytes[MTU + 64];
};

static int delay_response(void *context, int from, const struct engine_frame *f)
{
	struct road *r = context;
	bool is_read = f->bytes[0] == OPCODE_RC_READ_REQUEST;

	if (from == 0) {
		r->requests += is_read;
		return 1;
	}
	if (r->answers++ == r->first) {
		memcpy(r->bytes, f->bytes, f->len);
		r->kept = (struct engine_dgram){.from = f->from,
						.to = f->to,
						.bytes = r->bytes,
						.len = f->len,
						.segment = f->len};
		r->is_kept = true;
		return 0;
	}
	if (r->is_kept && r->by && r->answers > r->first + 1 + r->by) {
		r->is_kept = false;
		engine_rx(r->d->side[0].engine, &r->kept, r->d->now_ns);
	}
	return 1;
}

/* Posts `reads` READs, delays or loses a response as struct road says, and
 * returns the number of READ requests sent. */
static int count_requests(int first, int by, int reads)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct road r = {.d = d, .first = first, .by = by};
	struct cqe c;
	struct rng g;
	int count;

	rng_init(&g, (uint64_t)first);
	for (uint32_t k = 0; k < BYTES * 4; k++)
		d->side[1].memory.bytes[k] = (uint8_t)rng_u64(&g);
	d->fate = delay_response;
	d->context = &r;
	for (int i = 0; i < reads; i++) {
		two_hcas_send(d, 0, HCA_WR_RDMA_READ,
			      300000u + (uint32_t)i * BYTES, BYTES,
			      (uint64_t)i * BYTES);
		two_hcas_post(d, 0);
	}
	two_hcas_run(d, d->now_ns + LONG);
	for (int i = 0; i < reads; i++) {
		assert_true(two_hcas_poll(d, 0, &c));
		assert_int_equal(c.status, HCA_SUCCESS);
	}
	assert_memory_equal(d->side[0].memory.bytes + 300000,
			    d->side[1].memory.bytes, (size_t)reads * BYTES);
	assert_true(engine_counters(d->side[0].engine, 0)->rx_buffered > 0);
	count = r.requests;
	assert_int_equal(engine_counters(d->side[0].engine, 0)->naks.implied,
			 count - reads);
	two_hcas_free(d);
	return count;
}

static void a_late_response_is_not_requested_again(void **state)
{
	for (int first = 0; first < 9; first++)
		for (int by = 1; by < 11 - first; by++)
			assert_int_equal(count_requests(first, by, 1), 1);
}

static void a_lost_response_is_requested_again_once(void **state)
{
	for (int first = 0; first < 11; first++)
		assert_int_equal(count_requests(first, 0, 1), 2);
}

static void the_next_read_is_requested_again_only_after_a_loss(void **state)
{
	assert_int_equal(count_requests(3, 4, 2), 2);
	/* go-back-N: the second READ may be requested again too */
	assert_uint_in_range(count_requests(3, 0, 2), 3, 4);
}

/* Returns the number of READ requests for 64 packets, with that send window. */
static int requests_with_window(uint32_t window)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct road r = {.d = d, .first = -1};
	struct cqe c;
	int count;

	d->fate = delay_response;
	d->context = &r;
	d->side[0].side->req.window = window;
	memset(d->side[1].memory.bytes, 7, 64 * MTU);
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, 300000, 64 * MTU, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_memory_equal(d->side[0].memory.bytes + 300000,
			    d->side[1].memory.bytes, 64 * MTU);
	count = r.requests;
	two_hcas_free(d);
	return count;
}

static void a_wide_window_requests_more_packets_at_once(void **state)
{
	assert_int_equal(requests_with_window(16), 4);
	assert_int_equal(requests_with_window(64), 4);
	assert_int_equal(requests_with_window(128), 2);
	assert_int_equal(requests_with_window(256), 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_response_is_not_requested_again),
		cmocka_unit_test(a_lost_response_is_requested_again_once),
		cmocka_unit_test(
			the_next_read_is_requested_again_only_after_a_loss),
		cmocka_unit_test(a_wide_window_requests_more_packets_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
