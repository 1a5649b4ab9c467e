/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of this user on this host whose arena this process has
 * mapped, so that it can do their part of the work by itself.
 *
 *	QPN -> its class -> asked for -> mapped, checked, probed -> HERE
 *	                         `--> another user's, another build's, no
 *	                              rights (Yama, a container) -> NEVER
 *
 * Nothing here waits: an answer comes by a later turn of the lane.  Once HERE
 * or NEVER was said of a QPN it stays so for as long as its process lives.
 *
 * A neighbour's arena is input: every offset read from it is checked with
 * arena_has before use, nothing in it is asserted.  Its memory is reached
 * through hca->space only, by space_put and space_get.
 *
 * Owner: this file; a struct lives until the last neighbour_put.  Lock: the
 * lane's, for all but neighbour_open and _close.
 */
#ifndef HOST_NEIGHBOUR_H
#define HOST_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/guest.h"
#include "hca/hca.h"

struct neighbour {
	/*
	 * The view of its arena; of this process itself the own one, whose
	 * space is the own one too.
	 */
	struct hca *hca;
	/* Our slot in its arena; NULL: it is this process. */
	struct guest *guest;
	uint32_t class;
	int pid;
	uint32_t users;
};

enum neighbour_is {
	NEIGHBOUR_ASKED, /* ask again at the lane's next turn */
	NEIGHBOUR_HERE,
	NEIGHBOUR_NEVER, /* packets */
};

/*
 * Makes this process one that others may map, if ADVERB_DIRECT asks for it
 * and no capture needs packets: its name for locks, its probe, its pulse.
 * `kick` wakes the lane; both are borrowed until _close.
 */
void neighbour_open(struct hca *own, int arena_fd, int kick_fd);
/* Nobody works in the own arena after it, and no neighbour is mapped. */
void neighbour_close(void);
/* In a fork's child: let go of what the parent had, touch no arena. */
void neighbour_forget(void);
bool neighbour_is_open(void);

/*
 * The process that a QPN of this namespace belongs to.  HERE: *n, which the
 * caller gives back by neighbour_put; it may be gone (hca_is_alive) even so.
 */
enum neighbour_is neighbour_get(uint32_t qpn, struct neighbour **n);
void neighbour_put(struct neighbour *n);
/* Wake its lane: one write to its eventfd.  Never waits. */
void neighbour_kick(struct neighbour *n);
/* Why the last NEVER was one, a sentence; "" if there was none. */
const char *neighbour_why(void);

#endif
