/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_route.h"

#include "hdr/cmmsg.h"
#include "hdr/sa.h"

#include <errno.h>
#include <string.h>

enum {
	/* The bits of a MAD's status that mean the same in all classes
	 * (IBTA 13.4.7): for example, that the port has no agent of this
	 * class, or that the agent is busy. */
	STATUS_COMMON = 0xff,
	EXPONENT_LEAST = 10, /* 4 ms */
	EXPONENT_MOST = 24,  /* 69 s */
};

void fabric_route_write(const struct cmproto *m, uint32_t id,
			uint8_t mad[MAD_BYTES])
{
	struct sa_path path = {
		.service_id = m->at.service_id
				      ? m->at.service_id
				      : cmmsg_service_id(m->at.space,
							 m->at.peer_port),
		.pkey = m->path.pkey,
		.sl = m->path.sl & 15,
		.traffic_class = m->path.traffic_class};
	uint32_t fields = SA_PATH_SERVICE | SA_PATH_TRAFFIC_CLASS;

	memcpy(path.dgid, m->at.peer, 16);
	memcpy(path.sgid, m->at.local, 16);
	fields |= path.pkey ? SA_PATH_PKEY : 0;
	fields |= path.sl ? SA_PATH_SL : 0;
	sa_write_path(mad, id, &path, fields);
}

int fabric_route_read(const uint8_t *mad, size_t bytes,
		      struct cmproto_path *path)
{
	struct sa_answer a;

	if (!sa_read(mad, bytes, &a) || a.kind != SA_PATH)
		return -ENETUNREACH;
	if (a.status)
		return a.status & STATUS_COMMON ? -EREMOTEIO : -ENETUNREACH;
	*path = (struct cmproto_path){
		.local_lid = a.path.slid,
		.remote_lid = a.path.dlid,
		.pkey = a.path.pkey,
		.sl = a.path.sl,
		.mtu = a.path.mtu,
		.rate = a.path.rate,
		.life_time = a.path.life_time,
		.hop_limit = a.path.hop_limit,
		.traffic_class = a.path.traffic_class,
		/* a packet that no router forwards needs no GRH */
		.is_global = a.path.hop_limit > 1,
	};
	return 0;
}

uint32_t fabric_route_try_ms(uint8_t timeout)
{
	uint32_t exponent = timeout < EXPONENT_LEAST  ? EXPONENT_LEAST
			    : timeout > EXPONENT_MOST ? EXPONENT_MOST
						      : timeout;
	uint32_t all_ms = (uint32_t)((4096ull << exponent) / 1000000);

	return all_ms / (FABRIC_ROUTE_RETRIES + 1);
}
