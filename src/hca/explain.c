/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "hca/hca.h"
#include "util/inaddr.h"

struct text {
	char *buf;
	size_t size, len;
};

static void put_text(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put_text(struct text *t, const char *fmt, ...)
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

	if (opcode == EXPLAIN_RECEIVE)
		return "RECEIVE";
	return opcode < sizeof(names) / sizeof(names[0]) && names[opcode]
		       ? names[opcode]
		       : "request";
}

static void put_key(struct text *t, const struct explain *x, const char *kind)
{
	put_text(t, "%s 0x%08x for [0x%" PRIx64 ", +%" PRIu64 " bytes): ", kind,
		 x->key, x->va, x->bytes);
	switch ((enum mr_verdict)x->verdict) {
	case MR_OK:
		put_text(t,
			 "the queue pair lacks %s; set it in qp_access_flags",
			 right_name(x->need));
		break;
	case MR_BAD_KEY:
		put_text(t, "no memory region or window has this key; check "
			    "whether it was deregistered or invalidated");
		break;
	case MR_BAD_PD:
		put_text(t, "the key belongs to another protection domain; "
			    "register the memory in that of the queue pair or "
			    "SRQ");
		break;
	case MR_NO_RIGHT:
		put_text(t,
			 "the memory region or window lacks %s; register or "
			 "bind it with this right",
			 right_name(x->need));
		break;
	case MR_BAD_QP:
		put_text(t, "the memory window is bound to another queue pair; "
			    "bind one to this queue pair");
		break;
	case MR_IS_BOUND:
	case MR_NO_BYTES:
	case MR_ZERO_BASED:
		break; /* only verdicts on a bind request, see ibt/local_wr.c */
	case MR_OUTSIDE:
		put_text(t,
			 "the range is outside the region [0x%" PRIx64
			 ", +%" PRIu64
			 " bytes); check the address and the length, or "
			 "register more memory",
			 x->region_va, x->region_bytes);
		break;
	}
}

static void put_address(struct text *t, const uint8_t ip[16])
{
	if (inaddr_is_v4(ip)) {
		put_text(t, "%u.%u.%u.%u", ip[12], ip[13], ip[14], ip[15]);
		return;
	}
	if (inaddr_is_lid(ip)) {
		put_text(t, "LID %u", inaddr_lid(ip));
		return;
	}
	for (int i = 0; i < 16; i += 2)
		put_text(t, "%s%x", i ? ":" : "", ip[i] << 8 | ip[i + 1]);
}

/* Puts the QPN of the peer; for iWARP, where that is not known, the peer's
 * address. */
static void put_peer(struct text *t, const struct explain *x)
{
	if (x->dest_qpn) {
		put_text(t, "the peer (QP 0x%06x)", x->dest_qpn);
		return;
	}
	put_text(t, "the peer at ");
	put_address(t, x->peer_ip);
}

/* Puts the QP and the request that the message is about. */
static void put_subject(struct text *t, const struct explain *x)
{
	put_text(t, "QP 0x%06x: ", x->qpn);
	switch (x->cause) {
	case EXPLAIN_LOCAL_KEY:
	case EXPLAIN_LOCAL_FAULT:
	case EXPLAIN_LOCAL_ROOM:
	case EXPLAIN_LOCAL_OP:
	case EXPLAIN_NAK_ACCESS:
	case EXPLAIN_NAK_INVALID:
	case EXPLAIN_NAK_OPERATION:
	case EXPLAIN_RETRY:
	case EXPLAIN_FELL_SILENT:
	case EXPLAIN_MTU:
	case EXPLAIN_PATIENCE:
	case EXPLAIN_PEER_CLOSED:
	case EXPLAIN_PEER_LEFT:
	case EXPLAIN_PEER_GONE:
	case EXPLAIN_DENIED:
	case EXPLAIN_RNR:
		put_text(t,
			 "%s wr_id 0x%" PRIx64 " failed: ", wr_name(x->opcode),
			 x->wr_id);
		break;
	case EXPLAIN_REMOTE_KEY:
	case EXPLAIN_REMOTE_FAULT:
	case EXPLAIN_REMOTE_INVALID:
	case EXPLAIN_INVALIDATE:
		put_text(t, "refused a request from ");
		put_peer(t, x);
		put_text(t, ": ");
		break;
	case EXPLAIN_STREAM_ENDED:
		if (x->opcode)
			put_text(t, "%s wr_id 0x%" PRIx64 " failed: ",
				 wr_name(x->opcode), x->wr_id);
		break;
	case EXPLAIN_NONE:
	case EXPLAIN_LOCAL_LENGTH:
	case EXPLAIN_MTU_MAYBE:
	case EXPLAIN_DROPPED:
	case EXPLAIN_CQ_OVERRUN:
	case EXPLAIN_MIGRATION:
	case EXPLAIN_STREAM_REFUSED:
		break;
	}
}

