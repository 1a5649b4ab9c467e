/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services of the InfiniBand transport (IBTA Vol 1, 9.7 and 9.8).  They
 * take the packets that came and make the packets to send, without I/O.  struct
 * ibt is the state that the QPs of one process share; struct ibt_qp is the
 * protocol state of one QP.  Owner: the engine.  Lock: the progress lock and
 * all post locks; the QP's post lock alone in calls that src/direct makes for
 * engine_post_apart and engine_resume_apart.
 *
 *	rc_req	 work requests -> request packets
 *	rc_comp	 ACKs, NAKs, responses -> completions
 *	rnr_wait the wait for a receive of the peer
 *	rc_resp	 request packets -> memory, receive completions, replies
 *	rc_reply replies -> ACK, NAK and response packets
 *	reorder	 packets that came before their turn
 *	unreliable_tx  requests of UC and UD, which are sent once
 *	uc_req, uc_resp, ud_req, ud_resp  packets of UC and UD
 *	rx_pending  messages of UC and UD that wait for a receive
 *	mcast	 multicast groups
 *	message	 SENDs and WRITEs as packets, for RC, UC and in part UD
 *	middle_packets  many Middles of a long message or response at once
 *	verdict	 the responder's answer to a request, and its consequences
 *	local_wr  requests that send nothing
 *	cq_moderation  the timers of moderated CQs
 *	migration  the alternate path of a connection by LID
 *	ibt	 completions and events of all QPs
 *	ibt_qp	 creation, states and flush of a QP
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

#define IBT_MAX_MTU 4096 /* the longest payload of a packet, in bytes */
/* Room for any packet: headers, payload, and 4 bytes for the padding. */
#define IBT_PACKET_BYTES (PKT_MAX_HEADER_BYTES + IBT_MAX_MTU + 4)
/* The first size of the ring of events.  A ring that holds IBT_EVENTS events
 * takes no more ENGINE_EXPLAIN; it takes other events up to IBT_EVENTS_MAX. */
#define IBT_EVENTS     256
#define IBT_EVENTS_MAX 65536
#define IBT_POOL       256 /* packets held for reordering, of all QPs */
/* The most packets held for reordering by the requester of a QP, and by its
 * responder. */
#define IBT_HELD_PER_QP 48
/* How many PSNs a held packet may be ahead of the expected PSN. */
#define IBT_HELD_AHEAD 512
#define IBT_HELD_NS    10000000 /* how long a request is held at most */
/* A request may be this many PSNs before the expected PSN, and an answer this
 * many PSNs before the oldest unacknowledged PSN.  The sender of an older PSN
 * is taken for a forger, unless the packet repeats a READ or an atomic. */
#define IBT_BEHIND 65536
/* For this long after a NAK, packets far ahead of the expected PSN do not count
 * as forged: the peer may have sent them before it got the NAK. */
#define IBT_NAK_HEARD_NS 100000000
/* How many replies a QP has room for, in addition to those of
 * max_dest_rd_atomic READs and atomics. */
#define IBT_SPARE_REPLIES 12
/* One READ request asks for IBT_READ_BYTES or a quarter of the window,
 * whichever is less, but for at least IBT_READ_PACKETS packets. */
#define IBT_READ_PACKETS  16
#define IBT_READ_BYTES	  65536
#define IBT_WINDOW_START  16	/* rc_req.window at first, in packets */
#define IBT_RETRY_FOREVER 7	/* the rnr_retry for retries without limit */
#define IBT_LOOK_NS	  20000 /* the first interval of ibt_look_ns */
/* How long an ACK waits at most for a request to the same peer, so that both
 * are sent together. */
#define IBT_OWE_NS 500000
/* Packets with at least this many bytes of payload set ibt.sum_crc. */
#define IBT_SUM_BYTES 512

/* A packet that came before its turn. */
struct ibt_held {
	struct list node; /* on ibt_held_pool.free or reorder.held */
	struct serial24 psn;
	uint32_t len;			 /* bytes of the packet */
	uint8_t bytes[IBT_PACKET_BYTES]; /* BTH to padding */
};

/* The memory for packets that all QPs hold for reordering.  A row from `used`
 * on has held no packet yet, so its pages take no memory. */
struct ibt_held_pool {
	struct ibt_held *rows; /* IBT_POOL, owned */
	struct list free; /* those of the first `used` rows that are free */
	uint32_t used;	  /* how many rows have held a packet */
};

struct rx_pending;
struct mcast;
struct iwarp_stream;

/* The memory for packets of UC and UD that wait for a receive (rx_pending.h),
 * of all QPs.  A row of `packets` from `used` on has held no packet yet, so its
 * pages take no memory. */
