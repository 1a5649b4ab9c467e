/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: the input is a program of one-byte commands with operands, for
 * two adapters with a queue pair of one service and the frames between them.
 * Forged packets have a right ICRC and a PSN near the expected one, so that the
 * first checks do not drop them.
 */
#include "fuzz.h"

#include <string.h>

#include "encap/rocev2.h"
#include "hdr/pkt.h"
#include "ibt/ibt.h"
#include "scenario/two_hcas.h"
#include "util/check.h"

#define DEPTH	16
#define MAX_RUN 64 /* steps of the clock in an input, each up to 0.14 s */

struct script {
	const uint8_t *at, *end;
	struct two_hcas *two_hcas;
	int steps;
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

	/* libibverbs refuses such a request before the engine sees it */
	if (side->qp->type == HCA_QPT_UC && op > HCA_WR_SEND_IMM)
		op = HCA_WR_SEND;
	if (side->qp->type == HCA_QPT_UD) {
		op = op & 1 ? HCA_WR_SEND : HCA_WR_SEND_IMM;
		bytes %= 4097;
	}
	if (side->qp->state < HCA_QP_RTS || is_full(&side->qp->sq))
		return;
	w = two_hcas_send(s->two_hcas, i, op, local, bytes, remote);
	w->flags = flags &
		   (HCA_SEND_FENCE | HCA_SEND_SOLICITED | HCA_SEND_SIGNALED);
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

	if (side->qp->state == HCA_QP_RESET ||
	    (side->srq
		     ? shared_own(&side->srq->wq.head) - srq_next(side->srq) >=
			       side->srq->wq.depth
		     : is_full(&side->qp->rq)))
		return;
	two_hcas_recv(s->two_hcas, i, local, bytes);
	s->posted[i]++;
}

/* A datagram arrives at side i with the peer's address, or with another. */
static void arrive(struct script *s, int i, uint8_t *bytes, size_t len,
		   bool stranger)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	struct engine_dgram d = {.bytes = bytes, .tos = u8(s)};

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
	uint8_t by = u8(s);

	return serial24_add(base, (int8_t)by / (by & 1 ? 1 : 16)).v;
}

static void forge(struct script *s, int i)
{
	uint8_t buf[PKT_MAX_HEADER_BYTES + 5000], flags = u8(s);
	struct two_hcas_side *side = &s->two_hcas->side[i];
	struct pkt p = {.bth = {.opcode = u8(s),
				.pkey = BTH_DEFAULT_PKEY,
				.se = flags & 1,
				.ackreq = flags >> 1 & 1,
				.dest_qpn = side->qp->qpn}};
	size_t n;

	p.info = opcode_info(p.bth.opcode);
	if (!p.info)
		return;
	p.bth.psn = forged_psn(s, side, p.info->request);
	p.payload_len = flags & 4 ? 128u << (flags >> 4) % 6 : u16(s) % 4500;
	p.reth = (struct reth){TWO_HCAS_BASE + place(s), side->mr->rkey,
			       place(s)};
	p.atomiceth = (struct atomiceth){TWO_HCAS_BASE + place(s),
					 side->mr->rkey, u8(s), u8(s)};
	p.aeth = (struct aeth){.syndrome = u8(s), .msn = u8(s)};
	p.deth = (struct deth){.qkey = TWO_HCAS_QKEY, .src_qpn = u16(s)};
	p.ieth.rkey = side->mr->rkey;
	if (flags & 8)
		p.reth.rkey ^= u8(s), p.deth.qkey ^= u8(s);
	n = pkt_write_headers(buf, &p);
	memset(buf + n, u8(s), p.payload_len + pkt_pad(p.payload_len));
	n += p.payload_len + pkt_pad(p.payload_len);
	arrive(s, i, buf, n, false);
}

static void raw(struct script *s, int i)
{
	uint8_t buf[300], n = u8(s);

	for (unsigned k = 0; k < n; k++)
		buf[k] = u8(s);
	arrive(s, i, buf, n, u8(s) & 1);
}

