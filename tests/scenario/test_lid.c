/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs by LID, over three switches of a subnet: the fields of a
 * datagram's completion, multicast, and which packets reach a connection. */
#include "test.h"

#include <string.h>

#include "encap/iblink.h"
#include "encap/rocev2.h"
#include "engine/suspect.h"
#include "fabric/fabric.h"
#include "fabric/inside.h"
#include "hdr/aeth.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

#define GRH  40
#define AT   500000u
#define MARK 0x5a

static const uint8_t group[16] = {0xff, 0x12, 0x40, 0x1b, [15] = 9};

/* Prepares a datagram of side 0, and posts a receive for the datagram.  Returns
 * the datagram's destination, which the caller may change. */
static struct wq_to *prepare_datagram(struct two_hcas *d, uint32_t bytes)
{
	struct wqe *w;

	memset(d->side[1].memory.bytes + AT, MARK, GRH + bytes);
	two_hcas_recv(d, 1, AT, GRH + bytes);
	two_hcas_fill(d, 0, 0, bytes);
	w = two_hcas_send(d, 0, HCA_WR_SEND, 0, bytes, 0);
	return wq_to(&d->side[0].qp->sq, w);
}

static void post_and_run(struct two_hcas *d)
{
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
}

static struct cqe take_datagram(struct two_hcas *d, uint32_t bytes)
{
	const uint8_t *p = d->side[1].memory.bytes + AT;
	struct cqe c;

	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_int_equal(c.byte_len, GRH + bytes);
	assert_int_equal(c.src_qpn, d->side[0].qp->qpn);
	assert_memory_equal(p + GRH, d->side[0].memory.bytes, bytes);
	return c;
}

static void a_datagram_without_a_grh_leaves_40_bytes_as_they_are(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct cqe c;

	two_hcas_by_lid(false);
	prepare_datagram(d, 4096);
	post_and_run(d);
	c = take_datagram(d, 4096);
	assert_false(c.wc_flags & HCA_WC_GRH);
	assert_int_equal(c.slid, subnet_lid(0));
	assert_int_equal(c.sl, 2);
	assert_int_equal(c.dlid_path_bits, subnet_lid(1) & 0x7f);
	for (int i = 0; i < GRH; i++)
		assert_int_equal(d->side[1].memory.bytes[AT + i], MARK);
	two_hcas_free(d);
}

static void a_datagram_with_a_grh_shows_it(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct wq_to *to = prepare_datagram(d, 101);
	struct grh grh;
	uint8_t gid[16];
	struct cqe c;

	to->has_grh = 1;
	to->flow_label = 0xabcde;
	to->tos = 0x40;
	to->ttl = 7;
	post_and_run(d);
	c = take_datagram(d, 101);
	assert_true(c.wc_flags & HCA_WC_GRH);
	assert_int_equal(c.slid, subnet_lid(0));
	assert_int_equal(c.sl, 2);
	assert_true(grh_parse(d->side[1].memory.bytes + AT, 4096, &grh));
	assert_int_equal(grh.flow_label, 0xabcde);
	assert_int_equal(grh.traffic_class, 0x40);
	assert_int_equal(grh.hop_limit, 7);
	assert_int_equal(grh.next_header, GRH_NEXT_HEADER_IBA);
	/* BTH, DETH, 101 bytes with their pad, and ICRC */
	assert_int_equal(grh.payload_length, 12 + 8 + 104 + 4);
	subnet_gid(d->subnet, 0, gid);
	assert_memory_equal(grh.sgid, gid, 16);
	subnet_gid(d->subnet, 1, gid);
	assert_memory_equal(grh.dgid, gid, 16);
	two_hcas_free(d);
}

/* A datagram leaves by the port of its queue pair, with an SLID of this port.
 * If the address handle were of another port, the peer's answer would not go to
 * that port, and the subnet would drop a datagram with an SGID of that port. */
