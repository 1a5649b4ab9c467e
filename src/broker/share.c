/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/share.h"

#include "broker/user.h"
#include "util/check.h"

#include <stdlib.h>

void share_table_init(struct share_table *t, uid_t exempt)
{
	t->exempt = exempt;
	list_init(&t->all);
}

static void free_share(struct user_share *s)
{
	list_remove(&s->link);
	free(s);
}

void share_table_fini(struct share_table *t)
{
	struct list *n;

	while ((n = list_pop_head(&t->all)))
		free((struct user_share *)(void *)n);
}

static bool is_unused(const struct user_share *s)
{
	return !s->clients && !s->objects && !s->doubts && !s->bytes &&
	       !s->cm.listeners && !s->cm.conversations;
}

/* Frees the shares whose counts are all zero.  A conversation ends without a
 * call of this file, so share_get and share_put look at all shares. */
static void free_unused(struct share_table *t)
{
	list_for_each_safe (n, &t->all) {
		struct user_share *s = (struct user_share *)(void *)n;

		if (is_unused(s))
			free_share(s);
	}
}

struct user_share *share_find(struct share_table *t, uid_t uid)
{
	list_for_each (n, &t->all) {
		struct user_share *s = (struct user_share *)(void *)n;

		if (s->uid == uid)
			return s;
	}
	return NULL;
}

struct user_share *share_get(struct share_table *t, uid_t uid)
{
	struct user_share *s;

	free_unused(t);
	s = share_find(t, uid);
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->uid = uid;
		s->cm.is_many = uid == USER_NONE;
		s->cm.number = (uint64_t)uid + 1;
		s->cm.is_exempt = user_is_same(uid, t->exempt);
		list_init(&s->link);
		list_push_tail(&t->all, &s->link);
	}
	s->clients++;
	return s;
}

void share_put(struct share_table *t, struct user_share *s)
{
	CHECK(s->clients);
	s->clients--;
	free_unused(t);
}

bool share_add_bytes(struct user_share *s, uint64_t bytes)
{
	if (s->bytes + bytes > SHARE_BYTES)
		return false;
	s->bytes += bytes;
	return true;
}

void share_take_bytes(struct user_share *s, uint64_t bytes)
{
	CHECK(s->bytes >= bytes);
	s->bytes -= bytes;
}
