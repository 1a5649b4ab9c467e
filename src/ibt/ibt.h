/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services of the InfiniBand transport (IBTA Vol 1, 9.7 and 9.8): packets
 * in, packets out, no I/O.  struct ibt is the state that the QPs of one process
 * share, struct ibt_qp one QP's protocol state.  Owner: the engine.  Lock: the
 * progress lock, unless a function's comment names another.
 *
 *	rc_req	 work requests -> request packets
 *	rc_comp	 ACKs, NAKs, responses -> completions
 *	rc_resp	 request packets -> memory, receive completions, replies
 *	rc_reply replies -> ACK, NAK and response packets
 *	reorder	 packets that came before their turn
 *	unreliable_tx  requests of UC and UD, which are sent once
 *	uc_req, uc_resp, ud_req, ud_resp  packets of UC and UD
 *	rx_pending  messages of UC and UD that wait for a receive
 *	mcast	 multicast groups
 *	ibt	 completions and events of all QPs
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

#define IBT_MAX_MTU	 4096
#define IBT_PACKET_BYTES (PKT_MAX_HEADER_BYTES + IBT_MAX_MTU + 4)
/* The first size of the ring of events.  A ring that holds IBT_EVENTS events
 * takes no more ENGINE_EXPLAIN; it takes other events up to IBT_EVENTS_MAX. */
#define IBT_EVENTS	256
#define IBT_EVENTS_MAX	65536
#define IBT_POOL	256 /* packets held for reordering, of all QPs */
#define IBT_HELD_PER_QP 48
#define IBT_HELD_AHEAD	512	 /* PSNs ahead that may be held */
#define IBT_HELD_NS	10000000 /* how long a packet is held */
#define IBT_BEHIND	65536	 /* PSNs back that a peer may repeat */
/* A peer to which a NAK for a sequence error was sent repeats its packets from
 * the NAK's PSN within this time. */
#define IBT_NAK_HEARD_NS 100000000
/* Replies that a QP has room for beside max_dest_rd_atomic READs and atomics.
 */
#define IBT_SPARE_REPLIES 12
/* One READ request asks for IBT_READ_BYTES or a quarter of the window,
 * whichever is less, but for at least IBT_READ_PACKETS packets. */
#define IBT_READ_PACKETS  16
#define IBT_READ_BYTES	  65536
#define IBT_WINDOW_START  16
#define IBT_RETRY_FOREVER 7	 /* a value of rnr_retry, not of retry_cnt */
#define IBT_LOOK_NS	  20000	 /* the first interval of ibt_look_ns */
#define IBT_OWE_NS	  500000 /* how long an ACK waits to follow a request */
#define IBT_SUM_BYTES	  512	 /* payloads from this length on get sum_crc */

/* A packet that came before its turn. */
struct ibt_held {
	struct list node;
	struct serial24 psn;
	uint32_t len;
	uint8_t bytes[IBT_PACKET_BYTES];
};

struct rx_pending;
struct mcast;
struct iwarp_stream;

/* Packets of UC and UD that wait for a receive (rx_pending.h), of all QPs. */
struct rx_pending_pool {
	struct rx_pending
		*packets; /* owned; NULL before the first UC or UD QP */
	struct list free; /* those of `packets` that are free */
	uint32_t count;	  /* packets that wait */
	uint32_t qps;	  /* QPs for which packets wait */
};

/* The receive-pending state of one QP of UC or UD. */
struct rx_pending_state {
	struct list packets; /* struct rx_pending, in the order of arrival */
	uint32_t count;
	uint64_t until_ns; /* when the first of `packets` is dropped */
	/* until_ns has passed, and no receive was posted since. */
	bool is_late;
	bool is_shut; /* a peer holds the responder lock for long */
};

/* Attachments of QPs to multicast groups (mcast.h). */
struct mcast_groups {
	struct mcast *rows; /* owned */
	uint32_t count;
};

/*
 * Events that the engine's caller has yet to take, by free-running indices.
 * The ring grows: one call may complete work of each QP, and a program that
 * sleeps until an event must miss none.
 */
