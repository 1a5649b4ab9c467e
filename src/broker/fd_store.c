/* SPDX-License-Identifier: BSD-2-Clause */
/* The fd store; see fd_store.h. */
#include "broker/fd_store.h"

#include "broker/fd_check.h"
#include "broker/procfs.h"
#include "broker/proto.h"
#include "util/memfile.h"
#include "util/scm_rights.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUNDLE_MEMBERS 128 /* members in one bundle, at most */
#define FD_STORE_FDS   (1 + 2 * FD_STORE_BUNDLES)
/* CMSG_SPACE rounds up, so the buffer may have room for one more descriptor. */
#define PEEK_FDS     (FD_STORE_FDS + 1)
#define LEDGER_BYTES sizeof(struct fd_store_ledger)

_Static_assert(FD_STORE_BUNDLES *BUNDLE_MEMBERS > STEER_CLASS_MAX,
	       "the bundles have room for a member of each index");

/* Sends a message with n descriptors.  Each message has one byte, so that
 * message k is at offset k of SO_PEEK_OFF.  Returns 0 or -errno. */
static int send_fds(int socket, const int *fds, size_t n)
{
	return scm_rights_send(socket, "", 1, fds, n, MSG_DONTWAIT) < 0 ? -errno
									: 0;
}

/* Copies the descriptors of message k to fds, and leaves the message in the
 * socket.  Returns the number of descriptors, or -errno. */
static int peek_fds(int socket, uint32_t k, int fds[PEEK_FDS])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FD_STORE_FDS * sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int offset = (int)k, err;
	size_t count;
	ssize_t n;

	if (setsockopt(socket, SOL_SOCKET, SO_PEEK_OFF, &offset,
		       sizeof(offset)))
		return -errno;
	n = recvmsg(socket, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN ? -ENOENT : -errno;
	/* send_fds sends no empty message, but the socket may be another
	 * process's.  The descriptors of an empty message are closed. */
	count = scm_rights_take(&msg, fds, n ? PEEK_FDS : 0);
	if (!n)
		return -ENOENT;
	if (!(msg.msg_flags & MSG_CTRUNC))
		return (int)count;
	/* If `control` is full, another process has sent more than send_fds
	 * does.  If not, the limit on open files leaves no room for the other
	 * descriptors. */
	err = count >= FD_STORE_FDS ? -EPROTO : -EMFILE;
	while (count)
		close(fds[--count]);
	return err;
}

void fd_store_init(struct fd_store *s)
{
	*s = (struct fd_store){.fd = -1, .ledger_fd = -1};
	for (int i = 0; i < FD_STORE_BUNDLES; i++)
		s->bundle[i][0] = s->bundle[i][1] = -1;
}

static int map_ledger(struct fd_store *s)
{
	void *at;

	/* The store may be another process's.  If that process could shorten
	 * the ledger, the next access would end the broker by SIGBUS. */
	if (!fd_check_is_sealed(s->ledger_fd, LEDGER_BYTES))
		return -EPROTO;
	at = mmap(NULL, LEDGER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		  s->ledger_fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	s->ledger = at;
	return 0;
}

static int make_store(struct fd_store *s)
{
	int pair[2], all[FD_STORE_FDS], n = 0, err;

	s->ledger_fd = memfile_new("adverb-ledger", LEDGER_BYTES);
	err = s->ledger_fd < 0 ? s->ledger_fd : memfile_seal(s->ledger_fd);
	if (err)
		return err;
	all[n++] = s->ledger_fd;
	for (int i = 0; i < FD_STORE_BUNDLES; i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			       s->bundle[i]))
			return -errno;
		all[n++] = s->bundle[i][0];
		all[n++] = s->bundle[i][1];
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	s->fd = pair[0];
	err = send_fds(pair[1], all, (size_t)n);
	close(pair[1]); /* the message stays in pair[0] */
	return err ? err : map_ledger(s);
}

int fd_store_new(struct fd_store *s)
{
	int err;

	fd_store_init(s);
	err = make_store(s);
	if (err)
		fd_store_close(s);
	return err;
}

