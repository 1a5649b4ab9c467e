/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Without packets the initiator works in the target's arena: a world in which
 * one operation is about to go, and in which the initiator stops for good, or
 * the target or its memory goes away, at any step of it (util/step.h).
 *
 *	side[0] --- dies ------> side[1], which puts right what it left
 *	  a third process -----> the same queues, before that or after
 */
#ifndef SCENARIO_SCENE_H
#define SCENARIO_SCENE_H

#include <setjmp.h>

#include "direct/far.h"
#include "ibt/ibt.h"
#include "scenario/duo.h"

#define SCENE_BYTES	  2500 /* three pieces */
#define SCENE_FEW_BYTES	  40   /* they stay with the receive at first */
#define SCENE_AT	  66000
#define SCENE_THIRD_AT	  70000
#define SCENE_THIRD_BYTES 16
#define SCENE_RECEIVES	  4
#define SCENE_THIRD_QPN	  0x2001u
#define SCENE_PERIOD	  1000000
#define SCENE_STEPS_MAX	  400
#define SCENE_OPERATIONS  33

enum scene_victim { SCENE_NOBODY, SCENE_INITIATOR, SCENE_TARGET, SCENE_REGION };

/* Of the world that there is: who goes, and when. */
struct scene_play {
	enum scene_victim victim;
	uint32_t left; /* steps until it dies */
	jmp_buf death;
	struct duo *d;
	bool is_first;	 /* side 0 works */
	bool is_stopped; /* who died is stopped, and may go on */
	bool has_one;	 /* receive, the target */
	/* Another thread of the owner collects at this look, from 1, at the
	 * queue. */
	uint32_t look;
	struct duo_side *collects;
};

extern struct scene_play scene_now;

/* How an operation goes, or fails. */
enum {
	SCENE_SHARED = 1,
	SCENE_SOLICITED = 2,
	SCENE_MODERATED = 4,
	SCENE_LIMITED = 8,
	SCENE_FULL = 16,
	SCENE_BAD_KEY = 32,
	SCENE_TOO_LONG = 64,
	SCENE_FAILS = SCENE_BAD_KEY | SCENE_TOO_LONG,
	SCENE_FEW = 128,
	SCENE_ROW = 256, /* several at once: */
	SCENE_ROW_LENGTH = 3,
	SCENE_MAPPED = 512, /* by both */
};

struct scene_operation {
	enum hca_wr op;
	uint32_t how;
};

extern const struct scene_operation scene_operations[SCENE_OPERATIONS];

/* A world in which one operation is about to go. */
struct scene {
	const struct scene_operation *o;
	struct duo *d;
	struct duo_side *target;
	struct mr *window;
	struct qp *third; /* the target's, to which another process sends */
	struct ibt_qp *third_side;
	struct hca view; /* that process's */
	struct far_link link;
};

/* The target's queues are ready, and its o is posted; until scene_end. */
void scene_begin(struct scene *s, const struct scene_operation *o);
/* True: the initiator of o got as far as step k, and no further. */
bool scene_begin_until(struct scene *s, const struct scene_operation *o,
		       uint32_t k);
/* Engines of the dead are left as they stand. */
void scene_end(struct scene *s);
/* Who works from here on. */
void scene_turns(int side);
/* o once more; what it moves, and how many requests it is. */
void scene_post(struct scene *s);
uint32_t scene_bytes(const struct scene_operation *o);
uint32_t scene_count(const struct scene_operation *o);
/* Another process sends to the same queues. */
void scene_send_third(struct scene *s);
/* The owner hears of the death. */
void scene_mourn(struct scene *s);
/* No lock of the target's is held. */
void scene_assert_unlocked(const struct scene *s);
/* A step that nobody has come to while there was a victim; NULL. */
const char *scene_unseen(void);

#endif
