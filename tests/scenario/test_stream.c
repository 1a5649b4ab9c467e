/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP: requests of two queue pairs over a pair of byte streams, which the
 * test cuts, damages and forges. */
#include "test.h"

#include "hdr/bytes.h"
#include "ibt/ibt.h"
#include "iwarp/stream.h"
#include "scenario/two_hcas.h"
#include "util/rng.h"

#define PIPE_BYTES (8u << 20)
#define ROOM	   200000u

struct pipe {
	uint8_t *bytes;
	uint32_t head, tail;
};

/* pipe[i] goes from side i to the other side. */
struct joined {
	struct two_hcas *d;
	struct stream_config config[2];
	struct pipe pipe[2];
	uint32_t piece; /* bytes that arrive at once; 0: all that there are */
};

static const struct stream_config plain = {
	.has_crc = true, .ulpdu_max = 1400, .ird = 4, .ord = 4};

static void open_streams(struct joined *j)
{
	for (int i = 0; i < 2; i++) {
		struct two_hcas_side *s = &j->d->side[i];

		assert_int_equal(
			engine_stream_open(s->engine, s->side, &j->config[i]),
			0);
		j->pipe[i].head = j->pipe[i].tail = 0;
	}
}

static void join_with(struct joined *j, const struct stream_config *both)
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
	open_streams(j);
}

/* A peer-to-peer connection: the initiator sends one kind first, and the
 * responder takes some kinds. */
static void join_kinds(struct joined *j, uint8_t sent, uint8_t taken)
{
	join_with(j, &plain);
	j->config[0].rtr = sent;
	j->config[1].rtr = taken;
	open_streams(j);
}

static void join_plain(struct joined *j)
{
	join_with(j, &plain);
}

static void part(struct joined *j)
{
	free(j->pipe[0].bytes);
	free(j->pipe[1].bytes);
	two_hcas_free(j->d);
}

