/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services of the InfiniBand transport (IBTA Vol 1, 9.7 and 9.8): packets
 * in, packets out, no I/O.  struct ibt is what the QPs of one lane share,
 *struct ibt_qp one QP's protocol state.  Owner: the engine.  Lock: the lane's.
 *
 *	rc_req	 work requests -> request packets
 *	rc_comp	 ACKs, NAKs, responses -> completions
 *	rc_resp	 request packets -> memory, receive completions, replies owed
 *	rc_reply replies owed -> response packets
 *	early	 packets that came before their turn
 *	once	 requests of UC and UD, which are sent once
 *	uc_req, uc_resp, ud_req, ud_resp  their packets
 *	shelf	 their messages that wait for a receive
 *	mcast	 multicast groups
 *	ibt	 completions and events of all QPs of the lane
 *	ibt_qp	 life of a QP: states, flushing, timers
 */
#ifndef IBT_IBT_H
#define IBT_IBT_H

#include "hca/access.h"
#include "hca/event.h"
#include "hca/hca.h"
#include "hdr/pkt.h"
#include "ibt/cq_moderation.h"
#include "ibt/direct_state.h"
#include "ibt/reorder.h"
#include "util/inaddr.h"
#include "util/list.h"
#include "util/mpsc.h"
#include "util/serial24.h"
#include "util/shared.h"
#include "util/wheel.h"

#define IBT_MAX_MTU	  4096
#define IBT_PACKET_BYTES  (PKT_MAX_HEADER_BYTES + IBT_MAX_MTU + 4)
#define IBT_EVENTS	  256 /* at first, and the most with sentences */
#define IBT_EVENTS_MAX	  65536
#define IBT_POOL	  256 /* packets held for reordering, all QPs */
#define IBT_HELD_PER_QP	  48
#define IBT_HELD_AHEAD	  512	   /* PSNs, a window: what may be held */
#define IBT_HELD_NS	  10000000 /* and no longer than that */
#define IBT_BEHIND	  65536	   /* PSNs: so far back a peer repeats itself */
#define IBT_NAK_HEARD_NS  100000000 /* who was asked to go back does by then */
#define IBT_SPARE_REPLIES 12	    /* beside max_dest_rd_atomic */
#define IBT_READ_PACKETS  16	/* that one READ request asks for at least, */
#define IBT_READ_BYTES	  65536 /* and at most, where the window is wide */
#define IBT_WINDOW_START  16
#define IBT_RETRY_FOREVER 7	 /* rnr_retry only */
#define IBT_LOOK_NS	  20000	 /* between looks at a peer, at first */
#define IBT_OWE_NS	  500000 /* an ACK does not wait longer for a request */
#define IBT_SUM_BYTES	  512	 /* payloads so long get sum_crc */

/* A packet that came before its turn. */
struct ibt_held {
	struct list node;
	struct serial24 psn;
	uint32_t len;
	uint8_t bytes[IBT_PACKET_BYTES];
};

struct rx_pending;
struct mcast;

/* Packets of UC and UD that wait for a receive (rx_pending.h), of all QPs. */
struct rx_pending_pool {
	struct rx_pending
		*packets; /* owned; NULL before the first UC or UD QP */
	struct list free; /* those of `packets` that are free */
	uint32_t count;	  /* packets that wait */
	uint32_t qps;	  /* QPs for which packets wait */
};

/* In each struct ibt_qp of UC and UD. */
struct rx_pending_state {
	struct list packets; /* struct rx_pending, in the order of arrival */
	uint32_t count;
	uint64_t until_ns; /* when the first of them is dropped */
	/* The QP let the time pass and has posted no receive since. */
	bool is_late;
	bool is_shut; /* a peer stays in the responder's lock */
};

/* Attachments of QPs to multicast groups (mcast.h). */
struct mcast_groups {
	struct mcast *rows; /* owned */
	uint32_t count;
};

/*
 * Events that the engine's caller has yet to take, by free-running indices.
 * The ring grows, as one call may complete work of each QP, and a program that
 * sleeps for an event must miss none.
 */
struct ibt_events {
	uint32_t head, tail, size; /* size: a power of two */
	struct engine_event *ring;
};

