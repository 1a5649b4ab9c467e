/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/admission.h"

#include "broker/user.h"
#include "util/monotonic.h"
#include "util/scm_rights.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The headers of a Linux before 6.5 lack this option. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int admission_check(const struct server *s, uint64_t files, uid_t user,
		    char *why, size_t size)
{
	uint64_t most = files / ADMISSION_FILES, left;
	uint32_t has = 0, clients = server_clients(s);
	/* entries that are not clients do not count, but take room in the table
	 */
	uint32_t room = CONN_MAX - (s->conns - clients);

	for (uint32_t i = 0; i < s->conns; i++)
		has += s->conn[i].user == user && server_is_client(&s->conn[i]);
	if (most > room || user_is_same(user, s->group.user))
		most = room;
	left = most > clients ? most - clients : 0;
	if (user_is_same(user, s->group.user) ? left > 0 : has < left)
		return 0;
	if (has && left)
		snprintf(why, size,
			 "this user has %u connections to the broker adverbd, "
			 "its whole share: end some programs",
			 has);
	else
		snprintf(why, size,
			 "the broker adverbd has as many clients as it can "
			 "serve: end some programs");
	return -EUSERS;
}

/* A connection that was accepted. */
struct newcomer {
	int fd;		  /* the connection */
	struct ucred who; /* the client's process, by SO_PEERCRED */
	uid_t user;	  /* the process's user (user_of) */
	bool is_own;	  /* the process is of the broker's own user */
};

static bool has_hung_up(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* Refuses a connection.  `place` is used only if the connection is of the
 * broker's own user. */
static void refuse_newcomer(struct server *s, const struct newcomer *n,
			    enum refuse_full_place place, int err,
			    const char *why)
{
	if (n->is_own)
		refuse_full_take(&s->refuse_full, place, n->fd, err, why,
				 monotonic_ms());
	else
		user_receiver_refuse(&s->receivers, n->fd, n->user, err, why);
}

/* Refuses a connection, since the table or the share of its user is full.  If a
 * client of the broker's own user has hung up, only closes the connection: such
 * a client reads no answer.  For example, it has only called proto_look to find
 * out which process listens. */
static void refuse_for_share(struct server *s, const struct newcomer *n,
			     const char *why)
{
	if (n->is_own && has_hung_up(n->fd))
		close(n->fd);
	else
		refuse_newcomer(s, n, REFUSE_FULL_SHARE, EUSERS, why);
}

/* Refuses a connection, since the broker lacks what refuse_full_why says for
 * err.  For a connection of the broker's own user only a descriptor can be
 * lacking: further connections then wait at the listener until this one is
 * closed. */
static void refuse_for_lack(struct server *s, const struct newcomer *n, int err)
{
	char why[96];

	refuse_full_why(err, why, sizeof(why));
	/* A program takes EAGAIN for "call again at once". */
	refuse_newcomer(s, n, REFUSE_FULL_SPARE, err == EAGAIN ? ENOMEM : err,
			why);
}

static bool is_full(int err)
{
	return err == EMFILE || err == ENFILE;
}

/* Opens a pidfd of the client's process by its pid.  Returns -1 and sets errno,
 * to 0 if the process is not visible. */
static int open_visible(const struct newcomer *n)
{
	errno = 0;
	return n->who.pid > 0 ? (int)syscall(SYS_pidfd_open, n->who.pid, 0)
			      : -1;
}

/*
 * Sets *pidfd to a pidfd of the client's process, or to -1: the process has
 * ended; the kernel, older than Linux 6.5, opens no pidfd of a peer in another
 * PID namespace; or a sandbox refuses the calls.  The broker polls the pidfd
 * besides the connection, since a child of a dead client may keep the
 * connection open.  Returns 0, or -errno: no descriptor is left for the pidfd,
 * so the client cannot be admitted.
 */
static int watch_newcomer(const struct newcomer *n, int *pidfd)
{
	socklen_t length = sizeof(*pidfd);

	if (!getsockopt(n->fd, SOL_SOCKET, SO_PEERPIDFD, pidfd, &length))
		return 0;
	*pidfd = is_full(errno) ? -1 : open_visible(n);
	return *pidfd < 0 && is_full(errno) ? -errno : 0;
}

/* Adds the client to the table.  Returns 0, or -errno, and the connection is
 * still the caller's: no descriptor is left or, for a client of another user,
 * there is no memory or no thread (user_receiver_take). */
static int add_conn(struct server *s, const struct newcomer *n)
{
	struct conn c = {.fd = n->fd,
			 .in_fd = n->fd,
			 .user = n->user,
			 .pid = n->who.pid,
			 .hello_fd = -1,
			 .peer_wake_fd = -1};
	int err = watch_newcomer(n, &c.pidfd);

	if (err)
		return err;
	if (!n->is_own)
		err = user_receiver_take(&s->receivers, n->fd, n->user,
					 &c.in_fd, &c.received);
	if (!err) {
		s->conn[s->conns++] = c;
		s->has_swept = false;
	} else if (c.pidfd >= 0) {
		close(c.pidfd);
	}
	return err;
}

/*
 * Sets all members of *n except fd.  Allows a client of the broker's own user
 * to send descriptors.  Before this call, Linux 6.16 or later refuses the
 * descriptors (EPERM).  A client that gets EPERM sends PROTO_WHO, and sends the
 * descriptors after the answer.  False: the kernel does not tell the client's
 * user; then only n->user is set, to USER_NONE.
 */
static bool look_at_newcomer(const struct server *s, struct newcomer *n)
{
	socklen_t length = sizeof(n->who);

	n->user = USER_NONE;
	if (getsockopt(n->fd, SOL_SOCKET, SO_PEERCRED, &n->who, &length))
		return false;
	n->user = user_of(&n->who);
	n->is_own = user_is_same(n->user, s->group.user);
	if (n->is_own)
		scm_rights_let_bring(n->fd, true);
	return true;
}

/* Refuses one connection, for which no descriptor is left: err is EMFILE or
 * ENFILE. */
static void refuse_one(struct server *s, int err)
{
	struct newcomer n = {
		.fd = refuse_full_accept(&s->refuse_full, s->listen_fd)};

	if (n.fd < 0)
		return;
	look_at_newcomer(s, &n);
	refuse_for_lack(s, &n, err);
}

/* Accepts a connection.  If no descriptor is left, first ends the connections
 * that have hung up: for example, each call of proto_look by a client leaves
 * such a connection. */
static int accept_one(struct server *s)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 || !is_full(errno))
		return fd;
	server_drop_hung_up(s, USER_NONE);
	return accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
}