static void run(struct script *s)
{
	uint64_t us = 1ull << u8(s) % 18;

	if (s->steps++ < MAX_RUN)
		two_hcas_run(s->two_hcas, s->two_hcas->now_ns + us * 1000);
}

/* Registers the memory again: outstanding requests have the old keys. */
static void register_anew(struct two_hcas_side *side)
{
	struct mr was = *side->mr;

	if (mr_free(&side->hca, side->mr))
		return;
	side->mr = mr_new(&side->hca, was.pd, was.addr, was.bytes, was.iova,
			  was.access);
	CHECK(side->mr);
}

/* Any transition, with attributes that fit the transition or not. */
static void modify(struct script *s, int i)
{
	struct two_hcas_side *side = &s->two_hcas->side[i];
	uint32_t mask = HCA_QP_STATE | (u16(s) << 5 & 0x1fffff);
	struct hca_qp_attr a = side->qp->attr;
	const char *why;

	if (u8(s) & 1)
		mask = HCA_QP_STATE;
	a.qp_state = u8(s) % 7;
	a.timeout = u8(s);
	a.retry_cnt = u8(s) % 9;
	a.rnr_retry = u8(s) % 9;
	a.max_rd_atomic = u8(s) % 20;
	a.sq_psn = a.rq_psn = u16(s) << 8;
	if (!engine_qp_modify(side->engine, side->side, &a, mask, side->ip,
			      s->two_hcas->now_ns, &why))
		FUZZ_REQUIRE(side->qp->state == a.qp_state ||
			     !(mask & HCA_QP_STATE));
}

static void take(struct script *s, int i)
{
	struct cqe c;

	while (two_hcas_poll(s->two_hcas, i, &c)) {
		FUZZ_REQUIRE(c.qpn == s->two_hcas->side[i].qp->qpn);
		s->completed[i]++;
	}
	FUZZ_REQUIRE(s->completed[i] <= s->posted[i]);
}

/* Drops or duplicates the frame, or delivers a damaged copy before it. */
static int fate(void *context, int from, const struct engine_frame *f)
{
	struct script *s = context;
	uint8_t dice = s->at < s->end ? u8(s) : 1;
	uint8_t copy[4500];

	FUZZ_REQUIRE(f->segment && f->len);
	if (dice % 16 == 2 && f->len <= sizeof(copy)) {
		memcpy(copy, f->bytes, f->len);
		copy[u16(s) % f->len] ^= (uint8_t)(1 << dice % 8);
		arrive(s, !from, copy, f->len - 4, false);
	}
	return dice % 16 == 0 ? 0 : dice % 16 == 3 ? 2 : 1;
}

static void command(struct script *s)
{
	uint8_t c = u8(s);
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
		forge(s, i);
		break;
	case 9:
		raw(s, i);
		break;
	case 10:
	case 11:
		run(s);
		break;
	case 12:
		modify(s, i);
		break;
	case 13:
		if (u8(s) & 1)
			register_anew(side);
		else
			side->memory.size = place(s) % TWO_HCAS_MEMORY;
		break;
	case 14:
		s->two_hcas->liveness = (enum engine_peer)(u8(s) % 3);
		engine_was_asleep(side->engine, 20000000, s->two_hcas->now_ns);
		cq_arm(side->cq, u8(s) & 1);
		break;
	case 15:
		take(s, i);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t types[] = {HCA_QPT_RC, HCA_QPT_RC, HCA_QPT_UC,
					HCA_QPT_UD};
	struct script s = {.at = data, .end = data + size};
	uint8_t first = u8(&s), type = types[first % 4];
	uint32_t mtu = 1 + (uint32_t)(first >> 2) % 5;

	s.two_hcas = type == HCA_QPT_RC && first & 0x80
			     ? two_hcas_new_shared(mtu, DEPTH)
			     : two_hcas_new_of(type, mtu, DEPTH);
	s.two_hcas->fate = fate;
	s.two_hcas->context = &s;
	while (s.at < s.end)
		command(&s);
	take(&s, 0);
	take(&s, 1);
	two_hcas_free(s.two_hcas);
	return 0;
}
