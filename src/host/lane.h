/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop between the engine and the wire.  Whoever has a reason turns it:
 * a program's post or poll, or our thread; nobody waits for the lock, a
 * doorbell that finds it held is left for the holder:
 *
 *	ringer: append to pending      holder: turn the lane
 *	        try the lock, else go          give the lock
 *	                                       pending? try the lock again
 *
 * Both look at `pending` under its own lock after they have let go of, or
 * failed to get, the lane: one of the two sees it.
 */
#ifndef HOST_LANE_H
#define HOST_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "host/host.h"
#include "util/lock.h"
#include "wire/udp.h"

#define LANE_PENDING 64

struct lane {
	struct lock lock;
	struct engine *engine; /* owned, GUARDED_BY(lock) */
	struct udp wire;       /* the same */
	uint64_t last_turn_ns;
	bool is_full;	  /* the socket took less than we had */
	bool is_behind;	  /* the last turn left datagrams unread */
	uint64_t wake_ns; /* when the sleeping thread will look again */
	int wake_fd;	  /* its eventfd; -1 before it runs */
	struct host_sink sink;
	struct lock pending_lock; /* leaf, below lock */
	struct ibt_qp *pending[LANE_PENDING];
	uint32_t pending_count;
};

uint64_t lane_now(void);
/* Takes the engine and fd; 0 or -errno. */
int lane_init(struct lane *l, struct engine *e, int fd,
	      const struct host_sink *sink);
void lane_fini(struct lane *l);
/* Turn it if it is free; true if it was. */
bool lane_try(struct lane *l);
void lane_doorbell(struct lane *l, struct ibt_qp *q);
/* For creation, modification and destruction: wait for the lock; giving it
 * back sends and reports what the call has caused. */
void lane_take(struct lane *l) ACQUIRE(&l->lock);
void lane_give(struct lane *l) RELEASE(&l->lock);
/* Forget doorbells of a dying QP; under the lock. */
void lane_forget(struct lane *l, const struct ibt_qp *q);
/* Make the thread look again, if it sleeps. */
void lane_wake(struct lane *l);

#endif