struct rx_pending_pool {
	struct rx_pending
		*packets; /* owned; NULL before the first UC or UD QP */
	struct list free; /* those of the first `used` rows that are free */
	uint32_t used;	  /* how many rows have held a packet */
	uint32_t count;	  /* how many packets wait */
	uint32_t qps;	  /* for how many QPs packets wait */
};

/* The packets of one QP of UC or UD that wait for a receive (rx_pending.h). */
struct rx_pending_state {
	struct list packets; /* struct rx_pending, in the order of arrival */
	uint32_t count;	     /* how many `packets` there are */
	/* A packet has waited for too long, and no packet that this process has
	 * tried to deliver since then has found a receive. */
	bool is_late;
	/* At the last try to deliver a packet a peer held the responder lock.
	 */
	bool is_locked;
	/* Packets were dropped because a peer held the responder lock, and this
	 * process has not taken that lock since. */
	bool is_lock_late;
};

/* Attachments of QPs to multicast groups (mcast.h). */
struct mcast_groups {
	struct mcast *rows; /* owned */
	uint32_t count;	    /* how many `rows` there are */
};

/*
 * The ring of events that the engine's caller has yet to take.  The ring grows,
 * because one call may complete work of each QP, and a program that sleeps
 * until an event must miss none.
 */
struct ibt_events {
	/* Free-running indices of the next free row (head) and of the oldest
	 * event (tail), and how many rows there are, a power of two. */
	uint32_t head, tail, size;
	struct engine_event *ring; /* owned */
};

/* The state that the queue pairs of one progress lock share. */
struct ibt {
	struct hca *hca;    /* borrowed */
	struct wheel wheel; /* the timers of all QPs and CQs */
	struct cq_moderation cq_moderation[IBT_CQ_MODERATION];
	uint64_t now_ns;       /* the time of the engine's present call */
	enum engine_sign sign; /* why the present packet may be forged */
	struct list active;    /* struct ibt_qp with something to send */
	struct list owing;     /* struct ibt_qp whose ACK waits for a request */
	uint64_t owing_ns;     /* when a QP was last put on an empty `owing` */
	bool holds_acks;       /* ACKs wait for requests: engine_hold_acks */
	/* struct ibt_qp whose requests complete when the frames made so far are
	 * sent (unreliable_tx.h). */
	struct list handed;
	struct direct_queues direct;
	struct ibt_held_pool held;
	struct rx_pending_pool rx_pending;
	uint32_t qps; /* how many QPs there are */
	struct mcast_groups mcast;
	/* For QPs by LID: ports[d][n - 1] is port n of device d. */
	struct hca_port ports[HCA_MAX_DEVICES][HCA_MAX_PORTS];
	uint32_t window_max;  /* the limit of rc_req.window, in packets */
	bool strict;	      /* engine_config.strict */
	uint64_t patience_ns; /* engine_config.patience_ns */
	uint64_t polled_ns;   /* when engine_polled was called last */
	struct ibt_events events;
	struct engine_counters *counters; /* in the arena, one per device */
	/* The payload of the packet that was made last: its length without
	 * padding (sum_bytes), and its CRC from state 0 (sum_crc).
	 * sum_bytes is 0 if the CRC is not known. */
	uint32_t sum_bytes, sum_crc;
};

/* The requester's notes on the work request in one slot of the send queue. */
struct req_note {
	struct serial24 first; /* the first PSN, valid if started */
	uint32_t packets;      /* how many PSNs the request takes */
	uint32_t answered;     /* READ, atomic: responses that were placed */
	uint32_t chunk;	       /* READ: packets that one request asks for */
	bool started;	       /* the request has begun or has failed */
	/* The enum hca_status of a local error, valid if started; 0: none. */
	uint8_t status;
};

/* See rc_turn.h.  replies: an index of rc_resp.replies, before which all
 * replies go before all requests.  requests: an index of the send queue; the
 * requests before it take turns with the later replies.  left: the packets of
 * the present turn that are not made yet. */
struct rc_turn {
	bool is_marked;	  /* the other fields are valid */
	bool is_requests; /* the turn is that of the requests */
	uint32_t left, replies, requests;
};

