/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Without packets the initiator works in the target's arena: a world in which
 * one operation is about to go, and in which the initiator stops for good, or
 * the target or its memory goes away, at any step of it (util/step.h).
 *
 *	side[0] --- dies ------> side[1], which puts right what it left
 *	  a third process -----> the same queues, before that or after
 */
#ifndef TESTS_SCENARIO_CRASH_POINT_H
#define TESTS_SCENARIO_CRASH_POINT_H

#include <setjmp.h>

#include "direct/target.h"
#include "ibt/ibt.h"
#include "scenario/two_hcas.h"

#define CRASH_POINT_BYTES	2500 /* three pieces */
#define CRASH_POINT_FEW_BYTES	40   /* they stay with the receive at first */
#define CRASH_POINT_AT		66000
#define CRASH_POINT_THIRD_AT	70000
#define CRASH_POINT_THIRD_BYTES 16
#define CRASH_POINT_RECEIVES	4
#define CRASH_POINT_THIRD_QPN	0x2001u
#define CRASH_POINT_PERIOD	1000000
#define CRASH_POINT_STEPS_MAX	400
#define CRASH_POINT_OPERATIONS	33

enum crash_point_victim {
	CRASH_POINT_NOBODY,
	CRASH_POINT_INITIATOR,
	CRASH_POINT_TARGET,
	CRASH_POINT_REGION
};

/* Which process of the present world ends, and at which step. */
struct crash_point_play {
	enum crash_point_victim victim;
	uint32_t left; /* steps until it dies */
	jmp_buf death;
	struct two_hcas *d;
	bool is_first;	 /* side 0 works */
	bool is_stopped; /* the process is stopped and may continue */
	bool has_one;	 /* receive, the target */
	/* Another thread of the owner collects at this look, from 1, at the
	 * queue. */
	uint32_t look;
	struct two_hcas_side *collects;
};

extern struct crash_point_play crash_point_now;

/* How an operation goes, or fails. */
enum {
	CRASH_POINT_SHARED = 1,
	CRASH_POINT_SOLICITED = 2,
	CRASH_POINT_MODERATED = 4,
	CRASH_POINT_LIMITED = 8,
	CRASH_POINT_FULL = 16,
	CRASH_POINT_BAD_KEY = 32,
	CRASH_POINT_TOO_LONG = 64,
	CRASH_POINT_FAILS = CRASH_POINT_BAD_KEY | CRASH_POINT_TOO_LONG,
	CRASH_POINT_FEW = 128,
	CRASH_POINT_ROW = 256, /* several at once: */
	CRASH_POINT_ROW_LENGTH = 3,
	CRASH_POINT_MAPPED = 512, /* by both */
};

struct crash_point_operation {
	enum hca_wr op;
	uint32_t how;
};

extern const struct crash_point_operation
	crash_point_operations[CRASH_POINT_OPERATIONS];

/* A world in which one operation is about to go. */
struct crash_point {
	const struct crash_point_operation *o;
	struct two_hcas *d;
	struct two_hcas_side *target;
	struct mr *window;
	struct qp *third; /* the target's, to which another process sends */
	struct ibt_qp *third_side;
	struct hca view; /* that process's */
	struct target_ref link;
};

/* The target's queues are ready, and its o is posted; until crash_point_end. */
void crash_point_begin(struct crash_point *s,
		       const struct crash_point_operation *o);
/* True: the initiator of o got as far as step k, and no further. */
bool crash_point_begin_until(struct crash_point *s,
			     const struct crash_point_operation *o, uint32_t k);
/* Engines of the dead are left as they stand. */
void crash_point_end(struct crash_point *s);
/* The process that runs from here on. */
void crash_point_turns(int side);
/* o once more; what it moves, and how many requests it is. */
void crash_point_post(struct crash_point *s);
uint32_t crash_point_bytes(const struct crash_point_operation *o);
uint32_t crash_point_count(const struct crash_point_operation *o);
/* Another process sends to the same queues. */
void crash_point_send_third(struct crash_point *s);
/* The owner hears of the death. */
void crash_point_repair(struct crash_point *s);
/* No lock of the target's is held. */
void crash_point_assert_unlocked(const struct crash_point *s);
/* A step that nobody has come to while there was a victim; NULL. */
const char *crash_point_unseen(void);

#endif