static void a_datagram_by_another_ports_path_is_an_error(void **state)
{
	for (unsigned has_grh = 0; has_grh < 2; has_grh++) {
		struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
		struct wq_to *to = prepare_datagram(d, 8);
		char text[1024];
		struct cqe c;

		to->has_grh = (uint8_t)has_grh;
		to->lid.port_num = 2;
		post_and_run(d);
		assert_true(two_hcas_poll(d, 0, &c));
		assert_int_equal(c.status, HCA_LOC_QP_OP_ERR);
		assert_int_equal(d->side[0].qp->state, HCA_QP_SQE);
		assert_false(two_hcas_poll(d, 1, &c));
		explain_text(&d->side[0].explained, text, sizeof(text));
		assert_non_null(strstr(text, "another port than the queue"));
		two_hcas_free(d);
	}
}

/* Sends a datagram to the group from side 0. */
static void send_to_group(struct two_hcas *d, uint32_t bytes)
{
	struct wq_to *to = prepare_datagram(d, bytes);

	to->qpn = 0xffffff;
	to->lid.dlid = SUBNET_MLID;
	to->has_grh = 1;
	memcpy(to->to, group, 16);
	post_and_run(d);
}

static void members_of_a_group_get_its_datagrams(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct cqe c;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(engine_mcast_attach(d->side[i].engine,
						     d->side[i].side, group),
				 0);
		subnet_join(d->subnet, i, group);
	}
	two_hcas_recv(d, 0, AT, 1000);
	send_to_group(d, 100);
	c = take_datagram(d, 100);
	assert_true(c.wc_flags & HCA_WC_GRH);
	assert_memory_equal(d->side[1].memory.bytes + AT + 24, group, 16);
	/* The sender does not get its own message. */
	assert_false(two_hcas_poll(d, 0, &c));
	engine_mcast_detach(d->side[1].engine, d->side[1].side, group);
	send_to_group(d, 100);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_false(two_hcas_poll(d, 0, &c));
	assert_false(two_hcas_poll(d, 1, &c));
	two_hcas_free(d);
}

/* A SEND from side 0's port to side 1, whose headers a test may change. */
struct forged {
	struct iblink h;
	struct pkt p;
	/* the bit of the packet that is flipped, counted from 1; 0: none */
	uint32_t flips;
	uint32_t port; /* side 1 gets the packet by this port; 0: by port 1 */
};

static struct forged forge_send(const struct two_hcas *d)
{
	const struct two_hcas_side *s = &d->side[1];
	struct forged f = {.h.lrh = {.lnh = LRH_NEXT_LOCAL,
				     .slid = subnet_lid(0),
				     .dlid = subnet_lid(1)},
			   .p = {.bth = {.opcode = OPCODE_RC_SEND_ONLY,
					 .pkey = BTH_DEFAULT_PKEY,
					 .dest_qpn = s->qp->qpn,
					 .psn = s->qp->attr.rq_psn,
					 .ackreq = true},
				 .payload_len = 8}};

	return f;
}

/* Gives the packet to side 1.  Returns whether the packet had a wrong Q_Key. */
static bool give_forged(struct two_hcas *d, const struct forged *f)
{
	uint8_t buf[LRH_FRAME_MAX], bth[256];
	size_t n = pkt_write_headers(bth, &f->p), head;
	struct engine_packet packet = {.bytes = buf,
				       .port = f->port ? f->port : 1};

	memset(bth + n, 0x33, f->p.payload_len);
	n += f->p.payload_len;
	head = iblink_write(buf, &f->h, n);
	memcpy(buf + head, bth, n);
	packet.len = head + iblink_seal(buf, head, buf + head, n);
	if (f->flips)
		buf[(f->flips - 1) / 8] ^= (uint8_t)(1 << (f->flips - 1) % 8);
	return engine_rx_link(d->side[1].engine, &packet, d->now_ns);
}

/* Returns whether the forged SEND was received. */
static bool has_received(struct two_hcas *d)
{
	struct cqe c;

	return two_hcas_poll(d, 1, &c);
}

static const struct engine_counters *counters_of(const struct two_hcas *d)
{
	return engine_counters(d->side[1].engine, 0);
}

static void a_connection_takes_packets_of_its_lids_alone(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct forged f = forge_send(d);

	two_hcas_recv(d, 1, AT, 64);
	f.h.lrh.slid++;
	give_forged(d, &f);
	assert_false(has_received(d));
	assert_int_equal(counters_of(d)->refused.wrong_peer, 1);
	f = forge_send(d);
	f.h.lrh.dlid++;
	give_forged(d, &f);
	assert_false(has_received(d));
	assert_int_equal(counters_of(d)->refused.wrong_peer, 2);
	f = forge_send(d);
	give_forged(d, &f);
	assert_true(has_received(d));
	two_hcas_run(d, d->now_ns + LONG);
	two_hcas_free(d);
}

