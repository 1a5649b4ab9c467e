/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The share of one user: how many of the broker's objects, listeners and
 * conversations the clients of one user have together, and how many bytes wait
 * to be read by them.  A user has at most as many objects, listeners and
 * conversations as are left for all other users (cm_owner_may_add), so that no
 * user takes all; the broker's own user is exempt.  USER_NONE, which stands for
 * all users that cannot be told from each other, has one share.
 *
 * Part of the broker's loop: one owner, no lock.
 */
#ifndef BROKER_SHARE_H
#define BROKER_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cm/cm.h"
#include "util/list.h"

/* How much may wait for the clients of one user, together. */
#define SHARE_BYTES (16u << 20)

struct user_share {
	struct list link; /* of the table */
	uid_t uid;
	uint32_t clients; /* references by share_get */
	uint32_t objects;
	uint32_t doubts;    /* of the cmserver, until they are settled */
	uint64_t bytes;	    /* that wait */
	struct cm_owner cm; /* its listeners and conversations */
};

struct share_table {
	uid_t exempt; /* the broker's own user */
	struct list all;
};

void share_table_init(struct share_table *t, uid_t exempt);
/* Frees all shares, whatever is left in them. */
void share_table_fini(struct share_table *t);
/* The share of that user, until share_put; NULL without memory. */
struct user_share *share_get(struct share_table *t, uid_t uid);
/* The share that a user has now, which stays the table's; NULL: none. */
struct user_share *share_find(struct share_table *t, uid_t uid);
/*
 * Gives back what share_get gave.  A share outlives that as long as anything of
 * its user's is left: a conversation may count for a user whose last client has
 * gone.
 */
void share_put(struct share_table *t, struct user_share *s);
/* Counts what is to wait; false: it would be more than SHARE_BYTES. */
bool share_add_bytes(struct user_share *s, uint64_t bytes);
void share_take_bytes(struct user_share *s, uint64_t bytes);

#endif
