/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hierarchical timer wheel: insertion and removal take constant time for any
 * number of timers, and so does expiry on average: each timer moves to a lower
 * level at most seven times.  The wheel has eight levels of 64 slots, and a
 * tick of level 0 is 2^16 ns (65.5 us), so the wheel covers all 64-bit times.
 * A timer never expires early.  It expires at most one tick of level 0 late if
 * the caller calls wheel_expire at each wheel_deadline.  Owner and lock are
 * those of the structure that contains the wheel.
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
	uint64_t due_tick;   /* when the timer expires: a tick of level 0 */
	uint8_t level, slot; /* the place of an armed timer in wheel.slot */
	uint8_t kind;	     /* set by the owner, to tell timers apart */
};

struct wheel {
	uint64_t now_tick; /* the slots of all earlier ticks are empty */
	uint32_t levels;   /* bit l: level l has timers */
	uint64_t used[WHEEL_LEVELS]; /* bit s: slot s has timers */
	struct list slot[WHEEL_LEVELS][WHEEL_SLOTS];
};

/* Initialises a wheel without timers at time now_ns. */
void wheel_init(struct wheel *w, uint64_t now_ns);
/* Initialises a timer that is not armed. */
void wheel_timer_init(struct wheel_timer *t);
/* Arms t for due_ns.  If t is armed already, its old time no longer counts.  If
 * due_ns is in the past by a tick of level 0 or more, t expires at the next
 * wheel_expire. */
void wheel_set(struct wheel *w, struct wheel_timer *t, uint64_t due_ns);
/* Disarms t; does nothing if t is not armed. */
void wheel_cancel(struct wheel *w, struct wheel_timer *t);
/* Returns whether t is armed. */
static inline bool wheel_is_set(const struct wheel_timer *t)
{
	return list_is_linked(&t->node);
}
/* Disarms and returns one timer that is due at now_ns; NULL: none is due.  The
 * caller calls it until it returns NULL. */
struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now_ns);
/*
 * Returns the absolute time, in ns, at which the caller must call wheel_expire
 * next; WHEEL_NEVER: no timer is armed.  The time may be earlier than that of
 * the next timer: then wheel_expire returns NULL, and the caller asks again.
 */
uint64_t wheel_deadline(const struct wheel *w);

#endif
