/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of an MPA connection: how each end handles each frame of its peer,
 * wherever the stream is cut. */
#include "test.h"

#include "iwarp/startup.h"
#include "iwarp/stream.h"

#include <ctype.h>
#include <errno.h>

#define DEADLINE 1000u /* ns */

static const uint8_t words[] = "who goes there", answer[] = "a friend";

/* The two ends, and the bytes from one to the other. */
static struct startup initiator, responder;
static uint8_t request[MPA_FRAME_MAX + 8], reply[MPA_FRAME_MAX + 8];
static int request_bytes, reply_bytes;

static const struct startup_offer plain = {
	.revision = 1,
	.rtr = MPA_RTR_ALL,
	.ird = 4,
	.ord = 4,
	.ird_max = 8,
	.private_data = words,
	.private_bytes = sizeof(words),
};

static struct startup_offer enhanced_offer(uint8_t rtr)
{
	struct startup_offer offer = plain;

	offer.revision = 2;
	offer.is_enhanced = true;
	offer.is_peer_to_peer = rtr != 0;
	offer.rtr = rtr;
	return offer;
}

static struct startup_offer answering_offer(uint8_t rtr, uint16_t ird,
					    uint16_t ord, uint16_t ird_max)
{
	return (struct startup_offer){
		.rtr = rtr,
		.ird = ird,
		.ord = ord,
		.ird_max = ird_max,
		.private_data = answer,
		.private_bytes = sizeof(answer),
	};
}

/* Feeds a stream in two parts.  All its bytes belong to the frame. */
static void feed_parts(struct startup *s, const uint8_t *p, int n, int cut)
{
	assert_int_equal(startup_take(s, p, (size_t)cut), cut);
	if (cut < n)
		assert_int_equal(s->state, STARTUP_WAITS);
	assert_int_equal(startup_take(s, p + cut, (size_t)(n - cut)), n - cut);
}

static void connect_with(const struct startup_offer *offer)
{
	request_bytes = startup_connect(&initiator, offer, DEADLINE, request);
	assert_true(request_bytes >= MPA_HEAD);
	assert_int_equal(initiator.state, STARTUP_WAITS);
}

/* The responder gets the request, and answers it. */
static void accept_with(const struct startup_offer *offer)
{
	startup_listen(&responder, 2, DEADLINE);
	feed_parts(&responder, request, request_bytes, request_bytes / 2);
	assert_int_equal(responder.state, STARTUP_REQUESTED);
	reply_bytes = startup_accept(&responder, offer, reply);
	assert_true(reply_bytes >= MPA_HEAD);
	assert_int_equal(responder.state, STARTUP_ACCEPTED);
}

/* Starts both ends with these offers.  The initiator's state is the result. */
static void start_both(const struct startup_offer *mine,
		       const struct startup_offer *theirs)
{
	connect_with(mine);
	accept_with(theirs);
	feed_parts(&initiator, reply, reply_bytes, reply_bytes / 2);
}

static void assert_failed(const struct startup *s, enum startup_error error)
{
	assert_int_equal(s->state, STARTUP_FAILED);
	assert_int_equal(s->error, error);
	assert_true(startup_deadline(s) == UINT64_MAX);
}

/* Gives the initiator a reply that the test has made. */
static void reply_frame(const struct mpa_frame *f)
{
	reply_bytes = mpa_write(reply, f);
	assert_true(reply_bytes > 0);
	assert_int_equal(startup_take(&initiator, reply, (size_t)reply_bytes),
			 reply_bytes);
}

/* The layer, the type and the code of a Terminate (RFC 5044 8, RFC 6581 8). */
static void assert_code(enum startup_error error, uint8_t code)
{
	const struct terminate_row *row =
		terminate_row(startup_verdict(error)->cause);

	assert_int_equal(row->layer, 2);
	assert_int_equal(row->type, 0);
	assert_int_equal(row->code, code);
}

/* ---- both ends ---- */

static void assert_same_start(bool is_enhanced)
{
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
	assert_int_equal(initiator.peer.private_bytes, sizeof(answer));
	assert_memory_equal(initiator.peer.private_data, answer,
			    sizeof(answer));
	assert_int_equal(initiator.agreed.is_enhanced, is_enhanced);
	assert_int_equal(responder.agreed.is_enhanced, is_enhanced);
	assert_int_equal(initiator.agreed.ord, 4);
	assert_false(initiator.agreed.awaits_fpdu);
	assert_true(responder.agreed.awaits_fpdu);
}

