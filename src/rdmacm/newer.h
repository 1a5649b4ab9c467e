/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations of nodes RDMACM_1.4 and 1.5, which the installed header may
 * lack. The calls of 1.4 resolve names by an event, and post events of the
 * program; those of 1.5 are epoll(7) for rsockets.
 */
#ifndef RDMACM_NEWER_H
#define RDMACM_NEWER_H

#include <rdma/rdma_cma.h>
#include <sys/epoll.h>

/* Members of enum rdma_cm_event_type that older headers lack. */
enum {
	NEWER_EVENT_ADDRINFO_RESOLVED = RDMA_CM_EVENT_TIMEWAIT_EXIT + 1,
	NEWER_EVENT_ADDRINFO_ERROR,
	NEWER_EVENT_USER,
	NEWER_EVENT_INTERNAL,
};

/* Resolves a name, and posts the event ADDRINFO_RESOLVED or ADDRINFO_ERROR.
 * Returns 0, or -1 and errno. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);
/* Stores the result of rdma_resolve_addrinfo, which the program then owns and
 * frees by rdma_freeaddrinfo.  Returns 0, or -1 and errno. */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
/* Posts the event USER or INTERNAL with `arg` to the id's channel.  Returns 0,
 * or -1 and errno. */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);

/* Each fails with ENOSYS, as every call of rsocket.c does. */
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);

#endif
