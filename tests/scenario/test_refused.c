/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet that is ignored changes no state of the queue pair.  A request that
 * is refused changes no memory, receive queue, completion queue, MSN or
 * expected PSN, but a fatal NAK brings the queue pair into the error state.
 * Forged packets arrive at side 1, and each test compares the state of side 1
 * before a packet with the state after it.
 */
#include "test.h"

#include <string.h>

#include "encap/rocev2.h"
#include "hdr/pkt.h"
#include "ibt/ibt.h"
#include "scenario/two_hcas.h"

#define SAME_WIRE_BYTES 5000

/* Faults for which a packet is ignored before the transport judges it; RIGHT:
 * no such fault. */
enum outside {
	RIGHT,
	BAD_ICRC,
	OTHER_QPN,
	OTHER_PEER,
	OTHER_PKEY,
	OTHER_SELF,
	CUT_SHORT,
	ODD_LENGTH,
	BAD_VERSION,
};

struct forged {
	const char *name; /* the subject of a sentence */
	uint8_t opcode;
	uint8_t syndrome; /* of the answer, without RNR timer; 0: no answer */
	/* The distance of a request's PSN from the expected PSN, or of an
	 * answer's PSN from the oldest PSN in flight. */
	int psn_ahead;
	uint32_t payload_len;
	uint32_t length;    /* in RETH */
	uint64_t va;	    /* in RETH and AtomicETH, from the memory's start */
	uint32_t rkey_flip; /* the bits to flip in the R_Key */
	uint32_t no_access; /* the access flags that the queue pair lacks */
	uint32_t aeth;	    /* the syndrome of a forged answer */
	enum outside outside;
};

#define NAK(code) (AETH_NAK << 5 | (code))
#define INVALID	  NAK(AETH_NAK_INVALID_REQUEST)
#define ACCESS	  NAK(AETH_NAK_REMOTE_ACCESS)

/* clang-format off */
static const struct forged ignored[] = {
	{"a damaged packet", OPCODE_RC_WRITE_ONLY, .payload_len = 64, .length = 64, .outside = BAD_ICRC},
	{"a packet for another queue pair", OPCODE_RC_WRITE_ONLY, .payload_len = 64, .length = 64, .outside = OTHER_QPN},
	{"a packet from another address", OPCODE_RC_WRITE_ONLY, .payload_len = 64, .length = 64, .outside = OTHER_PEER},
	{"a packet of another partition", OPCODE_RC_WRITE_ONLY, .payload_len = 64, .length = 64, .outside = OTHER_PKEY},
	{"a packet to another local address", OPCODE_RC_WRITE_ONLY, .payload_len = 64, .length = 64, .outside = OTHER_SELF},
	{"a packet without its headers", OPCODE_RC_WRITE_ONLY, .payload_len = 64, .length = 64, .outside = CUT_SHORT},
	{"a packet whose length is no multiple of 4", OPCODE_RC_WRITE_ONLY, .payload_len = 64, .length = 64, .outside = ODD_LENGTH},
	{"a packet of another transport version", OPCODE_RC_WRITE_ONLY, .payload_len = 64, .length = 64, .outside = BAD_VERSION},
	{"a packet of UC", OPCODE_UC_WRITE_ONLY, .payload_len = 64, .length = 64},
	{"a packet of UD", OPCODE_UD_SEND_ONLY, .payload_len = 64},
	{"an ACK of nothing", OPCODE_RC_ACKNOWLEDGE, .aeth = 0x1f},
	{"an ACK of the past", OPCODE_RC_ACKNOWLEDGE, .aeth = 0x1f, .psn_ahead = -1},
	{"an ACK of the future", OPCODE_RC_ACKNOWLEDGE, .aeth = 0x1f, .psn_ahead = 77},
	{"an RNR NAK of nothing", OPCODE_RC_ACKNOWLEDGE, .aeth = AETH_RNR_NAK << 5},
	{"a fatal NAK of nothing", OPCODE_RC_ACKNOWLEDGE, .aeth = ACCESS},
	{"a fatal NAK of the past", OPCODE_RC_ACKNOWLEDGE, .aeth = ACCESS, .psn_ahead = -3},
	{"a READ response to no request", OPCODE_RC_READ_RESPONSE_ONLY, .payload_len = 64},
	{"an atomic response to no request", OPCODE_RC_ATOMIC_ACKNOWLEDGE},
};

