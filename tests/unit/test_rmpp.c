/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/rmpp: a receiver acknowledges repeated segments and takes the longest
 * MAD, and a side that gives up a transfer sends STOP or ABORT.  The test plays
 * the peer, whose agent sees the packets of RMPP. */
#include "test.h"

#include <stdlib.h>

#include "fabric/end.h"
#include "fabric/net.h"
#include "fabric/umad_header.h"
#include "hdr/bytes.h"

#define QP1_QKEY 0x80010000u

enum {
	LID_PROGRAM = 4,
	LID_PEER = 8,
	AT_LID = 16, /* in PortInfo */
	AT_RMPP = 24,
	HEADER = 56,		   /* of a MAD of subnet administration */
	DATA = MAD_BYTES - HEADER, /* of a segment */
	/* the bytes of HEADER that PayloadLength counts */
	CLASS_BYTES = 20,
	TYPE_DATA = 1,
	TYPE_ACK = 2,
	TYPE_STOP = 3,
	TYPE_ABORT = 4,
	FLAGS_FIRST = 3, /* each of these flags includes Active */
	FLAGS_MIDDLE = 1,
	FLAGS_LAST = 5,
	RESOURCES = 1,
	TOO_LONG = 118,
	RETRIES = 126,
	TRANSFERS = 32,
	ASKED_MS = 100000, /* the timeout of the program's request */
};

static const char text[] = "Switch 4 \"S\"\n[1] \"A\"[1]\n[2] \"B\"[1]\n\n"
			   "Hca 1 \"A\"\n[1] \"S\"[1]\n\n"
			   "Hca 1 \"B\"\n[1] \"S\"[2]\n";

static struct fabric *f;
static struct end *program, *peer;
static uint64_t now_ms;
/* The last packet that the peer got. */
static uint8_t got[MAD_BYTES];

static struct end *open_end(const char *host, uint16_t lid, bool has_rmpp)
{
	const struct fabric_agent asked = {.mgmt_class = CLASS_SA,
					   .class_version = 2,
					   .methods = {1 << METHOD_GET},
					   .rmpp_version = has_rmpp};
	struct node *s = fabric_find(f, "S"), *n = fabric_find(f, host);
	struct port *port = &n->ports[1];
	struct end *end;
	int err;

	bytes_put16(port->info + AT_LID, lid);
	bytes_put16(s->switch_info + 6, LID_PEER);
	port->state = port->peer->state = STATE_ACTIVE;
	s->lft[lid] = port->peer->number;
	end = fabric_open(n, 1, NULL, &err);
	assert_non_null(end);
	assert_int_equal(fabric_register(end, &asked), 0);
	return end;
}

static int make_world(void **state)
{
	struct net_error error;
	struct net net;

	assert_int_equal(net_parse(text, sizeof(text) - 1, &net, &error), 0);
	f = fabric_new(&net);
	net_free(&net);
	assert_non_null(f);
	fabric_set_time(f, now_ms = 1);
	program = open_end("A", LID_PROGRAM, true);
	peer = open_end("B", LID_PEER, false);
	return 0;
}

static int free_world(void **state)
{
	fabric_free(f);
	return 0;
}

static void send_mad(struct end *end, uint16_t lid, const uint8_t *mad,
		     size_t bytes, uint32_t timeout_ms)
{
	static uint8_t m[FABRIC_UMAD_BYTES + FABRIC_MAD_MAX];
	const struct umad to = {.lid = lid,
				.qpn = 1,
				.qkey = QP1_QKEY,
				.timeout_ms = timeout_ms};

	umad_header_write(&to, (uint32_t)bytes, m);
	memcpy(m + FABRIC_UMAD_BYTES, mad, bytes);
	assert_int_equal(fabric_send(end, m, FABRIC_UMAD_BYTES + bytes), 0);
	fabric_turn(f, now_ms);
}

