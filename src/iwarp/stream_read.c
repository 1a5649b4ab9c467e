/* SPDX-License-Identifier: BSD-2-Clause */
/* The READs and atomics of a stream that wait for their responses. */
#include "iwarp/stream.h"

struct rdmap_read stream_read_of(struct wqe *w)
{
	const struct wq_sge *sink = wqe_sges(w);
	struct rdmap_read r = {.bytes = w->bytes,
			       .source_stag = w->rkey,
			       .source_offset = w->va};

	if (w->num_sge) {
		r.sink_stag = sink->lkey;
		r.sink_offset = sink->va;
	}
	return r;
}

struct wqe *stream_read_out(struct ibt *t, struct ibt_qp *q, uint32_t *at)
{
	struct stream_initiator *out = &q->stream->out;
	uint32_t completed = shared_own(&q->qp->sq.completed);

	/* slots before `completed` are free or hold newer requests */
	if ((int32_t)(out->read - completed) < 0)
		out->read = completed;
	for (; out->read != q->req.wqe; out->read++) {
		struct wqe *w = wq_at(t->hca, &q->qp->sq, out->read);

		if (rc_req_is_read(w) && !rc_req_note(q, out->read)->answered) {
			*at = out->read;
			return w;
		}
	}
	return NULL;
}
