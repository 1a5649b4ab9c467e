/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/peer_maps.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "memory/mr_file.h"
#include "memory/mounts.h"

#define PAGE 4096u

void peer_maps_init(struct peer_maps *a, const struct hca *target, int pid)
{
	a->target = target;
	a->pid = pid;
	a->version = a->count = 0;
}

void peer_maps_fini(struct peer_maps *a)
{
	for (uint32_t i = 0; i < a->count; i++)
		munmap(a->of[i].at, a->of[i].bytes);
	a->version = a->count = 0;
}

static void drop_old(struct peer_maps *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->count; i++) {
		struct alias *e = &a->of[i];

		if (share_is(a->target, e->row, e->serial))
			a->of[n++] = *e;
		else
			munmap(e->at, e->bytes);
	}
	a->count = n;
}

static bool is_known(const struct peer_maps *a, uint32_t serial)
{
	for (uint32_t i = 0; i < a->count; i++)
		if (a->of[i].serial == serial)
			return true;
	return false;
}

/* The argument of map_thread. */
struct task {
	int pid;
	const struct share *share;
	void *at; /* the result: the mapping, or MAP_FAILED */
};

/*
 * Is the file the one that the row names, and does the kernel alone serve its
 * file system (mounts.h)?  Then an open of the file waits for no process.
 * AT_STATX_DONT_SYNC keeps statx(2) from asking a process that serves the file
 * system.
 */
static bool is_file(int path_fd, const struct share *s)
{
	struct statx x;
	dev_t dev;

	if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_TYPE | STATX_INO, &x) ||
	    !S_ISREG(x.stx_mode))
		return false;
	dev = makedev(x.stx_dev_major, x.stx_dev_minor);
	return dev == s->dev && x.stx_ino == s->ino && mounts_are_kernels(dev);
}

/*
 * Opens the peer's file by /proc, which needs the right to trace the peer.
 * Returns -1 on failure.  The row comes from the peer and may name any of the
 * peer's descriptors.  The open of a FIFO, a terminal or a device has side
 * effects, so the file is first opened with O_PATH and checked.
 */
static int open_file(const struct task *t)
{
	const struct share *s = t->share;
	char path[48];
	int place, fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", t->pid, (int)s->fd);
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -1;
	if (is_file(place, s)) {
		/* This thread has its own descriptors, see map_by_thread. */
		snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", place);
		fd = open(path, (s->is_written ? O_RDWR : O_RDONLY) |
					O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	}
	close(place);
	return fd;
}

/* Maps with PROT_NONE first.  Otherwise, if the program has called mlockall(2),
 * the kernel would fill the mapping with pages. */
static void *map_file(int fd, const struct share *s)
{
	int prot = s->is_written ? PROT_READ | PROT_WRITE : PROT_READ;
	void *at = mmap(NULL, s->bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE,
			fd, (off_t)s->offset);

	if (at == MAP_FAILED)
		return at;
	if (!munlock(at, s->bytes) && !mprotect(at, s->bytes, prot))
		return at;
	munmap(at, s->bytes);
	return MAP_FAILED;
}

static void *map_thread(void *arg)
{
	struct task *t = arg;
	int fd;

	if (syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE))
		return NULL;
	fd = open_file(t);
	if (fd >= 0)
		t->at = map_file(fd, t->share);
	return NULL;
}

/*
 * Maps the file in a thread that has its own descriptor table.  A close in the
 * program's table would release the locks that the program has on the file
 * (fcntl(2)).  All signals are blocked there, so that the thread runs no
 * handler of the program.
 */
static void *map_by_thread(const struct peer_maps *a, const struct share *s)
{
	struct task t = {a->pid, s, MAP_FAILED};
	sigset_t every, before;
	pthread_t thread;

	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	if (!pthread_create(&thread, NULL, map_thread, &t))
		pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return t.at;
}

static void add_map(struct peer_maps *a, const struct share *s, uint32_t row)
{
	uint32_t serial = shared_own(&s->serial);
	void *at;

	if (!s->bytes || s->va % PAGE || s->va + s->bytes < s->va ||
	    !mr_file_is(a->pid, s))
		return;
	at = map_by_thread(a, s);
	if (at == MAP_FAILED)
		return;
	madvise(at, s->bytes, MADV_DONTDUMP);
	madvise(at, s->bytes, MADV_DONTFORK);
	a->of[a->count++] =
		(struct alias){s->va, s->bytes, at, row, serial, s->is_written};
}

static void add_new(struct peer_maps *a)
{
	for (uint32_t row = 0; row < SHARE_MAX && a->count < SHARE_MAX; row++) {
		struct share s = share_read(a->target, row);

		if (shared_own(&s.serial) &&
		    !is_known(a, shared_own(&s.serial)))
			add_map(a, &s, row);
	}
}

/* A thread that posts calls this function under a lock.  That thread must not
 * be cancelled in mr_file_is, which opens a file, or while map_thread uses the
 * struct task, which lies on the stack of the thread that posts. */
void peer_maps_look(struct peer_maps *a)
{
	uint32_t version = share_version(a->target);
	int cancel;

	if (version == a->version)
		return;
	a->version = version;
	drop_old(a);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	add_new(a);
	pthread_setcancelstate(cancel, NULL);
}

uint8_t *peer_maps_at(const struct peer_maps *a, const struct space_vec *v,
		      bool is_write)
{
	for (uint32_t i = 0; i < a->count; i++) {
		const struct alias *e = &a->of[i];
		uint64_t from = v->va - e->va;

		if (from < e->bytes && v->bytes <= e->bytes - from &&
		    (e->is_written || !is_write) &&
		    share_is(a->target, e->row, e->serial))
			return e->at + from;
	}
	return NULL;
}
