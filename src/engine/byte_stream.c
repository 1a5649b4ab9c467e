/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs whose requests go over an iWARP connection, by TCP or SCTP: the functions
 * engine_stream_* of engine.h. */
#include <string.h>

#include "engine/inside.h"
#include "iwarp/session.h"
#include "iwarp/stream.h"
#include "util/bits.h"

int engine_stream_open(struct engine *e, struct ibt_qp *q,
		       const struct stream_config *c)
{
	return stream_open(&e->ibt, q, c);
}

void engine_stream_peer(struct ibt_qp *q, const uint8_t ip[16])
{
	memcpy(q->peer.ip, ip, 16);
	memcpy(q->qp->attr.ah.dgid, ip, 16);
}

struct ibt_qp *engine_stream_next(struct engine *e)
{
	struct list *n = list_pop_head(&e->streams);

	return n ? CONTAINER_OF(n, struct ibt_qp, active) : NULL;
}

bool engine_stream_has_next(const struct engine *e)
{
	return !list_is_empty(&e->streams);
}

uint32_t engine_stream_room(const struct ibt_qp *q)
{
	return stream_tx_room(q);
}

uint32_t engine_stream_tx(struct engine *e, struct ibt_qp *q, uint8_t *buf,
			  uint32_t room, uint64_t now_ns)
{
	uint32_t bytes = 0, more;

	e->ibt.now_ns = now_ns;
	q->stream->is_blocked = false;
	if (q->stream->session) {
		bytes = stream_tx(&e->ibt, q, buf, room);
		stream_note(q);
		if (bytes) { /* engine_stream_next returns q again */
			list_remove(&q->active);
			list_push_tail(&e->streams, &q->active);
		}
		return bytes;
	}
	while ((more = stream_tx(&e->ibt, q, buf + bytes, room - bytes)))
		bytes += more;
	if (bytes && room - bytes < stream_tx_room(q))
		ibt_qp_activate(&e->ibt, q);
	stream_note(q);
	return bytes;
}

void engine_stream_blocked(struct ibt_qp *q)
{
	q->stream->is_blocked = true;
	stream_note(q);
}

bool engine_stream_is_session(const struct ibt_qp *q)
{
	return q->stream->session != NULL;
}

uint32_t engine_stream_finish(struct ibt_qp *q, uint8_t *buf)
{
	return q->stream->session ? session_finish(q->stream->session, buf) : 0;
}

bool engine_stream_has_peer_ended(const struct ibt_qp *q)
{
	return stream_has_peer_ended(q);
}

void engine_stream_ready(struct engine *e, struct ibt_qp *q)
{
	ibt_qp_activate(&e->ibt, q);
}

void engine_stream_rx(struct engine *e, struct ibt_qp *q, const uint8_t *p,
		      uint32_t n, uint64_t now_ns)
{
	e->ibt.now_ns = now_ns;
	stream_rx(&e->ibt, q, p, n);
	stream_note(q);
}

void engine_stream_lost(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	e->ibt.now_ns = now_ns;
	stream_lost(&e->ibt, q);
}

void engine_stream_end(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	e->ibt.now_ns = now_ns;
	stream_end(&e->ibt, q);
}

bool engine_stream_has_begun(const struct ibt_qp *q)
{
	return stream_has_begun(q);
}

void engine_stream_begin(struct engine *e, struct ibt_qp *q)
{
	stream_begin(&e->ibt, q);
}

void engine_stream_nudge(struct engine *e, struct ibt_qp *q)
{
	stream_nudge(&e->ibt, q);
}

bool engine_stream_is_drained(const struct ibt_qp *q)
{
	return stream_is_drained(q);
}

bool engine_stream_has_failed(const struct ibt_qp *q)
{
	return stream_has_failed(q);
}

bool engine_stream_is_over(const struct ibt_qp *q)
{
	return stream_is_over(q);
}
