/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A world without packets, in which the initiator works in the target's arena.
 * One operation is posted.  At any step of the operation (util/step.h) the
 * initiator ends, the target ends, or the target deregisters its memory.
 *
 * side[0] --- dies ------> side[1], which repairs its queues
 *   a third process -----> the queues of side[1], before or after the repair
 */
#ifndef TESTS_SCENARIO_CRASH_POINT_H
#define TESTS_SCENARIO_CRASH_POINT_H

#include <setjmp.h>

#include "direct/target.h"
#include "ibt/ibt.h"
#include "scenario/two_hcas.h"

#define CRASH_POINT_BYTES	2500  /* 3 pieces of at most 1000 bytes */
#define CRASH_POINT_FEW_BYTES	40    /* an eager message */
#define CRASH_POINT_AT		66000 /* offset of the data in the target */
#define CRASH_POINT_THIRD_AT	70000
#define CRASH_POINT_THIRD_BYTES 16
#define CRASH_POINT_RECEIVES	4
#define CRASH_POINT_THIRD_QPN	0x2001u
#define CRASH_POINT_PERIOD	1000000 /* of a moderated CQ, in ns */
#define CRASH_POINT_STEPS_MIN	6	/* each operation has 6 steps or more */
#define CRASH_POINT_STEPS_MAX	400	/* and fewer than 400 */
#define CRASH_POINT_OPERATIONS	33

enum crash_point_victim {
	CRASH_POINT_NOBODY,
	CRASH_POINT_INITIATOR,
	CRASH_POINT_TARGET,
	CRASH_POINT_REGION /* the target deregisters its region */
};

/* Says what happens in the present world, and at which step: a process ends, or
 * the target deregisters its region.  The only object of this type is
 * crash_point_now. */
struct crash_point_play {
	enum crash_point_victim victim;
	uint32_t left; /* steps until that happens */
	jmp_buf death; /* an initiator's death jumps here */
	struct two_hcas *d;
	bool is_first; /* the process of side 0 runs, and not that of side 1 */
	bool is_stopped; /* the victim is stopped and may continue */
	bool has_one;	 /* the target posts one receive only */
	/* n: at the n-th step "a completion queue is looked at", counted from
	 * 1, another thread of side `collects` collects completions.  0: no
	 * thread does. */
	uint32_t look;
	struct two_hcas_side *collects;
	/* At step other_left, counted from 0, another thread of the initiator
	 * runs.  `left` counts the steps of that thread, too.  NULL: there is
	 * no such thread, or that thread has run. */
	void (*other)(void);
	uint32_t other_left;
};

extern struct crash_point_play crash_point_now;

/* Flags of an operation and of the objects that it uses. */
enum {
	CRASH_POINT_SHARED = 1, /* the target has an SRQ */
	/* the request is solicited, and only solicited completions raise
	 * events */
	CRASH_POINT_SOLICITED = 2,
	CRASH_POINT_MODERATED = 4, /* the target's CQ is moderated */
	CRASH_POINT_LIMITED = 8,   /* the limit of the SRQ is armed */
	CRASH_POINT_FULL = 16,	   /* the target's CQ has no room */
	CRASH_POINT_BAD_KEY = 32,  /* the request has a wrong R_Key */
	CRASH_POINT_TOO_LONG = 64, /* longer than the receive */
	CRASH_POINT_FAILS = CRASH_POINT_BAD_KEY | CRASH_POINT_TOO_LONG,
	CRASH_POINT_FEW = 128, /* a request moves CRASH_POINT_FEW_BYTES */
	CRASH_POINT_ROW = 256, /* CRASH_POINT_ROW_LENGTH requests at once */
	CRASH_POINT_ROW_LENGTH = 3,
	CRASH_POINT_MAPPED = 512, /* both processes have mapped the target's
				   * memory */
	/* the initiator has executed a request before (is_heard) */
	CRASH_POINT_HEARD = 1024,
};

struct crash_point_operation {
	enum hca_wr op;
	uint32_t how;
};

extern const struct crash_point_operation
	crash_point_operations[CRASH_POINT_OPERATIONS];

/* A world in which one operation is posted. */
struct crash_point {
	const struct crash_point_operation *o;
	struct two_hcas *d;
	struct two_hcas_side *target; /* side 1 of d */
	struct mr *window;	      /* a memory window of the target */
	struct qp *third; /* the target's QP to which a third process sends */
	struct ibt_qp *third_side; /* `third` in the target's engine */
	struct hca view;	   /* the target's adapter, as the third process
				    * sees it */
	struct target_ref link; /* the third process's reference to the target
				 */
};

/* Makes the world *s, with the target's queues ready for operation o, which
 * crash_point_post posts.  crash_point_end frees the world. */
void crash_point_prepare(struct crash_point *s,
			 const struct crash_point_operation *o);
/* Makes the world *s, and posts operation o. */
void crash_point_begin(struct crash_point *s,
		       const struct crash_point_operation *o);
/* Begins a world, and runs it until the initiator of o dies at step k, counted
 * from 0.  False: o ended before step k. */
bool crash_point_begin_until(struct crash_point *s,
			     const struct crash_point_operation *o, uint32_t k);
/* Frees the world, but not the engines of dead processes. */
void crash_point_end(struct crash_point *s);
/* Lets the process of this side run from here on. */
void crash_point_turns(int side);
/* Posts the requests of operation s->o.  A test may call this more than once.
 */
void crash_point_post(struct crash_point *s);
/* The bytes that one request of o moves. */
uint32_t crash_point_bytes(const struct crash_point_operation *o);
/* The number of requests of o. */
uint32_t crash_point_count(const struct crash_point_operation *o);
/* The third process sends to the target's queues. */
void crash_point_send_third(struct crash_point *s);
/* The target learns of the initiator's death, and repairs its queues. */
void crash_point_repair(struct crash_point *s);
/* Fails the test if the target's responder lock, the lock of its CQ or the lock
 * of its keys is held. */
void crash_point_assert_unlocked(const struct crash_point *s);
/* Returns a step that the initiator has never reached while there was a victim;
 * NULL: the initiator has reached every step. */
const char *crash_point_unseen(void);

#endif