int fd_store_open(struct fd_store *s, int fd)
{
	int all[PEEK_FDS] = {-1}, n, err;

	fd_store_init(s);
	s->fd = fd;
	n = peek_fds(fd, 0, all);
	if (n != FD_STORE_FDS) {
		for (int i = 0; i < n; i++)
			close(all[i]);
		fd_store_close(s);
		return -EPROTO;
	}
	s->ledger_fd = all[0];
	for (int i = 0; i < FD_STORE_BUNDLES; i++) {
		s->bundle[i][0] = all[1 + 2 * i];
		s->bundle[i][1] = all[2 + 2 * i];
	}
	err = map_ledger(s);
	if (err)
		fd_store_close(s);
	return err;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

void fd_store_close(struct fd_store *s)
{
	if (s->ledger)
		munmap(s->ledger, LEDGER_BYTES);
	close_one(s->fd);
	close_one(s->ledger_fd);
	for (int i = 0; i < FD_STORE_BUNDLES; i++) {
		close_one(s->bundle[i][0]);
		close_one(s->bundle[i][1]);
	}
	fd_store_init(s);
}

int fd_store_put(struct fd_store *s, uint32_t i,
		 const int fds[FD_STORE_MEMBER_FDS])
{
	size_t n = 0;
	int err;

	if (s->fd < 0 || (s->torn_at && i >= s->torn_at))
		return -ENOENT;
	while (n < FD_STORE_MEMBER_FDS && fds[n] >= 0)
		n++;
	err = send_fds(s->bundle[i / BUNDLE_MEMBERS][1], fds, n);
	s->torn_at = err ? i + 1 : 0;
	return err;
}

int fd_store_get(struct fd_store *s, uint32_t i, int fds[FD_STORE_MEMBER_FDS])
{
	int got[PEEK_FDS] = {-1}, n;

	if (s->fd < 0 || i > STEER_CLASS_MAX)
		return -ENOENT;
	n = peek_fds(s->bundle[i / BUNDLE_MEMBERS][0], i % BUNDLE_MEMBERS, got);
	if (n <= 0)
		return n ? n : -EPROTO;
	for (int k = 0; k < FD_STORE_MEMBER_FDS; k++)
		fds[k] = k < n ? got[k] : -1;
	for (int k = FD_STORE_MEMBER_FDS; k < n; k++)
		close(got[k]);
	return 0;
}

/* Returns when a process began; 0: /proc does not show it. */
static uint64_t start_of(pid_t pid)
{
	struct procfs_stat p;

	return procfs_look(pid, &p) ? p.start : 0;
}

struct fd_store_entry fd_store_owner(uid_t user, pid_t pid)
{
	struct fd_store_entry e = {.is_owned = true, .user = user};

	e.start = pid > 0 ? start_of(pid) : 0;
	e.pid = e.start ? pid : 0;
	e.pid_space = e.pid ? fd_store_pid_space() : 0;
	return e;
}

uint32_t fd_store_pid_space(void)
{
	return (uint32_t)proto_pid_space();
}

bool fd_store_has_pid(const struct fd_store_entry *e, uint32_t pid_space)
{
	return e->pid > 0 && pid_space && e->pid_space == pid_space;
}

void fd_store_note(struct fd_store *s, uint32_t index,
		   const struct fd_store_entry *e)
{
	if (s->ledger)
		s->ledger->at[index] = *e;
}

/* Has the process of the pidfd ended? */
static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Does this errno of pidfd_open mean that there is no such process?  EINVAL,
 * ENOENT: the pid has become the id of a thread. */
static bool is_nobody(int err)
{
	return err == ESRCH || err == EINVAL || err == ENOENT;
}

/* Checks that the process of the pidfd is that of the entry, and not a later
 * one with the same pid.  Returns 0 or -errno, as fd_store_process does. */
static int check_start(const struct fd_store_entry *e, int pidfd)
{
	struct procfs_stat p;
	int err;

	if (procfs_look(e->pid, &p))
		return p.start == e->start ? 0 : -ESRCH;
	err = errno;
	if (has_ended(pidfd))
		return -ESRCH;
	return fd_store_is_short(-err) ? -err : -EACCES;
}

bool fd_store_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE;
}

/*
 * Looks at the entry's process without a pidfd, since pidfd_open has failed
 * with err.  Returns -ESRCH: the process has ended; or -err: it may still
 * run.  The state 'Z' says nothing, since other threads of the process may
 * still run.
 */
static int look_without_pidfd(const struct fd_store_entry *e, int err)
{
	struct procfs_stat p;

	if (fd_store_is_short(-err))
		return -err;
	if (is_nobody(err) || (kill(e->pid, 0) && errno == ESRCH) ||
	    (procfs_look(e->pid, &p) && p.start != e->start))
		return -ESRCH;
	return -err;
}

int fd_store_process(const struct fd_store_entry *e)
{
	int fd, err;

	if (!fd_store_has_pid(e, fd_store_pid_space()))
		return -EINVAL;
	fd = (int)syscall(SYS_pidfd_open, e->pid, 0);
	if (fd < 0)
		return look_without_pidfd(e, errno);
	/* The start is compared after pidfd_open, which may have opened a later
	 * process with the same pid. */
	err = check_start(e, fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}