/* What the QPs of one progress lock share. */
struct ibt {
	struct hca *hca;
	struct wheel wheel;
	struct cq_moderation cq_moderation[IBT_CQ_MODERATION];
	uint64_t now_ns;       /* the time of the engine's present call */
	enum engine_sign sign; /* what was wrong with the present packet */
	struct list active;    /* struct ibt_qp with something to send */
	/* struct ibt_qp whose ACK may wait for a request, and since when the
	 * first of them waits. */
	struct list owing;
	uint64_t owing_ns;
	bool holds_acks;    /* engine_hold_acks */
	struct list handed; /* struct ibt_qp with requests to complete,
			     * unreliable_tx.h */
	struct direct_queues direct;
	struct ibt_held *held; /* packets held for reordering, owned */
	struct list pool;      /* those of `held` that are free */
	struct rx_pending_pool rx_pending;
	uint32_t qps; /* how many QPs there are */
	struct mcast_groups mcast;
	uint32_t window_max;
	bool strict;
	uint64_t patience_ns;
	uint64_t polled_ns; /* when engine_polled was called last */
	struct ibt_events events;
	struct engine_counters *counters; /* in the arena, one a device */
	uint8_t scratch[IBT_MAX_MTU];
	/* The packet that was just made: the length of its payload, which
	 * stands before at most 3 bytes of pad, and the payload's CRC from
	 * state 0; 0 bytes if the CRC is not known. */
	uint32_t sum_bytes, sum_crc;
};

/* The requester's notes on one work request, beside its slot. */
struct req_note {
	struct serial24 first; /* PSN, valid once started */
	uint32_t packets;      /* PSNs it takes */
	uint32_t answered;     /* READ, atomic: responses placed */
	uint32_t chunk;	       /* READ: packets that one request asks for */
	bool started;
	uint8_t status; /* enum hca_status of a local error */
};

struct rc_req {
	uint32_t wqe;	     /* next to send: index into the SQ ... */
	uint32_t packet;     /* ... and packet of it */
	struct serial24 una; /* oldest unacknowledged PSN */
	struct serial24 max; /* one past the newest ever sent */
	uint32_t reads_out;  /* READ and atomic packets unanswered */
	uint32_t rd_wqes;    /* READ and atomic requests not completed */
	uint32_t window, window_credit;
	uint32_t retries, rnr_retries; /* since the last progress */
	uint64_t silent_since_ns;
	bool is_granted; /* the timer has been, anew, as we slept */
	bool rnr_waiting, asking, draining;
	bool was_alive;	  /* as we have heard since silent_since_ns */
	bool is_answered; /* a packet of the peer has come, whatever it was */
	/* the longest payload that has been acknowledged, and that has come */
	uint32_t longest_sent, longest_got;
	bool is_closed;		/* the peer's QP, as seen without packets; */
	bool is_gone;		/* or its process */
	struct reorder reorder; /* answers that came before their turn */
	struct serial24 gap;	/* response already asked for again */
	bool gap_valid;
	bool nak_pending; /* a fatal NAK waits for its request's turn */
	struct serial24 nak_psn;
	uint8_t nak_status;
};

/* wheel_timer.kind */
enum {
	IBT_TIMER_ACK,
	IBT_TIMER_RNR,
	IBT_TIMER_CQ_MODERATION,
	IBT_TIMER_REORDER
};

enum reply_kind { REPLY_ACK, REPLY_READ, REPLY_ATOMIC };

/* One answer owed, sent in order. */
struct reply {
	uint8_t kind, syndrome;
	bool fresh; /* counts against max_dest_rd_atomic */
	struct serial24 psn;
	uint32_t msn;
	uint32_t rkey, bytes;
	uint32_t packets, sent;
	uint64_t va;
	uint64_t orig;
};

/* What a duplicate request can be answered from (IBTA 9.7.5.1.1). */
struct resource {
	bool valid;
	uint8_t kind; /* enum opcode_kind of the request */
	struct serial24 psn;
	uint32_t packets, rkey;
	uint64_t orig;
};