static void each_revision_starts_wherever_the_streams_are_cut(void **state)
{
	struct startup_offer offers[] = {plain, plain, enhanced_offer(0),
					 enhanced_offer(MPA_RTR_ALL)};
	struct startup_offer theirs = answering_offer(MPA_RTR_ALL, 4, 4, 8);

	offers[1].revision = 2; /* without enhanced data */
	for (size_t i = 0; i < TEST_COUNT(offers); i++) {
		connect_with(&offers[i]);
		for (int cut = 0; cut <= request_bytes; cut++) {
			startup_listen(&responder, 2, DEADLINE);
			feed_parts(&responder, request, request_bytes, cut);
			assert_int_equal(responder.state, STARTUP_REQUESTED);
			assert_int_equal(responder.peer.revision,
					 offers[i].revision);
			assert_int_equal(responder.peer.private_bytes,
					 sizeof(words));
			assert_memory_equal(responder.peer.private_data, words,
					    sizeof(words));
		}
		reply_bytes = startup_accept(&responder, &theirs, reply);
		for (int cut = 0; cut <= reply_bytes; cut++) {
			connect_with(&offers[i]);
			feed_parts(&initiator, reply, reply_bytes, cut);
			assert_same_start(offers[i].is_enhanced);
		}
	}
}

static void a_stream_of_single_bytes_starts(void **state)
{
	struct startup_offer mine = enhanced_offer(MPA_RTR_WRITE);
	struct startup_offer theirs = answering_offer(MPA_RTR_WRITE, 1, 1, 1);

	connect_with(&mine);
	startup_listen(&responder, 2, DEADLINE);
	for (int i = 0; i < request_bytes; i++) {
		assert_int_equal(responder.state, STARTUP_WAITS);
		assert_int_equal(startup_take(&responder, request + i, 1), 1);
	}
	reply_bytes = startup_accept(&responder, &theirs, reply);
	for (int i = 0; i < reply_bytes; i++) {
		assert_int_equal(initiator.state, STARTUP_WAITS);
		assert_int_equal(startup_take(&initiator, reply + i, 1), 1);
	}
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
	assert_int_equal(initiator.agreed.rtr, MPA_RTR_WRITE);
}

/* RFC 5044 7.1.1 */
static void crc_is_used_if_either_end_wants_it(void **state)
{
	for (int choice = 0; choice < 8; choice++) {
		bool mine = choice & 1, theirs = choice & 2;
		struct startup_offer a = choice & 4 ? enhanced_offer(0) : plain;
		struct startup_offer b = answering_offer(MPA_RTR_ALL, 4, 4, 8);

		a.wants_crc = mine;
		b.wants_crc = theirs;
		start_both(&a, &b);
		assert_int_equal(initiator.agreed.has_crc, mine || theirs);
		assert_int_equal(responder.agreed.has_crc, mine || theirs);
		/* the kernel's siw looks at the reply alone */
		assert_int_equal(initiator.peer.wants_crc, mine || theirs);
	}
}

/* RFC 5044 7.1.1 */
static void markers_are_sent_to_the_end_that_wants_them(void **state)
{
	for (int choice = 0; choice < 4; choice++) {
		bool mine = choice & 1, theirs = choice & 2;
		struct startup_offer a = plain;
		struct startup_offer b = answering_offer(MPA_RTR_ALL, 4, 4, 8);

		a.wants_markers = mine;
		b.wants_markers = theirs;
		start_both(&a, &b);
		assert_int_equal(initiator.agreed.rx_markers, mine);
		assert_int_equal(responder.agreed.tx_markers, mine);
		assert_int_equal(responder.agreed.rx_markers, theirs);
		assert_int_equal(initiator.agreed.tx_markers, theirs);
	}
}

