/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of other users than the broker's, in the group (reuseport_group.h).
 * Such a process gets no socket of port 4791: by such a socket it could attach
 * or detach the program that steers the whole group, and so read what comes for
 * others.  The broker sends it its datagrams by a relay (wire/relay.h), which
 * is made for this process alone and closed when the process ends.
 *
 * The process keeps a descriptor of the sending end too, by which it can only
 * send datagrams to itself.  It shows that descriptor to a successor of the
 * broker, which recognises the socket by its cookie.
 *
 * No user takes all indexes: a user that has as many as there are left gets no
 * more until some of its processes end.
 *
 * Peers of a process that has ended may send to its class for as long as they
 * are patient, with payload.  So an index goes back to the user that had it
 * last, and to another user only after OTHER_USER_REST_MS.  The ledger
 * (fd_store.h) keeps user and time for the broker's successor.  USER_NONE
 * stands for users that cannot be told apart: none of them gets such an index
 * back.
 *
 * An index of another user is drawn by chance from the upper half, and below it
 * from the end: the broker's own members need the lower ones, in order.
 */
#ifndef BROKER_OTHER_USER_H
#define BROKER_OTHER_USER_H

#include "broker/reuseport_group.h"

/* How long an index is kept from users that did not have it last: ten times the
 * default of ADVERB_PATIENCE. */
#define OTHER_USER_REST_MS 600000u

/* How many bytes of kernel memory may wait in the relays of one user's
 * processes, together. */
#define OTHER_USER_BYTES (64u << 20)

/*
 * Gives an index to a process of user: one that this user had last; or one that
 * no process had; or the one that was released first, more than
 * OTHER_USER_REST_MS ago; or one that this user had last and that is still
 * resting.  The index has a relay and, if there is memory, a zeroed page.
 * -errno with a sentence in *why, which lasts until the next call, if there is
 * no such index.
 */
int other_user_take(struct reuseport_group *g, uid_t user, const char **why);
/* Advances an index that is resting or free to its next use when its time has
 * come, and closes its relay once no datagram waits there. */
void other_user_tick(struct reuseport_group_member *m, uint64_t now_ms);
/* Closes what the process of m had but for its page, which stays for the next
 * process of its user, and for a relay in which datagrams wait (see
 * other_user_tick). */
void other_user_leave(struct reuseport_group *g,
		      struct reuseport_group_member *m);
/* Whether the next member of the broker's own user may have index g->count. */
bool other_user_may_join(struct reuseport_group *g);
/* SO_COOKIE of the sending end of m's relay; 0: m has a socket of the port. */
uint64_t other_user_cookie(const struct reuseport_group_member *m);
/*
 * Takes over the indexes of a broker that has died, by the group's ledger: an
 * owned one has no relay until its process comes; one that was released keeps
 * its user and its time, which is at most now_ms.
 */
void other_user_adopt(struct reuseport_group *g, uint64_t now_ms);
/* Takes *relay_fd (then -1) as the sending end of m's relay, if SO_COOKIE of
 * *relay_fd is cookie.  False: it is not. */
bool other_user_comes(struct reuseport_group *g,
		      struct reuseport_group_member *m, uint64_t cookie,
		      int *relay_fd);

#endif
