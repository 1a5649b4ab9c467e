/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/data: the ends of programs, which may read slowly, stop or close;
 * their numbers; and what a capture sees of their packets. */
#include "data_world.h"

enum {
	BUFFER = 64, /* blocks of an input buffer, for tests */
	FIT = 32,    /* packets of 2 blocks in a buffer */
	LINKS = 4,   /* from A to B */
};

/* While B does not fetch, the buffers fill, the sender waits, and no packet is
 * lost. */
static void a_sender_waits_for_a_receiver_that_is_slow(void **state)
{
	struct world *w = *state;
	int sent = 0;

	w->f->data.buffer_blocks = BUFFER;
	while (data_may_send(w->a)) {
		assert_int_equal(send_mark(w, w->b, LID_B, (uint8_t)sent), 0);
		sent++;
	}
	assert_int_equal(sent, LINKS * FIT + DATA_UNSENT);
	assert_null(data_resumed(w->f));
	for (int i = 0; i < sent; i++) {
		assert_int_equal(fetch_mark(w->b), i & 0xff);
		fabric_turn(w->f, w->now_ms);
		if (i + 1 < DATA_UNSENT / 2)
			assert_null(data_resumed(w->f));
	}
	assert_ptr_equal(data_resumed(w->f), w->a);
	assert_null(data_resumed(w->f));
	assert_true(data_may_send(w->a));
	assert_int_equal(w->f->data.multicasts, 0);
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards, 0);
}

/* data_gather returns packets in order, limited in number and in bytes, and at
 * least one packet. */
static void several_packets_are_fetched_at_once(void **state)
{
	struct world *w = *state;
	struct data_part parts[8];

	assert_int_equal(data_gather(w->b, parts, 8, 8 * BYTES), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(send_mark(w, w->b, LID_B, (uint8_t)i), 0);
	assert_int_equal(data_gather(w->b, parts, 2, 8 * BYTES), 2);
	assert_int_equal(data_gather(w->b, parts, 8, 1), 1);
	assert_int_equal(data_gather(w->b, parts, 8, 3 * BYTES + 1), 3);
	assert_int_equal(data_gather(w->b, parts, 8, 8 * BYTES), 5);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(parts[i].n, BYTES);
		assert_true(lrh_is_intact(parts[i].bytes, parts[i].n));
		assert_int_equal(fetch_mark(w->b), i);
	}
	assert_int_equal(data_gather(w->b, parts, 8, 8 * BYTES), 0);
}

/* A packet for a program that has ended does not count against its sender. */
static void a_deaf_end_receives_nothing_and_sends(void **state)
{
	struct world *w = *state;

	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	data_deafen(w->b);
	assert_null(data_ready(w->f));
	for (int i = 0; i < 2 * DATA_UNSENT; i++)
		assert_int_equal(send_mark(w, w->b, LID_B, 2), 0);
	assert_true(data_may_send(w->a));
	assert_null(data_ready(w->f));
	data_deafen(w->a);
	assert_int_equal(send_mark(w, w->b, LID_B, 3), 0);
}

/* The receiver fetches one packet every 200 ms, and HOQLife is 268 ms.  The
 * last packet waits for seconds, but is at the head of the queue for only 200
 * ms. */
static void a_receiver_that_reads_slowly_loses_nothing(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 20; i++)
		assert_int_equal(send_mark(w, w->b, LID_B, (uint8_t)i), 0);
	for (int i = 0; i < 20; i++) {
		w->now_ms += 200;
		fabric_turn(w->f, w->now_ms);
		assert_int_equal(fetch_mark(w->b), i);
	}
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards, 0);
}

/* A packet that is lost does not count as fetched: the next one, which came at
 * the same time, does not wait longer than HOQLife. */
static void a_lost_packet_extends_no_wait(void **state)
{
	struct world *w = *state;
	size_t n;

	for (int i = 0; i < 2; i++)
		assert_int_equal(send_mark(w, w->b, LID_B, (uint8_t)i), 0);
	w->now_ms += 200;
	fabric_turn(w->f, w->now_ms);
	assert_non_null(data_fetch(w->b, &n));
	data_lost(w->b);
	w->now_ms += 200;
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards, 2);
}

/* Many programs of a host join a group, and do not read.  No buffer is full. */
static void copies_for_many_receivers_are_bounded(void **state)
{
	enum { RECEIVERS = 300 };
	struct world *w = *state;
	struct made m;
	int err;

	for (int i = 0; i < RECEIVERS; i++) {
		struct data_end *end =
			data_open(fabric_find(w->f, "B"), 1, NULL, &err);

		assert_non_null(end);
		assert_int_equal(data_join(end, group), 0);
	}
	w->f->data.buffer_blocks = w->f->data.turn_blocks = UINT32_MAX / 2;
	make_multicast(&m, w);
	for (int i = 0; i < 2 * DATA_UNSENT && data_may_send(w->a); i++)
		assert_int_equal(send_made(w, &m), 0);
	assert_true(w->f->data.multicasts > DATA_MULTICASTS / 2);
	assert_true(w->f->data.multicasts <= DATA_MULTICASTS + DATA_UNSENT);
	assert_true(port_of(w, "S3", 2)->counters.tx_discards > 0);
	w->now_ms += 1000;
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(w->f->data.multicasts, 0);
	assert_true(data_may_send(w->a));
}

