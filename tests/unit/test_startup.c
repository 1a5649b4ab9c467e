/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp/startup, the start of an MPA connection: how each end handles each
 * frame of its peer, wherever the stream is cut. */
#include "test.h"

#include "unit/startup_pair.h"

#include <ctype.h>
#include <errno.h>

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

/* RFC 5044 7.1.1: a peer closes the connection upon a revision that the peer
 * does not have. */
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
	/* the peer closes the stream while the consumer decides */
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
	/* the initiator refuses a request */
	connect_with(&plain);
	startup_take(&initiator, request, (size_t)request_bytes);
	assert_failed(&initiator, STARTUP_BAD_KEY);
	assert_code(STARTUP_BAD_KEY, 4);
}

static void a_wrong_length_is_found_with_the_head(void **state)
{
	struct startup_offer mine = enhanced_offer(0);

	connect_with(&mine);
	request[18] = 2; /* 513 bytes */
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
static void bytes_behind_a_request_are_an_error(void **state)
{
	struct startup_offer mine = enhanced_offer(MPA_RTR_SEND);

	connect_with(&mine);
	for (int cut = 0; cut <= request_bytes + 1; cut++) {
		size_t n = (size_t)(request_bytes + 1 - cut), taken;

		startup_listen(&responder, 2, DEADLINE);
		taken = startup_take(&responder, request, (size_t)cut);
		taken += startup_take(&responder, request + cut, n);
		assert_int_equal(taken, request_bytes);
		assert_failed(&responder, STARTUP_EARLY);
	}
}

/* siw's responder may send its first FPDU at once, and TCP may bring the FPDU
 * together with the reply. */
static void bytes_behind_a_reply_are_kept_for_the_stream(void **state)
{
	struct startup_offer mine = enhanced_offer(MPA_RTR_SEND);
	struct startup_offer theirs = answering_offer(MPA_RTR_ALL, 4, 4, 8);

	connect_with(&mine);
	startup_listen(&responder, 2, DEADLINE);
	startup_take(&responder, request, (size_t)request_bytes);
	accept_with(&theirs);
	reply[reply_bytes] = 0x17;
	for (int cut = 0; cut <= reply_bytes + 1; cut++) {
		size_t n = (size_t)(reply_bytes + 1 - cut), taken;
		uint32_t bytes;

		connect_with(&mine);
		taken = startup_take(&initiator, reply, (size_t)cut);
		taken += startup_take(&initiator, reply + cut, n);
		assert_int_equal(taken, reply_bytes);
		assert_int_equal(initiator.state, STARTUP_ACCEPTED);
		assert_int_equal(initiator.early_bytes, sizeof(bytes) + 1);
		memcpy(&bytes, initiator.early, sizeof(bytes));
		assert_int_equal(bytes, 1);
		assert_int_equal(initiator.early[sizeof(bytes)], 0x17);
		startup_fini(&initiator);
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
		cmocka_unit_test(a_reply_of_another_revision_is_refused),
		cmocka_unit_test(the_reply_has_the_form_of_the_request),
		cmocka_unit_test(a_responder_refuses_revisions_that_it_lacks),
		cmocka_unit_test(a_closed_stream_may_mean_an_old_peer),
		cmocka_unit_test(an_end_after_the_result_changes_nothing),
		cmocka_unit_test(a_wrong_key_is_found_at_its_first_wrong_byte),
		cmocka_unit_test(a_wrong_length_is_found_with_the_head),
		cmocka_unit_test(a_frame_of_the_greatest_size_is_taken),
		cmocka_unit_test(an_answer_with_too_much_data_changes_nothing),
		cmocka_unit_test(bytes_behind_a_request_are_an_error),
		cmocka_unit_test(bytes_behind_a_reply_are_kept_for_the_stream),
		cmocka_unit_test(a_slow_peer_does_not_move_the_deadline),
		cmocka_unit_test(reserved_bits_are_ignored),
		cmocka_unit_test(each_error_tells_the_user_what_to_do),
		cmocka_unit_test(each_cause_of_a_terminate_has_its_own_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
