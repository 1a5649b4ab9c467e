/* SPDX-License-Identifier: BSD-2-Clause */
/* The header with IP addresses at the beginning of the private data of a REQ
 * (IBTA A11.3). */
#include "rdmacm/ib.h"

#include <string.h>

void r_ib_put_header(const struct r_id *id, struct cmproto *m)
{
	const struct rdma_addr *a = &id->base.route.addr;
	struct cmmsg_ip ip = {.src_port = r_addr_port(&a->src_addr)};

	r_addr_ip(&a->src_addr, ip.src);
	r_addr_ip(&a->dst_addr, ip.dst);
	memmove(m->private_data + CMMSG_IP_BYTES, m->private_data,
		m->private_bytes);
	m->private_bytes = (uint8_t)(m->private_bytes + CMMSG_IP_BYTES);
	cmmsg_ip_write(m->private_data, &ip);
}

bool r_ib_take_header(struct cmproto *m, struct cmmsg_ip *ip)
{
	if (m->private_bytes < CMMSG_IP_BYTES ||
	    !cmmsg_ip_parse(m->private_data, ip))
		return false;
	m->private_bytes = (uint8_t)(m->private_bytes - CMMSG_IP_BYTES);
	memmove(m->private_data, m->private_data + CMMSG_IP_BYTES,
		m->private_bytes);
	return true;
}
