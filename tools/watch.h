/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch: what the adverb processes of this user are doing, seen from outside.
 *
 * A process keeps its rings, tables and counters in a memfd (hca/arena.h).
 * Here that is found through /proc/PID/fd and read with pread, so that the
 * process notices nothing, a stopped one can be watched too, and a hole of the
 * memfd stays one.  Its contents are input: every offset is checked.
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

struct watch_process {
	int pid;
	char name[20];
	bool stopped; /* by a signal or a debugger */
	bool foreign; /* another version of adverb: nothing else is known */
	struct engine_counters counters;
	/* Those of whom it has a row, by weight, the worst first. */
	struct engine_suspect suspects[ENGINE_SUSPECTS];
	size_t suspect_count;
	struct qp *qps; /* copies */
	size_t qp_count;
};

struct watch {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	struct watch_process *processes;
	size_t count;
};

/* Looks at every process that may be looked at.  0 or -ENOMEM. */
int watch_take(struct watch *w);
void watch_free(struct watch *w);

/* The QP of @w that the process had under that number, or NULL. */
const struct qp *watch_qp(const struct watch *w, int pid, uint32_t qpn);
/* The process at the other end of @qp, if it is one of these, or NULL. */
const struct watch_process *watch_peer(const struct watch *w,
				       const struct qp *qp);

#endif