/* Two programs of host B and one of host C are members.  Only one program
 * fetches a packet in time. */
static void a_multicast_packet_counts_once_a_port_as_lost(void **state)
{
	struct world *w = *state;
	struct data_end *second;
	struct made m;
	int err;

	second = data_open(fabric_find(w->f, "B"), 1, NULL, &err);
	assert_non_null(second);
	assert_int_equal(data_join(w->b, group), 0);
	assert_int_equal(data_join(w->c, group), 0);
	assert_int_equal(data_join(second, group), 0);
	make_multicast(&m, w);
	assert_int_equal(send_made(w, &m), 0);
	assert_int_equal(send_made(w, &m), 0);
	/* the first packet, which one program fetches, is lost at the others */
	assert_true(fetch_mark(w->b) >= 0);
	w->now_ms += 1000;
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_int_equal(fetch_mark(second), -1);
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards, 2);
	assert_int_equal(port_of(w, "S1", 3)->counters.tx_discards, 2);
	assert_int_equal(w->f->data.multicasts, 0);
}

/* A member at the sender's port is paused.  When the first packet to this
 * member is lost, the member becomes stalled, so it loses the second packet at
 * once, before that packet leaves for B.  B does not fetch packets either. */
static void a_loss_at_the_senders_port_hides_none_at_another(void **state)
{
	struct world *w = *state;
	struct data_end *beside;
	struct made m;
	int err;

	beside = data_open(fabric_find(w->f, "A"), 1, NULL, &err);
	assert_non_null(beside);
	assert_int_equal(data_join(beside, group), 0);
	assert_int_equal(data_join(w->b, group), 0);
	data_pause(beside);
	make_multicast(&m, w);
	for (uint64_t lost = 1; lost <= 2; lost++) {
		assert_int_equal(send_made(w, &m), 0);
		w->now_ms += 1000;
		fabric_turn(w->f, w->now_ms);
		assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards,
				 lost);
	}
}

/* The port of a limited member does not count the packets that it sends to a
 * group as packets with a wrong P_Key. */
static void a_limited_member_violates_no_partition_by_sending(void **state)
{
	struct world *w = *state;
	struct port *port = port_of(w, "A", 1);
	struct made m;

	port->pkeys[0] = 0x7fff;
	assert_int_equal(data_join(w->a, group), 0);
	assert_int_equal(data_join(w->b, group), 0);
	make_multicast(&m, w);
	bth_put_pkey(m.bytes + LRH_BYTES + 40, 0x7fff);
	seal_packet(&m);
	assert_int_equal(send_made(w, &m), 0);
	assert_int_equal(fetch_mark(w->a), -1);
	assert_true(fetch_mark(w->b) >= 0);
	assert_int_equal(bytes_get16(port->info + AT_PKEY_VIOLATIONS), 0);
}

/* B does not read for longer than HOQLife.  The packets to B are discarded, and
 * the sender's packets to C arrive. */
static void a_receiver_that_has_stopped_does_not_stop_its_senders(void **state)
{
	struct world *w = *state;
	uint64_t due, sent = 0;

	w->f->data.buffer_blocks = BUFFER;
	data_pause(w->b);
	for (; data_may_send(w->a); sent++)
		assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_null(data_ready(w->f));
	due = fabric_deadline(w->f);
	assert_int_equal(due, w->now_ms + 269);
	fabric_turn(w->f, due - 1);
	assert_null(data_resumed(w->f));
	fabric_turn(w->f, due);
	assert_ptr_equal(data_resumed(w->f), w->a);
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards, sent);
	w->now_ms = due;
	assert_int_equal(send_mark(w, w->c, LID_C, 4), 0);
	assert_int_equal(fetch_mark(w->c), 4);
	assert_int_equal(send_mark(w, w->b, LID_B, 5), 0);
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards, sent + 1);
	data_unpause(w->b);
	assert_null(data_ready(w->f));
	assert_int_equal(send_mark(w, w->b, LID_B, 5), 0);
	assert_ptr_equal(data_ready(w->f), w->b);
	assert_int_equal(fetch_mark(w->b), 5);
}