static const struct forged refused[] = {
	{"a SEND without a receive", OPCODE_RC_SEND_ONLY, AETH_RNR_NAK << 5, .payload_len = 64},
	{"an immediate without a receive", OPCODE_RC_WRITE_ONLY_IMM, AETH_RNR_NAK << 5, .payload_len = 64, .length = 64},
	{"a WRITE with a wrong key", OPCODE_RC_WRITE_ONLY, ACCESS, .payload_len = 64, .length = 64, .rkey_flip = 0x100},
	{"a WRITE beyond its region", OPCODE_RC_WRITE_ONLY, ACCESS, .payload_len = 64, .length = 64, .va = TWO_HCAS_MEMORY - 63},
	{"a WRITE before its region", OPCODE_RC_WRITE_ONLY, ACCESS, .payload_len = 64, .length = 64, .va = -1ull},
	{"a WRITE around the end of the address space", OPCODE_RC_WRITE_ONLY, ACCESS, .payload_len = 64, .length = 64, .va = -TWO_HCAS_BASE - 32},
	{"a long WRITE whose end lies outside", OPCODE_RC_WRITE_FIRST, ACCESS, .payload_len = 1024, .length = TWO_HCAS_MEMORY + 1},
	{"a WRITE that the queue pair forbids", OPCODE_RC_WRITE_ONLY, INVALID, .payload_len = 64, .length = 64, .no_access = HCA_REMOTE_WRITE},
	{"a WRITE shorter than announced", OPCODE_RC_WRITE_ONLY, INVALID, .payload_len = 64, .length = 65},
	{"a WRITE longer than announced", OPCODE_RC_WRITE_ONLY, INVALID, .payload_len = 64, .length = 63},
	{"a WRITE longer than 2 GiB", OPCODE_RC_WRITE_FIRST, INVALID, .payload_len = 1024, .length = 0x80000001},
	{"a First that is not as long as the path MTU", OPCODE_RC_WRITE_FIRST, INVALID, .payload_len = 1020, .length = 4096},
	{"an Only longer than the path MTU", OPCODE_RC_WRITE_ONLY, INVALID, .payload_len = 1028, .length = 1028},
	{"a Middle without a First", OPCODE_RC_WRITE_MIDDLE, INVALID, .payload_len = 1024},
	{"a Last without a First", OPCODE_RC_SEND_LAST, INVALID, .payload_len = 8},
	{"a READ with a wrong key", OPCODE_RC_READ_REQUEST, ACCESS, .length = 64, .rkey_flip = 0x80000000},
	{"a READ beyond its region", OPCODE_RC_READ_REQUEST, ACCESS, .length = TWO_HCAS_MEMORY + 1},
	{"a READ that the queue pair forbids", OPCODE_RC_READ_REQUEST, INVALID, .length = 64, .no_access = HCA_REMOTE_READ},
	{"a READ longer than 2 GiB", OPCODE_RC_READ_REQUEST, INVALID, .length = 0x80000001},
	{"an atomic at an unaligned address", OPCODE_RC_FETCH_ADD, INVALID, .va = 4},
	{"an atomic with a wrong key", OPCODE_RC_COMPARE_SWAP, ACCESS, .rkey_flip = 1},
	{"an atomic beyond its region", OPCODE_RC_FETCH_ADD, ACCESS, .va = TWO_HCAS_MEMORY},
	{"an atomic that the queue pair forbids", OPCODE_RC_FETCH_ADD, INVALID, .no_access = HCA_REMOTE_ATOMIC},
	{"an opcode that is reserved", 0x15, INVALID, .payload_len = 64},
	{"another opcode that is reserved", 0x1f, INVALID},
	{"a FLUSH", OPCODE_RC_FLUSH, INVALID, .length = 64},
};
/* clang-format on */

/* The syndrome of the last answer of side 1; -1: no answer. */
static int heard;

static int note_answer(void *context, int from, const struct engine_frame *f)
{
	struct pkt p;

	if (from == 1 && pkt_parse(f->bytes, f->len - 4, &p) &&
	    p.info->kind == OPCODE_KIND_ACK)
		heard = p.aeth.syndrome;
	return 0;
}

