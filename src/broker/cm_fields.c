/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/cm_fields.h"

#include "broker/gsi.h"

#include <string.h>

/* Reads the IP addressing that precedes the program's private data in a REQ and
 * a SIDR_REQ (IBTA A11.3), and the private data. */
static void read_ip(struct cmproto *m, const struct cmmsg *msg)
{
	size_t bytes = cmmsg_private_bytes(msg->kind) - CMMSG_IP_BYTES;
	struct cmmsg_ip ip;

	if (cmmsg_ip_parse(msg->private_data, &ip))
		m->at.peer_port = ip.src_port;
	m->at.local_port = (uint16_t)msg->service_id;
	m->private_bytes = (uint8_t)bytes;
	memcpy(m->private_data, msg->private_data + CMMSG_IP_BYTES, bytes);
}

static void read_private(struct cmproto *m, const struct cmmsg *msg)
{
	m->private_bytes = (uint8_t)cmmsg_private_bytes(msg->kind);
	memcpy(m->private_data, msg->private_data, m->private_bytes);
}

/* Reads the path of a REQ, whose `local` is the end of the REQ's sender. */
static void read_path(struct cmproto *m, const struct cmmsg *msg)
{
	const struct cmmsg_path *p = &msg->primary;

	m->path = (struct cmproto_path){
		.local_lid = p->remote_lid,
		.remote_lid = p->local_lid,
		.pkey = msg->qp.pkey,
		.sl = p->sl,
		.mtu = msg->qp.mtu,
		.rate = p->rate,
		/* the sender's timeout is for the way there and back */
		.life_time = p->ack_timeout ? p->ack_timeout - 1 : 0,
		.hop_limit = p->hop_limit,
		.traffic_class = p->traffic_class,
		.is_global = !p->subnet_local,
	};
}

/* Reads a REQ or SIDR_REQ by GIDs, which does not have the sender's port. */
static void read_ib(struct cmproto *m, const struct cmmsg *msg)
{
	m->at.local_port = (uint16_t)msg->service_id;
	if (msg->kind == CMMSG_REQ)
		read_path(m, msg);
	read_private(m, msg);
}

static bool is_request(const struct cmmsg *msg)
{
	return msg->kind == CMMSG_REQ || msg->kind == CMMSG_SIDR_REQ;
}

void cm_fields_take(struct cmproto *m, const struct cmmsg *msg)
{
	m->qp.qpn = msg->qp.qpn;
	m->qp.psn = msg->qp.psn;
	m->qp.qkey = msg->qp.qkey;
	m->qp.responder_resources = msg->qp.responder_resources;
	m->qp.initiator_depth = msg->qp.initiator_depth;
	m->qp.flow_control = msg->qp.flow_control;
	m->qp.retry_count = msg->qp.retry_count;
	m->qp.rnr_retry = msg->qp.rnr_retry;
	m->qp.has_srq = msg->qp.has_srq;
	m->qp.transport = msg->qp.transport;
	m->qp.mtu = msg->qp.mtu;
	m->qp.ack_timeout = msg->primary.ack_timeout;
	m->qp.ack_delay = msg->ack_delay;
	m->qp.traffic_class = msg->primary.traffic_class;
	m->qp.hop_limit = msg->primary.hop_limit;
	m->qp.pkey = msg->qp.pkey;
	m->qp.ca_guid = msg->ca_guid;
	m->qp.ece_vendor = msg->ece_vendor;
	m->qp.ece_options = msg->ece_options;
	m->is_datagram =
		msg->kind == CMMSG_SIDR_REQ || msg->kind == CMMSG_SIDR_REP;
	if (is_request(msg) && m->is_ib)
		read_ib(m, msg);
	else if (is_request(msg))
		read_ip(m, msg);
	else if (msg->kind)
		read_private(m, msg);
}

static void fill_path(struct cmmsg *msg, const struct cmproto_path *path)
{
	msg->qp.pkey = path->pkey;
	msg->primary.local_lid = path->local_lid;
	msg->primary.remote_lid = path->remote_lid;
	msg->primary.sl = path->sl & 15;
	msg->primary.rate = path->rate & 63;
	msg->primary.traffic_class = path->traffic_class;
	msg->primary.hop_limit = path->hop_limit;
	msg->primary.subnet_local = !path->is_global;
}

void cm_fields_fill(struct cmmsg *msg, const struct cmproto *m)
{
	msg->qp.qpn = m->qp.qpn & 0xffffff;
	msg->qp.psn = m->qp.psn & 0xffffff;
	msg->qp.qkey = m->qp.qkey;
	msg->qp.responder_resources = m->qp.responder_resources;
	msg->qp.initiator_depth = m->qp.initiator_depth;
	msg->qp.flow_control = m->qp.flow_control;
	msg->qp.retry_count = m->qp.retry_count;
	msg->qp.rnr_retry = m->qp.rnr_retry;
	msg->qp.has_srq = m->qp.has_srq;
	msg->qp.transport = m->qp.transport;
	msg->qp.mtu = m->qp.mtu;
	msg->ack_delay = m->qp.ack_delay;
	msg->qp.pkey = GSI_PKEY;
	msg->ca_guid = m->qp.ca_guid;
	msg->ece_vendor = m->qp.ece_vendor & 0xffffff;
	msg->ece_options = m->qp.ece_options;
	msg->primary.ack_timeout = m->qp.ack_timeout;
	msg->primary.traffic_class = m->qp.traffic_class;
	msg->primary.hop_limit = m->qp.hop_limit;
	if (m->is_ib)
		fill_path(msg, &m->path);
}
