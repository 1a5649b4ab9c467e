/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/ipoib: neighbours, paths, the state of the interface, and hostile
 * input. */
#include "ipoib_seen.h"

static void an_arp_request_makes_a_neighbour(void **state)
{
	struct seen *s = *state;
	uint8_t mac[6], datagram[100];
	struct arp arp;

	learn_peer(s, mac);
	assert_int_equal(s->frame_bytes, ETHERNET + ARP_MAC_BYTES);
	assert_memory_equal(s->frame, s->link.mac, 6);
	assert_memory_equal(s->frame + 6, mac, 6);
	assert_true(arp_parse_mac(s->frame + ETHERNET, ARP_MAC_BYTES, &arp));
	assert_memory_equal(arp.sender, mac, 6);
	write_datagram(datagram, 0x0a000002, sizeof(datagram));
	for (int i = 0; i < WAITING_MAX + 2; i++)
		send_frame(s, mac, TYPE_IPV4, datagram, sizeof(datagram), 0);
	assert_int_equal(s->packets, 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 1);
	/* the packets that came first were dropped */
	assert_int_equal(s->packets, WAITING_MAX);
	assert_int_equal(ipoib_counters(s->m)->waited, 2);
	assert_int_equal(s->route.lid, PEER_LID);
	assert_int_equal(s->route.qpn, PEER);
	assert_int_equal(s->packet_bytes,
			 IPOIB_HEADER_BYTES + sizeof(datagram));
	assert_int_equal(bytes_get32(s->packet), TYPE_IPV4 << 16);
	assert_memory_equal(s->packet + 4, datagram, sizeof(datagram));
}

static void an_arp_reply_has_the_addresses_of_both(void **state)
{
	struct seen *s = *state;
	uint8_t p[ARP_MAC_BYTES], mac[6];
	struct arp arp = {.operation = 2};
	struct hwaddr a;

	learn_peer(s, mac);
	memcpy(arp.sender, s->link.mac, 6);
	memcpy(arp.target, mac, 6);
	arp_write_mac(p, &arp);
	send_frame(s, mac, TYPE_ARP, p, sizeof(p), 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 1);
	assert_int_equal(s->packets, 1);
	assert_true(arp_parse_hwaddr(s->packet + 4, ARP_HWADDR_BYTES, &arp));
	assert_true(hwaddr_parse(arp.target, &a) && hwaddr_is_equal(&a, &peer));
	assert_true(hwaddr_parse(arp.sender, &a));
	assert_int_equal(a.qpn, QPN);
	assert_memory_equal(a.gid, gid, 16);
}

static void frames_that_cannot_be_sent_are_dropped(void **state)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t nobody[6] = {2, 1, 2, 3, 4, 5};
	struct seen *s = *state;
	uint8_t payload[MTU + 1] = {0x45};

	send_frame(s, all, TYPE_IPV4, payload, MTU, 0);
	assert_int_equal(s->packets, 1);
	send_frame(s, all, TYPE_IPV4, payload, MTU + 1, 0);
	send_frame(s, all, 0x8100, payload, 60, 0); /* a VLAN */
	send_frame(s, nobody, TYPE_IPV4, payload, 60, 0);
	s->link.mac[5] ^= 1; /* from another interface, as through a bridge */
	send_frame(s, all, TYPE_IPV4, payload, 60, 0);
	assert_int_equal(s->packets, 1);
	assert_int_equal(ipoib_counters(s->m)->bad, 3);
	assert_int_equal(ipoib_counters(s->m)->unknown, 1);
}

static void own_packets_do_not_come_back(void **state)
{
	const struct ipoib_from self = {.qpn = QPN, .lid = LID};
	struct seen *s = *state;
	uint8_t datagram[60];

	write_datagram(datagram, 0x0a0000ff, sizeof(datagram));
	receive_packet(s, &self, TYPE_IPV4, datagram, sizeof(datagram));
	assert_int_equal(s->frames, 0);
	receive_packet(s, &from_peer, TYPE_IPV4, datagram, sizeof(datagram));
	assert_int_equal(s->frames, 1);
	assert_memory_equal(s->frame + ETHERNET, datagram, sizeof(datagram));
}

