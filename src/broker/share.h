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

/* How many bytes may wait for the clients of one user, together. */
#define SHARE_BYTES (16u << 20)

struct user_share {
	struct list link; /* in share_table.all */
	uid_t uid;
	uint32_t clients; /* references by share_get */
	uint32_t objects;
	uint32_t doubts;    /* unsettled doubts, see cm_doubts.h */
	uint64_t bytes;	    /* bytes that wait for its clients */
	struct cm_owner cm; /* its listeners and conversations */
};

struct share_table {
	uid_t exempt; /* the broker's own user */
	struct list all;
};

/* Makes an empty table. */
void share_table_init(struct share_table *t, uid_t exempt);
/* Frees all shares, also those that are in use. */
void share_table_fini(struct share_table *t);
/* Returns the share of that user, valid until share_put; NULL without
 * memory. */
struct user_share *share_get(struct share_table *t, uid_t uid);
/* Returns the share that a user has now, which stays the table's; NULL:
 * none. */
struct user_share *share_find(struct share_table *t, uid_t uid);
/*
 * Gives back a share that share_get gave.  The share stays as long as anything
 * counts for its user: a conversation may outlive the user's last client.
 */
void share_put(struct share_table *t, struct user_share *s);
/* Counts bytes that are to wait; false: more than SHARE_BYTES would wait. */
bool share_add_bytes(struct user_share *s, uint64_t bytes);
/* Counts bytes that share_add_bytes counted and that no longer wait. */
void share_take_bytes(struct user_share *s, uint64_t bytes);

#endif
