/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP over SCTP: the input is a program of one-byte commands with operands,
 * for two queue pairs and the messages between them, which come in any order.
 * Forged messages have numbers near the expected ones, so that the first checks
 * do not refuse them.  One input in four instead consists of the messages that
 * an end gets while its session starts.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "ibt/ibt.h"
#include "iwarp/startup.h"
#include "iwarp/stream.h"
#include "util/check.h"
#include "work.h"

#define DEPTH 16
#define BOX   64 /* most messages under way from a side */
#define ROOM  10000u

struct message {
	uint8_t *p;
	uint32_t bytes;
};

/* box[i]: the messages under way from side i to the other side. */
struct script {
	struct input_bytes in;
	struct two_hcas *two_hcas;
	struct message box[2][BOX];
	uint32_t count[2];
	uint32_t posted[2], completed[2];
};

/* Adds a message of n bytes to the box of side i.  If the box is full, the
 * message is lost, and the session waits for the message's number for ever. */
static void add_message(struct script *s, int i, const uint8_t *p, uint32_t n)
{
	struct message *m = &s->box[i][s->count[i]];

	if (s->count[i] == BOX)
		return;
	/* in its own block, so that the sanitizer finds reads behind it */
	m->p = malloc(n ? n : 1);
	CHECK(m->p);
	m->bytes = n;
	memcpy(m->p, p, n);
	s->count[i]++;
}

static void fill_box(struct script *s, int i)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	struct engine_frame frame;
	uint8_t buf[ROOM];
	struct ibt_qp *q;
	uint32_t n;

	engine_tx(side->engine, &frame, 1, s->two_hcas->now_ns);
	while (s->count[i] < BOX && (q = engine_stream_next(side->engine))) {
		n = engine_stream_tx(side->engine, q, buf, sizeof(buf),
				     s->two_hcas->now_ns);
		if (n)
			add_message(s, i, buf, n);
	}
}

/* Side i receives one of the messages that are under way. */
static void deliver_message(struct script *s, int i, uint32_t which)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	struct message m;

	if (!s->count[!i])
		return;
	which %= s->count[!i];
	m = s->box[!i][which];
	s->box[!i][which] = s->box[!i][--s->count[!i]];
	engine_stream_rx(side->engine, side->side, m.p, m.bytes,
			 s->two_hcas->now_ns);
	free(m.p);
}

/* Adds a forged segment of side i, which the peer may expect. */
static void forge_segment(struct script *s, int i)
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
	uint16_t ssn = (uint16_t)(to->session->rx_ssn +
				  (flags & 0x20 ? input_u8(&s->in) % 8 : 0));
	uint32_t bytes = input_u8(&s->in) % 200, n = SESSION_HEAD;
	uint8_t buf[SESSION_HEAD + DDP_HEAD_MAX + 200];

	h.sequence = (h.queue ? to->in.request_sequence : to->in.send_sequence);
	h.sequence += flags >> 3 & 1;
	h.message_offset = flags & 16 ? to->in.placed : input_u8(&s->in);
	session_write_head(buf, SESSION_SEGMENT, ssn);
	n += (uint32_t)ddp_write(buf + n, &h);
	for (uint32_t b = 0; b < bytes; b++)
		buf[n + b] = input_u8(&s->in);
	add_message(s, i, buf, n + bytes);
}

/* Adds a message of side i that consists of bytes of the input, with a right
 * head or without one. */
static void forge_control(struct script *s, int i)
{
	const struct iwarp_stream *to = s->two_hcas->side[!i].side->stream;
	uint8_t how = input_u8(&s->in), buf[64];
	uint32_t bytes = how % sizeof(buf);

	for (uint32_t b = 0; b < bytes; b++)
		buf[b] = input_u8(&s->in);
	if (bytes >= SESSION_HEAD && how & 0x80)
		session_write_head(buf, SESSION_CONTROL,
				   to->session->rx_ssn + (how >> 6 & 1));
	add_message(s, i, buf, bytes);
}

static void damage_message(struct script *s, int i)
{
	uint32_t at = input_u16(&s->in);
	struct message *m;

	if (!s->count[i])
		return;
	m = &s->box[i][at % s->count[i]];
	if (m->bytes)
		m->p[at % m->bytes] ^= input_u8(&s->in);
}

static void collect_completions(struct script *s)
{
	struct cqe c;

	two_hcas_run(s->two_hcas, s->two_hcas->now_ns);
	for (int i = 0; i < 2; i++)
		while (two_hcas_poll(s->two_hcas, i, &c))
			s->completed[i]++;
}

static void finish_stream(struct script *s, int i)
{
	uint8_t buf[ENGINE_FINISH_BYTES];
	uint32_t n = engine_stream_finish(s->two_hcas->side[i].side, buf);

	if (n)
		add_message(s, i, buf, n);
}

