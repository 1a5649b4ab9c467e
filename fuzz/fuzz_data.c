/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/data, fabric/lane: whatever programs of three hosts send, join and
 * close, and however small the buffers are, each packet that arrives is a frame
 * of an InfiniBand link, no work of the subnet is left overdue, and each sender
 * may send again when all packets are fetched.
 */
#include "fabric_of.h"
#include "fuzz.h"
#include "input.h"

#include <string.h>

#include "fabric/data.h"
#include "fabric/inside.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "hdr/grh.h"
#include "hdr/lrh.h"

#define ENDS  4
#define LONG  320
#define TURNS 100000
#define GROUP 0xc001

static const char text[] = "Switch 4 \"S\"\n[1] \"A\"[1]\n[2] \"B\"[1]\n"
			   "[3] \"T\"[1]\n\n"
			   "Switch 3 \"T\"\n[1] \"S\"[3]\n[2] \"C\"[1]\n\n"
			   "Hca 1 \"A\"\n[1] \"S\"[1]\n\n"
			   "Hca 1 \"B\"\n[1] \"S\"[2]\n\n"
			   "Hca 1 \"C\"\n[1] \"T\"[2]\n";
static const char *const hosts[ENDS] = {"A", "B", "C", "C"};
static const uint8_t group[16] = {0xff, 0x12};

struct script {
	struct input_bytes in;
	struct fabric *f;
	struct data_end *ends[ENDS];
	uint64_t now_ms;
};

/* Gives the hosts the LIDs 1 to 3, fills the forwarding tables of the switches,
 * and makes all ports that have a cable ACTIVE. */
static void set_subnet(struct fabric *f)
{
	for (uint32_t i = 0, lid = 1; fabric_node(f, i); i++) {
		struct node *node = fabric_node(f, i);

		for (int n = 1; n <= node->port_count; n++) {
			node->ports[n].info[36] = 1 << 4; /* MTU 256 */
			node->ports[n].info[42] = 10;	  /* HOQLife */
			node->ports[n].info[43] = 4 << 4;
			if (node->ports[n].state != STATE_DOWN)
				node->ports[n].state = STATE_ACTIVE;
		}
		if (!node_is_switch(node)) {
			bytes_put16(node->ports[1].info + 16, (uint16_t)lid++);
			continue;
		}
		node->switch_info[7] = 4;
		for (uint32_t to = 1; to <= 3; to++)
			node->lft[to] = (uint8_t)(i ? 1 + (to == 3) : to);
		node->mft[GROUP - 0xc000] = i ? 6 : 14;
	}
}

static void fetch_some(struct script *s, uint32_t count)
{
	struct data_end *end;

	while (count-- && (end = data_ready(s->f))) {
		const uint8_t *p;
		struct lrh lrh;
		size_t n;

		data_changes_fetched(end);
		p = data_fetch(end, &n);
		FUZZ_REQUIRE(!p || lrh_frame(p, n, &lrh));
		FUZZ_REQUIRE(!p || lrh_is_intact(p, n));
		FUZZ_REQUIRE(!p || lrh.vl < 8);
		data_fetched(end);
	}
}

/* If the end may send, sends a packet with a right VCRC.  The input chooses the
 * headers, including some that data_send refuses (a multicast LID without a
 * GRH), and changes up to three bytes. */
static void send_one(struct script *s, int index)
{
	static const uint8_t lids[ENDS] = {1, 2, 3, 3};
	uint8_t p[LONG + LRH_VCRC_BYTES] = {0}, how = input_u8(&s->in);
	size_t n = 40 + input_u8(&s->in) % 60 * 4, head = LRH_BYTES;
	struct data_end *end = s->ends[index];
	struct lrh lrh = {.lnh = how & 1 ? LRH_NEXT_GLOBAL : LRH_NEXT_LOCAL,
			  .sl = how >> 4,
			  .slid = lids[index],
			  .dlid = how & 2 ? GROUP : 1 + how / 4 % 4};
	struct bth bth = {.opcode = how & 8 ? 0x64 : 0x04,
			  .pkey = 0xffff,
			  .dest_qpn = how & 2 ? 0xffffff : 1 << DATA_REST_BITS};

	if (how & 1) {
		struct grh grh = {.next_header = GRH_NEXT_HEADER_IBA};
		const struct node *node = fabric_find(s->f, hosts[index]);

		n += GRH_BYTES;
		head += GRH_BYTES;
		grh.payload_length = (uint16_t)(n - head);
		memcpy(grh.sgid, node->ports[1].info + 8, 8);
		bytes_put64(grh.sgid + 8, port_guid(&node->ports[1], 0));
		memcpy(grh.dgid, group, 16);
		grh_write(p + LRH_BYTES, &grh);
	}
	lrh.words = (uint16_t)(n / 4);
	lrh_write(p, &lrh);
	bth_write(p + head, &bth);
	bytes_put24(p + head + BTH_BYTES + 5, data_number(end)
						      << DATA_REST_BITS);
	for (int i = input_u8(&s->in) % 4; i > 0; i--)
		p[input_u8(&s->in) % n] ^= input_u8(&s->in);
	lrh_seal(p, n);
	if (data_may_send(end))
		data_send(end, p, n + LRH_VCRC_BYTES);
}

static void open_again(struct script *s, int index)
{
	int err;

	if (s->ends[index])
		data_close(s->ends[index]);
	s->ends[index] =
		data_open(fabric_find(s->f, hosts[index]), 1, NULL, &err);
	FUZZ_REQUIRE(s->ends[index] && !err);
}

/* Calls fabric_turn until no work is due.  This takes several calls if more
 * packets wait for a link than the link carries in one turn (turn_blocks). */
static void run_turns(struct script *s)
{
	int turns = 0;

	do
		fabric_turn(s->f, s->now_ms);
	while (fabric_deadline(s->f) <= s->now_ms && ++turns < TURNS);
	FUZZ_REQUIRE(turns < TURNS);
}

static void run_step(struct script *s)
{
	uint8_t step = input_u8(&s->in);
	int index = step % ENDS;

	switch (step / ENDS % 8) {
	case 0:
		open_again(s, index);
		break;
	case 1:
		FUZZ_REQUIRE(!data_join(s->ends[index], group));
		break;
	case 2:
		data_leave(s->ends[index], group);
		break;
	case 3:
		s->now_ms += input_u8(&s->in);
		break;
	case 4:
		fetch_some(s, step / 32);
		break;
	default:
		send_one(s, index);
	}
	run_turns(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.in = {data, data + size}, .now_ms = 1};

	s.f = fabric_of(text);
	set_subnet(s.f);
	s.f->data.buffer_blocks = 1 + input_u8(&s.in) % 32;
	s.f->data.turn_blocks = 1 + input_u8(&s.in) % 32;
	for (int i = 0; i < ENDS; i++)
		open_again(&s, i);
	while (s.in.at < s.in.end)
		run_step(&s);
	while (data_ready(s.f)) {
		fetch_some(&s, UINT32_MAX);
		run_turns(&s);
	}
	FUZZ_REQUIRE(list_is_empty(&s.f->data.waiting));
	for (int i = 0; i < ENDS; i++)
		FUZZ_REQUIRE(data_may_send(s.ends[i]));
	fabric_free(s.f);
	return 0;
}