/* Does what admission_check does; before a refusal, ends the connections that
 * have hung up, and checks again. */
static int check_again(struct server *s, uid_t user, char *why, size_t size)
{
	struct rlimit files = {0};

	getrlimit(RLIMIT_NOFILE, &files);
	if (!admission_check(s, files.rlim_cur, user, why, size))
		return 0;
	server_drop_hung_up(s, user);
	return admission_check(s, files.rlim_cur, user, why, size);
}

/* Does what add_conn does; if that fails, ends the connections that have hung
 * up, and tries again. */
static int add_again(struct server *s, const struct newcomer *n)
{
	if (!add_conn(s, n))
		return 0;
	server_drop_hung_up(s, n->user);
	return add_conn(s, n);
}

/* Whether err, an error of accept(2) other than those of is_full, concerns one
 * connection, or passes with time.  Any other error stays: poll reports the
 * listener as readable, and no call of accept ends that. */
static bool is_passing(int err)
{
	static const int passing[] = {EAGAIN, EINTR, ECONNABORTED, ENOBUFS,
				      ENOMEM};

	for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++)
		if (err == passing[i])
			return true;
	return false;
}

bool admission_accept(struct server *s)
{
	struct newcomer n = {.fd = accept_one(s)};
	char why[96];
	int err;

	if (n.fd < 0) {
		if (is_full(errno))
			refuse_one(s, errno);
		else if (!is_passing(errno))
			s->listener_err = -errno;
		return false;
	}
	if (!look_at_newcomer(s, &n)) {
		user_receiver_refuse(&s->receivers, n.fd, n.user, EACCES,
				     "the broker adverbd cannot find out this "
				     "process's user: let the broker call "
				     "getsockopt");
		return true;
	}
	if (check_again(s, n.user, why, sizeof(why))) {
		refuse_for_share(s, &n, why);
		return true;
	}
	err = add_again(s, &n);
	if (err)
		refuse_for_lack(s, &n, -err);
	return true;
}
