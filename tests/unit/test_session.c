/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp/session and iwarp/startup, DDP over SCTP (RFC 5043): the bytes of the
 * messages, and how each end handles the peer's messages at the start of a
 * session, in any order. */
#include "test.h"

#include "iwarp/startup.h"
#include "iwarp/stream.h"

#include <errno.h>

#define DEADLINE 1000u /* ns */

static const uint8_t words[] = "private";

static const struct mpa_frame full = {
	.kind = MPA_REPLY,
	.is_enhanced = true,
	.enhanced = {.ird = 0x1234, .ord = 5, .rtr = MPA_RTR_READ},
	.private_data = words,
	.private_bytes = sizeof(words),
};

/* ---- the bytes ---- */

static void a_message_has_the_bytes_of_the_specification(void **state)
{
	/* RFC 5043 5.2.1 to 5.2.3, RFC 6581 7 */
	static const uint8_t wire[] = {0,   0,	  0,	17,   0xab, 0xcd, 0,
				       6,   0x12, 0x34, 0x40, 5,    'p',  'r',
				       'i', 'v',  'a',	't',  'e',  0};
	static const uint8_t end[] = {0, 0, 0, 17, 0, 9, 0, 4};
	static const uint8_t head[] = {0, 0, 0, 16, 0x12, 0x34};
	uint8_t p[SESSION_FRAME_MAX];

	assert_int_equal(session_write_control(p, 0xabcd, &full), sizeof(wire));
	assert_memory_equal(p, wire, sizeof(wire));
	session_write_terminate(p, 9);
	assert_memory_equal(p, end, sizeof(end));
	session_write_head(p, SESSION_SEGMENT, 0x1234);
	assert_memory_equal(p, head, sizeof(head));
}

/* A request or a reply, of each form. */
static const struct {
	enum session_function function;
	enum mpa_kind kind;
	bool is_rejected, is_enhanced;
} forms[] = {
	{SESSION_INITIATE, MPA_REQUEST, false, false},
	{SESSION_ACCEPT, MPA_REPLY, false, false},
	{SESSION_REJECT, MPA_REPLY, true, false},
	{SESSION_ENHANCED_INITIATE, MPA_REQUEST, false, true},
	{SESSION_ENHANCED_ACCEPT, MPA_REPLY, false, true},
	{SESSION_ENHANCED_REJECT, MPA_REPLY, true, true},
};

static void messages_are_read_as_they_were_written(void **state)
{
	for (uint32_t i = 0; i < TEST_COUNT(forms); i++) {
		uint8_t p[SESSION_FRAME_MAX];
		struct mpa_frame f, g = full;
		bool has_data;
		uint32_t ppid;
		uint16_t ssn;
		int n;

		g.kind = forms[i].kind;
		g.is_rejected = forms[i].is_rejected;
		g.is_enhanced = forms[i].is_enhanced;
		has_data = g.is_enhanced && !g.is_rejected;
		n = session_write_control(p, 7, &g);
		assert_int_equal(n, 8 + (has_data ? 4 : 0) + sizeof(words));
		assert_true(session_parse_head(p, (size_t)n, &ppid, &ssn));
		assert_int_equal(ppid, SESSION_CONTROL);
		assert_int_equal(ssn, 7);
		assert_int_equal(session_parse_control(p, (size_t)n, &f),
				 forms[i].function);
		assert_int_equal(f.kind, g.kind);
		assert_int_equal(f.is_rejected, g.is_rejected);
		assert_int_equal(f.is_enhanced, g.is_enhanced);
		assert_int_equal(f.enhanced.ird, has_data ? 0x1234 : 0);
		assert_int_equal(f.private_bytes, sizeof(words));
		assert_memory_equal(f.private_data, words, sizeof(words));
	}
}

