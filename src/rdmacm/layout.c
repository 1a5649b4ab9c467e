/* SPDX-License-Identifier: BSD-2-Clause */
/* The layouts of structs that programs access, on 64-bit machines, as in
 * release 44 of rdma-core.  This file has no code. */
#include <rdma/rdma_cma.h>

#include <stddef.h>

#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define AT(type, field, bytes)                                                 \
	_Static_assert(offsetof(struct type, field) == (bytes),                \
		       #type "." #field)

SIZE(rdma_cm_id, 416);
AT(rdma_cm_id, verbs, 0);
AT(rdma_cm_id, channel, 8);
AT(rdma_cm_id, context, 16);
AT(rdma_cm_id, qp, 24);
AT(rdma_cm_id, route, 32);
AT(rdma_cm_id, ps, 344);
AT(rdma_cm_id, port_num, 348);
AT(rdma_cm_id, event, 352);
AT(rdma_cm_id, send_cq_channel, 360);
AT(rdma_cm_id, send_cq, 368);
AT(rdma_cm_id, recv_cq_channel, 376);
AT(rdma_cm_id, recv_cq, 384);
AT(rdma_cm_id, srq, 392);
AT(rdma_cm_id, pd, 400);
AT(rdma_cm_id, qp_type, 408);

SIZE(rdma_cm_event, 80);
AT(rdma_cm_event, id, 0);
AT(rdma_cm_event, listen_id, 8);
AT(rdma_cm_event, event, 16);
AT(rdma_cm_event, status, 20);
AT(rdma_cm_event, param, 24);
SIZE(rdma_conn_param, 24);
SIZE(rdma_ud_param, 56);

SIZE(rdma_addr, 296);
SIZE(rdma_route, 312);
SIZE(rdma_addrinfo, 96);
SIZE(rdma_event_channel, 4);
