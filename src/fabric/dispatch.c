/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/dispatch.h"

#include <string.h>

#include "fabric/data_end.h"
#include "fabric/end.h"
#include "fabric/pma.h"
#include "fabric/port_info.h"
#include "fabric/sma.h"
#include "hdr/bytes.h"

#define QP1_QKEY 0x80010000u

enum { MGMT_BASE_VERSION = 1 };

/* Turns the packet of a request into the packet of the answer, and sends the
 * answer. */
static void send_answer(struct packet *p, uint16_t status)
{
	uint16_t lid = p->slid;
	uint32_t qp = p->src_qp;

	p->mad[3] = METHOD_GET | MAD_METHOD_RESPONSE;
	if (p->mad[1] == CLASS_SUBN_DIRECTED)
		status |= STATUS_DIRECTION;
	bytes_put16(p->mad + 4, status);
	p->src_qp = p->dest_qp;
	p->dest_qp = qp;
	p->slid = p->dlid;
	p->dlid = lid;
	p->at = p->mad[1] == CLASS_SUBN_DIRECTED ? p->at : port_managed(p->at);
	p->in = NULL;
	p->hops = 0;
	if (p->has_grh) {
		uint8_t gid[16];

		memcpy(gid, p->sgid, 16);
		memcpy(p->sgid, p->dgid, 16);
		memcpy(p->dgid, gid, 16);
	}
	packet_inject(p);
}

/* Does what the node's agent has decided.  SMA_NOT_MINE: a program's agent gets
 * the request. */
static void carry_out(struct packet *p, enum sma_verdict verdict,
		      uint16_t status)
{
	switch (verdict) {
	case SMA_ANSWER:
		send_answer(p, status);
		return;
	case SMA_SILENT:
		packet_drop(p);
		return;
	case SMA_NOT_MINE:
		break;
	}
	if (end_take_request(p)) {
		packet_drop(p);
		return;
	}
	/* No agent takes the request: the fabric answers as the kernel does. */
	if (p->mad[3] == METHOD_GET || p->mad[3] == METHOD_SET)
		send_answer(p, STATUS_ATTRIBUTE);
	else
		packet_drop(p);
}

void dispatch_packet(struct packet *p)
{
	enum sma_verdict verdict = SMA_NOT_MINE;
	uint16_t status = 0;

	if (p->payload) {
		data_end_take(p);
		return;
	}
	if (p->mad[0] != MGMT_BASE_VERSION ||
	    inside_is_subnet(p->mad[1]) != (p->dest_qp == 0) ||
	    p->dest_qp > 1 || (p->dest_qp == 1 && p->qkey != QP1_QKEY)) {
		packet_drop(p);
		return;
	}
	if (p->mad[3] & MAD_METHOD_RESPONSE) {
		end_take_response(p);
		packet_drop(p);
		return;
	}
	if (p->dest_qp == 0)
		verdict = sma_request(p, &status);
	else if (p->mad[1] == CLASS_PERF)
		verdict = pma_request(p, &status);
	carry_out(p, verdict, status);
}
