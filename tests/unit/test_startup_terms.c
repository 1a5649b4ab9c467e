/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp/startup: the terms on which the two ends of an MPA connection agree,
 * which are the depths of RDMA Read, the first FPDU, and the stream that
 * follows. */
#include "test.h"

#include "unit/startup_pair.h"

/* ---- IRD and ORD (RFC 6581 9.1) ---- */

/* Depths of RDMA Read that one end offers; ird_max: the value up to which the
 * end may raise its IRD. */
struct depths {
	uint16_t ird, ord, ird_max;
};

static const struct {
	struct depths mine, theirs;
	uint16_t ird, ord;	     /* the initiator's */
	uint16_t peer_ird, peer_ord; /* the responder's */
} depth_rows[] = {
#define ALL MPA_DEPTH_MAX
	/* equal */
	{{4, 4, 4}, {4, 4, 4}, 4, 4, 4, 4},
	/* each ORD is lowered to the peer's IRD */
	{{2, 9, 2}, {3, 9, 3}, 2, 3, 3, 2},
	/* the responder raises its IRD to the initiator's ORD, up to a limit */
	{{2, 9, 2}, {3, 1, 16}, 2, 9, 9, 1},
	{{2, 9, 2}, {3, 1, 5}, 2, 5, 5, 1},
	/* IRD that is not needed stays */
	{{7, 1, 7}, {7, 1, 7}, 7, 1, 7, 1},
	{{0, 0, 0}, {0, 0, 1}, 0, 0, 0, 0},
	/* If the initiator offers ALL as its IRD, its IRD and the responder's
	 * ORD stay; if it offers ALL as its ORD, its ORD and the responder's
	 * IRD stay: the consumers set both depths. */
	{{ALL, ALL, 0}, {3, 5, 9}, ALL, ALL, 3, 5},
	{{ALL, 6, 0}, {3, 5, 9}, ALL, 6, 6, 5},
	{{6, ALL, 6}, {3, 5, 9}, 6, ALL, 3, 5},
	/* the responder offers ALL: its ORD is lowered, and its IRD stays */
	{{6, 4, 6}, {ALL, ALL, ALL}, 6, 4, ALL, 6},
#undef ALL
};

static void depths_are_lowered_and_raised_as_the_rfc_says(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(depth_rows); i++) {
		const struct depths *m = &depth_rows[i].mine;
		const struct depths *t = &depth_rows[i].theirs;
		struct startup_offer a = enhanced_offer(0);
		struct startup_offer b = answering_offer(MPA_RTR_WRITE, t->ird,
							 t->ord, t->ird_max);

		a.ird = m->ird;
		a.ord = m->ord;
		a.ird_max = m->ird_max;
		start_both(&a, &b);
		assert_int_equal(initiator.state, STARTUP_ACCEPTED);
		/* the consumer learns what the initiator asked for */
		assert_int_equal(responder.peer.enhanced.ird, m->ird);
		assert_int_equal(responder.peer.enhanced.ord, m->ord);
		assert_int_equal(initiator.agreed.ird, depth_rows[i].ird);
		assert_int_equal(initiator.agreed.ord, depth_rows[i].ord);
		assert_int_equal(responder.agreed.ird, depth_rows[i].peer_ird);
		assert_int_equal(responder.agreed.ord, depth_rows[i].peer_ord);
		assert_int_equal(initiator.peer.enhanced.ird,
				 m->ord == MPA_DEPTH_MAX
					 ? MPA_DEPTH_MAX
					 : responder.agreed.ird);
		assert_int_equal(initiator.peer.enhanced.ord,
				 m->ird == MPA_DEPTH_MAX
					 ? MPA_DEPTH_MAX
					 : responder.agreed.ord);
	}
}

static void without_enhanced_data_depths_stay(void **state)
{
	struct startup_offer theirs = answering_offer(MPA_RTR_ALL, 1, 99, 2);

	start_both(&plain, &theirs);
	assert_int_equal(initiator.agreed.ird, 4);
	assert_int_equal(initiator.agreed.ord, 4);
	assert_int_equal(responder.agreed.ird, 1);
	assert_int_equal(responder.agreed.ord, 99);
}

/* Fails unless the initiator ends with a Terminate of this code (RFC 6581 8 and
 * 9.1). */
static void assert_terminate(uint8_t code)
{
	static const uint8_t head[] = {0, 22, 0x41, 0x47, [11] = 2, [15] = 1};
	static uint8_t out[STARTUP_TERMINATE_MAX];
	bool has_markers = initiator.agreed.tx_markers;
	uint32_t at = has_markers ? FPDU_MARKER_BYTES : 0;
	uint32_t bytes = startup_terminate(&initiator, out);
	struct fpdu_tx tx;
	uint8_t again[STARTUP_TERMINATE_MAX];

	assert_int_equal(bytes, at + 28);
	assert_memory_equal(out + at, head, sizeof(head));
	assert_memory_equal(out + at + 20, "\x20", 1);
	assert_int_equal(out[at + 21], code);
	/* framed as both ends have agreed */
	fpdu_tx_init(&tx, initiator.agreed.has_crc, has_markers);
	memcpy(again + FPDU_ULPDU_AT, out + at + 2, 22);
	assert_int_equal(fpdu_seal(&tx, again, 22), bytes);
	assert_memory_equal(again, out, bytes);
}

