/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fd store outlives a broker.  It holds every socket and page of the
 * SO_REUSEPORT group, and a ledger.  The ledger says which process has which
 * class, also for processes of other users (other_user.h), and has a record of
 * each conversation.
 *
 * A descriptor that was sent to a unix socket and not received stays open as
 * long as a process has that socket.  Each client of the broker's own user gets
 * the store.  So while one such client lives, no member of the group is closed
 * and no index changes, even if there is no broker.  A successor reads the
 * store by MSG_PEEK: if a successor ends before it has read everything, the
 * next one still finds everything.
 *
 *	store -> { ledger, bundle 0, bundle 1, ... }	one message
 *	bundle k -> { socket, page, relay }		one message for each
 *							of members 128 k to
 *							128 k + 127
 *
 * Clients of other users do not get the store, since its holder can receive all
 * packets of the group.  One thread at a time, no lock.
 */
#ifndef BROKER_FD_STORE_H
#define BROKER_FD_STORE_H

#include "broker/steer.h"
#include "cm/cm.h"
#include "util/siphash.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FD_STORE_BUNDLES    8	  /* socket pairs that hold the members */
#define FD_STORE_MEMBER_FDS 3	  /* socket, page, sending end of the relay */
#define FD_STORE_RECORDS    32768 /* one for each conversation */

/* The process that has a class; in a record, the process that has a
 * conversation.  The entry lies in shared memory: a broker writes it, and the
 * broker's successor checks it after reading it. */
struct fd_store_entry {
	uint32_t is_owned; /* 1: the process has the class; 0: nobody has it */
	/* the user of the process; if not is_owned, the user that had the class
	 * last */
	uint32_t user;
	/* the pid in the broker's PID namespace; 0: the process is not visible
	 * there */
	int32_t pid;
	/* if pid is not 0: the inode number of that namespace.  A successor of
	 * the broker may be in another one, where the pid says nothing. */
	uint32_t pid_space;
	union {
		/* If is_owned: when the process began, in ticks since boot. */
		uint64_t start;
		/* If not is_owned: when the class was released, in milliseconds
		 * of CLOCK_MONOTONIC; 0: it was never given. */
		uint64_t freed_ms;
	};
	/* If is_owned: the token of another user's process (other_user.h); 0:
	 * the process is of the broker's user. */
	uint64_t token;
};

/* A record of a conversation and the process that has it.  From the record, a
 * successor of the broker releases the conversation if the process has died
 * while there was no broker (cm_journal.h).  owner.is_owned 0: there is no
 * conversation in this slot. */
struct fd_store_record {
	struct fd_store_entry owner;
	struct cm_note note;
};

/* The ledger, which lies in a sparse memfd: pages that were never written take
 * no memory. */
struct fd_store_ledger {
	struct steer_key key; /* the group's key (steer.h) */
	/* the key of seals (cm_seal.h); all 0: none yet */
	struct siphash_key note_key;
	/* one for each index of the group */
	struct fd_store_entry at[STEER_CLASS_MAX + 1];
	uint32_t records; /* no record from this index on was ever written */
	struct fd_store_record record[FD_STORE_RECORDS];
};

struct fd_store {
	int fd;	       /* the store, for clients; -1: there is none */
	int ledger_fd; /* the memfd of the ledger; -1: none */
	int bundle[FD_STORE_BUNDLES]
		  [2]; /* socket pairs: [0] receives, [1] sends */
	struct fd_store_ledger *ledger; /* mapped; NULL: there is no store */
	/* The index, plus 1, of a member that could not be put into the store:
	 * no member with a higher index is put there before that member.  0:
	 * there is no such member. */
	uint32_t torn_at;
};

/* Initialises *s: it holds nothing. */
void fd_store_init(struct fd_store *s);
/* Makes a store, which fd_store_close closes.  Returns 0, or -errno; then *s
 * holds nothing. */
int fd_store_new(struct fd_store *s);
/* Opens the store of an earlier broker.  Takes ownership of fd, even if the
 * call fails.  Returns 0, or -errno; then *s holds nothing.  -EPROTO: fd is not
 * a store, its ledger can be shortened, or the limit on open files leaves no
 * room for its descriptors. */
int fd_store_open(struct fd_store *s, int fd);
/* Closes this process's descriptors of the store, which lasts as long as
 * another process has it. */
void fd_store_close(struct fd_store *s);
/*
 * Puts copies of the descriptors of member i into the store; member i - 1 is
 * already there.  The first descriptor that is -1 ends the list.  Returns 0, or
 * -errno: the member is not in the store, and the caller may call this function
 * again for it.  Until then no member with a higher index is put there, since a
 * successor would take each further member for the one before it.  -ENOENT:
 * there is no store, or a member with a lower index could not be put there.
 */
int fd_store_put(struct fd_store *s, uint32_t i,
		 const int fds[FD_STORE_MEMBER_FDS]);
/* Sets fds to copies of member i's descriptors, which the caller closes, or to
 * -1 where the member has none.  Returns 0 or -errno; -ENOENT: there is no such
 * member, or no store; -EPROTO: the member's message has no descriptor, or more
 * than the store ever sends; -EMFILE: the limit on open files leaves no room
 * for all of them. */
int fd_store_get(struct fd_store *s, uint32_t i, int fds[FD_STORE_MEMBER_FDS]);
/* Writes *e to the ledger as the entry of the class that has `index`: the owner
 * of the class; or, after a release, the user that had the class last and the
 * time of the release.  Does nothing without a store. */
void fd_store_note(struct fd_store *s, uint32_t index,
		   const struct fd_store_entry *e);
/* Returns the pid_space of this process; 0: it is not known. */
uint32_t fd_store_pid_space(void);
/* Returns whether the entry has a pid of that PID namespace. */
bool fd_store_has_pid(const struct fd_store_entry *e, uint32_t pid_space);
/* Returns an entry for process pid of `user`; the pid in the entry is 0 if
 * /proc does not show the process. */
struct fd_store_entry fd_store_owner(uid_t user, pid_t pid);
/*
 * Returns a pidfd of the entry's process, owned by the caller, or -errno.
 * -ESRCH: the process has ended.  Any other errno says nothing about the
 * process.  -EMFILE, -ENFILE: no descriptor is left, and a later call may
 * succeed; -EINVAL: the entry has no pid of this process's PID namespace;
 * -EACCES: /proc does not show the process; or the errno of pidfd_open(2), if
 * neither kill(2) nor /proc shows that the process has ended.
 */
int fd_store_process(const struct fd_store_entry *e);
/* Returns whether err, a result of fd_store_process, says that no descriptor is
 * left. */
bool fd_store_is_short(int err);

#endif
