/* SPDX-License-Identifier: BSD-2-Clause */
#include "iwarp/startup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "iwarp/stream.h"
#include "util/bits.h"
#include "util/check.h"

/* clang-format off */
static const struct startup_verdict verdicts[STARTUP_ERRORS] = {
	[STARTUP_BAD_KEY] = {TERMINATE_MPA_FRAME, .text =
		"the peer sent bytes that are not an MPA frame, so it does not "
		"use iWARP; check the address and the port"},
	[STARTUP_BAD_LENGTH] = {TERMINATE_MPA_FRAME, .text =
		"the peer's MPA frame has a length that RFC 5044 does not "
		"allow; check that the peer uses iWARP, and update its RDMA "
		"software"},
	[STARTUP_BAD_REVISION] = {TERMINATE_MPA_FRAME, .text =
		"the peer's MPA frame has a revision that this side does not "
		"know or did not ask for; configure the peer for revision 1 "
		"or 2"},
	[STARTUP_OLD_REVISION] = {TERMINATE_MPA_FRAME, .is_old_peer = true,
		.text =
		"the peer has only revision 1 of MPA, and the request had "
		"revision 2; connect again with revision 1"},
	[STARTUP_NO_REPLY] = {TERMINATE_CLOSED, .is_old_peer = true, .text =
		"the peer closed the connection without an MPA reply, so it "
		"refuses revision 2 or runs no iWARP program at this port; "
		"connect again with revision 1, or check the port"},
	[STARTUP_BAD_REPLY] = {TERMINATE_MPA_FRAME, .text =
		"the peer's MPA reply has enhanced data that this side did not "
		"ask for, or lacks enhanced data that this side asked for, "
		"which violates RFC 6581; update the peer's RDMA software"},
	[STARTUP_EARLY] = {TERMINATE_MPA_FRAME, .text =
		"the peer sent data earlier than RFC 5044 allows; check that "
		"the peer uses iWARP, and update its RDMA software"},
	[STARTUP_CLOSED] = {TERMINATE_CLOSED, .text =
		"the peer closed the connection before MPA's start-up was "
		"complete; look for an error of the peer's program"},
	/* RFC 5044 8 counts a timeout as a lost connection */
	[STARTUP_TIMED_OUT] = {TERMINATE_CLOSED, .text =
		"the peer did not complete its part of the start-up in time, "
		"so it is stopped or does not use iWARP; check the peer's "
		"program, and the port"},
	[STARTUP_NO_IRD] = {TERMINATE_IRD, .terminates = true, .text =
		"the peer will send more RDMA READs at a time than this side "
		"takes; raise responder_resources at this side, or lower "
		"initiator_depth at the peer"},
	[STARTUP_NO_RTR] = {TERMINATE_RTR, .terminates = true, .text =
		"the peer uses another model of connection (client-server or "
		"peer-to-peer) than this side, or the two sides know no common "
		"ready-to-receive message; set both sides to the same model"},
	[STARTUP_NO_SESSION] = {TERMINATE_MPA_FRAME, .text =
		"the peer's first message is not the start of a DDP stream "
		"session, which violates RFC 5043; check that the peer uses "
		"iWARP over SCTP"},
	[STARTUP_SESSION_REFUSED] = {TERMINATE_CLOSED, .text =
		"the peer ended the session in place of an answer, in most "
		"cases because too many requests wait there; connect again "
		"later"},
	[STARTUP_SESSION_CLOSED] = {TERMINATE_CLOSED, .text =
		"the peer ended the session or the SCTP association before the "
		"start-up was complete; look for an error of the peer's "
		"program"},
	[STARTUP_SESSION_EARLY] = {TERMINATE_MPA_FRAME, .text =
		"the peer sent data before this side's answer, which violates "
		"RFC 5043, or more data before its own answer than this side "
		"keeps; connect again, and update the peer's RDMA software"},
	[STARTUP_NO_MEMORY] = {TERMINATE_CLOSED, .text =
		"the peer sent data before its answer, and this process has no "
		"memory to keep the data; raise the process's memory limit"},
};
/* clang-format on */

const struct startup_verdict *startup_verdict(enum startup_error error)
{
	return &verdicts[error];
}

static void fail_startup(struct startup *s, enum startup_error error)
{
	s->state = STARTUP_FAILED;
	s->error = error;
}

/* ---- the frames of this end ---- */

