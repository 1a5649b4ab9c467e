/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: the input is a program of one-byte commands with operands.  There
 * are two adapters, each with a queue pair of the same service.  The input also
 * decides which frames between them are lost, doubled or damaged.  A queue pair
 * completes no more requests and receives than were posted.  Forged packets
 * have a right ICRC and a PSN near the expected one, so that the first checks
 * do not drop them.
 */
#include "fuzz.h"

#include <string.h>

#include "encap/rocev2.h"
#include "hdr/pkt.h"
#include "ibt/ibt.h"
#include "util/check.h"
#include "work.h"

#define DEPTH	16
#define MAX_RUN 64 /* steps of the clock in an input, each up to 131 ms */

struct script {
	struct input_bytes in;
	struct two_hcas *two_hcas;
	int steps;
	uint32_t posted[2], completed[2];
};

static void post_send(struct script *s, int i)
{
	s->posted[i] += work_send(
		&s->in, s->two_hcas, i,
		HCA_SEND_FENCE | HCA_SEND_SOLICITED | HCA_SEND_SIGNALED, 0);
}

static void post_recv(struct script *s, int i)
{
	s->posted[i] += work_recv(&s->in, s->two_hcas, i);
}

/* Gives a datagram to side i.  Its source address is the peer's or, if
 * stranger, side i's own. */
static void give_datagram(struct script *s, int i, uint8_t *bytes, size_t len,
			  bool stranger)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	struct engine_dgram d = {.bytes = bytes, .tos = input_u8(&s->in)};

	memcpy(d.from.ip, s->two_hcas->side[stranger ? i : !i].ip, 16);
	memcpy(d.to.ip, side->ip, 16);
	d.from.port = 0xc000;
	d.to.port = ROCEV2_PORT;
	/* a datagram shorter than a BTH gets no ICRC */
	if (len >= BTH_BYTES)
		len = rocev2_seal(NULL, &d.from, &d.to, bytes, len, 0);
	d.len = d.segment = len;
	engine_rx(side->engine, &d, s->two_hcas->now_ns);
}

static uint32_t forged_psn(struct script *s, const struct two_hcas_side *side,
			   bool request)
{
	struct serial24 base =
		request ? side->side->resp.epsn : side->side->req.una;
	uint8_t by = input_u8(&s->in);

	return serial24_add(base, (int8_t)by / (by & 1 ? 1 : 16)).v;
}

static void forge_packet(struct script *s, int i)
{
	uint8_t buf[PKT_MAX_HEADER_BYTES + 5000], flags = input_u8(&s->in);
	struct two_hcas_side *side = &s->two_hcas->side[i];
	struct pkt p = {.bth = {.opcode = input_u8(&s->in),
				.pkey = BTH_DEFAULT_PKEY,
				.se = flags & 1,
				.ackreq = flags >> 1 & 1,
				.dest_qpn = side->qp->qpn}};
	size_t n;

	p.info = opcode_info(p.bth.opcode);
	if (!p.info)
		return;
	p.bth.psn = forged_psn(s, side, p.info->request);
	p.payload_len =
		flags & 4 ? 128u << (flags >> 4) % 6 : input_u16(&s->in) % 4500;
	p.reth = (struct reth){TWO_HCAS_BASE + work_place(&s->in),
			       side->mr->rkey, work_place(&s->in)};
	p.atomiceth = (struct atomiceth){TWO_HCAS_BASE + work_place(&s->in),
					 side->mr->rkey, input_u8(&s->in),
					 input_u8(&s->in)};
	p.aeth = (struct aeth){.syndrome = input_u8(&s->in),
			       .msn = input_u8(&s->in)};
	p.deth = (struct deth){.qkey = TWO_HCAS_QKEY,
			       .src_qpn = input_u16(&s->in)};
	p.ieth.rkey = side->mr->rkey;
	if (flags & 8)
		p.reth.rkey ^= input_u8(&s->in),
			p.deth.qkey ^= input_u8(&s->in);
	n = pkt_write_headers(buf, &p);
	memset(buf + n, input_u8(&s->in),
	       p.payload_len + pkt_pad(p.payload_len));
	n += p.payload_len + pkt_pad(p.payload_len);
	give_datagram(s, i, buf, n, false);
}

static void give_raw(struct script *s, int i)
{
	uint8_t buf[300], n = input_u8(&s->in);

	for (unsigned k = 0; k < n; k++)
		buf[k] = input_u8(&s->in);
	give_datagram(s, i, buf, n, input_u8(&s->in) & 1);
}

