/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs (IBTA Vol 1, 10.3 and 11.2.5): their rings and attributes.  The
 * state of the protocol is in struct ibt_qp.  A QP lies in the owner's part of
 * the arena; the words that peers of this host write lie in struct qp_target
 * (peer_area.h).
 *
 * Owner: the adapter.  Locks: the progress lock; the responder lock for what
 * peers read (peer_area.h); for the rings also the post lock and a lock of the
 * front end (wq.h).
 */
#ifndef HCA_QP_H
#define HCA_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/adapter.h"
#include "hca/cq.h"
#include "hca/peer_area.h"
#include "hca/srq.h"
#include "hca/wq.h"

/* An address handle's attributes (IBTA 11.2.2.1).  The members up to port_num
 * are those of struct ibv_ah_attr, in host byte order. */
struct hca_ah {
	uint8_t dgid[16];
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t is_global;
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t port_num;
	/* The host fills in the members from here on. */
	uint8_t bursts; /* the kernel may segment frames on this path */
	uint8_t local;	/* dgid is an address of this network namespace */
	uint16_t port;	/* the UDP port to send from; 0: 4791 */
	uint32_t link;	/* index of the source GID's interface; 0: any */
	/* By LID, if is_global: the GID at sgid_index of the path's port. */
	uint8_t sgid[16];
};

/* The attributes of a QP, in host byte order.  IBTA 11.2.5.2 explains them. */
struct hca_qp_attr {
	uint32_t qp_state, cur_qp_state;
	uint32_t path_mtu;	 /* IBV_MTU_*: 1..5 */
	uint32_t path_mig_state; /* enum hca_mig */
	uint32_t qkey;
	uint32_t rq_psn, sq_psn;
	uint32_t dest_qpn;
	uint32_t access_flags;
	struct hca_ah ah, alt_ah;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry;
	uint8_t alt_port_num, alt_timeout;
	uint32_t rate_limit;
};

/* Why a QP does not send. */
enum qp_wait {
	QP_WAIT_NONE,	 /* nothing is posted, or no reason below is true */
	QP_WAIT_ANSWER,	 /* all is sent, and the peer has not answered yet */
	QP_WAIT_WINDOW,	 /* the window of unacknowledged packets is full */
	QP_WAIT_READS,	 /* earlier READs or atomics must end first */
	QP_WAIT_RECEIVE, /* the peer has no receive posted: RNR */
	QP_WAIT_SILENT,	 /* the peer does not answer; packets are sent again */
	/* iWARP: the socket of the connection has no room. */
	QP_WAIT_SOCKET,
	/* The socket of the peer's process, on this host, has no room, or the
	 * page of that process is not known yet (engine/credit.h). */
	QP_WAIT_CREDIT,
	QP_WAITS
};

/*
 * Counts of a QP's work, which `adverb top` reads at any time.  The QP's
 * process writes them with plain stores, under the progress lock or, in
 * initiator_apart_post and initiator_apart_resume, under the QP's post lock
 * alone.
 */
struct qp_stats {
	/* The _packets members count packets, pieces of direct requests, or
	 * FPDUs of iWARP.  The _bytes members count, for a packet, the bytes
	 * from the BTH to the pad; for a piece, its payload; for an FPDU, its
	 * ULPDU. */
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
	/* retransmits: packets that were sent again; timeouts: ACK timers that
	 * have expired; rnr_waits: how often the QP has got an RNR NAK, or has
	 * found no receive for a direct request; out_of_order: packets that
	 * came after a gap. */
	uint64_t retransmits, timeouts, rnr_waits, out_of_order;
	uint32_t wait; /* enum qp_wait: why the QP did not send more */
	uint32_t row;  /* the QP's row in the table of QPs */
};

