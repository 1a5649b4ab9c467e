/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ends of an MPA connection, for the tests of iwarp/startup. */
#ifndef TESTS_UNIT_STARTUP_PAIR_H
#define TESTS_UNIT_STARTUP_PAIR_H

#include "test.h"

#include "iwarp/startup.h"
#include "iwarp/stream.h"

#define DEADLINE 1000u /* ns */

static const uint8_t words[] = "who goes there", answer[] = "a friend";

/* The two ends, and the frames that each has sent. */
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

static inline struct startup_offer enhanced_offer(uint8_t rtr)
{
	struct startup_offer offer = plain;

	offer.revision = 2;
	offer.is_enhanced = true;
	offer.is_peer_to_peer = rtr != 0;
	offer.rtr = rtr;
	return offer;
}

static inline struct startup_offer
answering_offer(uint8_t rtr, uint16_t ird, uint16_t ord, uint16_t ird_max)
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

/* Feeds the n bytes of a frame in two parts, the first of `cut` bytes, and
 * fails unless all bytes are taken. */
static inline void feed_parts(struct startup *s, const uint8_t *p, int n,
			      int cut)
{
	assert_int_equal(startup_take(s, p, (size_t)cut), cut);
	if (cut < n)
		assert_int_equal(s->state, STARTUP_WAITS);
	assert_int_equal(startup_take(s, p + cut, (size_t)(n - cut)), n - cut);
}

static inline void connect_with(const struct startup_offer *offer)
{
	request_bytes = startup_connect(&initiator, offer, DEADLINE, request);
	assert_true(request_bytes >= MPA_HEAD);
	assert_int_equal(initiator.state, STARTUP_WAITS);
}

/* The responder gets the request, and answers it. */
static inline void accept_with(const struct startup_offer *offer)
{
	startup_listen(&responder, 2, DEADLINE);
	feed_parts(&responder, request, request_bytes, request_bytes / 2);
	assert_int_equal(responder.state, STARTUP_REQUESTED);
	reply_bytes = startup_accept(&responder, offer, reply);
	assert_true(reply_bytes >= MPA_HEAD);
	assert_int_equal(responder.state, STARTUP_ACCEPTED);
}

/* Starts the initiator with the offer `mine` and the responder with `theirs`.
 * The initiator has then got the reply. */
static inline void start_both(const struct startup_offer *mine,
			      const struct startup_offer *theirs)
{
	connect_with(mine);
	accept_with(theirs);
	feed_parts(&initiator, reply, reply_bytes, reply_bytes / 2);
}

static inline void assert_failed(const struct startup *s,
				 enum startup_error error)
{
	assert_int_equal(s->state, STARTUP_FAILED);
	assert_int_equal(s->error, error);
	assert_true(startup_deadline(s) == UINT64_MAX);
}

/* Gives the initiator a reply that the test has made. */
static inline void reply_frame(const struct mpa_frame *f)
{
	reply_bytes = mpa_write(reply, f);
	assert_true(reply_bytes > 0);
	assert_int_equal(startup_take(&initiator, reply, (size_t)reply_bytes),
			 reply_bytes);
}

/* Fails unless the Terminate of this error has the layer of MPA, type 0 and
 * this code (RFC 5044 8, RFC 6581 8). */
static inline void assert_code(enum startup_error error, uint8_t code)
{
	const struct terminate_row *row =
		terminate_row(startup_verdict(error)->cause);

	assert_int_equal(row->layer, 2);
	assert_int_equal(row->type, 0);
	assert_int_equal(row->code, code);
}

#endif