/* RFC 5044 7.1.2, RFC 6581 9.1 */
static void a_reject_carries_private_data_and_depths(void **state)
{
	struct startup_offer theirs = answering_offer(MPA_RTR_READ, 9, 17, 20);

	for (int is_enhanced = 0; is_enhanced < 2; is_enhanced++) {
		struct startup_offer mine =
			is_enhanced ? enhanced_offer(MPA_RTR_WRITE) : plain;

		connect_with(&mine);
		startup_listen(&responder, 2, DEADLINE);
		feed_parts(&responder, request, request_bytes, 1);
		reply_bytes = startup_reject(&responder, &theirs, reply);
		assert_int_equal(responder.state, STARTUP_REJECTED);
		/* bytes that follow a reject do not belong to MPA */
		reply[reply_bytes] = 'x';
		assert_int_equal(startup_take(&initiator, reply,
					      (size_t)reply_bytes + 1),
				 reply_bytes);
		assert_int_equal(startup_take(&initiator, reply, 1), 0);
		assert_int_equal(initiator.state, STARTUP_REJECTED);
		assert_int_equal(initiator.peer.private_bytes, sizeof(answer));
		assert_memory_equal(initiator.peer.private_data, answer,
				    sizeof(answer));
		assert_int_equal(initiator.peer.enhanced.ird,
				 is_enhanced ? 9 : 0);
		assert_int_equal(initiator.peer.enhanced.ord,
				 is_enhanced ? 17 : 0);
	}
}

/* ---- IRD and ORD (RFC 6581 9.1) ---- */

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
	/* each ORD is lowered to the other's IRD */
	{{2, 9, 2}, {3, 9, 3}, 2, 3, 3, 2},
	/* the responder raises its IRD to the initiator's ORD, up to a limit */
	{{2, 9, 2}, {3, 1, 16}, 2, 9, 9, 1},
	{{2, 9, 2}, {3, 1, 5}, 2, 5, 5, 1},
	/* IRD that is not needed stays */
	{{7, 1, 7}, {7, 1, 7}, 7, 1, 7, 1},
	{{0, 0, 0}, {0, 0, 1}, 0, 0, 0, 0},
	/* the consumers set the depths: neither end changes a depth */
	{{ALL, ALL, 0}, {3, 5, 9}, ALL, ALL, 3, 5},
	{{ALL, 6, 0}, {3, 5, 9}, ALL, 6, 6, 5},
	{{6, ALL, 6}, {3, 5, 9}, 6, ALL, 3, 5},
	/* only the responder's consumer sets the depths */
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

/* RFC 6581 8 and 9.1. */
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
	/* a responder that accepts another kind too */
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

/* Depths that MPA does not negotiate are those of the offer. */
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

/* ---- revisions ---- */

/* Starts an initiator, and gives it a reply of this revision and form. */
static void reply_of_revision(const struct startup_offer *offer,
			      uint8_t revision, bool is_enhanced,
			      bool is_rejected)
{
	connect_with(offer);
	reply_frame(&(struct mpa_frame){.kind = MPA_REPLY,
					.revision = revision,
					.is_rejected = is_rejected,
					.is_enhanced = is_enhanced});
}

static void a_reply_of_another_revision_is_refused(void **state)
{
	struct startup_offer mine = enhanced_offer(0);

	for (int is_rejected = 0; is_rejected < 2; is_rejected++) {
		reply_of_revision(&mine, 1, false, is_rejected);
		assert_failed(&initiator, STARTUP_OLD_REVISION);
		reply_of_revision(&mine, 0, false, is_rejected);
		assert_failed(&initiator, STARTUP_BAD_REVISION);
		reply_of_revision(&mine, 3, false, is_rejected);
		assert_failed(&initiator, STARTUP_BAD_REVISION);
		reply_of_revision(&plain, 2, true, is_rejected);
		assert_failed(&initiator, STARTUP_BAD_REVISION);
	}
	assert_true(startup_verdict(STARTUP_OLD_REVISION)->is_old_peer);
	assert_false(startup_verdict(STARTUP_BAD_REVISION)->is_old_peer);
	assert_code(STARTUP_BAD_REVISION, 4);
	/* the caller connects again */
	reply_of_revision(&plain, 1, false, false);
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
}