struct rc_resp {
	struct serial24 epsn;
	uint32_t msn;  /* 24 bits */
	bool nak_sent; /* for the present epsn */
	bool ack_owed;
	bool in_message;
	uint8_t kind; /* enum opcode_kind of the message under way */
	uint32_t wqe; /* SEND: index into the RQ */
	uint32_t offset;
	uint32_t length; /* WRITE: of the whole message */
	uint32_t rkey;
	uint64_t va;
	struct reorder reorder;
	uint64_t far_nak_ns; /* the last NAK for what was too far ahead, */
	uint64_t nak_ns;     /* and the last that asks to go back at all */
	uint32_t reply_head, reply_tail;
	uint32_t reply_size, resource_size; /* powers of two */
	uint32_t resource_next;
	struct reply *replies;	    /* owned, sized when the QP gets ready */
	struct resource *resources; /* behind them */
	bool tombstone; /* repeats its last NAK after the QP has failed */
	struct serial24 tomb_psn;
	uint8_t tomb_syndrome;
};

/* Why a message of UC or UD was dropped; explained once for each QP. */
enum ibt_drop {
	IBT_DROP_RECEIVE,
	IBT_DROP_LENGTH,
	IBT_DROP_QKEY,
	IBT_DROP_LOST,
	IBT_DROP_INVALID,
	IBT_DROP_KEY,
	IBT_DROP_BUSY,
};

/* The UDP port of this host that the peer was found to send from
 * (engine/source_check.h). */
struct ibt_source {
	uint16_t port;
	uint64_t until_ns; /* until when the port need not be looked up again */
};

struct ibt_timers {
	struct wheel_timer ack;	    /* the local ACK timeout */
	struct wheel_timer rnr;	    /* the wait after an RNR NAK */
	struct wheel_timer reorder; /* until resp.reorder is forgotten */
};

/* One QP's protocol state.  Owner: the engine; lock: the progress lock. */
struct ibt_qp {
	struct qp *qp;
	struct engine_counters *counters; /* of the QP's device */
	struct list active;		  /* on ibt.active */
	struct list owing;		  /* on ibt.owing, or shm_ack's list */
	bool owes_last_wqe; /* IBV_EVENT_QP_LAST_WQE_REACHED is due */
	struct direct_state direct;
	struct shm_ack_state acks;
	struct rx_pending_state pending;
	/* The QPN of this host that a packet last went to; 0: none. */
	uint32_t credit_qpn;
	struct mpsc_node kick; /* on the list of doorbells */
	/* UC, UD: on ibt.handed: requests were sent and not completed. */
	struct list handed;
	struct inaddr self, peer;
	struct ibt_source source;
	uint32_t mtu;	   /* bytes */
	shared_u32 flying; /* packets unacknowledged, for threads that post */
	shared_flag is_unanswered; /* UC, UD: no packet is acknowledged */
	bool heard;		   /* COMM_EST was raised */
	bool is_entered;	   /* between ibt_responder_enter and _leave */
	uint32_t dropped; /* bits of enum ibt_drop that were explained */
	struct ibt_timers timers;
	struct rc_req req;
	struct rc_resp resp;
	struct req_note *notes; /* one a slot of the send queue, owned */
};

/* ibt_qp.c */
int ibt_init(struct ibt *t, uint64_t now_ns);
void ibt_fini(struct ibt *t);
int ibt_qp_init(struct ibt *t, struct ibt_qp *q, struct qp *qp);
void ibt_qp_fini(struct ibt *t, struct ibt_qp *q);
/*
 * Room for the answers to what max_dest_rd_atomic allows the peer, and no more,
 * so that thousands of idle QPs stay small; an RC QP has it before RTR.  0 or
 * -ENOMEM.
 */
int ibt_qp_room(struct ibt_qp *q, uint32_t max_dest_rd_atomic);
/* Are packets of this service for q? */
bool ibt_qp_serves(const struct ibt_qp *q, enum opcode_service service);
/*
 * Enter a state: the only place where qp->state changes.  Another than ERR
 * under the responder's lock, where peers work at the QP.
 */
void ibt_qp_enter(struct ibt *t, struct ibt_qp *q, enum hca_qp_state state);
/* In ERR: complete all posted work with a flush error, in order; receives when
 * no peer works at them any more. */
void ibt_qp_flush(struct ibt *t, struct ibt_qp *q);
/* When to look again for what a peer is waited for since then: the longer it
 * takes, the less often. */
