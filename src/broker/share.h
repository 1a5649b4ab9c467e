/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The share of one user: how many objects (cmproto.h), listeners, conversations
 * and doubts (cm_doubts.h) its clients have together at the broker, and how
 * many bytes wait for these clients.  A user gets another object, listener,
 * conversation or doubt only if more of that kind are free than the user has
 * (cm_owner_may_add), so that no user takes all.  The broker's own user is
 * exempt from this rule, but not from SHARE_BYTES.  USER_NONE, which stands for
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
	uid_t uid;	  /* the user, or USER_NONE */
	uint32_t clients; /* calls of share_get without a share_put yet */
	uint32_t objects; /* objects that its clients have */
	/* doubts of its clients that are not settled (cm_doubts.h) */
	uint32_t doubts;
	uint64_t bytes;	    /* bytes that wait for its clients */
	struct cm_owner cm; /* its listeners and conversations */
};

struct share_table {
	uid_t exempt;	 /* the broker's own user */
	struct list all; /* struct user_share, by `link` */
};

/* Makes an empty table.  exempt: the broker's own user, who gets objects,
 * listeners, conversations and doubts as long as any are free. */
void share_table_init(struct share_table *t, uid_t exempt);
/* Frees all shares, even those that are in use. */
void share_table_fini(struct share_table *t);
/* Returns the share of that user, which is made if there is none.  The share is
 * valid until share_put.  NULL: there is no memory. */
struct user_share *share_get(struct share_table *t, uid_t uid);
/* Returns the share of that user if there is one, without a reference; the
 * share stays the table's.  NULL: there is none. */
struct user_share *share_find(struct share_table *t, uid_t uid);
/* Gives back a share that share_get has returned.  The share stays in the table
 * as long as anything counts for its user: a conversation may outlive the
 * user's last client. */
void share_put(struct share_table *t, struct user_share *s);
/* Counts bytes that are about to wait for clients of the user of s.  False:
 * more than SHARE_BYTES would wait, and nothing was counted. */
bool share_add_bytes(struct user_share *s, uint64_t bytes);
/* Takes back bytes that share_add_bytes has counted and that wait no longer. */
void share_take_bytes(struct user_share *s, uint64_t bytes);

#endif
