/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "hca/semantics.h"
#include "hdr/grh.h"
#include "hdr/ip.h"
#include "hdr/udp.h"
#include "ibt/ud.h"

enum { SL_IPV6 = 1, SL_IPV4 = 2, SL_UDP = 8 };

/* The TTL or hop limit of the IP header that a receive gets in front of the
 * datagram.  The packet's own TTL is not known, because the socket is not asked
 * for it (IP_RECVTTL). */
#define HOP_LIMIT 64

static uint32_t read_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

/* Writes the GRH that came, with NxtHdr and PayLen computed again. */
static void write_grh(uint8_t *p, const struct ud_from *f)
{
	struct grh grh = {.traffic_class = f->tos,
			  .flow_label = f->lid.flow_label,
			  .payload_length = (uint16_t)f->bytes,
			  .next_header = GRH_NEXT_HEADER_IBA,
			  .hop_limit = f->lid.hop_limit};

	memcpy(grh.sgid, f->from.ip, 16);
	memcpy(grh.dgid, f->to.ip, 16);
	grh_write(p, &grh);
}

void ud_resp_grh(uint8_t grh[UD_GRH_BYTES], const struct ud_from *f)
{
	uint16_t udp = (uint16_t)(UDP_BYTES + f->bytes);

	memset(grh, 0, UD_GRH_BYTES);
	if (f->lid.is_used) {
		write_grh(grh, f);
	} else if (inaddr_is_v4(f->to.ip)) {
		struct ip_v4 ip = {
			.header_bytes = IP_V4_BYTES,
			.tos = f->tos,
			.total_length = (uint16_t)(IP_V4_BYTES + udp),
			.flags_fragment = IP_V4_DF,
			.ttl = HOP_LIMIT,
			.protocol = IP_PROTOCOL_UDP,
			.src = read_be32(f->from.ip + 12),
			.dst = read_be32(f->to.ip + 12),
		};

		ip_v4_write(grh + UD_GRH_BYTES - IP_V4_BYTES, &ip);
	} else {
		struct ip_v6 ip = {.traffic_class = f->tos,
				   .payload_length = udp,
				   .next_header = IP_PROTOCOL_UDP,
				   .hop_limit = HOP_LIMIT};

		memcpy(ip.src, f->from.ip, 16);
		memcpy(ip.dst, f->to.ip, 16);
		ip_v6_write(grh, &ip);
	}
}

/*
 * A completion tells which header its datagram came with (IBTA A17.4.5.1).
 * Verbs have no field for that, so adapters use the service level, which RoCE
 * does not have.  UCX drops each datagram over IPv4 whose completion has
 * a service level other than that of IPv4.
 */
uint8_t ud_resp_sl(const struct ud_from *f)
{
	if (f->lid.is_used)
		return f->lid.sl;
	return inaddr_is_v4(f->to.ip) ? SL_UDP | SL_IPV4 : SL_UDP | SL_IPV6;
}

static bool has_header(const struct ud_from *f)
{
	return !f->lid.is_used || f->lid.has_grh;
}

static void complete_receive(struct ibt *t, struct ibt_qp *q,
			     const struct pkt *p, const struct ud_from *f,
			     enum hca_status status)
{
	struct cqe c = {
		.status = status,
		.opcode = HCA_WC_RECV,
		.vendor_err = status,
		.byte_len = (uint32_t)(UD_GRH_BYTES + p->payload_len),
		.qpn = q->qp->qpn,
		.src_qpn = p->deth.src_qpn,
		.wc_flags = has_header(f) ? HCA_WC_GRH : 0,
		.slid = f->lid.slid,
		.sl = ud_resp_sl(f),
		.dlid_path_bits = f->lid.path_bits,
	};

	if (p->info->ext & OPCODE_EXT_IMMDT) {
		c.imm_be = p->immdt.imm_be;
		c.wc_flags |= HCA_WC_WITH_IMM;
	}
	ibt_receive_done(t, q, &c, p->bth.se);
}

/* The receive's own memory cannot be written: fails the receive and the QP
 * (IBTA 9.9.3). */
static void fail_receive(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			 const struct ud_from *f, struct explain *x)
{
	x->opcode = EXPLAIN_RECEIVE;
	ibt_explain(t, q, x);
	complete_receive(t, q, p, f, HCA_LOC_PROT_ERR);
	if (q->qp->state != HCA_QP_ERR)
		ibt_qp_fail(t, q, ENGINE_EXPLAIN);
}

static void place_datagram(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			   const struct ud_from *f, struct explain *x)
{
	uint8_t grh[UD_GRH_BYTES];
	struct wqe *w = ibt_receive_take(t, q);
	uint32_t pd = q->qp->recv_pd;

	if (!w) {
		ibt_dropped(t, q, x, IBT_DROP_RECEIVE, p->deth.src_qpn);
		return;
	}
	x->wr_id = w->wr_id;
	/* a message that is too long leaves the receive to the next message */
	if (UD_GRH_BYTES + p->payload_len > sem_capacity(w)) {
		ibt_dropped(t, q, x, IBT_DROP_LENGTH, p->deth.src_qpn);
		return;
	}
	if (has_header(f))
		ud_resp_grh(grh, f);
	if ((has_header(f) &&
	     sem_scatter(t->hca, pd, w, 0, grh, UD_GRH_BYTES, x)) ||
	    (p->payload_len &&
	     sem_scatter(t->hca, pd, w, UD_GRH_BYTES, p->payload,
			 (uint32_t)p->payload_len, x))) {
		fail_receive(t, q, p, f, x);
		return;
	}
	complete_receive(t, q, p, f, HCA_SUCCESS);
}

void ud_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const struct ud_from *f)
{
	struct explain x = {.opcode = p->bth.opcode};

	if (q->qp->state < HCA_QP_RTR || q->qp->state > HCA_QP_SQE)
		return;
	/* a datagram with a wrong Q_Key is dropped: IBTA 9.6.1.2.3 */
	if (p->deth.qkey != q->qp->attr.qkey) {
		q->counters->qkey_violations++;
		t->sign = ENGINE_SIGN_KEY;
		ibt_dropped(t, q, &x, IBT_DROP_QKEY, p->deth.src_qpn);
		return;
	}
	if (p->payload_len > q->mtu) {
		x.detail = "a datagram is longer than the port's MTU";
		ibt_dropped(t, q, &x, IBT_DROP_INVALID, p->deth.src_qpn);
		return;
	}
	place_datagram(t, q, p, f, &x);
}
