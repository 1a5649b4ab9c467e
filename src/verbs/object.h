/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects behind the public handles.  Each but v_context starts with the
 * public struct, so that a pointer to either struct can be cast to the other.
 * hca's and the engine's objects do the work; these objects add what the ABI
 * needs: events, reference counts, and the locks of the program's threads.
 *
 * Locks, outermost first: v_cq.poll_lock, v_qp.send and v_qp.recv; host_lock;
 * v_srq.post; v_counter.lock (counter.c); the lock of the list of contexts
 * (context.c); table.c's lock; the leaves v_queue.lock and dm_lock (dm.c).  Two
 * of these locks stay locked between calls of the program: v_cq.poll_lock from
 * ibv_start_poll to ibv_end_poll, and v_qp.send from ibv_wr_start to
 * ibv_wr_complete or ibv_wr_abort.  The mutexes of the public structs
 * (contexts, CQs, SRQs, QPs) cover counts of users and of acknowledged events;
 * no lock is taken under them.
 */
#ifndef VERBS_OBJECT_H
#define VERBS_OBJECT_H

#include <infiniband/verbs.h>

#include <stdbool.h>
#include <stdint.h>

#include "host/host.h"
#include "util/bits.h"
#include "util/count.h"
#include "util/list.h"
#include "util/lock.h"
#include "util/shared.h"
#include "verbs/newer.h"
#include "verbs/queue.h"

/*
 * A device with the layout that drivers' libraries expect (ABI of node
 * IBVERBS_PRIVATE_34).  A driver's library compares `ops`, the member after the
 * public struct, with the address of the driver's own operations.
 */
struct v_device {
	struct ibv_device base;
	const void *ops; /* at offset 664, which drivers read */
	/* The members from refcount to core_support belong to the drivers'
	 * layout.  adverb never reads them. */
	int refcount;
	void *entry[2];
	void *sysfs;
	uint64_t core_support;
	const struct device *host; /* constant, valid until the process ends */
	uint32_t index;		   /* the result of ibv_get_device_index */
};

/* V_NEWER_OPS: the bytes of verbs_context before query_port in release 65 of
 * rdma-core.  V_OLDER_OPS: the same in the installed header.  V_OPS_ROOM: the
 * bytes of the members that the installed header lacks. */
#define V_NEWER_OPS sizeof(struct v_newer_ops)
#define V_OLDER_OPS offsetof(struct verbs_context, query_port)
#define V_OPS_ROOM  (V_OLDER_OPS < V_NEWER_OPS ? V_NEWER_OPS - V_OLDER_OPS : 0)

struct v_context {
	/* Together with the beginning of `verbs`, the operations of release 65
	 * of rdma-core (v_newer_ops). */
	_Alignas(8) char newer[V_OPS_ROOM];
	struct verbs_context verbs; /* programs hold &verbs.context */
	struct host *host;	    /* one reference */
	const struct device *dev;
	uint32_t process;     /* v_process() when the context was opened */
	struct count objects; /* objects of the context that exist */
	struct list link;     /* in context.c's list of open contexts */
	struct v_queue async; /* the asynchronous events */
	/* port: the sources of a port's events, by the port's number minus 1
	 * and enum device_event.  fatal: the source of
	 * IBV_EVENT_DEVICE_FATAL. */
	struct v_source port[HCA_MAX_PORTS][DEVICE_EVENTS], fatal;
};

struct v_td {
	struct ibv_td base;
	struct count users; /* parent domains with this thread domain */
};

struct v_pd {
	struct ibv_pd base;
	uint32_t number; /* hca's number of the domain */
	/* How many users keep the handle: the program, until it gives the
	 * handle back, and the objects in the domain that were made with this
	 * handle. */
	struct count users;
	/* In the domain's list of handles, which host_domains has; under
	 * host_lock.  A parent domain is in no list, and neither is a handle
	 * whose domain was freed. */
	struct list same;
	/* The regions of ibv_import_mr in this handle, which `users` counts. */
	struct count imports;
	bool is_returned;    /* ibv_unimport_pd was called; under host_lock */
	struct v_pd *parent; /* a parent domain's protection domain, or NULL */
	struct v_td *thread; /* a parent domain's thread domain, or NULL */
};

