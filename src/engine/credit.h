/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control within a host: a socket's receive buffer is small and what does
 * not fit is lost, so each process says in a page that others can read what it
 * has taken out, and who sends to it keeps what is under way below its share.
 *
 *	receiver, in its page			sender
 *	capacity, senders	-> share
 *	drained[my class]	-> under way = sent - drained
 *	empties			-> moved twice since I sent, a while ago: all
 *				   was taken, or is lost
 *
 * Those that are counted as senders share seven eighths.  Who begins has an
 * eighth, until something has been drained that he sent after he was counted:
 * what the others sent by their former share stood before it in the queue.
 *
 * Sizes are what the kernel charges a socket for, not bytes on the wire
 * (credit_cost).  Until a page is known only a few small packets are
 * sent, answers above all, for a second or who has more patience, for that.
 * A page is somebody's, so it is input: wrong numbers slow or
 * hurry us, no more.  A receiver that says nothing holds nobody back.  Neither
 * does one that is stopped, for ever: out of patience one packet passes all
 * the same, and another whenever the wait has doubled.  RC has little of it,
 * so that its timers see the stop, and sends anew what is lost; what UC and UD
 * send beyond the buffer is gone.
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_CREDIT_H
#define ENGINE_CREDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/closed.h"
#include "hca/event.h"
#include "hca/hca.h"
#include "util/shared.h"

#define CREDIT_CLASSES 1024
#define CREDIT_SLOTS   904 /* classes share one when there are more */

#define CREDIT_WORDS   48 /* room for those of struct engine_counters */
#define CREDIT_POSTS   14 /* see shm_ack.h */

struct credit_post {
	_Atomic uint64_t accepted, taken;
};

/* What an owner has counted on one of its devices. */
struct credit_tally {
	uint64_t link; /* the network interface; 0: there is none */
	uint64_t words[CREDIT_WORDS];
};

struct credit_page {
	shared_u32 capacity; /* 0: the owner does not take part */
	shared_flag apart;   /* it receives datagrams one by one (no GRO): no
			      * frames of more than CREDIT_FEW, please */
	shared_u32 senders;  /* of the last second */
	shared_u32 empties;  /* how often it saw its socket empty, roughly */
	shared_u32 drained[CREDIT_SLOTS];
	struct credit_post posts[CREDIT_POSTS];
	struct credit_tally tallies[HCA_MAX_DEVICES]; /* engine_publish */
	struct closed closed;
	uint64_t reserved[117];
	uint64_t generation; /* another: another owner */
};

_Static_assert(sizeof(struct credit_page) == 8192 &&
		       offsetof(struct credit_page, generation) == 8184,
	       "as the broker's pages are");

enum credit_standing { CREDIT_BEGINS, CREDIT_COUNTED, CREDIT_SHARES };

/* A process that we send to. */
struct credit {
	const struct credit_page *page; /* NULL: not known, or yet */
	uint64_t generation;
	uint64_t first_ns;   /* when we first wanted to send */
	uint64_t asked_ns;   /* when the host was asked for the page */
	uint64_t stalled_ns; /* since when there is no room; 0: there is */
	uint64_t waited_ns;  /* so long, when one passed all the same */
	uint32_t sent;	     /* ever, wraps */
	uint32_t mark;	     /* empties when we last sent, */
	uint64_t marked_ns;  /* and when that was */
	uint32_t share;	     /* what may be under way, when last asked */
	enum credit_standing standing;
	uint32_t since;	  /* `sent` when that began */
	uint64_t used_ns; /* when there was room last */
	bool is_unsent;	  /* frames are made and not sent */
	bool has_none;	  /* there is no page, and no wait for it */
};

/* Those that send to us. */
struct credit_inbox {
	struct credit_page *page; /* ours; NULL: none */
	uint64_t epoch_ns;
	uint32_t quiet; /* empties since something came */
	uint64_t now[CREDIT_CLASSES / 64], before[CREDIT_CLASSES / 64];
};

/*
 * What is charged for a frame.  Of few segments it may be taken apart by the
 * receiver's kernel, and is charged so whether it is or not: sender and
 * receiver, who may just have changed his mind, have one account.  More are
 * sent only to who takes them together.
 */
#define CREDIT_FEW 4
uint32_t credit_cost(size_t len, size_t segment);

/* What wants to be sent: a packet of so many bytes, that waits for so long. */
struct credit_wish {
	size_t bytes;
	uint64_t patience_ns;
};

/* May it be sent?  `us` is our class. */
bool credit_has_room(struct credit *c, uint32_t us,
		     const struct credit_wish *wish, uint64_t now_ns);
/* Where there is room for one: for how many more packets of `bytes` at once? */
uint32_t credit_more(const struct credit *c, uint32_t us, size_t bytes);
/* The page is not known: is it worth waiting for before?  *ask: ask for it
 * now. */
bool credit_waits(struct credit *c, const struct credit_wish *wish,
		  uint64_t now_ns, bool *ask);
/* How soon to look again, who has no room: the later the longer it lasts. */
uint64_t credit_look_ns(const struct credit *c, uint64_t now_ns);
/* That is its page; NULL: it has none, and what is sent to it waits no more. */
void credit_page_is(struct credit *c, const struct credit_page *page);
void credit_sent(struct credit *c, uint64_t now_ns);

void credit_open(struct credit_inbox *in, struct credit_page *page,
		 uint32_t buffer_bytes, bool apart);
/* From here on it receives several at once, for good. */
void credit_joins(struct credit_inbox *in);
/* Does c's owner receive several at once, or not tell? */
bool credit_is_joined(const struct credit *c);
/* A datagram of class `from` was taken out and served. */
void credit_drained(struct credit_inbox *in, uint32_t from, size_t len,
		    size_t segment, uint64_t now_ns);
/* The same of a datagram from nobody knows whom. */
void credit_passed(struct credit_inbox *in);
/* The socket was empty after all that was taken out had been served. */
void credit_empty(struct credit_inbox *in);
/* Shows the counters of each device, by its interface; NULL: to nobody. */
void credit_show(struct credit_page *page,
		 const uint32_t links[HCA_MAX_DEVICES],
		 const struct engine_counters counters[HCA_MAX_DEVICES]);

#endif
