/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lane's side of requests without packets (direct/initiator.h): which
 * process of this host a connection leads to, who is woken, and how seldom
 * sockets are looked at while peers write to our rings themselves.
 *
 * Owner and lock: the lane and its lock, but for direct_select_may_skip and
 * direct_select_is_quiet.
 */
#ifndef HOST_DIRECT_SELECT_H
#define HOST_DIRECT_SELECT_H

#include "engine/engine.h"
#include "util/shared.h"

struct direct_select {
	uint64_t look_ns;      /* when to look again for answers, */
	uint64_t heard_ns;     /* and when there was one */
	uint32_t silent_turns; /* without a datagram */
	shared_flag is_quiet;  /* nothing comes but by our rings; */
	shared_u32 skipped;    /* polls that looked no further since */
};

void direct_select_init(struct direct_select *w);
/* Ask for what the engine newly wants to know, or answer it; false: nothing
 * was answered. */
bool direct_select_find(struct engine *e);
/* The broker may have answered; whose answer takes too long goes by packets. */
void direct_select_look(struct direct_select *w, struct engine *e,
			uint64_t now_ns);
/* Let go of the processes that QPs lead to no more. */
void direct_select_part(struct engine *e);
/* Wake those who have mail. */
void direct_select_kick(struct engine *e);
/* A turn has ended: did datagrams come? */
void direct_select_turned(struct direct_select *w, struct engine *e, bool any,
			  uint64_t now_ns);
/* When to look at the latest if nothing comes; UINT64_MAX: no need. */
uint64_t direct_select_look_ns(const struct engine *e, uint64_t now_ns);
/*
 * Who turned the lane will sleep until *wake_ns, which is made earlier if need
 * be, unless kicked; and does not any more.
 */
void direct_select_rest(struct engine *e, uint64_t now_ns, uint64_t *wake_ns);
void direct_select_rested(struct engine *e);
/* May a poll do without a turn? */
bool direct_select_may_skip(struct direct_select *w, const struct engine *e);
static inline bool direct_select_is_quiet(const struct direct_select *w)
{
	return shared_load(&w->is_quiet);
}

#endif
