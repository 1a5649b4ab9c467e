/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What outlives a broker: every socket and page of the group, and a ledger of
 * who has which class, also those of other users (other_user.h).  Descriptors
 *under way in a unix socket stay open as long as somebody has the socket, so
 *each client of the broker's own user gets the safe, and while one of them
 *lives no member of the group closes and no index moves, broker or not.  A
 *successor reads without taking out: one that dies half way has lost nothing.
 *
 *	safe -> { ledger, shelf 0, shelf 1, ... }      one message
 *	shelf k -> { socket, page, relay } of members 128 k and up, one each
 *
 * Clients of other users do not get it: who has it can read for everybody.
 */
#ifndef BROKER_FD_STORE_H
#define BROKER_FD_STORE_H

#include "broker/steer.h"
#include "cm/cm.h"
#include "util/siphash.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FD_STORE_BUNDLES    8
#define FD_STORE_MEMBER_FDS 3 /* socket, page, and how to hand on to it */
#define FD_STORE_RECORDS    32768

/* In shared memory, written by the broker; input for its successor. */
struct fd_store_entry {
	uint32_t is_owned;
	uint32_t user;
	int32_t pid; /* of its process, as the broker saw it; 0: it did not */
	uint32_t reserved;
	union {
		uint64_t start; /* of that process, in ticks since boot */
		/* If is_owned is 0: when the class was released, in
		 * milliseconds of CLOCK_MONOTONIC; 0: it was never given. */
		uint64_t freed_ms;
	};
	uint64_t cookie; /* of the end to hand on by (other_user.h); 0 */
};

/* A conversation, for the case that its owner and the broker die
 * (cm_journal.h). */
struct fd_store_record {
	struct fd_store_entry owner;
	struct cm_note note;
};

/* Most of it is never written, and takes no memory. */
struct fd_store_ledger {
	struct steer_key key; /* of the group: which class is which index */
	struct siphash_key note_key; /* of cm_seal.h; all 0: none yet */
	struct fd_store_entry at[STEER_CLASS_MAX + 1]; /* by index */
	uint32_t cm_journal; /* have been written; behind them is nothing */
	struct fd_store_record will[FD_STORE_RECORDS];
};

struct fd_store {
	int fd; /* to pass on; -1: there is no safe */
	int ledger_fd;
	int rx_pending[FD_STORE_BUNDLES][2]; /* to read from, to write to */
	struct fd_store_ledger *ledger;	     /* mapped */
	bool is_torn; /* a member could not be put there: it ends before it */
};

/* Holds nothing. */
void fd_store_init(struct fd_store *s);
/* 0, or -errno and a safe that holds nothing; both undone by fd_store_close. */
int fd_store_new(struct fd_store *s);
/* Another's; takes fd in any case. */
int fd_store_open(struct fd_store *s, int fd);
void fd_store_close(struct fd_store *s);
/*
 * Member i, which follows i - 1; the first descriptor that is -1 ends them.
 * -errno: it is not there, nor will be any that follows: a successor would take
 * each for the one before it.
 */
int fd_store_put(struct fd_store *s, uint32_t i,
		 const int fds[FD_STORE_MEMBER_FDS]);
/* Copies of member i's descriptors or -1, the caller's; -ENOENT: no such. */
int fd_store_get(struct fd_store *s, uint32_t i, int fds[FD_STORE_MEMBER_FDS]);
/* Notes the owner of the class of an index, or the user that had the class last
 * and when it was released (e.user, e.freed_ms). */
void fd_store_note(struct fd_store *s, uint32_t index,
		   const struct fd_store_entry *e);
/* An entry for a process; pid 0: one that cannot be seen. */
struct fd_store_entry fd_store_owner(uid_t user, pid_t pid);
/* A pidfd of the process that a valid entry names, if it still runs; -1. */
int fd_store_process(const struct fd_store_entry *e);

#endif
