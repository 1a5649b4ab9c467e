/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local peers: processes of this user on this host whose arena this process has
 * mapped, to execute requests there without packets.
 *
 *	a class --> broker, or fabric, is asked --> mapped, checked, probed
 *	                       |                     -> LOCAL_PEER_HERE
 *	                       `-> another user's, another build's, no rights
 *	                           (Yama, a container) -> LOCAL_PEER_NEVER
 *
 * No call waits for the answer, which arrives in a later turn of progress.  At
 * most 32 questions are outstanding at once; callers repeat further questions
 * later.
 *
 * A local peer's arena is input: every offset in it is checked with arena_has
 * before use, and no invariant about it is asserted.  The peer's memory is
 * accessed only through hca->space (hca/space.h).
 *
 * Owner: this file.  A struct local_peer is valid from local_peer_get to the
 * caller's local_peer_put.  Lock: the progress lock, with these exceptions.
 * local_peer_open, _use, _close, _withdraw and _forget are called while no
 * other thread uses this file.  The progress thread calls local_peer_begin and
 * local_peer_end without the lock.  local_peer_wake_fd, _is_open, _maps and
 * _wake need no lock.
 */
#ifndef HOST_LOCAL_PEER_H
#define HOST_LOCAL_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/access.h"
#include "hca/hca.h"

struct client_news;

struct local_peer {
	/* The view of the peer's arena.  If the peer is this process itself:
	 * this process's own view and space. */
	struct hca *hca;
	/* This process's access slot in that arena; NULL if the peer is this
	 * process itself. */
	struct access *access;
	/* The peer's steering class; on a host of a fabric, the number of the
	 * peer's program (fabric_reached.program). */
	uint32_t class;
	int pid; /* the peer's process ID */
	/* How many calls of local_peer_get were not undone by local_peer_put
	 * yet. */
	uint32_t users;
	/* true: the post lock of a QP is enough to use this struct, because
	 * only QPs of one post lock use it, or because the peer is this process
	 * itself.  false: a QP whose post lock is not 0 also needs the progress
	 * lock. */
	bool is_apart;
};

enum local_peer_is {
	/* Not known yet: the caller calls local_peer_get again later, and at
	 * once if local_peer_has_news returns true. */
	LOCAL_PEER_ASKED,
	LOCAL_PEER_HERE,  /* the peer's arena is mapped */
	LOCAL_PEER_NEVER, /* the peer can be reached only by packets */
};

/*
 * Lets other processes of the user map this process's arena.  If the
 * environment forbids that (log/env.h) or a system call fails,
 * local_peer_is_open returns false from then on.  Called before
 * broker_link_socket.  @own is borrowed until local_peer_close.  With
 * ADVERB_PTRACER=1 the other processes may access this process's memory even
 * where Yama restricts that.  @maps: this process and its peers may map each
 * other's registered memory, and then copy without system calls; false: system
 * calls copy all memory.
 */
void local_peer_open(struct hca *own, bool maps);
/* Makes this file ask `ask` for arenas in place of the broker: on a host of a
 * fabric, where classes are the numbers of programs.  @own: this process's
 * number.  Called after local_peer_open, while no other thread uses this file.
 * `ask` returns false if the question cannot be sent now. */
void local_peer_use(uint32_t own, bool (*ask)(uint32_t class));
/* Returns the eventfd by which local peers wake this process, or -1.  The
 * caller does not close it. */
int local_peer_wake_fd(void);
/*
 * Called by the progress thread when it begins: takes the lock whose word
 * hca_is_alive reads, so that peers find this process alive.  Returns 0, or
 * -errno: the process gets no name as an owner of shared locks
 * (lock_owner_open), or the lock cannot be taken.  The thread then ends, and
 * progress_thread_start fails.  In a process that has no broker, and for which
 * local_peer_use was not called, the thread begins even if the process gets no
 * name, and then without the lock: such a process has no peers.
 */
int local_peer_begin(void);
/* Called by the progress thread when it ends: releases the lock of
 * local_peer_begin, if that call has taken it. */
void local_peer_end(void);
/* Called after the progress thread has ended: waits for the peers inside this
 * process's arena whose access slots do not say what the peers may touch, and
 * for those whose access was revoked (access_wait), and unmaps the arenas of
 * all peers. */
void local_peer_close(void);
/* Called in place of local_peer_close if the arena is not shared, although
 * other processes may learn where the arena is.  Those processes then send
 * packets.  After local_peer_close they would take this process for one that is
 * about to begin, and ask again and again. */
void local_peer_withdraw(void);
/* In the child of a fork: forgets the parent's peers without touching an
 * arena. */
void local_peer_forget(void);
/* May other processes map this process's arena? */
bool local_peer_is_open(void);
/* May this process map peers' memory, and may peers map its own? */
bool local_peer_maps(void);

/*
 * Finds the process with this steering class of this namespace or, on a host of
 * a fabric, with this number (fabric_reached.program): there the fabric is
 * asked in place of the broker.
 *
 * @post_lock: the number of the post lock of the QP that will use the peer
 * (engine_post_apart).  LOCAL_PEER_HERE: *n is the peer, which may have died by
 * now (hca_is_alive); the caller releases *n by local_peer_put.  The QPs of
 * each post lock get an access slot and a view of their own, unless the peer's
 * arena has no free slot or there is no memory.
 */
enum local_peer_is local_peer_get(uint32_t class, uint32_t post_lock,
				  struct local_peer **n);
/* Releases a peer that local_peer_get returned.  May free n. */
void local_peer_put(struct local_peer *n);
/* Asks the broker for the arena of the process that has the QPN, before
 * local_peer_get does, so that no request has to wait for the answer.  Does
 * nothing if 64 peers are known already: a process with so many peers may send
 * no request to most of them. */
void local_peer_expect(uint32_t qpn);
/* Wakes the peer by one write to its eventfd.  Does not wait. */
void local_peer_wake(struct local_peer *n);
/* Takes the answer of the broker, or of the fabric (link_reach.c), about an
 * arena (CLIENT_NEWS_ARENA), and owns the descriptor in it from then on. */
void local_peer_answered(const struct client_news *news);
/* Called by broker_link.c when the broker is gone, whether or not there is a
 * new one: forgets the questions to the old broker, so that they are asked
 * again. */
void local_peer_forget_questions(void);
/* Is an answer of the broker or of the fabric about an arena outstanding? */
bool local_peer_is_asking(void);
/* Has the broker or the fabric answered since the last call of this function?
 * Neither CLIENT_ARENA_LATER nor an arena that cannot be used yet
 * (peer_arena_not_yet) counts as an answer: the caller asks again only after a
 * pause. */
bool local_peer_has_news(void);
/* Called when the fabric has answered a question about packets. */
void local_peer_note_news(void);
/* Called when no request waits any more for the answer about the process with
 * the class.  The answer may still come. */
void local_peer_give_up(uint32_t class);
/* Called when a process has died that may have worked in this process's arena:
 * makes local_peer_note_death repair the arena. */
void local_peer_died(void);
/* Repairs what dead peers have left half done in this process's arena, if
 * local_peer_died was called.  @now_ns: the present time (monotonic_ns).  True:
 * the repair is not complete, and the caller calls again soon. */
bool local_peer_note_death(uint64_t now_ns);

#endif
