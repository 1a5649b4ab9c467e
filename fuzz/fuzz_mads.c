/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric: whatever programs of two hosts and a switch send, register and close,
 * each turn of the subnet ends, two turns with the same time leave no overdue
 * work, an end has at most FABRIC_AGENTS agents, and no message that an end
 * receives is too short or too long.
 */
#include "fabric_of.h"
#include "fuzz.h"
#include "input.h"

#include <string.h>

#include "fabric/fabric.h"
#include "hdr/bytes.h"

#define ENDS   3
#define LONG   2000 /* most bytes of a MAD; RMPP sends it in segments */
#define MAD_AT FABRIC_UMAD_BYTES
#define BUFFER (FABRIC_UMAD_BYTES + LONG)

static const char text[] = "Switch 20 \"S\"\n[1] \"A\"[1]\n[2] \"B\"[1]\n"
			   "[19] \"T\"[2]\n\n"
			   "Switch 3 \"T\"\n[2] \"S\"[19]\n[1] \"B\"[2]\n\n"
			   "Hca 1 \"A\"\n[1] \"S\"[1]\n\n"
			   "Hca 2 \"B\"\n[1] \"S\"[2]\n[2] \"T\"[1]\n";

struct script {
	struct input_bytes in;
	struct fabric *f;
	struct end *ends[ENDS];
	uint8_t last[BUFFER]; /* the last message that an end received */
	uint64_t now_ms;
};

static void fetch_all(struct script *s)
{
	struct end *end;

	while ((end = fabric_ready(s->f))) {
		const uint8_t *message;
		size_t bytes = 0;

		message = fabric_fetch(end, &bytes);
		FUZZ_REQUIRE(message);
		FUZZ_REQUIRE(bytes >= MAD_AT + 24);
		FUZZ_REQUIRE(bytes <= MAD_AT + FABRIC_MAD_MAX);
		memcpy(s->last, message, bytes < BUFFER ? bytes : BUFFER);
		fabric_fetched(end);
	}
}

/* Gives the MAD a known class and attribute, and a small or a multicast LID, so
 * that many messages arrive. */
static void shape_mad(struct script *s, uint8_t *umad)
{
	static const uint8_t classes[] = {0x01, 0x81, 0x81, 0x03, 0x04, 0x32};
	static const uint8_t attributes[] = {0x02, 0x10, 0x11, 0x12, 0x14,
					     0x15, 0x16, 0x17, 0x18, 0x19,
					     0x1b, 0x1d, 0x20, 0x01};
	uint8_t *mad = umad + MAD_AT, how = input_u8(&s->in);

	mad[0] = 1;
	mad[1] = classes[input_u8(&s->in) % sizeof(classes)];
	mad[2] = mad[1] == 0x03 ? 2 : 1;
	mad[3] = how & 1 ? 1 + (how >> 1 & 1) : input_u8(&s->in);
	bytes_put16(mad + 16,
		    attributes[input_u8(&s->in) % sizeof(attributes)]);
	bytes_put32(umad + 20, mad[1] != 0x01 && mad[1] != 0x81);
	bytes_put32(umad + 24, 0x80010000);
	bytes_put16(umad + 28, how & 0x40 ? 0xc000 + (how & 3) : how & 7);
	if (mad[1] != 0x81 || how & 0x80)
		return;
	memset(mad + 32, 0xff, 4);
	mad[6] = 0;
	mad[7] &= 3;
	mad[128 + 1] = 1;
}

static void send_one(struct script *s, struct end *end)
{
	uint8_t umad[BUFFER] = {0}, how = input_u8(&s->in);
	size_t bytes = MAD_AT + 256, n = 24 + input_u8(&s->in);

	/* half of the messages are the last received one, changed */
	if (how & 1)
		memcpy(umad, s->last, BUFFER);
	for (size_t i = 0; i < n && s->in.at < s->in.end; i++)
		umad[MAD_AT + (i < 40 ? i : i * 5 % 256)] ^= input_u8(&s->in);
	memset(umad, 0, 4);
	umad[0] = input_u8(&s->in) % 4;
	umad[8] = how & 2 ? 100 : 0;
	umad[9] = 0;
	umad[12] = how & 4 ? 2 : 0;
	if (how & 8)
		shape_mad(s, umad);
	if (how & 16)
		bytes = MAD_AT + (size_t)(input_u16(&s->in) % LONG);
	fabric_send(end, umad, bytes);
}

static void register_one(struct script *s, struct end *end)
{
	static const uint8_t classes[] = {0x01, 0x81, 0x03, 0x04, 0x32, 0x7f};
	struct fabric_agent agent = {
		.methods = {input_u32(&s->in), input_u8(&s->in)},
		.oui = input_u8(&s->in) & 1,
		.mgmt_class = classes[input_u8(&s->in) % sizeof(classes)],
		.rmpp_version = input_u8(&s->in) % 3,
	};
	int id;

	agent.class_version = agent.mgmt_class == 0x03 ? 2 : 1;
	id = fabric_register(end, &agent);
	FUZZ_REQUIRE(id < FABRIC_AGENTS);
}

static void open_again(struct script *s, int index)
{
	static const char *const names[] = {"A", "B", "S"};
	struct node *node = fabric_find(s->f, names[index]);
	int err;

	if (s->ends[index])
		fabric_close(s->ends[index]);
	s->ends[index] = fabric_open(node, index == 2 ? 0 : 1, NULL, &err);
	FUZZ_REQUIRE(s->ends[index] && !err);
}

static void run_step(struct script *s)
{
	uint8_t step = input_u8(&s->in);
	int index = step % ENDS;

	switch (step / ENDS % 8) {
	case 0:
		register_one(s, s->ends[index]);
		break;
	case 1:
		fabric_unregister(s->ends[index], input_u8(&s->in) % 4);
		break;
	case 2:
		s->now_ms += input_u16(&s->in);
		break;
	case 3:
		if (!(step & 0xc0))
			open_again(s, index);
		break;
	default:
		send_one(s, s->ends[index]);
	}
	fabric_turn(s->f, s->now_ms);
	/* one turn may leave work that is due already, two turns leave none */
	fabric_turn(s->f, s->now_ms);
	fetch_all(s);
	FUZZ_REQUIRE(fabric_deadline(s->f) > s->now_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.in = {data, data + size}, .now_ms = 1};

	s.f = fabric_of(text);
	for (int i = 0; i < ENDS; i++)
		open_again(&s, i);
	while (s.in.at < s.in.end)
		run_step(&s);
	fabric_free(s.f);
	return 0;
}
