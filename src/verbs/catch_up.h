/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call of adverb's libibverbs.so.1 for librdmacm.so.1, which looks the symbol
 * ibv_adverb_catch_up up by dlsym (release.h).
 *
 * A hardware adapter acknowledges a message, and completes an acknowledged
 * request, within microseconds, long before a message of connection management
 * arrives.  With adverb a thread of the process does both, when the thread has
 * a core and the progress lock.  So librdmacm makes this call before it posts
 * an event that a program expects after its completions (rdmacm/last_event.h).
 */
#ifndef VERBS_CATCH_UP_H
#define VERBS_CATCH_UP_H

#include <infiniband/verbs.h>

#include <stdbool.h>
#include <stdint.h>

/* Calls host_catch_up, and returns its result.  In a forked child does nothing,
 * and returns false. */
bool ibv_adverb_catch_up(struct ibv_context *context, uint32_t qpn);
/* The type of ibv_adverb_catch_up, for dlsym. */
typedef bool verbs_catch_up(struct ibv_context *context, uint32_t qpn);

#endif