/* The requester.  wqe and packet together are the cursor. */
struct rc_req {
	uint32_t wqe; /* the request to send next, an index of the send queue */
	uint32_t packet;     /* the packet of that request to send next */
	struct serial24 una; /* the oldest unacknowledged PSN */
	struct serial24 max; /* one past the newest PSN that was ever sent */
	/* How many request packets of READs and atomics lack a response. */
	uint32_t reads_out;
	uint32_t rd_wqes; /* READs and atomics that have begun and not ended */
	/* How many packets may be unacknowledged (window), and how many were
	 * acknowledged since the window last changed (window_credit). */
	uint32_t window, window_credit;
	/* How many ACK timeouts and NAKs for a sequence error (retries), and
	 * how many RNR NAKs (rnr_retries) came since a PSN was last
	 * acknowledged. */
	uint32_t retries, rnr_retries;
	/* When the retries were used up; 0: they are not used up.
	 * rc_comp_asleep adds the time that this process slept. */
	uint64_t silent_since_ns;
	/* The ACK timer was restarted because this process slept. */
	bool is_granted;
	/* rnr_waiting: no request is sent until the wait of rnr_wait.h ends.
	 * asking: ENGINE_ASK_PEER has no answer yet.  draining: in SQD, so no
	 * request begins. */
	bool rnr_waiting, asking, draining;
	bool was_alive;	  /* the peer was found alive since silent_since_ns */
	bool is_answered; /* the peer has answered a request with any packet */
	/* The longest payload in bytes of a packet that was acknowledged
	 * (longest_sent), and of a response (longest_got). */
	uint32_t longest_sent, longest_got;
	struct reorder reorder; /* responses that came before their turn */
	/* The PSN of the missing response that was last requested again, valid
	 * if gap_valid. */
	struct serial24 gap;
	bool gap_valid;
	/* Which requests may go before which replies (rc_turn.h). */
	struct rc_turn turn;
	/* A fatal NAK that waits until its request is the oldest. */
	struct {
		bool is_pending;
		uint8_t status;	     /* the enum hca_status of the request */
		struct serial24 psn; /* the PSN that the NAK names */
	} nak;
};

/* wheel_timer.kind: ACK, RNR and REORDER are of the timers of a QP (struct
 * ibt_timers), CQ_MODERATION of those of a CQ (struct cq_moderation). */
enum {
	IBT_TIMER_ACK,
	IBT_TIMER_RNR,
	IBT_TIMER_CQ_MODERATION,
	IBT_TIMER_REORDER
};

/* REPLY_ACK: an ACK or a NAK.  REPLY_READ: the response to a READ or to an
 * ATOMIC WRITE.  REPLY_ATOMIC: the response to any other atomic. */
enum reply_kind { REPLY_ACK, REPLY_READ, REPLY_ATOMIC };

/* A reply that is due: an ACK, a NAK or a response.  Replies are sent in order.
 */
struct reply {
	uint8_t kind, syndrome; /* enum reply_kind; the AETH of a REPLY_ACK */
	bool fresh;	     /* the reply counts against max_dest_rd_atomic */
	struct serial24 psn; /* the PSN of the reply's first packet */
	uint32_t msn;	     /* the MSN of the reply's AETH */
	/* REPLY_READ: the key (rkey), and how many bytes are read (bytes): 0
	 * for an ATOMIC WRITE and for a READ of length 0. */
	uint32_t rkey, bytes;
	/* How many packets the response has, and how many were sent; not for
	 * REPLY_ACK. */
	uint32_t packets, sent;
	uint64_t va;   /* REPLY_READ: the address that is read */
	uint64_t orig; /* REPLY_ATOMIC: the value that the atomic found */
};

/* An executed READ or atomic, from which a duplicate request is answered
 * (IBTA 9.7.5.1). */
struct resource {
	bool valid;	     /* false: the row has no request */
	uint8_t kind;	     /* enum opcode_kind of the request */
	struct serial24 psn; /* the PSN of the request */
	/* How many PSNs the response takes, and the key of a READ or ATOMIC
	 * WRITE. */
	uint32_t packets, rkey;
	uint64_t orig; /* the value that an atomic found */
};

/* The responder. */
struct rc_resp {
	struct serial24 epsn; /* the expected PSN */
	uint32_t msn;	      /* the MSN; only its low 24 bits are sent */
	bool nak_sent;	      /* a NAK or an RNR NAK was sent for epsn */
	bool ack_owed;	      /* a coalesced ACK is due */
	bool in_message;      /* a SEND or WRITE has begun and has not ended */
	uint8_t kind;	      /* enum opcode_kind of that SEND or WRITE */
	uint32_t offset; /* how many bytes of that SEND or WRITE were placed */
	uint32_t length; /* WRITE: the length of the whole message, in bytes */
	uint32_t rkey;	 /* WRITE: the key */
	uint64_t va;	 /* WRITE: the address of the message's first byte */
	struct reorder reorder; /* requests that came before their turn */
	/* When a NAK was last sent for a PSN too far ahead (far_nak_ns), and
	 * when a NAK for any sequence error or an RNR NAK was last sent
	 * (nak_ns). */
	uint64_t far_nak_ns, nak_ns;
	/* The ring `replies`: free-running indices of the next free row and of
	 * the oldest reply. */
	uint32_t reply_head, reply_tail;
	/* How many rows `replies` and `resources` have, powers of two. */
	uint32_t reply_size, resource_size;
	/* The ring `resources`: a free-running index of the row that the next
	 * READ or atomic overwrites. */
	uint32_t resource_next;
	struct reply *replies;	    /* owned, allocated by ibt_qp_room */
	struct resource *resources; /* in the allocation of `replies` */
	/* The QP has failed because it refused a request: it answers further
	 * packets with PSN tomb_psn by the NAK tomb_syndrome. */
	bool tombstone;
	struct serial24 tomb_psn; /* valid if tombstone */
	uint8_t tomb_syndrome;	  /* valid if tombstone */
	/* The peer's requests went without packets, and now go by packets, for
	 * RC from epsn on (qp_target.packets_from). */
	bool has_left;
	/* A request of the peer for a migration (migration.h) was refused since
	 * the program last set path_mig_state. */
	bool migration_refused;
};