/* The subnet manager gives the port of side 1 another LID.  Side 1 then
 * receives the packets that the peer sends to the new LID: the engine compares
 * the DLID of a packet with the LID that the port has now, and not with the LID
 * that the port had when the queue pair was connected. */
static void a_connection_follows_the_lid_of_its_port(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct hca_port port = subnet_port(d->subnet, 1);
	struct forged f = forge_send(d);

	two_hcas_recv(d, 1, AT, 64);
	port.lid = 0x40;
	engine_port(d->side[1].engine, 0, 1, &port);
	give_forged(d, &f);
	assert_false(has_received(d));
	assert_int_equal(counters_of(d)->refused.wrong_peer, 1);
	f.h.lrh.dlid = 0x40;
	give_forged(d, &f);
	assert_true(has_received(d));
	/* the subnet takes the ACK only with the LID that it has given */
	port = subnet_port(d->subnet, 1);
	engine_port(d->side[1].engine, 0, 1, &port);
	two_hcas_run(d, d->now_ns + LONG);
	two_hcas_free(d);
}

/* The peer may send without a GRH, but not with the GIDs of other ports. */
static void a_connection_with_gids_compares_them(void **state)
{
	struct two_hcas *d;
	struct forged f;

	two_hcas_by_lid(true);
	d = two_hcas_new(5, 16);
	two_hcas_recv(d, 1, AT, 64);
	f = forge_send(d);
	f.h.lrh.lnh = LRH_NEXT_GLOBAL;
	subnet_gid(d->subnet, 0, f.h.grh.sgid);
	subnet_gid(d->subnet, 0, f.h.grh.dgid);
	give_forged(d, &f);
	assert_false(has_received(d));
	subnet_gid(d->subnet, 1, f.h.grh.sgid);
	subnet_gid(d->subnet, 1, f.h.grh.dgid);
	give_forged(d, &f);
	assert_false(has_received(d));
	assert_int_equal(counters_of(d)->refused.wrong_peer, 2);
	subnet_gid(d->subnet, 0, f.h.grh.sgid);
	give_forged(d, &f);
	assert_true(has_received(d));
	two_hcas_recv(d, 1, AT, 64);
	f = forge_send(d);
	f.p.bth.psn++;
	give_forged(d, &f);
	assert_true(has_received(d));
	two_hcas_run(d, d->now_ns + LONG);
	two_hcas_free(d);
	two_hcas_by_lid(false);
}

/* Changes the SEND into a datagram to side 1, or to the group if `to_group`. */
static void make_datagram(const struct two_hcas *d, struct forged *f,
			  bool to_group)
{
	f->p.bth.opcode = OPCODE_UD_SEND_ONLY;
	f->p.deth.qkey = d->side[1].qp->attr.qkey;
	f->p.deth.src_qpn = d->side[0].qp->qpn;
	if (!to_group)
		return;
	f->p.bth.dest_qpn = 0xffffff;
	f->h.lrh.dlid = SUBNET_MLID;
	f->h.lrh.lnh = LRH_NEXT_GLOBAL;
	subnet_gid(d->subnet, 0, f->h.grh.sgid);
	memcpy(f->h.grh.dgid, group, 16);
}

/* Gives side 1 a packet by port 2, and then by port 1, to which its queue pair
 * belongs.  Expects that only the second packet is received. */
static void expect_at_port_1(struct two_hcas *d, struct forged *f)
{
	two_hcas_recv(d, 1, AT, GRH + 64);
	f->port = 2;
	give_forged(d, f);
	assert_false(has_received(d));
	f->port = 1;
	give_forged(d, f);
	assert_true(has_received(d));
	assert_false(has_received(d));
}