static void two_interfaces_with_one_mac_are_reported(void **state)
{
	struct seen *s = *state;
	uint8_t mac[6], p[ARP_HWADDR_BYTES];
	struct arp arp = {.operation = 1};
	struct hwaddr other = peer;
	struct neigh *n;
	uint32_t frames;

	learn_peer(s, mac);
	/* Now another address has this MAC, as if two addresses had the same
	 * hash. */
	n = neigh_find(&s->m->neighs, mac);
	n->address.qpn++;
	frames = s->frames;
	hwaddr_write(arp.sender, &other);
	arp_write_hwaddr(p, &arp);
	receive_packet(s, &from_peer, TYPE_ARP, p, sizeof(p));
	receive_packet(s, &from_peer, TYPE_ARP, p, sizeof(p));
	assert_int_equal(s->frames, frames);
	assert_int_equal(s->sentences, 1);
	assert_non_null(strstr(s->text, "the same MAC"));
}

static void the_neighbours_are_bounded(void **state)
{
	struct seen *s = *state;
	uint8_t p[ARP_HWADDR_BYTES];
	struct arp arp = {.operation = 1};
	struct hwaddr a = peer;

	for (uint32_t i = 0; i < NEIGH_MAX + 100; i++) {
		a.qpn = 1000 + i;
		hwaddr_write(arp.sender, &a);
		arp_write_hwaddr(p, &arp);
		receive_packet(s, &from_peer, TYPE_ARP, p, sizeof(p));
	}
	assert_int_equal(s->frames, NEIGH_MAX + 100);
	assert_int_equal(s->m->neighs.count, NEIGH_MAX);
}

/* Each reason why an interface is down is reported once. */
static void the_user_is_told_why_the_interface_is_down(void **state)
{
	static const char *const want[] = {
		"port is not active", "no full member", "no subnet manager"};
	struct seen *s = *state;

	for (int i = 0; i < 3; i++) {
		struct ipoib_port port = good_port();

		port.is_active = i != 0;
		port.has_pkey = i != 1;
		port.sm_lid = i != 2;
		ipoib_port(s->m, &port, 0);
		ipoib_port(s->m, &port, 0);
		assert_int_equal(s->sentences, i + 1);
		assert_non_null(strstr(s->text, want[i]));
		assert_false(s->link.is_up);
		assert_true(ipoib_deadline(s->m) == IPOIB_NEVER ||
			    (ipoib_turn(s->m, 0),
			     ipoib_deadline(s->m) == IPOIB_NEVER));
	}
}

static void a_missing_broadcast_group_is_reported_and_asked_for(void **state)
{
	struct seen *s = *state;
	struct ipoib_port port = good_port();
	uint64_t now_ms = 0;

	port.pkey = 0x8001;
	ipoib_port(s->m, &port, 0);
	for (int i = 0; i < 3; i++) {
		uint32_t asked = s->questions;

		now_ms = ipoib_deadline(s->m);
		ipoib_turn(s->m, now_ms);
		assert_int_equal(s->questions, asked + 1);
		refuse_last(s, SA_COMPONENTS, now_ms);
		ipoib_turn(s->m, now_ms);
		assert_true(ipoib_deadline(s->m) > now_ms);
		assert_int_equal(s->sentences, 1);
		assert_non_null(
			strstr(s->text, "ff12:401b:8001:0:0:0:ffff:ffff"));
	}
	/* no answer at all is another reason */
	now_ms = ipoib_deadline(s->m);
	for (int i = 0; i <= ASK_TRIES; i++, now_ms += ASK_TRY_MS)
		ipoib_turn(s->m, now_ms);
	assert_int_equal(s->sentences, 2);
	assert_non_null(strstr(s->text, "does not answer"));
	now_ms = ipoib_deadline(s->m);
	ipoib_turn(s->m, now_ms);
	answer_last(s, now_ms);
	assert_true(s->link.is_up);
	assert_int_equal(s->sentences, 3);
}

