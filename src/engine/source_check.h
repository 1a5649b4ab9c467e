/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks which process of this host has sent a packet.  Every user of a host
 * may send from each of its addresses, so an address does not identify a
 * sender; but a source port belongs to one process for as long as the process
 * has it bound.  A packet to a connected queue pair (RC, UC) from an address of
 * this host is taken only from a port that the host has found to belong to the
 * user of the peer's process.  The class of the peer's QPN names that process,
 * so one answer serves for all queue pairs of two processes:
 *
 *	          wanted        engine_source: yes
 *	unknown --------> asked ------------------> believed
 *	   ^               |  no                       | asked again after
 *	   |               v                           | SOURCE_NS, and believed
 *	   `--SOURCE_NS-- refused                      v meanwhile
 *
 * While the host is asked about a port, packets from the port wait, at most
 * SOURCE_PARKED packets of all ports.  At most SOURCE_ASKS questions are asked
 * in each SOURCE_ASK_NS.  Beyond either limit packets from unknown ports are
 * dropped, so that a sender from ever new ports costs little.  Ports that are
 * believed have a table of their own, so other ports do not replace them.
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_SOURCE_CHECK_H
#define ENGINE_SOURCE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "util/list.h"

#define SOURCE_NS     1000000000u /* how old an answer may be */
#define SOURCE_SLOTS  256	  /* slots of a table, a power of two */
#define SOURCE_ASKS   64
#define SOURCE_ASK_NS 10000000u
#define SOURCE_PARKED 256 /* packets */

enum source_state {
	SOURCE_NONE,
	SOURCE_ASKED,
	SOURCE_REFUSED,
	SOURCE_BELIEVED,
};

/* A port, and what is known about it. */
struct source {
	uint32_t peer; /* the class of the peer's QPN */
	uint16_t port; /* 0: the slot is free */
	uint8_t state; /* enum source_state */
	bool is_v4;
	bool is_asked;	   /* a believed port is asked about again */
	uint32_t user;	   /* owner of a refused port */
	uint64_t since_ns; /* when the state was entered */
};

struct sources {
	uint32_t (*class_of)(uint32_t qpn); /* NULL: a QPN is its class */
	struct source *believed, *others;   /* owned; NULL: all is believed */
	/* A ring of the questions that the host has yet to take; its indices
	 * are free-running. */
	struct engine_source wanted[SOURCE_ASKS];
	uint32_t want_head, want_tail;
	/* Questions that were asked since asks_ns, the start of the present
	 * SOURCE_ASK_NS. */
	uint32_t asks;
	uint64_t asks_ns;
	struct list parked; /* struct parked, the oldest first */
	uint32_t parked_count;
};

enum source_word {
	SOURCE_IS_PEERS,
	SOURCE_IS_OTHERS,
	SOURCE_IS_OPEN,	   /* not known yet: park the packet */
	SOURCE_IS_LIMITED, /* not known: drop the packet, ask no more now */
};

/* Initializes *s, which is zero.  0 or -ENOMEM.  @is_asked: the host answers
 * questions; false: all ports are believed.  @class_of: as in struct
 * engine_config. */
int engine_sources_init(struct sources *s, bool is_asked,
			uint32_t (*class_of)(uint32_t qpn));
/* Frees the memory that s owns, with the parked packets. */
void engine_sources_fini(struct sources *s);

/* The result of engine_sources_look. */
struct source_found {
	enum source_word word;
	uint64_t until_ns; /* SOURCE_IS_PEERS: how long that is true */
	uint32_t user;	   /* the port's owner, or ENGINE_NO_USER */
};

/* Says whether d, a datagram from an address of this host, comes from a port of
 * the user of the process that has `qpn`, the peer's QPN; asks the host if that
 * is not known. */
struct source_found engine_sources_look(struct sources *s,
					const struct engine_dgram *d,
					uint32_t qpn, uint64_t now_ns);
/* Parks a copy of bytes[0..len), a packet of d, until the answer about the port
 * comes; id: the packet's IPv4 identification, which the ICRC covers.  False:
 * SOURCE_PARKED packets are parked, or the packet is longer than
 * IBT_PACKET_BYTES, or there is no memory. */
bool engine_sources_park(struct sources *s, const struct engine_dgram *d,
			 uint32_t qpn, const uint8_t *bytes, size_t len,
			 uint16_t id, uint64_t now_ns);
/* Forgets all ports, and the questions that the host has yet to take. */
void engine_sources_forget(struct sources *s);

#endif