uint64_t ibt_look_ns(const struct ibt *t, uint64_t since_ns);
/* q waits for peers inside: looked at by ibt_qp_part, when it is time. */
void ibt_qp_await_accesses(struct ibt *t, struct ibt_qp *q);
void ibt_qp_part(struct ibt *t);
/* In SQE: the send queue alone. */
void ibt_qp_flush_sends(struct ibt *t, struct ibt_qp *q);
/* Put q where the scheduler sees it. */
void ibt_qp_activate(struct ibt *t, struct ibt_qp *q);
/* Has q an ACK that waits for company (engine_hold_acks)?  Then it is noted. */
bool ibt_qp_holds_ack(struct ibt *t, struct ibt_qp *q);
/* How long q waits for who is alive and has no room: RC, which sends anew what
 * is lost, until its timers see it; UD, whose QP has others to serve, less than
 * UC. */
uint64_t ibt_qp_patience_ns(const struct ibt *t, const struct ibt_qp *q);
/* An ACK is owed: send it, unless it may wait. */
void ibt_qp_owe(struct ibt *t, struct ibt_qp *q);
/* The QP fails: error state, flush, and what the face is to hear. */
void ibt_qp_fail(struct ibt *t, struct ibt_qp *q, enum engine_event_type type);
void ibt_event(struct ibt *t, const struct ibt_qp *q,
	       enum engine_event_type type);
/* By a free-running index between event_tail and event_head. */
static inline struct engine_event *ibt_event_at(const struct ibt *t, uint32_t i)
{
	return &t->events.ring[i & (t->events.size - 1)];
}
void ibt_cq_event(struct ibt *t, uint64_t user, enum engine_event_type type);
void ibt_explain(struct ibt *t, const struct ibt_qp *q, struct explain *x);
/* A completion of q found its CQ full. */
void ibt_overrun(struct ibt *t, struct ibt_qp *q, struct cq *cq);
/* Tell the events that cq owes. */
void ibt_cq_tell(struct ibt *t, struct cq *cq);
/* And of a shared queue its limit's. */
void ibt_srq_tell(struct ibt *t, struct srq *s);
/* Complete into a CQ, raising what that raises. */
void ibt_complete(struct ibt *t, struct ibt_qp *q, aoff cq, const struct cqe *c,
		  bool solicited);
/* Complete the oldest request of the send queue. */
void ibt_request_done(struct ibt *t, struct ibt_qp *q, enum hca_status status);
/* Count a message that was dropped, and tell of the first; x has facts. */
void ibt_dropped(struct ibt *t, struct ibt_qp *q, struct explain *x,
		 enum ibt_drop why, uint32_t src_qpn);
/*
 * The responder's lock, for the lane: what peers of this host left there is
 * collected first.  False: one of them has it, and does not let go soon.
 */
bool ibt_responder_enter(struct ibt *t, struct ibt_qp *q)
	TRY_ACQUIRE(true, &qp_target(q->qp)->lock);
void ibt_responder_leave(struct ibt_qp *q) RELEASE(&qp_target(q->qp)->lock);
/* The receive for the next message (rq.c); NULL when none is posted. */
struct wqe *ibt_receive_take(struct ibt *t, struct ibt_qp *q);
/* Complete the receive that is held (rq.c); c lacks wr_id and queue. */
void ibt_receive_done(struct ibt *t, struct ibt_qp *q, struct cqe *c,
		      bool solicited);

/* Note for others to read what is under way, and what keeps q from sending more
 * (struct qp_stats). */
void ibt_qp_note(struct ibt_qp *q);

/* rc_req.c */
void rc_req_reset(struct ibt *t, struct ibt_qp *q);
/*
 * The next request packet, BTH to padding, into buf (IBT_PACKET_BYTES); its
 * size, 0 when there is nothing to send now.
 */
size_t rc_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf,
		 uint64_t now_ns);
void rc_req_nudge(struct ibt *t, struct ibt_qp *q);
void rc_req_seek(struct ibt *t, struct ibt_qp *q, struct serial24 psn);
struct serial24 rc_req_next_psn(const struct ibt_qp *q);
/*
 * The request at the cursor, begun; those that send nothing are done first.
 * NULL: none may go now.
 */