/* A port may carry less than the broadcast group says. */
static void the_port_bounds_the_mtu(void **state)
{
	struct seen *s = *state;
	struct ipoib_port port = good_port();
	uint8_t payload[MTU] = {0x45};
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	port.mtu = 3;
	ipoib_port(s->m, &port, 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 0);
	assert_int_equal(s->link.mtu, 1024 - IPOIB_HEADER_BYTES);
	send_frame(s, all, TYPE_IPV4, payload, 1020, 0);
	assert_int_equal(s->packets, 1);
	send_frame(s, all, TYPE_IPV4, payload, 1021, 0);
	assert_int_equal(s->packets, 1);
}

static void addresses_are_announced_to_all_hosts(void **state)
{
	static const uint8_t ip[4] = {10, 0, 0, 1};
	struct seen *s = *state;
	struct hwaddr a;
	struct arp arp;

	s->addresses[s->address_count++] =
		(struct announce_address){.ip = {10, 0, 0, 1}};
	assert_int_equal(ipoib_deadline(s->m), 0);
	ipoib_turn(s->m, 0);
	assert_int_equal(s->packets, 1);
	assert_int_equal(s->route.qpn, ROUTE_QPN_MULTICAST);
	assert_true(arp_parse_hwaddr(s->packet + 4, ARP_HWADDR_BYTES, &arp));
	assert_int_equal(arp.operation, 1);
	assert_memory_equal(arp.sender_ip, ip, 4);
	assert_memory_equal(arp.target_ip, ip, 4);
	assert_true(hwaddr_parse(arp.sender, &a));
	assert_int_equal(a.qpn, QPN);
	/* IPv6, whose group must be joined first */
	s->addresses[0] =
		(struct announce_address){.is_v6 = true, .ip = {0xfd}};
	ipoib_turn(s->m, ipoib_deadline(s->m));
	assert_int_equal(s->packets, 1);
	answer_last(s, 1000);
	assert_int_equal(s->packets, 2);
	assert_int_equal(bytes_get16(s->packet), TYPE_IPV6);
}

/* Announcements are repeated, because the first ones may be lost.  No
 * announcement is repeated once the interface is down. */
static void announcements_end_with_the_interface(void **state)
{
	struct seen *s = *state;
	struct ipoib_port port = good_port();

	s->addresses[s->address_count++] =
		(struct announce_address){.ip = {10, 0, 0, 1}};
	ipoib_turn(s->m, 0);
	ipoib_turn(s->m, 1000);
	assert_int_equal(s->packets, 2);
	port.is_active = false;
	ipoib_port(s->m, &port, 1000);
	ipoib_turn(s->m, 60000);
	assert_int_equal(s->packets, 2);
	/* the announcements begin again with the interface */
	port = good_port();
	ipoib_port(s->m, &port, 70000);
	ipoib_turn(s->m, 70000);
	answer_last(s, 70000);
	while (ipoib_deadline(s->m) != IPOIB_NEVER)
		ipoib_turn(s->m, ipoib_deadline(s->m));
	assert_uint_in_range(s->packets, 2 + 3, 2 + 10);
	ipoib_leave(s->m, 70000);
}

/* Neighbours that announce themselves and are never used push out no neighbour
 * in use. */
static void a_neighbour_in_use_is_kept(void **state)
{
	struct seen *s = *state;
	uint8_t p[ARP_HWADDR_BYTES], datagram[60], mac[6];
	struct arp arp = {.operation = 1};
	struct hwaddr a = peer;

	learn_peer(s, mac);
	write_datagram(datagram, 0x0a000002, sizeof(datagram));
	send_frame(s, mac, TYPE_IPV4, datagram, sizeof(datagram), 1);
	for (uint32_t i = 0; i < 2 * NEIGH_MAX; i++) {
		a.qpn = 1000 + i;
		hwaddr_write(arp.sender, &a);
		arp_write_hwaddr(p, &arp);
		receive_packet_at(s, &from_peer, TYPE_ARP, p, sizeof(p), 10);
	}
	assert_int_equal(s->m->neighs.count, NEIGH_MAX);
	assert_non_null(neigh_find(&s->m->neighs, mac));
}