static void run_command(struct script *s, uint8_t command)
{
	int i = command & 1;
	struct two_hcas_side *side = &s->two_hcas->side[i];

	switch (command >> 1 & 15) {
	case 0:
	case 1:
	case 2:
		s->posted[i] += work_send(&s->in, s->two_hcas, i,
					  HCA_SEND_FENCE | HCA_SEND_SOLICITED,
					  HCA_SEND_SIGNALED);
		break;
	case 3:
	case 4:
		s->posted[i] += work_recv(&s->in, s->two_hcas, i);
		break;
	case 5:
	case 6:
	case 7:
		deliver_message(s, i, input_u8(&s->in));
		break;
	case 8:
		forge_segment(s, i);
		break;
	case 9:
		forge_control(s, i);
		break;
	case 10:
		damage_message(s, i);
		break;
	case 11:
		if (input_u8(&s->in) < 8)
			finish_stream(s, i);
		break;
	case 12:
		side->mr->access ^= input_u8(&s->in) & 7;
		break;
	case 13:
		collect_completions(s);
		break;
	default:
		fill_box(s, i);
		break;
	}
}

static void open_sessions(struct script *s)
{
	uint8_t how = input_u8(&s->in);
	struct stream_config c = {.is_session = true,
				  .has_extensions = how & 2,
				  .ulpdu_max = STREAM_ULPDU_MIN +
					       input_u16(&s->in) % 9000,
				  .ird = input_u8(&s->in) % 5,
				  .ord = input_u8(&s->in) % 5};

	for (int i = 0; i < 2; i++) {
		struct two_hcas_side *side = &s->two_hcas->side[i];

		CHECK(!engine_stream_open(side->engine, side->side, &c));
	}
}

/* Checks that each session keeps at most SESSION_KEPT_MAX bytes, and that after
 * the end of both sessions each side has as many completions as it has posted
 * requests and receives. */
static void check_the_end(struct script *s)
{
	collect_completions(s);
	for (int i = 0; i < 2; i++) {
		struct two_hcas_side *side = &s->two_hcas->side[i];

		CHECK(side->side->stream->session->kept <= SESSION_KEPT_MAX);
		engine_stream_lost(side->engine, side->side,
				   s->two_hcas->now_ns);
		while (s->count[i])
			free(s->box[i][--s->count[i]].p);
	}
	collect_completions(s);
	for (int i = 0; i < 2; i++)
		CHECK(s->completed[i] == s->posted[i]);
}

/* ---- the start ---- */

/* Lets one side start a session, gives that side messages that consist of bytes
 * of the input, and checks that the side waits for nothing after startup_end.
 */
static void run_start(struct input_bytes *in)
{
	struct startup_offer offer = {.revision = 2,
				      .is_session = true,
				      .is_enhanced = true,
				      .rtr = MPA_RTR_ALL,
				      .ird = 4,
				      .ord = 4,
				      .ird_max = 8};
	uint8_t how = input_u8(in), buf[SESSION_FRAME_MAX + 50];
	struct startup s;

	if (how & 1)
		FUZZ_REQUIRE(startup_connect(&s, &offer, 1000, buf) > 0);
	else
		startup_listen_session(&s, 1000);
	for (int i = 0; i < 200 && s.state == STARTUP_WAITS; i++) {
		uint8_t kind = input_u8(in);
		uint32_t n =
			kind & 0x20 ? sizeof(buf) - kind % 64u : kind % 32u;

		for (uint32_t b = 0; b < n; b++)
			buf[b] = b < 32 ? input_u8(in) : 0;
		if (n >= SESSION_HEAD && kind & 0x40)
			session_write_head(buf, SESSION_SEGMENT + (kind & 1),
					   kind >> 7);
		FUZZ_REQUIRE(startup_take(&s, buf, n) == n);
		FUZZ_REQUIRE(s.early_bytes <= STARTUP_EARLY_MAX);
	}
	if (s.state == STARTUP_REQUESTED)
		FUZZ_REQUIRE(startup_accept(&s, &offer, buf) > 0);
	startup_end(&s);
	FUZZ_REQUIRE(s.state != STARTUP_WAITS);
	startup_fini(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input_bytes in = {data, data + size};
	struct script *s;

	if (input_u8(&in) % 4 == 0) {
		run_start(&in);
		return 0;
	}
	s = calloc(1, sizeof(*s));
	CHECK(s);
	s->in = in;
	s->two_hcas = two_hcas_new(3, DEPTH);
	open_sessions(s);
	while (s->in.at < s->in.end)
		run_command(s, input_u8(&s->in));
	check_the_end(s);
	two_hcas_free(s->two_hcas);
	free(s);
	return 0;
}
