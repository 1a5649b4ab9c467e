/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state table of a conversation: step[state][input] has an action and the
 * next state (IBTA 12.9.7, 12.9.8; SIDR 12.11.1).  An empty cell means that the
 * state does not expect the input: a message is then counted and ignored, and a
 * command returns -EINVAL.
 */
#include <string.h>

#include "cm/conv.h"
#include "util/bits.h"
#include "util/check.h"

/* The first wait for an answer, unless conv.is_strict is set.  Each further
 * wait is twice as long, up to the conversation's timeout. */
#define FIRST_NS 250000000u

/* The constants *_EXP and WAIT_MAX are exponents: n stands for 4.096 us * 2^n.
 */

/* How long our MRA asks the sender of a REQ to wait, 69 s: a debugger may have
 * stopped the consumer. */
#define MRA_REQ_EXP 24
/* How long our MRA asks the sender of a REP to wait, 1 s.  If our RTU is lost,
 * the peer repeats the REP after that time. */
#define MRA_REP_EXP  18
#define WAIT_MAX     24 /* the longest wait for an answer */
#define TIMEWAIT_EXP 17 /* twice the lifetime of a packet: 0.5 s */
/* How long a conversation stays in ANSWERED, 8.6 s: longer than the 4.3 s for
 * which rdma_cm waits for an answer. */
#define ANSWERED_EXP 21
/* The longest wait for the answer to a DREQ of a released conversation, 4.3 s,
 * and the number of such waits. */
#define RELEASED_EXP   20
#define RELEASED_TRIES 5

static uint64_t exponent_ns(uint8_t exponent)
{
	return 4096ull << exponent;
}

static struct cm_frame *frame_mad(struct cm *cm, const uint8_t from[16],
				  const uint8_t to[16])
{
	struct cm_frame *f;

	CHECK(cm->out.tx_count < CONV_RING);
	f = &cm->out.tx[(cm->out.tx_head + cm->out.tx_count++) % CONV_RING];
	memcpy(f->from, from, 16);
	memcpy(f->to, to, 16);
	f->way = cm->rx_way;
	f->owner = 0;
	cm->counters.tx++;
	return f;
}

static struct cm_frame *frame_of(struct cm *cm, const struct conv *c)
{
	struct cm_frame *f = frame_mad(cm, c->local, c->peer);

	f->way = c->way;
	f->owner = c->owner ? c->owner->number : 0;
	return f;
}

void step_send_bare(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
		    const struct cmmsg *msg)
{
	cmmsg_write(frame_mad(cm, from, to)->mad, msg);
}

static void address_message(const struct conv *c, struct cmmsg *m)
{
	m->transaction_id = c->transaction_id;
	m->local_id = c->local_id;
	m->remote_id = c->remote_id;
}

void step_again(struct cm *cm, struct conv *c)
{
	memcpy(frame_of(cm, c)->mad, c->retry.last, MAD_BYTES);
}

void step_keep(struct conv *c, struct cmmsg *msg)
{
	address_message(c, msg);
	/* SIDR has one id, the requester's (IBTA 12.11.2) */
	if (msg->kind == CMMSG_SIDR_REP)
		msg->local_id = c->remote_id;
	cmmsg_write(c->retry.last, msg);
}

void step_send(struct cm *cm, struct conv *c, struct cmmsg *msg)
{
	step_keep(c, msg);
	step_again(cm, c);
}

static void send_by(struct cm *cm, const struct conv *c,
		    uint64_t transaction_id, struct cmmsg msg)
{
	address_message(c, &msg);
	msg.transaction_id = transaction_id;
	cmmsg_write(frame_of(cm, c)->mad, &msg);
}

/* Sends a message that no retry repeats. */
static void send_message(struct cm *cm, const struct conv *c, struct cmmsg msg)
{
	send_by(cm, c, c->transaction_id, msg);
}

void step_emit(struct cm *cm, const struct conv *c, enum cm_event_type type,
	       const struct cmmsg *msg)
{
	struct cm_event *e;

	if (c->is_released)
		return;
	CHECK(cm->out.event_count < CONV_RING);
	e = &cm->out.event[(cm->out.event_head + cm->out.event_count++) %
			   CONV_RING];
	memset(e, 0, sizeof(*e));
	e->type = type;
	e->id = c->local_id;
	e->user = c->user;
	memcpy(e->local, c->local, 16);
	memcpy(e->peer, c->peer, 16);
	e->scope = c->way.scope;
	if (msg)
		e->msg = *msg;
}

