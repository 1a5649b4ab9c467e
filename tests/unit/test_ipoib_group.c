/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/ipoib: the groups of an interface: packets to and from them, room for
 * them, and memberships that the subnet administration refuses. */
#include "ipoib_seen.h"

static void a_packet_to_a_group_has_the_mac_of_the_group(void **state)
{
	static const uint8_t v4[6] = {1, 0, 0x5e, 0x01, 2, 3};
	static const uint8_t v6[6] = {0x33, 0x33, 1, 2, 3, 4};
	const struct ipoib_from from = {.qpn = PEER,
					.lid = PEER_LID,
					.is_global = true,
					.sgid = {0xfe, 0x80, [15] = 2},
					.dgid = {0xff}};
	struct seen *s = *state;
	uint8_t p[60], mac[6];
	struct ip_v6 ip = {.next_header = 17,
			   .dst = {0xff, 2, [12] = 1, 2, 3, 4}};

	hwaddr_mac(&peer, mac);
	write_datagram(p, 0xef810203, sizeof(p));
	receive_packet(s, &from, TYPE_IPV4, p, sizeof(p));
	assert_memory_equal(s->frame, v4, 6);
	assert_memory_equal(s->frame + 6, mac, 6);
	ip_v6_write(p, &ip);
	receive_packet(s, &from, TYPE_IPV6, p, sizeof(p));
	assert_memory_equal(s->frame, v6, 6);
	write_datagram(p, 0x0a0000ff, sizeof(p));
	receive_packet(s, &from, TYPE_IPV4, p, sizeof(p));
	assert_int_equal(s->frame[0], 0xff);
}

static void
a_membership_report_makes_the_caller_look_at_its_groups(void **state)
{
	static const uint8_t group[6] = {1, 0, 0x5e, 0, 0, 22};
	static const uint8_t group6[6] = {0x33, 0x33, 0, 0, 0, 22};
	struct seen *s = *state;
	uint8_t p[60];
	struct ip_v6 ip = {.next_header = 0, .dst = {0xff, 2, [15] = 22}};

	write_datagram(p, 0xe0000016, sizeof(p));
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	assert_int_equal(s->looks, 0);
	p[9] = 2;
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	assert_int_equal(s->looks, 1);
	ip_v6_write(p, &ip);
	send_frame(s, group6, TYPE_IPV6, p, sizeof(p), 0);
	assert_int_equal(s->looks, 2);
}

static void a_group_nobody_has_joined_gets_no_packets(void **state)
{
	static const uint8_t group[6] = {1, 0, 0x5e, 1, 2, 3};
	struct seen *s = *state;
	uint32_t asked = s->questions;
	uint8_t p[60];

	write_datagram(p, 0xef010203, sizeof(p));
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	ipoib_turn(s->m, 0);
	assert_int_equal(s->questions, asked + 1);
	assert_int_equal(s->mad[SA_AT_RECORD + 48], SA_JOIN_SEND_ONLY);
	refuse_last(s, SA_COMPONENTS, 0);
	/* no question follows at once, and the user is not told */
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 1);
	ipoib_turn(s->m, 1);
	assert_int_equal(s->questions, asked + 1);
	assert_int_equal(s->sentences, 0);
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 1001);
	ipoib_turn(s->m, 1001);
	assert_int_equal(s->questions, asked + 2);
	answer_last(s, 1002);
	assert_int_equal(s->packets, 1);
	assert_int_equal(s->route.qpn, ROUTE_QPN_MULTICAST);
	assert_true(s->route.is_global);
}

static void senders_do_not_take_the_room_of_members(void **state)
{
	struct seen *s = *state;
	struct joined j = {0};
	uint8_t p[60], group[6] = {1, 0, 0x5e, 9};
	uint32_t groups = 0;

	for (uint32_t i = 0; i < 2 * GROUP_MAX; i++) {
		group[5] = (uint8_t)i;
		write_datagram(p, 0xe9000000 + i, sizeof(p));
		send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	}
	for (int i = 0; i < GROUP_MAX; i++)
		groups += s->m->groups.all[i].state != GROUP_FREE;
	assert_int_equal(groups, 1 + GROUP_MAX / 2);
	for (uint32_t i = 0; i < 2 * GROUP_MAX; i++)
		j.all[j.count++].ipv4 = 0xef000000 + i;
	ipoib_joined(s->m, &j, 0);
	ipoib_joined(s->m, &j, 0);
	assert_int_equal(s->sentences, 1);
	assert_non_null(strstr(s->text, "60 groups fit"));
}

