/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Senders that guess connections of this process.  Each packet that fits no
 * connection is a sign (enum engine_sign) against its source address:
 *
 *	         SUSPECT_MANY signs in SUSPECT_NS
 *	noted ----------------------------------> limited --.
 *	  ^                                          |      | another sign
 *	  `------ SUSPECT_NS without a sign ---------'<-----'
 *
 * A packet from a limited address that fits no connection is dropped before it
 * costs an ICRC or an answer, but for SUSPECT_PASS in each SUSPECT_NS.  An
 * address is easy to forge, so its signs do not count against other packets: a
 * packet that names a queue pair of that peer and is within the queue pair's
 * window is handled as usual, whatever else comes from that address, and
 * neither reads nor changes this table.
 *
 * The table has a fixed size and lies in the part of the arena that other
 * processes do not write, where `adverb top` reads it.  A new address takes the
 * row with the least weight and continues from that weight ("space saving",
 * Metwally et al. 2005): so of N signs each address with more than N /
 * ENGINE_SUSPECTS has a row, and a flood from ever new addresses replaces its
 * own rows.  A weight is too large by the weight that its row began with, which
 * is known and subtracted before it is decided whether to report the address.
 * If the least recent row or a random row were replaced, such a flood would
 * replace the rows of others; a sketch (count-min) would have no address to
 * report.
 *
 * A QPN of a queue pair that was destroyed is no guess, since peers send to it
 * for a while.  Such QPNs are remembered by a hash, for good.
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
#define SUSPECT_MANY 100
#define SUSPECT_TOLD 1000 /* signs after which an address is reported */
#define SUSPECT_PASS 10
#define SUSPECT_QPNS 16384 /* a power of two */

/* The part of a row that other processes do not see. */
struct suspect {
	uint64_t inherited; /* the weight that the row began with */
	uint64_t since_ns;  /* when the present SUSPECT_NS began */
	/* Since since_ns: signs, and packets of the limited address that were
	 * not dropped. */
	uint32_t recent, passed;
	uint64_t until_ns; /* until when the address is limited */
	/* engine_suspect has yet to return the row, and has returned it. */
	bool is_due, is_told;
};

struct suspects {
	struct engine_suspect *rows; /* in the arena; borrowed */
	struct suspect of[ENGINE_SUSPECTS];
	uint32_t latest;   /* the row that was used last */
	uint32_t due;	   /* rows that engine_suspect has yet to return */
	uint64_t until_ns; /* until when any row is limited */
	uint64_t had[SUSPECT_QPNS / 64]; /* bits, by hash: QPNs that existed */
};

/* The source of a packet, as the packet says. */
struct suspect_from {
	const uint8_t *ip; /* 16 bytes, borrowed */
	bool is_local;
	uint32_t user; /* or ENGINE_NO_USER */
};

/* Initializes *s.  @rows: ENGINE_SUSPECTS rows in the arena, borrowed. */
void engine_suspects_init(struct suspects *s, struct engine_suspect *rows);
/* Notes that a queue pair with this QPN exists. */
void engine_suspects_has_qpn(struct suspects *s, uint32_t qpn);
/* Has a queue pair with this QPN, or with a QPN of the same hash, existed? */
bool engine_suspects_had_qpn(const struct suspects *s, uint32_t qpn);
/* Counts a sign that was found when the packet was handled. */
void engine_suspects_note(struct suspects *s, const struct suspect_from *from,
			  enum engine_sign sign, uint64_t now_ns);
/* Is any address limited? */
static inline bool engine_suspects_is_any(const struct suspects *s,
					  uint64_t now_ns)
{
	return now_ns < s->until_ns;
}
/* Has a packet that is a sign to be dropped, since its address is limited?  If
 * so, the function counts the sign. */
bool engine_suspects_drops(struct suspects *s, const struct suspect_from *from,
			   enum engine_sign sign, uint64_t now_ns);

#endif
