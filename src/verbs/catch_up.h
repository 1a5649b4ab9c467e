/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call of adverb's libibverbs.so.1 for librdmacm.so.1, which finds the symbol
 * ibv_adverb_catch_up by dlsym (release.h).
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

/* Handles the packets that have arrived for any queue pair of the process, and
 * sends their responses (host_catch_up).  Returns whether completions of the
 * queue pair qpn wait to be polled; false if that queue pair is in ERR.  In a
 * forked child does nothing, and returns false. */
bool ibv_adverb_catch_up(struct ibv_context *context, uint32_t qpn);
/* The type of ibv_adverb_catch_up, for dlsym. */
typedef bool verbs_catch_up(struct ibv_context *context, uint32_t qpn);

#endif
