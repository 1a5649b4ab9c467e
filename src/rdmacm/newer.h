/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of node RDMACM_1.4, which the headers we build against do not know.
 * They resolve names without blocking, and post events of one's own.
 */
#ifndef RDMACM_NEWER_H
#define RDMACM_NEWER_H

#include <rdma/rdma_cma.h>

/* Members of enum rdma_cm_event_type. */
enum {
	NEWER_EVENT_ADDRINFO_RESOLVED = RDMA_CM_EVENT_TIMEWAIT_EXIT + 1,
	NEWER_EVENT_ADDRINFO_ERROR,
	NEWER_EVENT_USER,
	NEWER_EVENT_INTERNAL,
};

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);

#endif
