/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarp/startup: the result at an end does not depend on the pieces in which
 * the stream arrives, and two ends that start a connection agree on its
 * parameters.
 */
#include "fuzz.h"
#include "input.h"

#include <string.h>

#include "iwarp/startup.h"

#define STREAM	 (MPA_FRAME_MAX + 64)
#define KEY	 16 /* bytes */
#define DEADLINE 1000u

struct script {
	struct input_bytes in;
};

/* Returns a small number, or one of the greatest. */
static uint16_t some_depth(struct script *s)
{
	uint8_t b = input_u8(&s->in);

	return b >= 250 ? (uint16_t)(MPA_DEPTH_MAX - (255 - b)) : b % 32;
}

static struct startup_offer some_offer(struct script *s)
{
	static const uint8_t data[MPA_PRIVATE_MAX];
	uint8_t flags = input_u8(&s->in);
	struct startup_offer offer = {
		.revision = flags & 1 ? 2 : 1,
		.is_enhanced = (flags & 3) == 3,
		.wants_crc = flags & 4,
		.wants_markers = flags & 8,
		.is_peer_to_peer = (flags & 0x13) == 0x13,
		.rtr = (uint8_t)(1 + input_u8(&s->in) % MPA_RTR_ALL),
		.ird = some_depth(s),
		.ord = some_depth(s),
		.ird_max = some_depth(s),
		.private_data = data,
		.private_bytes = input_u8(&s->in),
	};

	if (offer.rtr & MPA_RTR_READ && !offer.ird && !offer.ird_max)
		offer.ird_max = 1;
	return offer;
}

static void begin_end(struct startup *s, const struct startup_offer *offer,
		      bool is_initiator)
{
	uint8_t out[MPA_FRAME_MAX];

	if (is_initiator)
		FUZZ_REQUIRE(startup_connect(s, offer, DEADLINE, out) > 0);
	else
		startup_listen(s, offer->revision, DEADLINE);
}

static void require_same_agreed(const struct startup_agreed *a,
				const struct startup_agreed *b)
{
	FUZZ_REQUIRE(a->revision == b->revision);
	FUZZ_REQUIRE(a->is_enhanced == b->is_enhanced);
	FUZZ_REQUIRE(a->has_crc == b->has_crc);
	FUZZ_REQUIRE(a->rx_markers == b->rx_markers);
	FUZZ_REQUIRE(a->tx_markers == b->tx_markers);
	FUZZ_REQUIRE(a->is_peer_to_peer == b->is_peer_to_peer);
	FUZZ_REQUIRE(a->rtr == b->rtr);
	FUZZ_REQUIRE(a->ird == b->ird && a->ord == b->ord);
}

static void require_same_result(const struct startup *a,
				const struct startup *b)
{
	FUZZ_REQUIRE(a->state == b->state && a->error == b->error);
	require_same_agreed(&a->agreed, &b->agreed);
	if (a->state == STARTUP_WAITS || a->state == STARTUP_FAILED)
		return;
	FUZZ_REQUIRE(a->held_bytes == b->held_bytes);
	FUZZ_REQUIRE(!memcmp(a->held, b->held, a->held_bytes));
	FUZZ_REQUIRE(a->peer.private_bytes == b->peer.private_bytes);
	/* the private data ends with the last byte that is held */
	FUZZ_REQUIRE(b->peer.private_data + b->peer.private_bytes ==
		     b->held + b->held_bytes);
}

/* Gives the same stream to two ends, to one as a whole and to the other in
 * parts, and compares the ends. */
static void compare_cuts(struct script *script,
			 const struct startup_offer *offer, bool is_initiator,
			 const uint8_t *stream, size_t n)
{
	struct startup whole, parts;
	size_t taken, sum = 0, part;

	begin_end(&whole, offer, is_initiator);
	begin_end(&parts, offer, is_initiator);
	taken = startup_take(&whole, stream, n);
	for (size_t at = 0; at < n; at += part) {
		part = 1 + input_u8(&script->in) % 40;
		part = part < n - at ? part : n - at;
		sum += startup_take(&parts, stream + at, part);
	}
	require_same_result(&whole, &parts);
	FUZZ_REQUIRE(taken <= MPA_FRAME_MAX && sum <= MPA_FRAME_MAX);
	/* an end takes more bytes of a wrong frame if the pieces are longer */
	if (whole.state != STARTUP_FAILED || whole.error == STARTUP_EARLY)
		FUZZ_REQUIRE(taken == sum);
	startup_end(&whole);
	startup_tick(&parts, DEADLINE);
	FUZZ_REQUIRE(whole.state != STARTUP_WAITS);
	FUZZ_REQUIRE((whole.state == STARTUP_FAILED) ==
		     (parts.state == STARTUP_FAILED ||
		      parts.state == STARTUP_REQUESTED));
	startup_fini(&whole);
	startup_fini(&parts);
}

