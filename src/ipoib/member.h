/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Membership in multicast groups: joins, leaves, and packets to groups
 * (RFC 4391, 5 and 10).
 */
#ifndef IPOIB_MEMBER_H
#define IPOIB_MEMBER_H

#include "ipoib/inside.h"

/* Adds the broadcast group to the empty table of groups; member_turn joins it.
 */
void member_begin(struct ipoib *m, uint64_t now_ms);
/* Forgets all groups, without leaving them, and detaches the queue pair. */
void member_forget(struct ipoib *m);
/* Makes member_turn join each group again, since the memberships may have
 * ended.  Meanwhile packets to the groups are sent as before. */
void member_renew(struct ipoib *m);
/* Sets which groups the kernel has joined.  Does nothing while the interface is
 * down, and after ipoib_leave. */
void member_set_joined(struct ipoib *m, const struct joined *j,
		       uint64_t now_ms);
/* Sends a packet to a group.  If the port has yet to join the group, keeps the
 * packet until then; if the port cannot join, or the table of groups has no
 * room, drops the packet. */
void member_send(struct ipoib *m, const uint8_t mgid[16], const uint8_t *p,
		 size_t bytes, uint64_t now_ms);
/* Takes an answer of the SA about a group.  Returns false if no group waits for
 * this answer. */
bool member_answer(struct ipoib *m, const struct sa_answer *answer,
		   uint64_t now_ms);
/* Asks the SA for the joins and leaves that are due.  Returns the time of
 * the next call, or ASK_NEVER. */
uint64_t member_turn(struct ipoib *m, uint64_t now_ms);
/* Returns whether the port is a member of no group.  A membership has ended
 * when the SA has answered the request to leave, or when none of the tries of
 * this request got an answer. */
bool member_has_left(const struct ipoib *m);

#endif
