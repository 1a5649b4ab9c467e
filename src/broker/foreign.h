/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of other users than the broker's, in the group (group.h).  Such a
 * process has no socket of port 4791: whoever has one may attach or detach the
 * program that steers all of them, and so read what comes for others.  The
 * broker hands on to it by a relay (wire/relay.h) that is made for this process
 * alone and is closed when that ends.
 *
 * A foreign process keeps a descriptor of the broker's end too, by which it can
 * do no more than send datagrams to itself: it shows that to the broker's
 * successor, who knows it by its cookie.
 *
 * No user can take all indexes: one that has as many as there are left gets no
 * more until others end.
 */
#ifndef ADVERB_BROKER_FOREIGN_H
#define ADVERB_BROKER_FOREIGN_H

#include "broker/group.h"

/*
 * An index with a relay and, if there is memory, a zeroed page; or -errno with
 * a sentence in *why, which lasts until the next call.
 */
int foreign_take(struct group *g, uid_t user, const char **why);
/* Closes what it had.  The page stays for the next process of its user. */
void foreign_leave(struct group_member *m);
/* Is index g->count, which a member would get, free? */
bool foreign_may_join(struct group *g);
/* SO_COOKIE of the end to hand on by; 0 of a member. */
uint64_t foreign_cookie(const struct group_member *m);
/* Those of a broker that has died, by the group's ledger: owned, and without a
 * relay until they come. */
void foreign_adopt(struct group *g);
/* One of these comes with that end, which is taken if its cookie is this. */
bool foreign_comes(struct group_member *m, uint64_t cookie, int *relay_fd);

#endif
