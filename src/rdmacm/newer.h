/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations of the version nodes RDMACM_1.4 and RDMACM_1.5, which the
 * installed header may lack.  By the calls of RDMACM_1.4 a program resolves a
 * name, takes the result after an event, or posts an event to an id's channel.
 * The calls of RDMACM_1.5 are those of epoll(7) for rsockets.
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

/*
 * Resolves a name before it returns, and posts the event ADDRINFO_RESOLVED or
 * ADDRINFO_ERROR; the id keeps the result.  On a synchronous id, also takes
 * that event.  Returns 0, or -1 and errno with a message: no memory is left for
 * the event, or, on a synchronous id, the name cannot be resolved.
 */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);
/* Stores the id's result of rdma_resolve_addrinfo in *info.  The program then
 * owns the result and frees it by rdma_freeaddrinfo.  Returns 0, or -1 and
 * errno; ENODATA: the id has no result, or the program has taken it. */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
/* Posts the event USER or INTERNAL, with status and arg, to the id's channel.
 * Returns 0, or -1 and errno; EINVAL for other events. */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);

/* Returns -1 and ENOSYS: adverb does not support rsockets. */
int repoll_create(int flags);
/* Returns -1 and ENOSYS: adverb does not support rsockets. */
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
/* Returns -1 and ENOSYS: adverb does not support rsockets. */
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);

#endif
