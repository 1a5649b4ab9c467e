/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "hca/hca.h"

struct text {
	char *buf;
	size_t size, len;
};

static void put(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, t->size - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n;
	if (t->len >= t->size)
		t->len = t->size - 1;
}

static const char *right_name(uint32_t need)
{
	switch (need) {
	case HCA_LOCAL_WRITE:
		return "IBV_ACCESS_LOCAL_WRITE";
	case HCA_REMOTE_WRITE:
		return "IBV_ACCESS_REMOTE_WRITE";
	case HCA_REMOTE_READ:
		return "IBV_ACCESS_REMOTE_READ";
	case HCA_REMOTE_ATOMIC:
		return "IBV_ACCESS_REMOTE_ATOMIC";
	}
	return "a right";
}

static const char *wr_name(uint32_t opcode)
{
	static const char *const names[] = {"RDMA WRITE",
					    "RDMA WRITE with immediate",
					    "SEND",
					    "SEND with immediate",
					    "RDMA READ",
					    "COMPARE AND SWAP",
					    "FETCH AND ADD",
					    "LOCAL INVALIDATE",
					    "BIND MW",
					    "SEND with invalidate",
					    [HCA_WR_ATOMIC_WRITE] =
						    "ATOMIC WRITE"};

	return opcode < sizeof names / sizeof names[0] && names[opcode]
		       ? names[opcode]
		       : "request";
}

static void put_key(struct text *t, const struct explain *x, const char *kind)
{
	put(t, "%s 0x%08x for [0x%" PRIx64 ", +%" PRIu64 " bytes): ", kind,
	    x->key, x->va, x->bytes);
	switch ((enum mr_verdict)x->verdict) {
	case MR_OK:
		put(t, "the queue pair lacks %s", right_name(x->need));
		break;
	case MR_BAD_KEY:
		put(t, "no memory region or window has this key");
		break;
	case MR_BAD_PD:
		put(t, "the key belongs to another protection domain");
		break;
	case MR_NO_RIGHT:
		put(t, "the region lacks %s", right_name(x->need));
		break;
	case MR_BAD_QP:
		put(t, "the memory window is bound to another queue pair");
		break;
	case MR_IS_BOUND:
		put(t, "the memory window is bound");
		break;
	case MR_OUTSIDE:
		put(t,
		    "the range is outside the region [0x%" PRIx64 ", +%" PRIu64
		    " bytes)",
		    x->region_va, x->region_bytes);
		break;
	}
}

static void put_local(struct text *t, const struct explain *x)
{
	put(t, "QP 0x%06x: %s wr_id 0x%" PRIx64 " failed: ", x->qpn,
	    wr_name(x->opcode), x->wr_id);
}

size_t explain_text(const struct explain *x, char *buf, size_t size)
{
	struct text t = {buf, size, 0};

	buf[0] = 0;
	switch (x->cause) {
	case EXPLAIN_NONE:
		break;
	case EXPLAIN_LOCAL_KEY:
		put_local(&t, x);
		put_key(&t, x, "local key");
		break;
	case EXPLAIN_LOCAL_FAULT:
		put_local(&t, x);
		put(&t,
		    "registered memory at 0x%" PRIx64
		    " is no longer mapped (freed before ibv_dereg_mr?)",
		    x->va);
		break;
	case EXPLAIN_LOCAL_LENGTH:
		put(&t,
		    "QP 0x%06x: a message of at least %" PRIu64
		    " bytes does not fit the receive buffers (%" PRIu64
		    " bytes) of wr_id 0x%" PRIx64,
		    x->qpn, x->bytes, x->region_bytes, x->wr_id);
		break;
	case EXPLAIN_LOCAL_OP:
		put_local(&t, x);
		put(&t, "%s", x->detail ? x->detail : "not allowed here");
		break;
	case EXPLAIN_REMOTE_KEY:
		put(&t, "QP 0x%06x: refused a request of QP 0x%06x: ", x->qpn,
		    x->dest_qpn);
		put_key(&t, x, "remote key");
		break;
	case EXPLAIN_REMOTE_FAULT:
		put(&t,
		    "QP 0x%06x: refused a request of QP 0x%06x: registered "
		    "memory at 0x%" PRIx64 " is no longer mapped",
		    x->qpn, x->dest_qpn, x->va);
		break;
	case EXPLAIN_REMOTE_INVALID:
		put(&t, "QP 0x%06x: refused a request of QP 0x%06x: %s", x->qpn,
		    x->dest_qpn, x->detail ? x->detail : "invalid");
		break;
	case EXPLAIN_NAK_ACCESS:
	case EXPLAIN_NAK_INVALID:
	case EXPLAIN_NAK_OPERATION:
		put_local(&t, x);
		put(&t, "the peer (QP 0x%06x) answered \"%s\"", x->dest_qpn,
		    x->cause == EXPLAIN_NAK_ACCESS ? "remote access error"
		    : x->cause == EXPLAIN_NAK_INVALID
			    ? "invalid request"
			    : "remote operational error");
		if (x->key)
			put(&t,
			    " to remote key 0x%08x, [0x%" PRIx64 ", +%" PRIu64
			    " bytes)",
			    x->key, x->va, x->bytes);
		break;
	case EXPLAIN_RETRY:
		put_local(&t, x);
		put(&t,
		    "no answer from the peer (QP 0x%06x) after %u tries; is "
		    "its QP in RTR, its address right, UDP 4791 open?",
		    x->dest_qpn, x->tries);
		break;
	case EXPLAIN_PEER_GONE:
		put_local(&t, x);
		put(&t, "the process of the peer (QP 0x%06x) has ended",
		    x->dest_qpn);
		break;
	case EXPLAIN_RNR:
		put_local(&t, x);
		put(&t, "the peer (QP 0x%06x) had no receive posted, %u times",
		    x->dest_qpn, x->tries);
		break;
	case EXPLAIN_DROPPED:
		put(&t,
		    "QP 0x%06x: dropped a message of QP 0x%06x, as UC and UD "
		    "do: %s",
		    x->qpn, x->dest_qpn, x->detail);
		break;
	case EXPLAIN_CQ_OVERRUN:
		put(&t,
		    "QP 0x%06x: its completion queue is full; poll faster or "
		    "create it larger",
		    x->qpn);
		break;
	}
	return t.len;
}
