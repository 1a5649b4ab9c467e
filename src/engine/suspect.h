/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Senders that guess at our connections.  Each packet that fits none is a sign
 * (enum engine_sign) against the address that it names as its source:
 *
 *	         SUSPECT_MANY signs in SUSPECT_NS
 *	noted ----------------------------------> limited --.
 *	  ^                                          |      | another sign
 *	  `------ SUSPECT_NS without a sign ---------'<-----'
 *
 * A packet from a limited address that fits no connection is dropped before it
 * costs an ICRC or an answer, but for SUSPECT_PASS in each SUSPECT_NS.  An
 * address is easy to forge, so it condemns nothing: a packet that names a queue
 * pair of that peer and is within its window is handled as usual, whatever else
 * comes from that address, and neither reads nor changes this table.
 *
 * The table has a fixed size and lies in the part of the arena that other
 * processes do not write, where `adverb top` reads it.  A new address takes the
 * row with the least weight and continues from that weight ("space saving",
 * Metwally et al. 2005): so of N signs each address with more than N /
 * ENGINE_SUSPECTS has a row, and a flood from ever new addresses replaces its
 * own rows.  A weight is too large by the weight that its row began with, which
 * is known and not held against the address.  If the least recent row or a
 * random one were replaced, such a flood would push out the others; a sketch
 * (count-min) would know no address to tell.
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
#define SUSPECT_TOLD 1000 /* signs that are told of, in however long a time */
#define SUSPECT_PASS 10
#define SUSPECT_QPNS 16384 /* a power of two */

/* The part of a row that other processes do not see. */
struct suspect {
	uint64_t inherited;	 /* of its weight */
	uint64_t since_ns;	 /* when its present SUSPECT_NS began, */
	uint32_t recent, passed; /* signs since; and not dropped, limited */
	uint64_t until_ns;	 /* it is limited */
	bool is_due, is_told;
};

struct suspects {
	struct engine_suspect *rows; /* in the arena; borrowed */
	struct suspect of[ENGINE_SUSPECTS];
	uint32_t latest;   /* the row that was used last */
	uint32_t due;	   /* rows to be told of */
	uint64_t until_ns; /* some row is limited until then */
	uint64_t had[SUSPECT_QPNS / 64];
};

/* Where a packet says that it comes from. */
struct suspect_from {
	const uint8_t *ip;
	bool is_local;
	uint32_t user; /* or ENGINE_NO_USER */
};

void engine_suspects_init(struct suspects *s, struct engine_suspect *rows);
/* There is a queue pair with this QPN; and has there been one? */
void engine_suspects_has_qpn(struct suspects *s, uint32_t qpn);
bool engine_suspects_had_qpn(const struct suspects *s, uint32_t qpn);
/* A sign that was found when the packet was handled. */
void engine_suspects_note(struct suspects *s, const struct suspect_from *from,
			  enum engine_sign sign, uint64_t now_ns);
/* Is any address limited? */
static inline bool engine_suspects_is_any(const struct suspects *s,
					  uint64_t now_ns)
{
	return now_ns < s->until_ns;
}
/* A packet that is a sign comes: is it to be dropped?  Then it is noted. */
bool engine_suspects_drops(struct suspects *s, const struct suspect_from *from,
			   enum engine_sign sign, uint64_t now_ns);

#endif
