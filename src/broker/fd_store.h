/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fd store outlives a broker.  It holds every socket and page of the
 * SO_REUSEPORT group, and a ledger of which process has which class, processes
 * of other users among them (other_user.h).
 *
 * A descriptor that was sent over a unix socket and not received stays open as
 * long as a process has the socket.  Each client of the broker's own user gets
 * the store.  So while one of these lives, no member of the group closes and no
 * index changes, whether there is a broker or not.  A successor reads by
 * MSG_PEEK: if it ends before it has read all, the next one finds all.
 *
 *	store -> { ledger, bundle 0, bundle 1, ... }	one message
 *	bundle k -> { socket, page, relay }		one message for each
 *							of members 128 k and up
 *
 * Clients of other users do not get the store, by which all packets of the
 * group can be received.  One thread at a time, no lock.
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
#define FD_STORE_MEMBER_FDS 3	  /* socket, page, the relay's end to send by */
#define FD_STORE_RECORDS    32768 /* conversations */

/* A process, in shared memory.  A broker writes it; its successor checks it. */
struct fd_store_entry {
	uint32_t is_owned;
	uint32_t user;
	int32_t pid; /* as the broker saw it; 0: the broker could not */
	uint32_t reserved;
	union {
		/* When the process began, in ticks since boot.  */
		uint64_t start;
		/* If is_owned is 0: when the class was released, in
		 * milliseconds of CLOCK_MONOTONIC; 0: it was never given. */
		uint64_t freed_ms;
	};
	/* SO_COOKIE of the relay's end by which datagrams are sent to another
	 * user's process (other_user.h); 0: the process has no relay. */
	uint64_t cookie;
};

/* A conversation, for when its process and the broker die (cm_journal.h). */
struct fd_store_record {
	struct fd_store_entry owner;
	struct cm_note note;
};

/* The contents of a sparse memfd: pages that were never written take no
 * memory. */
struct fd_store_ledger {
	struct steer_key key;	     /* the group's key (steer.h) */
	struct siphash_key note_key; /* for cm_seal.h; all 0: none yet */
	struct fd_store_entry at[STEER_CLASS_MAX + 1]; /* by index */
	uint32_t records; /* how many of record[] were ever written */
	struct fd_store_record record[FD_STORE_RECORDS];
};

struct fd_store {
	int fd; /* the store, for clients; -1: there is none */
	int ledger_fd;
	int bundle[FD_STORE_BUNDLES]
		  [2]; /* sockets to receive by and to send by */
	struct fd_store_ledger *ledger; /* mapped */
	/* A member could not be put into the store: no further one is. */
	bool is_torn;
};

/* Makes *s hold nothing. */
void fd_store_init(struct fd_store *s);
/* Makes a store.  0; -errno: *s holds nothing.  fd_store_close frees it. */
int fd_store_new(struct fd_store *s);
/* Opens the store of another broker, fd, which this takes also if it fails.  0;
 * -errno: fd is no store, and *s holds nothing. */
int fd_store_open(struct fd_store *s, int fd);
/* Closes this process's descriptors; the store lasts as long as another has it.
 */
void fd_store_close(struct fd_store *s);
/*
 * Puts copies of the descriptors of member i, which follows member i - 1; the
 * first descriptor that is -1 ends them.  0; -errno: the member is not in the
 * store, and no further one is put there: a successor would take each for the
 * member before it.
 */
int fd_store_put(struct fd_store *s, uint32_t i,
		 const int fds[FD_STORE_MEMBER_FDS]);
/* Gets copies of member i's descriptors, or -1 for each that it has not; the
 * caller closes them.  0; -ENOENT: there is no such member. */
int fd_store_get(struct fd_store *s, uint32_t i, int fds[FD_STORE_MEMBER_FDS]);
/* Notes the owner of the class of an index, or the user that had the class last
 * and when it was released (e.user, e.freed_ms). */
void fd_store_note(struct fd_store *s, uint32_t index,
		   const struct fd_store_entry *e);
/* Returns the entry of a process; its pid is 0 if /proc does not show the
 * process. */
struct fd_store_entry fd_store_owner(uid_t user, pid_t pid);
/* Returns a pidfd of the entry's process, owned by the caller; -1: the process
 * has ended, or is not known. */
int fd_store_process(const struct fd_store_entry *e);

#endif