struct v_mr {
	struct ibv_mr base;
	struct mr *mr;	 /* the row in hca's table of regions */
	uint64_t iova;	 /* the address by which peers name the first byte */
	uint32_t access; /* IBV_ACCESS_*, as the program passed them */
	struct v_dm *dm; /* the device memory that is registered, or NULL */
	/* Made by ibv_import_mr: the row belongs to another handle. */
	bool is_imported;
};

struct v_mw {
	struct ibv_mw base;
	struct mr *mr; /* the row in hca's table of regions */
};

struct v_ah {
	struct ibv_ah base;
	/* The destination.  v_post_ud sets QPN, Q_Key and UDP source port in
	 * the copy of each request. */
	struct wq_to to;
};

struct v_channel {
	/* base.refcnt counts the CQs, under the mutex of base.context. */
	struct ibv_comp_channel base;
	struct v_queue events;
};

struct v_cq {
	struct ibv_cq_ex base;
	struct cq *cq; /* hca's queue */
	/* Held from ibv_start_poll to ibv_end_poll, unless is_single. */
	struct lock poll_lock;
	bool is_single; /* one thread at a time polls, see v_enter_queue */
	struct host_polls polls; /* for host_poll and host_polled */
	/* Polls in a row that found completions.  A hint that orders no other
	 * access: threads that poll at the same time may lose a count. */
	shared_u32 found;
	struct cqe now;	    /* extended polling: the current completion */
	struct count users; /* send queues and receive queues that use the CQ */
	struct v_pd
		*domain; /* the parent domain of ibv_create_cq_ex, or NULL */
	uint64_t cookie; /* by which events name the CQ (table.h) */
	/* The events of the channel, and IBV_EVENT_CQ_ERR. */
	struct v_source completion, error;
};

struct v_srq {
	struct ibv_srq base;
	struct srq *srq;       /* hca's queue */
	struct lock post;      /* held while a thread posts */
	struct count users;    /* QPs with this SRQ */
	uint64_t cookie;       /* by which events name the SRQ (table.h) */
	struct v_source limit; /* IBV_EVENT_SRQ_LIMIT_REACHED */
};

/* The asynchronous events of a QP. */
enum v_qp_event {
	V_QP_FATAL,
	V_QP_REQ_ERR,
	V_QP_ACCESS_ERR,
	V_QP_COMM_EST,
	V_QP_SQ_DRAINED,
	V_QP_LAST_WQE,
	V_QP_PATH_MIG,
	V_QP_PATH_MIG_ERR,
	V_QP_EVENTS
};

struct v_qp {
	union {
		struct ibv_qp_ex base;
		struct v_qp_ex newest;
	};
	bool is_ex;	     /* created with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS */
	struct qp *qp;	     /* hca's queue pair */
	struct ibt_qp *side; /* the protocol state */
	struct ibv_qp_cap cap; /* as granted */
	uint32_t process;      /* v_process() when the QP was created */
	struct host *host;
	/* Held while a thread posts to the queue, unless is_single. */
	struct lock send, recv;
	bool is_single; /* one thread at a time posts, see v_enter_queue */
	/* The requests since ibv_wr_start, under `send`: see wr.c. */
	struct {
		struct wqe
			*now; /* the request to fill in; NULL: there is none */
		uint32_t count; /* the number of requests */
		/* The sum of their bytes, and V_POST_EACH for each request. */
		uint64_t bytes;
		int err;       /* the first error, or 0 */
		bool has_bind; /* a request binds a window */
	} wr;
	uint64_t cookie; /* by which events name the QP (table.h) */
	struct v_source events[V_QP_EVENTS]; /* by enum v_qp_event */
	struct list counters; /* struct v_attached, see counter.c */
};