static void arm_timer(struct cm *cm, struct conv *c, uint64_t wait_ns,
		      uint64_t now)
{
	wheel_set(&cm->wheel, &c->timer, now + wait_ns);
}

/* How long to wait before the next try.  The first waits are short, so that a
 * lost message costs little time. */
static uint64_t next_wait(const struct conv *c)
{
	uint64_t full = exponent_ns(c->retry.timeout_exponent);
	uint64_t wait = c->retry.count < 16
				? (uint64_t)FIRST_NS << c->retry.count
				: full;

	return c->is_strict || wait > full ? full : wait;
}

void step_arm(struct cm *cm, struct conv *c, uint8_t timeout, uint8_t tries,
	      uint64_t now_ns)
{
	c->retry.timeout_exponent = timeout > WAIT_MAX ? WAIT_MAX : timeout;
	c->retry.left = tries;
	c->retry.count = 0;
	arm_timer(cm, c, next_wait(c), now_ns);
}

/* The actions of the table's cells.  msg: as in step_run. */
typedef void action(struct cm *cm, struct conv *c, struct cmmsg *msg,
		    uint64_t now);

static void do_nothing(struct cm *cm, struct conv *c, struct cmmsg *msg,
		       uint64_t now)
{
}

static void count_again(struct cm *cm, struct conv *c, struct cmmsg *msg,
			uint64_t now)
{
	cm->counters.duplicates++;
}

/* Sends the last message again; the timer of its retries stays as it is. */
static void resend_message(struct cm *cm, struct conv *c, struct cmmsg *msg,
			   uint64_t now)
{
	step_again(cm, c);
}

/*
 * Is the peer's end of c also a conversation of this manager, one that has
 * received the last message of c and waits for its consumer or, in HELD, for a
 * listener?  Then no message was lost.
 */
static bool is_received(struct cm *cm, const struct conv *c)
{
	const struct conv *other = conv_find_remote(cm, c->local, c->local_id);
	enum conv_state state = other ? other->state : CONV_FREE;

	if (!other || memcmp(other->local, c->peer, 16) != 0)
		return false;
	if (c->state == CONV_DREQ_SENT)
		return state == CONV_DREQ_RCVD;
	if (c->is_passive)
		return state == CONV_REP_RCVD;
	return state == CONV_REQ_RCVD || state == CONV_SIDR_RCVD ||
	       state == CONV_HELD;
}

/* Repeats the last message.  Unless c->is_strict is set, a message is not
 * repeated if is_received shows that the peer has it.  A repetition of a REQ or
 * REP that is omitted uses up no try, as if an MRA had come. */
static void repeat_message(struct cm *cm, struct conv *c, struct cmmsg *msg,
			   uint64_t now)
{
	bool is_needless = !c->is_strict && is_received(cm, c);

	if (is_needless && c->state != CONV_DREQ_SENT &&
	    c->state != CONV_SIDR_SENT) {
		arm_timer(cm, c, next_wait(c), now);
		return;
	}
	c->retry.left--;
	c->retry.count++;
	arm_timer(cm, c, next_wait(c), now);
	if (is_needless)
		return;
	cm->counters.retries++;
	step_again(cm, c);
}

/* The peer has sent an MRA, so it is alive.  Unless c->is_strict is set, c gets
 * all its tries again. */
static void wait_longer(struct cm *cm, struct conv *c, struct cmmsg *msg,
			uint64_t now)
{
	uint8_t exponent = msg->service_timeout > WAIT_MAX
				   ? WAIT_MAX
				   : msg->service_timeout;
	uint64_t more = exponent_ns(c->retry.timeout_exponent);

	if (!c->is_strict) {
		c->retry.left = c->retry.given;
		more = FIRST_NS;
	}
	arm_timer(cm, c, exponent_ns(exponent) + more, now);
}

