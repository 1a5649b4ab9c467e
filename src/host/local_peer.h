/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local peers: processes of this user on this host whose arena this process has
 * mapped, to execute requests there without packets.
 *
 *	QPN -> its class -> asked for -> mapped, checked, probed -> HERE
 *	                         `--> another user's, another build's, no
 *	                              rights (Yama, a container) -> NEVER
 *
 * No call waits: the broker's answer arrives in a later turn of progress.  Many
 * classes may be asked for at once; the broker is asked for some at a time.
 *
 * A local peer's arena is input: every offset in it is checked with arena_has
 * before use, and no invariant about it is asserted.  The peer's memory is
 * reached through hca->space alone, by space_put and space_get.
 *
 * Owner: this file; a struct lives until the last local_peer_put.  Lock: the
 * progress lock, but for local_peer_open, _begin, _end, _close and _forget.
 */
#ifndef HOST_LOCAL_PEER_H
#define HOST_LOCAL_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/access.h"
#include "hca/hca.h"

struct client_news;

struct local_peer {
	/* The view of the peer's arena.  For this process itself: its own view,
	 * with its own space. */
	struct hca *hca;
	/* This process's access slot in that arena; NULL for this process. */
	struct access *access;
	uint32_t class;
	int pid;
	uint32_t users; /* references: local_peer_get less local_peer_put */
	/* Only the QPs of one post lock use this struct, or any may. */
	bool is_apart;
};

enum local_peer_is {
	LOCAL_PEER_ASKED, /* the caller asks again when there is news */
	LOCAL_PEER_HERE,  /* mapped */
	LOCAL_PEER_NEVER, /* reached by packets alone */
};

/*
 * Lets other processes of the user map this process's arena, unless the
 * environment forbids it (log/env.h).  Called before the broker is told of this
 * process.  ADVERB_PTRACER=1 allows it where Yama would not.  @maps: registered
 * memory may be mapped, by this process and by peers, and then needs no system
 * call; false: system calls copy all memory.
 */
void local_peer_open(struct hca *own, bool maps);
/* The eventfd by which local peers wake this process; -1: no peer can. */
int local_peer_kick_fd(void);
/* Called by the progress thread when it begins: takes the lock whose word
 * hca_is_alive reads, so that peers find this process alive. */
void local_peer_begin(void);
/* Called by the progress thread when it ends: gives that lock. */
void local_peer_end(void);
/* After the progress thread has ended: returns when no peer works in this
 * process's arena, and unmaps all peers. */
void local_peer_close(void);
/* In the child of a fork: forgets the parent's peers without touching an
 * arena. */
void local_peer_forget(void);
/* May other processes map this process's arena? */
bool local_peer_is_open(void);
/* May this process map peers' memory, and may peers map its own? */
bool local_peer_maps(void);

/*
 * The process that has the QPN, which is of this namespace.  HERE: *n, for a QP
 * of this post lock (engine_post_apart); the caller gives it back by
 * local_peer_put.  The QPs of each post lock have an access slot and a view of
 * their own, unless the peer has no slot left.  The process may have ended all
 * the same (hca_is_alive).
 */
enum local_peer_is local_peer_get(uint32_t qpn, uint32_t post_lock,
				  struct local_peer **n);
/* Gives back what local_peer_get returned; n may be freed. */
void local_peer_put(struct local_peer *n);
/* Asks the broker ahead of local_peer_get, so that no request waits for the
 * answer; not if many are known already, of which a receiver may need none. */
void local_peer_expect(uint32_t qpn);
/* Wakes the peer by one write to its eventfd.  Does not wait. */
void local_peer_kick(struct local_peer *n);
/* For broker_link.c: takes the broker's answer, and its descriptor. */
void local_peer_answered(const struct client_news *news);
/* For broker_link.c: there is another broker, or none, so questions to the last
 * broker get no answer. */
void local_peer_is_back(void);
/* Is an answer outstanding? */
bool local_peer_is_asking(void);
/* Has the broker answered since this function was called last? */
bool local_peer_has_news(void);
/* No request waits for this answer any more; the answer may still come. */
void local_peer_give_up(uint32_t qpn);
/* A process died that may have worked in this arena: local_peer_note_death is
 * due. */
void local_peer_died(void);
/* Repairs the work that dead peers left half done.  True: the call is due again
 * soon. */
bool local_peer_note_death(uint64_t now_ns);

#endif