/* Appends to the pipe what side i has to send; returns whether it had. */
static bool fill_pipe(struct joined *j, int i)
{
	struct two_hcas_side *s = &j->d->side[i];
	struct pipe *p = &j->pipe[i];
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

/* Gives side `to` n bytes, or as many as there are. */
static void deliver(struct joined *j, int to, uint32_t n)
{
	struct two_hcas_side *s = &j->d->side[to];
	struct pipe *p = &j->pipe[!to];
	uint8_t *copy;

	if (n > p->head - p->tail)
		n = p->head - p->tail;
	copy = malloc(n ? n : 1); /* of its own, for the sanitizer */
	memcpy(copy, p->bytes + p->tail, n);
	engine_stream_rx(s->engine, s->side, copy, n, j->d->now_ns);
	free(copy);
	p->tail += n;
}

/* Runs until neither side has anything to send. */
static void run_streams(struct joined *j)
{
	bool moved = true;

	while (moved) {
		two_hcas_run(j->d, j->d->now_ns);
		moved = fill_pipe(j, 0);
		moved |= fill_pipe(j, 1);
		for (int to = 0; to < 2; to++)
			while (j->pipe[!to].tail != j->pipe[!to].head) {
				deliver(j, to,
					j->piece ? j->piece : UINT32_MAX);
				moved = true;
			}
		for (int i = 0; i < 2; i++)
			j->pipe[i].head = j->pipe[i].tail = 0;
	}
}

static struct cqe polled(struct joined *j, int i)
{
	struct cqe c;

	assert_true(two_hcas_poll(j->d, i, &c));
	return c;
}

static void assert_done(struct joined *j, int i, uint32_t status)
{
	assert_int_equal(polled(j, i).status, status);
}

static void assert_idle(struct joined *j, int i)
{
	struct cqe c;

	assert_false(two_hcas_poll(j->d, i, &c));
}

static uint8_t *bytes_of(struct joined *j, int i)
{
	return j->d->side[i].memory.bytes;
}

static void assert_same(struct joined *j, uint64_t from, uint64_t to,
			uint32_t bytes)
{
	assert_memory_equal(bytes_of(j, 0) + from, bytes_of(j, 1) + to, bytes);
}

/* Posts a request of side 0. */
static void post(struct joined *j, enum hca_wr op, uint64_t local,
		 uint32_t bytes, uint64_t remote)
{
	two_hcas_send(j->d, 0, op, local, bytes, remote);
	two_hcas_post(j->d, 0);
}

/* The phase of side i's stream. */
static enum stream_phase stream_phase(struct joined *j, int i)
{
	return j->d->side[i].side->stream->phase;
}

static uint32_t qp_state(struct joined *j, int i)
{
	return j->d->side[i].qp->state;
}

/* ---- what goes right ---- */

/* One request of each kind and of `bytes` bytes, each way. */
static void exchange(struct joined *j, uint32_t bytes)
{
	struct two_hcas *d = j->d;

	two_hcas_fill(d, 0, 0, bytes);
	two_hcas_fill(d, 1, 500000, bytes);
	two_hcas_recv(d, 1, 300000, bytes);
	post(j, HCA_WR_RDMA_WRITE, 0, bytes, 100000);
	post(j, HCA_WR_SEND, 0, bytes, 0);
	post(j, HCA_WR_RDMA_READ, 600000, bytes, 500000);
	run_streams(j);
	assert_int_equal(polled(j, 0).opcode, HCA_WC_RDMA_WRITE);
	assert_int_equal(polled(j, 0).opcode, HCA_WC_SEND);
	assert_int_equal(polled(j, 0).opcode, HCA_WC_RDMA_READ);
	assert_int_equal(polled(j, 1).byte_len, bytes);
	assert_same(j, 0, 100000, bytes);
	assert_same(j, 0, 300000, bytes);
	assert_same(j, 600000, 500000, bytes);
}

static void each_kind_of_request_arrives_at_each_size(void **state)
{
	static const uint32_t sizes[] = {0,    1,    7,	   8,	 9,    1000,
					 1381, 1382, 1383, 1386, 1387, 100000};
	struct joined j;

	for (int choice = 0; choice < 8; choice++) {
		struct stream_config c = plain;

		c.has_crc = choice & 1;
		c.tx_markers = choice & 2;
		c.rx_markers = choice & 4;
		join_with(&j, &c);
		for (uint32_t i = 0; i < TEST_COUNT(sizes); i++)
			exchange(&j, sizes[i]);
		assert_idle(&j, 0);
		assert_idle(&j, 1);
		part(&j);
	}
}

static void a_stream_may_be_cut_at_each_byte(void **state)
{
	for (uint32_t piece = 1; piece < 200; piece += piece < 40 ? 1 : 13) {
		struct stream_config c = plain;
		struct joined j;

		c.tx_markers = piece % 2;
		c.ulpdu_max = STREAM_ULPDU_MIN + piece % 5;
		join_with(&j, &c);
		j.piece = piece;
		exchange(&j, 1000);
		exchange(&j, 3);
		part(&j);
	}
}

/* The first n bytes come together, and then the others. */
static void one_cut_at_any_place_changes_nothing(void **state)
{
	struct joined j;

	join_plain(&j);
	for (uint32_t cut = 0; cut < 450; cut++) {
		two_hcas_fill(j.d, 0, 0, 200);
		two_hcas_recv(j.d, 1, 1000, 200);
		post(&j, HCA_WR_SEND, 0, 200, 0);
		post(&j, HCA_WR_RDMA_WRITE, 0, 200, 2000);
		fill_pipe(&j, 0);
		deliver(&j, 1, cut);
		deliver(&j, 1, UINT32_MAX);
		run_streams(&j);
		assert_done(&j, 0, HCA_SUCCESS);
		assert_done(&j, 0, HCA_SUCCESS);
		assert_done(&j, 1, HCA_SUCCESS);
		assert_same(&j, 0, 1000, 200);
		assert_same(&j, 0, 2000, 200);
	}
	part(&j);
}

/* A READ into several elements, whose keys the peer does not learn. */
static void a_read_is_scattered_by_its_request(void **state)
{
	struct joined j;
	struct wqe *w;

	join_plain(&j);
	two_hcas_fill(j.d, 1, 0, 5000);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_READ, 10000, 5000, 0);
	w->num_sge = 3;
	wqe_sges(w)[1] = wqe_sges(w)[2] = wqe_sges(w)[0];
	wqe_sges(w)[0].bytes = 1500;
	wqe_sges(w)[1].bytes = 1;
	wqe_sges(w)[1].va += 20000;
	wqe_sges(w)[2].bytes = 3499;
	wqe_sges(w)[2].va += 30000;
	two_hcas_post(j.d, 0);
	run_streams(&j);
	assert_done(&j, 0, HCA_SUCCESS);
	assert_same(&j, 10000, 0, 1500);
	assert_same(&j, 30000, 1500, 1);
	assert_same(&j, 40000, 1501, 3499);
	part(&j);
}

static void no_more_reads_are_under_way_than_ord(void **state)
{
	struct stream_config c = plain;
	struct joined j;

	c.ord = 2;
	join_with(&j, &c);
	for (int i = 0; i < 9; i++)
		post(&j, HCA_WR_RDMA_READ, 1000u * (uint32_t)i, 100, 5000);
	fill_pipe(&j, 0);
	assert_int_equal(j.d->side[0].side->stream->out.reads_out, 2);
	assert_int_equal(j.pipe[0].head, 2 * (2 + 18 + 28 + 4));
	run_streams(&j);
	for (int i = 0; i < 9; i++)
		assert_done(&j, 0, HCA_SUCCESS);
	part(&j);
}

