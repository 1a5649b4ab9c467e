/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP: the input is a program of one-byte commands with operands, for two
 * queue pairs and the two byte streams between them.  Forged segments have a
 * right CRC and a sequence number near the expected one, so that the first
 * checks do not refuse them.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "ibt/ibt.h"
#include "iwarp/stream.h"
#include "scenario/two_hcas.h"
#include "util/check.h"

#define DEPTH	   16
#define PIPE_BYTES (1u << 20)
#define ROOM	   70000u

struct pipe {
	uint8_t bytes[PIPE_BYTES];
	uint32_t head, tail;
};

/* pipe[i] goes from side i to the other side. */
struct script {
	const uint8_t *at, *end;
	struct two_hcas *two_hcas;
	struct pipe pipe[2];
	uint32_t posted[2], completed[2];
};

static uint8_t u8(struct script *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static uint32_t u16(struct script *s)
{
	uint32_t high = u8(s);

	return high << 8 | u8(s);
}

/* An offset or a length: mostly inside the memory, sometimes not. */
static uint32_t place(struct script *s)
{
	uint32_t v = u16(s);

	return v >= 0xfff0 ? v << 16 : v << 3;
}

static bool is_full(const struct wq *q)
{
	return shared_own(&q->head) - shared_load(&q->tail) >= q->depth;
}

static void post_send(struct script *s, int i)
{
	static const uint8_t any[] = {
		HCA_WR_RDMA_WRITE,  HCA_WR_RDMA_WRITE_IMM, HCA_WR_SEND,
		HCA_WR_SEND_IMM,    HCA_WR_RDMA_READ,	   HCA_WR_ATOMIC_CAS,
		HCA_WR_ATOMIC_FADD, HCA_WR_LOCAL_INV,	   HCA_WR_SEND_INV};
	struct two_hcas_side *side = &s->two_hcas->side[i];
	enum hca_wr op = (enum hca_wr)any[u8(s) % sizeof(any)];
	uint32_t local = place(s), bytes = u16(s), remote = place(s);
	uint8_t flags = u8(s);
	struct wqe *w;

	if (is_full(&side->qp->sq))
		return;
	w = two_hcas_send(s->two_hcas, i, op, local, bytes, remote);
	w->flags = HCA_SEND_SIGNALED |
		   (flags & (HCA_SEND_FENCE | HCA_SEND_SOLICITED));
	w->rkey ^= flags & 0x80 ? u8(s) : 0;
	w->imm_be = u8(s);
	w->swap_add = w->compare = u8(s);
	two_hcas_post(s->two_hcas, i);
	s->posted[i]++;
}

static void post_recv(struct script *s, int i)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	uint32_t local = place(s), bytes = u16(s);

	if (is_full(&side->qp->rq))
		return;
	two_hcas_recv(s->two_hcas, i, local, bytes);
	s->posted[i]++;
}

/* Moves what side i has to send into its pipe. */
static void fill_pipe(struct script *s, int i)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	struct pipe *p = &s->pipe[i];
	struct engine_frame frame;
	struct ibt_qp *q;

	engine_tx(side->engine, &frame, 1, s->two_hcas->now_ns);
	if (p->head == p->tail)
		p->head = p->tail = 0;
	while (p->head + ROOM <= PIPE_BYTES &&
	       (q = engine_stream_next(side->engine)))
		p->head += engine_stream_tx(side->engine, q, p->bytes + p->head,
					    ROOM, s->two_hcas->now_ns);
}

/* Side i receives n bytes, or as many as there are. */
static void deliver(struct script *s, int i, uint32_t n)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	struct pipe *p = &s->pipe[!i];
	uint8_t *copy;

	if (n > p->head - p->tail)
		n = p->head - p->tail;
	/* exactly n bytes and one, so that the sanitizer finds reads beyond */
	copy = malloc(n + 1u);
	CHECK(copy);
	memcpy(copy, p->bytes + p->tail, n);
	engine_stream_rx(side->engine, side->side, copy, n,
			 s->two_hcas->now_ns);
	free(copy);
	p->tail += n;
}