static void lengths_and_functions_that_are_wrong_are_refused(void **state)
{
	uint8_t p[SESSION_FRAME_MAX + 1] = {0};
	struct mpa_frame f, long_frame = full;
	uint32_t ppid;
	uint16_t ssn;

	for (size_t n = 0; n < SESSION_CONTROL_BYTES; n++)
		assert_int_equal(session_parse_control(p, n, &f), -EMSGSIZE);
	for (size_t n = 0; n < SESSION_HEAD; n++)
		assert_false(session_parse_head(p, n, &ppid, &ssn));
	assert_false(session_parse_head(p, sizeof(p), &ppid, &ssn));
	session_write_terminate(p, 0);
	assert_int_equal(
		session_parse_control(p, SESSION_CONTROL_BYTES + 1, &f),
		-EMSGSIZE);
	for (int code = 0; code < 0x10000; code++) {
		p[6] = (uint8_t)(code >> 8);
		p[7] = (uint8_t)code;
		if (!code || code >= SESSION_FUNCTIONS)
			assert_int_equal(session_parse_control(p, 8, &f),
					 -EPROTO);
	}
	p[6] = 0;
	p[7] = SESSION_ENHANCED_INITIATE;
	assert_int_equal(session_parse_control(p, 11, &f), -EMSGSIZE);
	assert_int_equal(session_parse_control(p, 12, &f),
			 SESSION_ENHANCED_INITIATE);
	assert_int_equal(session_parse_control(p, SESSION_FRAME_MAX, &f),
			 SESSION_ENHANCED_INITIATE);
	assert_int_equal(session_parse_control(p, sizeof(p), &f), -EMSGSIZE);
	long_frame.private_bytes = MPA_PRIVATE_MAX - 3;
	assert_int_equal(session_write_control(p, 0, &long_frame), -EMSGSIZE);
}

/* ---- the start ---- */

static struct startup initiator, responder;
static uint8_t request[MPA_FRAME_MAX], reply[MPA_FRAME_MAX];
static int request_bytes, reply_bytes;

static struct startup_offer make_offer(uint16_t ird, uint16_t ord)
{
	return (struct startup_offer){
		.revision = 2,
		.is_session = true,
		.is_enhanced = true,
		.wants_crc = true,
		.wants_markers = true,
		.rtr = MPA_RTR_ALL,
		.ird = ird,
		.ord = ord,
		.ird_max = 8,
		.private_data = words,
		.private_bytes = sizeof(words),
	};
}

static void give_bytes(struct startup *s, const uint8_t *p, int n)
{
	assert_int_equal(startup_take(s, p, (size_t)n), n);
}

static void ask_responder(const struct startup_offer *offer)
{
	request_bytes = startup_connect(&initiator, offer, DEADLINE, request);
	assert_true(request_bytes > 0);
	startup_listen_session(&responder, DEADLINE);
	give_bytes(&responder, request, request_bytes);
	assert_int_equal(responder.state, STARTUP_REQUESTED);
	assert_memory_equal(responder.peer.private_data, words, sizeof(words));
}

static void assert_failed(const struct startup *s, enum startup_error error)
{
	assert_int_equal(s->state, STARTUP_FAILED);
	assert_int_equal(s->error, error);
}

/* RFC 5043 6.2, RFC 6581 9.1. */
static void two_ends_agree_without_crc_and_markers(void **state)
{
	struct startup_offer mine = make_offer(4, 3), theirs = make_offer(2, 9);
	struct stream_config a, b;

	ask_responder(&mine);
	reply_bytes = startup_accept(&responder, &theirs, reply);
	give_bytes(&initiator, reply, reply_bytes);
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
	startup_stream(&initiator, 1400, &a);
	startup_stream(&responder, 100, &b);
	assert_true(a.is_session && b.is_session);
	assert_false(a.has_crc || a.tx_markers || a.rx_markers);
	assert_false(b.has_crc || b.tx_markers || b.rx_markers);
	/* each may send first (RFC 6581 7) */
	assert_false(a.is_responder || b.is_responder);
	assert_int_equal(a.ord, 3);
	assert_int_equal(b.ird, 3);
	assert_int_equal(b.ord, 4);
	assert_int_equal(a.ulpdu_max, 1400);
	assert_int_equal(b.ulpdu_max, SESSION_SEGMENT_MIN);
}

/* RFC 5043 6.3. */
static void a_rejection_brings_the_programs_private_data(void **state)
{
	struct startup_offer mine = make_offer(4, 3);

	for (int is_enhanced = 0; is_enhanced < 2; is_enhanced++) {
		mine.is_enhanced = is_enhanced;
		ask_responder(&mine);
		reply_bytes = startup_reject(&responder, &mine, reply);
		assert_int_equal(reply[7], is_enhanced ? SESSION_ENHANCED_REJECT
						       : SESSION_REJECT);
		give_bytes(&initiator, reply, reply_bytes);
		assert_int_equal(initiator.state, STARTUP_REJECTED);
		assert_memory_equal(initiator.peer.private_data, words,
				    sizeof(words));
	}
}

