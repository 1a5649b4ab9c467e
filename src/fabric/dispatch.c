/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/dispatch.h"

#include <string.h>

#include "fabric/data_end.h"
#include "fabric/end.h"
#include "fabric/gate.h"
#include "fabric/pma.h"
#include "fabric/port_info.h"
#include "fabric/sma.h"
#include "fabric/trap.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "hdr/cmmsg.h"
#include "hdr/mad.h"

enum { MGMT_BASE_VERSION = 1 };

/* Sends the packet of a request back to the requester, with the answer in
 * p->mad. */
static void send_back(struct packet *p)
{
	uint16_t lid = p->slid;
	uint32_t qp = p->src_qp;

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

/* Turns the request into its answer, and sends the answer. */
static void send_answer(struct packet *p, uint16_t status)
{
	p->mad[3] = METHOD_GET | MAD_METHOD_RESPONSE;
	if (p->mad[1] == CLASS_SUBN_DIRECTED)
		status |= STATUS_DIRECTION;
	bytes_put16(p->mad + 4, status);
	send_back(p);
}

static bool has_program(const struct port *port)
{
	return !list_is_empty(&port->ends) || !list_is_empty(&port->data_ends);
}

/* Is the node an adapter or router on which a program runs? */
static bool is_host(const struct node *node)
{
	bool is_used = node->held;

	for (int i = 1; i <= node->port_count && !is_used; i++)
		is_used = has_program(&node->ports[i]);
	return is_used && !node_is_switch(node);
}

/* Answers a message of connection management that no agent takes, as a kernel
 * without listeners and conversations does.  False: the message gets no
 * answer. */
static bool answer_cm(struct packet *p)
{
	struct cmmsg m, answer;

	if (!is_host(p->at->node) || !port_info_has_lid(p->at, p->dlid) ||
	    !cmmsg_parse(p->mad, MAD_BYTES, &m))
		return false;
	if (m.kind == CMMSG_REQ || m.kind == CMMSG_SIDR_REQ)
		cmmsg_refuse(&m, CMMSG_REJ_BAD_SERVICE_ID, &answer);
	else if (!cmmsg_answer_stray(&m, &answer))
		return false;
	cmmsg_write(p->mad, &answer);
	send_back(p);
	return true;
}

/* Carries out the verdict of the node's agent.  SMA_NOT_MINE: a program's agent
 * gets the request or, if there is none, the fabric answers as the kernel does.
 */
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
	else if (!answer_cm(p))
		packet_drop(p);
}

/* Must an adapter or router drop the packet for QP1, because the port is not in
 * the packet's partition (IBTA 9.6.1.1.1)?  If so, counts the packet and sends
 * a trap.  P_Key 0: the sender has set none, so the packet has the default
 * P_Key. */
static bool is_from_other_partition(const struct packet *p)
{
	if (p->dest_qp != 1 || node_is_switch(p->at->node) ||
	    gate_fits(p->at, p->pkey ? p->pkey : BTH_DEFAULT_PKEY))
		return false;
	port_info_count_pkey(p->at);
	trap_pkey(p->at, p);
	return true;
}

/* Has the packet a wrong Q_Key for QP1?  If so, counts the packet and sends a
 * trap.  The P_Key is checked before (IBTA 9.6.1). */
static bool has_wrong_qkey(const struct packet *p)
{
	struct port *port = port_managed(p->at);

	if (p->dest_qp != 1 || p->qkey == MAD_QP1_QKEY)
		return false;
	port_info_count_qkey(port);
	trap_qkey(port, p);
	return true;
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
	    p->dest_qp > 1 || is_from_other_partition(p) || has_wrong_qkey(p)) {
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
