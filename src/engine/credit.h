/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control within a host.  A socket's receive buffer is small, and packets
 * that do not fit are lost.  So each process counts, in a page that others can
 * read, the bytes that it has taken out of its socket, and each sender keeps
 * its bytes under way below its share of the buffer.
 *
 *	receiver, in its page			sender
 *	capacity, senders	-> share
 *	drained[my class]	-> under way = sent - drained
 *	empties			-> moved twice since I sent, a while ago: all
 *				   was taken, or is lost
 *
 * The senders that are counted share seven eighths.  A sender that begins has
 * an eighth, until the receiver has drained a packet that was sent after the
 * sender was counted: packets that the others sent by their former, larger
 * share stand before that packet in the queue.
 *
 * Sizes are what the kernel charges a socket for, not bytes on the wire
 * (credit_cost).  Until the page is known, only a few small packets are sent,
 * answers above all, for a second, or for as long as the packet's patience is.
 * A page is written by another process, so it is input: wrong numbers slow or
 * hurry this sender, no more.  A receiver without a page holds no sender back.
 * Neither does a stopped receiver for ever: when a packet's patience is over,
 * it is sent all the same, and another one whenever the wait has doubled.  The
 * patience of RC is short, so that its timers notice the stop, and RC repeats
 * lost packets; packets of UC and UD beyond the buffer are lost.
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

/* The counters of one device of the page's owner. */
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
 * Returns the bytes charged for a frame.  The receiver's kernel may split a run
 * of few segments, and the run is charged as if it were split: the sender and
 * the receiver, which may have changed its socket since, reckon alike.  A
 * longer run is sent only to a receiver that takes it whole.
 */
#define CREDIT_FEW 4
uint32_t credit_cost(size_t len, size_t segment);

/* A packet of so many bytes that wants to be sent, and how long it waits at
 * most. */
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
/* Returns how soon a sender without room looks again: the later, the longer it
 * has waited. */
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