/* Returns the frame of an offer, without the members that depend on whether
 * this end is the initiator. */
static struct mpa_frame frame_of(const struct startup_offer *offer)
{
	return (struct mpa_frame){
		.wants_markers = offer->wants_markers,
		.wants_crc = offer->wants_crc,
		.enhanced = {.ird = offer->ird, .ord = offer->ord},
		.private_data = offer->private_data,
		.private_bytes = offer->private_bytes,
	};
}

/* Writes the frame as bytes of MPA or as a message of a session. */
static int write_frame(struct startup *s, uint8_t *out,
		       const struct mpa_frame *f)
{
	int bytes;

	_Static_assert(SESSION_FRAME_MAX <= MPA_FRAME_MAX, "room");
	if (!s->is_session)
		return mpa_write(out, f);
	bytes = session_write_control(out, s->ssn, f);
	if (bytes > 0)
		s->ssn++;
	return bytes;
}

static void begin_startup(struct startup *s, uint64_t deadline_ns)
{
	*s = (struct startup){.state = STARTUP_WAITS,
			      .deadline_ns = deadline_ns};
}

/* Enhanced data needs revision 2 (RFC 6581 6). */
static void check_initiator(const struct startup_offer *offer)
{
	CHECK(offer->revision == 2 ||
	      (offer->revision == 1 && !offer->is_enhanced));
	CHECK(!offer->is_peer_to_peer || (offer->is_enhanced && offer->rtr));
	CHECK(!offer->is_session || offer->revision == 2);
	CHECK(offer->ird <= MPA_DEPTH_MAX && offer->ord <= MPA_DEPTH_MAX);
}

int startup_connect(struct startup *s, const struct startup_offer *offer,
		    uint64_t deadline_ns, uint8_t *out)
{
	struct mpa_frame f = frame_of(offer);

	check_initiator(offer);
	begin_startup(s, deadline_ns);
	s->is_initiator = true;
	s->is_session = offer->is_session;
	s->offer = *offer;
	s->offer.private_data = NULL;
	s->offer.private_bytes = 0;
	f.kind = MPA_REQUEST;
	f.revision = offer->revision;
	f.is_enhanced = offer->is_enhanced;
	if (offer->is_peer_to_peer) {
		f.enhanced.is_peer_to_peer = true;
		f.enhanced.rtr = offer->rtr & MPA_RTR_ALL;
	}
	return write_frame(s, out, &f);
}

void startup_listen(struct startup *s, uint8_t revision, uint64_t deadline_ns)
{
	CHECK(revision >= 1 && revision <= STARTUP_REVISION_MAX);
	begin_startup(s, deadline_ns);
	s->offer.revision = revision;
}

void startup_listen_session(struct startup *s, uint64_t deadline_ns)
{
	startup_listen(s, STARTUP_REVISION_MAX, deadline_ns);
	s->is_session = true;
}

void startup_fini(struct startup *s)
{
	free(s->early);
	s->early = NULL;
	s->early_bytes = 0;
}

/* ---- the parameters on which the two ends agree ---- */

/* Returns this end's IRD, raised to `wanted` as far as ird_max permits. */
static uint16_t raised_ird(const struct startup_offer *offer, uint16_t wanted)
{
	uint32_t most = bits_min_u32(wanted, offer->ird_max);

	return (uint16_t)bits_max_u32(offer->ird, most);
}

static uint16_t least_depth(uint16_t a, uint16_t b)
{
	return (uint16_t)bits_min_u32(a, b);
}

/* If either end wants CRCs, both directions have them.  A direction has markers
 * if its receiver wants them (RFC 5044 7.1.1). */
static void agree_framing(struct startup *s, const struct startup_offer *offer)
{
	s->agreed = (struct startup_agreed){
		.revision = s->peer.revision,
		.is_enhanced = s->peer.is_enhanced,
		.has_crc = !s->is_session &&
			   (offer->wants_crc || s->peer.wants_crc),
		.rx_markers = !s->is_session && offer->wants_markers,
		.tx_markers = s->peer.wants_markers,
		.ird = offer->ird,
		.ord = offer->ord,
	};
}

/*
 * The initiator sends no more RDMA Reads at a time than the responder takes,
 * and has to take as many as the responder sends (RFC 6581 9.1).  MPA_DEPTH_MAX
 * in the reply leaves this end's depth as it is.  Returns false if this end
 * cannot take as many as the responder sends.
 */
