/* SPDX-License-Identifier: BSD-2-Clause */
/* struct host, and functions that only the files of this folder call: most of
 * them are for the holder of the progress lock. */
#ifndef HOST_INSIDE_H
#define HOST_INSIDE_H

#include "host/host.h"
#include "host/progress.h"
#include "memory/arena_map.h"
#include "memory/space_self.h"
#include "util/map.h"

/* The adapter of a process. */
struct host {
	/* the process that made this struct, not its forked child
	 * (process_number) */
	uint64_t process;
	uint32_t users; /* calls of host_get without a host_put yet */
	struct arena_map map;
	struct space_self space;
	struct hca hca;
	struct map domains; /* host_domains */
	struct progress progress;
	struct lock ctx; /* host_lock */
	int cancel; /* the cancel state from before ctx was taken; under ctx */
};

/* Returns the progress of h. */
struct progress *host_progress(struct host *h);
/* Does the work of host_qp_modify for a QP of an iWARP device (stream.c).
 * Returns 0, or -errno with a constant sentence in *why. */
int stream_modify(struct progress *p, struct ibt_qp *q,
		  const struct hca_qp_attr *attr, uint32_t mask,
		  const char **why);
/* Takes the progress lock and all post locks, if the progress lock is free.
 * False: another thread has the progress lock. */
bool progress_try(struct progress *p) TRY_ACQUIRE(true, &p->lock);
/* Releases the progress lock and all post locks.  Then serves the doorbells
 * that other threads have left meanwhile, if the progress lock is still
 * free. */
void progress_release(struct progress *p) RELEASE(&p->lock);
/*
 * Does everything that is due.  Reads the socket before it runs the timers, so
 * that packets which arrived while this process slept are not taken for lost.
 * Tells the engine of a peer's death only once the socket was found empty: the
 * socket may hold packets that the peer sent before its death.
 */
void progress_turn(struct progress *p) REQUIRES(&p->lock);
/* Sends the engine's frames until none is left, a socket is full or TX_ROUNDS
 * batches are sent, and reports all events of the engine.  Does both again each
 * time that the engine may have got new work: an answer of the broker, a shared
 * page, or the path of a connection. */
void progress_settle(struct progress *p) REQUIRES(&p->lock);
/* Counts a post to q, if q's requests are not direct and no packet acknowledges
 * them (UC, UD, iWARP). */
void progress_count_unanswered(struct progress *p, const struct ibt_qp *q)
	REQUIRES(&p->lock);

#endif