/*
 * Takes the lock of a queue that the program's threads post to or poll.  Does
 * nothing if is_single: the program has promised, by a thread domain or by
 * IBV_CREATE_CQ_ATTR_SINGLE_THREADED, that one thread at a time uses the queue.
 *
 * The lock excludes only threads of the program, and only from each other.
 * For the progress thread and for peers, the release store of wq.head orders
 * the contents of a posted request before that store (wq_commit_all).  The lock
 * in struct cq excludes the threads that move completions into the ring while
 * this thread polls.
 */
static inline void v_enter_queue(struct lock *l,
				 bool is_single) NO_LOCK_ANALYSIS
{
	if (is_single)
		instrument_ignore();
	else
		lock_take(l);
}

/* Releases the lock that v_enter_queue has taken.  If is_single, v_enter_queue
 * has taken no lock, and this call orders no accesses. */
static inline void v_leave_queue(struct lock *l,
				 bool is_single) NO_LOCK_ANALYSIS
{
	if (is_single)
		instrument_ignore_end();
	else
		lock_give(l);
}

static inline struct v_context *v_context(struct ibv_context *c)
{
	return (struct v_context *)(void *)((char *)c -
					    offsetof(struct v_context,
						     verbs.context));
}

/* Returns the operations of release 65 of rdma-core, which end where
 * c->verbs.query_port begins. */
static inline struct v_newer_ops *v_newer_ops(struct v_context *c)
{
	return (struct v_newer_ops *)(void *)((char *)c + V_OPS_ROOM +
					      V_OLDER_OPS - V_NEWER_OPS);
}

static inline struct v_pd *v_pd(struct ibv_pd *pd)
{
	return (struct v_pd *)(void *)pd;
}

static inline struct v_mr *v_mr(struct ibv_mr *mr)
{
	return (struct v_mr *)(void *)mr;
}

static inline struct v_mw *v_mw(struct ibv_mw *mw)
{
	return (struct v_mw *)(void *)mw;
}

static inline struct v_ah *v_ah(struct ibv_ah *ah)
{
	return (struct v_ah *)(void *)ah;
}

static inline struct v_cq *v_cq(struct ibv_cq *cq)
{
	return (struct v_cq *)(void *)cq;
}

static inline struct v_srq *v_srq(struct ibv_srq *srq)
{
	return (struct v_srq *)(void *)srq;
}

static inline struct v_qp *v_qp(struct ibv_qp *qp)
{
	return (struct v_qp *)(void *)qp;
}

static inline struct v_channel *v_channel(struct ibv_comp_channel *c)
{
	return (struct v_channel *)(void *)c;
}

/* table.c: returns how many calls of fork(2) lead from the process that loaded
 * the library to this process.  So a child's number differs from its parent's.
 * A call costs one load. */
uint32_t v_process(void);
/*
 * poll.c: polls up to n completions into out[], and returns how many.  Makes
 * progress only if the queue has no completion, or after 16 polls in a row that
 * found completions.
 */
uint32_t v_poll(struct host *h, struct v_cq *cq, struct cqe *out, uint32_t n);

/* counter.c: detaches all counters from a QP that is about to be destroyed, and
 * adds the QP's sums to each counter.  Under host_lock. */
void v_counters_leave(struct v_qp *q);

/* memory.c: ends the handle's use of its domain, device memory and context, and
 * frees the handle, but not the row of the region. */
void v_mr_drop(struct v_mr *m);
/* domain.c: ends a use of the domain's handle.  The last one frees the
 * handle. */
void v_pd_drop(struct v_pd *pd);
/* domain.c: adds pd to the handles of the domain with this number.  pd is a new
 * handle whose member `same` was initialised.  Returns false if there is no
 * domain of this number that ibv_alloc_pd has made and ibv_dealloc_pd has not
 * freed. */
bool v_pd_import(struct v_context *c, uint32_t number, struct v_pd *pd);

/* Returns whether this process opened the context.  The child of a fork must
 * not use its parent's arena. */
static inline bool v_is_ours(const struct v_context *c)
{
	return c->process == v_process();
}

#endif