/* Fetches the peer's next packet into `got`; false: there is none. */
static bool peer_gets(void)
{
	size_t bytes;
	const uint8_t *m = fabric_fetch(peer, &bytes);

	if (!m)
		return false;
	assert_int_equal(bytes, FABRIC_UMAD_BYTES + MAD_BYTES);
	memcpy(got, m + FABRIC_UMAD_BYTES, MAD_BYTES);
	fabric_fetched(peer);
	return true;
}

/* Expects that the peer gets one packet of RMPP, and no other. */
static void expect_packet(uint8_t type, uint8_t status, uint32_t segment)
{
	assert_true(peer_gets());
	assert_int_equal(got[AT_RMPP + 1], type);
	assert_int_equal(got[AT_RMPP + 3], status);
	assert_int_equal(bytes_get32(got + AT_RMPP + 4), segment);
	assert_false(peer_gets());
}

/* The program sends a request with this transaction ID.  The peer makes the
 * segments of its answer from the header of the request. */
static void ask_peer_as(uint64_t id)
{
	uint8_t mad[MAD_BYTES] = {0};

	mad_write(mad, &(struct mad){.base_version = 1,
				     .mgmt_class = CLASS_SA,
				     .class_version = 2,
				     .method = METHOD_GET,
				     .transaction_id = id});
	send_mad(program, LID_PEER, mad, sizeof(mad), ASKED_MS);
	assert_true(peer_gets());
}

static void ask_peer(void)
{
	ask_peer_as(7);
}

/* The peer sends a segment whose data are its number. */
static void answer_segment(uint32_t segment, uint8_t flags, uint32_t length)
{
	uint8_t mad[MAD_BYTES];

	memcpy(mad, got, HEADER);
	memset(mad + HEADER, (int)segment, DATA);
	mad[3] = METHOD_GET | MAD_METHOD_RESPONSE;
	mad[AT_RMPP] = 1;
	mad[AT_RMPP + 1] = TYPE_DATA;
	mad[AT_RMPP + 2] = flags;
	mad[AT_RMPP + 3] = 0;
	bytes_put32(mad + AT_RMPP + 4, segment);
	bytes_put32(mad + AT_RMPP + 8, length);
	send_mad(peer, LID_PROGRAM, mad, sizeof(mad), 0);
}

static void a_repeated_segment_is_acknowledged_again(void **state)
{
	ask_peer();
	answer_segment(1, FLAGS_FIRST, 0);
	expect_packet(TYPE_ACK, 0, 1);
	for (uint32_t i = 2; i <= 65; i++)
		answer_segment(i, FLAGS_MIDDLE, 0);
	/* this ACK of a full window is lost */
	expect_packet(TYPE_ACK, 0, 65);
	answer_segment(2, FLAGS_MIDDLE, 0);
	expect_packet(TYPE_ACK, 0, 65);
	answer_segment(67, FLAGS_MIDDLE, 0);
	assert_false(peer_gets()); /* segment 66 is missing */
	answer_segment(66, FLAGS_LAST, CLASS_BYTES + 1);
	expect_packet(TYPE_ACK, 0, 66);
}

/* The program asks the peer, which answers by the segments of a MAD of `bytes`
 * bytes, and reads all ACKs but that of the last segment. */
static void answer_with(size_t bytes)
{
	size_t data = bytes - HEADER;
	uint32_t segments = (uint32_t)((data + DATA - 1) / DATA);

	ask_peer();
	for (uint32_t i = 1; i < segments; i++) {
		answer_segment(i, i == 1 ? FLAGS_FIRST : FLAGS_MIDDLE, 0);
		while (peer_gets())
			;
	}
	answer_segment(segments, FLAGS_LAST,
		       (uint32_t)(data - (segments - 1) * DATA) + CLASS_BYTES);
}

static void the_longest_mad_arrives(void **state)
{
	const uint8_t *m;
	size_t bytes;

	answer_with(FABRIC_MAD_MAX);
	assert_true(peer_gets());
	assert_int_equal(got[AT_RMPP + 1], TYPE_ACK);
	m = fabric_fetch(program, &bytes);
	assert_non_null(m);
	assert_int_equal(bytes, FABRIC_UMAD_BYTES + FABRIC_MAD_MAX);
	assert_int_equal(m[FABRIC_UMAD_BYTES + HEADER + DATA], 2);
	fabric_fetched(program);
}

