/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP: the input is a program of one-byte commands with operands.  There are
 * two queue pairs and two byte streams between them.  Forged segments have a
 * right CRC and a sequence number near the expected one, so that the first
 * checks do not refuse them.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "ibt/ibt.h"
#include "iwarp/stream.h"
#include "util/check.h"
#include "work.h"

#define DEPTH	   16
#define PIPE_BYTES (1u << 20)
#define ROOM	   70000u /* bytes that one engine_stream_tx may write */

/* A byte stream: bytes[tail..head) are under way. */
struct pipe {
	uint8_t bytes[PIPE_BYTES];
	uint32_t head, tail;
};

/* pipe[i] goes from side i to side !i. */
struct script {
	struct input_bytes in;
	struct two_hcas *two_hcas;
	struct pipe pipe[2];
	uint32_t posted[2], completed[2];
};

static void post_send(struct script *s, int i)
{
	s->posted[i] += work_send(&s->in, s->two_hcas, i,
				  HCA_SEND_FENCE | HCA_SEND_SOLICITED,
				  HCA_SEND_SIGNALED);
}

static void post_recv(struct script *s, int i)
{
	s->posted[i] += work_recv(&s->in, s->two_hcas, i);
}

/* Moves the bytes that side i has to send into its pipe. */
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

/* Gives side i the next n bytes, or all bytes if there are fewer. */
static void deliver_bytes(struct script *s, int i, uint32_t n)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	struct pipe *p = &s->pipe[!i];
	uint8_t *copy;

	if (n > p->head - p->tail)
		n = p->head - p->tail;
	/* in its own block, so that the sanitizer finds reads behind it */
	copy = malloc(n ? n : 1);
	CHECK(copy);
	memcpy(copy, p->bytes + p->tail, n);
	engine_stream_rx(side->engine, side->side, copy, n,
			 s->two_hcas->now_ns);
	free(copy);
	p->tail += n;
}

/* Appends a forged FPDU to the pipe of side i. */
static void forge_fpdu(struct script *s, int i)
{
	const struct iwarp_stream *to = s->two_hcas->side[!i].side->stream;
	uint8_t flags = input_u8(&s->in), opcode = input_u8(&s->in);
	struct ddp_header h = {.is_last = flags & 1,
			       .is_tagged = flags >> 1 & 1,
			       .ddp_version =
				       flags & 4 ? 1 : input_u8(&s->in) & 3,
			       .rdmap_version = 1,
			       .opcode = opcode & 15,
			       .stag = s->two_hcas->side[!i].mr->rkey,
			       .offset = TWO_HCAS_BASE + work_place(&s->in),
			       .queue = opcode >> 4 & 7};
	struct pipe *p = &s->pipe[i];
	struct fpdu_tx tx = s->two_hcas->side[i].side->stream->tx;
	uint32_t bytes = input_u8(&s->in) % 70, n;

	h.sequence = (h.queue ? to->in.request_sequence : to->in.send_sequence);
	h.sequence += flags >> 3 & 1;
	h.message_offset = flags & 16 ? to->in.placed : input_u8(&s->in);
	if (p->head + 200 > PIPE_BYTES)
		return;
	n = (uint32_t)ddp_write(p->bytes + p->head + FPDU_ULPDU_AT, &h);
	for (uint32_t b = 0; b < bytes; b++)
		p->bytes[p->head + FPDU_ULPDU_AT + n + b] = input_u8(&s->in);
	p->head += fpdu_seal(&tx, p->bytes + p->head, n + bytes);
}

static void damage_byte(struct script *s, int i)
{
	struct pipe *p = &s->pipe[i];
	uint32_t at = input_u16(&s->in);

	if (p->head != p->tail)
		p->bytes[p->tail + at % (p->head - p->tail)] ^=
			input_u8(&s->in);
}

static void collect_completions(struct script *s)
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
		deliver_bytes(s, i, input_u16(&s->in));
		break;
	case 7:
	case 8:
		deliver_bytes(s, i, input_u8(&s->in));
		break;
	case 9:
		forge_fpdu(s, i);
		break;
	case 10:
		damage_byte(s, i);
		break;
	case 11:
		if (input_u8(&s->in) == 0)
			engine_stream_lost(side->engine, side->side,
					   s->two_hcas->now_ns);
		break;
	case 12:
		side->mr->access ^= input_u8(&s->in) & 7;
		break;
	case 13:
		collect_completions(s);
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
	uint8_t how = input_u8(&s->in);
	struct stream_config c = {.has_crc = how & 1,
				  .has_extensions = how & 2,
				  .ulpdu_max = STREAM_ULPDU_MIN +
					       input_u16(&s->in) % 9000,
				  .ird = input_u8(&s->in) % 5,
				  .ord = input_u8(&s->in) % 5};

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

/* Checks that after the end of both streams each request and each receive has
 * completed once. */
static void check_the_end(struct script *s)
{
	collect_completions(s);
	for (int i = 0; i < 2; i++)
		engine_stream_lost(s->two_hcas->side[i].engine,
				   s->two_hcas->side[i].side,
				   s->two_hcas->now_ns);
	collect_completions(s);
	for (int i = 0; i < 2; i++)
		CHECK(s->completed[i] == s->posted[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script *s = calloc(1, sizeof(*s));

	CHECK(s);
	s->in.at = data;
	s->in.end = data + size;
	s->two_hcas = two_hcas_new(3, DEPTH);
	open_streams(s);
	while (s->in.at < s->in.end)
		run_command(s, input_u8(&s->in));
	check_the_end(s);
	two_hcas_free(s->two_hcas);
	free(s);
	return 0;
}
