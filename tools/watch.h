/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch: the state of the adverb processes of this user, read from outside.
 *
 * A process keeps its rings, tables and counters in memfds (hca/arena.h).  The
 * memfds are found in /proc/PID/fd and read by pread: the process takes no part
 * and may be stopped, and holes of a memfd stay holes.  The contents may be
 * hostile: every offset is checked, and the QPs that are read of one user, and
 * of all users, are bounded.  So no user can make root use much memory, and no
 * user without subordinate user IDs can hide the QPs of others.
 *
 * A struct watch owns what it points to.  Single-threaded; no lock.
 */
#ifndef TOOLS_WATCH_H
#define TOOLS_WATCH_H

#include "hca/event.h"
#include "hca/hca.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The most QPs that one watch_take reads: of one user, and in total. */
enum { WATCH_USER_QPS = 1 << 16, WATCH_ALL_QPS = 1 << 20 };

/* A QP, as it was when watch_take read it.  The process may have written any
 * values there. */
struct watch_qp {
	uint32_t qpn, dest_qpn;
	uint32_t state;	  /* enum hca_qp_state */
	uint8_t dgid[16]; /* the destination's address */
	/* Those of the QP's process and of the peers that work in its arena. */
	struct qp_stats stats;
};

/* A user with adverb processes. */
struct watch_user {
	uid_t id;
	uint32_t qps; /* how many QPs of the user were read */
	bool is_cut;  /* the user has more QPs: some were not read */
};

/* An adverb process, as it was when watch_take read it. */
struct watch_process {
	int pid;
	char name[20]; /* the command's name, made printable */
	bool stopped;  /* by a signal or a debugger */
	bool foreign; /* of another version of adverb: the fields below are 0 */
	struct engine_counters counters; /* the sums of all devices */
	/* Sources of packets that fit no connection or have a wrong key, the
	 * greatest weight first. */
	struct engine_suspect suspects[ENGINE_SUSPECTS];
	size_t suspect_count; /* entries of suspects in use */
	struct watch_qp *qps; /* the process's QPs; owned */
	size_t qp_count;      /* QPs in qps */
};

/* An entry of an index of QPs. */
struct watch_entry {
	uint64_t key;
	const struct watch_process *process; /* whose QP it is */
	const struct watch_qp *qp;	     /* of process->qps */
};

/* The adverb processes at one time. */
struct watch {
	uint64_t at_ns; /* the time of watch_take, by CLOCK_MONOTONIC */
	struct watch_process *processes; /* an array; owned */
	size_t count;			 /* entries of processes */
	/* The users of the processes; an array; owned. */
	struct watch_user *users;
	size_t user_count; /* entries of users */
	uint32_t read;	   /* the sum of users[].qps */
	/* The QPs of all processes in two orders, as arrays; owned.  A process
	 * chooses its QPNs, so that a hash table of them could be slow. */
	struct watch_entry *by_process; /* by process ID and QPN */
	struct watch_entry *by_peer;	/* by QPN and QPN of the destination */
	size_t qp_count; /* entries of by_process, and of by_peer */
};

/* Reads into *w every adverb process that this user may read.  Does not free
 * the old contents of *w.  Returns 0; or an empty *w and -ENOMEM, -ENOENT
 * (/proc is missing, or shows no process at all) or another -errno of opening
 * /proc.
 */
int watch_take(struct watch *w);
/* Frees the memory of *w, and makes *w empty. */
void watch_free(struct watch *w);

/* Returns the QP of process @pid with number @qpn, borrowed from @w; NULL: @w
 * has none. */
const struct watch_qp *watch_qp(const struct watch *w, int pid, uint32_t qpn);
/* Returns the process of @qp's peer, borrowed from @w; NULL: @w has none.  A QP
 * counts as the peer if each of the two QPs has the QPN of the other as its
 * destination. */
const struct watch_process *watch_peer(const struct watch *w,
				       const struct watch_qp *qp);

#endif
