/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversations of those who die without a broker; see wills.h. */
#include "broker/wills.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void wills_init(struct wills *w, struct safe *safe)
{
	*w = (struct wills){.safe = safe};
}

void wills_fini(struct wills *w)
{
	free(w->left);
	w->left = NULL;
	w->count = w->open = 0;
}

/* Killed in the midst of it we leave a note of nobody's: its peer says so. */
void wills_write(struct wills *w, uint32_t slot, const struct safe_entry *owner,
		 const struct cm_note *note)
{
	struct safe_ledger *l = w->safe->ledger;

	if (!l || (!note->state && slot >= l->wills))
		return;
	/* a slot between is still all zero: nobody's */
	if (slot >= l->wills)
		l->wills = slot + 1;
	if (note->state)
		l->will[slot] = (struct safe_will){*owner, *note};
	else
		l->will[slot].owner.is_owned = 0;
}

static int by_id(const void *a, const void *b)
{
	uint32_t one = ((const struct wills_left *)a)->will.note.local_id;
	uint32_t two = ((const struct wills_left *)b)->will.note.local_id;

	return one < two ? -1 : one > two;
}

/* A process that the broker cannot see cannot be told from a dead one. */
void wills_inherit(struct wills *w)
{
	const struct safe_ledger *l = w->safe->ledger;
	uint32_t n = l ? l->wills : 0;

	if (!n || n > SAFE_WILLS || w->left)
		return;
	w->left = malloc(n * sizeof(*w->left));
	if (!w->left)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (l->will[i].owner.is_owned && l->will[i].owner.pid > 0)
			w->left[w->count++] =
				(struct wills_left){l->will[i], i};
	w->open = w->count;
	if (!w->open)
		wills_fini(w);
	else
		qsort(w->left, w->count, sizeof(*w->left), by_id);
}

static void close_one(struct wills *w, struct wills_left *left)
{
	struct safe_ledger *l = w->safe->ledger;

	if (l && l->will[left->slot].note.local_id == left->will.note.local_id)
		l->will[left->slot].owner.is_owned = 0;
	left->will.owner.is_owned = 0;
	if (!--w->open)
		wills_fini(w);
}

/* The one that waits for its owner's word; or NULL. */
static struct wills_left *find_left(const struct wills *w, uint32_t local_id)
{
	const struct wills_left key = {.will.note.local_id = local_id};
	struct wills_left *found = NULL;

	if (w->open)
		found = bsearch(&key, w->left, w->count, sizeof(key), by_id);
	return found && found->will.owner.is_owned ? found : NULL;
}

bool wills_is_anothers(const struct wills *w, uint32_t local_id,
		       const struct safe_entry *owner)
{
	const struct wills_left *found = find_left(w, local_id);

	return found && (found->will.owner.user != owner->user ||
			 found->will.owner.pid != owner->pid ||
			 found->will.owner.start != owner->start);
}

void wills_take(struct wills *w, uint32_t local_id)
{
	struct wills_left *found = find_left(w, local_id);

	if (found)
		close_one(w, found);
}

bool wills_has(const struct wills *w, pid_t pid)
{
	for (uint32_t i = 0; w->open && i < w->count; i++)
		if (w->left[i].will.owner.is_owned &&
		    w->left[i].will.owner.pid == pid)
			return true;
	return false;
}

static bool is_gone(const struct safe_entry *owner)
{
	int fd = safe_process(owner);

	if (fd >= 0)
		close(fd);
	return fd < 0;
}

bool wills_next(struct wills *w, pid_t pid, struct cm_note *note)
{
	pid_t lives = 0; /* looked at just now */

	for (uint32_t i = 0; w->open && i < w->count; i++) {
		const struct safe_entry *owner = &w->left[i].will.owner;

		if (!owner->is_owned || owner->pid == lives ||
		    (pid && owner->pid != pid))
			continue;
		if (!pid && !is_gone(owner)) {
			lives = owner->pid;
			continue;
		}
		*note = w->left[i].will.note;
		close_one(w, &w->left[i]);
		return true;
	}
	return false;
}
