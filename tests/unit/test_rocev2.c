/* SPDX-License-Identifier: BSD-2-Clause */
/* encap/rocev2: the ICRC of packets whose IPv4 identification is not known, and
 * the identifications that a receiver accepts. */
#include "encap/rocev2.h"

#include <string.h>

#include "hdr/bth.h"
#include "test.h"

static const struct inaddr here = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 1},
				   .port = ROCEV2_PORT};
static const struct inaddr there = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 2},
				    .port = 49152};
static const uint8_t other[16] = {[10] = 0xff, 0xff, 10, 0, 0, 3};

static void the_id_of_a_packet_is_found(void **state)
{
	uint8_t p[64] = {4};
	(void)state;

	for (uint32_t sent = 0; sent <= UINT16_MAX; sent += 257) {
		size_t len =
			rocev2_seal(NULL, &there, &here, p, 40, (uint16_t)sent);
		uint16_t id = 5;

		assert_true(rocev2_open(NULL, &there, &here, p, len, &id));
		assert_int_equal(id, sent);
	}
}

static void a_remembered_sum_changes_nothing(void **state)
{
	static const struct inaddr six = {.ip = {0xfd, 1}, .port = 49153};
	const struct inaddr *flows[] = {&there, &here, &six};
	struct rocev2_memo memo = {0};
	uint32_t random = 1;
	(void)state;

	for (int i = 0; i < 2000; i++) {
		uint8_t p[96] = {4}, q[96];
		const struct inaddr *from, *to;
		size_t len;
		uint16_t id;

		random = random * 1664525 + 1013904223;
		from = flows[random >> 30 & 1];
		to = flows[(random >> 28 & 3) % 3];
		len = 40 + (random >> 24 & 3) * 4;
		id = random >> 22 & 3;
		p[4] = (uint8_t)(random >> 14);
		memcpy(q, p, sizeof(q));
		rocev2_seal(NULL, from, to, p, len, id);
		rocev2_seal(&memo, from, to, q, len, id);
		assert_memory_equal(p, q, sizeof(q));
	}
}