static void ends_close_while_packets_are_on_their_way(void **state)
{
	struct world *w = *state;
	struct made m;

	make_unicast(&m, w->b, LID_B, 1);
	assert_int_equal(data_send(w->a, m.bytes, m.n), 0);
	data_close(w->a); /* the sender: its packet arrives */
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fetch_mark(w->b), 1);
	w->a = w->c;
	bytes_put16(m.bytes + 6, LID_C);
	seal_packet(&m);
	assert_int_equal(data_send(w->a, m.bytes, m.n), 0);
	data_close(w->b); /* the receiver: nobody gets the packet */
	fabric_turn(w->f, w->now_ms);
	assert_null(data_ready(w->f));
	assert_true(data_may_send(w->c));
}

static void a_host_gives_each_program_a_number_of_its_own(void **state)
{
	struct world *w = *state;
	struct node *b = fabric_find(w->f, "B");
	struct data_end *more[3];
	int err;

	for (int i = 0; i < 3; i++)
		more[i] = data_open(b, 1, NULL, &err);
	assert_int_equal(data_number(more[2]), 4);
	data_close(more[1]);
	more[1] = data_open(b, 1, NULL, &err);
	assert_int_equal(data_number(more[1]), 3);
	assert_int_equal(send_mark(w, more[1], LID_B, 9), 0);
	assert_int_equal(fetch_mark(more[1]), 9);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_null(data_open(b, 2, NULL, &err));
	assert_int_equal(err, -ENODEV);
	assert_null(data_open(fabric_find(w->f, "S1"), 1, NULL, &err));
	assert_int_equal(err, -ENODEV);
	for (err = 0; !err;)
		data_open(b, 1, NULL, &err);
	assert_int_equal(err, -EMFILE);
}

static struct fabric *two_port_fabric(void)
{
	static const char net_text[] =
		"Switch 4 \"S\"\n[1] \"H\"[1]\n[2] \"H\"[2]\n\n"
		"Hca 2 \"H\"\n[1] \"S\"[1]\n[2] \"S\"[2]\n";
	struct net_error error;
	struct fabric *f;
	struct net net;

	assert_int_equal(
		net_parse(net_text, sizeof(net_text) - 1, &net, &error), 0);
	f = fabric_new(&net);
	net_free(&net);
	assert_non_null(f);
	return f;
}

static void a_program_has_one_number_at_all_ports(void **state)
{
	struct fabric *f = two_port_fabric();
	struct node *h = fabric_find(f, "H");
	struct data_end *first, *second, *other;
	int err;

	other = data_open(h, 1, NULL, &err);
	first = data_open(h, 1, NULL, &err);
	second = data_open_beside(first, 2, h, &err);
	assert_non_null(second);
	assert_int_equal(data_number(first), 2);
	assert_int_equal(data_number(second), 2);
	assert_ptr_equal(data_owner(second), h);
	assert_ptr_equal(data_node(second), h);
	assert_null(data_open_beside(first, 2, NULL, &err));
	assert_int_equal(err, -EBUSY);
	assert_null(data_open_beside(first, 3, NULL, &err));
	assert_int_equal(err, -ENODEV);
	assert_null(data_open_beside(first, 0, NULL, &err));
	assert_int_equal(err, -ENODEV);
	/* the number stays taken as long as one of the ends has it */
	data_close(first);
	data_close(other);
	assert_int_equal(data_number(data_open(h, 1, NULL, &err)), 1);
	assert_int_equal(data_number(data_open(h, 1, NULL, &err)), 3);
	fabric_free(f);
}

/* The headers and the QPN of the last packet that note_seen got, and how many
 * packets that function got. */
struct seen {
	struct iblink h;
	uint32_t count;
	uint32_t qpn;
};

static void note_seen(void *arg, const uint8_t *p, size_t n)
{
	struct iblink_inner inner;
	struct seen *s = arg;
	struct bth bth;

	assert_true(lrh_is_intact(p, n));
	assert_true(iblink_open(p, n, &s->h, &inner));
	assert_true(bth_parse(inner.bth, inner.bytes, &bth));
	s->qpn = bth.dest_qpn;
	s->count++;
}

/* The fabric keeps no headers of a management datagram.  It shows the datagram
 * with headers that it makes: for QP 0 on VL 15, or for QP 1. */