static void a_queue_pair_takes_packets_of_its_port_alone(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct forged f = forge_send(d);

	expect_at_port_1(d, &f);
	assert_int_equal(counters_of(d)->refused.wrong_peer, 1);
	two_hcas_run(d, d->now_ns + LONG);
	two_hcas_free(d);
	d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	f = forge_send(d);
	make_datagram(d, &f, false);
	expect_at_port_1(d, &f);
	assert_int_equal(counters_of(d)->refused.wrong_peer, 1);
	assert_int_equal(
		engine_mcast_attach(d->side[1].engine, d->side[1].side, group),
		0);
	make_datagram(d, &f, true);
	expect_at_port_1(d, &f);
	two_hcas_free(d);
}

/* Returns whether the ICRC leaves out this bit of a packet without a GRH.  The
 * ICRC leaves out the VL, the byte of the BTH with FECN and BECN, and the VCRC,
 * which the port of the link checks. */
static bool is_beside_icrc(uint32_t bit, uint32_t bits)
{
	return (bit >= 4 && bit < 8) || bit / 8 == LRH_BYTES + 4 ||
	       bit >= bits - 8 * LRH_VCRC_BYTES;
}

static void a_packet_with_any_wrong_bit_is_dropped(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct forged f = forge_send(d);
	uint32_t bits = 8 * (LRH_BYTES + 12 + 8 + IBLINK_TAIL_BYTES), wrong = 0;

	two_hcas_recv(d, 1, AT, 64);
	for (f.flips = 1; f.flips <= bits; f.flips++)
		if (!is_beside_icrc(f.flips - 1, bits)) {
			give_forged(d, &f);
			wrong++;
		}
	assert_false(has_received(d));
	assert_int_equal(wrong, bits - 4 - 8 - 16);
	assert_int_equal(counters_of(d)->refused.bad_icrc, wrong);
	assert_int_equal(counters_of(d)->rx_packets, wrong);
	f.flips = 0;
	give_forged(d, &f);
	assert_true(has_received(d));
	two_hcas_run(d, d->now_ns + LONG);
	two_hcas_free(d);
}

/* A QP by LID gets no UDP datagram, even with the addresses that stand for LIDs
 * (inaddr_map_lid).  A QP of RoCE gets no packet of a link. */
static void the_kinds_of_packets_do_not_mix(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct forged f = forge_send(d);
	uint8_t bytes[256];
	struct engine_dgram g = {.bytes = bytes};
	size_t n = pkt_write_headers(bytes, &f.p);

	two_hcas_recv(d, 1, AT, 64);
	memset(bytes + n, 0x33, f.p.payload_len);
	inaddr_map_lid(g.from.ip, subnet_lid(0));
	inaddr_map_lid(g.to.ip, subnet_lid(1));
	g.from.port = g.to.port = ROCEV2_PORT;
	g.len = g.segment = rocev2_seal(NULL, &g.from, &g.to, bytes,
					n + f.p.payload_len, 0);
	engine_rx(d->side[1].engine, &g, d->now_ns);
	assert_false(has_received(d));
	assert_int_equal(counters_of(d)->refused.unknown_qp, 1);
	d->side[1].qp->is_by_lid = 0;
	give_forged(d, &f);
	assert_false(has_received(d));
	assert_int_equal(counters_of(d)->refused.unknown_qp, 2);
	d->side[1].qp->is_by_lid = 1;
	two_hcas_free(d);
}

/* A process may have devices of both kinds, with members in one group. */
static void a_datagram_by_udp_reaches_no_member_by_lid(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct pkt p = {.bth = {.opcode = OPCODE_UD_SEND_ONLY,
				.pkey = BTH_DEFAULT_PKEY,
				.dest_qpn = 0xffffff},
			.deth = {.qkey = TWO_HCAS_QKEY, .src_qpn = 0x777},
			.payload_len = 8};
	uint8_t bytes[256];
	struct engine_dgram g = {.bytes = bytes};
	size_t n = pkt_write_headers(bytes, &p);

	assert_int_equal(
		engine_mcast_attach(d->side[1].engine, d->side[1].side, group),
		0);
	two_hcas_recv(d, 1, AT, 1000);
	memset(bytes + n, 0x33, p.payload_len);
	g.from.ip[15] = 1;
	memcpy(g.to.ip, group, 16);
	g.from.port = g.to.port = ROCEV2_PORT;
	g.len = g.segment =
		rocev2_seal(NULL, &g.from, &g.to, bytes, n + p.payload_len, 0);
	engine_rx(d->side[1].engine, &g, d->now_ns);
	assert_false(has_received(d));
	d->side[1].qp->is_by_lid = 0;
	engine_rx(d->side[1].engine, &g, d->now_ns);
	assert_true(has_received(d));
	d->side[1].qp->is_by_lid = 1;
	two_hcas_free(d);
}

