/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP: requests over byte streams.  A WRITE or a SEND completes when its
 * bytes are given to the stream.  Only the completion of a later READ or atomic
 * shows that the WRITE or SEND was executed.
 */
#include "sim/service.h"

#include "iwarp/stream.h"
#include "sim/bytestream.h"
#include "sim/pair.h"
#include "sim/pcap.h"
#include "util/bits.h"

static const uint8_t opcodes[] = {
	HCA_WR_RDMA_WRITE, HCA_WR_RDMA_WRITE,  HCA_WR_RDMA_WRITE_IMM,
	HCA_WR_SEND,	   HCA_WR_SEND,	       HCA_WR_RDMA_READ,
	HCA_WR_RDMA_READ,  HCA_WR_ATOMIC_FADD, HCA_WR_ATOMIC_CAS};

static bool has_response(const struct op *o)
{
	return o->opcode == HCA_WR_RDMA_READ ||
	       o->opcode == HCA_WR_ATOMIC_FADD ||
	       o->opcode == HCA_WR_ATOMIC_CAS;
}

static bool has_receive(const struct op *o)
{
	return o->opcode == HCA_WR_RDMA_WRITE_IMM || o->opcode == HCA_WR_SEND;
}

/* iWARP has no RNR NAK, so a program posts a message that needs a receive only
 * after its peer has posted that receive, or when a QP of the pair is in ERR or
 * gone with its process. */
static bool may_post(const struct flow *f)
{
	uint32_t needed = 0;

	if (pair_is_broken(f) || pair_is_broken(f->back))
		return true;
	for (uint32_t i = 0; i <= f->round.posted; i++)
		needed += has_receive(&f->round.ops[i]);
	return needed <= f->round.recvs_posted;
}

static void enter_rts(struct world *w, struct flow *f)
{
	struct hca_qp_attr a = {.port_num = 1,
				.path_mtu = 1,
				.dest_qpn = f->back->qp->qpn,
				.access_flags = HCA_REMOTE_WRITE |
						HCA_REMOTE_READ |
						HCA_REMOTE_ATOMIC,
				.ah = {.is_global = 1}};

	service_rc_enter_rts(w, f, &a);
}

/* An MPA initiator that has no request to send has to send a ready-to-receive
 * frame (RFC 6581). */
static uint8_t draw_rtr(struct world *w, const struct flow *f)
{
	if (f->round.ops_count && workload_below(w, 2))
		return 0;
	return (uint8_t)(MPA_RTR_SEND << workload_below(w, 3));
}

static void connect_pair(struct world *w, struct flow *f)
{
	struct stream_config c[2] = {{.has_crc = workload_below(w, 4)}};

	c[1] = c[0];
	for (int i = 0; i < 2; i++) {
		c[i].has_extensions = true;
		c[i].tx_markers = c[!i].rx_markers = !workload_below(w, 4);
		c[i].ulpdu_max =
			STREAM_ULPDU_MIN +
			workload_below(w, workload_below(w, 4) ? 9000 : 60000);
		c[i].ord = 1 + workload_below(w, 16);
		c[!i].ird = c[i].ord + workload_below(w, 2);
	}
	c[0].rtr = draw_rtr(w, f);
	c[1].is_responder = true;
	if (c[0].rtr)
		c[1].rtr =
			c[0].rtr | (uint8_t)workload_below(w, MPA_RTR_ALL + 1);
	pcap_connect(w, f, c);
	for (int i = 0; i < 2; i++) {
		enter_rts(w, &f[i]);
		bytestream_open(w, &f[i], &c[i]);
	}
}

static bool may_fail(const struct flow *f, const struct op *o, uint32_t status)
{
	switch (status) {
	case HCA_REM_ACCESS_ERR:
		return has_response(o) &&
		       (o->defect == OP_BAD_RKEY ||
			f->round.revoked & 1 << REGION_REMOTE);
	case HCA_LOC_PROT_ERR:
		return o->defect == OP_BAD_LKEY ||
		       f->round.revoked & 1 << REGION_LOCAL;
	default:
		return false;
	}
}

static bool may_end(const struct flow *f, uint32_t i, uint32_t status)
{
	const struct op *o = &f->round.ops[i];

	if (status == HCA_WR_FLUSH_ERR)
		return pair_is_broken(f);
	if (f->round.failed < i)
		return false; /* only flushing follows a failure */
	if (status)
		return may_fail(f, o, status);
	return o->defect == OP_GOOD ||
	       (o->defect != OP_BAD_LKEY && !has_response(o));
}

/* Bytes may be under way after the last completion. */
static bool is_over(const struct flow *f)
{
	return service_rc_is_over(f) &&
	       (pair_is_broken(f) || pair_is_broken(f->back) ||
		bytestream_is_empty(f));
}

/* If bytes are under way, or a QP of the pair is in ERR or gone with its
 * process, only the requests up to the last completed READ or atomic count as
 * certainly executed.  Otherwise round.certain keeps the caller's value, the
 * number of all requests. */
static void end_round(struct flow *f)
{
	uint32_t i = bits_min_u32(f->round.next, f->round.failed);

	if (pair_is_broken(f) || pair_is_broken(f->back) ||
	    !bytestream_is_empty(f)) {
		while (i && !has_response(&f->round.ops[i - 1]))
			i--;
		f->round.certain = i;
	}
	bytestream_close(f);
	pcap_disconnect(&f->pair->pcap);
}

const struct service service_iwarp = {
	.qp_type = HCA_QPT_RC,
	.opcodes = opcodes,
	.opcode_count = sizeof(opcodes),
	.make = service_rc_make,
	.connect = connect_pair,
	.fill = service_rc_fill,
	.may_post = may_post,
	.end = end_round,
	.may_end = may_end,
	.received = service_rc_received,
	.is_over = is_over,
	.replay = service_rc_replay,
};