/* Asks the peer for more time, since the consumer has not answered yet. */
static void say_mra(struct cm *cm, struct conv *c, struct cmmsg *msg,
		    uint64_t now)
{
	send_message(cm, c,
		     (struct cmmsg){.kind = CMMSG_MRA,
				    .answers = c->is_passive ? CMMSG_OF_REQ
							     : CMMSG_OF_REP,
				    .service_timeout = c->is_passive
							       ? MRA_REQ_EXP
							       : MRA_REP_EXP});
}

static void say_drep(struct cm *cm, struct conv *c, struct cmmsg *msg,
		     uint64_t now)
{
	send_message(cm, c, (struct cmmsg){.kind = CMMSG_DREP});
}

/* Answers a DREQ at once.  The DREP has the DREQ's transaction id, which need
 * not be that of the connection (IBTA 13.4.2). */
static void answer_dreq(struct cm *cm, struct conv *c, struct cmmsg *msg,
			uint64_t now)
{
	send_by(cm, c, msg->transaction_id, (struct cmmsg){.kind = CMMSG_DREP});
}

/* Rejects a REQ.  The REJ has the REQ's transaction id: the REQ may be of a new
 * connection. */
static void say_stale(struct cm *cm, struct conv *c, struct cmmsg *msg,
		      uint64_t now)
{
	cm->counters.stale++;
	send_by(cm, c, msg->transaction_id,
		(struct cmmsg){.kind = CMMSG_REJ,
			       .answers = CMMSG_OF_REQ,
			       .reason = CMMSG_REJ_STALE});
}

/* Rejects a REP or RTU: this end of the conversation has ended.  The REJ has
 * the transaction id of that message. */
static void say_unknown(struct cm *cm, struct conv *c, struct cmmsg *msg,
			uint64_t now)
{
	send_by(cm, c, msg->transaction_id,
		(struct cmmsg){.kind = CMMSG_REJ,
			       .answers = msg->kind == CMMSG_REP
						  ? CMMSG_OF_REP
						  : CMMSG_OF_OTHER,
			       .reason = CMMSG_REJ_BAD_COMM_ID});
}

/*
 * Tells the peer that we give up.  We may not know the peer's id yet.  Then the
 * peer finds the conversation by our id together with our address or, as Linux
 * does, with our GUID (IBTA 12.6.7.2, reason 4).  The GUID is copied from our
 * REQ or REP.
 */
static void say_timeout(struct cm *cm, struct conv *c, struct cmmsg *msg,
			uint64_t now)
{
	struct cmmsg m = {.kind = CMMSG_REJ,
			  .answers =
				  c->is_passive ? CMMSG_OF_REP : CMMSG_OF_REQ,
			  .reason = CMMSG_REJ_TIMEOUT,
			  .info_bytes = 8};

	memcpy(m.info,
	       c->retry.last + MAD_HEADER_BYTES + (c->is_passive ? 28 : 16), 8);
	send_message(cm, c, m);
}

/* msg is the peer's REJ; NULL: the input is IN_STALE. */
static void peer_refused(struct cm *cm, struct conv *c, struct cmmsg *msg,
			 uint64_t now)
{
	step_emit(cm, c, CM_REJECTED, msg);
}

static void peer_responded(struct cm *cm, struct conv *c, struct cmmsg *msg,
			   uint64_t now)
{
	wheel_cancel(&cm->wheel, &c->timer);
	conv_set_remote(cm, c, msg->local_id);
	conv_set_qpn(cm, c, msg->qp.qpn);
	step_emit(cm, c, CM_RESPONSE, msg);
}

/* msg is the peer's RTU or, if the consumer has called cm_establish, a message
 * of kind 0. */
static void peer_connected(struct cm *cm, struct conv *c, struct cmmsg *msg,
			   uint64_t now)
{
	wheel_cancel(&cm->wheel, &c->timer);
	step_emit(cm, c, CM_ESTABLISHED, msg);
}

static void peer_ended(struct cm *cm, struct conv *c, struct cmmsg *msg,
		       uint64_t now)
{
	step_emit(cm, c, CM_DISCONNECTED, msg);
}

/*
 * A DREQ has come.  The DREP is sent when the consumer disconnects or releases
 * the conversation (IBTA 12.9.7).  So the DREP tells the peer that the consumer
 * knows of the end, too.
 */