/* Why a message of UC or UD was dropped; each cause is explained once until the
 * QP enters RESET. */
enum ibt_drop {
	IBT_DROP_RECEIVE, /* no receive was posted */
	IBT_DROP_LENGTH,  /* the message is longer than its receive */
	IBT_DROP_QKEY,	  /* the Q_Key is not that of the QP */
	IBT_DROP_LOST,	  /* some packets of the message were lost */
	IBT_DROP_INVALID, /* a packet breaks a rule of its service */
	IBT_DROP_KEY,	  /* the memory of a WRITE was refused or not mapped */
	IBT_DROP_BUSY,	  /* a peer held the responder lock for long */
};

/* The UDP port of this host from which a peer of this host may send to the QP
 * (engine/source_check.h). */
struct ibt_source {
	uint16_t port;
	uint64_t until_ns; /* until when the port need not be looked up again */
};

/* The use that the QP makes of the credit of receivers of this host
 * (engine/credit.h). */
struct ibt_credit {
	/* The QPN of the receiver to whose credit the last packet was charged;
	 * 0: it was charged to none. */
	uint32_t qpn;
	bool is_awaited; /* the next packet waits for credit */
};

/* The timers of one QP. */
struct ibt_timers {
	struct wheel_timer ack; /* the local ACK timeout */
	/* RC: the wait after an RNR NAK.  UC, UD: the next look for receives
	 * (rx_pending.h). */
	struct wheel_timer rnr;
	struct wheel_timer reorder; /* when resp.reorder is dropped */
};

/*
 * One QP's protocol state.  Owner: the engine.  Lock: the progress lock
 * together with the post locks; the QP's post lock alone for engine_post_apart
 * and engine_resume_apart.
 */
struct ibt_qp {
	struct qp *qp;			  /* borrowed */
	struct engine_counters *counters; /* those of the QP's device */
	/* On ibt.active, or on `starved` or `streams` of struct engine. */
	struct list active;
	struct list owing; /* on ibt.owing or shm_ack.waiting */
	/* In ERR: IBV_EVENT_QP_LAST_WQE_REACHED is due after the flush. */
	bool owes_last_wqe;
	struct direct_state direct;
	struct shm_ack_state acks;
	struct rx_pending_state pending;
	struct ibt_credit credit;
	struct mpsc_node doorbell; /* on the list of doorbells */
	/* UC, UD: on ibt.handed, because requests of this QP complete when the
	 * frames made so far are sent. */
	struct list handed;
	struct inaddr self, peer; /* packets are sent from self to peer */
	struct ibt_source source;
	uint32_t mtu; /* the path MTU, in bytes */
	/* How many packets are unacknowledged, for threads that post. */
	shared_u32 flying;
	/* No packet acknowledges the QP's requests: the QP is of UC or UD and
	 * sends packets, or sends by a stream.  Threads that post read this. */
	shared_flag is_unanswered;
	bool heard;	  /* a request has come since RESET */
	bool is_entered;  /* between ibt_responder_enter and _leave */
	uint32_t dropped; /* bit n: enum ibt_drop n was explained */
	struct ibt_timers timers;
	struct rc_req req; /* also the cursor of UC, UD and iWARP */
	struct rc_resp resp;
	struct req_note *notes; /* one per slot of the send queue, owned */
	/* The stream of an iWARP connection (iwarp/stream.h), owned; NULL: the
	 * QP uses InfiniBand's transport. */
	struct iwarp_stream *stream;
};

/* ibt.c and ibt_qp.c */
/* Returns the LID of port `number` of q's device, for q, a QP by LID.  The
 * lowest bits of the LID, as many as the port's LMC says, are those of
 * path_bits.  0: the device has no such port, or the port has no LID. */
uint16_t ibt_lid(const struct ibt *t, const struct ibt_qp *q, uint32_t number,
		 uint8_t path_bits);
/* Returns the P_Key at `index` in the table of port `number` of q's device, for
 * q, a QP by LID.  0: there is no such port, or the index is beyond the table.
 */