struct ibt_events {
	uint32_t head, tail, size; /* size: a power of two */
	struct engine_event *ring;
};

/* The state that the queue pairs of one progress lock share. */
struct ibt {
	struct hca *hca;
	struct wheel wheel;
	struct cq_moderation cq_moderation[IBT_CQ_MODERATION];
	uint64_t now_ns;       /* the time of the engine's present call */
	enum engine_sign sign; /* the fault of the present packet */
	struct list active;    /* struct ibt_qp with something to send */
	struct list owing;     /* QPs that wait with an ACK for a request */
	uint64_t owing_ns;     /* since when the first of `owing` waits */
	bool holds_acks;       /* engine_hold_acks */
	struct list handed;    /* struct ibt_qp with requests to complete,
				* unreliable_tx.h */
	struct direct_queues direct;
	struct ibt_held *held; /* packets held for reordering, owned */
	struct list pool;      /* the free ones of `held` */
	struct rx_pending_pool rx_pending;
	uint32_t qps; /* how many QPs there are */
	struct mcast_groups mcast;
	uint32_t window_max;
	bool strict;
	uint64_t patience_ns;
	uint64_t polled_ns; /* when engine_polled was called last */
	struct ibt_events events;
	struct engine_counters *counters; /* in the arena, one per device */
	uint8_t scratch[IBT_MAX_MTU];
	/* The packet that was made last: the length of its payload (without
	 * pad), and the payload's CRC from state 0; sum_bytes is 0 if the CRC
	 * is not known. */
	uint32_t sum_bytes, sum_crc;
};

/* The requester's notes on one work request, beside its slot. */
struct req_note {
	struct serial24 first; /* the first PSN, valid once started */
	uint32_t packets;      /* PSNs it takes */
	uint32_t answered;     /* READ, atomic: responses placed */
	uint32_t chunk;	       /* READ: packets that one request asks for */
	bool started;
	uint8_t status; /* enum hca_status of a local error */
};

struct rc_req {
	uint32_t wqe;	 /* the cursor: the request to send next, in the SQ */
	uint32_t packet; /* the cursor: the packet of that request */
	struct serial24 una; /* the oldest unacknowledged PSN */
	struct serial24 max; /* one past the newest PSN that was ever sent */
	uint32_t reads_out;  /* unanswered packets of READs and atomics */
	uint32_t rd_wqes;    /* READs and atomics that are not completed */
	uint32_t window, window_credit;
	uint32_t retries, rnr_retries; /* since the last progress */
	uint64_t silent_since_ns;
	/* The ACK timer was restarted after this process slept. */
	bool is_granted;
	bool rnr_waiting, asking, draining;
	bool was_alive;	  /* the peer was found alive since silent_since_ns */
	bool is_answered; /* the peer has answered a request with any packet */
	/* The longest payload of the packets that were acknowledged, and of the
	 * responses. */
	uint32_t longest_sent, longest_got;
	bool is_closed; /* direct: the peer's QP is destroyed or in ERR */
	bool is_gone;	/* direct: the peer's process has ended */
	struct reorder reorder; /* responses that came before their turn */
	struct serial24 gap;	/* PSN of the response requested again */
	bool gap_valid;
	/* A fatal NAK that waits for its request's turn to complete. */
	struct {
		bool is_pending;
		uint8_t status;
		struct serial24 psn;
	} nak;
};

/* wheel_timer.kind */
enum {
	IBT_TIMER_ACK,
	IBT_TIMER_RNR,
	IBT_TIMER_CQ_MODERATION,
	IBT_TIMER_REORDER
};

enum reply_kind { REPLY_ACK, REPLY_READ, REPLY_ATOMIC };

/* A reply that is due: an ACK, a NAK or a response.  Replies are sent in order.
 */
struct reply {
	uint8_t kind, syndrome;
	bool fresh; /* the reply counts against max_dest_rd_atomic */
	struct serial24 psn;
	uint32_t msn;
	uint32_t rkey, bytes;
	uint32_t packets, sent;
	uint64_t va;
	uint64_t orig; /* the value that an atomic found */
};

