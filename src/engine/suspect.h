/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds senders that guess connections of this process.  A packet that fits no
 * connection, or that has a wrong key, is a sign (enum engine_sign) against its
 * source address:
 *
 *	         SUSPECT_MANY signs in SUSPECT_NS
 *	noted ----------------------------------> limited --.
 *	  ^                                          |      | another sign
 *	  `------ SUSPECT_NS without a sign ---------'<-----'
 *
 * A packet from a limited address that fits no connection is dropped before its
 * ICRC is computed and without an answer.  Only SUSPECT_PASS such packets in
 * each SUSPECT_NS are handled as usual.
 *
 * An address is easy to forge, so signs do not count against packets that fit a
 * connection: a packet that names a queue pair whose peer has this address, and
 * that is within the queue pair's window, is handled as usual.  The handling of
 * such a packet neither reads nor changes the table of addresses, unless the
 * packet has a wrong rkey.
 *
 * The table has a fixed size and lies in the part of the arena that other
 * processes do not write, where `adverb top` reads it.  A row is that of an
 * address or, if the user who has the source port is known, of an address and
 * this user.  A row of a user limits no packets.  A new address takes the row
 * with the least weight and continues from that weight ("space saving",
 * Metwally et al. 2005).  So after N signs each address with more than
 * N / ENGINE_SUSPECTS signs has a row, and a flood from ever new addresses
 * mostly replaces its own rows.  A row's weight is too large by at most the
 * weight that the row began with, which is subtracted before the decision to
 * report the address.
 * (With replacement of the oldest or of a random row, such a flood would
 * replace the rows of others.  A count-min sketch would have no address to
 * report.)
 *
 * A packet for a queue pair that was destroyed is no sign, because peers send
 * such packets for a while.  The QPNs that existed are remembered by a hash,
 * for good.
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_SUSPECT_H
#define ENGINE_SUSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "hca/event.h"

#define SUSPECT_NS   1000000000u
#define SUSPECT_MANY 100 /* signs in SUSPECT_NS that limit an address */
/* An address with so many signs is reported even if it was never limited. */
#define SUSPECT_REPORTED 1000
#define SUSPECT_PASS	 10    /* signs of a limited address that are handled */
#define SUSPECT_QPNS	 16384 /* bits for QPNs; a power of two */

/* The part of a row that other processes do not see. */
struct suspect {
	uint64_t inherited; /* the weight that the row began with */
	uint64_t since_ns;  /* when the present SUSPECT_NS began */
	/* Counts since since_ns.  recent: signs.  passed: signs of the limited
	 * address that were not dropped. */
	uint32_t recent, passed;
	uint64_t until_ns; /* until when the address is limited */
	/* is_due: engine_suspect has to return the row.  is_reported:
	 * engine_suspect has returned the row. */
	bool is_due, is_reported;
};

/* The table of addresses, and the QPNs that existed. */
struct suspects {
	struct engine_suspect *rows;	    /* in the arena; borrowed */
	struct suspect of[ENGINE_SUSPECTS]; /* the other part of each row */
	uint32_t latest;		    /* the row that was last used */
	uint32_t due;	   /* rows that engine_suspect has to return */
	uint64_t until_ns; /* from this time on, no row is limited */
	uint64_t had[SUSPECT_QPNS / 64]; /* bits, by hash: QPNs that existed */
};

/* The source of a packet, as the packet claims. */
struct suspect_from {
	const uint8_t *ip; /* 16 bytes, borrowed */
	bool is_local;	   /* an address of this host */
	uint32_t user;	   /* the user of the source port, or ENGINE_NO_USER */
};

/* Initialises *s.  @rows: ENGINE_SUSPECTS rows in the arena, borrowed. */
void engine_suspects_init(struct suspects *s, struct engine_suspect *rows);
/* Notes that a queue pair with this QPN exists. */
void engine_suspects_has_qpn(struct suspects *s, uint32_t qpn);
/* Has a queue pair with this QPN, or with a QPN of the same hash, existed? */
bool engine_suspects_had_qpn(const struct suspects *s, uint32_t qpn);
/* Counts a sign of a packet that was handled. */
void engine_suspects_note(struct suspects *s, const struct suspect_from *from,
			  enum engine_sign sign, uint64_t now_ns);
/* May an address be limited?  False: none is. */
static inline bool engine_suspects_is_any(const struct suspects *s,
					  uint64_t now_ns)
{
	return now_ns < s->until_ns;
}
/* Must a packet that is a sign be dropped, because its address is limited?
 * Counts the sign if so. */
bool engine_suspects_drops(struct suspects *s, const struct suspect_from *from,
			   enum engine_sign sign, uint64_t now_ns);

#endif