/* Appends a forged FPDU to the pipe of side i. */
static void forge(struct script *s, int i)
{
	const struct iwarp_stream *to = s->two_hcas->side[!i].side->stream;
	uint8_t flags = u8(s), opcode = u8(s);
	struct ddp_header h = {.is_last = flags & 1,
			       .is_tagged = flags >> 1 & 1,
			       .ddp_version = flags & 4 ? 1 : u8(s) & 3,
			       .rdmap_version = 1,
			       .opcode = opcode & 15,
			       .stag = s->two_hcas->side[!i].mr->rkey,
			       .offset = TWO_HCAS_BASE + place(s),
			       .queue = opcode >> 4 & 7};
	struct pipe *p = &s->pipe[i];
	struct fpdu_tx tx = s->two_hcas->side[i].side->stream->tx;
	uint32_t bytes = u8(s) % 70, n;

	h.sequence = (h.queue ? to->in.request_sequence : to->in.send_sequence);
	h.sequence += flags >> 3 & 1;
	h.message_offset = flags & 16 ? to->in.placed : u8(s);
	if (p->head + 200 > PIPE_BYTES)
		return;
	n = (uint32_t)ddp_write(p->bytes + p->head + FPDU_ULPDU_AT, &h);
	for (uint32_t b = 0; b < bytes; b++)
		p->bytes[p->head + FPDU_ULPDU_AT + n + b] = u8(s);
	p->head += fpdu_seal(&tx, p->bytes + p->head, n + bytes);
}

static void damage(struct script *s, int i)
{
	struct pipe *p = &s->pipe[i];
	uint32_t at = u16(s);

	if (p->head != p->tail)
		p->bytes[p->tail + at % (p->head - p->tail)] ^= u8(s);
}

static void collect(struct script *s)
{
	struct cqe c;

	two_hcas_run(s->two_hcas, s->two_hcas->now_ns);
	for (int i = 0; i < 2; i++)
		while (two_hcas_poll(s->two_hcas, i, &c))
			s->completed[i]++;
}

static void run_command(struct script *s, uint8_t command)
{
	int i = command & 1;
	struct two_hcas_side *side = &s->two_hcas->side[i];

	switch (command >> 1 & 15) {
	case 0:
	case 1:
	case 2:
		post_send(s, i);
		break;
	case 3:
	case 4:
		post_recv(s, i);
		break;
	case 5:
	case 6:
		deliver(s, i, u16(s));
		break;
	case 7:
	case 8:
		deliver(s, i, u8(s));
		break;
	case 9:
		forge(s, i);
		break;
	case 10:
		damage(s, i);
		break;
	case 11:
		if (u8(s) == 0)
			engine_stream_lost(side->engine, side->side,
					   s->two_hcas->now_ns);
		break;
	case 12:
		side->mr->access ^= u8(s) & 7;
		break;
	case 13:
		collect(s);
		break;
	default:
		fill_pipe(s, i);
		break;
	}
}

static void open_streams(struct script *s)
{
	static const uint8_t kinds[] = {0, MPA_RTR_SEND, MPA_RTR_WRITE,
					MPA_RTR_READ};
	uint8_t how = u8(s);
	struct stream_config c = {.has_crc = how & 1,
				  .has_extensions = how & 2,
				  .ulpdu_max = STREAM_ULPDU_MIN + u16(s) % 9000,
				  .ird = u8(s) % 5,
				  .ord = u8(s) % 5};

	for (int i = 0; i < 2; i++) {
		struct two_hcas_side *side = &s->two_hcas->side[i];

		c.tx_markers = how & (i ? 4 : 8);
		c.rx_markers = how & (i ? 8 : 4);
		c.is_responder = i;
		c.rtr = i && !(how & 0x40) ? 0 : kinds[how >> 4 & 3];
		if (i && how & 0x80)
			c.rtr ^= MPA_RTR_ALL;
		CHECK(!engine_stream_open(side->engine, side->side, &c));
	}
}

/* After the end of its stream each request and each receive has completed
 * once. */
static void check_the_end(struct script *s)
{
	collect(s);
	for (int i = 0; i < 2; i++)
		engine_stream_lost(s->two_hcas->side[i].engine,
				   s->two_hcas->side[i].side,
				   s->two_hcas->now_ns);
	collect(s);
	for (int i = 0; i < 2; i++)
		CHECK(s->completed[i] == s->posted[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script *s = calloc(1, sizeof(*s));

	CHECK(s);
	s->at = data;
	s->end = data + size;
	s->two_hcas = two_hcas_new(3, DEPTH);
	open_streams(s);
	while (s->at < s->end)
		run_command(s, u8(s));
	check_the_end(s);
	two_hcas_free(s->two_hcas);
	free(s);
	return 0;
}
