/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control within a host.  A socket's receive buffer is small, and packets
 * that do not fit are lost.  So each process counts, in a page that others can
 * read, the bytes that it has taken out of its socket.  Each sender keeps the
 * bytes that it has in flight within its share of the buffer.
 *
 *	receiver, in its page		sender
 *	capacity, senders		share of the buffer
 *	drained[sender's class]		in flight = sent - drained
 *	empties				has grown by two or more since the last
 *					send, which was a while ago: then no
 *					packet is in flight, because each was
 *					taken or is lost
 *
 * The senders that are counted share seven eighths of the capacity.  A sender
 * that begins has the last eighth until it is counted, and then until the
 * receiver has drained a packet that was sent after the sender was counted.  By
 * then the receiver has also drained the packets that the other senders had
 * sent under their former, larger shares.
 *
 * Capacity, shares and counts are in bytes that the kernel charges a socket
 * for, not in bytes that are sent (credit_cost).
 *
 * A sender that does not know the receiver's page sends at most 16 KiB.  Its
 * other packets wait until the page is known, but at most for a second or for
 * their patience (credit_want), whichever is longer.  Another process writes
 * the page, so the page is input: wrong numbers can only make this sender
 * slower or faster.
 * The receiver may end, and its class may later get another page.  So a sender
 * that has had no room for a second, or finds the capacity 0, asks the broker
 * for the page again, once a second.
 * There is no limit for a receiver that has no page.  A receiver that does not
 * use credits (engine_without) has a page with the capacity 0, and there is no
 * limit for it either.
 *
 * A stopped receiver delays a sender, but not for ever.  When a packet's
 * patience has ended, the packet is sent without room, and then another packet
 * each time that the wait has doubled.  The patience of RC is short, so that
 * RC's timers notice the stop; RC sends lost packets again.  Packets of UC and
 * UD that the buffer cannot take are lost.
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

/* How many steering classes are told apart: two classes that are equal modulo
 * this number count as one. */
#define CREDIT_CLASSES 1024
#define CREDIT_SLOTS   904 /* slots of `drained`; classes may share one */

#define CREDIT_WORDS   48 /* room for the words of struct engine_counters */
#define CREDIT_POSTS   14 /* slots of `posts`; QPNs may share one */

/* The two words of a queue pair for ACKs in shared memory (shm_ack.h). */
struct credit_post {
	_Atomic uint64_t accepted, taken;
};

/* The counters of one device of the page's owner. */
struct credit_tally {
	/* The index of the device's network interface, with COUNTERS_IWARP for
	 * an iWARP device; 0: there is no device, or it is an InfiniBand
	 * device, whose counters are not published.  All later entries are 0,
	 * too: an InfiniBand device is the only device of its process. */
	uint64_t link;
	uint64_t words[CREDIT_WORDS]; /* struct engine_counters */
};

/* The page of a process, its owner: the owner writes the page, and the other
 * processes of the owner's user read it.  The page lies in memory that the
 * broker has made. */
struct credit_page {
	/* Bytes that may be in flight to the owner: three quarters of the
	 * socket's receive buffer; 0: the owner does not use credits. */
	shared_u32 capacity;
	/* The owner receives without GRO, so senders send frames of at most
	 * CREDIT_FEW packets. */
	shared_flag apart;
	/* How many processes have sent in the present epoch or in the epoch
	 * before (EPOCH_NS). */
	shared_u32 senders;
	/* How often the owner found its socket empty, counted at most twice
	 * between two datagrams; wraps. */
	shared_u32 empties;
	/* Bytes that the owner has taken out of its socket, by the sender's
	 * class; wraps. */
	shared_u32 drained[CREDIT_SLOTS];
	struct credit_post posts[CREDIT_POSTS]; /* by QPN, see shm_ack.h */
	struct credit_tally tallies[HCA_MAX_DEVICES]; /* see engine_publish */
	struct closed closed;	/* the owner's closed queue pairs */
	uint64_t reserved[117]; /* not used */
	uint64_t generation;	/* the broker changes it for each new owner */
};

_Static_assert(sizeof(struct credit_page) == 8192 &&
		       offsetof(struct credit_page, generation) == 8184,
	       "the broker's pages have this size and this word");

/* Which part of the receiver's capacity a sender may use, see the top of this
 * file. */
enum credit_standing {
	/* An eighth: perhaps the receiver does not count this sender yet. */
	CREDIT_BEGINS,
	/* An eighth: packets that the other senders sent under their larger
	 * shares may still be in the buffer. */
	CREDIT_COUNTED,
	CREDIT_SHARES /* an equal share of seven eighths */
};

/* The sender's state for one receiver, a process of this host. */
struct credit {
	const struct credit_page *page; /* borrowed; NULL: none, or not known */
	uint64_t generation;		/* page->generation at the last look */
	/* When this process first wanted to send without the page; 0: never. */
	uint64_t first_ns;
	uint64_t asked_ns;   /* when this process last asked for the page */
	uint64_t stalled_ns; /* since when there is no room; 0: there is room */
	/* How long the stall had lasted when a packet was last sent without
	 * room. */
	uint64_t waited_ns;
	/* Bytes that were sent or are in frames that are not sent yet; wraps.
	 * If bytes were lost, or the page has another owner, the count begins
	 * anew at the number of bytes that the receiver has drained. */
	uint32_t sent;
	uint32_t mark;	    /* the receiver's empties at the last send */
	uint64_t marked_ns; /* when the last send was */
	uint32_t share;	    /* bytes that may be in flight, at the last look */
	enum credit_standing standing;
	uint32_t since;	  /* `sent` when the standing began */
	uint64_t used_ns; /* when there last was room */
	uint32_t unsent;  /* how many frames were made and are not sent yet */
	bool has_none;	  /* the receiver has no page, so none is waited for */
	bool is_off;	  /* this process does not use credits */
};

/* The receiver's state: the page, and the senders that are counted. */
struct credit_inbox {
	struct credit_page *page; /* this process's own; NULL: none */
	bool is_off;		  /* this process does not use credits */
	uint64_t epoch_ns;	  /* when the present epoch (EPOCH_NS) began */
	uint32_t quiet;		  /* empties since a datagram came, at most 2 */
	/* Bits by class: those that have sent in the present epoch (now), and
	 * in the epoch before (before). */
	uint64_t now[CREDIT_CLASSES / 64], before[CREDIT_CLASSES / 64];
};

/*
 * Returns the bytes that are charged for a frame of `len` bytes in packets of
 * `segment` bytes.  A frame of at most CREDIT_FEW packets is charged as single
 * packets, because the receiver's kernel may split it.  So the sender and the
 * receiver compute the same result, even if the receiver has changed its socket
 * in between.  A longer frame is sent only to a receiver that takes it whole.
 */
#define CREDIT_FEW 4
uint32_t credit_cost(size_t len, size_t segment);

/* A packet to be sent. */
struct credit_want {
	size_t bytes;	      /* its length */
	uint64_t patience_ns; /* how long it waits for room, see the top */
};

/* May the packet be sent now?  It may if there is room, if its patience has
 * ended, or if c has no limit: the receiver has no page, the page is not known,
 * or one of the two processes does not use credits.  @us: the class of this
 * process. */
bool credit_has_room(struct credit *c, uint32_t us,
		     const struct credit_want *want, uint64_t now_ns);
/* Returns for how many more packets of `bytes` bytes there is room; 0 also if
 * the receiver has no page or the page is not known; UINT32_MAX: one of the two
 * processes does not use credits.  The room is that of the share which the last
 * call of credit_has_room has found.  @us: the class of this process. */
uint32_t credit_more(const struct credit *c, uint32_t us, size_t bytes);
/* Must the packet wait because the receiver's page is not known yet?  If *ask
 * is set to true, the caller now asks for the page (engine_wants_page): the
 * page is not known, or the receiver's class may have another page now. */
bool credit_waits(struct credit *c, const struct credit_want *want,
		  uint64_t now_ns, bool *ask);
/* Returns after how many ns a sender without room looks again.  The time grows
 * with the wait. */
uint64_t credit_look_ns(const struct credit *c, uint64_t now_ns);
/* Sets the receiver's page, which is borrowed, in place of the one that c has;
 * NULL: the receiver has none, and packets to it do not wait any more. */
void credit_page_is(struct credit *c, const struct credit_page *page);
/* Called when a frame to c's receiver was made, which is not sent yet. */
void credit_made(struct credit *c);
/* Called when the oldest frame that credit_made counts was sent. */
void credit_sent(struct credit *c, uint64_t now_ns);

/* Publishes the capacity of this process's socket, whose receive buffer has
 * buffer_bytes, in this process's page, which is borrowed; NULL: this process
 * has none.  @apart: this process receives without GRO. */
void credit_open(struct credit_inbox *in, struct credit_page *page,
		 uint32_t buffer_bytes, bool apart);
/* Publishes that this process receives with GRO from now on. */
void credit_joins(struct credit_inbox *in);
/* Does c's receiver take frames of more than CREDIT_FEW packets?  It does if it
 * receives with GRO, has no page, or if this process does not use credits. */
bool credit_is_joined(const struct credit *c);
/* Called when a datagram, or a run of datagrams, of a sender of class `from`
 * was taken out of the socket and served.  @len: bytes of the datagram or of
 * the whole run.  @segment: bytes of each datagram in the run but the last,
 * which may be shorter; @len if there is only one datagram. */
void credit_drained(struct credit_inbox *in, uint32_t from, size_t len,
		    size_t segment, uint64_t now_ns);
/* Called when a datagram of an unknown sender of this host was taken out of the
 * socket and served. */
void credit_passed(struct credit_inbox *in);
/* Called when the socket was found empty, and all datagrams that were taken out
 * are served. */
void credit_empty(struct credit_inbox *in);
/*
 * Should the caller look at the empty socket once more before it sleeps?  If
 * packets are lost, their sender counts too many bytes in flight, and begins a
 * new count only when `empties` has grown by two.  If this process slept after
 * one look, such a sender would wait until another process sends, or until the
 * patience of its own packet has ended.
 */
bool credit_owes_look(const struct credit_inbox *in);
/* Copies the counters of each device, and from `links` the device's
 * credit_tally.link, to the page.  @page NULL: does nothing. */
void credit_show(struct credit_page *page,
		 const uint32_t links[HCA_MAX_DEVICES],
		 const struct engine_counters counters[HCA_MAX_DEVICES]);

#endif
