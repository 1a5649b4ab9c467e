/* SPDX-License-Identifier: BSD-2-Clause */
#include "scenario/joined.h"

#include "test.h"

#define PIPE_BYTES (8u << 20)
#define ROOM	   200000u

const struct stream_config joined_config = {
	.has_crc = true, .ulpdu_max = 1400, .ird = 4, .ord = 4};

void joined_open(struct joined *j)
{
	for (int i = 0; i < 2; i++) {
		struct two_hcas_side *s = &j->d->side[i];

		assert_int_equal(
			engine_stream_open(s->engine, s->side, &j->config[i]),
			0);
		j->pipe[i].head = j->pipe[i].tail = 0;
	}
}

void joined_with(struct joined *j, const struct stream_config *both)
{
	memset(j, 0, sizeof(*j));
	j->d = two_hcas_new(3, 64);
	for (int i = 0; i < 2; i++) {
		j->config[i] = *both;
		j->config[i].tx_markers =
			i ? both->rx_markers : both->tx_markers;
		j->config[i].rx_markers =
			i ? both->tx_markers : both->rx_markers;
		j->config[i].is_responder = i;
		j->pipe[i].bytes = malloc(PIPE_BYTES);
		assert_non_null(j->pipe[i].bytes);
	}
	joined_open(j);
}

void joined_kinds(struct joined *j, uint8_t sent, uint8_t taken)
{
	joined_with(j, &joined_config);
	j->config[0].rtr = sent;
	j->config[1].rtr = taken;
	joined_open(j);
}

void joined_plain(struct joined *j)
{
	joined_with(j, &joined_config);
}

void joined_part(struct joined *j)
{
	free(j->pipe[0].bytes);
	free(j->pipe[1].bytes);
	two_hcas_free(j->d);
}

bool joined_fill(struct joined *j, int i)
{
	struct two_hcas_side *s = &j->d->side[i];
	struct joined_pipe *p = &j->pipe[i];
	struct engine_frame frame;
	uint32_t before = p->head;
	struct ibt_qp *q;

	assert_int_equal(engine_tx(s->engine, &frame, 1, j->d->now_ns), 0);
	while ((q = engine_stream_next(s->engine))) {
		assert_true(p->head + ROOM <= PIPE_BYTES);
		p->head += engine_stream_tx(s->engine, q, p->bytes + p->head,
					    ROOM, j->d->now_ns);
	}
	return p->head != before;
}

void joined_deliver(struct joined *j, int to, uint32_t n)
{
	struct two_hcas_side *s = &j->d->side[to];
	struct joined_pipe *p = &j->pipe[!to];
	uint8_t *copy;

	if (n > p->head - p->tail)
		n = p->head - p->tail;
	copy = malloc(n ? n : 1); /* so that the sanitizer sees reads past the
				   * end */
	memcpy(copy, p->bytes + p->tail, n);
	engine_stream_rx(s->engine, s->side, copy, n, j->d->now_ns);
	free(copy);
	p->tail += n;
}

void joined_run(struct joined *j)
{
	bool moved = true;

	while (moved) {
		two_hcas_run(j->d, j->d->now_ns);
		moved = joined_fill(j, 0);
		moved |= joined_fill(j, 1);
		for (int to = 0; to < 2; to++)
			while (j->pipe[!to].tail != j->pipe[!to].head) {
				joined_deliver(j, to,
					       j->piece ? j->piece
							: UINT32_MAX);
				moved = true;
			}
		for (int i = 0; i < 2; i++)
			j->pipe[i].head = j->pipe[i].tail = 0;
	}
}

struct cqe joined_polled(struct joined *j, int i)
{
	struct cqe c;

	assert_true(two_hcas_poll(j->d, i, &c));
	return c;
}

void joined_done(struct joined *j, int i, uint32_t status)
{
	assert_int_equal(joined_polled(j, i).status, status);
}

void joined_idle(struct joined *j, int i)
{
	struct cqe c;

	assert_false(two_hcas_poll(j->d, i, &c));
}

uint8_t *joined_bytes(struct joined *j, int i)
{
	return j->d->side[i].memory.bytes;
}

void joined_same(struct joined *j, uint64_t from, uint64_t to, uint32_t bytes)
{
	assert_memory_equal(joined_bytes(j, 0) + from, joined_bytes(j, 1) + to,
			    bytes);
}

void joined_post(struct joined *j, enum hca_wr op, uint64_t local,
		 uint32_t bytes, uint64_t remote)
{
	two_hcas_send(j->d, 0, op, local, bytes, remote);
	two_hcas_post(j->d, 0);
}

enum stream_phase joined_phase(struct joined *j, int i)
{
	return j->d->side[i].side->stream->phase;
}

uint32_t joined_state(struct joined *j, int i)
{
	return j->d->side[i].qp->state;
}

void joined_counted(struct joined *j)
{
	for (int i = 0; i < 2; i++) {
		const struct two_hcas_side *from = &j->d->side[i],
					   *to = &j->d->side[!i];
		const struct qp_stats *tx = &from->qp->stats,
				      *rx = &to->qp->stats;

		assert_true(tx->tx_packets > 0);
		assert_int_equal(rx->rx_packets, tx->tx_packets);
		assert_int_equal(rx->rx_bytes, tx->tx_bytes);
		assert_int_equal(engine_counters(to->engine, 0)->rx_bytes,
				 tx->tx_bytes);
		assert_int_equal(engine_counters(from->engine, 0)->tx_bytes,
				 tx->tx_bytes);
	}
}

void joined_exchange(struct joined *j, uint32_t bytes)
{
	struct two_hcas *d = j->d;

	two_hcas_fill(d, 0, 0, bytes);
	two_hcas_fill(d, 1, 500000, bytes);
	two_hcas_recv(d, 1, 300000, bytes);
	joined_post(j, HCA_WR_RDMA_WRITE, 0, bytes, 100000);
	joined_post(j, HCA_WR_SEND, 0, bytes, 0);
	joined_post(j, HCA_WR_RDMA_READ, 600000, bytes, 500000);
	joined_run(j);
	assert_int_equal(joined_polled(j, 0).opcode, HCA_WC_RDMA_WRITE);
	assert_int_equal(joined_polled(j, 0).opcode, HCA_WC_SEND);
	assert_int_equal(joined_polled(j, 0).opcode, HCA_WC_RDMA_READ);
	assert_int_equal(joined_polled(j, 1).byte_len, bytes);
	joined_same(j, 0, 100000, bytes);
	joined_same(j, 0, 300000, bytes);
	joined_same(j, 600000, 500000, bytes);
}

void joined_terminated(struct joined *j, enum terminate_cause cause)
{
	const struct iwarp_stream *s = j->d->side[1].side->stream;
	char text[300];

	assert_int_equal(s->terminate.cause, cause);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(joined_phase(j, i), STREAM_OVER);
		assert_int_equal(joined_state(j, i), HCA_QP_ERR);
	}
	assert_string_equal(j->d->side[0].explained.detail,
			    terminate_row(cause)->text);
	explain_text(&j->d->side[0].explained, text, sizeof(text));
	assert_non_null(strstr(text, "the peer ended the iWARP connection"));
	assert_non_null(strstr(text, terminate_row(cause)->text));
}