static void peer_ends(struct cm *cm, struct conv *c, struct cmmsg *msg,
		      uint64_t now)
{
	wheel_cancel(&cm->wheel, &c->timer);
	c->transaction_id = msg->transaction_id; /* for the DREP */
	peer_ended(cm, c, msg, now);
}

/* The peer has accepted, and has ended the connection before it was
 * established. */
static void request_withdrawn(struct cm *cm, struct conv *c, struct cmmsg *msg,
			      uint64_t now)
{
	const struct cmmsg rej = {.kind = CMMSG_REJ,
				  .reason = CMMSG_REJ_CONSUMER};

	answer_dreq(cm, c, msg, now);
	step_emit(cm, c, CM_REJECTED, &rej);
}

/* The DREQ had no answer.  The consumer gets CM_DISCONNECTED, as after a DREP,
 * but without a message. */
static void end_unanswered(struct cm *cm, struct conv *c, struct cmmsg *msg,
			   uint64_t now)
{
	c->retry.is_unanswered = true;
	peer_ended(cm, c, msg, now);
}

static void no_answer(struct cm *cm, struct conv *c, struct cmmsg *msg,
		      uint64_t now)
{
	step_emit(cm, c, CM_UNREACHABLE, NULL);
}

/* The tries of our REQ or REP are used up. */
static void give_up(struct cm *cm, struct conv *c, struct cmmsg *msg,
		    uint64_t now)
{
	c->retry.is_unanswered = true;
	say_timeout(cm, c, msg, now);
	no_answer(cm, c, msg, now);
}

static void service_resolved(struct cm *cm, struct conv *c, struct cmmsg *msg,
			     uint64_t now)
{
	step_emit(cm, c, CM_RESOLVED, msg);
}

static void timer_expired(struct cm *cm, struct conv *c, struct cmmsg *msg,
			  uint64_t now)
{
	step_emit(cm, c, CM_TIMEWAIT_EXIT, NULL);
}

/* Has the request, which is the last message that c keeps, an alternate path?
 */
static bool offers_alternate(const struct conv *c)
{
	struct cmmsg m;

	return cmmsg_parse(c->retry.last, MAD_BYTES, &m) &&
	       m.kind == CMMSG_REQ && m.alternate.local_lid;
}

/* msg->failover is the consumer's answer to an alternate path (IBTA 12.6.8). */
static void send_rep(struct cm *cm, struct conv *c, struct cmmsg *msg,
		     uint64_t now)
{
	msg->kind = CMMSG_REP;
	if (!offers_alternate(c))
		msg->failover = CMMSG_FAILOVER_ACCEPTED;
	step_send(cm, c, msg);
	step_arm(cm, c, c->retry.timeout_exponent, c->retry.given, now);
}

static void send_rej(struct cm *cm, struct conv *c, struct cmmsg *msg,
		     uint64_t now)
{
	msg->kind = CMMSG_REJ;
	msg->answers = c->is_passive ? CMMSG_OF_REQ : CMMSG_OF_REP;
	step_send(cm, c, msg);
}

static void send_sidr(struct cm *cm, struct conv *c, struct cmmsg *msg,
		      uint64_t now)
{
	msg->kind = CMMSG_SIDR_REP;
	step_send(cm, c, msg);
}

static void send_rtu(struct cm *cm, struct conv *c, struct cmmsg *msg,
		     uint64_t now)
{
	step_send(cm, c, &(struct cmmsg){.kind = CMMSG_RTU});
}

static void send_dreq(struct cm *cm, struct conv *c, struct cmmsg *msg,
		      uint64_t now)
{
	step_send(cm, c,
		  &(struct cmmsg){.kind = CMMSG_DREQ, .qp.qpn = c->remote_qpn});
	step_arm(cm, c, c->retry.timeout_exponent, c->retry.given, now);
}

/* The consumer has released the conversation while a DREQ is outstanding.  The
 * peer's REQ may have asked for waits of ten minutes together; nobody needs
 * the conversation that long. */
static void bound_waits(struct cm *cm, struct conv *c, struct cmmsg *msg,
			uint64_t now)
{
	step_arm(cm, c, bits_min_u8(c->retry.timeout_exponent, RELEASED_EXP),
		 bits_min_u8(c->retry.left, RELEASED_TRIES), now);
}