/* engine_rx_link returns whether the Q_Key of this packet is wrong, whatever
 * the Q_Keys of earlier packets were. */
static void a_wrong_qkey_is_told(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct forged f = forge_send(d);

	two_hcas_recv(d, 1, AT, 1000);
	make_datagram(d, &f, false);
	f.p.deth.qkey++;
	assert_true(give_forged(d, &f));
	assert_false(has_received(d));
	f.p.bth.dest_qpn ^= 1; /* reaches no queue pair */
	assert_false(give_forged(d, &f));
	f.p.bth.dest_qpn ^= 1;
	f.p.deth.qkey--;
	assert_false(give_forged(d, &f));
	assert_true(has_received(d));
	two_hcas_free(d);
}

/* The engine handles only a few wrong Q_Keys of a limited address, but tells
 * its caller of all of them, since the port counts them. */
static void wrong_qkeys_of_a_limited_address_are_told(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct forged f = forge_send(d);
	uint32_t most = SUSPECT_MANY + 2 * SUSPECT_PASS;

	make_datagram(d, &f, false);
	f.p.deth.qkey++;
	for (uint32_t i = 0; i < most; i++)
		assert_true(give_forged(d, &f));
	assert_true(counters_of(d)->refused.limited > 0);
	assert_int_equal(counters_of(d)->qkey_violations, most);
	two_hcas_free(d);
}

static int note_head(void *context, int from, const struct engine_frame *f)
{
	struct lrh *lrh = context;

	if (!from)
		assert_true(lrh_parse(f->head, f->head_bytes, lrh));
	return from != 0;
}

/* IBTA 4.1.3: a port with an LMC has 2^LMC LIDs. */
static void path_bits_within_the_lmc_are_part_of_the_slid(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct hca_port port = {.lid = 0x40, .lmc = 2, .pkeys = {0xffff}};
	struct lrh lrh = {0};

	d->fate = note_head;
	d->context = &lrh;
	engine_port(d->side[0].engine, 0, 1, &port);
	prepare_datagram(d, 8)->lid.path_bits = 0x7f;
	post_and_run(d);
	assert_int_equal(lrh.slid, 0x43);
	port = (struct hca_port){.lid = 0x80, .pkeys = {0xffff}};
	engine_port(d->side[0].engine, 0, 1, &port);
	prepare_datagram(d, 8)->lid.path_bits = 0x7f;
	post_and_run(d);
	assert_int_equal(lrh.slid, 0x80);
	two_hcas_free(d);
}

/* Puts the QP of each side into a partition, by entry 1 of the P_Key tables. */
static void set_partitions(struct two_hcas *d, uint16_t first, uint16_t second)
{
	for (int i = 0; i < 2; i++) {
		struct hca_port port;

		subnet_set_pkey(d->subnet, i, 1, i ? second : first);
		port = subnet_port(d->subnet, i);
		engine_port(d->side[i].engine, 0, 1, &port);
		d->side[i].qp->attr.pkey_index = 1;
	}
}

/* Returns whether a datagram of side 0 reaches side 1. */
static bool reaches_peer(struct two_hcas *d)
{
	struct cqe c;

	prepare_datagram(d, 8);
	post_and_run(d);
	assert_true(two_hcas_poll(d, 0, &c));
	return two_hcas_poll(d, 1, &c);
}

/* The P_Key of a packet must match the queue pair's entry of the P_Key table
 * (IBTA 10.9.3).  The port of side 1 accepts the packets in all cases but the
 * last, by the entries 1 to 3 of its table. */
