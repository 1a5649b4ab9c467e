/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The journal of conversations.  The note of each conversation is a record in
 * the ledger of the fd store.  If a process dies while there is no broker, the
 * next broker finds the records of that process, and releases its
 * conversations, so that the peers are told.  Part of the broker's loop: one
 * thread, no lock.
 *
 *	write -> [broker dies] -> inherit -> taken: the process has resumed or
 *	                                  |  released the conversation
 *	                                  `-> taken: the process has ended;
 *	                                      the caller ends the conversation
 */
#ifndef BROKER_CM_JOURNAL_H
#define BROKER_CM_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/fd_store.h"

/* A record that an earlier broker has written, and the slot of the ledger in
 * which the record was; by now another record may be in that slot. */
struct cm_journal_entry {
	struct fd_store_record record;
	uint32_t slot;
};

struct cm_journal {
	/* borrowed; has no ledger if there is no store */
	struct fd_store *fd_store;
	/* the inherited records, sorted by the note's local_id; NULL: none */
	struct cm_journal_entry *inherited;
	uint32_t count; /* how many of inherited[] there are */
	uint32_t open;	/* how many of inherited[] were not taken yet */
};

/* Makes a journal without inherited records.  Borrows fd_store until
 * cm_journal_fini. */
void cm_journal_init(struct cm_journal *j, struct fd_store *fd_store);
/* Frees the inherited records. */
void cm_journal_fini(struct cm_journal *j);
/* Writes the record of a conversation of `owner` to a slot, which the caller
 * chooses below FD_STORE_RECORDS.  If note->state is 0, frees the slot.  Does
 * nothing without a store. */
void cm_journal_write(struct cm_journal *j, uint32_t slot,
		      const struct fd_store_entry *owner,
		      const struct cm_note *note);
/* Reads the records that an earlier broker has written into the ledger, but not
 * those of processes without a pid in this broker's PID namespace: whether such
 * a process has ended cannot be told.  A successor calls this once.  If there
 * is no memory, nothing is inherited. */
void cm_journal_inherit(struct cm_journal *j);
/* Is there an inherited record of the conversation local_id whose process is
 * not `owner`? */
bool cm_journal_is_others(const struct cm_journal *j, uint32_t local_id,
			  const struct fd_store_entry *owner);
/* Removes the inherited record of the conversation local_id, if there is one,
 * since its process has resumed or released the conversation. */
void cm_journal_take(struct cm_journal *j, uint32_t local_id);
/* Is there an inherited record of the process pid that was not taken yet? */
bool cm_journal_has(const struct cm_journal *j, pid_t pid);
/* A search for the inherited records of processes that have ended.  Starts as
 * {0}.  The search looks at each record once, and again at a process only if
 * the pids of two processes are equal modulo CM_JOURNAL_LIVES. */
#define CM_JOURNAL_LIVES 64
struct cm_journal_search {
	uint32_t at; /* the next inherited record to look at */
	/* processes that may still run, each at its pid modulo this size */
	pid_t lives[CM_JOURNAL_LIVES];
};
/* Removes the next inherited record of the process pid, and copies the record
 * to *record.  The caller knows that this process has ended.  pid 0: a record
 * of any process that has ended, as far as that can be told.  False: the search
 * is over. */
bool cm_journal_next(struct cm_journal *j, struct cm_journal_search *s,
		     pid_t pid, struct fd_store_record *record);

#endif
