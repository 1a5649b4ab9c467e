/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The indexes of the group (reuseport_group.h) that belong to processes of
 * users other than the broker's.  Such a process gets no socket of port 4791:
 * by such a socket it could attach or detach the BPF program that steers the
 * whole group, and so read the datagrams of others.  The broker sends the
 * process its datagrams by a relay (wire/relay.h), which is made for this
 * process alone.  After the process has ended, the relay is closed once no
 * datagram waits there.
 *
 * The broker takes no descriptor from such a process, since the close of a
 * descriptor may wait for as long as the process likes (user_receiver.h).  By a
 * random number, its token, the process proves to a successor of the broker
 * that it has the class; the successor makes a new relay.
 *
 * No user takes all indexes.  A user that has as many indexes as are free gets
 * no further one: its next process can only get the index of one of its
 * processes that has ended.
 *
 * After a process has ended, its peers may go on sending to its class until
 * their retries are used up.  No other user may read the payload of these
 * packets, so for STEER_USER_REST_MS an index goes only to the user that had it
 * last.  The ledger (fd_store.h) keeps that user and the time of the release
 * for the broker's successor.  USER_NONE stands for users that cannot be told
 * from each other: an index that one of them had goes to no user in that time.
 *
 * An index that no process has had is drawn by chance from the upper half.  If
 * there is none in the upper half, the highest one below it is taken: the
 * members of the broker's own user need the lower indexes, in order.
 */
#ifndef BROKER_OTHER_USER_H
#define BROKER_OTHER_USER_H

#include "broker/reuseport_group.h"

/* How many bytes of kernel memory the waiting datagrams in all relays of one
 * user may take together. */
#define OTHER_USER_BYTES (64u << 20)

/*
 * Gives an index to a process of `user`.  Takes the first of these that there
 * is: an index that this user had last and that rests no longer; one that no
 * process has had; the one that was released first, more than
 * STEER_USER_REST_MS ago; one that this user had last and that still rests.  A
 * user that has as many indexes as are free gets only the first or the last.
 * The index has a relay and, if there is memory, a zeroed page; both are the
 * group's.  Returns the index, or -errno with a sentence in *why, which is
 * valid until the next call.  -ENOSPC: no index is left for this user.
 */
int other_user_take(struct reuseport_group *g, uid_t user, const char **why);
/* Advances m, an index that is resting or free, to its next `use` if the time
 * for that has come.  Closes the relay of m once no datagram waits there, and
 * shares its bytes among the user's other relays.
 * now_ms: CLOCK_MONOTONIC. */
void other_user_tick(struct reuseport_group *g,
		     struct reuseport_group_member *m, uint64_t now_ms);
/* Called when the process of m has ended.  Closes the receiving end of m's
 * relay if the process has not got it.  Closes the sending end if no datagram
 * waits there; otherwise other_user_tick closes it later.  The page stays for
 * the next process of the same user, and is zeroed except for the shm acks
 * (shared_page_end). */
void other_user_leave(struct reuseport_group *g,
		      struct reuseport_group_member *m);
/* Returns whether the next member of the broker's own user may have index
 * g->count.  If so, closes the page that a process of another user left there.
 */
bool other_user_may_join(struct reuseport_group *g);
/* Closes the broker's descriptor of the receiving end of m's relay, which the
 * process of m has now. */
void other_user_sent(struct reuseport_group_member *m);
/*
 * Takes over the indexes that other users have in the ledger of a dead broker.
 * An owned index has no relay until its process comes (other_user_comes).  An
 * index that was released keeps its user and the time of its release; a time
 * after now_ms (CLOCK_MONOTONIC) becomes now_ms.
 */
void other_user_adopt(struct reuseport_group *g, uint64_t now_ms);
/* Makes a new relay for m, whose process has come back from an earlier broker
 * and has shown this token.  Returns 0; -ESTALE: the token is not that of m, or
 * m has a relay already; or the -errno of relay_pair. */
int other_user_comes(struct reuseport_group *g,
		     struct reuseport_group_member *m, uint64_t token);

#endif