static void groups_without_room_are_reported_each_time_they_come(void **state)
{
	struct seen *s = *state;
	struct joined many = {0}, one = {.count = 1};

	for (uint32_t i = 0; i < 2 * GROUP_MAX; i++)
		many.all[many.count++].ipv4 = 0xef000000 + i;
	one.all[0].ipv4 = 0xef000000;
	for (uint32_t i = 1; i <= 2; i++) {
		ipoib_joined(s->m, &many, 0);
		ipoib_joined(s->m, &many, 0);
		assert_int_equal(s->sentences, i);
		ipoib_joined(s->m, &one, 0);
	}
}

/* A program sends to a group, and another program joins the group. */
static void a_sender_that_may_not_become_a_member_still_sends(void **state)
{
	static const uint8_t group[6] = {1, 0, 0x5e, 1, 2, 3};
	struct joined j = {.count = 1, .all[0].ipv4 = 0xef010203};
	struct seen *s = *state;
	uint32_t asked, attached = s->attachments;
	uint8_t p[60];

	write_datagram(p, 0xef010203, sizeof(p));
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 0);
	assert_int_equal(s->packets, 1);
	ipoib_joined(s->m, &j, 1);
	ipoib_turn(s->m, 1);
	assert_int_equal(s->mad[SA_AT_RECORD + 48], SA_JOIN_FULL);
	refuse_last(s, SA_COMPONENTS, 1);
	assert_int_equal(s->sentences, 1);
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 2);
	assert_int_equal(s->packets, 2);
	/* the port asks again later, and receives nothing from the group until
	 * it may join */
	asked = s->questions;
	ipoib_turn(s->m, 2);
	assert_int_equal(s->questions, asked);
	assert_int_equal(s->attachments, attached);
	ipoib_turn(s->m, 2000);
	assert_int_equal(s->questions, asked + 1);
	answer_last(s, 2000);
	assert_int_equal(s->attachments, attached + 1);
}

static void an_attachment_that_fails_is_tried_again(void **state)
{
	struct seen *s = *state;
	struct joined j = {.count = 1, .all = {{.ipv4 = 0xef010203}}};
	uint64_t now_ms = 10;
	uint32_t before = s->attachments;

	announce_end(&s->m->announce); /* all later deadlines are the group's */
	s->is_full = true;
	ipoib_joined(s->m, &j, now_ms);
	ipoib_turn(s->m, now_ms);
	answer_last(s, now_ms);
	assert_int_equal(s->sentences, 1);
	assert_non_null(strstr(s->text, "ff12:401b:ffff:0:0:0:f01:203"));
	for (int i = 0; i < 3; i++) {
		ipoib_turn(s->m, now_ms);
		assert_uint_in_range(ipoib_deadline(s->m), now_ms + 1,
				     now_ms + 60000);
		now_ms = ipoib_deadline(s->m);
	}
	assert_int_equal(s->sentences, 1);
	s->is_full = false;
	ipoib_turn(s->m, now_ms);
	assert_int_equal(s->attachments, before + 1);
	ipoib_turn(s->m, now_ms);
	assert_true(ipoib_deadline(s->m) == IPOIB_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_packet_to_a_group_has_the_mac_of_the_group),
		CASE(a_membership_report_makes_the_caller_look_at_its_groups),
		CASE(a_group_nobody_has_joined_gets_no_packets),
		CASE(senders_do_not_take_the_room_of_members),
		CASE(groups_without_room_are_reported_each_time_they_come),
		CASE(a_sender_that_may_not_become_a_member_still_sends),
		CASE(an_attachment_that_fails_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
