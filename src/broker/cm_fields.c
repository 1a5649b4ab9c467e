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

/* Reads p, a path of a REQ.  The members local_* of p are those of the REQ's
 * sender, so they become the remote ones here. */
static struct cmproto_path read_path(const struct cmmsg *msg,
				     const struct cmmsg_path *p)
{
	return (struct cmproto_path){
		.local_lid = p->remote_lid,
		.remote_lid = p->local_lid,
		.pkey = msg->qp.pkey,
		.sl = p->sl,
		.mtu = msg->qp.mtu,
		.rate = p->rate,
		/* the sender's ack timeout is for the round trip */
		.life_time = p->ack_timeout ? p->ack_timeout - 1 : 0,
		.hop_limit = p->hop_limit,
		.traffic_class = p->traffic_class,
		.is_global = !p->subnet_local,
	};
}

/* Reads the two paths of a REQ.  The LIDs of an alternate path that is absent
 * are 0 (IBTA 12.6.5). */
static void read_paths(struct cmproto *m, const struct cmmsg *msg)
{
	const struct cmmsg_path *other = &msg->alternate;

	m->path = read_path(msg, &msg->primary);
	if (!other->local_lid)
		return;
	m->alternate.path = read_path(msg, other);
	m->alternate.ack_timeout = other->ack_timeout;
	memcpy(m->alternate.local, other->remote_gid, 16);
	memcpy(m->alternate.peer, other->local_gid, 16);
}

/* Reads a REQ or SIDR_REQ of InfiniBand (cmproto.is_ib).  Does not set
 * m->at.peer_port: the client finds the sender's port in the private data, if
 * the message has it. */
static void read_ib(struct cmproto *m, const struct cmmsg *msg)
{
	m->at.local_port = (uint16_t)msg->service_id;
	if (msg->kind == CMMSG_REQ)
		read_paths(m, msg);
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
	m->alternate.failover = msg->failover;
	m->is_datagram =
		msg->kind == CMMSG_SIDR_REQ || msg->kind == CMMSG_SIDR_REP;
	if (is_request(msg) && m->is_ib)
		read_ib(m, msg);
	else if (is_request(msg))
		read_ip(m, msg);
	else if (msg->kind)
		read_private(m, msg);
}

static void fill_path(struct cmmsg_path *p, const struct cmproto_path *path)
{
	p->local_lid = path->local_lid;
	p->remote_lid = path->remote_lid;
	p->sl = path->sl & 15;
	p->rate = path->rate & 63;
	p->traffic_class = path->traffic_class;
	p->hop_limit = path->hop_limit;
	p->subnet_local = !path->is_global;
}

static void fill_alternate(struct cmmsg *msg, const struct cmproto_alternate *a)
{
	msg->failover = a->failover & 3;
	if (!a->path.remote_lid)
		return;
	fill_path(&msg->alternate, &a->path);
	msg->alternate.ack_timeout = a->ack_timeout & 31;
	memcpy(msg->alternate.local_gid, a->local, 16);
	memcpy(msg->alternate.remote_gid, a->peer, 16);
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
	/* a queue pair of RoCE takes no alternate path */
	msg->failover = CMMSG_FAILOVER_UNSUPPORTED;
	if (!m->is_ib)
		return;
	msg->qp.pkey = m->path.pkey;
	fill_path(&msg->primary, &m->path);
	fill_alternate(msg, &m->alternate);
}
