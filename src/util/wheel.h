/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hierarchical timer wheel: insertion, removal and expiry in constant time for
 * any number of timers.  Eight levels of 64 slots; a tick of level 0 is 2^16 ns
 * (65.5 us), so the wheel covers all 64-bit times.  A timer never expires
 * early, and late by at most one tick of level 0.  Owner and lock are those of
 * the engine that contains the wheel.
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
	uint8_t kind; /* free for the owner, to tell its timers apart */
};

struct wheel {
	uint64_t now_tick;	     /* all slots before this tick are empty */
	uint32_t levels;	     /* bit l: level l has timers */
	uint64_t used[WHEEL_LEVELS]; /* bit s: slot s has timers */
	struct list slot[WHEEL_LEVELS][WHEEL_SLOTS];
};

/* Initialises a wheel without timers at time now_ns. */
void wheel_init(struct wheel *w, uint64_t now_ns);
/* Initialises a timer that is not armed. */
void wheel_timer_init(struct wheel_timer *t);
/* Arms t for due_ns, whether t is armed already or not.  A timer whose due_ns
 * is in the past expires at the next wheel_expire. */
void wheel_set(struct wheel *w, struct wheel_timer *t, uint64_t due_ns);
/* Disarms t; does nothing if t is not armed. */
void wheel_cancel(struct wheel *w, struct wheel_timer *t);
/* Returns whether t is armed. */
static inline bool wheel_is_set(const struct wheel_timer *t)
{
	return list_is_linked(&t->node);
}
/* Disarms and returns one timer that is due at now_ns, or returns NULL if none
 * is due. */
struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now_ns);
/*
 * Returns a time that is not later than the next timer's, or WHEEL_NEVER if no
 * timer is armed.  The time may be earlier than the timer's: the caller then
 * calls wheel_expire in vain and asks again.
 */
uint64_t wheel_deadline(const struct wheel *w);

#endif