static void a_queue_pair_receives_from_its_partition_alone(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 64);

	set_partitions(d, 0x8001, 0x8001);
	assert_true(reaches_peer(d));
	set_partitions(d, 0x8001, 0x0001);
	assert_true(reaches_peer(d));
	subnet_set_pkey(d->subnet, 1, 2, 0x8001);
	subnet_set_pkey(d->subnet, 1, 3, 0x8002);
	set_partitions(d, 0x0001, 0x0001);
	assert_false(reaches_peer(d));
	assert_int_equal(counters_of(d)->pkey_violations, 1);
	set_partitions(d, 0x8002, 0x8001);
	assert_false(reaches_peer(d));
	assert_int_equal(counters_of(d)->pkey_violations, 2);
	set_partitions(d, 0x8003, 0x8001);
	assert_false(reaches_peer(d));
	assert_int_equal(counters_of(d)->pkey_violations, 2);
	two_hcas_free(d);
}

static void a_group_reaches_the_members_of_its_partition(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, 5, 16);
	struct cqe c;

	engine_mcast_attach(d->side[1].engine, d->side[1].side, group);
	subnet_join(d->subnet, 1, group);
	set_partitions(d, 0x8001, 0x8001);
	send_to_group(d, 100);
	take_datagram(d, 100);
	subnet_set_pkey(d->subnet, 1, 2, 0x8001);
	set_partitions(d, 0x8001, 0x8002);
	send_to_group(d, 100);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_false(two_hcas_poll(d, 1, &c));
	two_hcas_free(d);
}

/* A switch has no route to the peer: the tries end, and the message names the
 * peer's LID. */
static void a_peer_without_a_route_is_named_by_its_lid(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct node *s2 = fabric_find(subnet_fabric(d->subnet), "S2");
	char text[1024];

	d->liveness = ENGINE_PEER_UNKNOWN;
	s2->lft[subnet_lid(1)] = 0xff;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 5 * two_hcas_tries_ns(d, 0));
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, HCA_WC_RDMA_WRITE);
	explain_text(&d->side[0].explained, text, sizeof(text));
	assert_non_null(strstr(text, "LID 17: ibtracert 16 17"));
	two_hcas_free(d);
}

/* The link of the device's ports has ended. */
static void a_failed_device_fails_its_queue_pairs(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct engine *e = d->side[0].engine;
	struct hca_qp_attr now;

	two_hcas_recv(d, 0, AT, 64);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 0);
	engine_fail_device(e, 1, d->now_ns);
	d->side[0].qp->is_by_lid = 0;
	engine_fail_device(e, 0, d->now_ns);
	d->side[0].qp->is_by_lid = 1;
	engine_qp_query(e, d->side[0].side, &now);
	assert_int_equal(now.qp_state, HCA_QP_RTS);
	engine_fail_device(e, 0, d->now_ns);
	engine_qp_query(e, d->side[0].side, &now);
	assert_int_equal(now.qp_state, HCA_QP_ERR);
	two_hcas_post(d, 0);
	for (int i = 0; i < 2; i++) {
		struct cqe c;

		assert_true(two_hcas_poll(d, 0, &c));
		assert_int_equal(c.status, HCA_WR_FLUSH_ERR);
	}
	two_hcas_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_takes_packets_of_its_lids_alone),
		cmocka_unit_test(a_connection_follows_the_lid_of_its_port),
		cmocka_unit_test(a_connection_with_gids_compares_them),
		cmocka_unit_test(a_datagram_with_a_grh_shows_it),
		cmocka_unit_test(a_datagram_by_another_ports_path_is_an_error),
		cmocka_unit_test(
			a_datagram_without_a_grh_leaves_40_bytes_as_they_are),
		cmocka_unit_test(a_datagram_by_udp_reaches_no_member_by_lid),
		cmocka_unit_test(a_failed_device_fails_its_queue_pairs),
		cmocka_unit_test(a_group_reaches_the_members_of_its_partition),
		cmocka_unit_test(
			a_queue_pair_receives_from_its_partition_alone),
		cmocka_unit_test(a_packet_with_any_wrong_bit_is_dropped),
		cmocka_unit_test(a_wrong_qkey_is_told),
		cmocka_unit_test(wrong_qkeys_of_a_limited_address_are_told),
		cmocka_unit_test(a_peer_without_a_route_is_named_by_its_lid),
		cmocka_unit_test(a_queue_pair_takes_packets_of_its_port_alone),
		cmocka_unit_test(members_of_a_group_get_its_datagrams),
		cmocka_unit_test(path_bits_within_the_lmc_are_part_of_the_slid),
		cmocka_unit_test(the_kinds_of_packets_do_not_mix),
	};

	two_hcas_by_lid(false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