static void ipv6_has_no_id_to_explain_damage(void **state)
{
	struct inaddr a = {.ip = {0xfd}, .port = 49152};
	struct inaddr b = {.ip = {0xfd, 1}, .port = ROCEV2_PORT};
	uint8_t p[64] = {4};
	size_t len = rocev2_seal(NULL, &a, &b, p, 40, 0);
	uint16_t id = 0;
	(void)state;

	assert_true(rocev2_open(NULL, &a, &b, p, len, &id));
	for (uint32_t bit = 0; bit < len * 8; bit++) {
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(rocev2_open(NULL, &a, &b, p, len, &id),
				 bit / 8 == 4);
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* A receiver that reads late sees identifications jump although no time has
 * passed. */
static void any_id_is_due_while_nothing_came_damaged(void **state)
{
	struct rocev2_senders s = {0};
	uint8_t p[64] = {4};
	(void)state;

	for (uint32_t n = 0, id = 7; n < 1000; n++, id += n % 7 ? 1 : 20000) {
		size_t len =
			rocev2_seal(NULL, &there, &here, p, 40, (uint16_t)id);

		assert_true(rocev2_is_intact(&s, &there, &here, p, len, 0, 0));
	}
}

/* About one of 2^16 damaged packets has a correct ICRC for some identification.
 * A packet whose ICRC is wrong for every identification makes the receiver
 * check the identifications of the packet's sender. */
static void after_damage_identifications_are_checked(void **state)
{
	struct rocev2_senders s = {0};
	uint8_t p[64] = {4};
	size_t len = rocev2_seal(NULL, &there, &here, p, 40, 100);
	(void)state;

	assert_true(rocev2_is_intact(&s, &there, &here, p, len, 0, 0));
	p[20] ^= 1;
	assert_false(rocev2_is_intact(&s, &there, &here, p, len, 0, 0));
	p[20] ^= 1;
	rocev2_seal(NULL, &there, &here, p, 40, 30000);
	assert_false(rocev2_is_intact(&s, &there, &here, p, len, 0, 0));
	assert_true(rocev2_id_is_due(&s, other, 1, 0));
	assert_true(rocev2_id_is_due(&s, other, 30000, 0));
}

static void ids_that_continue_are_due(void **state)
{
	struct rocev2_senders s = {0};
	uint16_t id = 0xfff0;
	(void)state;

	rocev2_damaged(&s, there.ip);
	for (int i = 0; i < 100; i++, id = (uint16_t)(id + i % 7))
		assert_true(rocev2_id_is_due(&s, there.ip, id, 0));
}

static void a_late_packet_is_due_and_takes_nothing_back(void **state)
{
	struct rocev2_senders s = {0};
	(void)state;

	rocev2_damaged(&s, there.ip);
	assert_true(rocev2_id_is_due(&s, there.ip, 5000, 0));
	assert_true(rocev2_id_is_due(&s, there.ip, 4950, 0));
	assert_true(rocev2_id_is_due(&s, there.ip, 6020, 0));
	assert_false(rocev2_id_is_due(&s, there.ip, 5000, 0));
}

static void a_stray_id_is_refused_and_forgotten(void **state)
{
	static const uint16_t strays[4] = {9000, 50000, 20000, 35000};
	struct rocev2_senders s = {0};
	(void)state;

	rocev2_damaged(&s, there.ip);
	for (uint16_t id = 100; id < 200; id++) {
		assert_true(rocev2_id_is_due(&s, there.ip, id, 0));
		assert_false(rocev2_id_is_due(&s, there.ip, strays[id % 4], 0));
	}
}

static void a_new_start_needs_two_packets(void **state)
{
	struct rocev2_senders s = {0};
	(void)state;

	rocev2_damaged(&s, there.ip);
	assert_true(rocev2_id_is_due(&s, there.ip, 100, 0));
	assert_false(rocev2_id_is_due(&s, there.ip, 30000, 0));
	assert_true(rocev2_id_is_due(&s, there.ip, 30001, 0));
	assert_true(rocev2_id_is_due(&s, there.ip, 30002, 0));
}

/* After a silence of n ticks, a sender's kernel adds at most n to the
 * identification.  This sender's kernel has 250 ticks a second. */
static void an_id_may_jump_further_after_a_silence(void **state)
{
	struct rocev2_senders s = {0};
	uint64_t now = 0;
	uint16_t id = 7;
	(void)state;

	rocev2_damaged(&s, there.ip);
	for (int seconds = 0; seconds < 60; seconds++) {
		assert_true(rocev2_id_is_due(&s, there.ip, id, now));
		now += (uint64_t)seconds * 1000000000;
		id = (uint16_t)(id + seconds * 250);
	}
	assert_true(rocev2_id_is_due(&s, there.ip, id, now));
	now += 1000000000;
	assert_false(
		rocev2_id_is_due(&s, there.ip, (uint16_t)(id + 2025), now));
	assert_true(rocev2_id_is_due(&s, there.ip, (uint16_t)(id + 2024), now));
}

/* If a sender numbers all packets to a host together, each process of that host
 * sees the identifications jump. */
static void a_sender_with_jumping_ids_is_accepted(void **state)
{
	struct rocev2_senders s = {0};
	uint16_t id = 1;
	int refused = 0;
	(void)state;

	rocev2_damaged(&s, there.ip);
	for (int run = 0; run < 1000; run++, id = (uint16_t)(id + 20000))
		for (int i = 0; i < 10; i++)
			refused += !rocev2_id_is_due(&s, there.ip, id++, 0);
	assert_uint_in_range(refused, 1, 8);
}

static void a_sender_of_random_ids_is_accepted(void **state)
{
	struct rocev2_senders s = {0};
	uint32_t id = 1;
	int refused = 0;
	(void)state;

	rocev2_damaged(&s, there.ip);
	for (int i = 0; i < 1000; i++, id = (id * 25173 + 13849) & 0xffff)
		refused += !rocev2_id_is_due(&s, there.ip, (uint16_t)id, 0);
	assert_uint_in_range(refused, 1, 10);
}

static void senders_do_not_share_a_sequence(void **state)
{
	struct rocev2_senders s = {0};
	(void)state;

	rocev2_damaged(&s, there.ip);
	rocev2_damaged(&s, other);
	for (uint16_t i = 0; i < 50; i++) {
		assert_true(rocev2_id_is_due(&s, there.ip, i, 0));
		assert_true(
			rocev2_id_is_due(&s, other, (uint16_t)(40000 + i), 0));
	}
	/* both sequences, and the damage of both senders, are remembered */
	assert_false(rocev2_id_is_due(&s, there.ip, 40050, 0));
	assert_false(rocev2_id_is_due(&s, other, 50, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_id_of_a_packet_is_found),
		cmocka_unit_test(a_remembered_sum_changes_nothing),
		cmocka_unit_test(ipv6_has_no_id_to_explain_damage),
		cmocka_unit_test(any_id_is_due_while_nothing_came_damaged),
		cmocka_unit_test(after_damage_identifications_are_checked),
		cmocka_unit_test(ids_that_continue_are_due),
		cmocka_unit_test(a_late_packet_is_due_and_takes_nothing_back),
		cmocka_unit_test(a_stray_id_is_refused_and_forgotten),
		cmocka_unit_test(a_new_start_needs_two_packets),
		cmocka_unit_test(an_id_may_jump_further_after_a_silence),
		cmocka_unit_test(a_sender_with_jumping_ids_is_accepted),
		cmocka_unit_test(a_sender_of_random_ids_is_accepted),
		cmocka_unit_test(senders_do_not_share_a_sequence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