/* RFC 5043 6.4: the responder sends a Terminate in place of a reply, or the
 * initiator withdraws the request by a Terminate. */
static void a_request_may_be_refused_or_withdrawn(void **state)
{
	struct startup_offer mine = make_offer(4, 3);
	uint8_t end[SESSION_CONTROL_BYTES];

	ask_responder(&mine);
	assert_int_equal(startup_end_session(&responder, end), sizeof(end));
	assert_int_equal(end[5], 0);
	give_bytes(&initiator, end, sizeof(end));
	assert_failed(&initiator, STARTUP_SESSION_REFUSED);
	ask_responder(&mine);
	startup_end_session(&initiator, end);
	assert_int_equal(end[5], 1);
	give_bytes(&responder, end, sizeof(end));
	assert_failed(&responder, STARTUP_SESSION_CLOSED);
}

/* Messages that the responder sends after its reply may arrive before the
 * reply. */
static void messages_before_the_reply_are_kept(void **state)
{
	struct startup_offer mine = make_offer(4, 3);
	uint8_t early[40] = {0};
	uint32_t bytes;

	ask_responder(&mine);
	reply_bytes = startup_accept(&responder, &mine, reply);
	for (uint16_t ssn = 2; ssn; ssn--) {
		session_write_head(early, SESSION_SEGMENT, ssn);
		give_bytes(&initiator, early, 30 + ssn);
		assert_int_equal(initiator.state, STARTUP_WAITS);
	}
	give_bytes(&initiator, reply, reply_bytes);
	assert_int_equal(initiator.state, STARTUP_ACCEPTED);
	assert_int_equal(initiator.early_bytes, 4 + 32 + 4 + 31);
	memcpy(&bytes, initiator.early, 4);
	assert_int_equal(bytes, 32);
	assert_int_equal(initiator.early[4 + 5], 2);
	memcpy(&bytes, initiator.early + 36, 4);
	assert_int_equal(bytes, 31);
	startup_fini(&initiator);
}

static void no_more_is_kept_than_there_is_room_for(void **state)
{
	struct startup_offer mine = make_offer(4, 3);
	static uint8_t early[1000];
	int taken = 0;

	ask_responder(&mine);
	session_write_head(early, SESSION_SEGMENT, 1);
	while (initiator.state == STARTUP_WAITS && taken++ < 100)
		give_bytes(&initiator, early, sizeof(early));
	assert_failed(&initiator, STARTUP_SESSION_EARLY);
	assert_int_equal(taken, STARTUP_EARLY_MAX / 1004 + 1);
	startup_fini(&initiator);
}

/* Each message is kept behind 4 bytes that have its length.  After a message,
 * room for fewer than 4 bytes may be left. */
static void a_full_store_takes_no_further_message(void **state)
{
	struct startup_offer mine = make_offer(4, 3);
	static uint8_t early[STARTUP_EARLY_MAX];

	session_write_head(early, SESSION_SEGMENT, 1);
	for (int left = 0; left <= 8; left++) {
		ask_responder(&mine);
		give_bytes(&initiator, early, STARTUP_EARLY_MAX - 4 - left);
		assert_int_equal(initiator.state, STARTUP_WAITS);
		assert_int_equal(initiator.early_bytes,
				 STARTUP_EARLY_MAX - left);
		give_bytes(&initiator, early, 100);
		assert_failed(&initiator, STARTUP_SESSION_EARLY);
		startup_fini(&initiator);
	}
}