static void a_fence_waits_for_the_reads_before(void **state)
{
	struct joined j;
	struct wqe *w;

	join_plain(&j);
	two_hcas_fill(j.d, 1, 5000, 100);
	post(&j, HCA_WR_RDMA_READ, 0, 100, 5000);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_WRITE, 0, 100, 7000);
	w->flags |= HCA_SEND_FENCE;
	two_hcas_post(j.d, 0);
	run_streams(&j);
	assert_done(&j, 0, HCA_SUCCESS);
	assert_done(&j, 0, HCA_SUCCESS);
	assert_memory_equal(bytes_of(&j, 1) + 7000, bytes_of(&j, 1) + 5000,
			    100);
	part(&j);
}

/* A WRITE that is sent completes after the READ before it. */
static void requests_complete_in_order(void **state)
{
	struct joined j;

	join_plain(&j);
	post(&j, HCA_WR_RDMA_READ, 0, 100, 5000);
	post(&j, HCA_WR_RDMA_WRITE, 0, 100, 7000);
	fill_pipe(&j, 0);
	assert_idle(&j, 0);
	run_streams(&j);
	assert_int_equal(polled(&j, 0).opcode, HCA_WC_RDMA_READ);
	assert_int_equal(polled(&j, 0).opcode, HCA_WC_RDMA_WRITE);
	part(&j);
}

/* RFC 5044 7.1.2. */
static void a_responder_sends_nothing_before_it_has_received(void **state)
{
	struct joined j;

	join_plain(&j);
	two_hcas_send(j.d, 1, HCA_WR_RDMA_WRITE, 0, 10, 100);
	two_hcas_post(j.d, 1);
	run_streams(&j);
	assert_idle(&j, 1);
	post(&j, HCA_WR_RDMA_WRITE, 0, 1, 0);
	run_streams(&j);
	assert_done(&j, 1, HCA_SUCCESS);
	part(&j);
}

/* RFC 6581 9.2: each kind lets the responder send; none needs a right. */
static void each_ready_to_receive_opens_the_way(void **state)
{
	for (uint8_t rtr = MPA_RTR_SEND; rtr <= MPA_RTR_READ; rtr <<= 1) {
		struct stream_config c = plain;
		struct joined j;

		c.rtr = rtr;
		c.ird = 0;
		join_with(&j, &c);
		j.d->side[1].qp->attr.access_flags = 0;
		two_hcas_send(j.d, 1, HCA_WR_RDMA_WRITE, 0, 10, 100);
		two_hcas_post(j.d, 1);
		run_streams(&j);
		assert_done(&j, 1, HCA_SUCCESS);
		assert_idle(&j, 0);
		assert_false(j.d->side[0].side->stream->out.awaits_rtr);
		part(&j);
	}
}

/* RFC 6581 1.1: a SEND takes no receive, and may be an FPDU without bytes. */
static void a_ready_to_receive_by_send_takes_no_receive(void **state)
{
	struct joined j;
	struct fpdu_tx tx;

	join_kinds(&j, MPA_RTR_SEND, MPA_RTR_SEND);
	run_streams(&j);
	assert_idle(&j, 1);
	assert_true(engine_stream_has_begun(j.d->side[1].side));
	exchange(&j, 100);
	part(&j);
	join_kinds(&j, 0, MPA_RTR_SEND);
	fpdu_tx_init(&tx, true, false);
	j.pipe[0].head = fpdu_seal(&tx, j.pipe[0].bytes, 0);
	run_streams(&j);
	assert_true(engine_stream_has_begun(j.d->side[1].side));
	exchange(&j, 100);
	part(&j);
}

/* FIN may follow when all has been sent that was posted or is due. */
static void a_stream_is_drained_when_all_is_sent(void **state)
{
	struct ibt_qp *q[2];
	struct joined j;

	join_kinds(&j, MPA_RTR_WRITE, MPA_RTR_WRITE);
	for (int i = 0; i < 2; i++)
		q[i] = j.d->side[i].side;
	assert_false(engine_stream_is_drained(q[0]));
	assert_true(engine_stream_is_drained(q[1]));
	assert_true(engine_stream_has_begun(q[0]));
	assert_false(engine_stream_has_begun(q[1]));
	post(&j, HCA_WR_RDMA_READ, 0, 10, 0);
	fill_pipe(&j, 0);
	assert_true(engine_stream_is_drained(q[0]));
	deliver(&j, 1, UINT32_MAX);
	assert_false(engine_stream_is_drained(q[1]));
	assert_true(engine_stream_has_begun(q[1]));
	run_streams(&j);
	assert_true(engine_stream_is_drained(q[1]));
	assert_done(&j, 0, HCA_SUCCESS);
	part(&j);
}