static void send_last_dreq(struct cm *cm, struct conv *c, struct cmmsg *msg,
			   uint64_t now)
{
	send_dreq(cm, c, msg, now);
	bound_waits(cm, c, msg, now);
}

/* The consumer has released the conversation without an answer to the peer's
 * REQ or REP. */
static void abandon_conv(struct cm *cm, struct conv *c, struct cmmsg *msg,
			 uint64_t now)
{
	send_rej(cm, c, &(struct cmmsg){.reason = CMMSG_REJ_CONSUMER}, now);
}

static void abandon_sidr(struct cm *cm, struct conv *c, struct cmmsg *msg,
			 uint64_t now)
{
	send_sidr(cm, c, &(struct cmmsg){.status = CMMSG_SIDR_REJECTED}, now);
}

struct cell {
	action *action; /* NULL: an empty cell */
	enum conv_state next;
};

/* clang-format off */
#define GO(action, next) {action, CONV_##next}

static const struct cell step[CONV_STATES][CONV_INPUTS] = {
	[CONV_REQ_SENT] = {
		[IN_MRA]	= GO(wait_longer,	REQ_WAIT),
		[IN_REJ]	= GO(peer_refused,		CLOSED),
		[IN_REP]	= GO(peer_responded,		REP_RCVD),
		[IN_DREQ]	= GO(request_withdrawn,		CLOSED),
		[IN_DISCONNECT]	= GO(do_nothing,		REQ_SENT),
		[IN_RELEASE]	= GO(say_timeout,	CLOSED),
		[IN_RETRY]	= GO(repeat_message,		REQ_SENT),
		[IN_EXHAUSTED]	= GO(give_up,		CLOSED),
	},
	[CONV_REQ_WAIT] = {
		[IN_MRA]	= GO(wait_longer,	REQ_WAIT),
		[IN_REJ]	= GO(peer_refused,		CLOSED),
		[IN_REP]	= GO(peer_responded,		REP_RCVD),
		[IN_DREQ]	= GO(request_withdrawn,		CLOSED),
		[IN_DISCONNECT]	= GO(do_nothing,		REQ_WAIT),
		[IN_RELEASE]	= GO(say_timeout,	CLOSED),
		[IN_RETRY]	= GO(repeat_message,		REQ_SENT),
		[IN_EXHAUSTED]	= GO(give_up,		CLOSED),
	},
	[CONV_REP_RCVD] = {
		[IN_REP]	= GO(say_mra,		REP_RCVD),
		[IN_REJ]	= GO(peer_refused,		CLOSED),
		[IN_DREQ]	= GO(request_withdrawn,		CLOSED),
		[IN_REJECT]	= GO(send_rej,		ANSWERED),
		[IN_ESTABLISH]	= GO(send_rtu,		ESTABLISHED),
		[IN_DISCONNECT]	= GO(do_nothing,		REP_RCVD),
		[IN_RELEASE]	= GO(abandon_conv,		ANSWERED),
		[IN_STALE]	= GO(peer_refused,		CLOSED),
	},
	[CONV_REQ_RCVD] = {
		[IN_REQ]	= GO(say_mra,		REQ_RCVD),
		[IN_REJ]	= GO(peer_refused,		CLOSED),
		[IN_ACCEPT]	= GO(send_rep,		REP_SENT),
		[IN_REJECT]	= GO(send_rej,		ANSWERED),
		[IN_DISCONNECT]	= GO(do_nothing,		REQ_RCVD),
		[IN_RELEASE]	= GO(abandon_conv,		ANSWERED),
		[IN_STALE]	= GO(peer_refused,		CLOSED),
	},
	[CONV_REP_SENT] = {
		[IN_REQ]	= GO(resend_message,		REP_SENT),
		[IN_MRA]	= GO(wait_longer,	REP_WAIT),
		[IN_REJ]	= GO(peer_refused,		CLOSED),
		[IN_RTU]	= GO(peer_connected,		ESTABLISHED),
		[IN_DREQ]	= GO(peer_ends,		DREQ_RCVD),
		[IN_ESTABLISH]	= GO(peer_connected,		ESTABLISHED),
		[IN_DISCONNECT]	= GO(send_dreq,		DREQ_SENT),
		[IN_RELEASE]	= GO(send_last_dreq,	DREQ_SENT),
		[IN_RETRY]	= GO(repeat_message,		REP_SENT),
		[IN_EXHAUSTED]	= GO(give_up,		TIMEWAIT),
		[IN_STALE]	= GO(send_dreq,		DREQ_SENT),
	},
	[CONV_REP_WAIT] = {
		[IN_REQ]	= GO(do_nothing,		REP_WAIT),
		[IN_MRA]	= GO(wait_longer,	REP_WAIT),
		[IN_REJ]	= GO(peer_refused,		CLOSED),
		[IN_RTU]	= GO(peer_connected,		ESTABLISHED),
		[IN_DREQ]	= GO(peer_ends,		DREQ_RCVD),
		[IN_ESTABLISH]	= GO(peer_connected,		ESTABLISHED),
		[IN_DISCONNECT]	= GO(send_dreq,		DREQ_SENT),
		[IN_RELEASE]	= GO(send_last_dreq,	DREQ_SENT),
		[IN_RETRY]	= GO(repeat_message,		REP_SENT),
		[IN_EXHAUSTED]	= GO(give_up,		TIMEWAIT),
		[IN_STALE]	= GO(send_dreq,		DREQ_SENT),
	},
	[CONV_ESTABLISHED] = {
		[IN_REQ]	= GO(do_nothing,		ESTABLISHED),
		[IN_MRA]	= GO(do_nothing,		ESTABLISHED),
		[IN_REJ]	= GO(peer_ended,		TIMEWAIT),
		[IN_REP]	= GO(resend_message,		ESTABLISHED),
		[IN_RTU]	= GO(do_nothing,		ESTABLISHED),
		[IN_DREQ]	= GO(peer_ends,		DREQ_RCVD),
		[IN_ESTABLISH]	= GO(do_nothing,		ESTABLISHED),
		[IN_DISCONNECT]	= GO(send_dreq,		DREQ_SENT),
		[IN_RELEASE]	= GO(send_last_dreq,	DREQ_SENT),
		[IN_STALE]	= GO(send_dreq,		DREQ_SENT),
	},
	[CONV_DREQ_SENT] = {
		[IN_MRA]	= GO(do_nothing,		DREQ_SENT),
		[IN_REJ]	= GO(peer_ended,		TIMEWAIT),
		[IN_REP]	= GO(do_nothing,		DREQ_SENT),
		[IN_RTU]	= GO(do_nothing,		DREQ_SENT),
		[IN_DREQ]	= GO(peer_ends,		DREQ_RCVD),
		[IN_DREP]	= GO(peer_ended,		TIMEWAIT),
		[IN_DISCONNECT]	= GO(do_nothing,		DREQ_SENT),
		[IN_RELEASE]	= GO(bound_waits,	DREQ_SENT),
		[IN_RETRY]	= GO(repeat_message,		DREQ_SENT),
		[IN_EXHAUSTED]	= GO(end_unanswered,		TIMEWAIT),
	},
	[CONV_DREQ_RCVD] = {
		[IN_REQ]	= GO(do_nothing,		DREQ_RCVD),
		[IN_MRA]	= GO(do_nothing,		DREQ_RCVD),
		[IN_REP]	= GO(do_nothing,		DREQ_RCVD),
		[IN_RTU]	= GO(do_nothing,		DREQ_RCVD),
		[IN_DREQ]	= GO(count_again,	DREQ_RCVD),
		[IN_DREP]	= GO(do_nothing,		TIMEWAIT),
		[IN_DISCONNECT]	= GO(say_drep,		TIMEWAIT),
		[IN_RELEASE]	= GO(say_drep,		TIMEWAIT),
	},
	[CONV_HELD] = { /* cm_tick calls request_due when the timer expires */
		[IN_REQ]	= GO(do_nothing,		HELD),
		[IN_REJ]	= GO(do_nothing,		CLOSED),
		[IN_SIDR_REQ]	= GO(do_nothing,		HELD),
	},
	[CONV_TIMEWAIT] = {
		[IN_REQ]	= GO(say_stale,		TIMEWAIT),
		[IN_REP]	= GO(say_unknown,	TIMEWAIT),
		[IN_RTU]	= GO(say_unknown,	TIMEWAIT),
		[IN_DREQ]	= GO(answer_dreq,	TIMEWAIT),
		[IN_DREP]	= GO(do_nothing,		TIMEWAIT),
		[IN_DISCONNECT]	= GO(do_nothing,		TIMEWAIT),
		[IN_RELEASE]	= GO(do_nothing,		TIMEWAIT),
		[IN_EXHAUSTED]	= GO(timer_expired,		CLOSED),
	},
	[CONV_SIDR_SENT] = {
		[IN_SIDR_REP]	= GO(service_resolved,		CLOSED),
		[IN_DISCONNECT]	= GO(do_nothing,		SIDR_SENT),
		[IN_RELEASE]	= GO(do_nothing,		CLOSED),
		[IN_RETRY]	= GO(repeat_message,		SIDR_SENT),
		[IN_EXHAUSTED]	= GO(no_answer,		CLOSED),
	},
	[CONV_SIDR_RCVD] = {
		[IN_SIDR_REQ]	= GO(do_nothing,		SIDR_RCVD),
		[IN_ACCEPT]	= GO(send_sidr,		ANSWERED),
		[IN_REJECT]	= GO(send_sidr,		ANSWERED),
		[IN_DISCONNECT]	= GO(do_nothing,		SIDR_RCVD),
		[IN_RELEASE]	= GO(abandon_sidr,	ANSWERED),
	},
	[CONV_ANSWERED] = {
		[IN_REQ]	= GO(resend_message,		ANSWERED),
		[IN_REJ]	= GO(do_nothing,		ANSWERED),
		[IN_REP]	= GO(resend_message,		ANSWERED),
		[IN_DREQ]	= GO(answer_dreq,	ANSWERED),
		[IN_SIDR_REQ]	= GO(resend_message,		ANSWERED),
		[IN_DISCONNECT]	= GO(do_nothing,		ANSWERED),
		[IN_RELEASE]	= GO(do_nothing,		ANSWERED),
		[IN_EXHAUSTED]	= GO(do_nothing,		CLOSED),
	},
	[CONV_CLOSED] = {
		[IN_REP]	= GO(say_unknown,	CLOSED),
		[IN_RTU]	= GO(say_unknown,	CLOSED),
		[IN_DREQ]	= GO(answer_dreq,	CLOSED),
		[IN_DISCONNECT]	= GO(do_nothing,		CLOSED),
		[IN_RELEASE]	= GO(do_nothing,		CLOSED),
	},
};
/* clang-format on */