/* Calls compare_cuts with a frame of the input's bytes, mostly with the right
 * key. */
static void run_stream(struct script *script)
{
	struct startup_offer offer = some_offer(script);
	uint8_t how = input_u8(&script->in);
	uint8_t stream[STREAM];
	size_t n = (size_t)(script->in.end - script->in.at);

	if (n > sizeof(stream))
		n = sizeof(stream);
	memset(stream, 0, sizeof(stream));
	memcpy(stream, script->in.at, n);
	if (how & 3 && n > KEY)
		memcpy(stream,
		       how & 4 ? "MPA ID Rep Frame" : "MPA ID Req Frame", KEY);
	/* the frame gets a revision of at most 3, and at most 255 bytes of
	 * private data; unless how & 16, the stream ends with the frame */
	if (how & 8 && n > KEY + 3) {
		stream[KEY + 1] &= 3;
		stream[KEY + 2] = 0;
		n = how & 16 ? n : MPA_HEAD + (size_t)stream[KEY + 3];
	}
	compare_cuts(script, &offer, how & 4, stream, n);
}

/* Requires that two ends agree.  No byte between them was changed. */
static void require_agreement(const struct startup *initiator,
			      const struct startup *responder)
{
	const struct startup_agreed *a = &initiator->agreed;
	const struct startup_agreed *b = &responder->agreed;

	FUZZ_REQUIRE(a->has_crc == b->has_crc);
	FUZZ_REQUIRE(a->rx_markers == b->tx_markers);
	FUZZ_REQUIRE(a->tx_markers == b->rx_markers);
	if (initiator->state == STARTUP_FAILED) {
		FUZZ_REQUIRE(startup_verdict(initiator->error)->terminates);
		return;
	}
	FUZZ_REQUIRE(initiator->state == STARTUP_ACCEPTED);
	FUZZ_REQUIRE(a->is_enhanced == b->is_enhanced);
	FUZZ_REQUIRE(a->is_peer_to_peer == b->is_peer_to_peer);
	FUZZ_REQUIRE(!a->is_peer_to_peer || (a->rtr & b->rtr) == a->rtr);
	FUZZ_REQUIRE(!a->is_peer_to_peer == !a->rtr);
	if (!a->is_enhanced)
		return;
	/* MPA_DEPTH_MAX means that the programs themselves agree on the depth
	 */
	FUZZ_REQUIRE(a->ord <= b->ird || a->ord == MPA_DEPTH_MAX);
	FUZZ_REQUIRE(b->ord <= a->ird);
}

static void run_both(struct script *script)
{
	struct startup_offer mine = some_offer(script);
	struct startup_offer theirs = some_offer(script);
	bool rejects = input_u8(&script->in) % 8 == 0;
	struct startup initiator, responder;
	uint8_t frame[MPA_FRAME_MAX];
	int n;

	n = startup_connect(&initiator, &mine, DEADLINE, frame);
	FUZZ_REQUIRE(n > 0);
	startup_listen(&responder, 2, DEADLINE);
	FUZZ_REQUIRE(startup_take(&responder, frame, (size_t)n) == (size_t)n);
	FUZZ_REQUIRE(responder.state == STARTUP_REQUESTED);
	if (rejects)
		n = startup_reject(&responder, &theirs, frame);
	else
		n = startup_accept(&responder, &theirs, frame);
	FUZZ_REQUIRE(n > 0);
	FUZZ_REQUIRE(startup_take(&initiator, frame, (size_t)n) == (size_t)n);
	if (rejects)
		FUZZ_REQUIRE(initiator.state == STARTUP_REJECTED);
	else
		require_agreement(&initiator, &responder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script script = {.in = {data, data + size}};

	if (input_u8(&script.in) & 1)
		run_both(&script);
	else
		run_stream(&script);
	return 0;
}