static void the_extensions_work_where_both_sides_know_them(void **state)
{
	struct stream_config c = plain;
	struct joined j;
	struct wqe *w;
	struct cqe e;
	uint64_t word = 41;

	c.has_extensions = true;
	join_with(&j, &c);
	memcpy(bytes_of(&j, 1) + 800, &word, 8);
	w = two_hcas_send(j.d, 0, HCA_WR_ATOMIC_FADD, 0, 8, 800);
	w->swap_add = 1;
	two_hcas_post(j.d, 0);
	w = two_hcas_send(j.d, 0, HCA_WR_ATOMIC_CAS, 8, 8, 800);
	w->compare = 42;
	w->swap_add = 7;
	two_hcas_post(j.d, 0);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_WRITE_IMM, 0, 3000, 4000);
	w->imm_be = 0x12345678;
	two_hcas_post(j.d, 0);
	two_hcas_recv(j.d, 1, 0, 0);
	run_streams(&j);
	for (int i = 0; i < 3; i++)
		assert_done(&j, 0, HCA_SUCCESS);
	e = polled(&j, 1);
	assert_int_equal(e.opcode, HCA_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(e.imm_be, 0x12345678);
	assert_int_equal(e.byte_len, 3000);
	memcpy(&word, bytes_of(&j, 0), 8);
	assert_int_equal(word, 41);
	memcpy(&word, bytes_of(&j, 0) + 8, 8);
	assert_int_equal(word, 42);
	memcpy(&word, bytes_of(&j, 1) + 800, 8);
	assert_int_equal(word, 7);
	part(&j);
}

/* ---- what goes wrong ---- */

static void an_operation_that_iwarp_lacks_fails_alone(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_SEND_IMM, HCA_WR_ATOMIC_CAS,
					  HCA_WR_RDMA_WRITE_IMM,
					  HCA_WR_ATOMIC_WRITE};

	for (uint32_t i = 0; i < TEST_COUNT(ops); i++) {
		struct joined j;

		join_plain(&j);
		post(&j, HCA_WR_RDMA_READ, 0, 8, 8);
		post(&j, ops[i], 0, 8, 8);
		post(&j, HCA_WR_RDMA_WRITE, 0, 8, 8);
		run_streams(&j);
		assert_done(&j, 0, HCA_SUCCESS);
		assert_done(&j, 0, HCA_LOC_QP_OP_ERR);
		assert_done(&j, 0, HCA_WR_FLUSH_ERR);
		assert_non_null(j.d->side[0].explained.detail);
		assert_int_equal(stream_phase(&j, 0), STREAM_OVER);
		assert_int_equal(stream_phase(&j, 1), STREAM_OVER);
		assert_int_equal(qp_state(&j, 1), HCA_QP_ERR);
		part(&j);
	}
}

/* Both sides end, and the Terminate names this error. */
static void assert_terminated(struct joined *j, enum terminate_cause cause)
{
	const struct iwarp_stream *s = j->d->side[1].side->stream;
	char text[300];

	assert_int_equal(s->terminate.cause, cause);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(stream_phase(j, i), STREAM_OVER);
		assert_int_equal(qp_state(j, i), HCA_QP_ERR);
	}
	assert_string_equal(j->d->side[0].explained.detail,
			    terminate_row(cause)->text);
	explain_text(&j->d->side[0].explained, text, sizeof(text));
	assert_non_null(strstr(text, "the peer ended the iWARP connection"));
	assert_non_null(strstr(text, terminate_row(cause)->text));
}

static void assert_refused_as_first(struct joined *j)
{
	run_streams(j);
	assert_terminated(j, TERMINATE_RTR);
	assert_false(engine_stream_has_begun(j->d->side[1].side));
	assert_true(engine_stream_is_drained(j->d->side[1].side));
	assert_int_equal(bytes_of(j, 1)[100], 0);
	part(j);
}

/* RFC 6581 9.2. */
static void another_first_fpdu_than_was_agreed_ends_the_stream(void **state)
{
	static const enum hca_wr ops[] = {HCA_WR_SEND, HCA_WR_RDMA_WRITE,
					  HCA_WR_RDMA_READ};
	struct joined j;

	for (uint8_t kind = MPA_RTR_SEND; kind <= MPA_RTR_READ; kind <<= 1) {
		join_kinds(&j, kind, MPA_RTR_ALL & ~kind);
		assert_refused_as_first(&j);
	}
	for (uint32_t i = 0; i < TEST_COUNT(ops); i++) {
		join_kinds(&j, 0, MPA_RTR_ALL);
		memset(bytes_of(&j, 0), 0xee, 200);
		two_hcas_recv(j.d, 1, 0, 200);
		post(&j, ops[i], 0, 200, 0);
		assert_refused_as_first(&j);
	}
}