uint16_t ibt_port_pkey(const struct ibt *t, const struct ibt_qp *q,
		       uint32_t number, uint32_t index);
/* Returns the P_Key of the packets that q sends.  QP by LID: the P_Key at q's
 * pkey_index in the table of its port; 0: q has no port, or the index is beyond
 * the table.  Any other QP: BTH_DEFAULT_PKEY. */
uint16_t ibt_pkey(const struct ibt *t, const struct ibt_qp *q);
/* Initialises *t, in which the caller has set hca and the configuration and
 * zeroed the rest.  Returns 0 or -ENOMEM. */
int ibt_init(struct ibt *t, uint64_t now_ns);
/* Frees the memory that t owns.  All QPs have been removed. */
void ibt_fini(struct ibt *t);

/* Initialises *q for qp, which is borrowed.  Returns 0 or -ENOMEM.  The caller
 * calls ibt_qp_fini only if the result was 0. */
int ibt_qp_init(struct ibt *t, struct ibt_qp *q, struct qp *qp);
/* Takes q off all lists, timers and groups, and frees q's notes and replies.
 * Called after stream_close and initiator_fini, which release q's stream
 * and targets. */
void ibt_qp_fini(struct ibt *t, struct ibt_qp *q);
/*
 * Makes room for the replies and resources that max_dest_rd_atomic needs, and
 * keeps those that q has.  The room is not made when the QP is created, so that
 * thousands of idle QPs stay small.  Called before max_dest_rd_atomic is set,
 * and so before an RC QP enters RTR.  Returns 0; -ENOMEM: nothing was changed.
 */
int ibt_qp_room(struct ibt_qp *q, uint32_t max_dest_rd_atomic);
/* Returns whether q takes packets of this service (RC, UC or UD).  A QP of an
 * iWARP device takes none. */
bool ibt_qp_serves(const struct ibt_qp *q, enum opcode_service service);
/*
 * Enters a state; no other function changes qp->state.  If peers of this host
 * may work at the QP, the caller holds the responder lock, unless the state is
 * HCA_QP_ERR.
 */
void ibt_qp_enter(struct ibt *t, struct ibt_qp *q, enum hca_qp_state state);
/* In ERR: completes all posted work with a flush error, in order, and then
 * raises ENGINE_LAST_WQE if owes_last_wqe is set.  Receives in an SRQ stay
 * there.  While a peer of this host holds the responder lock, the receives and
 * the event are left for ibt_qp_end_waits. */
void ibt_qp_flush(struct ibt *t, struct ibt_qp *q);
/* Returns when to look again at a peer for which a QP has waited since
 * since_ns: the longer the wait, the longer the interval. */
uint64_t ibt_look_ns(const struct ibt *t, uint64_t since_ns);
/* Puts q on the list of QPs that wait until peers release the responder lock,
 * or no longer use memory that the QP withdraws. */
void ibt_qp_await_accesses(struct ibt *t, struct ibt_qp *q);
/* Flushes or activates the QPs on the list of ibt_qp_await_accesses that need
 * not wait any more; does nothing before direct_queues.leaving_look_ns. */
void ibt_qp_end_waits(struct ibt *t);
/* In SQE or ERR: completes the posted requests of the send queue with a flush
 * error, in order. */
void ibt_qp_flush_sends(struct ibt *t, struct ibt_qp *q);
/* Sets the addresses that packets for q, a connected QP by LID, must have: the
 * LIDs of both ends (IBTA Vol 1, 9.6.1.2.1). */
void ibt_qp_set_lids(const struct ibt *t, struct ibt_qp *q);
/* Puts q on the list of active QPs. */
void ibt_qp_activate(struct ibt *t, struct ibt_qp *q);
/* Returns whether q has an ACK to send to a peer of this host that waits for a
 * request to the same peer (engine_hold_acks); if so, puts q on ibt.owing. */
bool ibt_qp_holds_ack(struct ibt *t, struct ibt_qp *q);
/* Returns how long in ns q waits for room in the socket of a peer that is alive
 * and, if q is of UD, for a busy target (direct/initiator_ud.h).  An RC QP
 * waits for only 100 ms, because RC sends lost packets again.  A UC QP waits
 * for engine_config.patience_ns.  A UD QP waits at most 2 s, because it sends
 * to other peers too.  With engine_config.strict all QPs wait as long as an RC
 * QP. */
uint64_t ibt_qp_patience_ns(const struct ibt *t, const struct ibt_qp *q);
/* An ACK of q has become due: activates q to send the ACK, unless the ACK waits
 * for a request (ibt_qp_holds_ack). */
void ibt_qp_owe(struct ibt *t, struct ibt_qp *q);
/* The QP fails: enters ERR, flushes, and raises the event `type`.  If type is
 * ENGINE_EXPLAIN, raises no event. */