/* Connects with IRD 4, which may become 8, and gets a reply with this ORD. */
static void reply_of_ord(uint16_t ord)
{
	struct startup_offer mine = enhanced_offer(0);

	mine.wants_crc = true;
	mine.wants_markers = true;
	connect_with(&mine);
	reply_frame(&(struct mpa_frame){.kind = MPA_REPLY,
					.revision = 2,
					.is_enhanced = true,
					.enhanced = {.ird = 4, .ord = ord}});
}

static void too_much_ord_of_the_responder_ends_in_a_terminate(void **state)
{
	const struct startup_verdict *v;

	reply_of_ord(8);
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
	assert_int_equal(initiator.agreed.ird, 8);
	reply_of_ord(9);
	assert_failed(&initiator, STARTUP_NO_IRD);
	v = startup_verdict(initiator.error);
	assert_true(v->terminates);
	assert_false(v->is_old_peer);
	assert_code(initiator.error, 6);
	/* the Terminate is framed as agreed */
	assert_true(initiator.agreed.has_crc && initiator.agreed.rx_markers);
	assert_false(initiator.agreed.tx_markers);
	assert_terminate(6);
	/* MPA_DEPTH_MAX is no number: the consumer sets the depth */
	reply_of_ord(MPA_DEPTH_MAX);
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
	assert_int_equal(initiator.agreed.ird, 4);
	assert_int_equal(startup_terminate(&initiator, request), 0);
}

/* ---- ready-to-receive (RFC 6581 9.2) ---- */

/* Checks the kind that the initiator sends (0: none), and the kinds that the
 * responder says it accepts. */
static void both_pick(uint8_t mine, uint8_t theirs, uint8_t sent, uint8_t said)
{
	struct startup_offer a = enhanced_offer(mine);
	struct startup_offer b = answering_offer(theirs, 1, 1, 1);

	b.wants_markers = theirs & 1;
	start_both(&a, &b);
	assert_true(responder.agreed.is_peer_to_peer);
	assert_int_equal(responder.agreed.rtr, said);
	if (!sent) {
		assert_failed(&initiator, STARTUP_NO_RTR);
		assert_terminate(7);
		return;
	}
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
	assert_true(initiator.agreed.is_peer_to_peer);
	assert_int_equal(initiator.agreed.rtr, sent);
	assert_true(responder.agreed.rtr & initiator.agreed.rtr);
}

static void each_pair_of_kinds_ends_in_one_kind_or_an_error(void **state)
{
	for (uint8_t mine = 1; mine <= MPA_RTR_ALL; mine++)
		for (uint8_t theirs = 1; theirs <= MPA_RTR_ALL; theirs++) {
			uint8_t both = mine & theirs;
			uint8_t sent = both;

			if (both & MPA_RTR_READ)
				sent = MPA_RTR_READ;
			if (both & MPA_RTR_WRITE)
				sent = MPA_RTR_WRITE;
			both_pick(mine, theirs, sent, both ? both : theirs);
		}
	assert_code(STARTUP_NO_RTR, 7);
	assert_true(startup_verdict(STARTUP_NO_RTR)->terminates);
}

static void a_read_as_first_fpdu_needs_an_ird_of_one(void **state)
{
	struct startup_offer a = enhanced_offer(MPA_RTR_READ);
	struct startup_offer b = answering_offer(MPA_RTR_READ, 0, 0, 1);
	struct mpa_frame f = {
		.kind = MPA_REPLY,
		.revision = 2,
		.is_enhanced = true,
		.enhanced = {.is_peer_to_peer = true, .rtr = MPA_RTR_READ}};

	a.ird = 0;
	a.ord = 0;
	start_both(&a, &b);
	assert_int_equal(responder.agreed.ird, 1);
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
	assert_int_equal(initiator.agreed.rtr, MPA_RTR_READ);
	/* the IRD of this responder has no room for a Read */
	connect_with(&a);
	reply_frame(&f);
	assert_failed(&initiator, STARTUP_NO_RTR);
	/* this responder accepts another kind, too */
	a.rtr = MPA_RTR_READ | MPA_RTR_WRITE;
	f.enhanced.rtr |= MPA_RTR_WRITE;
	connect_with(&a);
	reply_frame(&f);
	assert_int_equal(initiator.agreed.rtr, MPA_RTR_WRITE);
}

static void both_ends_must_use_the_same_model(void **state)
{
	struct startup_offer offers[] = {enhanced_offer(0),
					 enhanced_offer(MPA_RTR_WRITE)};
	struct mpa_frame f = {.kind = MPA_REPLY,
			      .revision = 2,
			      .is_enhanced = true,
			      .enhanced = {.ird = 4, .rtr = MPA_RTR_WRITE}};

	for (int asked = 0; asked < 2; asked++)
		for (int said = 0; said < 2; said++) {
			f.enhanced.is_peer_to_peer = said;
			connect_with(&offers[asked]);
			reply_frame(&f);
			if (asked != said) {
				assert_failed(&initiator, STARTUP_NO_RTR);
				continue;
			}
			assert_int_equal(initiator.state, STARTUP_ACCEPTED);
			assert_int_equal(initiator.agreed.rtr,
					 said ? MPA_RTR_WRITE : 0);
		}
}