static void forge_packet(struct two_hcas *d, const struct forged *f)
{
	uint8_t buf[PKT_MAX_HEADER_BYTES + SAME_WIRE_BYTES];
	struct two_hcas_side *s = &d->side[1];
	const struct opcode_info *info = opcode_info(f->opcode);
	struct serial24 base =
		info->request ? s->side->resp.epsn : s->side->req.una;
	uint32_t rkey = s->mr->rkey ^ f->rkey_flip;
	struct pkt p = {
		.bth = {.opcode = f->opcode,
			.pkey = BTH_DEFAULT_PKEY ^
				(f->outside == OTHER_PKEY ? 2 : 0),
			.ackreq = true,
			.dest_qpn = s->qp->qpn ^ (f->outside == OTHER_QPN),
			.psn = serial24_add(base, f->psn_ahead).v},
		.reth = {TWO_HCAS_BASE + f->va, rkey, f->length},
		.atomiceth = {TWO_HCAS_BASE + f->va, rkey, 1, 1},
		.aeth = {(uint8_t)f->aeth, 0},
		.payload_len = f->payload_len,
	};
	struct engine_dgram g = {.bytes = buf};
	size_t n = pkt_write_headers(buf, &p);

	memset(buf + n, 0x77, f->payload_len + 4);
	n += f->payload_len + pkt_pad(f->payload_len);
	if (f->outside == BAD_VERSION)
		buf[1] |= 1;
	if (f->outside == CUT_SHORT)
		n = BTH_BYTES + 4;
	memcpy(g.from.ip, d->side[0].ip, 16);
	memcpy(g.to.ip, s->ip, 16);
	g.from.ip[14] ^= f->outside == OTHER_PEER;
	g.to.ip[14] ^= f->outside == OTHER_SELF;
	g.to.port = ROCEV2_PORT;
	n -= f->outside == ODD_LENGTH;
	g.len = g.segment = rocev2_seal(NULL, &g.from, &g.to, buf, n, 0);
	if (f->outside == BAD_ICRC)
		buf[BTH_BYTES + 20] ^= 0x10;
	engine_rx(s->engine, &g, d->now_ns);
}

/* The state of a queue pair that a packet could change, without counters. */
struct state {
	struct ibt_qp side;
	struct qp qp;
	struct cq cq;
	uint8_t memory[TWO_HCAS_MEMORY];
};

static void copy_state(const struct two_hcas_side *s, struct state *now)
{
	memcpy(&now->side, s->side, sizeof(now->side));
	memcpy(&now->qp, s->qp, sizeof(now->qp));
	memset(&now->qp.stats, 0, sizeof(now->qp.stats));
	memcpy(&now->cq, s->cq, sizeof(now->cq));
	memcpy(now->memory, s->memory.bytes, TWO_HCAS_MEMORY);
}

static struct state before, after;

static struct two_hcas *prepare_forged(const struct forged *f)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	d->fate = note_answer;
	heard = -1;
	memset(d->side[1].memory.bytes, 0x11, TWO_HCAS_MEMORY);
	d->side[1].qp->attr.access_flags &= ~f->no_access;
	copy_state(&d->side[1], &before);
	forge_packet(d, f);
	copy_state(&d->side[1], &after);
	return d;
}

static void ignored_packets_change_nothing_and_get_no_answer(void **state)
{
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
		struct two_hcas *d = prepare_forged(&ignored[i]);

		if (memcmp(&before, &after, sizeof(before)) != 0)
			fail_msg("%s changes something", ignored[i].name);
		two_hcas_run(d, d->now_ns + 1000000);
		if (heard >= 0)
			fail_msg("%s is answered", ignored[i].name);
		two_hcas_free(d);
	}
}

/* Compares the state that a refused request may not change, and the answer. */
static void refused_requests_are_answered_and_do_nothing(void **state)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const struct forged *f = &refused[i];
		struct two_hcas *d = prepare_forged(f);
		bool fatal = aeth_kind(f->syndrome) != AETH_RNR_NAK;

		if (memcmp(before.memory, after.memory, TWO_HCAS_MEMORY) != 0)
			fail_msg("%s changes memory", f->name);
		assert_int_equal(after.side.resp.epsn.v,
				 before.side.resp.epsn.v);
		assert_int_equal(after.side.resp.msn, before.side.resp.msn);
		assert_false(after.side.resp.in_message);
		assert_memory_equal(&before.cq, &after.cq, sizeof(before.cq));
		assert_memory_equal(&before.qp.rq, &after.qp.rq,
				    sizeof(before.qp.rq));
		assert_int_equal(after.qp.state,
				 fatal ? HCA_QP_ERR : HCA_QP_RTS);
		two_hcas_run(d, d->now_ns + 1000000);
		if (!fatal && heard >= 0)
			heard &= 0xe0;
		if (heard != f->syndrome)
			fail_msg("%s is answered with 0x%x", f->name,
				 (unsigned)heard);
		two_hcas_free(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			ignored_packets_change_nothing_and_get_no_answer),
		cmocka_unit_test(refused_requests_are_answered_and_do_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