static bool agree_depths(struct startup *s)
{
	const struct mpa_enhanced *e = &s->peer.enhanced;

	s->agreed.ord = least_depth(s->offer.ord, e->ird);
	if (e->ord == MPA_DEPTH_MAX)
		return true;
	s->agreed.ird = raised_ird(&s->offer, e->ord);
	return s->agreed.ird >= e->ord;
}

/* Picks one of the kinds of ready-to-receive that both ends know; 0: no kind
 * can be used. */
static uint8_t pick_rtr(const struct startup *s)
{
	uint8_t common = s->offer.rtr & s->peer.enhanced.rtr;

	if (common & MPA_RTR_WRITE)
		return MPA_RTR_WRITE;
	/* with an IRD of 0 the responder takes no RDMA Read */
	if (common & MPA_RTR_READ && s->peer.enhanced.ird)
		return MPA_RTR_READ;
	/* MPA_RTR_SEND is the last choice, because the two ends may mean
	 * different FPDUs by it: see enum mpa_rtr in hdr/mpa.h */
	return common & MPA_RTR_SEND;
}

/* Returns whether the two ends use the same model (RFC 6581 9.2), and in the
 * peer-to-peer model have a common kind of ready-to-receive. */
static bool agree_model(struct startup *s)
{
	bool is_peer_to_peer = s->peer.enhanced.is_peer_to_peer;

	if (is_peer_to_peer != s->offer.is_peer_to_peer)
		return false;
	s->agreed.is_peer_to_peer = is_peer_to_peer;
	if (is_peer_to_peer)
		s->agreed.rtr = pick_rtr(s);
	return !is_peer_to_peer || s->agreed.rtr;
}

/* Enters the initiator's next state after a complete reply (RFC 5044 7.1.2). */
static void judge_reply(struct startup *s)
{
	const struct mpa_frame *f = &s->peer;

	if (f->revision == 0 || f->revision > s->offer.revision)
		fail_startup(s, STARTUP_BAD_REVISION);
	/* The revision is judged before the rejection: a peer of revision 1
	 * passes the enhanced data to its consumer as private data, and the
	 * consumer may reject the connection for that. */
	else if (f->revision < s->offer.revision)
		fail_startup(s, STARTUP_OLD_REVISION);
	else if (f->is_rejected)
		s->state = STARTUP_REJECTED;
	/* RFC 6581 10: the reply to enhanced data has enhanced data. */
	else if (f->is_enhanced != s->offer.is_enhanced)
		fail_startup(s, STARTUP_BAD_REPLY);
	else
		s->state = STARTUP_ACCEPTED;
	if (s->state != STARTUP_ACCEPTED)
		return;
	agree_framing(s, &s->offer);
	if (!f->is_enhanced)
		return;
	if (!agree_depths(s))
		fail_startup(s, STARTUP_NO_IRD);
	else if (!agree_model(s))
		fail_startup(s, STARTUP_NO_RTR);
}

/* A revision that this end does not have ends the connection without a reply
 * (RFC 5044 7.1.1). */
static void judge_request(struct startup *s)
{
	if (s->peer.revision == 0 || s->peer.revision > s->offer.revision)
		fail_startup(s, STARTUP_BAD_REVISION);
	else
		s->state = STARTUP_REQUESTED;
}

/* ---- the peer's stream ---- */

/* Holds bytes of the peer's frame, and judges the frame when it is complete.
 * Returns how many of the bytes belonged to the frame. */
static size_t hold_bytes(struct startup *s, const uint8_t *p, size_t n)
{
	size_t before = s->held_bytes;
	size_t more = bits_min_u64(n, MPA_FRAME_MAX - before);
	enum mpa_kind kind = s->is_initiator ? MPA_REPLY : MPA_REQUEST;
	int bytes;

	memcpy(s->held + before, p, more);
	s->held_bytes = (uint16_t)(before + more);
	bytes = mpa_parse(s->held, s->held_bytes, kind, &s->peer);
	if (bytes == -EPROTO)
		fail_startup(s, STARTUP_BAD_KEY);
	else if (bytes < 0)
		fail_startup(s, STARTUP_BAD_LENGTH);
	if (bytes <= 0)
		return more;
	s->held_bytes = (uint16_t)bytes;
	if (s->is_initiator)
		judge_reply(s);
	else
		judge_request(s);
	return (size_t)bytes - before;
}