/* The time that a conversation spends in TIMEWAIT or in ANSWERED does not
 * depend on the state from which it has come. */
void step_linger(struct cm *cm, struct conv *c, uint64_t now_ns)
{
	if (c->state != CONV_TIMEWAIT && c->state != CONV_ANSWERED)
		return;
	c->retry.left = 0;
	arm_timer(cm, c,
		  exponent_ns(c->state == CONV_TIMEWAIT ? TIMEWAIT_EXP
							: ANSWERED_EXP),
		  now_ns);
}

static bool run_cell(struct cm *cm, struct conv *c, enum conv_input input,
		     struct cmmsg *msg, uint64_t now_ns)
{
	const struct cell *cell = &step[c->state][input];
	enum conv_state next = cell->next, old = c->state;

	if (!cell->action)
		return false;
	if (input == IN_DREQ || input == IN_DREP)
		c->retry.is_unanswered = false; /* a late answer */
	cell->action(cm, c, msg, now_ns);
	if (input == IN_RELEASE)
		c->is_released = true;
	if (next != old || next == CONV_CLOSED)
		conv_enter(cm, c, next);
	if (next != old)
		step_linger(cm, c, now_ns);
	return true;
}

bool step_run(struct cm *cm, struct conv *c, enum conv_input input,
	      struct cmmsg *msg, uint64_t now_ns)
{
	if (!run_cell(cm, c, input, msg, now_ns))
		return false;
	/* no consumer is left to answer the DREQ */
	if (c->state == CONV_DREQ_RCVD && c->is_released)
		run_cell(cm, c, IN_RELEASE, NULL, now_ns);
	return true;
}