/* An executed READ or atomic, by which a duplicate request is answered
 * (IBTA 9.7.5.1.1). */
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
	bool nak_sent; /* a NAK was sent for epsn */
	bool ack_owed;
	bool in_message;
	uint8_t kind; /* enum opcode_kind of the message under way */
	uint32_t wqe; /* SEND: index into the RQ */
	uint32_t offset;
	uint32_t length; /* WRITE: of the whole message */
	uint32_t rkey;
	uint64_t va;
	struct reorder reorder;
	/* When the last NAK was sent for a PSN too far ahead, and the last NAK
	 * for any sequence error or RNR NAK. */
	uint64_t far_nak_ns, nak_ns;
	uint32_t reply_head, reply_tail;
	uint32_t reply_size, resource_size; /* powers of two */
	uint32_t resource_next;
	struct reply *replies;	    /* owned, allocated by ibt_qp_room */
	struct resource *resources; /* in the same allocation */
	bool tombstone;		    /* the failed QP repeats its last NAK */
	struct serial24 tomb_psn;
	uint8_t tomb_syndrome;
};

/* Why a message of UC or UD was dropped; each cause is explained once per QP.
 */
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

/*
 * One QP's protocol state.  Owner: the engine.  Lock: the progress lock
 * together with the post locks; the QP's post lock alone for engine_post_apart.
 */
struct ibt_qp {
	struct qp *qp;
	struct engine_counters *counters; /* those of the QP's device */
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
	uint32_t dropped;	   /* bit n: enum ibt_drop n was explained */
	struct ibt_timers timers;
	struct rc_req req;
	struct rc_resp resp;
	struct req_note *notes; /* one per slot of the send queue, owned */
	/* An iWARP connection (iwarp/stream.h), owned; NULL: InfiniBand's
	 * transport. */
	struct iwarp_stream *stream;
};

/* ibt.c and ibt_qp.c */
/* Initializes *t, in which the caller has set hca and the configuration and
 * zeroed the rest.  0 or -ENOMEM. */
int ibt_init(struct ibt *t, uint64_t now_ns);
/* Frees the memory that t owns.  All QPs have been removed. */
void ibt_fini(struct ibt *t);

/* Initializes *q for qp, which is borrowed.  0 or -ENOMEM; ibt_qp_fini follows
 * only 0. */
int ibt_qp_init(struct ibt *t, struct ibt_qp *q, struct qp *qp);
/* Takes q off all lists, timers and groups, and frees the memory that q owns.
 */
void ibt_qp_fini(struct ibt *t, struct ibt_qp *q);
/*
 * Allocates room for the replies that max_dest_rd_atomic allows, and no more,
 * so that thousands of idle QPs stay small.  Called before an RC QP enters RTR.
 * 0 or -ENOMEM.
 */
int ibt_qp_room(struct ibt_qp *q, uint32_t max_dest_rd_atomic);
/* Returns whether q takes packets of this service (RC, UC or UD). */
bool ibt_qp_serves(const struct ibt_qp *q, enum opcode_service service);
/*
 * Enters a state; no other function changes qp->state.  If peers of this host
 * may work at the QP, the caller holds the responder lock, unless the state is
 * HCA_QP_ERR.
 */
void ibt_qp_enter(struct ibt *t, struct ibt_qp *q, enum hca_qp_state state);
/* In ERR: completes all posted work with a flush error, in order.  Receives are
 * completed later if a peer of this host is in the responder lock. */
void ibt_qp_flush(struct ibt *t, struct ibt_qp *q);
/* When to look again at a peer that was waited for since since_ns: the longer
 * the wait, the longer the interval. */
uint64_t ibt_look_ns(const struct ibt *t, uint64_t since_ns);
/* Puts q on the list of QPs that wait for peers in their responder lock, or for
 * peers that use memory which they withdraw. */
void ibt_qp_await_accesses(struct ibt *t, struct ibt_qp *q);
/* Flushes or activates the QPs on the list of ibt_qp_await_accesses that need
 * not wait any more; does nothing before leaving_look_ns. */