/* ---- bytes and messages for the stream ---- */

/* Keeps bytes of the responder that belong to the stream: on an association a
 * message that has come before the reply; over TCP the bytes behind the reply.
 */
static void keep_early(struct startup *s, const uint8_t *p, size_t n)
{
	uint32_t room = STARTUP_EARLY_MAX - s->early_bytes;
	uint32_t bytes = (uint32_t)n;

	if (room < sizeof(bytes) || n > room - sizeof(bytes)) {
		fail_startup(s, STARTUP_SESSION_EARLY);
		return;
	}
	if (!s->early)
		s->early = malloc(STARTUP_EARLY_MAX);
	if (!s->early) {
		fail_startup(s, STARTUP_NO_MEMORY);
		return;
	}
	memcpy(s->early + s->early_bytes, &bytes, sizeof(bytes));
	memcpy(s->early + s->early_bytes + sizeof(bytes), p, n);
	s->early_bytes += bytes + (uint32_t)sizeof(bytes);
}

/* ---- the peer's messages on an association ---- */

/* Takes the peer's message with DDP-SSN 0: the request, the reply, or a
 * Terminate in place of the reply.  Messages with greater DDP-SSNs may arrive
 * before this one (RFC 5043 6.2 to 6.4). */
static void take_control(struct startup *s, const uint8_t *p, size_t n)
{
	int function;

	if (n > sizeof(s->held)) {
		fail_startup(s, STARTUP_NO_SESSION);
		return;
	}
	memcpy(s->held, p, n);
	s->held_bytes = (uint16_t)n;
	function = session_parse_control(s->held, n, &s->peer);
	if (function == SESSION_TERMINATE && s->is_initiator)
		fail_startup(s, STARTUP_SESSION_REFUSED);
	else if (function <= 0 || function == SESSION_TERMINATE ||
		 s->peer.kind != (s->is_initiator ? MPA_REPLY : MPA_REQUEST))
		fail_startup(s, STARTUP_NO_SESSION);
	else if (s->is_initiator)
		judge_reply(s);
	else
		judge_request(s);
}

/* Takes a message that comes while the program decides about the request: only
 * the withdrawal of the request is allowed. */
static void take_withdrawal(struct startup *s, const uint8_t *p, size_t n)
{
	struct mpa_frame f;
	uint32_t ppid;
	uint16_t ssn;

	if (session_parse_head(p, n, &ppid, &ssn) && ssn == 1 &&
	    ppid == SESSION_CONTROL &&
	    session_parse_control(p, n, &f) == SESSION_TERMINATE)
		fail_startup(s, STARTUP_SESSION_CLOSED);
	else
		fail_startup(s, STARTUP_SESSION_EARLY);
}

static void take_message(struct startup *s, const uint8_t *p, size_t n)
{
	uint32_t ppid;
	uint16_t ssn;

	if (s->state == STARTUP_REQUESTED)
		take_withdrawal(s, p, n);
	if (s->state != STARTUP_WAITS)
		return;
	if (!session_parse_head(p, n, &ppid, &ssn))
		fail_startup(s, STARTUP_NO_SESSION);
	else if (!ssn && ppid == SESSION_CONTROL)
		take_control(s, p, n);
	else if (ssn && s->is_initiator)
		keep_early(s, p, n);
	else
		fail_startup(s, STARTUP_NO_SESSION);
}

size_t startup_take(struct startup *s, const uint8_t *p, size_t n)
{
	size_t taken = 0;

	CHECK(s->is_initiator || s->state != STARTUP_ACCEPTED);
	if (s->is_session) {
		take_message(s, p, n);
		return n;
	}
	if (s->state == STARTUP_WAITS && n)
		taken = hold_bytes(s, p, n);
	/*
	 * An initiator sends nothing before the reply.  A responder waits for
	 * the initiator's first FPDU (RFC 5044 7.1.2), but siw's does not wait,
	 * and adverb's not for long; the bytes would be taken if they came
	 * apart from the reply.
	 */
	if (taken < n && s->state == STARTUP_REQUESTED)
		fail_startup(s, STARTUP_EARLY);
	if (taken < n && s->state == STARTUP_ACCEPTED)
		keep_early(s, p + taken, n - taken);
	return taken;
}

