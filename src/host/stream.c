/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives connections (of TCP, or of SCTP) to queue pairs of iWARP devices, and
 * ends the connections: the functions host_stream_* of host.h, and
 * stream_modify of host/inside.h. */
#include <errno.h>

#include "host/inside.h"
#include "host/progress_thread.h"

/* open_stream gives these rights to the peer.  The rights of each memory region
 * restrict the peer further. */
#define PEER_ACCESS (HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC)

static const uint8_t nowhere[16]; /* an iWARP QP has no source GID */

/* Modifies q, but does not move q from RESET, INIT or RTR to RTS, because q
 * cannot send without a connection: host_stream_open does that.  A change to
 * RESET ends the connection at once. */
static int modify_locked(struct progress *p, struct ibt_qp *q,
			 const struct hca_qp_attr *attr, uint32_t mask,
			 const char **why) REQUIRES(&p->lock)
{
	bool has_state = mask & HCA_QP_STATE;
	struct hca_qp_attr now;
	int err;

	engine_qp_query(p->engine, q, &now);
	if (has_state && attr->qp_state == HCA_QP_RTS &&
	    now.qp_state < HCA_QP_RTS) {
		*why = "ibv_modify_qp cannot move a queue pair of an iWARP "
		       "device to RTS; use rdma_connect or rdma_accept, which "
		       "do this when they connect the queue pair";
		return -EINVAL;
	}
	if (has_state && attr->qp_state == HCA_QP_RESET) {
		/* A call that engine_qp_check refuses does not end the
		 * connection.  A call that returns -EBUSY below has ended the
		 * connection: the QP is in ERR, and the caller calls again. */
		err = engine_qp_check(p->engine, q, attr, mask, p->now_ns, why);
		if (err)
			return err;
		stream_set_drop(&p->streams, p->engine, engine_qp_qpn(q),
				p->now_ns);
		/* engine_qp_check compared the state, which may be ERR now */
		mask &= ~(uint32_t)HCA_QP_CUR_STATE;
	}
	return engine_qp_modify(p->engine, q, attr, mask, nowhere, p->now_ns,
				why);
}

int stream_modify(struct progress *p, struct ibt_qp *q,
		  const struct hca_qp_attr *attr, uint32_t mask,
		  const char **why) NO_LOCK_ANALYSIS
{
	int err;

	progress_take(p);
	progress_flush(p);
	err = modify_locked(p, q, attr, mask, why);
	progress_give(p);
	return err;
}

/* Returns why stream_set_open has failed. */
static const char *why_not_open(int err)
{
	if (err == -EINVAL)
		return "this adapter does not support the segment size, or the "
		       "number of RDMA Reads at a time, on which the peers have "
		       "agreed; give rdma_connect or rdma_accept smaller "
		       "responder_resources and initiator_depth";
	if (err == -EBADF)
		return "the program has closed a descriptor of this adapter, "
		       "with which the adapter waits for connections; close no "
		       "descriptors that the program did not open";
	if (err == -ENOSPC)
		return "this user has too many descriptors in epoll sets; "
		       "raise the limit fs.epoll.max_user_watches";
	return "the process has too little memory or too few file descriptors "
	       "for the queue pair's connection; raise ulimit -v and -n";
}

/* Gives the connection to q and moves q to RTS. */
static int open_stream(struct progress *p, struct ibt_qp *q,
		       const struct host_stream *s, const char **why)
	REQUIRES(&p->lock)
{
	struct hca_qp_attr attr;
	uint32_t mask = HCA_QP_STATE | HCA_QP_ACCESS_FLAGS;
	int err;

	engine_qp_query(p->engine, q, &attr);
	if (!engine_qp_is_iwarp(q)) {
		*why = "the queue pair does not belong to an iWARP device";
		return -EINVAL;
	}
	if (attr.qp_state != HCA_QP_INIT && attr.qp_state != HCA_QP_RTR) {
		*why = "the queue pair is not in INIT or RTR: it already had a "
		       "connection, or was not moved to INIT";
		return -EISCONN;
	}
	err = stream_set_open(&p->streams, p->engine, q, s, p->now_ns);
	if (err) {
		*why = why_not_open(err);
		return err;
	}
	attr.qp_state = HCA_QP_RTS;
	attr.access_flags |= PEER_ACCESS;
	err = engine_qp_modify(p->engine, q, &attr, mask, nowhere, p->now_ns,
			       why);
	if (err)
		stream_set_cancel(&p->streams, engine_qp_qpn(q));
	else
		stream_set_begin(&p->streams, p->engine, q, s, p->now_ns);
	return err;
}

int host_stream_open(struct host *h, uint32_t qpn, const struct host_stream *s,
		     const char **why) NO_LOCK_ANALYSIS
{
	struct progress *p = host_progress(h);
	struct ibt_qp *q;
	int err;

	host_lock(h);
	err = progress_thread_start(p);
	host_unlock(h);
	if (err) {
		*why = "the progress thread cannot be started; raise the "
		       "limits on processes and open files (ulimit -u, -n)";
		return err;
	}
	progress_take(p);
	q = engine_qp_find(p->engine, qpn);
	*why = "the queue pair was destroyed before its connection came; keep "
	       "it until the connection has ended";
	err = q ? open_stream(p, q, s, why) : -ENOENT;
	progress_give(p);
	return err;
}

void host_stream_close(struct host *h, uint32_t qpn,
		       const void *arg) NO_LOCK_ANALYSIS
{
	struct progress *p = host_progress(h);

	progress_take(p);
	stream_set_close(&p->streams, p->engine, qpn, arg, p->now_ns);
	progress_give(p);
}

void host_stream_abort(struct host *h, uint32_t qpn,
		       const void *arg) NO_LOCK_ANALYSIS
{
	struct progress *p = host_progress(h);
	struct ibt_qp *q;

	progress_take(p);
	q = engine_qp_find(p->engine, qpn);
	if (stream_set_abort(&p->streams, qpn, arg, p->now_ns) && q)
		engine_stream_end(p->engine, q, p->now_ns);
	progress_give(p);
}