static void a_longer_mad_is_stopped(void **state)
{
	size_t bytes;

	answer_with(FABRIC_MAD_MAX + 1);
	expect_packet(TYPE_STOP, RESOURCES, 0);
	assert_null(fabric_fetch(program, &bytes));
}

/* PayloadLength counts the class header, so a length below that of the class
 * header is wrong. */
static void a_short_length_takes_no_data_of_other_segments(void **state)
{
	const uint8_t *m;
	size_t bytes;

	ask_peer();
	answer_segment(1, FLAGS_FIRST, 0);
	answer_segment(2, FLAGS_LAST, 1);
	m = fabric_fetch(program, &bytes);
	assert_non_null(m);
	assert_int_equal(bytes, FABRIC_UMAD_BYTES + MAD_BYTES);
	fabric_fetched(program);
}

static void take_answer(void)
{
	size_t bytes;

	assert_non_null(fabric_fetch(program, &bytes));
	assert_int_equal(bytes, FABRIC_UMAD_BYTES + HEADER + DATA + 1);
	fabric_fetched(program);
}

/* The ACK of the last segment is lost, so the peer sends the segment again. */
static void a_repeated_last_segment_is_acknowledged(void **state)
{
	size_t bytes;

	for (int i = 0; i < 2; i++) { /* with the same transaction ID */
		ask_peer();
		answer_segment(1, FLAGS_FIRST, 0);
		expect_packet(TYPE_ACK, 0, 1);
		answer_segment(2, FLAGS_LAST, CLASS_BYTES + 1);
		expect_packet(TYPE_ACK, 0, 2);
		take_answer();
		answer_segment(2, FLAGS_LAST, CLASS_BYTES + 1);
		expect_packet(TYPE_ACK, 0, 2);
		answer_segment(3, FLAGS_LAST, CLASS_BYTES + 1);
		assert_false(peer_gets());
		assert_null(fabric_fetch(program, &bytes));
	}
	now_ms = fabric_deadline(f);
	assert_true(now_ms > 10000); /* by then the peer has given up */
	fabric_turn(f, now_ms);
	answer_segment(2, FLAGS_LAST, CLASS_BYTES + 1);
	assert_false(peer_gets());
}

/* The peer's 33rd transfer waits until one of the 32 before has ended. */
static void a_transfer_for_which_there_is_no_room_waits(void **state)
{
	uint8_t first[MAD_BYTES], last[MAD_BYTES];

	for (int i = 1; i <= TRANSFERS; i++) {
		ask_peer_as((uint64_t)i);
		if (i == 1)
			memcpy(first, got, sizeof(first));
		answer_segment(1, FLAGS_FIRST, 0);
		expect_packet(TYPE_ACK, 0, 1);
	}
	ask_peer_as(TRANSFERS + 1);
	answer_segment(1, FLAGS_FIRST, 0);
	assert_false(peer_gets());
	memcpy(last, got, sizeof(last));
	memcpy(got, first, sizeof(first));
	answer_segment(2, FLAGS_LAST, CLASS_BYTES + 1);
	expect_packet(TYPE_ACK, 0, 2);
	take_answer();
	memcpy(got, last, sizeof(last));
	answer_segment(1, FLAGS_FIRST, 0);
	expect_packet(TYPE_ACK, 0, 1);
}

/* Lets time pass until the fabric has nothing to do for a transfer. */
static void pass_time(void)
{
	while (fabric_deadline(f) < ASKED_MS) {
		now_ms = fabric_deadline(f);
		fabric_turn(f, now_ms);
	}
}