void ibt_qp_fail(struct ibt *t, struct ibt_qp *q, enum engine_event_type type);

/* Adds an event about q to the ring.  A ring that cannot grow drops the event.
 */
void ibt_event(struct ibt *t, const struct ibt_qp *q,
	       enum engine_event_type type);
/* Returns the event at free-running index i, which is between events.tail and
 * events.head. */
static inline struct engine_event *ibt_event_at(const struct ibt *t, uint32_t i)
{
	return &t->events.ring[i & (t->events.size - 1)];
}
/* Adds an event about a CQ or an SRQ to the ring.  @user: the cookie of the CQ
 * or SRQ.  A ring that cannot grow drops the event. */
void ibt_cq_event(struct ibt *t, uint64_t user, enum engine_event_type type);
/* Sets in *x q's QPN and both addresses, and the peer's QPN if x->dest_qpn is
 * 0.  Then adds ENGINE_EXPLAIN with the facts *x to the ring.  A ring that
 * holds IBT_EVENTS events drops the facts. */
void ibt_explain(struct ibt *t, const struct ibt_qp *q, struct explain *x);
/* A completion of q found cq full: explains the overrun, raises ENGINE_CQ_ERR,
 * and fails q by ENGINE_QP_FATAL unless q is in ERR.  Does so only once for
 * each cq. */
void ibt_overrun(struct ibt *t, struct ibt_qp *q, struct cq *cq);
/* Raises the events of cq that are due. */
void ibt_cq_tell(struct ibt *t, struct cq *cq);
/* Raises the limit event of a shared receive queue if the event is due. */
void ibt_srq_tell(struct ibt *t, struct srq *s);
/* Appends the completion c of q to the CQ at offset `cq`, and raises the events
 * that the completion causes; if the CQ is full, calls ibt_overrun instead.
 * Sets the completion's time.  While q executes requests under q's post lock
 * alone (direct_state.apart.is_running), sets apart.has_news instead of raising
 * events.  @solicited: the completion also raises the event of a CQ that is
 * armed for solicited completions only. */
void ibt_complete(struct ibt *t, struct ibt_qp *q, aoff cq, const struct cqe *c,
		  bool solicited);
/* Completes the oldest request of the send queue with `status`, and counts the
 * request.  Appends a completion only if the request is signaled or has failed.
 */
void ibt_request_done(struct ibt *t, struct ibt_qp *q, enum hca_status status);
/* w, the request at the cursor, has a local error: notes that w fails with this
 * status when the requests before w are complete, and explains the error by *x.
 */
void ibt_request_failed(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
			enum hca_status status, struct explain *x);
/* Counts a message for q that was dropped because of `why`, and explains the
 * first message that q drops for this reason since RESET, with the facts in *x.
 * Sets in *x the cause, the sender's QPN and the detail; for IBT_DROP_INVALID
 * the caller may have set the detail.  @src_qpn: the sender's QPN; 0: that of
 * q's peer. */
void ibt_dropped(struct ibt *t, struct ibt_qp *q, struct explain *x,
		 enum ibt_drop why, uint32_t src_qpn);
/*
 * Takes the responder lock for the owner, and collects the completions that
 * peers of this host have left at q.  False: a peer holds the lock for long.
 */
bool ibt_responder_enter(struct ibt *t, struct ibt_qp *q)
	TRY_ACQUIRE(true, &qp_target(q->qp)->lock);
/* Releases the responder lock. */
void ibt_responder_leave(struct ibt_qp *q) RELEASE(&qp_target(q->qp)->lock);
/* Returns the receive for the next message, which q holds from then on
 * (hca/rq.h); NULL: no receive is posted.  Raises the limit event of an SRQ if
 * the event is due.  UC and UD: under the responder lock. */
struct wqe *ibt_receive_take(struct ibt *t, struct ibt_qp *q);
/* Completes the receive that q holds (hca/rq.h) by *c, in which the function
 * sets wr_id and queue.  @solicited: the completion also raises the event of a
 * CQ that is armed for solicited completions only.  UC and UD: under the
 * responder lock. */
void ibt_receive_done(struct ibt *t, struct ibt_qp *q, struct cqe *c,
		      bool solicited);

/* Updates the words that other threads and `adverb top` read: q->flying,
 * q->is_unanswered, and why q does not send (qp_stats.wait). */
void ibt_qp_note(struct ibt_qp *q);

/* rc_req.c */
/* Forgets the requester's state. */
void rc_req_reset(struct ibt *t, struct ibt_qp *q);
/* Executes the requests at the cursor that send nothing, until one of them has
 * to wait or fails.  True: a request is at the cursor now, and q may send;
 * rc_req_tx judges whether that request may begin. */
bool rc_req_has_next(struct ibt *t, struct ibt_qp *q);
/* May q have a request to send?  If not, rc_req_tx finds nothing until the
 * program posts or modifies q, an answer comes, or a timer of q expires. */
