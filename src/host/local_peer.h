/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of this user on this host whose arena this process has
 * mapped, so that it can do their part of the work by itself.
 *
 *	QPN -> its class -> asked for -> mapped, checked, probed -> HERE
 *	                         `--> another user's, another build's, no
 *	                              rights (Yama, a container) -> NEVER
 *
 * Nothing here waits: an answer comes by a later turn of the lane.  Many may be
 * asked for at once, of which the broker hears of some at a time.
 *
 * A neighbour's arena is input: every offset read from it is checked with
 * arena_has before use, nothing in it is asserted.  Its memory is reached
 * through hca->space only, by space_put and space_get.
 *
 * Owner: this file; a struct lives until the last local_peer_put.  Lock: the
 * lane's, for all but local_peer_open to _begin and _end, _close and _forget.
 */
#ifndef HOST_LOCAL_PEER_H
#define HOST_LOCAL_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/access.h"
#include "hca/hca.h"

struct client_news;

struct local_peer {
	/*
	 * The view of its arena; of this process itself the own one, whose
	 * space is the own one too.
	 */
	struct hca *hca;
	/* Our slot in its arena; NULL: it is this process. */
	struct access *access;
	uint32_t class;
	int pid;
	uint32_t users;
};

enum local_peer_is {
	LOCAL_PEER_ASKED, /* ask again when there is news, or in a moment */
	LOCAL_PEER_HERE,
	LOCAL_PEER_NEVER, /* packets */
};

/*
 * Makes this process one that others may map, if it is to (env.h);
 * before the broker is greeted.  ADVERB_PTRACER
 * opens it to its user where Yama would not.
 */
void local_peer_open(struct hca *own);
/* The eventfd by which others wake the lane; -1: they do not. */
int local_peer_kick_fd(void);
/* The lane's thread has begun, and is about to end: the pulse. */
void local_peer_begin(void);
void local_peer_end(void);
/* When the thread has ended: nobody works in the own arena after it, and no
 * neighbour is mapped. */
void local_peer_close(void);
/* In a fork's child: let go of what the parent had, touch no arena. */
void local_peer_forget(void);
bool local_peer_is_open(void);

/*
 * The process that a QPN of this namespace belongs to.  HERE: *n, which the
 * caller gives back by local_peer_put; it may be gone (hca_is_alive) even so.
 */
enum local_peer_is local_peer_get(uint32_t qpn, struct local_peer **n);
void local_peer_put(struct local_peer *n);
/* It will be got soon: ask now, so that nobody waits for the answer; unless
 * there are many, of whom a receiver may need none. */
void local_peer_expect(uint32_t qpn);
/* Wake its lane: one write to its eventfd.  Never waits. */
void local_peer_kick(struct local_peer *n);
/* From the broker, by broker_link.c: an answer; nobody will answer what was
 * asked. */
void local_peer_answered(const struct client_news *news);
void local_peer_is_back(void);
bool local_peer_is_asking(void);
/* Has it answered since this was asked last? */
bool local_peer_has_news(void);
/* Who waited for the answer does not any more; it may come all the same. */
void local_peer_give_up(uint32_t qpn);
/* One that may have worked in our arena has died: local_peer_note_death is due.
 */
void local_peer_died(void);
/* Put right what the dead left; true: look again in a moment. */
bool local_peer_note_death(uint64_t now_ns);

#endif