void ibt_qp_end_waits(struct ibt *t);
/* In SQE or ERR: completes the posted requests of the send queue with a flush
 * error, in order. */
void ibt_qp_flush_sends(struct ibt *t, struct ibt_qp *q);
/* Puts q on the list of active QPs. */
void ibt_qp_activate(struct ibt *t, struct ibt_qp *q);
/* Returns whether the ACK of q waits for a request (engine_hold_acks); if so,
 * puts q on ibt.owing. */
bool ibt_qp_holds_ack(struct ibt *t, struct ibt_qp *q);
/* Returns how long q waits for room in the socket of a peer that is alive.  RC
 * waits until its own timers act, since RC sends lost packets again; UD waits
 * less than UC, since a UD QP serves other peers too. */
uint64_t ibt_qp_patience_ns(const struct ibt *t, const struct ibt_qp *q);
/* An ACK of q is due: activates q to send the ACK, unless the ACK waits for a
 * request (ibt_qp_holds_ack). */
void ibt_qp_owe(struct ibt *t, struct ibt_qp *q);
/* The QP fails: enters ERR, flushes, and raises the event; ENGINE_EXPLAIN: no
 * event. */
void ibt_qp_fail(struct ibt *t, struct ibt_qp *q, enum engine_event_type type);

/* Adds an event about q to the ring.  A ring that cannot grow drops the event.
 */
void ibt_event(struct ibt *t, const struct ibt_qp *q,
	       enum engine_event_type type);
/* The event at a free-running index between tail and head. */
static inline struct engine_event *ibt_event_at(const struct ibt *t, uint32_t i)
{
	return &t->events.ring[i & (t->events.size - 1)];
}
/* Adds an event about a CQ or an SRQ to the ring; @user: its cookie. */
void ibt_cq_event(struct ibt *t, uint64_t user, enum engine_event_type type);
/* Adds ENGINE_EXPLAIN with the facts *x, which the function completes by q's
 * QPNs and the peer's address.  A ring of IBT_EVENTS events drops the facts. */
void ibt_explain(struct ibt *t, const struct ibt_qp *q, struct explain *x);
/* A completion of q found cq full: raises ENGINE_CQ_ERR and fails q, the first
 * time for each cq. */
void ibt_overrun(struct ibt *t, struct ibt_qp *q, struct cq *cq);
/* Raises the events of cq that are due. */
void ibt_cq_tell(struct ibt *t, struct cq *cq);
/* Raises the limit event of a shared receive queue if the event is due. */
void ibt_srq_tell(struct ibt *t, struct srq *s);
/* Appends the completion c of q to a CQ, and raises the event that the
 * completion causes. */
void ibt_complete(struct ibt *t, struct ibt_qp *q, aoff cq, const struct cqe *c,
		  bool solicited);
/* Completes the oldest request of the send queue, and counts it. */
void ibt_request_done(struct ibt *t, struct ibt_qp *q, enum hca_status status);
/* w, the request at the cursor, has a local error: notes that w fails with this
 * status when the requests before it are complete, and explains it by *x. */
void ibt_request_failed(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
			enum hca_status status, struct explain *x);
/* Counts a message for q that was dropped, and explains the first message of
 * each cause @why with the facts in x. */
void ibt_dropped(struct ibt *t, struct ibt_qp *q, struct explain *x,
		 enum ibt_drop why, uint32_t src_qpn);
/*
 * Takes the responder lock for the owner, and collects the completions that
 * peers of this host have left there.  False: a peer holds the lock for long.
 */
bool ibt_responder_enter(struct ibt *t, struct ibt_qp *q)
	TRY_ACQUIRE(true, &qp_target(q->qp)->lock);
/* Releases the responder lock. */
void ibt_responder_leave(struct ibt_qp *q) RELEASE(&qp_target(q->qp)->lock);
/* Returns the receive for the next message, which q holds from then on
 * (hca/rq.h); NULL: no receive is posted.  UC and UD: under the responder
 * lock. */