static void run_hcas(struct script *s)
{
	uint64_t us = 1ull << input_u8(&s->in) % 18;

	if (s->steps++ < MAX_RUN)
		two_hcas_run(s->two_hcas, s->two_hcas->now_ns + us * 1000);
}

/* Registers the memory again, so that outstanding requests have old keys. */
static void register_anew(struct two_hcas_side *side)
{
	struct mr was = *side->mr;

	if (mr_free(&side->hca, side->mr))
		return;
	side->mr = mr_new(&side->hca, was.pd, was.addr, was.bytes, was.iova,
			  was.access);
	CHECK(side->mr);
}

/* Modifies the QP to any state, with attributes that may not fit the state. */
static void modify_qp(struct script *s, int i)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	uint32_t mask = HCA_QP_STATE | (input_u16(&s->in) << 5 & 0x1fffff);
	struct hca_qp_attr a = side->qp->attr;
	const char *why;

	if (input_u8(&s->in) & 1)
		mask = HCA_QP_STATE;
	a.qp_state = input_u8(&s->in) % 7;
	a.timeout = input_u8(&s->in);
	a.retry_cnt = input_u8(&s->in) % 9;
	a.rnr_retry = input_u8(&s->in) % 9;
	a.max_rd_atomic = input_u8(&s->in) % 20;
	a.sq_psn = a.rq_psn = input_u16(&s->in) << 8;
	if (!engine_qp_modify(side->engine, side->side, &a, mask, side->ip,
			      s->two_hcas->now_ns, &why))
		FUZZ_REQUIRE(side->qp->state == a.qp_state ||
			     !(mask & HCA_QP_STATE));
}

static void collect_completions(struct script *s, int i)
{
	struct cqe c;

	while (two_hcas_poll(s->two_hcas, i, &c)) {
		FUZZ_REQUIRE(c.qpn == s->two_hcas->side[i].qp->qpn);
		s->completed[i]++;
	}
	FUZZ_REQUIRE(s->completed[i] <= s->posted[i]);
}

/* Drops or duplicates the frame, or delivers a damaged copy before it. */
static int decide_fate(void *context, int from, const struct engine_frame *f)
{
	struct script *s = context;
	uint8_t dice = s->in.at < s->in.end ? input_u8(&s->in) : 1;
	uint8_t copy[4500];

	FUZZ_REQUIRE(f->segment && f->len);
	if (dice % 16 == 2 && f->len <= sizeof(copy)) {
		memcpy(copy, f->bytes, f->len);
		copy[input_u16(&s->in) % f->len] ^= (uint8_t)(1 << dice % 8);
		give_datagram(s, !from, copy, f->len - 4, false);
	}
	return dice % 16 == 0 ? 0 : dice % 16 == 3 ? 2 : 1;
}

static void run_command(struct script *s)
{
	uint8_t c = input_u8(&s->in);
	int i = c >> 7;
	struct two_hcas_side *side = &s->two_hcas->side[i];

	switch (c % 16) {
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
	case 7:
	case 8:
		forge_packet(s, i);
		break;
	case 9:
		give_raw(s, i);
		break;
	case 10:
	case 11:
		run_hcas(s);
		break;
	case 12:
		modify_qp(s, i);
		break;
	case 13:
		if (input_u8(&s->in) & 1)
			register_anew(side);
		else
			side->memory.size =
				work_place(&s->in) % TWO_HCAS_MEMORY;
		break;
	case 14:
		s->two_hcas->liveness =
			(enum engine_peer)(input_u8(&s->in) % 3);
		engine_was_asleep(side->engine, 20000000, s->two_hcas->now_ns);
		cq_arm(side->cq, input_u8(&s->in) & 1);
		break;
	case 15:
		collect_completions(s, i);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t types[] = {HCA_QPT_RC, HCA_QPT_RC, HCA_QPT_UC,
					HCA_QPT_UD};
	struct script s = {.in = {data, data + size}};
	uint8_t first = input_u8(&s.in), type = types[first % 4];
	uint32_t mtu = 1 + (uint32_t)(first >> 2) % 5;

	s.two_hcas = type == HCA_QPT_RC && first & 0x80
			     ? two_hcas_new_shared(mtu, DEPTH)
			     : two_hcas_new_of(type, mtu, DEPTH);
	s.two_hcas->fate = decide_fate;
	s.two_hcas->context = &s;
	while (s.in.at < s.in.end)
		run_command(&s);
	collect_completions(&s, 0);
	collect_completions(&s, 1);
	two_hcas_free(s.two_hcas);
	return 0;
}
