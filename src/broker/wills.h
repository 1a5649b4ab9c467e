/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What has to be said for clients of connection management that die while
 * there is no broker: each conversation's note lies in the safe, and the
 * successor releases those whose owners are gone.  Part of the broker's loop:
 * one owner, no lock.
 *
 *	write -> [broker dies] -> inherit -> taken by its owner's RESUME
 *	                                  `-> executed when the owner is gone
 */
#ifndef ADVERB_BROKER_WILLS_H
#define ADVERB_BROKER_WILLS_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/safe.h"

/* One that was inherited, and where it still lies, unless it is overwritten. */
struct wills_left {
	struct safe_will will;
	uint32_t slot;
};

struct wills {
	struct safe *safe;	 /* borrowed; may hold nothing */
	struct wills_left *left; /* ours; by the note's local_id */
	uint32_t count, open;	 /* of left; those not yet taken */
};

void wills_init(struct wills *w, struct safe *safe);
void wills_fini(struct wills *w);
/* A note of state 0 is none.  Slots are the caller's, below SAFE_WILLS. */
void wills_write(struct wills *w, uint32_t slot, const struct safe_entry *owner,
		 const struct cm_note *note);
/* Once, by a successor: what its predecessor has written. */
void wills_inherit(struct wills *w);
/* Is it of another process than this one?  False of unknown ones. */
bool wills_is_anothers(const struct wills *w, uint32_t local_id,
		       const struct safe_entry *owner);
/* Its owner has come for it, or has let it go.  Unknown ones are no error. */
void wills_take(struct wills *w, uint32_t local_id);
/* Does anything wait for this process's end? */
bool wills_has(const struct wills *w, pid_t pid);
/* One of that process, taken out; pid 0: of any that is gone; false: none. */
bool wills_next(struct wills *w, pid_t pid, struct cm_note *note);

#endif