/* RFC 6581 10 */
static void the_reply_has_the_form_of_the_request(void **state)
{
	struct startup_offer mine = enhanced_offer(0), bare = plain;

	bare.revision = 2;
	reply_of_revision(&mine, 2, false, false);
	assert_failed(&initiator, STARTUP_BAD_REPLY);
	reply_of_revision(&bare, 2, true, false);
	assert_failed(&initiator, STARTUP_BAD_REPLY);
	/* a reject of either form is a reject */
	reply_of_revision(&mine, 2, false, true);
	assert_int_equal(initiator.state, STARTUP_REJECTED);
	reply_of_revision(&bare, 2, true, true);
	assert_int_equal(initiator.state, STARTUP_REJECTED);
}

/* RFC 5044 7.1.1, RFC 6581 6 */
static void a_responder_refuses_revisions_that_it_lacks(void **state)
{
	for (uint8_t most = 1; most <= 2; most++)
		for (uint8_t asked = 0; asked < 4; asked++) {
			request_bytes = mpa_write(
				request,
				&(struct mpa_frame){.kind = MPA_REQUEST,
						    .revision = asked});
			startup_listen(&responder, most, DEADLINE);
			feed_parts(&responder, request, request_bytes, 17);
			if (asked == 0 || asked > most)
				assert_failed(&responder, STARTUP_BAD_REVISION);
			else
				assert_int_equal(responder.state,
						 STARTUP_REQUESTED);
		}
}

/* RFC 5044 7.1.1: a peer closes upon a revision that it does not have. */
static void a_closed_stream_may_mean_an_old_peer(void **state)
{
	struct startup_offer mine = enhanced_offer(0);

	connect_with(&mine);
	startup_end(&initiator);
	assert_failed(&initiator, STARTUP_NO_REPLY);
	assert_code(STARTUP_NO_REPLY, 1);
	assert_true(startup_verdict(STARTUP_NO_REPLY)->is_old_peer);
	connect_with(&mine);
	startup_take(&initiator, (const uint8_t *)"MPA", 3);
	startup_end(&initiator);
	assert_failed(&initiator, STARTUP_CLOSED);
	assert_false(startup_verdict(STARTUP_CLOSED)->is_old_peer);
	connect_with(&plain);
	startup_end(&initiator);
	assert_failed(&initiator, STARTUP_CLOSED);
	startup_listen(&responder, 2, DEADLINE);
	startup_end(&responder);
	assert_failed(&responder, STARTUP_CLOSED);
	/* while the consumer decides */
	startup_listen(&responder, 2, DEADLINE);
	startup_take(&responder, request, (size_t)request_bytes);
	assert_int_equal(responder.state, STARTUP_REQUESTED);
	startup_end(&responder);
	assert_failed(&responder, STARTUP_CLOSED);
}

static void an_end_after_the_result_changes_nothing(void **state)
{
	struct startup_offer mine = enhanced_offer(0);
	struct startup_offer theirs = answering_offer(MPA_RTR_ALL, 4, 4, 8);

	start_both(&mine, &theirs);
	startup_end(&initiator);
	startup_end(&responder);
	startup_tick(&initiator, UINT64_MAX - 1);
	startup_tick(&responder, UINT64_MAX - 1);
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
	assert_int_equal(responder.state, STARTUP_ACCEPTED);
}

/* ---- hostile streams ---- */

/* RFC 5044 7.1.1 and 7.1.2 */
static void a_wrong_key_is_found_at_its_first_wrong_byte(void **state)
{
	for (int at = 0; at < 16; at++) {
		connect_with(&plain);
		request[at] ^= 0x20;
		startup_listen(&responder, 2, DEADLINE);
		assert_int_equal(startup_take(&responder, request, (size_t)at),
				 at);
		assert_int_equal(responder.state, STARTUP_WAITS);
		startup_take(&responder, request + at, 1);
		assert_failed(&responder, STARTUP_BAD_KEY);
		assert_int_equal(startup_take(&responder, request, 1), 0);
		assert_failed(&responder, STARTUP_BAD_KEY);
	}
	/* each end refuses the other's kind of frame */
	connect_with(&plain);
	startup_take(&initiator, request, (size_t)request_bytes);
	assert_failed(&initiator, STARTUP_BAD_KEY);
	assert_code(STARTUP_BAD_KEY, 4);
}