void startup_end(struct startup *s)
{
	if (s->is_session &&
	    (s->state == STARTUP_REQUESTED || s->state == STARTUP_WAITS))
		fail_startup(s, STARTUP_SESSION_CLOSED);
	if (s->state == STARTUP_REQUESTED)
		fail_startup(s, STARTUP_CLOSED);
	if (s->state != STARTUP_WAITS)
		return;
	if (s->is_initiator && s->offer.revision > 1 && !s->held_bytes)
		fail_startup(s, STARTUP_NO_REPLY);
	else
		fail_startup(s, STARTUP_CLOSED);
}

/* ---- the responder's answer ---- */

static void check_responder(const struct startup *s,
			    const struct startup_offer *offer)
{
	CHECK(s->state == STARTUP_REQUESTED);
	CHECK(offer->rtr & MPA_RTR_ALL);
	CHECK(!(offer->rtr & MPA_RTR_READ) || raised_ird(offer, 1));
	CHECK(offer->ird <= MPA_DEPTH_MAX && offer->ord <= MPA_DEPTH_MAX);
	CHECK(offer->ird_max <= MPA_DEPTH_MAX);
}

/* Returns the kinds of ready-to-receive that both ends know.  If there are
 * none, returns the kinds of this end: the initiator then sends one of these
 * kinds without having announced it, or ends the connection (RFC 6581 9.2). */
static uint8_t common_rtr(const struct startup *s, uint8_t rtr)
{
	uint8_t common = rtr & s->peer.enhanced.rtr;

	return common ? common : rtr & MPA_RTR_ALL;
}

/* Sets the depths of this end, and those that its reply carries (RFC 6581 9.1).
 */
static void settle_depths(struct startup *s, const struct startup_offer *offer,
			  struct mpa_enhanced *reply)
{
	const struct mpa_enhanced *e = &s->peer.enhanced;
	struct startup_agreed *a = &s->agreed;

	if (e->ord != MPA_DEPTH_MAX)
		a->ird = raised_ird(offer, e->ord);
	if (a->rtr & MPA_RTR_READ)
		a->ird = (uint16_t)bits_max_u32(a->ird, 1);
	/* if e->ird is MPA_DEPTH_MAX, the greatest depth, ORD stays as offered
	 */
	a->ord = least_depth(offer->ord, e->ird);
	reply->ird = e->ord == MPA_DEPTH_MAX ? MPA_DEPTH_MAX : a->ird;
	reply->ord = e->ird == MPA_DEPTH_MAX ? MPA_DEPTH_MAX : a->ord;
}

/* Returns the reply.  It has the request's revision, and has enhanced data if
 * the request has (RFC 6581 10). */
static struct mpa_frame reply_of(const struct startup *s,
				 const struct startup_offer *offer)
{
	struct mpa_frame f = frame_of(offer);

	f.kind = MPA_REPLY;
	f.revision = s->peer.revision;
	f.is_enhanced = s->peer.is_enhanced;
	if (f.is_enhanced && s->peer.enhanced.is_peer_to_peer) {
		f.enhanced.is_peer_to_peer = true;
		f.enhanced.rtr = common_rtr(s, offer->rtr);
	}
	return f;
}

int startup_accept(struct startup *s, const struct startup_offer *offer,
		   uint8_t *out)
{
	struct mpa_frame f = reply_of(s, offer);
	int bytes;

	check_responder(s, offer);
	agree_framing(s, offer);
	/* Some initiators, such as the kernel's siw, learn from the reply alone
	 * whether FPDUs have CRCs. */
	f.wants_crc = s->agreed.has_crc;
	if (f.is_enhanced) {
		s->agreed.is_peer_to_peer = f.enhanced.is_peer_to_peer;
		s->agreed.rtr = f.enhanced.rtr;
		settle_depths(s, offer, &f.enhanced);
	}
	s->ssn = 0;
	bytes = write_frame(s, out, &f);
	if (bytes > 0)
		s->state = STARTUP_ACCEPTED;
	return bytes;
}

int startup_reject(struct startup *s, const struct startup_offer *offer,
		   uint8_t *out)
{
	struct mpa_frame f = reply_of(s, offer);
	int bytes;

	CHECK(s->state == STARTUP_REQUESTED);
	f.is_rejected = true;
	/* The rejection is message 0, even if startup_accept has made a reply:
	 * a caller that has not sent that reply sets the state back to
	 * STARTUP_REQUESTED (accept_request in rdmacm/iw_connect.c). */
	s->ssn = 0;
	bytes = write_frame(s, out, &f);
	if (bytes > 0)
		s->state = STARTUP_REJECTED;
	return bytes;
}

