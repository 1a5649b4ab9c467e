/* SPDX-License-Identifier: BSD-2-Clause */
/* The link of a process to an emulated subnet: packets, and the questions of
 * the process about its ports and its peers. */
#include "fabric_link_packets.h"

#include <sys/socket.h>

static bool is_writable(int fd)
{
	struct pollfd p = {fd, POLLOUT, 0};

	return poll(&p, 1, 0) == 1;
}

static void a_request_goes_out_and_its_answer_comes_in(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_RC, 0);
	assert_int_equal(w.taken, 1);
	assert_int_equal(fabric_link_ports(), FABRIC_PEER_PORTS);
	two_hcas_fill(w.d, 0, 0, BYTES);
	two_hcas_recv(w.d, 1, 0, BYTES);
	post_send(&w, 0, 0);
	assert_int_equal(send_all(&w), 1);
	assert_int_equal(move_packets(&w), 1);
	assert_received(&w, 1, 0, 0);
	assert_false(fabric_link_has_news());
	assert_false(fabric_peer_is_readable(fabric_link_fd()));
	assert_int_equal(send_back(&w, 1), 1); /* the ACK */
	assert_true(fabric_link_has_news());
	assert_true(fabric_peer_is_readable(fabric_link_fd()));
	assert_true(fabric_peer_turn(&w));
	assert_completes(&w, 0, HCA_SUCCESS);
	assert_false(fabric_peer_turn(&w));
	fabric_peer_end(&w);
}

/* The link tells the engine by which port a packet has come. */
static void each_port_receives(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	for (int port = 1; port <= FABRIC_PEER_PORTS; port++) {
		w.d->side[0].qp->attr.port_num = (uint8_t)port;
		two_hcas_fill(w.d, 1, 0, BYTES);
		two_hcas_recv(w.d, 0, (uint64_t)port * BYTES, BYTES);
		post_send(&w, 1, 0);
		assert_int_equal(send_back(&w, port), 1);
		assert_true(fabric_peer_turn(&w));
		assert_received(&w, 0, (uint64_t)port * BYTES, 0);
	}
	fabric_peer_end(&w);
}

static void a_frame_of_no_port_is_dropped(void **state)
{
	struct engine_frame f[3] = {{.port = 0},
				    {.port = FABRIC_PEER_PORTS + 1}};
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	f[2] = (struct engine_frame){.port = 2,
				     .head = (const uint8_t *)"head",
				     .head_bytes = 4,
				     .bytes = (const uint8_t *)"bytes",
				     .len = 5};
	assert_int_equal(fabric_link_send(f, 3), 3);
	assert_false(fabric_peer_is_readable(w.data[0]));
	assert_true(fabric_peer_is_readable(w.data[1]));
	fabric_peer_end(&w);
}

