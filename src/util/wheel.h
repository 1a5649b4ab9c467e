/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hierarchical timer wheel: insertion, removal and expiry in constant time
 * for any number of timers.  Eight levels of 64 slots; a tick of level 0 is
 * 2^16 ns (65.5 us), so the wheel spans all of 64-bit time.  A timer never
 * fires early, and late by at most one tick of level 0.  Owner and lock: those
 * of the engine it lies in.
 */
#ifndef UTIL_WHEEL_H
#define UTIL_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

#define WHEEL_LEVELS	 8
#define WHEEL_SLOTS	 64
#define WHEEL_TICK_SHIFT 16
#define WHEEL_NEVER	 UINT64_MAX

struct wheel_timer {
	struct list node;
	uint64_t due_tick;
	uint8_t level, slot;
	uint8_t kind; /* the owner's, to tell its timers apart */
};

struct wheel {
	uint64_t now_tick; /* all slots up to here have been emptied */
	uint32_t levels;   /* bit l: level l has timers */
	uint64_t used[WHEEL_LEVELS]; /* bit s: slot s has timers */
	struct list slot[WHEEL_LEVELS][WHEEL_SLOTS];
};

void wheel_init(struct wheel *w, uint64_t now_ns);
void wheel_timer_init(struct wheel_timer *t);
/* (Re)arm t for due_ns; one in the past fires at the next expire. */
void wheel_set(struct wheel *w, struct wheel_timer *t, uint64_t due_ns);
void wheel_cancel(struct wheel *w, struct wheel_timer *t);
static inline bool wheel_is_set(const struct wheel_timer *t)
{
	return list_is_linked(&t->node);
}
/* One timer that is due at now_ns, disarmed, or NULL. */
struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now_ns);
/*
 * A time not later than that of the next timer (the caller may wake early and
 * ask again), WHEEL_NEVER without timers.
 */
uint64_t wheel_deadline(const struct wheel *w);

#endif
