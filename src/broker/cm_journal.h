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
#ifndef BROKER_CM_JOURNAL_H
#define BROKER_CM_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/fd_store.h"

/* One that was inherited, and where it still lies, unless it is overwritten. */
struct cm_journal_entry {
	struct fd_store_record will;
	uint32_t slot;
};

struct cm_journal {
	struct fd_store *fd_store;     /* borrowed; may hold nothing */
	struct cm_journal_entry *left; /* ours; by the note's local_id */
	uint32_t count, open;	       /* of left; those not yet taken */
};

void cm_journal_init(struct cm_journal *w, struct fd_store *fd_store);
void cm_journal_fini(struct cm_journal *w);
/* A note of state 0 is none.  Slots are the caller's, below FD_STORE_RECORDS.
 */
void cm_journal_write(struct cm_journal *w, uint32_t slot,
		      const struct fd_store_entry *owner,
		      const struct cm_note *note);
/* Once, by a successor: what its predecessor has written. */
void cm_journal_inherit(struct cm_journal *w);
/* Is it of another process than this one?  False of unknown ones. */
bool cm_journal_is_others(const struct cm_journal *w, uint32_t local_id,
			  const struct fd_store_entry *owner);
/* Its owner has come for it, or has let it go.  Unknown ones are no error. */
void cm_journal_take(struct cm_journal *w, uint32_t local_id);
/* Does anything wait for this process's end? */
bool cm_journal_has(const struct cm_journal *w, pid_t pid);
/* Takes one record of that process out; pid 0: of any that is gone; false:
 * there is none. */
bool cm_journal_next(struct cm_journal *w, pid_t pid,
		     struct fd_store_record *record);

#endif
