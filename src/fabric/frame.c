/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/frame.h"

#include <string.h>

#include "encap/iblink.h"
#include "hdr/bth.h"
#include "hdr/ext.h"
#include "hdr/opcode.h"

_Static_assert(FRAME_MAX == LRH_FRAME_MAX, "the longest packet of a data end");

static size_t write_mad(const struct packet *p, uint8_t *to)
{
	enum {
		AT_MAD = BTH_BYTES + EXT_DETH_BYTES,
		INNER = AT_MAD + MAD_BYTES
	};
	struct iblink h = {.lrh = {.vl = p->dest_qp ? p->vl : LRH_VL_MGMT,
				   .sl = p->sl,
				   .lnh = LRH_NEXT_LOCAL,
				   .dlid = p->dlid,
				   .slid = p->slid}};
	struct bth bth = {.opcode = OPCODE_UD_SEND_ONLY,
			  .pkey = p->pkey ? p->pkey : BTH_DEFAULT_PKEY,
			  .dest_qpn = p->dest_qp};
	struct deth deth = {.qkey = p->qkey, .src_qpn = p->src_qp};
	uint8_t *inner;
	size_t head;

	if (p->has_grh) {
		h.lrh.lnh = LRH_NEXT_GLOBAL;
		h.grh.traffic_class = p->traffic_class;
		h.grh.flow_label = p->flow_label;
		h.grh.hop_limit = p->hop_limit;
		memcpy(h.grh.sgid, p->sgid, 16);
		memcpy(h.grh.dgid, p->dgid, 16);
	}
	head = iblink_write(to, &h, INNER);
	inner = to + head;
	bth_write(inner, &bth);
	ext_deth_write(inner + BTH_BYTES, &deth);
	memcpy(inner + AT_MAD, p->mad, MAD_BYTES);
	return head + iblink_seal(to, head, inner, INNER);
}

size_t frame_write(const struct packet *p, uint8_t *to)
{
	const struct payload *payload = p->payload;

	if (!payload)
		return write_mad(p, to);
	packet_copy_bytes(payload, to);
	to[0] = (uint8_t)(p->vl << 4 | (to[0] & 15));
	lrh_seal(to, payload->bytes - LRH_VCRC_BYTES);
	return payload->bytes;
}
