/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/sa.h"

#include <string.h>

#include "hdr/bytes.h"

/* Offsets in a MAD of the subnet administration: of its own fields, and of the
 * fields of the MCMemberRecord or PathRecord in it. */
enum {
	AT_ID = 12,
	AT_MASK = 48,
	AT_RECORD = 56,
	AT_PORT_GID = AT_RECORD + 16,
	AT_QKEY = AT_RECORD + 32,
	AT_MLID = AT_RECORD + 36,
	AT_MTU = AT_RECORD + 38,
	AT_TRAFFIC_CLASS = AT_RECORD + 39,
	AT_PKEY = AT_RECORD + 40,
	AT_RATE = AT_RECORD + 42,
	AT_FLOW = AT_RECORD + 44, /* SL, flow label, hop limit */
	AT_JOIN = AT_RECORD + 48, /* scope and JoinState */
	AT_PATH_SERVICE = AT_RECORD,
	AT_PATH_DGID = AT_RECORD + 8,
	AT_PATH_SGID = AT_RECORD + 24,
	AT_PATH_DLID = AT_RECORD + 40,
	AT_PATH_SLID = AT_RECORD + 42,
	AT_PATH_HOPS = AT_RECORD + 44, /* flow label and hop limit */
	AT_PATH_TRAFFIC_CLASS = AT_RECORD + 48,
	AT_PATH_NUMBER = AT_RECORD + 49, /* Reversible and NumbPath */
	AT_PATH_PKEY = AT_RECORD + 50,
	AT_PATH_SL = AT_RECORD + 53,
	AT_PATH_MTU = AT_RECORD + 54,
	AT_PATH_RATE = AT_RECORD + 55,
	AT_PATH_LIFE_TIME = AT_RECORD + 56,
};

/* Bits of the component mask of an MCMemberRecord. */
enum {
	HAS_MGID = 1 << 0,
	HAS_PORT_GID = 1 << 1,
	HAS_QKEY = 1 << 2,
	HAS_MTU = 3 << 4, /* with its selector */
	HAS_TRAFFIC_CLASS = 1 << 6,
	HAS_PKEY = 1 << 7,
	HAS_RATE = 3 << 8, /* with its selector */
	HAS_SL = 1 << 12,
	HAS_FLOW_LABEL = 1 << 13,
	HAS_HOP_LIMIT = 1 << 14,
	HAS_JOIN_STATE = 1 << 16,
	HAS_TO_MAKE = HAS_QKEY | HAS_TRAFFIC_CLASS | HAS_SL | HAS_FLOW_LABEL,
	HAS_LIMITS = HAS_MTU | HAS_RATE | HAS_HOP_LIMIT,
};

/* The bits of a PathRecord's component mask that sa_write_path always sets. */
enum {
	HAS_PATH_DGID = 1 << 2,
	HAS_PATH_SGID = 1 << 3,
	HAS_PATH_REVERSIBLE = 1 << 11,
	HAS_PATH_NUMBER = 1 << 12,
};

enum {
	METHOD_GET = 0x01,
	METHOD_SET = 0x02,
	METHOD_DELETE = 0x15,
	METHOD_GET_RESPONSE = 0x81,
	METHOD_DELETE_RESPONSE = 0x95,
	ATTR_PATH = 0x35,
	ATTR_MEMBER = 0x38,
	REVERSIBLE_ONE = 0x80 | 1, /* Reversible, and one path */
	EXACTLY = 2 << 6,	   /* the selector of an MTU or a rate */
	SELECTED = 63,		   /* the bits of the value below a selector */
	MTU_MOST = 5,
	LID_MULTICAST = 0xc000,
	LID_PERMISSIVE = 0xffff,
	GID_MULTICAST = 0xff,
};

static void write_head(uint8_t *mad, uint32_t id, uint8_t method,
		       uint16_t attribute, uint64_t mask)
{
	const struct mad head = {.base_version = 1,
				 .mgmt_class = SA_CLASS,
				 .class_version = SA_VERSION,
				 .method = method,
				 .transaction_id = id,
				 .attribute_id = attribute};

	memset(mad, 0, MAD_BYTES);
	mad_write(mad, &head);
	bytes_put64(mad + AT_MASK, mask);
}

static void write_member(uint8_t *mad, const struct sa_member *m)
{
	memcpy(mad + AT_RECORD, m->mgid, 16);
	memcpy(mad + AT_PORT_GID, m->port_gid, 16);
	bytes_put16(mad + AT_PKEY, m->pkey);
	mad[AT_JOIN] = m->join_state & 15;
}

void sa_write_join(uint8_t mad[MAD_BYTES], uint32_t id,
		   const struct sa_member *m, bool makes)
{
	uint64_t mask = HAS_MGID | HAS_PORT_GID | HAS_PKEY | HAS_JOIN_STATE;

	if (makes)
		mask |= HAS_TO_MAKE | (m->mtu ? HAS_LIMITS : 0);
	write_head(mad, id, METHOD_SET, ATTR_MEMBER, mask);
	write_member(mad, m);
	if (!makes)
		return;
	bytes_put32(mad + AT_QKEY, m->qkey);
	mad[AT_MTU] = EXACTLY | (m->mtu & SELECTED);
	mad[AT_TRAFFIC_CLASS] = m->traffic_class;
	mad[AT_RATE] = EXACTLY | (m->rate & SELECTED);
	bytes_put32(mad + AT_FLOW, (uint32_t)m->sl << 28 |
					   (m->flow_label & 0xfffff) << 8 |
					   m->hop_limit);
}

