/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The journal of conversations: by it, the peers of a process that dies while
 * there is no broker are told of its death.  The note of each conversation is a
 * record in the ledger of the fd store; the successor of a broker releases
 * conversations of processes that have ended.  Part of the broker's loop: one
 * thread, no lock.
 *
 *	write -> [broker dies] -> inherit -> taken by its owner's RESUME
 *	                                  `-> executed when the owner is gone
 */
#ifndef BROKER_CM_JOURNAL_H
#define BROKER_CM_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/fd_store.h"

/* A record that a predecessor has written, and the slot of the ledger in which
 * it was; the slot may have another record by now. */
struct cm_journal_entry {
	struct fd_store_record record;
	uint32_t slot;
};

struct cm_journal {
	struct fd_store *fd_store;	    /* borrowed; may hold nothing */
	struct cm_journal_entry *inherited; /* sorted by the note's local_id */
	uint32_t count; /* how many of inherited[] there are */
	uint32_t open;	/* how many of them were not taken yet */
};

/* Makes a journal without inherited records; borrows fd_store. */
void cm_journal_init(struct cm_journal *j, struct fd_store *fd_store);
/* Frees the inherited records. */
void cm_journal_fini(struct cm_journal *j);
/* Writes the record of a slot, which the caller chooses below FD_STORE_RECORDS;
 * with a note of state 0, frees the slot. */
void cm_journal_write(struct cm_journal *j, uint32_t slot,
		      const struct fd_store_entry *owner,
		      const struct cm_note *note);
/* Reads what a predecessor has written into the ledger.  A successor calls this
 * once.  If there is no memory, nothing is inherited. */
void cm_journal_inherit(struct cm_journal *j);
/* Is there an inherited record of that conversation, of another process than
 * this one? */
bool cm_journal_is_others(const struct cm_journal *j, uint32_t local_id,
			  const struct fd_store_entry *owner);
/* The conversation's process has resumed or released it: takes its record out,
 * if there is one. */
void cm_journal_take(struct cm_journal *j, uint32_t local_id);
/* Is there an inherited record of that process? */
bool cm_journal_has(const struct cm_journal *j, pid_t pid);
/* Takes out one record of that process; pid 0: of any process that has ended.
 * False: there is none. */
bool cm_journal_next(struct cm_journal *j, pid_t pid,
		     struct fd_store_record *record);

#endif
