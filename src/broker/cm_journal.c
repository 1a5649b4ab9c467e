/* SPDX-License-Identifier: BSD-2-Clause */
/* The journal of conversations; see cm_journal.h. */
#include "broker/cm_journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cm_journal_init(struct cm_journal *j, struct fd_store *fd_store)
{
	*j = (struct cm_journal){.fd_store = fd_store};
}

void cm_journal_fini(struct cm_journal *j)
{
	free(j->inherited);
	j->inherited = NULL;
	j->count = j->open = 0;
}

/* If a broker is killed in the middle of this function, the record may have
 * parts of two notes.  If these are notes of two conversations, the message
 * that the successor makes from the record names one of the two, or a pair of
 * IDs that no conversation has.  So the message ends no third conversation. */
void cm_journal_write(struct cm_journal *j, uint32_t slot,
		      const struct fd_store_entry *owner,
		      const struct cm_note *note)
{
	struct fd_store_ledger *l = j->fd_store->ledger;

	if (!l || (!note->state && slot >= l->records))
		return;
	/* a lower slot that was never written is all 0, so it has no owner */
	if (slot >= l->records)
		l->records = slot + 1;
	if (note->state)
		l->record[slot] = (struct fd_store_record){*owner, *note};
	else
		l->record[slot].owner.is_owned = 0;
}

static int by_id(const void *a, const void *b)
{
	uint32_t one =
		((const struct cm_journal_entry *)a)->record.note.local_id;
	uint32_t two =
		((const struct cm_journal_entry *)b)->record.note.local_id;

	return one < two ? -1 : one > two;
}

/* Skips the records of processes that the earlier broker could not see, or saw
 * in another PID namespace: whether such a process has ended cannot be told. */
void cm_journal_inherit(struct cm_journal *j)
{
	const struct fd_store_ledger *l = j->fd_store->ledger;
	uint32_t n = l ? l->records : 0, space = fd_store_pid_space();

	if (!n || n > FD_STORE_RECORDS || j->inherited)
		return;
	j->inherited = malloc(n * sizeof(*j->inherited));
	if (!j->inherited)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (l->record[i].owner.is_owned &&
		    fd_store_has_pid(&l->record[i].owner, space))
			j->inherited[j->count++] =
				(struct cm_journal_entry){l->record[i], i};
	j->open = j->count;
	if (!j->open)
		cm_journal_fini(j);
	else
		qsort(j->inherited, j->count, sizeof(*j->inherited), by_id);
}

static void close_entry(struct cm_journal *j,
			struct cm_journal_entry *inherited)
{
	struct fd_store_ledger *l = j->fd_store->ledger;

	if (l && l->record[inherited->slot].note.local_id ==
			 inherited->record.note.local_id)
		l->record[inherited->slot].owner.is_owned = 0;
	inherited->record.owner.is_owned = 0;
	if (!--j->open)
		cm_journal_fini(j);
}

/* Returns the inherited record of the conversation local_id; NULL: there is
 * none, or it was taken. */
static struct cm_journal_entry *find_inherited(const struct cm_journal *j,
					       uint32_t local_id)
{
	const struct cm_journal_entry key = {.record.note.local_id = local_id};
	struct cm_journal_entry *found = NULL;

	if (j->open)
		found = bsearch(&key, j->inherited, j->count, sizeof(key),
				by_id);
	return found && found->record.owner.is_owned ? found : NULL;
}

bool cm_journal_is_others(const struct cm_journal *j, uint32_t local_id,
			  const struct fd_store_entry *owner)
{
	const struct cm_journal_entry *found = find_inherited(j, local_id);

	return found && (found->record.owner.user != owner->user ||
			 found->record.owner.pid != owner->pid ||
			 found->record.owner.start != owner->start);
}

void cm_journal_take(struct cm_journal *j, uint32_t local_id)
{
	struct cm_journal_entry *found = find_inherited(j, local_id);

	if (found)
		close_entry(j, found);
}

bool cm_journal_has(const struct cm_journal *j, pid_t pid)
{
	for (uint32_t i = 0; j->open && i < j->count; i++)
		if (j->inherited[i].record.owner.is_owned &&
		    j->inherited[i].record.owner.pid == pid)
			return true;
	return false;
}

/* Returns whether the process has ended.  False if that cannot be told, for
 * example because no descriptor is left. */
static bool is_gone(const struct fd_store_entry *owner)
{
	int fd = fd_store_process(owner);

	if (fd >= 0)
		close(fd);
	return fd == -ESRCH;
}

/* Has the search found, or does it find now, that the owner may still run? */
static bool may_run(struct cm_journal_search *s,
		    const struct fd_store_entry *owner)
{
	pid_t *lives = &s->lives[(uint32_t)owner->pid % CM_JOURNAL_LIVES];

	if (*lives != owner->pid && !is_gone(owner))
		*lives = owner->pid;
	return *lives == owner->pid;
}

bool cm_journal_next(struct cm_journal *j, struct cm_journal_search *s,
		     pid_t pid, struct fd_store_record *record)
{
	while (j->open && s->at < j->count) {
		struct cm_journal_entry *e = &j->inherited[s->at++];
		const struct fd_store_entry *owner = &e->record.owner;

		if (!owner->is_owned || (pid && owner->pid != pid) ||
		    (!pid && may_run(s, owner)))
			continue;
		*record = e->record;
		close_entry(j, e);
		return true;
	}
	return false;
}