static void a_receiver_that_gives_up_says_so(void **state)
{
	ask_peer();
	answer_segment(1, FLAGS_FIRST, 0);
	expect_packet(TYPE_ACK, 0, 1);
	pass_time();
	expect_packet(TYPE_ABORT, TOO_LONG, 0);
	assert_int_equal(got[3], METHOD_GET);
}

static void a_sender_that_gives_up_says_so(void **state)
{
	uint8_t mad[2 * MAD_BYTES] = {0};
	int repeats = 0;

	mad_write(mad, &(struct mad){.base_version = 1,
				     .mgmt_class = CLASS_SA,
				     .class_version = 2,
				     .method = METHOD_GET,
				     .transaction_id = 7});
	mad[AT_RMPP + 2] = FLAGS_MIDDLE;
	send_mad(program, LID_PEER, mad, sizeof(mad), 0);
	pass_time();
	while (peer_gets() && got[AT_RMPP + 1] == TYPE_DATA)
		repeats++;
	assert_int_equal(repeats, 6);
	assert_int_equal(got[AT_RMPP + 1], TYPE_ABORT);
	assert_int_equal(got[AT_RMPP + 3], RETRIES);
	assert_false(peer_gets());
}

/* The peer's agent, which handles RMPP itself, asks the program.  The answer
 * has two segments. */
static void an_agent_without_rmpp_gets_all_segments(void **state)
{
	uint8_t mad[HEADER + 2 * DATA] = {0};
	const uint8_t *m;
	size_t bytes;

	mad_write(mad, &(struct mad){.base_version = 1,
				     .mgmt_class = CLASS_SA,
				     .class_version = 2,
				     .method = METHOD_GET,
				     .transaction_id = 7});
	send_mad(peer, LID_PROGRAM, mad, MAD_BYTES, ASKED_MS);
	m = fabric_fetch(program, &bytes);
	assert_non_null(m);
	memcpy(mad, m + FABRIC_UMAD_BYTES, MAD_BYTES);
	fabric_fetched(program);
	mad[3] = METHOD_GET | MAD_METHOD_RESPONSE;
	mad[AT_RMPP + 2] = FLAGS_MIDDLE;
	send_mad(program, LID_PEER, mad, sizeof(mad), 0);
	expect_packet(TYPE_DATA, 0, 1);
	got[3] = METHOD_GET;
	got[AT_RMPP + 1] = TYPE_ACK;
	bytes_put32(got + AT_RMPP + 8, 2); /* the window */
	send_mad(peer, LID_PROGRAM, got, sizeof(got), 0);
	expect_packet(TYPE_DATA, 0, 2);
}

/* A program gets a timeout for each request that is not sent. */
static void a_request_for_which_there_is_no_room_times_out(void **state)
{
	static uint8_t mad[FABRIC_MAD_MAX];
	uint32_t i = 0;
	size_t bytes;

	mad_write(mad, &(struct mad){.base_version = 1,
				     .mgmt_class = CLASS_SA,
				     .class_version = 2,
				     .method = METHOD_GET});
	mad[AT_RMPP + 2] = FLAGS_MIDDLE;
	do {
		assert_true(i < 1024);
		bytes_put32(mad + 12, ++i);
		send_mad(program, LID_PEER, mad, sizeof(mad), ASKED_MS);
		fabric_turn(f, now_ms);
	} while (!fabric_fetch(program, &bytes));
	assert_true(i > 1);
	assert_int_equal(bytes, FABRIC_UMAD_BYTES + 24);
	fabric_fetched(program);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make_world, free_world)
	const struct CMUnitTest tests[] = {
		T(a_repeated_segment_is_acknowledged_again),
		T(the_longest_mad_arrives),
		T(a_longer_mad_is_stopped),
		T(a_short_length_takes_no_data_of_other_segments),
		T(a_repeated_last_segment_is_acknowledged),
		T(a_transfer_for_which_there_is_no_room_waits),
		T(a_receiver_that_gives_up_says_so),
		T(a_sender_that_gives_up_says_so),
		T(an_agent_without_rmpp_gets_all_segments),
		T(a_request_for_which_there_is_no_room_times_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