/* RFC 5043 6.1: a sequence that is none of the legal ones. */
static void other_first_messages_end_the_start(void **state)
{
	static const uint8_t bad[][9] = {
		{0, 0, 0, 17, 0, 0, 0, 2, 1}, /* a reply to a responder */
		{0, 0, 0, 17, 0, 0, 0, 9, 1}, {0, 0, 0, 17, 0, 1, 0, 1, 1},
		{0, 0, 0, 16, 0, 0, 0, 1, 1}, {0, 0, 0, 18, 0, 0, 0, 1, 1},
		{0, 0, 0, 17, 0, 0, 0, 4, 1},
	};
	static uint8_t long_one[SESSION_FRAME_MAX + 100];
	struct startup_offer mine = make_offer(4, 3);

	for (uint32_t i = 0; i < TEST_COUNT(bad); i++)
		for (int n = 0; n <= 9; n++) {
			startup_listen_session(&responder, DEADLINE);
			give_bytes(&responder, bad[i], n);
			assert_failed(&responder, STARTUP_NO_SESSION);
		}
	ask_responder(&mine);
	give_bytes(&initiator, request, request_bytes);
	assert_failed(&initiator, STARTUP_NO_SESSION);
	session_write_head(long_one, SESSION_CONTROL, 0);
	long_one[7] = SESSION_INITIATE;
	startup_listen_session(&responder, DEADLINE);
	give_bytes(&responder, long_one, sizeof(long_one));
	assert_failed(&responder, STARTUP_NO_SESSION);
	/* the initiator must send nothing before the reply */
	ask_responder(&mine);
	session_write_head(long_one, SESSION_SEGMENT, 1);
	give_bytes(&responder, long_one, 40);
	assert_failed(&responder, STARTUP_SESSION_EARLY);
}

static void the_end_of_the_association_ends_the_start(void **state)
{
	struct startup_offer mine = make_offer(4, 3);

	ask_responder(&mine);
	startup_end(&initiator);
	assert_failed(&initiator, STARTUP_SESSION_CLOSED);
	startup_end(&responder);
	assert_failed(&responder, STARTUP_SESSION_CLOSED);
	assert_false(startup_verdict(STARTUP_SESSION_CLOSED)->is_old_peer);
	startup_listen_session(&responder, DEADLINE);
	startup_tick(&responder, DEADLINE);
	assert_failed(&responder, STARTUP_TIMED_OUT);
}

/* RFC 5043 6.2: the initiator sends the Terminate of RDMAP, and then that of
 * the session. */
static void too_many_reads_end_the_session_by_both_terminates(void **state)
{
	struct startup_offer mine = make_offer(0, 3),
			     theirs = make_offer(4, 20);
	uint8_t out[STARTUP_TERMINATE_MAX];
	struct ddp_header h;
	uint32_t n;

	mine.ird_max = 0;
	ask_responder(&mine);
	reply_bytes = startup_accept(&responder, &theirs, reply);
	reply[10] = 0; /* another ORD than was asked for */
	reply[11] = 9;
	give_bytes(&initiator, reply, reply_bytes);
	assert_failed(&initiator, STARTUP_NO_IRD);
	n = startup_terminate(&initiator, out);
	assert_int_equal(out[3], SESSION_SEGMENT);
	assert_int_equal(out[5], 1);
	assert_int_equal(ddp_parse(out + SESSION_HEAD, n - SESSION_HEAD, &h),
			 DDP_UNTAGGED_BYTES);
	assert_int_equal(h.opcode, RDMAP_TERMINATE);
	assert_int_equal(n, SESSION_HEAD + DDP_UNTAGGED_BYTES +
				    RDMAP_TERMINATE_BYTES);
	assert_int_equal(startup_end_session(&initiator, out), 8);
	assert_int_equal(out[5], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_has_the_bytes_of_the_specification),
		cmocka_unit_test(messages_are_read_as_they_were_written),
		cmocka_unit_test(
			lengths_and_functions_that_are_wrong_are_refused),
		cmocka_unit_test(two_ends_agree_without_crc_and_markers),
		cmocka_unit_test(a_rejection_brings_the_programs_private_data),
		cmocka_unit_test(a_request_may_be_refused_or_withdrawn),
		cmocka_unit_test(messages_before_the_reply_are_kept),
		cmocka_unit_test(no_more_is_kept_than_there_is_room_for),
		cmocka_unit_test(a_full_store_takes_no_further_message),
		cmocka_unit_test(other_first_messages_end_the_start),
		cmocka_unit_test(the_end_of_the_association_ends_the_start),
		cmocka_unit_test(
			too_many_reads_end_the_session_by_both_terminates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