/* ---- time ---- */

uint64_t startup_deadline(const struct startup *s)
{
	return s->state == STARTUP_WAITS ? s->deadline_ns : UINT64_MAX;
}

void startup_tick(struct startup *s, uint64_t now_ns)
{
	if (now_ns >= startup_deadline(s))
		fail_startup(s, STARTUP_TIMED_OUT);
}

/* ---- the stream that follows ---- */

uint32_t startup_terminate(struct startup *s, uint8_t *out)
{
	const struct startup_verdict *v = &verdicts[s->error];
	const struct terminate_row *row = terminate_row(v->cause);
	struct ddp_header h = {.is_last = true,
			       .ddp_version = DDP_VERSION,
			       .rdmap_version = RDMAP_VERSION,
			       .opcode = RDMAP_TERMINATE,
			       .queue = DDP_QUEUE_TERMINATE,
			       .sequence = 1};
	struct rdmap_terminate term = {
		.layer = row->layer, .type = row->type, .code = row->code};
	uint8_t *segment = out + (s->is_session ? SESSION_HEAD : FPDU_ULPDU_AT);
	struct fpdu_tx tx;
	uint32_t bytes;

	if (s->state != STARTUP_FAILED || !v->terminates)
		return 0;
	bytes = (uint32_t)ddp_write(segment, &h);
	rdmap_terminate_write(segment + bytes, &term);
	bytes += RDMAP_TERMINATE_BYTES;
	if (s->is_session) {
		session_write_head(out, SESSION_SEGMENT, s->ssn++);
		return SESSION_HEAD + bytes;
	}
	fpdu_tx_init(&tx, s->agreed.has_crc, s->agreed.tx_markers);
	return fpdu_seal(&tx, out, bytes);
}

uint32_t startup_end_session(struct startup *s, uint8_t *out)
{
	if (!s->is_session)
		return 0;
	session_write_terminate(out, s->ssn++);
	return SESSION_CONTROL_BYTES;
}

/* Returns the length of the longest ULPDU whose FPDU fits into a segment of TCP
 * (RFC 5044 4.5), in bytes, within the bounds of STREAM_ULPDU_*. */
static uint32_t fitting_ulpdu(uint32_t segment_bytes, bool has_markers)
{
	uint32_t bytes = bits_min_u32(segment_bytes, 2 * STREAM_ULPDU_MAX);
	uint32_t over = 6 + bytes % 4;

	if (has_markers)
		over += FPDU_MARKER_BYTES *
			((bytes + FPDU_MARKER_STRIDE - 1) / FPDU_MARKER_STRIDE);
	if (bytes < over + STREAM_ULPDU_MIN)
		return STREAM_ULPDU_MIN;
	return bits_min_u32(bytes - over, STREAM_ULPDU_MAX);
}

/* Returns the longest DDP segment of a session (RFC 5043 9), in bytes. */
static uint32_t fitting_segment(uint32_t segment_bytes)
{
	return bits_min_u32(bits_max_u32(segment_bytes, SESSION_SEGMENT_MIN),
			    STREAM_ULPDU_MAX);
}

void startup_stream(const struct startup *s, uint32_t segment_bytes,
		    struct stream_config *c)
{
	const struct startup_agreed *a = &s->agreed;

	CHECK(s->state == STARTUP_ACCEPTED);
	*c = (struct stream_config){
		.has_crc = a->has_crc,
		.tx_markers = a->tx_markers,
		.rx_markers = a->rx_markers,
		.is_session = s->is_session,
		/* either side of a session may send first, except in the
		 * peer-to-peer model (RFC 6581 7) */
		.is_responder = !s->is_initiator &&
				(!s->is_session || a->is_peer_to_peer),
		.has_extensions = false,
		.rtr = a->rtr,
		.ulpdu_max = s->is_session ? fitting_segment(segment_bytes)
					   : fitting_ulpdu(segment_bytes,
							   a->tx_markers),
		.ird = bits_min_u32(a->ird, HCA_MAX_RD_ATOMIC),
		.ord = bits_min_u32(a->ord, HCA_MAX_RD_ATOMIC),
	};
}
