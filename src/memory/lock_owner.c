/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/lock_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log/log.h"
#include "util/printable.h"

/* How many spaces are between the name and starttime in /proc/TID/stat. */
#define TICKS_FIELD 20

/* Reads at most 511 bytes of a file into `text`, and ends the text with a NUL.
 * False: this process cannot open or read the file. */
static bool read_file(const char *path, char text[512])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, 511);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* Reads the file `what` of /proc/TID.  False: the thread does not exist, or
 * this process cannot open or read the file.  The calling thread may wait for a
 * lock and hold others, so it is not cancelled here. */
static bool read_about(uint32_t tid, const char *what, char text[512])
{
	char path[40];
	bool is_read;
	int cancel;

	snprintf(path, sizeof(path), "/proc/%u/%s", (unsigned)tid, what);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	is_read = read_file(path, text);
	pthread_setcancelstate(cancel, NULL);
	return is_read;
}

/* Stores the lower 32 bits of a thread's start time in clock ticks, with the
 * lowest bit set; 0: the thread has ended.  False: its file cannot be read. */
static bool read_start(uint32_t tid, uint32_t *ticks)
{
	uint64_t start = 0;
	char text[512], *at;

	*ticks = 0;
	if (!read_about(tid, "stat", text))
		return false;
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
		return true;
	for (int i = 0; at && i < TICKS_FIELD; i++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, NULL, 10);
	*ticks = (uint32_t)start | 1;
	return true;
}

/* Does no thread have this id?  Asks without a descriptor.  EINVAL: no thread
 * can have the id. */
static bool is_unused(uint32_t tid)
{
	return syscall(SYS_tkill, tid, 0) &&
	       (errno == ESRCH || errno == EINVAL);
}

/*
 * An owner whose start time is 0 counts as dead.  No process takes a lock as
 * such an owner, but other processes can write any value to the word of a lock.
 *
 * If the owner's file cannot be read, the owner may live: this process may have
 * no descriptor left (EMFILE), or may have left the root folder in which /proc
 * is (chroot).  Then the owner is dead if the kernel knows no such thread.
 */
static bool is_dead(alock_owner owner)
{
	uint32_t tid = (uint32_t)owner, start = (uint32_t)(owner >> 32), now;

	if (!start)
		return true;
	return read_start(tid, &now) ? now != start : is_unused(tid);
}

/* Stores the name of a thread, which is that of its program unless the program
 * has changed it; "?": the file cannot be read. */
static void read_name(uint32_t tid, char name[512])
{
	if (!read_about(tid, "comm", name))
		snprintf(name, 512, "?");
	name[strcspn(name, "\n")] = '\0';
	printable_make(name);
}

/* Reports a process for which this process has waited a second.  This process
 * waits for another process only at two alocks: the responder lock of a queue
 * pair (hca/peer_area.h), and the lock of an access slot (hca/access.h).  This
 * process waits at access slots when it destroys a queue pair, removes a region
 * or a window, changes the rights of a region, or closes the device. */
static void report_slow(alock_owner owner)
{
	char name[512];

	read_name((uint32_t)owner, name);
	log_say(LOG_LOCK_SLOW, 0,
		"this process has waited a second for thread %u (%s) of a peer "
		"on this host, which holds a shared lock: that of a queue pair "
		"which this process uses, modifies or destroys, or of memory, "
		"a window or a device which this process changes or closes; if "
		"that thread is stopped, continue its process (kill -CONT %u) "
		"or kill it",
		(unsigned)(uint32_t)owner, name, (unsigned)(uint32_t)owner);
}

/*
 * A signal stops a thread (state 'T') when the thread returns from a system
 * call.  So a thread that is first seen in a call, and then seen stopped, has
 * finished that call.  That does not hold for a thread that a debugger has
 * stopped (state 't'), possibly before the call.  The kernel reports the number
 * of the call, or -1 for no call, only while the thread is off its processor.
 */
static enum alock_halt halt_of(uint32_t thread)
{
	char text[512], *state;
	int call;

	if (!read_about(thread, "syscall", text) || text[0] == 'r')
		return ALOCK_RUNS; /* no file, or the text "running" */
	call = atoi(text);
	state = read_about(thread, "stat", text) ? strrchr(text, ')') : NULL;
	if (!state || state[1] != ' ' || state[2] != 'T')
		return ALOCK_RUNS;
	return call == SYS_process_vm_readv || call == SYS_process_vm_writev
		       ? ALOCK_STOPPED_AFTER_COPY
		       : ALOCK_STOPPED;
}

static const struct alock_judge judge = {is_dead, report_slow, halt_of, NULL};

bool lock_owner_is_possible(void)
{
	uint32_t start;

	return read_start((uint32_t)gettid(), &start) && start;
}

alock_owner lock_owner_open(void)
{
	uint32_t tid = (uint32_t)gettid(), start;
	alock_owner self;

	if (!read_start(tid, &start))
		return 0;
	self = (alock_owner)start << 32 | tid;
	alock_open(self, &judge);
	return self;
}

void lock_owner_close(void)
{
	alock_open(ALOCK_NAMELESS, NULL);
}
