/* SPDX-License-Identifier: BSD-2-Clause */
#include "iwarp/session.h"

#include <stdlib.h>
#include <string.h>

#include "iwarp/stream.h"

#define NOTE_BYTES 64 /* added to the bytes of each kept message */
/* A DDP-SSN that is HALF or more ahead of the due one, modulo 2^16, counts as
 * one that has come before. */
#define HALF 0x8000u

struct session *session_new(void)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ring = calloc(SESSION_WINDOW, sizeof(*s->ring));
	if (!s->ring) {
		free(s);
		return NULL;
	}
	s->tx_ssn = s->rx_ssn = 1;
	return s;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->kept && i < SESSION_WINDOW; i++)
		free(s->ring[i]);
	free(s->ring);
	free(s);
}

/* ---- sending ---- */

uint32_t session_seal(struct session *s, uint8_t *buf, uint32_t segment_bytes)
{
	session_write_head(buf, SESSION_SEGMENT, s->tx_ssn++);
	return SESSION_HEAD + segment_bytes;
}

uint32_t session_finish(struct session *s, uint8_t *buf)
{
	if (s->is_finished)
		return 0;
	s->is_finished = true;
	session_write_terminate(buf, s->tx_ssn++);
	return SESSION_CONTROL_BYTES;
}

/* ---- receiving ---- */

static const char came_before[] = "a message of DDP over SCTP whose number "
				  "(DDP-SSN) has come before";

/* Ends the stream because the peer violated RFC 5043. */
static void fail_session(struct ibt *t, struct ibt_qp *q, const char *why)
{
	struct explain x = {.cause = EXPLAIN_NONE, .detail = why};

	stream_fail(t, q, TERMINATE_FRAMING, &x);
}

/* Takes a message that is due. */
static void take_due(struct ibt *t, struct ibt_qp *q, const uint8_t *p,
		     uint32_t n)
{
	struct session *s = q->stream->session;
	struct mpa_frame f;
	uint32_t ppid;
	uint16_t ssn;

	session_parse_head(p, n, &ppid, &ssn);
	s->rx_ssn++;
	if (s->has_ended)
		fail_session(t, q,
			     "a message of DDP over SCTP after the "
			     "end of its session");
	else if (ppid == SESSION_SEGMENT)
		stream_rx_segment(t, q, p + SESSION_HEAD, n - SESSION_HEAD);
	else if (session_parse_control(p, n, &f) == SESSION_TERMINATE)
		s->has_ended = true;
	else
		fail_session(t, q,
			     "a control message of DDP over SCTP that "
			     "its session does not allow");
}

/* Takes the kept messages that have become due. */
static void take_kept(struct ibt *t, struct ibt_qp *q)
{
	struct session *s = q->stream->session;
	struct session_early *e;

	while (!stream_has_failed(q) &&
	       (e = s->ring[s->rx_ssn & (SESSION_WINDOW - 1)])) {
		s->ring[s->rx_ssn & (SESSION_WINDOW - 1)] = NULL;
		s->kept -= e->bytes + NOTE_BYTES;
		take_due(t, q, e->data, e->bytes);
		free(e);
	}
}

/* Keeps the message until it is due.  False: the message cannot be kept, and
 * the stream ends. */
static bool keep_message(struct ibt *t, struct ibt_qp *q, uint16_t ssn,
			 const uint8_t *p, uint32_t n)
{
	struct session *s = q->stream->session;
	struct session_early **place = &s->ring[ssn & (SESSION_WINDOW - 1)];
	struct explain x = {.cause = EXPLAIN_NONE,
			    .detail = "a lack of memory for a message of DDP "
				      "over SCTP that came out of order (raise "
				      "the process's memory limit)"};

	if (*place) {
		fail_session(t, q, came_before);
		return false;
	}
	if (s->kept + n + NOTE_BYTES > SESSION_KEPT_MAX) {
		fail_session(t, q,
			     "too many messages of DDP over SCTP after one "
			     "that is missing");
		return false;
	}
	*place = malloc(sizeof(**place) + n);
	if (!*place) {
		stream_fail(t, q, TERMINATE_LOCAL, &x);
		return false;
	}
	(*place)->bytes = n;
	memcpy((*place)->data, p, n);
	s->kept += n + NOTE_BYTES;
	return true;
}

void session_rx(struct ibt *t, struct ibt_qp *q, const uint8_t *p, uint32_t n)
{
	struct session *s = q->stream->session;
	uint32_t ppid, ahead;
	uint16_t ssn;

	if (stream_has_failed(q))
		return;
	if (!session_parse_head(p, n, &ppid, &ssn)) {
		fail_session(t, q, "a message that is not of DDP over SCTP");
		return;
	}
	ahead = (uint16_t)(ssn - s->rx_ssn);
	if (!ahead) {
		take_due(t, q, p, n);
		take_kept(t, q);
	} else if (ahead >= HALF) {
		fail_session(t, q, came_before);
	} else if (ahead >= SESSION_WINDOW) {
		fail_session(t, q,
			     "a message of DDP over SCTP whose number "
			     "(DDP-SSN) is too far ahead");
	} else if (keep_message(t, q, ssn, p, n) && ppid == SESSION_SEGMENT) {
		early_place(t, q, p + SESSION_HEAD, n - SESSION_HEAD);
	}
}