struct qp {
	aoff self; /* where this QP lies in the arena; 0 once it is freed */
	uint32_t qpn;
	uint32_t serial;  /* no other QP of this adapter ever has this number */
	uint32_t type;	  /* HCA_QPT_* */
	uint32_t state;	  /* enum hca_qp_state; only ibt_qp_enter changes it */
	uint32_t pd;	  /* the number of its PD */
	uint32_t recv_pd; /* the PD of the memory of its receives */
	uint16_t sq_sig_all; /* each request is signaled */
	uint8_t is_iwarp;    /* its requests go by a stream, not by packets */
	uint8_t is_by_lid;   /* its packets are those of an InfiniBand link */
	uint32_t device;     /* the index of the device that it belongs to */
	uint32_t connection; /* how often the QP has entered RTR */
	/* How often qp_modify_store was called.  Peers copy attr again only
	 * when this number has changed. */
	uint32_t attr_serial;
	aoff send_cq, recv_cq; /* struct cq */
	aoff srq;      /* struct srq that receives are taken from, or 0 */
	uint64_t user; /* the front end's cookie, which events carry */
	/* Where qp_target is, in bytes from the start of this struct. */
	uint64_t peer_at;
	/* The owner writes sq and stats with each request.  Peers read, with
	 * each request, members before sq and from attr on, which lie in other
	 * cache lines. */
	struct wq sq; /* the send queue */
	struct qp_stats stats;
	/* The attributes that ibv_modify_qp has set. */
	_Alignas(HCA_APART) struct hca_qp_attr attr;
	/* The receives, or copies of those that were taken from the SRQ. */
	struct wq rq;
	/* An eager message that could not be copied.  rq_lost: the address to
	 * which the message should have been copied, or 0; rq_lost_id: the
	 * wr_id of its receive.  While rq_lost is 0, rq_collect may store the
	 * three members, rq_lost last, under recv_cq's lock, and then sets
	 * QP_NOTIFY_LOST.  While rq_lost is not 0, the handler of that bit may
	 * read the other two and then clears rq_lost, under the progress lock.
	 */
	uint64_t rq_lost, rq_lost_id;
	uint32_t rq_lost_key; /* the lkey of its receive */
};

/* Returns the part of qp that peers write.  qp may be a checked copy whose
 * peer_at was adapted (direct/target.c). */
static inline struct qp_target *qp_target(const struct qp *qp)
{
	return (struct qp_target *)((uintptr_t)qp + qp->peer_at);
}

/* The capacities that ibv_create_qp asks for, in requests (_wr), SGEs of a
 * request (_sge) and bytes of a request (inline_bytes). */
struct hca_qp_cap {
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_bytes;
	struct srq *srq; /* has the receives; NULL: the QP has its own queue */
};

/* Creates a QP in RESET.  The caller then sets device, user, is_iwarp and
 * is_by_lid.  @type: HCA_QPT_*; @pd: the number of its protection domain;
 * @sq_sig_all: each request is signaled.  Under the progress lock.  NULL: there
 * is no memory, or there are HCA_MAX_QP already. */
struct qp *qp_new(struct hca *h, uint32_t qpn, uint32_t type, uint32_t pd,
		  struct cq *send_cq, struct cq *recv_cq,
		  const struct hca_qp_cap *cap, bool sq_sig_all);
/* Removes the QP from the table of QPs, so that no peer finds it any more.
 * Peers that have found the QP before may still execute requests there.  Under
 * the progress lock. */
void qp_withdraw(struct hca *h, struct qp *qp);
/* Frees a QP that is withdrawn, after access_wait: no peer executes a request
 * there any more.  Under the progress lock. */
void qp_free(struct hca *h, struct qp *qp);

/*
 * Checks a modify call against the table of IBTA 11.2.5.2: transitions,
 * required and optional attributes, ranges.  Returns 0, or -EINVAL with *why, a
 * static text that names the failed check.
 */
int qp_modify_check(const struct hca *h, const struct qp *qp,
		    const struct hca_qp_attr *attr, uint32_t mask,
		    const char **why);
/* Stores those attributes that @mask names, after qp_modify_check has accepted
 * them, except for the state, which ibt_qp_enter sets.  Under the responder
 * lock, except for a transition to ERR. */
void qp_modify_store(struct qp *qp, const struct hca_qp_attr *attr,
		     uint32_t mask);
/* Returns the name of a state ("RTS"), for messages to the user; "?" for any
 * other number. */
const char *qp_state_name(uint32_t state);

#endif
