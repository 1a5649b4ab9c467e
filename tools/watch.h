/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch: the state of the adverb processes of this user, read from outside.
 *
 * A process keeps its rings, tables and counters in memfds (hca/arena.h).  The
 * memfds are found in /proc/PID/fd and read by pread: the process takes no part
 * and may be stopped, and holes of a memfd stay holes.  The contents may be
 * hostile: every offset is checked.
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
	struct qp *qps;	      /* copies of the process's QPs; owned */
	size_t qp_count;      /* QPs in qps */
};

/* An entry of an index of QPs. */
struct watch_entry {
	uint64_t key;
	const struct watch_process *process; /* whose QP it is */
	const struct qp *qp;		     /* of process->qps */
};

/* The adverb processes at one time. */
struct watch {
	uint64_t at_ns; /* the time of watch_take, by CLOCK_MONOTONIC */
	struct watch_process *processes; /* an array; owned */
	size_t count;			 /* entries of processes */
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
const struct qp *watch_qp(const struct watch *w, int pid, uint32_t qpn);
/* Returns the process of @qp's peer, borrowed from @w; NULL: @w has none.  A QP
 * counts as the peer if each of the two QPs has the QPN of the other as its
 * destination. */
const struct watch_process *watch_peer(const struct watch *w,
				       const struct qp *qp);

#endif