bool rc_req_is_ready(const struct ibt_qp *q);
/*
 * Writes the next request packet, BTH to padding, into buf (IBT_PACKET_BYTES).
 * Returns its size; 0: there is nothing to send now.
 */
size_t rc_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf,
		 uint64_t now_ns);
/* No request will follow the request that was sent last.  If that request is a
 * SEND or WRITE whose last packet is unacknowledged, moves the cursor back to
 * this packet, which is then sent again and asks for an ACK. */
void rc_req_nudge(struct ibt *t, struct ibt_qp *q);
/* Sets the cursor to the packet with this PSN, which is at least q->req.una and
 * at most q->req.max. */
void rc_req_seek(struct ibt *t, struct ibt_qp *q, struct serial24 psn);
/* Makes the request at the cursor of q begin anew, in packets.  Until now the
 * requests of q have gone without packets; all before the cursor have
 * completed, and nothing of the one at the cursor was executed.  Returns the
 * PSN of the first packet. */
struct serial24 rc_req_begin_anew(struct ibt *t, struct ibt_qp *q);
/* Returns the PSN of the packet at the cursor. */
struct serial24 rc_req_next_psn(const struct ibt_qp *q);
/*
 * Executes the requests at the cursor that send nothing, and begins the request
 * after them.  Returns the request that has begun, or that had begun already;
 * NULL: no request may be sent now, or the request has a local error.
 */
struct wqe *rc_req_begin(struct ibt *t, struct ibt_qp *q);
/*
 * Begins the request at the cursor for a caller that may change nothing but q,
 * and returns the request.  Does so only if the request need not wait, has no
 * local error, and is one of these:
 *
 * - a SEND without Invalidate that may be an eager message
 * - a READ of one piece (direct_queues.piece)
 * - a WRITE of one piece, without immediate data
 * - an atomic other than an ATOMIC WRITE
 *
 * Also returns a SEND that has begun before a wait for a receive.  NULL:
 * nothing was changed.
 */
struct wqe *rc_req_begin_plain(struct ibt *t, struct ibt_qp *q);
/* Begins the request at the cursor, which was executed already, and returns it.
 * Judges nothing: the request may no longer be permitted, since its memory may
 * have been deregistered after it was executed.  NULL: q has failed. */
struct wqe *rc_req_begin_executed(struct ibt *t, struct ibt_qp *q);
/* Does the opcode of the request at the cursor, and the length of a SEND, allow
 * rc_req_begin_plain to begin the request? */
bool rc_req_is_plain(const struct ibt *t, const struct ibt_qp *q);
/* The packet or piece at the cursor was sent: moves the cursor to the next. */
void rc_req_advance(struct ibt *t, struct ibt_qp *q);
/* w, the request at the cursor, has a local error: w fails with `status` when
 * the requests before w are completed; *x says why. */
void rc_req_stop(struct ibt *t, struct ibt_qp *q, struct wqe *w,
		 enum hca_status status, struct explain *x);
/* Returns whether w is answered by a response (READ, atomic, ATOMIC WRITE)
 * rather than by an ACK. */
bool rc_req_is_read(const struct wqe *w);
/* Returns whether a packet with this PSN asks for an ACK whatever follows it:
 * one packet in a fixed number does. */
bool rc_req_asks(const struct ibt_qp *q, struct serial24 psn);
/* Has the request at the cursor begun?  The request may have no PSN yet: a READ
 * waits for the responses to earlier ones, or a direct request for its target.
 * q has no stream. */
bool rc_req_has_begun(const struct ibt_qp *q);
/* Returns the note on the request at this index of the send queue. */
struct req_note *rc_req_note(const struct ibt_qp *q, uint32_t index);
/* Finds the oldest READ or atomic that has begun and lacks a response, and sets
 * *psn to the PSN of the first response that is missing.  False: there is no
 * such request. */
bool rc_req_unanswered(const struct ibt *t, const struct ibt_qp *q,
		       struct serial24 *psn);

/* rc_comp.c */
/* Handles p, a packet that answers requests of q.  @bytes: the whole packet,
 * BTH to padding, which is copied if it comes before its turn. */
void rc_comp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const uint8_t *bytes, size_t len, uint64_t now_ns);
/* Returns whether p's PSN is unacknowledged or at most IBT_BEHIND before the
 * unacknowledged PSNs.  The sender of any other PSN guesses PSNs. */
bool rc_comp_fits(const struct ibt_qp *q, const struct pkt *p);
/* Completes the oldest requests while they need no answer: LOCAL_INV and
 * BIND_MW.  If the next request has a local error, fails it and the QP. */