static void a_wrong_length_is_found_with_the_head(void **state)
{
	struct startup_offer mine = enhanced_offer(0);

	connect_with(&mine);
	request[18] = 2; /* 512 and more */
	request[19] = 1;
	startup_listen(&responder, 2, DEADLINE);
	startup_take(&responder, request, MPA_HEAD - 1);
	assert_int_equal(responder.state, STARTUP_WAITS);
	startup_take(&responder, request + MPA_HEAD - 1, 1);
	assert_failed(&responder, STARTUP_BAD_LENGTH);
	request[18] = 0; /* less than the enhanced data */
	request[19] = 3;
	startup_listen(&responder, 2, DEADLINE);
	startup_take(&responder, request, MPA_HEAD);
	assert_failed(&responder, STARTUP_BAD_LENGTH);
}

static void a_frame_of_the_greatest_size_is_taken(void **state)
{
	static const uint8_t much[MPA_PRIVATE_MAX + 1] = {7};
	static uint8_t stream[4 * MPA_FRAME_MAX];
	struct startup_offer mine = enhanced_offer(0);

	mine.private_data = much;
	mine.private_bytes = MPA_PRIVATE_MAX - MPA_ENHANCED;
	connect_with(&mine);
	assert_int_equal(request_bytes, MPA_FRAME_MAX);
	startup_listen(&responder, 2, DEADLINE);
	feed_parts(&responder, request, request_bytes, 100);
	assert_int_equal(responder.state, STARTUP_REQUESTED);
	assert_int_equal(responder.peer.private_bytes, mine.private_bytes);
	/* more bytes follow the frame */
	memcpy(stream, request, MPA_FRAME_MAX);
	startup_listen(&responder, 2, DEADLINE);
	assert_int_equal(startup_take(&responder, stream, sizeof(stream)),
			 MPA_FRAME_MAX);
	assert_failed(&responder, STARTUP_EARLY);
	mine.private_bytes++;
	assert_int_equal(startup_connect(&initiator, &mine, DEADLINE, request),
			 -EMSGSIZE);
}

static void an_answer_with_too_much_data_changes_nothing(void **state)
{
	static const uint8_t much[MPA_PRIVATE_MAX];
	struct startup_offer mine = enhanced_offer(0);
	struct startup_offer theirs = answering_offer(MPA_RTR_ALL, 4, 4, 8);

	connect_with(&mine);
	startup_listen(&responder, 2, DEADLINE);
	feed_parts(&responder, request, request_bytes, 5);
	theirs.private_data = much;
	theirs.private_bytes = MPA_PRIVATE_MAX - MPA_ENHANCED + 1;
	assert_int_equal(startup_accept(&responder, &theirs, reply), -EMSGSIZE);
	assert_int_equal(startup_reject(&responder, &theirs, reply), -EMSGSIZE);
	assert_int_equal(responder.state, STARTUP_REQUESTED);
	theirs.private_bytes--;
	assert_int_equal(startup_accept(&responder, &theirs, reply),
			 MPA_FRAME_MAX);
}

/* RFC 5044 7.1.2 */
static void bytes_behind_a_frame_are_an_error(void **state)
{
	struct startup_offer mine = enhanced_offer(MPA_RTR_SEND);
	struct startup_offer theirs = answering_offer(MPA_RTR_ALL, 4, 4, 8);

	connect_with(&mine);
	for (int cut = 0; cut <= request_bytes + 1; cut++) {
		size_t n = (size_t)(request_bytes + 1 - cut), taken;

		startup_listen(&responder, 2, DEADLINE);
		taken = startup_take(&responder, request, (size_t)cut);
		taken += startup_take(&responder, request + cut, n);
		assert_int_equal(taken, request_bytes);
		assert_failed(&responder, STARTUP_EARLY);
	}
	accept_with(&theirs);
	for (int cut = 0; cut <= reply_bytes + 1; cut++) {
		size_t n = (size_t)(reply_bytes + 1 - cut), taken;

		connect_with(&mine);
		taken = startup_take(&initiator, reply, (size_t)cut);
		taken += startup_take(&initiator, reply + cut, n);
		assert_int_equal(taken, reply_bytes);
		assert_failed(&initiator, STARTUP_EARLY);
	}
}

