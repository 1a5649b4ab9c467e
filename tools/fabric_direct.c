/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_direct.h"

#include "broker/fd_check.h"
#include "broker/proto.h"
#include "broker/shared_page.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void close_page(struct fabric_direct *d)
{
	shared_page_unmap(d->changes);
	d->changes = NULL;
	if (d->page_fd >= 0)
		close(d->page_fd);
	d->page_fd = -1;
}

/* Maps the page `fd`, and opens it for the programs.  Returns 0 or -errno. */
static int open_page(struct fabric_direct *d, int fd)
{
	d->changes = shared_page_map(fd, PROT_READ | PROT_WRITE);
	if (!d->changes)
		return -ENOMEM;
	d->page_fd = shared_page_reader(fd);
	return d->page_fd < 0 ? d->page_fd : 0;
}

int fabric_direct_open(struct fabric_direct *d, bool is_allowed)
{
	int fd, err;

	memset(d, 0, sizeof(*d));
	d->page_fd = -1;
	if (!is_allowed)
		return 0;
	fd = shared_page_new();
	if (fd < 0)
		return fd;
	err = shared_page_clear(fd, 0) ? open_page(d, fd) : -ENOMEM;
	close(fd);
	if (err)
		close_page(d);
	d->is_allowed = !err;
	return err;
}

void fabric_direct_close(struct fabric_direct *d)
{
	close_page(d);
	d->is_allowed = false;
}

void fabric_direct_show(struct fabric_direct *d, uint32_t changes)
{
	/* The release orders this process's earlier stores before the number.
	 * No store needs that order: a program that loads the number reads no
	 * other memory of this process because of it. */
	if (d->changes && shared_own(d->changes) != changes)
		shared_store(d->changes, changes);
}

/* May *arena, which a program has sent, be the program's own?  `pid` is the
 * program's pid as the kernel tells it.  It can be compared with arena->pid
 * only if the program and this process are in one PID namespace.  If they are
 * not, any pid but 0 is accepted: the peer that maps the arena compares
 * arena->pid with the pid in the arena.  The descriptor's number must not be
 * negative. */
static bool is_own_pid(const struct fabric_arena *arena, int pid)
{
	return arena->pid && arena->fd >= 0 &&
	       (arena->pid_space != proto_pid_space() ||
		arena->pid == (uint32_t)pid);
}

/* Returns the next number that no program has; 0: there is none. */
static uint32_t free_number(const struct fabric_direct *d)
{
	for (uint32_t i = 0; i < DATA_NUMBER_MAX; i++) {
		uint32_t number = (d->last + i) % DATA_NUMBER_MAX + 1;

		if (!d->programs[number])
			return number;
	}
	return 0;
}

int fabric_direct_share(struct fabric_direct *d, struct fabric_program *p,
			const struct fabric_arena *arena, int pid, int wake_fd)
{
	uint32_t number = free_number(d);

	if (!d->is_allowed)
		return -EOPNOTSUPP;
	if (p->number)
		return -EBUSY;
	if (!is_own_pid(arena, pid) || wake_fd < 0 ||
	    !fd_check_is_wake(wake_fd))
		return -EINVAL;
	if (!number)
		return -EMFILE;
	*p = (struct fabric_program){
		.number = number, .arena = *arena, .wake_fd = wake_fd};
	d->programs[number] = p;
	d->last = number;
	return 0;
}

bool fabric_direct_leave(struct fabric_direct *d, struct fabric_program *p)
{
	if (!p->number)
		return false;
	d->programs[p->number] = NULL;
	close(p->wake_fd);
	p->number = 0;
	return true;
}

const struct fabric_program *fabric_direct_find(const struct fabric_direct *d,
						uint32_t number)
{
	return number <= DATA_NUMBER_MAX ? d->programs[number] : NULL;
}