static void put_nak(struct text *t, const struct explain *x, const char *what)
{
	put_peer(t, x);
	put_text(t, " answered \"%s\"", what);
	if (x->key)
		put_text(t,
			 " to remote key 0x%08x, [0x%" PRIx64 ", +%" PRIu64
			 " bytes)",
			 x->key, x->va, x->bytes);
	put_text(t, "; look at the messages of the peer's program");
}

static const char *why_not_invalidated(uint32_t verdict)
{
	if (verdict == MR_NO_RIGHT)
		return "the key is not that of a memory window of type 2";
	if (verdict == MR_BAD_PD)
		return "the window belongs to another protection domain";
	if (verdict == MR_BAD_QP)
		return "the window is bound to another queue pair";
	return "no memory window is bound with this key";
}

static void put_mtu(struct text *t, const struct explain *x)
{
	bool is_read = x->opcode == HCA_WR_RDMA_READ;

	put_text(t, "packets with %u bytes of data %s ", x->long_bytes,
		 is_read ? "from" : "to");
	put_address(t, x->peer_ip);
	if (inaddr_is_lid(x->peer_ip)) {
		put_text(t,
			 " (QP 0x%06x) %s (%u tries), but smaller packets do; "
			 "the MTU of a link on the path may be smaller than "
			 "the path MTU of this QP: use a smaller one (perftest "
			 "-m 1024)",
			 x->dest_qpn,
			 is_read ? "do not arrive" : "get no answer", x->tries);
		return;
	}
	put_text(
		t,
		" (QP 0x%06x) %s (%u tries), but smaller packets do; the MTU of "
		"the path or of the peer's interface may be smaller than that of "
		"this interface: make them equal (ip link set DEV mtu N), or use "
		"a smaller path MTU (perftest -m 1024)",
		x->dest_qpn, is_read ? "do not arrive" : "get no answer",
		x->tries);
}

static void put_migration(struct text *t, const struct explain *x)
{
	put_peer(t, x);
	put_text(t, " asks for a path migration to a path that is not the "
		    "alternate path of this QP, so the QP stays on its path "
		    "(IBV_EVENT_PATH_MIG_ERR); give the QPs at both ends "
		    "alternate paths (alt_ah_attr, alt_port_num, "
		    "alt_pkey_index) between the same two ports");
}

/* Puts the reason, if this process has found it, or if the peer has named it in
 * a Terminate of iWARP. */