/* Gives the interface an ARP request of an address, and the kernel's reply. */
static void answer_request(struct seen *s, const struct hwaddr *a,
			   uint64_t now_ms)
{
	uint8_t p[ARP_HWADDR_BYTES];
	struct arp arp = {.operation = 1};

	hwaddr_write(arp.sender, a);
	arp_write_hwaddr(p, &arp);
	receive_packet_at(s, &from_peer, TYPE_ARP, p, sizeof(p), now_ms);
	arp = (struct arp){.operation = 2};
	memcpy(arp.sender, s->link.mac, 6);
	hwaddr_mac(a, arp.target);
	arp_write_mac(p, &arp);
	send_frame(s, arp.target, TYPE_ARP, p, ARP_MAC_BYTES, now_ms);
}

/* Makes `peer` a neighbour to which a packet was sent, and writes the
 * neighbour's MAC to mac. */
static void begin_with_peer(struct seen *s, uint8_t mac[6])
{
	hwaddr_mac(&peer, mac);
	answer_request(s, &peer, 1);
	ipoib_turn(s->m, 1);
	answer_last(s, 1);
}

/* Replies to GIDs that nobody has make no neighbours in use, since they are not
 * sent. */
static void replies_to_invented_gids_keep_a_neighbour(void **state)
{
	struct seen *s = *state;
	struct hwaddr a = peer;
	uint8_t mac[6];

	begin_with_peer(s, mac);
	assert_int_equal(s->packets, 1);
	for (uint32_t i = 0; i < 2 * NEIGH_MAX; i++) {
		bytes_put32(a.gid + 8, 1 + i);
		answer_request(s, &a, 10);
		ipoib_turn(s->m, 10);
		refuse_last(s, SA_NO_RECORDS, 10);
	}
	assert_int_equal(s->m->neighs.count, NEIGH_MAX);
	assert_int_equal(s->packets, 1);
	assert_non_null(neigh_find(&s->m->neighs, mac));
}

/* Replies to QPNs that nobody has are sent if the GID exists.  Once the table
 * is full, they replace only neighbours with this GID. */
static void replies_to_invented_qpns_keep_other_ports(void **state)
{
	struct seen *s = *state;
	struct hwaddr a = peer;
	uint8_t mac[6];

	begin_with_peer(s, mac);
	a.gid[15]++;
	for (uint32_t i = 0; i < NEIGH_MAX + 100; i++) {
		a.qpn = 1000 + i;
		answer_request(s, &a, 10);
		ipoib_turn(s->m, 10);
		answer_last(s, 10);
	}
	assert_int_equal(s->packets, 1 + NEIGH_MAX + 100);
	assert_int_equal(s->m->neighs.count, NEIGH_MAX);
	assert_non_null(neigh_find(&s->m->neighs, mac));
}

/* The paths to neighbours beyond the bound of open questions are asked for when
 * the first questions have failed. */
static void paths_that_fail_make_room_for_others(void **state)
{
	enum { MANY = 40 };
	struct seen *s = *state;
	uint8_t p[ARP_HWADDR_BYTES], datagram[60], mac[6];
	struct arp arp = {.operation = 1};
	struct hwaddr a = peer;
	struct neigh *n = NULL;
	uint32_t asked = s->questions;

	write_datagram(datagram, 0x0a000002, sizeof(datagram));
	for (uint32_t i = 0; i < MANY; i++) {
		a.qpn = 1000 + i;
		hwaddr_write(arp.sender, &a);
		arp_write_hwaddr(p, &arp);
		receive_packet(s, &from_peer, TYPE_ARP, p, sizeof(p));
		hwaddr_mac(&a, mac);
		send_frame(s, mac, TYPE_IPV4, datagram, sizeof(datagram), 0);
	}
	for (int i = 0; i < 1000 && s->questions < asked + MANY * ASK_TRIES &&
			ipoib_deadline(s->m) != IPOIB_NEVER;
	     i++)
		ipoib_turn(s->m, ipoib_deadline(s->m));
	assert_int_equal(s->questions, asked + MANY * ASK_TRIES);
	while ((n = neigh_next(&s->m->neighs, n)))
		assert_int_equal(n->ask.tries, ASK_TRIES);
}