void sa_write_leave(uint8_t mad[MAD_BYTES], uint32_t id,
		    const struct sa_member *m)
{
	write_head(mad, id, METHOD_DELETE, ATTR_MEMBER,
		   HAS_MGID | HAS_PORT_GID | HAS_JOIN_STATE);
	write_member(mad, m);
}

void sa_write_path(uint8_t mad[MAD_BYTES], uint32_t id,
		   const struct sa_path *path, uint32_t fields)
{
	write_head(mad, id, METHOD_GET, ATTR_PATH,
		   HAS_PATH_DGID | HAS_PATH_SGID | HAS_PATH_REVERSIBLE |
			   HAS_PATH_NUMBER | fields);
	memcpy(mad + AT_PATH_DGID, path->dgid, 16);
	memcpy(mad + AT_PATH_SGID, path->sgid, 16);
	mad[AT_PATH_NUMBER] = REVERSIBLE_ONE;
	if (fields & SA_PATH_SERVICE)
		bytes_put64(mad + AT_PATH_SERVICE, path->service_id);
	if (fields & SA_PATH_TRAFFIC_CLASS)
		mad[AT_PATH_TRAFFIC_CLASS] = path->traffic_class;
	if (fields & SA_PATH_PKEY)
		bytes_put16(mad + AT_PATH_PKEY, path->pkey);
	if (fields & SA_PATH_SL)
		mad[AT_PATH_SL] = path->sl & 15;
}

uint32_t sa_id(const uint8_t mad[MAD_BYTES])
{
	return bytes_get32(mad + AT_ID);
}

static bool read_member(const uint8_t *mad, struct sa_member *m)
{
	uint32_t flow = bytes_get32(mad + AT_FLOW);

	*m = (struct sa_member){
		.qkey = bytes_get32(mad + AT_QKEY),
		.flow_label = flow >> 8 & 0xfffff,
		.mlid = bytes_get16(mad + AT_MLID),
		.pkey = bytes_get16(mad + AT_PKEY),
		.mtu = mad[AT_MTU] & SELECTED,
		.rate = mad[AT_RATE] & SELECTED,
		.sl = (uint8_t)(flow >> 28),
		.traffic_class = mad[AT_TRAFFIC_CLASS],
		.hop_limit = (uint8_t)flow,
		.join_state = mad[AT_JOIN] & 15,
	};
	memcpy(m->mgid, mad + AT_RECORD, 16);
	memcpy(m->port_gid, mad + AT_PORT_GID, 16);
	return m->mgid[0] == GID_MULTICAST && m->mlid >= LID_MULTICAST &&
	       m->mlid != LID_PERMISSIVE && m->mtu >= 1 && m->mtu <= MTU_MOST;
}

static bool is_port_lid(uint16_t lid)
{
	return lid && lid < LID_MULTICAST;
}

static bool read_path(const uint8_t *mad, struct sa_path *path)
{
	uint32_t hops = bytes_get32(mad + AT_PATH_HOPS);

	*path = (struct sa_path){
		.service_id = bytes_get64(mad + AT_PATH_SERVICE),
		.flow_label = hops >> 8 & 0xfffff,
		.dlid = bytes_get16(mad + AT_PATH_DLID),
		.slid = bytes_get16(mad + AT_PATH_SLID),
		.pkey = bytes_get16(mad + AT_PATH_PKEY),
		.mtu = mad[AT_PATH_MTU] & SELECTED,
		.rate = mad[AT_PATH_RATE] & SELECTED,
		.sl = mad[AT_PATH_SL] & 15,
		.traffic_class = mad[AT_PATH_TRAFFIC_CLASS],
		.hop_limit = (uint8_t)hops,
		.life_time = mad[AT_PATH_LIFE_TIME] & SELECTED,
	};
	memcpy(path->dgid, mad + AT_PATH_DGID, 16);
	memcpy(path->sgid, mad + AT_PATH_SGID, 16);
	return is_port_lid(path->dlid) && is_port_lid(path->slid) &&
	       path->mtu >= 1 && path->mtu <= MTU_MOST;
}

bool sa_read(const uint8_t *mad, size_t bytes, struct sa_answer *answer)
{
	struct mad head;

	if (bytes != MAD_BYTES || !mad_parse(mad, bytes, &head) ||
	    head.mgmt_class != SA_CLASS || head.class_version != SA_VERSION)
		return false;
	answer->id = sa_id(mad);
	answer->status = head.status;
	if (head.attribute_id == ATTR_PATH &&
	    head.method == METHOD_GET_RESPONSE) {
		answer->kind = SA_PATH;
		return read_path(mad, &answer->path) || head.status;
	}
	if (head.attribute_id != ATTR_MEMBER)
		return false;
	answer->kind =
		head.method == METHOD_DELETE_RESPONSE ? SA_LEFT : SA_MEMBER;
	if (answer->kind == SA_LEFT)
		return true;
	return head.method == METHOD_GET_RESPONSE &&
	       (read_member(mad, &answer->member) || head.status);
}