/* A request of side 0 with a wrong key, range or right. */
static const struct misuse {
	enum hca_wr op;
	uint32_t flip;	   /* bits of the key */
	uint64_t va;	   /* beside the region's start */
	uint32_t no_right; /* the right that the region lacks */
	enum terminate_cause cause;
} misuses[] = {
	{HCA_WR_RDMA_WRITE, 0x100, 0, 0, TERMINATE_STAG},
	{HCA_WR_RDMA_WRITE, 0, TWO_HCAS_MEMORY - 10, 0, TERMINATE_BOUNDS},
	{HCA_WR_RDMA_WRITE, 0, 0, HCA_REMOTE_WRITE, TERMINATE_RIGHT},
	{HCA_WR_RDMA_WRITE, 0, -TWO_HCAS_BASE - 10, 0, TERMINATE_WRAP},
	{HCA_WR_RDMA_READ, 0x100, 0, 0, TERMINATE_SOURCE_STAG},
	{HCA_WR_RDMA_READ, 0, TWO_HCAS_MEMORY - 10, 0, TERMINATE_SOURCE_BOUNDS},
	{HCA_WR_RDMA_READ, 0, 0, HCA_REMOTE_READ, TERMINATE_RIGHT},
	{HCA_WR_RDMA_READ, 0, -TWO_HCAS_BASE - 10, 0, TERMINATE_SOURCE_WRAP},
};

static void a_refused_access_ends_both_sides_by_its_terminate(void **state)
{
	for (uint32_t i = 0; i < TEST_COUNT(misuses); i++) {
		const struct misuse *m = &misuses[i];
		bool is_read = m->op == HCA_WR_RDMA_READ;
		struct joined j;
		struct wqe *w;

		join_plain(&j);
		j.d->side[1].mr->access &= ~m->no_right;
		w = two_hcas_send(j.d, 0, m->op, 0, 100, 0);
		w->va += m->va;
		w->rkey ^= m->flip;
		two_hcas_post(j.d, 0);
		post(&j, HCA_WR_RDMA_READ, 0, 100, 0);
		run_streams(&j);
		assert_done(&j, 0, is_read ? HCA_REM_ACCESS_ERR : HCA_SUCCESS);
		assert_done(&j, 0, HCA_WR_FLUSH_ERR);
		assert_terminated(&j, m->cause);
		assert_int_equal(j.d->side[1].events[ENGINE_QP_ACCESS_ERR], 1);
		part(&j);
	}
}

/* The refused READ lies in the slot of a READ that is complete. */
static void a_refused_read_in_a_used_slot_fails(void **state)
{
	struct joined j;
	struct wqe *w;

	join_plain(&j);
	post(&j, HCA_WR_RDMA_READ, 0, 10, 0);
	for (int i = 1; i < 64; i++) {
		run_streams(&j);
		assert_done(&j, 0, HCA_SUCCESS);
		post(&j, HCA_WR_RDMA_WRITE, 0, 10, 0);
	}
	run_streams(&j);
	assert_done(&j, 0, HCA_SUCCESS);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_READ, 0, 10, 0);
	w->rkey ^= 0x100;
	two_hcas_post(j.d, 0);
	run_streams(&j);
	assert_done(&j, 0, HCA_REM_ACCESS_ERR);
	assert_terminated(&j, TERMINATE_SOURCE_STAG);
	part(&j);
}

/* Responses that are due are sent before the Terminate. */
static void the_reads_before_a_refused_one_complete(void **state)
{
	struct joined j;
	struct wqe *w;

	join_plain(&j);
	two_hcas_fill(j.d, 1, 5000, 3000);
	post(&j, HCA_WR_RDMA_READ, 0, 3000, 5000);
	w = two_hcas_send(j.d, 0, HCA_WR_RDMA_READ, 10000, 10, 0);
	w->rkey ^= 0x100;
	two_hcas_post(j.d, 0);
	post(&j, HCA_WR_RDMA_READ, 20000, 10, 0);
	run_streams(&j);
	assert_done(&j, 0, HCA_SUCCESS);
	assert_done(&j, 0, HCA_REM_ACCESS_ERR);
	assert_done(&j, 0, HCA_WR_FLUSH_ERR);
	assert_same(&j, 0, 5000, 3000);
	part(&j);
}

static void a_send_without_a_receive_ends_the_stream(void **state)
{
	struct joined j;

	join_plain(&j);
	post(&j, HCA_WR_SEND, 0, 10, 0);
	run_streams(&j);
	assert_terminated(&j, TERMINATE_NO_BUFFER);
	part(&j);
}

static void a_send_that_is_too_long_fails_its_receive(void **state)
{
	struct joined j;

	join_plain(&j);
	two_hcas_recv(j.d, 1, 0, 2000);
	two_hcas_recv(j.d, 1, 0, 2000);
	post(&j, HCA_WR_SEND, 0, 2001, 0);
	run_streams(&j);
	assert_done(&j, 1, HCA_LOC_LEN_ERR);
	assert_done(&j, 1, HCA_WR_FLUSH_ERR);
	assert_terminated(&j, TERMINATE_TOO_LONG);
	part(&j);
}