void rc_comp_retire(struct ibt *t, struct ibt_qp *q);
/* In SQD: raises ENGINE_SQ_DRAINED, once and only if en_sqd_async_notify is
 * set, when all requests that were begun are complete. */
void rc_comp_drained(struct ibt *t, struct ibt_qp *q);
/* The peer has accepted all packets before psn, among which is no unanswered
 * READ or atomic: completes their requests. */
void rc_comp_accepted(struct ibt *t, struct ibt_qp *q, struct serial24 psn);
/* The local ACK timeout has expired: sends again from the oldest unacknowledged
 * PSN, by the alternate path if the retries are used up and the QP is armed
 * (migration.h).  Once the retries are used up, raises ENGINE_ASK_PEER at each
 * timeout, and fails the QP when engine_config.patience_ns is used up, too.  If
 * the peer was found alive and the last question has no answer by then, waits
 * for that answer, for half of patience_ns at most.
 * With engine_config.strict, or if the peer's QP or process has ended, only the
 * retries count. */
void rc_comp_timeout(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
/* Sends again all packets of q that are unacknowledged, because q's path has
 * changed. */
void rc_comp_resend(struct ibt *t, struct ibt_qp *q);
/* This process slept for slept_ns: engine_config.patience_ns does not count
 * that time, and the ACK timer is restarted, but only once until it is next
 * set. */
void rc_comp_asleep(struct ibt *t, struct ibt_qp *q, uint64_t slept_ns,
		    uint64_t now_ns);
/* The RNR timer has expired: sends again, if the wait is over. */
void rc_comp_rnr_over(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
/* Takes @state, the answer to ENGINE_ASK_PEER about q's peer.  Fails the oldest
 * request and the QP if the peer has ended or disconnected.  Does so only after
 * a longer silence if the peer's QP is closed, or if nothing is known about the
 * peer and the peer was never found alive.  Does nothing if q has not asked, or
 * if the peer has answered since. */
void rc_comp_peer(struct ibt *t, struct ibt_qp *q, enum engine_peer state,
		  uint64_t now_ns);
/* A piece of a direct request was placed: completes the request if the piece
 * was its last. */
void rc_comp_placed(struct ibt *t, struct ibt_qp *q);
/* The peer has no receive for the oldest request: waits as long as `timer`, the
 * value in the RNR NAK, says; or fails the QP if rnr_retry is used up. */
void rc_comp_rnr(struct ibt *t, struct ibt_qp *q, uint8_t timer,
		 uint64_t now_ns);
/* The peer has refused the oldest request: completes the request with @status,
 * and fails the QP. */
void rc_comp_refused(struct ibt *t, struct ibt_qp *q, enum hca_status status);
/* The target of a direct request does not answer: starts the ACK timer, unless
 * it runs already. */
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
/* Handles p, a request packet.  @bytes: the whole packet, BTH to padding, which
 * is copied if it comes before its turn. */
void rc_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const uint8_t *bytes, size_t len);
/* Returns whether p's PSN is at most IBT_HELD_AHEAD after or IBT_BEHIND before
 * the expected PSN, or p repeats a READ or an atomic.  The sender of any other
 * packet guesses PSNs, or has lost many packets. */
bool rc_resp_fits(const struct ibt_qp *q, const struct pkt *p);
/* The timer of the requests that came before their turn has expired: drops
 * these requests. */
void rc_resp_reorder_over(struct ibt *t, struct ibt_qp *q);

/* rc_reply.c */
/* Writes the next packet of q's replies, BTH to padding, into buf
 * (IBT_PACKET_BYTES).  Returns its size; 0: there is no reply. */
size_t rc_reply_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf);
/* Queues the coalesced ACK if it is due (rc_reply_settle), and then writes the
 * next packet of q's replies as rc_reply_tx does. */
size_t rc_reply_ack_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf);
/* The QP enters ERR: drops the first reply to a READ with data and all replies
 * after it, so that no more memory is read.  The replies before it are still
 * sent. */
void rc_reply_stop(struct ibt_qp *q);
/* Returns whether a reply or a coalesced ACK is due. */
bool rc_reply_is_due(const struct ibt_qp *q);
/* Appends a zeroed reply to the ring of replies and returns it, owned by q. The
 * ring must have room. */
struct reply *rc_reply_push(struct ibt_qp *q);
/* Returns the first reply that is due, owned by q; NULL: there is none. */
struct reply *rc_reply_first(struct ibt_qp *q);
/* Queues an ACK or NAK with this PSN and syndrome.  The ring of replies must
 * have room. */
void rc_reply_ack(struct ibt *t, struct ibt_qp *q, struct serial24 psn,
		  uint8_t syndrome);
/* Queues the coalesced ACK, of all packets before the expected PSN, if an ACK
 * is due. */
void rc_reply_settle(struct ibt *t, struct ibt_qp *q);

#endif
