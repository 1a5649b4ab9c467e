/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_route.h"

#include "hdr/bytes.h"
#include "hdr/cmmsg.h"

#include <errno.h>
#include <string.h>

/* Offsets in a MAD of the subnet administration, then in a PathRecord. */
enum {
	AT_MASK = 48,
	AT_RECORD = 56,
	AT_SERVICE = AT_RECORD,
	AT_DGID = AT_RECORD + 8,
	AT_SGID = AT_RECORD + 24,
	AT_DLID = AT_RECORD + 40,
	AT_SLID = AT_RECORD + 42,
	AT_HOP_LIMIT = AT_RECORD + 47,
	AT_TRAFFIC_CLASS = AT_RECORD + 48,
	AT_NUMBER = AT_RECORD + 49, /* Reversible and NumbPath */
	AT_PKEY = AT_RECORD + 50,
	AT_SL = AT_RECORD + 53,
	AT_MTU = AT_RECORD + 54,
	AT_RATE = AT_RECORD + 55,
	AT_LIFE_TIME = AT_RECORD + 56,
};

/* Bits of the component mask. */
enum {
	HAS_SERVICE = 3 << 0, /* the two halves of the ServiceID */
	HAS_DGID = 1 << 2,
	HAS_SGID = 1 << 3,
	HAS_TRAFFIC_CLASS = 1 << 10,
	HAS_REVERSIBLE = 1 << 11,
	HAS_NUMBER = 1 << 12,
	HAS_PKEY = 1 << 13,
	HAS_SL = 1 << 15,
};

enum {
	METHOD_GET = 1,
	ATTR_PATH_RECORD = 0x35,
	REVERSIBLE_ONE = 0x80 | 1, /* Reversible, and one path */
	/* The bits of the status that all classes have (IBTA 13.4.7): the port
	 * has no agent of this class, or the agent is busy. */
	STATUS_COMMON = 0xff,
	SELECTED = 63, /* the value of a field that a selector precedes */
	LID_MULTICAST = 0xc000, /* the first one */
	EXPONENT_LEAST = 10,	/* 4 ms */
	EXPONENT_MOST = 24,	/* 69 s */
};

void fabric_route_write(const struct cmproto *m, uint32_t id,
			uint8_t mad[MAD_BYTES])
{
	const struct mad head = {.base_version = 1,
				 .mgmt_class = FABRIC_ROUTE_CLASS,
				 .class_version = FABRIC_ROUTE_VERSION,
				 .method = METHOD_GET,
				 .transaction_id = id,
				 .attribute_id = ATTR_PATH_RECORD};
	uint64_t mask = HAS_SERVICE | HAS_DGID | HAS_SGID | HAS_TRAFFIC_CLASS |
			HAS_REVERSIBLE | HAS_NUMBER;

	memset(mad, 0, MAD_BYTES);
	mad_write(mad, &head);
	bytes_put64(mad + AT_SERVICE,
		    cmmsg_service_id(m->at.space, m->at.peer_port));
	memcpy(mad + AT_DGID, m->at.peer, 16);
	memcpy(mad + AT_SGID, m->at.local, 16);
	mad[AT_NUMBER] = REVERSIBLE_ONE;
	mad[AT_TRAFFIC_CLASS] = m->path.traffic_class;
	bytes_put16(mad + AT_PKEY, m->path.pkey);
	mad[AT_SL] = m->path.sl & 15;
	mask |= m->path.pkey ? HAS_PKEY : 0;
	mask |= m->path.sl & 15 ? HAS_SL : 0;
	bytes_put64(mad + AT_MASK, mask);
}

uint32_t fabric_route_id(const uint8_t *mad)
{
	return bytes_get32(mad + 12);
}

static int is_port_lid(uint16_t lid)
{
	return lid && lid < LID_MULTICAST;
}

int fabric_route_read(const uint8_t *mad, size_t bytes,
		      struct cmproto_path *path)
{
	struct mad head;

	if (bytes != MAD_BYTES || !mad_parse(mad, bytes, &head) ||
	    head.method != (METHOD_GET | MAD_METHOD_RESPONSE) ||
	    head.attribute_id != ATTR_PATH_RECORD)
		return -ENETUNREACH;
	if (head.status)
		return head.status & STATUS_COMMON ? -EREMOTEIO : -ENETUNREACH;
	*path = (struct cmproto_path){
		.local_lid = bytes_get16(mad + AT_SLID),
		.remote_lid = bytes_get16(mad + AT_DLID),
		.pkey = bytes_get16(mad + AT_PKEY),
		.sl = mad[AT_SL] & 15,
		.mtu = mad[AT_MTU] & SELECTED,
		.rate = mad[AT_RATE] & SELECTED,
		.life_time = mad[AT_LIFE_TIME] & SELECTED,
		.hop_limit = mad[AT_HOP_LIMIT],
		.traffic_class = mad[AT_TRAFFIC_CLASS],
		/* a packet that no router forwards needs no GRH */
		.is_global = mad[AT_HOP_LIMIT] > 1,
	};
	return is_port_lid(path->local_lid) && is_port_lid(path->remote_lid)
		       ? 0
		       : -ENETUNREACH;
}

uint32_t fabric_route_try_ms(uint8_t timeout)
{
	uint32_t exponent = timeout < EXPONENT_LEAST  ? EXPONENT_LEAST
			    : timeout > EXPONENT_MOST ? EXPONENT_MOST
						      : timeout;
	uint32_t all_ms = (uint32_t)((4096ull << exponent) / 1000000);

	return all_ms / (FABRIC_ROUTE_RETRIES + 1);
}
