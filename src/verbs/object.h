/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects behind the public handles.  Each starts with the public struct,
 * so that a cast goes both ways.  Inside the library hca's and the engine's
 * objects do the work; what is here is what the ABI adds to them: events,
 * reference counts, the locks of the program's side.
 *
 * Locks, outermost first: host_lock; v_cq.face; the list of contexts; then
 * leaves: v_queue.lock and the handle table's.
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
 * A device as drivers' libraries see one: they compare the word behind the
 * public struct with their own table (ABI of node IBVERBS_PRIVATE_34).
 */
struct v_device {
	struct ibv_device base;
	const void *ops; /* at 664 */
	int refcount;
	void *entry[2];
	void *sysfs;
	uint64_t core_support;
	const struct device *host; /* ours; constant */
	uint32_t index;
};

/* Room for what our header's verbs_context lacks of release 65's. */
#define V_NEWER_OPS sizeof(struct v_newer_ops)
#define V_OLDER_OPS offsetof(struct verbs_context, query_port)
#define V_OPS_ROOM  (V_OLDER_OPS < V_NEWER_OPS ? V_NEWER_OPS - V_OLDER_OPS : 0)

struct v_context {
	_Alignas(8) char newer[V_OPS_ROOM];
	struct verbs_context verbs; /* its ibv_context is what programs hold */
	struct host *host;	    /* one reference */
	const struct device *dev;
	uint32_t process;     /* v_process() of the opener */
	struct count objects; /* not yet destroyed */
	struct list link;     /* in context.c's list */
	struct v_queue async;
	struct v_source port[DEVICE_EVENTS], fatal;
};

struct v_td {
	struct ibv_td base;
	struct count users;
};

struct v_pd {
	struct ibv_pd base;
	uint32_t number; /* hca's */
	struct count users;
	struct v_pd *parent; /* of a parent domain: what it stands for */
	struct v_td *thread; /* the same, or NULL */
};

struct v_mr {
	struct ibv_mr base;
	struct mr *mr;
	uint64_t iova;
	uint32_t access;
	struct v_dm *dm; /* whose memory it is, or NULL */
	bool is_imported;
};

struct v_mw {
	struct ibv_mw base;
	struct mr *mr;
};

struct v_ah {
	struct ibv_ah base;
	struct wq_to to; /* without QPN and Q_Key */
};

struct v_channel {
	struct ibv_comp_channel base; /* refcnt: CQs; base.context's mutex */
	struct v_queue events;
};

struct v_cq {
	struct ibv_cq_ex base;
	struct cq *cq;
	struct lock
		face; /* of a thread between ibv_start_poll and ibv_end_poll */
	shared_u32 empty;    /* polls in a row that found nothing; a guess */
	shared_u32 still;    /* polls since one made progress; a guess */
	struct cqe now;	     /* under extended polling: the one being read */
	struct count users;  /* QPs, counted once for each queue */
	struct v_pd *domain; /* a parent domain it was made in, or NULL */
	uint64_t cookie;
	struct v_source completion, error;
};

struct v_srq {
	struct ibv_srq base;
	struct srq *srq;
	struct lock post;   /* one poster */
	struct count users; /* QPs */
	uint64_t cookie;
	struct v_source limit;
};

enum v_qp_event {
	V_QP_FATAL,
	V_QP_REQ_ERR,
	V_QP_ACCESS_ERR,
	V_QP_COMM_EST,
	V_QP_SQ_DRAINED,
	V_QP_LAST_WQE,
	V_QP_EVENTS
};

struct v_qp {
	union {
		struct ibv_qp_ex base;
		struct v_qp_ex newest;
	};
	bool is_ex; /* made with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS */
	struct qp *qp;
	struct ibt_qp *side;
	struct ibv_qp_cap cap; /* granted */
	uint32_t process;
	struct host *host;
	struct lock send, recv; /* one poster to each queue */
	struct {
		struct wqe *now; /* being filled; NULL after an error */
		uint32_t count;	 /* filled since wr_start */
		uint64_t bytes;	 /* of these, headers included */
		int err;	 /* the first one */
	} wr;			 /* under send, see wr.c */
	uint64_t cookie;
	struct v_source events[V_QP_EVENTS];
	struct list counters; /* struct v_attached, see counter.c */
};

static inline struct v_context *v_context(struct ibv_context *c)
{
	return (struct v_context *)(void *)((char *)c -
					    offsetof(struct v_context,
						     verbs.context));
}

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

/* Which process of a line of forks this is; one load. */
uint32_t v_process(void);
/*
 * poll.c: take up to n.  Completions that are there already are taken at once;
 * the poll that finds none makes progress, and each 16th poll does.
 */
uint32_t v_poll(struct host *h, struct v_cq *cq, struct cqe *out, uint32_t n);

/* counter.c: the queue pair ends, of which the counters keep what they have. */
void v_counters_leave(struct v_qp *q);

/* memory.c: this handle of a region goes, the region stays. */
void v_mr_drop(struct v_mr *m);

/* Did this process open it?  A forked child must not touch the arena. */
static inline bool v_is_ours(const struct v_context *c)
{
	return c->process == v_process();
}

#endif
