/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes, from which another manager continues a conversation; see cm.h. */
#include <errno.h>
#include <string.h>

#include "cm/conv.h"

/* How a conversation continues from a note of its state. */
struct phase {
	bool is_resumed; /* a conversation in this state can continue */
	/* The note's message is sent at once: the peer may not have got it. */
	bool is_repeated;
	/* The kind of the message that the note must have, 0: none.  In most
	 * states this message may be sent again: by a retry, or when the peer
	 * repeats its own message. */
	enum cmmsg_kind last_sent;
};

static struct phase phase_of(enum conv_state state, bool is_passive)
{
	switch (state) {
	case CONV_REQ_SENT:
	case CONV_REQ_WAIT:
		return (struct phase){!is_passive, true, CMMSG_REQ};
	case CONV_REP_RCVD:
		return (struct phase){!is_passive, false, CMMSG_REQ};
	case CONV_REQ_RCVD:
		return (struct phase){is_passive, false, 0};
	case CONV_REP_SENT:
	case CONV_REP_WAIT:
		return (struct phase){is_passive, true, CMMSG_REP};
	case CONV_ESTABLISHED:
		return (struct phase){true, false,
				      is_passive ? CMMSG_REP : CMMSG_RTU};
	case CONV_DREQ_SENT:
		return (struct phase){true, true, CMMSG_DREQ};
	case CONV_DREQ_RCVD:
	case CONV_TIMEWAIT:
		return (struct phase){true, false, 0};
	case CONV_SIDR_SENT:
		return (struct phase){!is_passive, true, CMMSG_SIDR_REQ};
	case CONV_SIDR_RCVD:
		return (struct phase){is_passive, false, 0};
	case CONV_FREE:
	case CONV_ANSWERED:
	case CONV_CLOSED:
	case CONV_HELD:
	case CONV_STATES:
		break;
	}
	return (struct phase){0};
}

void cm_note_make(struct cm *cm, uint32_t id, struct cm_note *note)
{
	const struct conv *c = conv_find(cm, id);

	memset(note, 0, sizeof(*note));
	if (!c || c->is_released ||
	    !phase_of(c->state, c->is_passive).is_resumed)
		return;
	*note = (struct cm_note){.local_id = c->local_id,
				 .remote_id = c->remote_id,
				 .remote_qpn = c->remote_qpn,
				 .scope = c->way.scope,
				 .transaction_id = c->transaction_id,
				 .state = (uint8_t)c->state,
				 .is_passive = c->is_passive,
				 .is_strict = c->is_strict,
				 .is_unproven = c->is_unproven,
				 .is_unanswered = c->retry.is_unanswered,
				 .timeout = c->retry.timeout_exponent,
				 .tries = c->retry.given};
	memcpy(note->local, c->local, 16);
	memcpy(note->peer, c->peer, 16);
	memcpy(note->last, c->retry.last, MAD_BYTES);
}

/* Does the note describe a conversation that can exist?  Parses the note's
 * message into *last if the phase needs one. */
static bool is_sane(const struct cm_note *n, const struct phase *phase,
		    struct cmmsg *last)
{
	if (!n->local_id || !phase->is_resumed ||
	    (!n->remote_id && phase->last_sent != CMMSG_REQ &&
	     phase->last_sent != CMMSG_SIDR_REQ))
		return false;
	if (!phase->last_sent)
		return true;
	return cmmsg_parse(n->last, MAD_BYTES, last) &&
	       last->kind == phase->last_sent;
}

static void take_note(struct cm *cm, struct conv *c, const struct cm_note *n)
{
	memcpy(c->local, n->local, 16);
	memcpy(c->peer, n->peer, 16);
	c->way.scope = n->scope;
	c->transaction_id = n->transaction_id;
	c->is_passive = n->is_passive != 0;
	c->is_strict = n->is_strict != 0;
	c->is_unproven = n->is_unproven != 0;
	c->retry.is_unanswered = n->is_unanswered != 0;
	c->retry.timeout_exponent = n->timeout;
	c->retry.given = n->tries;
	if (n->remote_id)
		conv_set_remote(cm, c, n->remote_id);
	conv_set_qpn(cm, c, n->remote_qpn & 0xffffff);
	conv_enter(cm, c, (enum conv_state)n->state);
}

static int resume_conv(struct cm *cm, struct cm_owner *owner, uint64_t user,
		       const struct cm_note *note, bool goes_on,
		       uint64_t now_ns, uint32_t *id)
{
	struct phase phase = note->state < CONV_STATES
				     ? phase_of((enum conv_state)note->state,
						note->is_passive != 0)
				     : (struct phase){0};
	struct cmmsg last = {0};
	struct conv *c;
	int err;

	if (!is_sane(note, &phase, &last))
		return -EINVAL;
	c = note->remote_id ? conv_find_remote(cm, note->peer, note->remote_id)
			    : NULL;
	/* A held conversation with the note's remote id has the same request
	 * as the note: the peer repeated the request before the note came. */
	if (c && c->state == CONV_HELD) {
		conv_free(cm, c);
		c = NULL;
	}
	/* A released conversation with the note's remote id does no harm.  The
	 * peer has repeated the note's request before the note came, this
	 * manager took the repetition for a new request, and the consumer has
	 * released the conversation of that request. */
	if (conv_find(cm, note->local_id) || (c && !c->is_released))
		return -EEXIST;
	err = conv_new(cm, owner, note->local_id, &c);
	if (err)
		return err;
	c->user = user;
	take_note(cm, c, note);
	/* step_keep writes the conversation's ids into the message, since the
	 * ids in the note's message are not trusted */
	if (phase.last_sent)
		step_keep(c, &last);
	else if (c->state == CONV_REQ_RCVD)
		memcpy(c->retry.last, note->last, MAD_BYTES);
	/* cm_note_release (goes_on is false) ends the conversation next: then
	 * only a DREQ is worth sending again */
	if (phase.is_repeated && (goes_on || phase.last_sent == CMMSG_DREQ)) {
		step_again(cm, c);
		step_arm(cm, c, note->timeout, note->tries, now_ns);
	}
	step_linger(cm, c, now_ns);
	*id = c->local_id;
	return 0;
}

int cm_note_resume(struct cm *cm, struct cm_owner *owner, uint64_t user,
		   const struct cm_note *note, uint64_t now_ns, uint32_t *id)
{
	return resume_conv(cm, owner, user, note, true, now_ns, id);
}

void cm_note_release(struct cm *cm, struct cm_owner *owner,
		     const struct cm_note *note, uint64_t now_ns)
{
	uint32_t id;

	if (!resume_conv(cm, owner, 0, note, false, now_ns, &id))
		cm_release(cm, id, now_ns);
}