/* The frames of one call go in messages of up to 64 KiB. */
static void frames_share_a_message(void **state)
{
	static uint8_t bytes[2 * FABRIC_PROTO_BURST_BYTES];
	const uint32_t count = 100;
	struct engine_frame f[64];
	struct world w;
	ssize_t n;
	size_t k;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	for (uint32_t i = 0; i < count; i++)
		post_send(&w, 0, 0);
	k = engine_tx(w.engine, f, 64, w.d->now_ns);
	assert_int_equal(k, 64);
	assert_int_equal(fabric_link_send(f, k), k);
	n = recv(w.data[0], bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(n > FABRIC_PROTO_BURST_BYTES - 2 * (ssize_t)BYTES &&
		    n <= FABRIC_PROTO_BURST_BYTES);
	n = fabric_peer_count(bytes, n) +
	    fabric_peer_count(
		    bytes, recv(w.data[0], bytes, sizeof(bytes), MSG_DONTWAIT));
	assert_int_equal(n, k);
	assert_false(fabric_peer_is_readable(w.data[0]));
	engine_tx_done(w.engine, k);
	fabric_peer_end(&w);
}

/* Sends the frames of side 1 in one message to port 1. */
static void send_back_at_once(struct world *w)
{
	static uint8_t bytes[FABRIC_PROTO_BURST_BYTES];
	struct engine *e = w->d->side[1].engine;
	struct engine_frame f;
	size_t n = 0;

	while (engine_tx(e, &f, 1, w->d->now_ns)) {
		memcpy(bytes + n, f.head, f.head_bytes);
		memcpy(bytes + n + f.head_bytes, f.bytes, f.len);
		n += f.head_bytes + f.len;
		engine_tx_done(e, 1);
	}
	assert_int_equal(send(w->data[0], bytes, n, MSG_DONTWAIT), n);
}

static void each_packet_of_a_message_comes_in(void **state)
{
	const uint32_t count = 50;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	for (uint32_t i = 0; i < count; i++) {
		two_hcas_recv(w.d, 0, (uint64_t)i * BYTES, BYTES);
		two_hcas_fill(w.d, 1, (uint64_t)i * BYTES, BYTES);
		post_send(&w, 1, (uint64_t)i * BYTES);
	}
	send_back_at_once(&w);
	assert_true(fabric_peer_turn(&w));
	for (uint32_t i = 0; i < count; i++)
		assert_received(&w, 0, (uint64_t)i * BYTES,
				(uint64_t)i * BYTES);
	fabric_peer_end(&w);
}

/* While the receivers of packets take none, the fabric reads no packets. */
static void a_full_socket_leaves_frames_with_the_engine(void **state)
{
	const uint32_t count = 200;
	struct world w;
	size_t sent;

	fabric_peer_start(&w, HCA_QPT_UC, 4096);
	for (uint32_t i = 0; i < count; i++) {
		two_hcas_recv(w.d, 1, (uint64_t)i * BYTES, BYTES);
		two_hcas_fill(w.d, 0, (uint64_t)i * BYTES, BYTES);
		post_send(&w, 0, (uint64_t)i * BYTES);
	}
	sent = send_all(&w);
	assert_true(sent && sent < count);
	assert_false(is_writable(fabric_link_full_fd()));
	assert_int_equal(send_all(&w), 0);
	assert_int_equal(move_packets(&w), sent);
	assert_true(is_writable(fabric_link_full_fd()));
	while (sent < count) {
		size_t more = send_all(&w);

		assert_int_equal(move_packets(&w), more);
		assert_true(more);
		sent += more;
	}
	for (uint32_t i = 0; i < count; i++)
		assert_received(&w, 1, (uint64_t)i * BYTES,
				(uint64_t)i * BYTES);
	fabric_peer_end(&w);
}

/* Packets of UC wait in the engine for their receives, until the engine takes
 * no more packets.  Later packets stay in the socket, and none is lost. */
static void a_choked_engine_leaves_packets_with_the_link(void **state)
{
	const uint32_t count = 1000;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	two_hcas_fill(w.d, 1, 0, BYTES);
	for (uint32_t i = 0; i < count && !engine_is_choked(w.engine); i++) {
		post_send(&w, 1, 0);
		send_back(&w, 1);
		/* The first turn takes 7 messages, and a later turn 16, in
		 * batches of at most 4.  So the engine becomes choked in the
		 * middle of a batch. */
		if (i % 16 == 6)
			fabric_peer_turn(&w);
	}
	assert_true(engine_is_choked(w.engine));
	assert_true(fabric_link_is_behind());
	for (uint32_t i = 0; i < 20; i++) {
		post_send(&w, 1, 0);
		send_back(&w, 1);
	}
	assert_false(fabric_peer_turn(&w));
	assert_true(fabric_peer_is_readable(fabric_link_fd()));
	for (uint32_t i = 0; i < count; i++)
		two_hcas_recv(w.d, 0, 0, BYTES);
	assert_false(engine_is_choked(w.engine));
	while (fabric_peer_turn(&w))
		;
	assert_int_equal(engine_counters(w.engine, 0)->refused.unknown_qp, 0);
	for (uint32_t i = 0; i < 20; i++)
		assert_received(&w, 0, 0, 0);
	assert_false(fabric_link_is_behind());
	fabric_peer_end(&w);
}

/* Returns the SLID of the next packet that side 0 sends. */
static uint16_t next_slid(struct world *w)
{
	uint8_t bytes[LRH_FRAME_MAX];
	struct lrh lrh;
	ssize_t n;

	post_send(w, 0, 0);
	assert_int_equal(send_all(w), 1);
	n = recv(w->data[0], bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(n > 0 && lrh_parse(bytes, (size_t)n, &lrh));
	return lrh.slid;
}

static void a_change_is_asked_about_and_shown(void **state)
{
	struct fabric_port port;
	struct fabric_proto m;
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	assert_true(fabric_link_port(1, &port));
	assert_int_equal(port.lid, subnet_lid(0));
	assert_int_equal(port.guids[0], 0x1234);
	assert_int_equal(next_slid(&w), subnet_lid(0));
	fabric_peer_tell(&w, 1, DATA_LID | DATA_STATE);
	assert_true(fabric_peer_turn(&w));
	m = take_question(&w, 1);
	/* a change while the question is open needs another question */
	fabric_peer_tell(&w, 1, DATA_GIDS);
	fabric_peer_tell(&w, 2, DATA_SM);
	assert_true(fabric_peer_turn(&w));
	assert_false(fabric_peer_is_readable(w.control));
	assert_int_equal(fabric_link_take_changes(1), 0);
	m.port.lid = 0x40;
	m.port.state = 3;
	fabric_peer_answer(&w, &m);
	assert_true(fabric_peer_is_readable(fabric_link_fd()));
	assert_true(fabric_peer_turn(&w));
	assert_int_equal(fabric_link_take_changes(1), DATA_LID | DATA_STATE);
	assert_int_equal(fabric_link_take_changes(1), 0);
	assert_true(fabric_link_port(1, &port));
	assert_int_equal(port.lid, 0x40);
	assert_int_equal(port.state, 3);
	assert_true(fabric_link_port(2, &port));
	assert_int_equal(port.lid, subnet_lid(0));
	assert_int_equal(next_slid(&w), 0x40);
	m = take_question(&w, 1);
	fabric_peer_answer(&w, &m);
	fabric_peer_turn(&w);
	assert_int_equal(fabric_link_take_changes(1), DATA_GIDS);
	m = take_question(&w, 2);
	fabric_peer_answer(&w, &m);
	fabric_peer_turn(&w);
	assert_int_equal(fabric_link_take_changes(2), DATA_SM);
	assert_false(fabric_link_port(0, &port));
	assert_false(fabric_link_port(FABRIC_PEER_PORTS + 1, &port));
	assert_int_equal(fabric_link_take_changes(FABRIC_PEER_PORTS + 1), 0);
	assert_false(fabric_link_has_ended());
	fabric_peer_end(&w);
}

static void qpns_have_the_number_of_the_data_ends(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	assert_int_equal(fabric_link_qpn(0), subnet_qpn(w.d->subnet, 0, 0));
	assert_int_equal(fabric_link_qpn(UINT32_MAX),
			 subnet_qpn(w.d->subnet, 0, 0x3fff));
	fabric_peer_end(&w);
}

/* The question has the address that stands for the peer's LID (inaddr_map_lid).
 * By this address host/broker_link sees that the broker cannot know the peer.
 */
static void a_question_about_a_peer_names_its_lid(void **state)
{
	struct two_hcas *d;
	struct engine_event e[4];
	size_t n = 0;

	two_hcas_by_lid(false);
	d = two_hcas_new(5, 16);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 0);
	two_hcas_post(d, 0);
	for (int i = 0; i < 100 && !n; i++) {
		struct engine_frame f[16];
		struct engine *engine = d->side[0].engine;

		engine_tx_done(engine, engine_tx(engine, f, 16, d->now_ns));
		d->now_ns = engine_deadline(engine);
		engine_tick(engine, d->now_ns);
		n = engine_events(engine, e, 4);
	}
	assert_int_equal(n, 1);
	assert_int_equal(e[0].type, ENGINE_ASK_PEER);
	assert_true(inaddr_is_lid(e[0].peer.ip));
	assert_int_equal(inaddr_lid(e[0].peer.ip), subnet_lid(1));
	engine_peer_state(d->side[0].engine, e[0].qpn, e[0].connection,
			  ENGINE_PEER_UNKNOWN, d->now_ns);
	two_hcas_run(d, d->now_ns + 60000000000ull);
	two_hcas_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_goes_out_and_its_answer_comes_in),
		cmocka_unit_test(each_port_receives),
		cmocka_unit_test(a_frame_of_no_port_is_dropped),
		cmocka_unit_test(frames_share_a_message),
		cmocka_unit_test(each_packet_of_a_message_comes_in),
		cmocka_unit_test(a_full_socket_leaves_frames_with_the_engine),
		cmocka_unit_test(a_choked_engine_leaves_packets_with_the_link),
		cmocka_unit_test(a_change_is_asked_about_and_shown),
		cmocka_unit_test(qpns_have_the_number_of_the_data_ends),
		cmocka_unit_test(a_question_about_a_peer_names_its_lid),
	};

	return cmocka_run_group_tests(tests, fabric_peer_make_folder,
				      fabric_peer_remove_folder);
}