/* The peer's key is withdrawn while the response is being sent. */
static void a_source_that_goes_while_it_is_read_ends_the_stream(void **state)
{
	struct rdmap_read left;
	struct joined j;

	join_plain(&j);
	post(&j, HCA_WR_RDMA_READ, 0, 300000, 0);
	fill_pipe(&j, 0);
	deliver(&j, 1, UINT32_MAX);
	fill_pipe(&j, 1);
	mr_free(&j.d->side[1].hca, j.d->side[1].mr);
	run_streams(&j);
	assert_done(&j, 0, HCA_REM_ACCESS_ERR);
	assert_terminated(&j, TERMINATE_SOURCE_STAG);
	/* RFC 5040 4.8: the Terminate tells what is left of the READ */
	rdmap_read_parse(j.d->side[1].side->stream->terminate.headers + 20,
			 &left);
	assert_true(left.bytes > 0 && left.bytes < 300000);
	assert_int_equal(left.sink_offset + left.bytes, TWO_HCAS_BASE + 300000);
	part(&j);
}

static void damage_is_found_by_the_crc_and_completes_nothing(void **state)
{
	for (uint32_t at = 2; at < 2 + 18 + 100; at++) {
		struct joined j;

		join_plain(&j);
		two_hcas_recv(j.d, 1, 1000, 100);
		post(&j, HCA_WR_SEND, 0, 100, 0);
		fill_pipe(&j, 0);
		j.pipe[0].bytes[at] ^= 0x10;
		run_streams(&j);
		assert_done(&j, 0, HCA_SUCCESS);
		assert_done(&j, 1, HCA_WR_FLUSH_ERR);
		assert_terminated(&j, TERMINATE_CRC);
		part(&j);
	}
}

/* The last bytes of a WRITE are not stored if its CRC is wrong. */
static void a_program_that_polls_the_last_byte_sees_no_damage(void **state)
{
	struct joined j;

	join_plain(&j);
	memset(bytes_of(&j, 0), 0xee, 1000);
	post(&j, HCA_WR_RDMA_WRITE, 0, 1000, 0);
	fill_pipe(&j, 0);
	j.pipe[0].bytes[500] ^= 1;
	run_streams(&j);
	assert_int_equal(bytes_of(&j, 1)[991], 0xee);
	for (uint32_t i = 992; i < 1000; i++)
		assert_int_equal(bytes_of(&j, 1)[i], 0);
	part(&j);
}

/* ---- forged segments ---- */

/* Gives side 1 an FPDU with this header and so many bytes of body. */
static void forge(struct joined *j, const struct ddp_header *h,
		  const void *body, uint32_t bytes)
{
	uint8_t buf[600];
	struct fpdu_tx tx;
	uint32_t n;

	fpdu_tx_init(&tx, true, false);
	n = (uint32_t)ddp_write(buf + FPDU_ULPDU_AT, h);
	if (bytes)
		memcpy(buf + FPDU_ULPDU_AT + n, body, bytes);
	n = fpdu_seal(&tx, buf, n + bytes);
	memcpy(j->pipe[0].bytes, buf, n);
	j->pipe[0].head = n;
	j->pipe[0].tail = 0;
}

#define VERSIONS .ddp_version = 1, .rdmap_version = 1

/* What a row changes in the header of a SEND of 8 bytes. */
static const struct forgery {
	struct ddp_header h;
	uint32_t bytes;
	enum terminate_cause cause;
} forgeries[] = {
	{{.is_last = true, .ddp_version = 2, .rdmap_version = 1, .opcode = 3},
	 8,
	 TERMINATE_UNTAGGED_VERSION},
	{{.is_tagged = true, .ddp_version = 0, .rdmap_version = 1},
	 8,
	 TERMINATE_TAGGED_VERSION},
	{{.ddp_version = 1, .rdmap_version = 2, .opcode = 3},
	 8,
	 TERMINATE_RDMAP_VERSION},
	{{VERSIONS, .opcode = 3, .queue = 4}, 8, TERMINATE_QUEUE},
	{{VERSIONS, .opcode = 3, .queue = 1}, 8, TERMINATE_QUEUE},
	{{VERSIONS, .opcode = 12}, 8, TERMINATE_OPCODE},
	/* of RFC 7306, which was not agreed on */
	{{VERSIONS, .opcode = 8, .sequence = 1}, 8, TERMINATE_OPCODE},
	{{.is_tagged = true, VERSIONS, .opcode = 3}, 8, TERMINATE_OPCODE},
	/* a response to no READ */
	{{.is_tagged = true, VERSIONS, .opcode = 2}, 8, TERMINATE_OPCODE},
	{{VERSIONS, .opcode = 3, .sequence = 2}, 8, TERMINATE_SEQUENCE},
	{{VERSIONS, .opcode = 3, .sequence = 1, .message_offset = 1},
	 8,
	 TERMINATE_OFFSET},
	/* a Read Request of another length, or in pieces */
	{{.is_last = true, VERSIONS, .opcode = 1, .queue = 1, .sequence = 1},
	 27,
	 TERMINATE_STREAM},
	{{VERSIONS, .opcode = 1, .queue = 1, .sequence = 1},
	 28,
	 TERMINATE_STREAM},
	{{.is_last = true, VERSIONS, .opcode = 1, .queue = 1, .sequence = 2},
	 28,
	 TERMINATE_SEQUENCE},
	/* a Terminate that is longer than any */
	{{.is_last = true, VERSIONS, .opcode = 7, .queue = 2, .sequence = 1},
	 65,
	 TERMINATE_STREAM},
};