struct wqe *rc_req_begin(struct ibt *t, struct ibt_qp *q);
/* The piece at the cursor is under way; on to the next. */
void rc_req_advance(struct ibt *t, struct ibt_qp *q);
/* A local error: it is reported when the requests before it are done. */
void rc_req_stop(struct ibt *t, struct ibt_qp *q, struct wqe *w,
		 enum hca_status status, struct explain *x);
bool rc_req_is_read(const struct wqe *w);
/* Does a packet with this PSN ask for an ACK in any case? */
bool rc_req_asks(const struct ibt_qp *q, struct serial24 psn);
struct req_note *rc_req_note(const struct ibt_qp *q, uint32_t index);
/* The first PSN of a READ or atomic that has begun and is unanswered, in *psn;
 * false: there is none. */
bool rc_req_unanswered(const struct ibt *t, const struct ibt_qp *q,
		       struct serial24 *psn);

/* rc_comp.c; bytes are p's own, kept when it comes before its turn. */
void rc_comp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const uint8_t *bytes, size_t len, uint64_t now_ns);
/* Is p near what is under way?  Any other is stale, or a guess. */
bool rc_comp_fits(const struct ibt_qp *q, const struct pkt *p);
/* Retire what needs no answer any more (local errors, LOCAL_INV). */
void rc_comp_retire(struct ibt *t, struct ibt_qp *q);
/* In SQD: tell, once, that all that was begun is complete. */
void rc_comp_drained(struct ibt *t, struct ibt_qp *q);
/* The peer has accepted all before psn; no READ or atomic is unanswered. */
void rc_comp_accepted(struct ibt *t, struct ibt_qp *q, struct serial24 psn);
void rc_comp_timeout(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
/* It was we who were silent: neither timeout nor patience ran. */
void rc_comp_asleep(struct ibt *t, struct ibt_qp *q, uint64_t slept_ns,
		    uint64_t now_ns);
void rc_comp_rnr_over(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
/* The answer to ENGINE_ASK_PEER about q's peer. */
void rc_comp_peer(struct ibt *t, struct ibt_qp *q, enum engine_peer state,
		  uint64_t now_ns);
/*
 * Of what goes without packets, of the piece at the cursor: it is done; it
 * found no receive; it was refused; nobody answers; the peer has ended.
 */
void rc_comp_placed(struct ibt *t, struct ibt_qp *q);
void rc_comp_rnr(struct ibt *t, struct ibt_qp *q, uint8_t timer,
		 uint64_t now_ns);
void rc_comp_refused(struct ibt *t, struct ibt_qp *q, enum hca_status status);
void rc_comp_lost(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
void rc_comp_gone(struct ibt *t, struct ibt_qp *q);
/* The peer's memory was open to us when the connection began, and is not. */
void rc_comp_denied(struct ibt *t, struct ibt_qp *q);
void rc_comp_arm(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);

/* rc_resp.c; bytes are p's own, kept when it comes before its turn. */
void rc_resp_reset(struct ibt *t, struct ibt_qp *q);
void rc_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const uint8_t *bytes, size_t len);
/* Is p near the one whose turn it is, or does it repeat a READ or an atomic?
 * Any other is a guess, or its sender has to go back a long way. */
bool rc_resp_fits(const struct ibt_qp *q, const struct pkt *p);
/* The requests that came before their turn have waited long enough. */
void rc_resp_reorder_over(struct ibt *t, struct ibt_qp *q);

/* rc_reply.c */
/* What was asked for and what was refused; then, after requests, the ACK. */
size_t rc_reply_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf);
size_t rc_reply_ack_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf);
/* The QP is in ERR: no more is read.  What is done is answered, up to there. */
void rc_reply_stop(struct ibt_qp *q);
/* Is there an answer or an ACK to send? */
bool rc_reply_is_owed(const struct ibt_qp *q);
struct reply *rc_reply_push(struct ibt_qp *q);
/* What is to be answered first; NULL: nothing. */
struct reply *rc_reply_first(struct ibt_qp *q);
void rc_reply_ack(struct ibt *t, struct ibt_qp *q, struct serial24 psn,
		  uint8_t syndrome);
/* All coalesced ACKs of one batch of packets. */
void rc_reply_settle(struct ibt *t, struct ibt_qp *q);

#endif