struct wqe *ibt_receive_take(struct ibt *t, struct ibt_qp *q);
/* Completes the receive that q holds (hca/rq.h), and sets wr_id and queue in
 * *c.  UC and UD: under the responder lock. */
void ibt_receive_done(struct ibt *t, struct ibt_qp *q, struct cqe *c,
		      bool solicited);

/* Updates the words that other threads and `adverb top` read: packets
 * unacknowledged, and why q does not send (struct qp_stats). */
void ibt_qp_note(struct ibt_qp *q);

/* rc_req.c */
/* Forgets the requester's state. */
void rc_req_reset(struct ibt *t, struct ibt_qp *q);
/* Has q a request that is not sent, and whose turn may have come?  If not,
 * rc_req_tx finds nothing until the program posts or an answer comes. */
bool rc_req_is_ready(const struct ibt_qp *q);
/*
 * Writes the next request packet, BTH to padding, into buf (IBT_PACKET_BYTES).
 * Returns its size; 0: there is nothing to send now.
 */
size_t rc_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf,
		 uint64_t now_ns);
/* No request follows the one that was sent last: if that request is a SEND or
 * WRITE without an ACK, its last packet is sent again and asks for the ACK. */
void rc_req_nudge(struct ibt *t, struct ibt_qp *q);
/* Sets the cursor to the packet with this PSN, which is in [una, max]. */
void rc_req_seek(struct ibt *t, struct ibt_qp *q, struct serial24 psn);
/* Returns the PSN of the packet at the cursor. */
struct serial24 rc_req_next_psn(const struct ibt_qp *q);
/*
 * Executes the requests at the cursor that send nothing, and begins the next
 * request.  Returns that request; NULL: no request may be sent now.
 */
struct wqe *rc_req_begin(struct ibt *t, struct ibt_qp *q);
/*
 * rc_req_begin for a caller that may change nothing but q: begins the request
 * at the cursor if it is a SEND, a WRITE or a READ of one piece, or an atomic,
 * and needs no wait and no error.  NULL: nothing was done.
 */
struct wqe *rc_req_begin_plain(struct ibt *t, struct ibt_qp *q);
/* The packet or piece at the cursor was sent: moves the cursor to the next. */
void rc_req_advance(struct ibt *t, struct ibt_qp *q);
/* w, the request at the cursor, has a local error: w fails with this status
 * when the requests before w are completed; *x says why. */
void rc_req_stop(struct ibt *t, struct ibt_qp *q, struct wqe *w,
		 enum hca_status status, struct explain *x);
/* Returns whether w is answered by a response (READ, atomic, ATOMIC WRITE)
 * rather than by an ACK. */
bool rc_req_is_read(const struct wqe *w);
/* Returns whether a packet with this PSN asks for an ACK in any case. */
bool rc_req_asks(const struct ibt_qp *q, struct serial24 psn);
/* Returns the note on the request at this index of the send queue. */
struct req_note *rc_req_note(const struct ibt_qp *q, uint32_t index);
/* Finds the oldest READ or atomic that has begun and lacks a response; *psn:
 * the PSN of the first response that it lacks.  False: there is no such
 * request. */
bool rc_req_unanswered(const struct ibt *t, const struct ibt_qp *q,
		       struct serial24 *psn);

/* rc_comp.c */
/* Handles p, a packet that answers requests of q.  @bytes: the whole packet,
 * which is copied if it comes before its turn. */
void rc_comp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const uint8_t *bytes, size_t len, uint64_t now_ns);
/* Returns whether p's PSN is near the unacknowledged PSNs.  A packet with any
 * other PSN is stale, or its sender guesses PSNs. */
bool rc_comp_fits(const struct ibt_qp *q, const struct pkt *p);
/* Completes the oldest requests while they need no answer (local errors,
 * LOCAL_INV, BIND_MW). */
void rc_comp_retire(struct ibt *t, struct ibt_qp *q);
/* In SQD: raises ENGINE_SQ_DRAINED, once, when all requests that were begun are
 * complete. */
void rc_comp_drained(struct ibt *t, struct ibt_qp *q);
/* The peer has accepted all packets before psn, among which is no unanswered
 * READ or atomic: completes their requests. */