static void each_wrong_header_has_its_terminate(void **state)
{
	static const uint8_t body[100];

	for (uint32_t i = 0; i < TEST_COUNT(forgeries); i++) {
		const struct forgery *f = &forgeries[i];
		struct joined j;

		join_plain(&j);
		two_hcas_recv(j.d, 1, 0, 100);
		forge(&j, &f->h, body, f->bytes);
		run_streams(&j);
		assert_done(&j, 1, HCA_WR_FLUSH_ERR);
		assert_terminated(&j, f->cause);
		part(&j);
	}
}

/* READs beyond what the connection allows. */
static void a_peer_that_floods_with_reads_is_stopped(void **state)
{
	struct ddp_header h = {.is_last = true,
			       .ddp_version = 1,
			       .rdmap_version = 1,
			       .opcode = RDMAP_READ_REQUEST,
			       .queue = 1};
	uint8_t body[RDMAP_READ_BYTES] = {0};
	struct joined j;

	join_plain(&j);
	for (uint32_t i = 1; stream_phase(&j, 1) == STREAM_OPEN; i++) {
		assert_true(i < 10);
		h.sequence = i;
		forge(&j, &h, body, sizeof(body));
		deliver(&j, 1, UINT32_MAX);
	}
	run_streams(&j);
	assert_int_equal(j.d->side[1].side->stream->terminate.cause,
			 TERMINATE_NO_BUFFER);
	/* the responses to the forged READs end the other side */
	assert_int_equal(stream_phase(&j, 0), STREAM_OVER);
	assert_int_equal(stream_phase(&j, 1), STREAM_OVER);
	part(&j);
}

/* A response that names other memory than its READ is refused, and nothing is
 * placed there. */
static void a_response_goes_nowhere_but_to_its_read(void **state)
{
	static const uint8_t body[100] = {[0 ... 99] = 0xbb};

	for (int i = 0; i < 4; i++) {
		struct ddp_header h = {.is_tagged = true,
				       .is_last = i != 3,
				       .ddp_version = 1,
				       .rdmap_version = 1,
				       .opcode = RDMAP_READ_RESPONSE};
		struct joined j;
		uint64_t before;

		join_plain(&j);
		/* the roles are the other way round: forge writes to side 1 */
		two_hcas_send(j.d, 1, HCA_WR_RDMA_READ, 5000, 100, 0);
		two_hcas_post(j.d, 1);
		post(&j, HCA_WR_RDMA_WRITE, 0, 0, 0);
		fill_pipe(&j, 0);
		deliver(&j, 1, UINT32_MAX);
		fill_pipe(&j, 1);
		h.stag = j.d->side[1].mr->lkey ^ (i == 0 ? 1 : 0);
		h.offset = TWO_HCAS_BASE + (i == 1 ? 4999 : 5000);
		memcpy(&before, bytes_of(&j, 1) + 5000, 8);
		forge(&j, &h, body, i == 2 ? 99 : 100);
		j.pipe[1].head = j.pipe[1].tail = 0;
		run_streams(&j);
		assert_done(&j, 1, HCA_WR_FLUSH_ERR);
		assert_int_equal(qp_state(&j, 1), HCA_QP_ERR);
		assert_memory_equal(bytes_of(&j, 1) + 5000, &before, 8);
		part(&j);
	}
}

/* Any bytes end the stream in order, or are taken. */
static void random_streams_do_no_harm(void **state)
{
	struct rng rng;

	rng_init(&rng, 23);
	for (int round = 0; round < 300; round++) {
		struct stream_config c = plain;
		struct joined j;
		uint32_t hits;

		c.has_crc = false;
		c.has_extensions = round % 2;
		join_with(&j, &c);
		for (int i = 0; i < 4; i++)
			two_hcas_recv(j.d, 1, 0, 500);
		post(&j, HCA_WR_SEND, 0, 400, 0);
		post(&j, HCA_WR_RDMA_READ, 0, 4000, 0);
		post(&j, HCA_WR_RDMA_WRITE, 0, 3000, 0);
		post(&j, HCA_WR_SEND, 0, 10, 0);
		fill_pipe(&j, 0);
		hits = 1 + (uint32_t)rng_below(&rng, 6);
		while (hits--)
			j.pipe[0].bytes[rng_below(&rng, j.pipe[0].head)] =
				(uint8_t)rng_below(&rng, 256);
		run_streams(&j);
		part(&j);
	}
}

