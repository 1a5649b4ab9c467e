/* SPDX-License-Identifier: BSD-2-Clause */
/* ibt_qp_room: the responder's two rings, for replies and for READs and
 * atomics, are long enough and keep their rows.  rc_comp_placed: the silence of
 * a peer is forgotten. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "ibt/ibt.h"

/* Returns the least length of the ring for READs and atomics. */
static uint32_t records_for(uint32_t reads)
{
	return 2 * reads + 2;
}

/* Each ring is long enough after each change of max_dest_rd_atomic. */
static void both_rings_grow(void **state)
{
	for (uint32_t first = 0; first <= 128; first++)
		for (uint32_t then = 0; then <= 128; then++) {
			struct ibt_qp q;
			uint32_t most = first > then ? first : then;

			memset(&q, 0, sizeof(q));
			assert_int_equal(ibt_qp_room(&q, first), 0);
			assert_true(q.resp.resource_size >= records_for(first));
			assert_int_equal(ibt_qp_room(&q, then), 0);
			assert_true(q.resp.resource_size >= records_for(most));
			assert_true(q.resp.reply_size >
				    most + IBT_SPARE_REPLIES - 1);
			free(q.resp.replies);
		}
}

/* A ring that grows keeps its rows, the oldest first. */
static void a_ring_that_grows_keeps_its_rows(void **state)
{
	struct ibt_qp q;
	struct rc_resp *r = &q.resp;
	uint32_t rows;

	memset(&q, 0, sizeof(q));
	assert_int_equal(ibt_qp_room(&q, 3), 0);
	rows = r->resource_size;
	r->resource_next = rows + 5;
	for (uint32_t i = 0; i < rows; i++)
		r->resources[(r->resource_next + i) % rows].rkey = i + 1;
	assert_int_equal(ibt_qp_room(&q, 4), 0);
	assert_true(r->resource_size > rows);
	assert_int_equal(r->resource_next, rows);
	for (uint32_t i = 0; i < rows; i++)
		assert_int_equal(r->resources[i].rkey, i + 1);
	free(r->replies);
}

/* If the peer was found alive during one silence, this says nothing about its
 * next silence. */
static void a_placed_request_ends_a_silence(void **state)
{
	static struct ibt t;
	static struct qp qp;
	struct ibt_qp q;

	memset(&q, 0, sizeof(q));
	q.qp = &qp;
	wheel_timer_init(&q.timers.ack);
	q.req.silent_since_ns = 7;
	q.req.asking = q.req.was_alive = true;
	rc_comp_placed(&t, &q);
	assert_true(!q.req.silent_since_ns);
	assert_false(q.req.asking);
	assert_false(q.req.was_alive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_rings_grow),
		cmocka_unit_test(a_ring_that_grows_keeps_its_rows),
		cmocka_unit_test(a_placed_request_ends_a_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
