/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of other users than the broker's, in the group (reuseport_group.h).
 * Such a process has no socket of port 4791: whoever has one may attach or
 * detach the program that steers all of them, and so read what comes for
 * others.  The broker hands on to it by a relay (wire/relay.h) that is made for
 * this process alone and is closed when that ends.
 *
 * A foreign process keeps a descriptor of the broker's end too, by which it can
 * do no more than send datagrams to itself: it shows that to the broker's
 * successor, who knows it by its cookie.
 *
 * No user can take all indexes: one that has as many as there are left gets no
 * more until others end.
 */
#ifndef BROKER_OTHER_USER_H
#define BROKER_OTHER_USER_H

#include "broker/reuseport_group.h"

/*
 * An index with a relay and, if there is memory, a zeroed page; or -errno with
 * a sentence in *why, which lasts until the next call.
 */
int other_user_take(struct reuseport_group *g, uid_t user, const char **why);
/* Closes what it had.  The page stays for the next process of its user. */
void other_user_leave(struct reuseport_group_member *m);
/* Is index g->count, which a member would get, free? */
bool other_user_may_join(struct reuseport_group *g);
/* SO_COOKIE of the end to hand on by; 0 of a member. */
uint64_t other_user_cookie(const struct reuseport_group_member *m);
/* Those of a broker that has died, by the group's ledger: owned, and without a
 * relay until they come. */
void other_user_adopt(struct reuseport_group *g);
/* One of these comes with that end, which is taken if its cookie is this. */
bool other_user_comes(struct reuseport_group_member *m, uint64_t cookie,
		      int *relay_fd);

#endif