static void put_local_reason(struct text *t, const struct explain *x)
{
	switch (x->cause) {
	case EXPLAIN_LOCAL_KEY:
		put_key(t, x, "local key");
		break;
	case EXPLAIN_REMOTE_KEY:
		put_key(t, x, "remote key");
		break;
	case EXPLAIN_LOCAL_FAULT:
	case EXPLAIN_REMOTE_FAULT:
		put_text(t,
			 "registered memory at 0x%" PRIx64
			 " is no longer mapped, or is read-only; free or "
			 "protect memory only after ibv_dereg_mr",
			 x->va);
		break;
	case EXPLAIN_LOCAL_LENGTH:
		put_text(t,
			 "a message of at least %" PRIu64
			 " bytes does not fit the receive buffers (%" PRIu64
			 " bytes) of wr_id 0x%" PRIx64
			 "; post larger receive buffers, or send less",
			 x->bytes, x->region_bytes, x->wr_id);
		break;
	case EXPLAIN_LOCAL_ROOM:
		put_text(t,
			 "it needs at least %" PRIu64
			 " bytes, but its SGEs have %" PRIu64
			 " bytes in all; give it SGEs of the whole length",
			 x->bytes, x->region_bytes);
		break;
	case EXPLAIN_LOCAL_OP:
		put_text(t, "%s", x->detail ? x->detail : "not allowed here");
		break;
	case EXPLAIN_REMOTE_INVALID:
		put_text(t, "%s", x->detail ? x->detail : "invalid");
		break;
	case EXPLAIN_INVALIDATE:
		put_text(t, "SEND with invalidate of key 0x%08x: %s; %s",
			 x->key, why_not_invalidated(x->verdict),
			 x->detail ? x->detail
				   : "the request is not answered (IBTA "
				     "9.9.6.3)");
		break;
	case EXPLAIN_DROPPED:
		put_text(t,
			 "dropped a message from QP 0x%06x, which UC and UD do "
			 "not send again: %s",
			 x->dest_qpn, x->detail);
		break;
	case EXPLAIN_STREAM_REFUSED:
		put_text(t, "ended the iWARP connection because of %s",
			 x->detail ? x->detail : "an error");
		break;
	case EXPLAIN_STREAM_ENDED:
		put_text(t, "the peer ended the iWARP connection because of %s",
			 x->detail ? x->detail
				   : "an error that RFC 5040 does not define");
		break;
	case EXPLAIN_CQ_OVERRUN:
		put_text(t, "the QP's completion queue is full; poll the queue "
			    "more often or create a larger one");
		break;
	case EXPLAIN_MIGRATION:
		put_migration(t, x);
		break;
	case EXPLAIN_NONE:
	case EXPLAIN_NAK_ACCESS:
	case EXPLAIN_NAK_INVALID:
	case EXPLAIN_NAK_OPERATION:
	case EXPLAIN_RETRY:
	case EXPLAIN_FELL_SILENT:
	case EXPLAIN_MTU:
	case EXPLAIN_MTU_MAYBE:
	case EXPLAIN_PATIENCE:
	case EXPLAIN_PEER_CLOSED:
	case EXPLAIN_PEER_LEFT:
	case EXPLAIN_PEER_GONE:
	case EXPLAIN_DENIED:
	case EXPLAIN_RNR:
		break;
	}
}

static void put_retry_by_lid(struct text *t, const struct explain *x)
{
	uint32_t lid = inaddr_lid(x->peer_ip);

	put_text(
		t,
		"no answer from the peer (QP 0x%06x) after %u tries; check that "
		"its QP is in RTR, and that the switches have a path to its "
		"LID %u: ibtracert %u %u",
		x->dest_qpn, x->tries, lid, inaddr_lid(x->self_ip), lid);
}

static void put_retry(struct text *t, const struct explain *x)
{
	if (inaddr_is_lid(x->peer_ip)) {
		put_retry_by_lid(t, x);
		return;
	}
	put_text(
		t,
		"no answer from the peer (QP 0x%06x) after %u tries; check that "
		"its QP is in RTR, that its address is right, and that no "
		"firewall drops UDP port 4791",
		x->dest_qpn, x->tries);
	if (x->long_bytes)
		put_text(t,
			 ", and that the path and the peer's interface carry "
			 "packets with %u bytes of data",
			 x->long_bytes);
}

static void put_fell_silent(struct text *t, const struct explain *x)
{
	put_text(t,
		 "no answer from the peer (QP 0x%06x) after %u tries, although "
		 "the peer has answered or sent requests before; check whether "
		 "its program has ended or failed",
		 x->dest_qpn, x->tries);
}