static void each_packet_is_seen_once_as_it_leaves_its_first_port(void **state)
{
	struct world *w = *state;
	struct fabric_agent asked = {.mgmt_class = 0x01, .class_version = 1};
	uint8_t umad[FABRIC_UMAD_BYTES + 256] = {0};
	uint8_t *mad = umad + FABRIC_UMAD_BYTES;
	struct seen seen = {0};
	struct end *end;
	int err;

	fabric_watch(w->f, note_seen, &seen);
	end = fabric_open(fabric_find(w->f, "A"), 1, NULL, &err);
	assert_non_null(end);
	for (uint32_t qpn = 0; qpn < 2; qpn++) {
		asked.mgmt_class = qpn ? 0x04 : 0x01;
		umad[0] = (uint8_t)fabric_register(end, &asked);
		bytes_put32(umad + 20, qpn);
		bytes_put32(umad + 24, qpn ? 0x80010000 : 0);
		bytes_put16(umad + 28, LID_B);
		umad[30] = 3;		 /* SL */
		umad[32] = (uint8_t)qpn; /* with a GRH */
		mad[0] = mad[2] = 1;
		mad[1] = asked.mgmt_class;
		mad[3] = 5; /* a Trap, which nobody answers */
		assert_int_equal(fabric_send(end, umad, sizeof(umad)), 0);
		fabric_turn(w->f, w->now_ms);
		assert_int_equal(seen.count, qpn + 1);
		assert_int_equal(seen.qpn, qpn);
		assert_int_equal(seen.h.lrh.vl, qpn ? 0 : 15);
		assert_int_equal(seen.h.lrh.sl, 3);
		assert_int_equal(seen.h.lrh.dlid, LID_B);
		assert_int_equal(seen.h.lrh.slid, LID_A);
		assert_int_equal(seen.h.lrh.lnh,
				 qpn ? LRH_NEXT_GLOBAL : LRH_NEXT_LOCAL);
	}
	fabric_watch(w->f, NULL, NULL);
	assert_int_equal(fabric_send(end, umad, sizeof(umad)), 0);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(seen.count, 2);
}

/* A data end's packet is seen with the VL of the first link. */
static void a_data_packet_is_seen_with_its_vl(void **state)
{
	struct iblink h = {.lrh = {.lnh = LRH_NEXT_LOCAL,
				   .sl = 1,
				   .dlid = LID_B,
				   .slid = LID_A}};
	uint8_t p[LRH_FRAME_MAX], inner[BTH_BYTES + 8 + IBLINK_TAIL_BYTES];
	struct bth bth = {.opcode = SEND_ONLY, .pkey = 0xffff};
	struct world *w = *state;
	struct seen seen = {0};
	size_t head, n;

	fabric_watch(w->f, note_seen, &seen);
	port_of(w, "A", 1)->slvl[0][0] = 0x06; /* SL 1 on VL 6 */
	bth.dest_qpn = qpn_of(w->b);
	bth_write(inner, &bth);
	memset(inner + BTH_BYTES, 1, 8);
	head = iblink_write(p, &h, BTH_BYTES + 8);
	n = iblink_seal(p, head, inner, BTH_BYTES + 8);
	memcpy(p + head, inner, n);
	assert_int_equal(data_send(w->a, p, head + n), 0);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.h.lrh.vl, 6);
	assert_int_equal(seen.qpn, qpn_of(w->b));
}

/* The number of packets that wait to leave the ports of closed senders is
 * bounded. */
static void senders_that_come_and_go_do_not_fill_the_memory(void **state)
{
	struct world *w = *state;
	struct node *a = fabric_find(w->f, "A");
	int sent = 0, err = 0;

	w->f->data.buffer_blocks = BUFFER;
	data_pause(w->b);
	for (;;) {
		data_close(w->a);
		w->a = data_open(a, 1, NULL, &err);
		if (!w->a)
			break;
		for (int i = 0; i < DATA_UNSENT; i++, sent++)
			assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	}
	assert_int_equal(err, -EMFILE);
	/* the packets of the first sender fill the buffers on the way */
	assert_int_equal(sent, LINKS * FIT + 65536 + DATA_UNSENT / 2);
	for (int i = 0; i <= DATA_UNSENT / 2; i++) {
		assert_null(data_open(a, 1, NULL, &err));
		assert_int_equal(fetch_mark(w->b), 1);
		fabric_turn(w->f, w->now_ms);
	}
	w->a = data_open(a, 1, NULL, &err);
	assert_non_null(w->a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sender_waits_for_a_receiver_that_is_slow),
		TEST(several_packets_are_fetched_at_once),
		TEST(a_deaf_end_receives_nothing_and_sends),
		TEST(a_receiver_that_reads_slowly_loses_nothing),
		TEST(a_lost_packet_extends_no_wait),
		TEST(copies_for_many_receivers_are_bounded),
		TEST(a_multicast_packet_counts_once_a_port_as_lost),
		TEST(a_loss_at_the_senders_port_hides_none_at_another),
		TEST(a_limited_member_violates_no_partition_by_sending),
		TEST(a_receiver_that_has_stopped_does_not_stop_its_senders),
		TEST(ends_close_while_packets_are_on_their_way),
		TEST(each_packet_is_seen_once_as_it_leaves_its_first_port),
		TEST(a_data_packet_is_seen_with_its_vl),
		TEST(senders_that_come_and_go_do_not_fill_the_memory),
		TEST(a_host_gives_each_program_a_number_of_its_own),
		TEST(a_program_has_one_number_at_all_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