void rc_comp_accepted(struct ibt *t, struct ibt_qp *q, struct serial24 psn);
/* The local ACK timeout has expired: sends again from the oldest unacknowledged
 * PSN, or fails the QP when the retries are used up. */
void rc_comp_timeout(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
/* This process slept for slept_ns: neither the ACK timeout nor the patience
 * counts that time. */
void rc_comp_asleep(struct ibt *t, struct ibt_qp *q, uint64_t slept_ns,
		    uint64_t now_ns);
/* The wait after an RNR NAK is over: sends again. */
void rc_comp_rnr_over(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
/* Takes @state, the answer to ENGINE_ASK_PEER about q's peer. */
void rc_comp_peer(struct ibt *t, struct ibt_qp *q, enum engine_peer state,
		  uint64_t now_ns);
/* A piece of a request that goes direct was placed: completes the request if it
 * was its last piece. */
void rc_comp_placed(struct ibt *t, struct ibt_qp *q);
/* The peer has no receive for the oldest request: waits as long as @timer of
 * the RNR NAK says, or fails the QP when rnr_retry is used up. */
void rc_comp_rnr(struct ibt *t, struct ibt_qp *q, uint8_t timer,
		 uint64_t now_ns);
/* The peer has refused the oldest request: completes the request with @status,
 * and fails the QP. */
void rc_comp_refused(struct ibt *t, struct ibt_qp *q, enum hca_status status);
/* The target of a request that goes direct does not answer: starts the ACK
 * timer. */
void rc_comp_lost(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
/* The peer's process has ended: fails the oldest request and the QP. */
void rc_comp_gone(struct ibt *t, struct ibt_qp *q);
/* The kernel denies access to the target's memory, which the kernel allowed
 * before: fails the oldest request and the QP. */
void rc_comp_denied(struct ibt *t, struct ibt_qp *q);
/* Restarts the ACK timer; stops the timer if no packet is unacknowledged, or if
 * the QP has no timeout. */
void rc_comp_arm(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);

/* rc_resp.c */
/* Forgets the responder's state. */
void rc_resp_reset(struct ibt *t, struct ibt_qp *q);
/* Handles p, a request packet.  @bytes: the whole packet, which is copied if it
 * comes before its turn. */
void rc_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const uint8_t *bytes, size_t len);
/* Returns whether p's PSN is near the expected PSN, or p repeats a READ or an
 * atomic.  The sender of any other packet guesses PSNs, or has to go back a
 * long way. */
bool rc_resp_fits(const struct ibt_qp *q, const struct pkt *p);
/* The timer of the requests that came before their turn has expired: drops the
 * requests. */
void rc_resp_reorder_over(struct ibt *t, struct ibt_qp *q);

/* rc_reply.c */
/* Writes the next packet of q's replies, BTH to padding, into buf
 * (IBT_PACKET_BYTES).  Returns its size; 0: there is no reply. */
size_t rc_reply_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf);
/* Queues the coalesced ACK if it is due (rc_reply_settle), and returns as
 * rc_reply_tx does. */
size_t rc_reply_ack_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf);
/* The QP enters ERR: drops the replies from the first READ with data on, so
 * that no more memory is read; the replies before it are still sent. */
void rc_reply_stop(struct ibt_qp *q);
/* Returns whether a reply or a coalesced ACK is due. */
bool rc_reply_is_owed(const struct ibt_qp *q);
/* Appends a zeroed reply and returns it, owned by q.  There must be room. */
struct reply *rc_reply_push(struct ibt_qp *q);
/* Returns the first reply that is due, owned by q; NULL: there is none. */
struct reply *rc_reply_first(struct ibt_qp *q);
/* Queues an ACK or NAK with this PSN and syndrome.  There must be room. */
void rc_reply_ack(struct ibt *t, struct ibt_qp *q, struct serial24 psn,
		  uint8_t syndrome);
/* Queues the coalesced ACK, of all packets before the expected PSN, if an ACK
 * is due. */
void rc_reply_settle(struct ibt *t, struct ibt_qp *q);

#endif
