/* SPDX-License-Identifier: BSD-2-Clause */
/* host/rx_backoff: pauses between looks at the socket.  For some peers pauses
 * shorten the time that a byte takes, for others they lengthen it.  The test
 * computes the time, and reads no clock. */
#include "test.h"

#include "host/rx_backoff.h"

#define MEGA (1u << 20)

/* A peer.  at_once, paused: how many ns a MiB costs if the peer's bytes are
 * received at once, or after pauses. */
struct peer {
	uint64_t at_once, paused;
	size_t look; /* bytes that one look finds */
};

static const struct peer stream = {240000, 200000, 300000};
static const struct peer waits = {300000, 500000, 65536};
static const struct peer either = {300000, 295000, 65536};
static const struct peer slow = {10000000, 9000000, 4096};

/* The receiver and its time. */
struct looker {
	struct rx_backoff rx_backoff;
	uint64_t now_ns;
};

/* Receives `megas` MiB; returns the percentage that was received after pauses.
 */
static unsigned receive_megas(struct looker *l, const struct peer *peer,
			      size_t megas)
{
	size_t paused = 0, got = 0, bytes = megas * MEGA;

	for (; got < bytes; got += peer->look) {
		uint64_t cost =
			l->rx_backoff.pauses ? peer->paused : peer->at_once;

		if (l->rx_backoff.pauses)
			paused += peer->look;
		l->now_ns += cost * peer->look / MEGA;
		rx_backoff_looked(&l->rx_backoff, peer->look, l->now_ns);
	}
	return bytes ? (unsigned)(100 * paused / bytes) : 0;
}

/* Returns a receiver that has received `megas` MiB of a peer, and has measured
 * the time that they took. */
static struct looker begin_looker(const struct peer *peer, size_t megas)
{
	struct looker l = {.now_ns = 1000000000};

	rx_backoff_init(&l.rx_backoff);
	receive_megas(&l, peer, megas);
	return l;
}

static void
a_stream_that_pauses_make_faster_is_received_after_pauses(void **state)
{
	struct looker l = begin_looker(&stream, 16);

	assert_uint_in_range(receive_megas(&l, &stream, 1000), 95, 100);
	assert_uint_in_range(receive_megas(&l, &stream, 1000), 97, 100);
}

static void bytes_of_a_peer_that_waits_are_received_at_once(void **state)
{
	struct looker l = begin_looker(&waits, 16);

	assert_uint_in_range(receive_megas(&l, &waits, 1000), 0, 5);
	assert_uint_in_range(receive_megas(&l, &waits, 1000), 0, 3);
}

static void pauses_without_gain_are_dropped(void **state)
{
	struct looker l = begin_looker(&either, 16);

	assert_uint_in_range(receive_megas(&l, &either, 1000), 0, 5);
}

static void a_peer_that_changes_is_followed(void **state)
{
	struct looker l = begin_looker(&stream, 1000);

	receive_megas(&l, &waits, 100);
	assert_uint_in_range(receive_megas(&l, &waits, 500), 0, 5);
	receive_megas(&l, &stream, 100);
	assert_uint_in_range(receive_megas(&l, &stream, 500), 95, 100);
}

static void a_slow_flow_is_received_at_once(void **state)
{
	struct looker l = begin_looker(&slow, 0);

	assert_int_equal(receive_megas(&l, &slow, 100), 0);
}

static void a_look_that_finds_nothing_ends_the_pauses(void **state)
{
	struct looker l = begin_looker(&stream, 100);
	struct rx_backoff *p = &l.rx_backoff;

	assert_true(p->pauses);
	assert_true(rx_backoff_waits(p, l.now_ns));
	assert_false(rx_backoff_waits(p, l.now_ns + RX_BACKOFF_NS));
	rx_backoff_looked(p, 0, l.now_ns + RX_BACKOFF_NS);
	assert_true(rx_backoff_is_off(p));
	rx_backoff_looked(p, 65536, l.now_ns + RX_BACKOFF_NS + 1000);
	assert_true(rx_backoff_waits(p, l.now_ns + RX_BACKOFF_NS + 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_stream_that_pauses_make_faster_is_received_after_pauses),
		cmocka_unit_test(
			bytes_of_a_peer_that_waits_are_received_at_once),
		cmocka_unit_test(pauses_without_gain_are_dropped),
		cmocka_unit_test(a_peer_that_changes_is_followed),
		cmocka_unit_test(a_slow_flow_is_received_at_once),
		cmocka_unit_test(a_look_that_finds_nothing_ends_the_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
