/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversations of those who die without a broker; see cm_journal.h. */
#include "broker/cm_journal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cm_journal_init(struct cm_journal *w, struct fd_store *fd_store)
{
	*w = (struct cm_journal){.fd_store = fd_store};
}

void cm_journal_fini(struct cm_journal *w)
{
	free(w->left);
	w->left = NULL;
	w->count = w->open = 0;
}

/* Killed in the midst of it we leave a note of nobody's: its peer says so. */
void cm_journal_write(struct cm_journal *w, uint32_t slot,
		      const struct fd_store_entry *owner,
		      const struct cm_note *note)
{
	struct fd_store_ledger *l = w->fd_store->ledger;

	if (!l || (!note->state && slot >= l->cm_journal))
		return;
	/* a slot between is still all zero: nobody's */
	if (slot >= l->cm_journal)
		l->cm_journal = slot + 1;
	if (note->state)
		l->will[slot] = (struct fd_store_record){*owner, *note};
	else
		l->will[slot].owner.is_owned = 0;
}

static int by_id(const void *a, const void *b)
{
	uint32_t one = ((const struct cm_journal_entry *)a)->will.note.local_id;
	uint32_t two = ((const struct cm_journal_entry *)b)->will.note.local_id;

	return one < two ? -1 : one > two;
}

/* A process that the broker cannot see cannot be told from a dead one. */
void cm_journal_inherit(struct cm_journal *w)
{
	const struct fd_store_ledger *l = w->fd_store->ledger;
	uint32_t n = l ? l->cm_journal : 0;

	if (!n || n > FD_STORE_RECORDS || w->left)
		return;
	w->left = malloc(n * sizeof(*w->left));
	if (!w->left)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (l->will[i].owner.is_owned && l->will[i].owner.pid > 0)
			w->left[w->count++] =
				(struct cm_journal_entry){l->will[i], i};
	w->open = w->count;
	if (!w->open)
		cm_journal_fini(w);
	else
		qsort(w->left, w->count, sizeof(*w->left), by_id);
}

static void close_one(struct cm_journal *w, struct cm_journal_entry *left)
{
	struct fd_store_ledger *l = w->fd_store->ledger;

	if (l && l->will[left->slot].note.local_id == left->will.note.local_id)
		l->will[left->slot].owner.is_owned = 0;
	left->will.owner.is_owned = 0;
	if (!--w->open)
		cm_journal_fini(w);
}

/* The one that waits for its owner's word; or NULL. */
static struct cm_journal_entry *find_left(const struct cm_journal *w,
					  uint32_t local_id)
{
	const struct cm_journal_entry key = {.will.note.local_id = local_id};
	struct cm_journal_entry *found = NULL;

	if (w->open)
		found = bsearch(&key, w->left, w->count, sizeof(key), by_id);
	return found && found->will.owner.is_owned ? found : NULL;
}

bool cm_journal_is_others(const struct cm_journal *w, uint32_t local_id,
			  const struct fd_store_entry *owner)
{
	const struct cm_journal_entry *found = find_left(w, local_id);

	return found && (found->will.owner.user != owner->user ||
			 found->will.owner.pid != owner->pid ||
			 found->will.owner.start != owner->start);
}

void cm_journal_take(struct cm_journal *w, uint32_t local_id)
{
	struct cm_journal_entry *found = find_left(w, local_id);

	if (found)
		close_one(w, found);
}

bool cm_journal_has(const struct cm_journal *w, pid_t pid)
{
	for (uint32_t i = 0; w->open && i < w->count; i++)
		if (w->left[i].will.owner.is_owned &&
		    w->left[i].will.owner.pid == pid)
			return true;
	return false;
}

static bool is_gone(const struct fd_store_entry *owner)
{
	int fd = fd_store_process(owner);

	if (fd >= 0)
		close(fd);
	return fd < 0;
}

bool cm_journal_next(struct cm_journal *w, pid_t pid,
		     struct fd_store_record *record)
{
	pid_t lives = 0; /* looked at just now */

	for (uint32_t i = 0; w->open && i < w->count; i++) {
		const struct fd_store_entry *owner = &w->left[i].will.owner;

		if (!owner->is_owned || owner->pid == lives ||
		    (pid && owner->pid != pid))
			continue;
		if (!pid && !is_gone(owner)) {
			lives = owner->pid;
			continue;
		}
		*record = w->left[i].will;
		close_one(w, &w->left[i]);
		return true;
	}
	return false;
}