static void put_patience(struct text *t, const struct explain *x)
{
	put_text(
		t,
		"the process of the peer (QP 0x%06x) is alive and has been "
		"silent for %u s (the limit is ADVERB_PATIENCE); check whether "
		"it is stopped",
		x->dest_qpn, x->seconds);
}

static void put_denied(struct text *t, const struct explain *x)
{
	put_text(
		t,
		"the kernel no longer permits access to the memory of the "
		"peer's process (QP 0x%06x), which has changed its user or its "
		"prctl(PR_SET_DUMPABLE); set ADVERB_DIRECT=0 to use packets",
		x->dest_qpn);
}

/* Puts the reason, if it is a NAK. */
static void put_nak_reason(struct text *t, const struct explain *x)
{
	if (x->cause == EXPLAIN_NAK_ACCESS)
		put_nak(t, x, "remote access error");
	else if (x->cause == EXPLAIN_NAK_INVALID)
		put_nak(t, x, "invalid request");
	else if (x->cause == EXPLAIN_NAK_OPERATION)
		put_nak(t, x, "remote operational error");
}

/* Puts the reason, if the peer has ended, does not answer or has had no receive
 * posted (RNR), or if the kernel no longer permits access to the peer's
 * memory. */
static void put_silence_reason(struct text *t, const struct explain *x)
{
	switch (x->cause) {
	case EXPLAIN_RETRY:
		put_retry(t, x);
		break;
	case EXPLAIN_FELL_SILENT:
		put_fell_silent(t, x);
		break;
	case EXPLAIN_MTU:
	case EXPLAIN_MTU_MAYBE:
		put_mtu(t, x);
		break;
	case EXPLAIN_PATIENCE:
		put_patience(t, x);
		break;
	case EXPLAIN_PEER_CLOSED:
		put_text(t,
			 "the peer's QP 0x%06x does not answer, because the "
			 "QP was destroyed or is in state ERR; look at the "
			 "messages of the peer's program",
			 x->dest_qpn);
		break;
	case EXPLAIN_PEER_LEFT:
		put_peer(t, x);
		put_text(t, " has disconnected, and does not answer any more; "
			    "connect a new queue pair to send more");
		break;
	case EXPLAIN_PEER_GONE:
		put_text(t,
			 "the process of the peer (QP 0x%06x) has ended; "
			 "start it again, and connect a new queue pair",
			 x->dest_qpn);
		break;
	case EXPLAIN_DENIED:
		put_denied(t, x);
		break;
	case EXPLAIN_RNR:
		put_text(
			t,
			"the peer (QP 0x%06x) had no receive posted at %u "
			"tries; let it post receives earlier, or set rnr_retry "
			"to 7",
			x->dest_qpn, x->tries);
		break;
	case EXPLAIN_NONE:
	case EXPLAIN_LOCAL_KEY:
	case EXPLAIN_LOCAL_FAULT:
	case EXPLAIN_LOCAL_LENGTH:
	case EXPLAIN_LOCAL_ROOM:
	case EXPLAIN_LOCAL_OP:
	case EXPLAIN_REMOTE_KEY:
	case EXPLAIN_REMOTE_FAULT:
	case EXPLAIN_REMOTE_INVALID:
	case EXPLAIN_INVALIDATE:
	case EXPLAIN_DROPPED:
	case EXPLAIN_CQ_OVERRUN:
	case EXPLAIN_MIGRATION:
	case EXPLAIN_STREAM_REFUSED:
	case EXPLAIN_STREAM_ENDED:
	case EXPLAIN_NAK_ACCESS:
	case EXPLAIN_NAK_INVALID:
	case EXPLAIN_NAK_OPERATION:
		break;
	}
}

size_t explain_text(const struct explain *x, char *buf, size_t size)
{
	struct text t = {buf, size, 0};

	buf[0] = 0;
	if (x->cause == EXPLAIN_NONE)
		return 0;
	put_subject(&t, x);
	put_local_reason(&t, x);
	put_nak_reason(&t, x);
	put_silence_reason(&t, x);
	return t.len;
}
