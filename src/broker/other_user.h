/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The indexes of the group (reuseport_group.h) that processes of other users
 * than the broker's have.  Such a process gets no socket of port 4791: by such
 * a socket it could attach or detach the program that steers the whole group,
 * and so read the datagrams of others.  The broker sends the process its
 * datagrams by a relay (wire/relay.h), which is made for this process alone and
 * closed when the process ends.
 *
 * The process keeps a descriptor of the sending end of its relay too, by which
 * it can only send datagrams to itself.  It shows that descriptor to a
 * successor of the broker, which recognises the relay by its cookie
 * (SO_COOKIE).
 *
 * No user takes all indexes: a user that has as many indexes as are free gets
 * no more until some of its processes end.
 *
 * After a process has ended, its peers may go on sending to its class until
 * their retries are used up, and these packets have payload.  So for
 * OTHER_USER_REST_MS an index goes only to the user that had it last.  The
 * ledger (fd_store.h) keeps that user and the time of the release for the
 * broker's successor.  USER_NONE stands for users that cannot be told from each
 * other: none of them gets such an index back.
 *
 * An index for another user is drawn by chance from the upper half.  When the
 * upper half is used up, the index is the highest one below it: the members of
 * the broker's own user need the lower indexes, in order.
 */
#ifndef BROKER_OTHER_USER_H
#define BROKER_OTHER_USER_H

#include "broker/reuseport_group.h"

/* How long an index is kept from users that did not have it last: ten times the
 * default of ADVERB_PATIENCE, in milliseconds. */
#define OTHER_USER_REST_MS 600000u

/* How many bytes of kernel memory the datagrams may take that wait in all
 * relays of one user. */
#define OTHER_USER_BYTES (64u << 20)

/*
 * Gives an index to a process of `user`: one that this user had last; or else
 * one that no process had; or else the one that was released first, more than
 * OTHER_USER_REST_MS ago; or else one that this user had last and that is still
 * resting.  The index has a relay and, if there is memory, a zeroed page; both
 * are the group's.  Returns the index, or -errno with a sentence in *why, which
 * is valid until the next call.
 */
int other_user_take(struct reuseport_group *g, uid_t user, const char **why);
/* Advances m, an index that is resting or free, to its next `use` if the time
 * for it has come.  Closes its relay once no datagram waits there. */
void other_user_tick(struct reuseport_group_member *m, uint64_t now_ms);
/* Closes the descriptors of m, whose process has ended, except two: the page,
 * which stays for the next process of the same user, and a relay in which
 * datagrams wait (other_user_tick closes it). */
void other_user_leave(struct reuseport_group *g,
		      struct reuseport_group_member *m);
/* Whether the next member of the broker's own user may have index g->count.  If
 * so, makes that index free of what another user had there. */
bool other_user_may_join(struct reuseport_group *g);
/* Returns SO_COOKIE of the sending end of m's relay; 0: m has a socket of the
 * port. */
uint64_t other_user_cookie(const struct reuseport_group_member *m);
/*
 * Takes over the indexes that other users have in the ledger of a dead broker.
 * An owned index has no relay until its process comes (other_user_comes).  An
 * index that was released keeps its user and the time of its release; a time
 * after now_ms becomes now_ms.
 */
void other_user_adopt(struct reuseport_group *g, uint64_t now_ms);
/* Takes *relay_fd as the sending end of m's relay, and sets it to -1, if its
 * SO_COOKIE is cookie.  False: it is not, or m has a relay already; then
 * *relay_fd stays the caller's. */
bool other_user_comes(struct reuseport_group *g,
		      struct reuseport_group_member *m, uint64_t cookie,
		      int *relay_fd);

#endif