/* ---- the end ---- */

static void a_lost_connection_flushes_both_sides(void **state)
{
	struct joined j;

	join_plain(&j);
	two_hcas_recv(j.d, 1, 0, 100);
	post(&j, HCA_WR_RDMA_READ, 0, 100, 0);
	fill_pipe(&j, 0);
	for (int i = 0; i < 2; i++)
		engine_stream_lost(j.d->side[i].engine, j.d->side[i].side,
				   j.d->now_ns);
	two_hcas_run(j.d, j.d->now_ns);
	assert_done(&j, 0, HCA_WR_FLUSH_ERR);
	assert_done(&j, 1, HCA_WR_FLUSH_ERR);
	assert_int_equal(j.d->side[0].explained.cause, EXPLAIN_PEER_LEFT);
	assert_int_equal(j.d->side[0].explained.opcode, HCA_WR_RDMA_READ);
	part(&j);
}

/* The program moves its queue pair to ERR: nothing more is sent or placed. */
static void a_queue_pair_in_err_takes_no_bytes(void **state)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_ERR};
	struct joined j;
	const char *why;

	join_plain(&j);
	memset(bytes_of(&j, 0), 0xee, 100);
	post(&j, HCA_WR_RDMA_WRITE, 0, 100, 0);
	fill_pipe(&j, 0);
	deliver(&j, 1, 30);
	assert_int_equal(engine_qp_modify(j.d->side[1].engine,
					  j.d->side[1].side, &a, HCA_QP_STATE,
					  j.d->side[1].ip, 0, &why),
			 0);
	run_streams(&j);
	assert_int_equal(bytes_of(&j, 1)[80], 0);
	assert_true(engine_stream_is_over(j.d->side[1].side));
	part(&j);
}

/* RESET frees the stream, and the queue pair may be used again. */
static void a_queue_pair_is_used_again(void **state)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_RESET};
	struct joined j;
	const char *why;

	join_plain(&j);
	exchange(&j, 10);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(engine_qp_modify(j.d->side[i].engine,
						  j.d->side[i].side, &a,
						  HCA_QP_STATE, j.d->side[i].ip,
						  0, &why),
				 0);
		assert_null(j.d->side[i].side->stream);
		two_hcas_connect(j.d, i, 3);
	}
	open_streams(&j);
	exchange(&j, 10);
	part(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_request_arrives_at_each_size),
		cmocka_unit_test(a_stream_may_be_cut_at_each_byte),
		cmocka_unit_test(one_cut_at_any_place_changes_nothing),
		cmocka_unit_test(a_read_is_scattered_by_its_request),
		cmocka_unit_test(no_more_reads_are_under_way_than_ord),
		cmocka_unit_test(a_fence_waits_for_the_reads_before),
		cmocka_unit_test(requests_complete_in_order),
		cmocka_unit_test(
			a_responder_sends_nothing_before_it_has_received),
		cmocka_unit_test(each_ready_to_receive_opens_the_way),
		cmocka_unit_test(a_ready_to_receive_by_send_takes_no_receive),
		cmocka_unit_test(a_stream_is_drained_when_all_is_sent),
		cmocka_unit_test(
			the_extensions_work_where_both_sides_know_them),
		cmocka_unit_test(an_operation_that_iwarp_lacks_fails_alone),
		cmocka_unit_test(
			a_refused_access_ends_both_sides_by_its_terminate),
		cmocka_unit_test(
			another_first_fpdu_than_was_agreed_ends_the_stream),
		cmocka_unit_test(a_refused_read_in_a_used_slot_fails),
		cmocka_unit_test(the_reads_before_a_refused_one_complete),
		cmocka_unit_test(a_send_without_a_receive_ends_the_stream),
		cmocka_unit_test(a_send_that_is_too_long_fails_its_receive),
		cmocka_unit_test(
			a_source_that_goes_while_it_is_read_ends_the_stream),
		cmocka_unit_test(
			damage_is_found_by_the_crc_and_completes_nothing),
		cmocka_unit_test(
			a_program_that_polls_the_last_byte_sees_no_damage),
		cmocka_unit_test(each_wrong_header_has_its_terminate),
		cmocka_unit_test(a_peer_that_floods_with_reads_is_stopped),
		cmocka_unit_test(a_response_goes_nowhere_but_to_its_read),
		cmocka_unit_test(random_streams_do_no_harm),
		cmocka_unit_test(a_lost_connection_flushes_both_sides),
		cmocka_unit_test(a_queue_pair_in_err_takes_no_bytes),
		cmocka_unit_test(a_queue_pair_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
