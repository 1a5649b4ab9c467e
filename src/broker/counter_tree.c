/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/counter_tree.h"

#include "broker/inside.h"
#include "broker/sysfs_gc.h"
#include "broker/user.h"

#include <sys/stat.h>
#include <unistd.h>

/* Adds up the counters in the pages of the living processes of the broker's
 * user. */
static void count_living(struct server *s)
{
	counter_files_begin(&s->counter_files);
	for (uint32_t i = 1; i < s->group.count; i++)
		if (s->group.member[i].use == REUSEPORT_OWNED)
			counter_files_live(&s->counter_files,
					   s->group.member[i].page_fd);
}

static bool is_own_folder(int fd)
{
	struct stat s;

	return !fstat(fd, &s) && S_ISDIR(s.st_mode) && s.st_uid == geteuid() &&
	       !(s.st_mode & (S_IWGRP | S_IWOTH));
}

void counter_tree_take(struct server *s, const struct conn *c, int *fd)
{
	if (!user_is_same(c->user, s->group.user) || *fd < 0 ||
	    !is_own_folder(*fd))
		return;
	if (s->counter_files.tree_fd < 0)
		sysfs_gc_others(*fd);
	if (s->counter_files.is_successor)
		count_living(s);
	counter_files_tree(&s->counter_files, *fd);
	*fd = -1;
}

int counter_tree_refresh(struct server *s, int wait, uint64_t now_ms)
{
	int due = counter_files_due(&s->counter_files, now_ms);

	if (!due) {
		count_living(s);
		counter_files_write(&s->counter_files, now_ms);
		due = counter_files_due(&s->counter_files, now_ms);
	}
	return due >= 0 && (wait < 0 || due < wait) ? due : wait;
}
