/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps and checks the arena of another process of this user.  The answer of the
 * broker, or of the fabric, names the descriptor of the arena's first part, and
 * the arena's header names that of the second part.  The names and the arena
 * are input: a name may lead to any file, and each offset is checked to lie in
 * the arena.
 *
 * Lock: the progress lock; peer_arena_init is called while no other thread uses
 * this file.
 */
#ifndef HOST_PEER_ARENA_H
#define HOST_PEER_ARENA_H

#include <stdbool.h>

#include "broker/client.h"
#include "hca/hca.h"

/* The reason that peer_arena_map returns if the process is about to begin or to
 * end.  A later call for the same process may succeed. */
extern const char peer_arena_not_yet[];

/* Learns how to recognise memfds.  False: the process cannot make a memfd. */
bool peer_arena_init(void);
/*
 * Maps the arena, the owner's part read-only, fills *h except for its space,
 * and checks that the arena is that of the process at->pid and that the kernel
 * lets this process access that process's memory.  Returns NULL, and the caller
 * unmaps h->arena; or, with nothing mapped, the reason why the peer cannot be
 * used, as a clause for the user in which "it" is the peer.
 */
const char *peer_arena_map(struct hca *h, const struct proto_at *at);

#endif