static void a_slow_peer_does_not_move_the_deadline(void **state)
{
	connect_with(&plain);
	startup_listen(&responder, 2, DEADLINE);
	for (int i = 0; i < request_bytes - 1; i++) {
		startup_take(&responder, request + i, 1);
		assert_int_equal(startup_deadline(&responder), DEADLINE);
		startup_tick(&responder, DEADLINE - 1);
		assert_int_equal(responder.state, STARTUP_WAITS);
	}
	startup_tick(&responder, DEADLINE);
	assert_failed(&responder, STARTUP_TIMED_OUT);
	assert_code(STARTUP_TIMED_OUT, 1);
	assert_int_equal(startup_deadline(&initiator), DEADLINE);
	startup_tick(&initiator, DEADLINE + 5);
	assert_failed(&initiator, STARTUP_TIMED_OUT);
	/* the consumer may take any time to decide */
	startup_listen(&responder, 2, DEADLINE);
	startup_take(&responder, request, (size_t)request_bytes);
	assert_true(startup_deadline(&responder) == UINT64_MAX);
	startup_tick(&responder, DEADLINE);
	assert_int_equal(responder.state, STARTUP_REQUESTED);
}

static void each_error_tells_the_user_what_to_do(void **state)
{
	assert_null(startup_verdict(STARTUP_NO_ERROR)->text);
	for (int i = STARTUP_NO_ERROR + 1; i < STARTUP_ERRORS; i++) {
		const char *text = startup_verdict((enum startup_error)i)->text;

		assert_non_null(text);
		assert_non_null(strstr(text, "; "));
		assert_true(strlen(text) < 200);
		assert_true(islower((unsigned char)text[0]));
		assert_true(text[strlen(text) - 1] != '.');
		for (int k = STARTUP_NO_ERROR + 1; k < i; k++)
			assert_string_not_equal(
				text,
				startup_verdict((enum startup_error)k)->text);
	}
}

static void each_cause_of_a_terminate_has_its_own_text(void **state)
{
	for (int i = TERMINATE_NONE + 1; i < TERMINATE_CAUSES; i++) {
		const struct terminate_row *row =
			terminate_row((enum terminate_cause)i);

		assert_non_null(row->text);
		assert_int_equal(
			terminate_find(row->layer, row->type, row->code), i);
		for (int k = TERMINATE_NONE + 1; k < i; k++)
			assert_string_not_equal(
				row->text,
				terminate_row((enum terminate_cause)k)->text);
	}
}

/* The kernel's siw can set a bit that RFC 5044 reserves. */
static void reserved_bits_are_ignored(void **state)
{
	struct startup_offer mine = enhanced_offer(0);
	struct startup_offer theirs = answering_offer(MPA_RTR_ALL, 4, 4, 8);

	connect_with(&mine);
	request[16] |= 0x0f | 0x20; /* R has no meaning in a request */
	accept_with(&theirs);
	reply[16] |= 0x0f;
	feed_parts(&initiator, reply, reply_bytes, 3);
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			each_revision_starts_wherever_the_streams_are_cut),
		cmocka_unit_test(a_stream_of_single_bytes_starts),
		cmocka_unit_test(crc_is_used_if_either_end_wants_it),
		cmocka_unit_test(markers_are_sent_to_the_end_that_wants_them),
		cmocka_unit_test(a_reject_carries_private_data_and_depths),
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
		cmocka_unit_test(a_reply_of_another_revision_is_refused),
		cmocka_unit_test(the_reply_has_the_form_of_the_request),
		cmocka_unit_test(a_responder_refuses_revisions_that_it_lacks),
		cmocka_unit_test(a_closed_stream_may_mean_an_old_peer),
		cmocka_unit_test(an_end_after_the_result_changes_nothing),
		cmocka_unit_test(a_wrong_key_is_found_at_its_first_wrong_byte),
		cmocka_unit_test(a_wrong_length_is_found_with_the_head),
		cmocka_unit_test(a_frame_of_the_greatest_size_is_taken),
		cmocka_unit_test(an_answer_with_too_much_data_changes_nothing),
		cmocka_unit_test(bytes_behind_a_frame_are_an_error),
		cmocka_unit_test(a_slow_peer_does_not_move_the_deadline),
		cmocka_unit_test(reserved_bits_are_ignored),
		cmocka_unit_test(each_error_tells_the_user_what_to_do),
		cmocka_unit_test(each_cause_of_a_terminate_has_its_own_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
