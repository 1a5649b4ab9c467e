/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control within a host.  A socket's receive buffer is small, and packets
 * that do not fit are lost.  So each process counts, in a page that others can
 * read, the bytes that it has taken out of its socket, and each sender keeps
 * its bytes under way below its share of the buffer.
 *
 *	receiver, in its page			sender
 *	capacity, senders	-> share
 *	drained[sender's class]	-> under way = sent - drained
 *	empties			-> moved twice since the last send, a while
 *				   ago: all was taken, or is lost
 *
 * The senders that are counted share seven eighths of the capacity.  A sender
 * that begins has an eighth, until the receiver has drained a packet that was
 * sent after the sender was counted: packets that the others sent by their
 * former, larger share stand before that packet in the queue.
 *
 * All sizes are bytes as the kernel charges a socket for them, not as they are
 * sent (credit_cost).  Until the page is known, only a few small packets are
 * sent (above all ACKs and responses), for a second or for the packet's
 * patience, whichever is longer.  A page is written by another process, so the
 * page is input: wrong numbers make this sender slower or faster, no more.  A
 * receiver without a page holds no sender back, and neither does a receiver
 * that does without credits (engine_without), whose capacity stays 0.  A
 * stopped receiver delays a sender, but not for ever: when a packet's patience
 * is over, the packet is sent all the same, and another packet whenever the
 * wait has doubled.  The patience of RC is short, so that RC's timers notice
 * the stop, and RC sends lost packets again; packets of UC and UD beyond the
 * buffer are lost.
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
#define CREDIT_SLOTS   904 /* slots of `drained`; classes may share one */

#define CREDIT_WORDS   48 /* room for the words of struct engine_counters */
#define CREDIT_POSTS   14

/* The two words of a queue pair, see shm_ack.h. */
struct credit_post {
	_Atomic uint64_t accepted, taken;
};

/* The counters of one device of the page's owner. */
struct credit_tally {
	uint64_t link; /* the network interface; 0: there is no device */
	uint64_t words[CREDIT_WORDS];
};

struct credit_page {
	shared_u32 capacity; /* 0: the owner does not take part */
	shared_flag apart;   /* the owner receives without GRO, so senders send
			      * frames of at most CREDIT_FEW packets */
	shared_u32 senders;  /* how many sent in the last second */
	shared_u32 empties;  /* about how often the owner's socket was empty */
	shared_u32 drained[CREDIT_SLOTS];
	struct credit_post posts[CREDIT_POSTS];
	struct credit_tally tallies[HCA_MAX_DEVICES]; /* engine_publish */
	struct closed closed;
	uint64_t reserved[117];
	uint64_t generation; /* changes with the owner */
};

_Static_assert(sizeof(struct credit_page) == 8192 &&
		       offsetof(struct credit_page, generation) == 8184,
	       "as the broker's pages are");

enum credit_standing { CREDIT_BEGINS, CREDIT_COUNTED, CREDIT_SHARES };

/* The sender's state about one receiver, a process of this host. */
struct credit {
	const struct credit_page *page; /* borrowed; NULL: none, or not known */
	uint64_t generation;		/* page->generation at the last look */
	uint64_t first_ns;   /* when this process first wanted to send */
	uint64_t asked_ns;   /* when the host was asked for the page */
	uint64_t stalled_ns; /* since when there is no room; 0: there is room */
	/* How long the stall had lasted when a packet was last sent without
	 * room. */
	uint64_t waited_ns;
	uint32_t sent;	    /* all bytes that were sent; wraps */
	uint32_t mark;	    /* the receiver's empties at the last send */
	uint64_t marked_ns; /* when the last send was */
	uint32_t share; /* bytes that may be under way, when last looked at */
	enum credit_standing standing;
	uint32_t since;	  /* `sent` when the standing began */
	uint64_t used_ns; /* when there was room last */
	bool is_unsent;	  /* frames are made and not sent */
	bool has_none;	  /* the receiver has no page: do not wait for it */
	bool is_off;	  /* this process does without credits */
};

/* The receiver's state: the page, and the senders that are counted. */
struct credit_inbox {
	struct credit_page *page; /* this process's own; NULL: none */
	bool is_off;		  /* this process does without credits */
	uint64_t epoch_ns;	  /* when `now` was begun */
	uint32_t quiet;		  /* empties since a datagram came, at most 2 */
	/* The classes that have sent in this epoch and in the epoch before. */
	uint64_t now[CREDIT_CLASSES / 64], before[CREDIT_CLASSES / 64];
};

/*
 * Returns the bytes charged for a frame.  The receiver's kernel may split a
 * frame of few segments, and such a frame is charged as if it were split: so
 * the sender and the receiver compute the same, even if the receiver has
 * changed its socket since.  A longer frame is sent only to a receiver that
 * takes it whole.
 */
#define CREDIT_FEW 4
uint32_t credit_cost(size_t len, size_t segment);

/* A packet to be sent: its bytes, and how long it waits at most. */
struct credit_wish {
	size_t bytes;
	uint64_t patience_ns;
};

/* May the packet be sent now?  @us: the class of this process. */
bool credit_has_room(struct credit *c, uint32_t us,
		     const struct credit_wish *wish, uint64_t now_ns);
/* Returns for how many more packets of so many bytes there is room; called when
 * credit_has_room was true. */
uint32_t credit_more(const struct credit *c, uint32_t us, size_t bytes);
/* Has the packet to wait because the receiver's page is not known yet?  *ask:
 * the caller has to ask the host for the page now. */
bool credit_waits(struct credit *c, const struct credit_wish *wish,
		  uint64_t now_ns, bool *ask);
/* Returns how soon a sender without room looks again: the later, the longer it
 * has waited. */
uint64_t credit_look_ns(const struct credit *c, uint64_t now_ns);
/* Sets the receiver's page, which is borrowed; NULL: the receiver has none, and
 * packets to it wait no more. */
void credit_page_is(struct credit *c, const struct credit_page *page);
/* A frame to c's receiver was sent. */
void credit_sent(struct credit *c, uint64_t now_ns);

/* Publishes the size of this process's receive buffer in its page, which is
 * borrowed; NULL: this process has none.  @apart: as in struct credit_page. */
void credit_open(struct credit_inbox *in, struct credit_page *page,
		 uint32_t buffer_bytes, bool apart);
/* Publishes that this process receives with GRO from now on. */
void credit_joins(struct credit_inbox *in);
/* Does c's receiver receive with GRO, or has it no page to say so? */
bool credit_is_joined(const struct credit *c);
/* A datagram of a sender of class `from` was taken out and served. */
void credit_drained(struct credit_inbox *in, uint32_t from, size_t len,
		    size_t segment, uint64_t now_ns);
/* A datagram of an unknown sender of this host was taken out and served. */
void credit_passed(struct credit_inbox *in);
/* The socket was found empty, and all datagrams that were taken out are served.
 */
void credit_empty(struct credit_inbox *in);
/*
 * Is a second look at the empty socket due?  A sender whose count is wrong, as
 * packets were lost, begins a new count when `empties` has moved twice.  A
 * process that sleeps after one look would let such a sender wait for as long
 * as nobody sends.
 */
bool credit_owes_look(const struct credit_inbox *in);
/* Copies the counters of each device, named by its interface, to this process's
 * page; NULL: does nothing. */
void credit_show(struct credit_page *page,
		 const uint32_t links[HCA_MAX_DEVICES],
		 const struct engine_counters counters[HCA_MAX_DEVICES]);

#endif