static void a_request_without_a_kind_is_offered_all(void **state)
{
	struct mpa_frame f = {.kind = MPA_REQUEST,
			      .revision = 2,
			      .is_enhanced = true,
			      .enhanced = {.is_peer_to_peer = true}};
	struct startup_offer theirs =
		answering_offer(MPA_RTR_SEND | MPA_RTR_READ, 1, 1, 1);

	request_bytes = mpa_write(request, &f);
	accept_with(&theirs);
	assert_int_equal(responder.agreed.rtr, theirs.rtr);
}

/* ---- the stream that follows ---- */

static void a_stream_has_what_was_agreed(void **state)
{
	struct startup_offer a = enhanced_offer(MPA_RTR_WRITE);
	struct startup_offer b =
		answering_offer(MPA_RTR_WRITE | MPA_RTR_READ, 3, 5, 200);
	struct stream_config c;

	a.wants_crc = true;
	b.wants_markers = true;
	start_both(&a, &b);
	startup_stream(&initiator, 1448, &c);
	assert_true(c.has_crc && c.tx_markers && !c.rx_markers);
	assert_false(c.is_responder || c.has_extensions);
	assert_int_equal(c.rtr, MPA_RTR_WRITE);
	assert_int_equal(c.ird, 4);
	assert_int_equal(c.ord, 4);
	startup_stream(&responder, 1448, &c);
	assert_true(c.has_crc && c.rx_markers && !c.tx_markers);
	assert_true(c.is_responder);
	assert_int_equal(c.rtr, MPA_RTR_WRITE);
	assert_int_equal(c.ird, 4);
	assert_int_equal(c.ord, 4);
}

/* Depths that MPA does not negotiate are those of the offer, but at most
 * HCA_MAX_RD_ATOMIC. */
static void a_stream_has_no_more_depth_than_the_adapter(void **state)
{
	struct startup_offer a = enhanced_offer(0), old = plain;
	struct startup_offer b = answering_offer(MPA_RTR_ALL, 7, 9, 7);
	struct stream_config c;

	a.ird = MPA_DEPTH_MAX;
	a.ord = MPA_DEPTH_MAX;
	start_both(&a, &b);
	startup_stream(&initiator, 1448, &c);
	assert_int_equal(c.ird, HCA_MAX_RD_ATOMIC);
	assert_int_equal(c.ord, HCA_MAX_RD_ATOMIC);
	startup_stream(&responder, 1448, &c);
	assert_int_equal(c.ird, 7);
	assert_int_equal(c.ord, 9);
	old.ord = HCA_MAX_RD_ATOMIC + 1;
	start_both(&old, &b);
	startup_stream(&initiator, 1448, &c);
	assert_int_equal(c.ird, 4);
	assert_int_equal(c.ord, HCA_MAX_RD_ATOMIC);
	assert_int_equal(c.rtr, 0);
}

/* RFC 5044 3 and 4.5. */
static void an_fpdu_fits_into_a_segment(void **state)
{
	static const struct {
		uint32_t segment, plain, marked;
	} rows[] = {
		{1448, 1442, 1430},
		{1449, 1442, 1430},
		{1451, 1442, 1430},
		{8948, 8942, 8870},
		{65483, 64768, 64768},
		{UINT32_MAX, 64768, 64768},
		{512, 506, 502},
		{536, 530, 522},
		{138, 130, STREAM_ULPDU_MIN},
		{0, 128, 128},
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		for (int has_markers = 0; has_markers < 2; has_markers++) {
			struct startup_offer b =
				answering_offer(MPA_RTR_ALL, 1, 1, 1);
			struct stream_config c;

			b.wants_markers = has_markers;
			start_both(&plain, &b);
			startup_stream(&initiator, rows[i].segment, &c);
			assert_int_equal(c.ulpdu_max, has_markers
							      ? rows[i].marked
							      : rows[i].plain);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(depths_are_lowered_and_raised_as_the_rfc_says),
		cmocka_unit_test(without_enhanced_data_depths_stay),
		cmocka_unit_test(
			too_much_ord_of_the_responder_ends_in_a_terminate),
		cmocka_unit_test(
			each_pair_of_kinds_ends_in_one_kind_or_an_error),
		cmocka_unit_test(a_read_as_first_fpdu_needs_an_ird_of_one),
		cmocka_unit_test(both_ends_must_use_the_same_model),
		cmocka_unit_test(a_request_without_a_kind_is_offered_all),
		cmocka_unit_test(a_stream_has_what_was_agreed),
		cmocka_unit_test(a_stream_has_no_more_depth_than_the_adapter),
		cmocka_unit_test(an_fpdu_fits_into_a_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
