/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks which user of this host has sent a packet.  Every user of a host may
 * send from each address of the host, so an address does not identify a sender.
 * But the engine's caller can find out which user has bound a source port.  So
 * a packet to a connected queue pair (RC, UC) from an address of this host is
 * accepted only from a port of the user of the peer's process.  The class of
 * the peer's QPN names the peer's process, so one answer of the caller is valid
 * for all queue pairs between two processes:
 *
 *	          wanted        engine_source: yes
 *	unknown --------> asked ------------------> believed
 *	   ^               |  no                       | asked again after
 *	   |               v                           | SOURCE_NS, and believed
 *	   `--SOURCE_NS-- refused                      v meanwhile
 *
 * While the caller is asked about a port, packets from the port are parked, at
 * most SOURCE_PARKED packets of all ports.  At most SOURCE_ASKS questions are
 * asked in each SOURCE_ASK_NS.  Beyond these limits, packets from unknown ports
 * are dropped, so that a sender which uses ever new ports costs little.  Ports
 * that are believed have a table of their own, where ports that are not
 * believed do not replace them.  Without a new answer, a believed port is
 * unknown again 2 * SOURCE_NS after the last answer.
 *
 * A port that no user has any more is refused.  So packets that wait in the
 * receiving socket are lost if their sender ends before the caller asks about
 * the port.  The port's former owner is no proof: after the sender's end
 * another user can bind the port, send a packet and close the socket, and the
 * kernel does not tell which of the two users sent a datagram.  So the packet
 * is dropped, as if it had been lost on the wire.  If the packet is a request
 * of RC, it gets no ACK, so the request did not complete at the sender.  A
 * message of UC may be lost anyway.  If the packet is an ACK, the request of
 * this end fails, as it does when the sender ends before it acknowledges.
 * Messages of the connection manager are not affected: the broker sends and
 * receives them, and the broker's socket outlives the program.
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_SOURCE_CHECK_H
#define ENGINE_SOURCE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "util/list.h"

#define SOURCE_NS     1000000000u /* answers of this age are asked for again */
#define SOURCE_SLOTS  256	  /* slots of a table, a power of two */
#define SOURCE_ASKS   64	  /* questions in each SOURCE_ASK_NS */
#define SOURCE_ASK_NS 10000000u
#define SOURCE_PARKED 256 /* packets that may be parked */

/* The knowledge about a port (the figure above). */
enum source_state {
	SOURCE_NONE,	 /* the slot is free, and all zero */
	SOURCE_ASKED,	 /* the caller has not answered yet */
	SOURCE_REFUSED,	 /* the port is not of the peer's user */
	SOURCE_BELIEVED, /* the port is of the peer's user */
};

/* A port, and the knowledge about it. */
struct source {
	uint32_t peer; /* the class of the peer's QPN, see sources.class_of */
	uint16_t port; /* 0: the slot is free */
	uint8_t state; /* enum source_state */
	bool is_v4;    /* a port of IPv4; false: of IPv6 */
	uint32_t user; /* the port's owner, or ENGINE_NO_USER */
	/* When the caller last answered about the port; SOURCE_ASKED: when the
	 * caller was asked. */
	uint64_t since_ns;
	/* When the caller was asked again about a believed port, after its last
	 * answer; 0: not since that answer. */
	uint64_t asked_ns;
};

/* The ports that are known, the questions, and the parked packets. */
struct sources {
	/* engine_config.class_of; NULL: each QPN counts as a class. */
	uint32_t (*class_of)(uint32_t qpn);
	/* Tables of SOURCE_SLOTS rows, in one allocation, which `believed`
	 * owns; NULL: all ports are believed. */
	struct source *believed, *others;
	/* A ring of questions that engine_wants_source has not returned yet. */
	struct engine_source wanted[SOURCE_ASKS];
	uint32_t want_head, want_tail; /* free-running indices of the ring */
	uint32_t asks;	       /* questions that were asked since asks_ns */
	uint64_t asks_ns;      /* when the present SOURCE_ASK_NS began */
	struct list parked;    /* struct parked, the oldest first */
	uint32_t parked_count; /* how many packets are in `parked` */
};

/* The answer of engine_sources_look about a port. */
enum source_word {
	SOURCE_IS_PEERS,  /* the port is of the peer's user */
	SOURCE_IS_OTHERS, /* the port is of another user, or of nobody */
	SOURCE_IS_OPEN,	  /* not known yet: the caller parks the packet */
	/* not known, and no question could be asked: the caller drops the
	 * packet */
	SOURCE_IS_LIMITED,
};

/* Initialises *s, which is zero.  @is_asked: the engine's caller answers
 * questions; false: all ports are believed.  @class_of: returns the steering
 * class of a QPN; NULL: each QPN counts as a class.  Returns 0 or -ENOMEM. */
int engine_sources_init(struct sources *s, bool is_asked,
			uint32_t (*class_of)(uint32_t qpn));
/* Frees the memory that s owns, with the parked packets. */
void engine_sources_fini(struct sources *s);

/* The result of engine_sources_look. */
struct source_found {
	enum source_word word;
	uint64_t until_ns; /* SOURCE_IS_PEERS: until when `word` is valid */
	uint32_t user;	   /* the port's owner, or ENGINE_NO_USER */
};

/* Decides whether d, a datagram from an address of this host, comes from a port
 * of the peer's user.  @qpn: the peer's QPN.  Queues a question to the engine's
 * caller (engine_wants_source) if this is not known, or if the answer about a
 * believed port is SOURCE_NS old. */
struct source_found engine_sources_look(struct sources *s,
					const struct engine_dgram *d,
					uint32_t qpn, uint64_t now_ns);
/* Parks a copy of bytes[0..len), a packet of d, until the answer about its port
 * comes.  @qpn: the peer's QPN; @id: the packet's expected IPv4 identification.
 * False: SOURCE_PARKED packets are parked already, the packet is longer than
 * IBT_PACKET_BYTES, or there is no memory. */
bool engine_sources_park(struct sources *s, const struct engine_dgram *d,
			 uint32_t qpn, const uint8_t *bytes, size_t len,
			 uint16_t id, uint64_t now_ns);
/* Forgets all ports, and the questions that engine_wants_source has not
 * returned yet.  Packets stay parked. */
void engine_sources_forget(struct sources *s);

#endif