/* A renewal of the membership without an answer leaves the interface up.  Three
 * such renewals in a row take the interface down, and a refused renewal does so
 * at once. */
static void renewals_without_an_answer_are_repeated(void **state)
{
	struct seen *s = *state;
	uint32_t asked = s->questions;
	uint64_t now_ms = 100;

	ipoib_reregister(s->m, now_ms);
	for (int i = 0; i < ASK_TRIES; i++, now_ms += ASK_TRY_MS)
		ipoib_turn(s->m, now_ms);
	ipoib_turn(s->m, now_ms);
	assert_true(s->link.is_up);
	assert_int_equal(s->questions, asked + ASK_TRIES);
	for (int i = 0; i < 3 * ASK_TRIES && s->link.is_up; i++) {
		now_ms = ipoib_deadline(s->m);
		ipoib_turn(s->m, now_ms);
	}
	assert_false(s->link.is_up);
	assert_non_null(strstr(s->text, "does not answer"));
	/* a refusal takes the interface down at once */
	ipoib_turn(s->m, ipoib_deadline(s->m));
	answer_last(s, now_ms);
	assert_true(s->link.is_up);
	ipoib_reregister(s->m, now_ms);
	ipoib_turn(s->m, now_ms);
	refuse_last(s, SA_COMPONENTS, now_ms);
	assert_false(s->link.is_up);
}

/* Fills a block with random bytes.  Some blocks begin as an IP packet does, and
 * some go on as a message of neighbour discovery. */
static void fill_block(struct rng *r, uint8_t *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)rng_u32(r);
	if (bytes && rng_below(r, 2))
		p[0] = rng_below(r, 2) ? 0x60 : 0x45;
	if (bytes > 40 && rng_below(r, 2)) {
		p[6] = 58;
		p[7] = 255;
		p[40] = (uint8_t)(133 + rng_below(r, 5));
	}
}

static void hostile_frames_and_packets_do_no_harm(void **state)
{
	static const uint16_t types[] = {TYPE_IPV4, TYPE_ARP, TYPE_IPV6};
	struct seen *s = *state;
	struct rng r;

	rng_init(&r, 7);
	for (size_t n = 0; n < 2200; n++)
		for (int k = 0; k < 9; k++) {
			struct ipoib_from from = {.qpn = rng_u32(&r) & 0xffffff,
						  .lid = (uint16_t)k,
						  .is_global = k & 1};
			uint8_t p[2200], to[6] = {0};

			fill_block(&r, p, n);
			memcpy(to, p, n < 6 ? n : 6);
			from.dgid[0] = k & 2 ? 0xff : 0xfe;
			send_frame(s, to, types[k % 3], p, n, n);
			receive_packet(s, &from, types[k % 3], p, n);
			ipoib_answer(s->m, p, n, n);
			ipoib_turn(s->m, n);
		}
	for (size_t n = 0; n < 20; n++) {
		uint8_t *p = calloc(1, IPOIB_HEADROOM + n);

		ipoib_frame(s->m, p, n, 0);
		ipoib_packet(s->m, &from_peer, p + IPOIB_HEADROOM, n, 0);
		free(p);
	}
	assert_true(s->link.is_up);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_arp_request_makes_a_neighbour),
		CASE(an_arp_reply_has_the_addresses_of_both),
		CASE(frames_that_cannot_be_sent_are_dropped),
		CASE(own_packets_do_not_come_back),
		CASE(two_interfaces_with_one_mac_are_reported),
		CASE(the_neighbours_are_bounded),
		CASE(the_user_is_told_why_the_interface_is_down),
		CASE(a_missing_broadcast_group_is_reported_and_asked_for),
		CASE(the_port_bounds_the_mtu),
		CASE(addresses_are_announced_to_all_hosts),
		CASE(announcements_end_with_the_interface),
		CASE(a_neighbour_in_use_is_kept),
		CASE(replies_to_invented_gids_keep_a_neighbour),
		CASE(replies_to_invented_qpns_keep_other_ports),
		CASE(paths_that_fail_make_room_for_others),
		CASE(renewals_without_an_answer_are_repeated),
		CASE(hostile_frames_and_packets_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
