/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/wheel.h"

#include "util/bits.h"

#define SLOT_BITS 6
#define SLOT_MASK (WHEEL_SLOTS - 1)
#define LAST_TICK (UINT64_MAX >> WHEEL_TICK_SHIFT)

void wheel_init(struct wheel *w, uint64_t now_ns)
{
	w->now_tick = now_ns >> WHEEL_TICK_SHIFT;
	w->levels = 0;
	for (int l = 0; l < WHEEL_LEVELS; l++) {
		w->used[l] = 0;
		for (int s = 0; s < WHEEL_SLOTS; s++)
			list_init(&w->slot[l][s]);
	}
}

void wheel_timer_init(struct wheel_timer *t)
{
	list_init(&t->node);
	t->due_tick = 0;
	t->level = t->slot = t->kind = 0;
}

/* Puts the timer into a slot.  Level 0 covers the aligned block of 64 ticks
 * that contains now_tick, and level n the aligned block of 64^(n+1) ticks: the
 * timer gets the lowest level that covers its time. */
static void place_timer(struct wheel *w, struct wheel_timer *t)
{
	uint64_t due = t->due_tick;
	uint64_t far = due ^ w->now_tick;
	int level = 0;

	while (level < WHEEL_LEVELS - 1 && far >> (SLOT_BITS * (level + 1)))
		level++;
	t->slot = (uint8_t)((due >> (SLOT_BITS * level)) & SLOT_MASK);
	t->level = (uint8_t)level;
	list_push_tail(&w->slot[level][t->slot], &t->node);
	w->used[level] |= 1ull << t->slot;
	w->levels |= 1u << level;
}

static void forget_slot(struct wheel *w, unsigned level, unsigned slot)
{
	w->used[level] &= ~(1ull << slot);
	if (!w->used[level])
		w->levels &= ~(1u << level);
}

void wheel_set(struct wheel *w, struct wheel_timer *t, uint64_t due_ns)
{
	uint64_t tick = due_ns >> WHEEL_TICK_SHIFT;

	wheel_cancel(w, t);
	if (due_ns & ((1ull << WHEEL_TICK_SHIFT) - 1) && tick < LAST_TICK)
		tick++; /* never early */
	t->due_tick = tick > w->now_tick ? tick : w->now_tick;
	place_timer(w, t);
}

void wheel_cancel(struct wheel *w, struct wheel_timer *t)
{
	if (!wheel_is_set(t))
		return;
	list_remove(&t->node);
	if (list_is_empty(&w->slot[t->level][t->slot]))
		forget_slot(w, t->level, t->slot);
}

/* Takes the timers out of the slot that now_tick has entered on each level
 * above 0, and places them on lower levels. */
static void cascade_slot(struct wheel *w)
{
	for (int l = 1; l < WHEEL_LEVELS; l++) {
		unsigned s = (w->now_tick >> (SLOT_BITS * l)) & SLOT_MASK;
		struct list moving;

		if (!(w->used[l] & (1ull << s)))
			continue;
		list_init(&moving);
		for (struct list *n; (n = list_pop_head(&w->slot[l][s]));)
			list_push_tail(&moving, n);
		forget_slot(w, (unsigned)l, s);
		for (struct list *n; (n = list_pop_head(&moving));)
			place_timer(w,
				    CONTAINER_OF(n, struct wheel_timer, node));
	}
}

/* Returns the first tick at which a slot has to be emptied, or WHEEL_NEVER. */
static uint64_t next_tick(const struct wheel *w)
{
	for (uint32_t left = w->levels; left; left &= left - 1) {
		unsigned l = (unsigned)__builtin_ctz(left);
		unsigned shift = SLOT_BITS * l;
		unsigned cur = (w->now_tick >> shift) & SLOT_MASK;
		uint64_t later = w->used[l] & ~((1ull << cur) - 1);

		if (later) {
			uint64_t turn =
				w->now_tick >> (shift + SLOT_BITS)
						       << (shift + SLOT_BITS);
			uint64_t at = turn + ((uint64_t)__builtin_ctzll(later)
					      << shift);
			return at > w->now_tick ? at : w->now_tick;
		}
	}
	return WHEEL_NEVER;
}

struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now_ns)
{
	uint64_t end = now_ns >> WHEEL_TICK_SHIFT;

	for (;;) {
		struct list *slot = &w->slot[0][w->now_tick & SLOT_MASK];
		uint64_t at;

		if (!list_is_empty(slot)) {
			struct wheel_timer *t = CONTAINER_OF(
				slot->next, struct wheel_timer, node);

			if (t->due_tick > end)
				return 0;
			wheel_cancel(w, t);
			return t;
		}
		if (w->now_tick >= end)
			return 0;
		at = next_tick(w);
		w->now_tick = at < end ? at : end;
		cascade_slot(w);
	}
}

uint64_t wheel_deadline(const struct wheel *w)
{
	uint64_t tick = next_tick(w);

	return tick == WHEEL_NEVER ? WHEEL_NEVER : tick << WHEEL_TICK_SHIFT;
}
