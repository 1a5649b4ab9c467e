/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/fabric_client.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/count.h"
#include "util/monotonic.h"
#include "util/remedy.h"
#include "util/scm_rights.h"
#include "util/user_map.h"

#define ERRNO_MAX 4095	 /* the kernel's greatest errno */
#define LID_MAX	  0xbfff /* the greatest LID of a port (IBTA 4.1.3) */
#define LMC_MAX	  7
#define MTU_MAX	  5
#define STATE_MAX 4 /* PortState (IBTA 14.2.5.6) */

const char *fabric_client_path(void)
{
	const char *path = secure_getenv("ADVERB_FABRIC");

	return path ? path : "";
}

const char *fabric_client_host(void)
{
	const char *host = secure_getenv("ADVERB_FABRIC_HOST");

	return host ? host : "";
}

/* Returns 0 if this process's user also runs the fabric; else -EPERM or another
 * -errno.  Another user's fabric is not trusted, since a fabric can read and
 * change the packets of this program. */
static int check_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return -errno;
	return user_map_is_own(peer.uid) ? 0 : -EPERM;
}

/* Limits the waits on the socket.  SO_SNDTIMEO limits connect(2), too. */
static int limit_waits(int fd, uint32_t patience_ms)
{
	const struct timeval most = {.tv_sec = patience_ms / 1000,
				     .tv_usec = patience_ms % 1000 * 1000};

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)))
		return -errno;
	return 0;
}

/* Returns -ETIMEDOUT or another -errno after a failed call on a connection.
 * EAGAIN means that the limit of limit_waits has passed.  EINTR means that a
 * signal has interrupted the call.  The callers try such a call again until the
 * limit has passed, so the last EINTR is a timeout, too. */
static int failed_call(void)
{
	return errno == EAGAIN || errno == EINTR ? -ETIMEDOUT : -errno;
}

/* Returns the time (monotonic_ms) from which on an interrupted call on the
 * socket is not tried again: now plus the limit of limit_waits. */
static uint64_t end_of_tries(int fd)
{
	struct timeval most = {0};
	socklen_t size = sizeof(most);

	if (getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, &size) ||
	    (!most.tv_sec && !most.tv_usec))
		return UINT64_MAX; /* the socket waits without a limit */
	return monotonic_ms() + (uint64_t)most.tv_sec * 1000 +
	       (uint64_t)most.tv_usec / 1000;
}

/* Returns how long a wait until end_ms lasts from now on, for poll(2). */
static int time_left(uint64_t end_ms)
{
	uint64_t now_ms = monotonic_ms();

	if (end_ms == UINT64_MAX)
		return -1;
	if (end_ms <= now_ms)
		return 0;
	return end_ms - now_ms < INT_MAX ? (int)(end_ms - now_ms) : INT_MAX;
}

/*
 * Is a failed call to be tried again?  The kernel does not continue a call that
 * a signal has interrupted if the socket has a limit, not even with
 * SA_RESTART, and a new call would wait for the whole limit again.  So this
 * function waits until the socket has one of `events`, but at most until
 * end_ms.
 */
static bool call_again(int fd, short events, uint64_t end_ms)
{
	struct pollfd p = {fd, events, 0};
	int left;

	while (errno == EINTR && (left = time_left(end_ms))) {
		if (poll(&p, 1, left) > 0)
			return true;
	}
	return false;
}

/* Returns 0 or -errno.  A call that a signal has interrupted is made again with
 * the time that is left. */
static int connect_to(int fd, const struct sockaddr_un *address,
		      uint32_t patience_ms)
{
	uint64_t end_ms = end_of_tries(fd);
	int err, left = 0;

	do
		err = connect(fd, (const struct sockaddr *)address,
			      sizeof(*address))
			      ? failed_call()
			      : 0;
	while (err == -ETIMEDOUT && errno == EINTR &&
	       (left = time_left(end_ms)) && !limit_waits(fd, (uint32_t)left));
	return err || !left ? err : limit_waits(fd, patience_ms);
}

int fabric_client_connect(const char *path, uint32_t patience_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Refuses descriptors until the other side's user is known: to close
	 * a descriptor of another user can take long. */
	scm_rights_let_bring(fd, false);
	err = limit_waits(fd, patience_ms);
	if (!err)
		err = connect_to(fd, &address, patience_ms);
	if (!err)
		err = check_user(fd);
	if (!err) {
		scm_rights_let_bring(fd, true);
		return fd;
	}
	close(fd);
	return err;
}

int fabric_client_judge(struct fabric_proto *m, size_t n)
{
	if (!n)
		return -ECONNRESET;
	if (n != sizeof(*m) || m->version != FABRIC_PROTO_VERSION)
		return -EPROTO;
	m->host[FABRIC_PROTO_NAME - 1] = m->text[FABRIC_PROTO_NAME - 1] = '\0';
	return m->err > 0 || m->err < -ERRNO_MAX ? -EPROTO : m->err;
}

int fabric_client_receive(int connection, struct fabric_proto *m, int flags,
			  bool *is_cut, int *fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = m, .iov_len = sizeof(*m)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	/* a call that does not wait is not interrupted either */
	uint64_t end_ms = flags & MSG_DONTWAIT ? 0 : end_of_tries(connection);
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(connection, &message,
			    flags | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	while (n < 0 && call_again(connection, POLLIN, end_ms));
	if (n < 0)
		return -1;
	/* CMSG_SPACE rounds up, so the kernel may store two descriptors, of
	 * which scm_rights_take closes the second. */
	*is_cut = !scm_rights_take(&message, fd, 1) &&
		  message.msg_flags & MSG_CTRUNC;
	return (int)n;
}

uint32_t fabric_client_serial(void)
{
	static struct count requests;
	uint32_t serial;

	do
		serial = count_take(&requests) + 1;
	while (!serial);
	return serial;
}

/* Is the message of n bytes an answer to a request before `serial`? */
static bool is_late(const struct fabric_proto *m, int n, uint32_t serial)
{
	return n == sizeof(*m) && m->version == FABRIC_PROTO_VERSION &&
	       m->serial && (int32_t)(m->serial - serial) < 0;
}

/* Receives the next message that is no late answer.  Returns as
 * fabric_client_receive does. */
static int receive_next(int connection, struct fabric_proto *m, uint32_t serial,
			bool *is_cut, int *fd)
{
	uint64_t end_ms = end_of_tries(connection);
	int n;

	for (;;) {
		n = fabric_client_receive(connection, m, 0, is_cut, fd);
		if (!is_late(m, n, serial))
			return n;
		if (*fd >= 0)
			close(*fd);
		if (monotonic_ms() < end_ms)
			continue;
		errno = EAGAIN;
		return -1;
	}
}

static int receive_answer(int connection, struct fabric_proto *m, int *fd)
{
	const uint32_t serial = m->serial;
	bool is_cut;
	int came, err;
	int n = receive_next(connection, m, serial, &is_cut, &came);

	if (n < 0) {
		m->serial = serial;
		return failed_call();
	}
	err = fabric_client_judge(m, (size_t)n);
	if (n == sizeof(*m) && m->serial != serial)
		err = -EPROTO;
	m->serial = serial;
	/* the kernel could not install the descriptor in this process */
	if (!err && fd && is_cut)
		err = -EMFILE;
	if (fd)
		*fd = came;
	else if (came >= 0)
		close(came);
	return err;
}

/* Sends a request with the descriptor `brings`; -1: with none.  Returns 0 or
 * -errno. */
static int send_request(int connection, const struct fabric_proto *m,
			int brings)
{
	uint64_t end_ms = end_of_tries(connection);
	ssize_t n;

	do
		n = scm_rights_send(connection, m, sizeof(*m), &brings,
				    brings >= 0, 0);
	while (n < 0 && call_again(connection, POLLOUT, end_ms));
	return n == sizeof(*m) ? 0 : failed_call();
}

int fabric_client_ask(int connection, struct fabric_proto *m, int *fd)
{
	return fabric_client_bring(connection, m, -1, fd);
}

int fabric_client_bring(int connection, struct fabric_proto *m, int brings,
			int *fd)
{
	uint32_t kind = m->kind;
	int err;

	if (fd)
		*fd = -1;
	m->version = FABRIC_PROTO_VERSION;
	m->serial = fabric_client_serial();
	err = send_request(connection, m, brings);
	if (err)
		return err;
	err = receive_answer(connection, m, fd);
	if (!err && m->kind != kind)
		err = -EPROTO;
	if (err && fd && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

/* Asks the fabric for port 1 of this process's host, and makes *m a request
 * FABRIC_PROTO_CM with that port's GID.  Returns 0 or -errno. */
static int ask_gid(int connection, struct fabric_proto *m)
{
	uint64_t gid[2];
	int err;

	*m = (struct fabric_proto){.kind = FABRIC_PROTO_PORT, .number = 1};
	snprintf(m->host, sizeof(m->host), "%s", fabric_client_host());
	err = fabric_client_ask(connection, m, NULL);
	if (err)
		return err;
	if (!fabric_client_is_port(&m->port) || !m->port.guids[0])
		return -EPROTO;
	gid[0] = htobe64(m->port.gid_prefix);
	gid[1] = htobe64(m->port.guids[0]);
	*m = (struct fabric_proto){.kind = FABRIC_PROTO_CM};
	snprintf(m->host, sizeof(m->host), "%s", fabric_client_host());
	memcpy(m->gid, gid, sizeof(m->gid));
	return 0;
}

int fabric_client_open_cm(const char *path, uint32_t patience_ms, int *fd)
{
	int connection = fabric_client_connect(path, patience_ms), err;
	struct fabric_proto m;

	*fd = -1;
	if (connection < 0)
		return connection;
	err = ask_gid(connection, &m);
	if (!err)
		err = fabric_client_ask(connection, &m, fd);
	if (!err && !fabric_client_is_data(*fd))
		err = -EPROTO;
	if (!err)
		return connection;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	close(connection);
	return err;
}

bool fabric_client_is_port(const struct fabric_port *p)
{
	return p->lid <= LID_MAX && p->lmc <= LMC_MAX && p->mtu <= MTU_MAX &&
	       p->max_mtu && p->max_mtu <= MTU_MAX && p->state &&
	       p->state <= STATE_MAX;
}

/* The kernel refuses a message that is longer than the send buffer.  A message
 * of half of the buffer's length leaves room for the next message. */
size_t fabric_client_burst(int fd)
{
	int room = 0;
	socklen_t size = sizeof(room);

	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size) || room < 0)
		return 0;
	return room / 2 < FABRIC_PROTO_BURST_BYTES ? (size_t)room / 2
						   : FABRIC_PROTO_BURST_BYTES;
}

bool fabric_client_is_data(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof(int);

	return fd >= 0 &&
	       !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) &&
	       domain == AF_UNIX && type == SOCK_SEQPACKET;
}

const char *fabric_client_reason(int err)
{
	if (err == -ECONNRESET || err == -EPIPE)
		return "the process there has ended or has closed the "
		       "connection";
	if (err == -EPROTO)
		return "the process there has sent a message that no fabric of "
		       "this release of adverb sends";
	return strerror(-err);
}

void fabric_client_explain(const char *path, const char *host, int err,
			   char *text, size_t room)
{
	if (err == -ECONNREFUSED || err == -ENOENT)
		snprintf(text, room,
			 "no fabric listens at %s (ADVERB_FABRIC); start one "
			 "by adverb fabric FILE",
			 path);
	else if (err == -EPERM)
		snprintf(text, room,
			 "the fabric at %s (ADVERB_FABRIC) belongs to another "
			 "user, and is not used; start one of your own by "
			 "adverb fabric FILE",
			 path);
	else if (err == -EPROTO)
		snprintf(text, room,
			 "the process at %s (ADVERB_FABRIC) is not a fabric of "
			 "this release of adverb; end that process, and start "
			 "a fabric of this release by adverb fabric FILE",
			 path);
	else if (err == -ENODEV && !*host)
		snprintf(text, room,
			 "ADVERB_FABRIC_HOST is not set, and the first node of "
			 "the fabric at %s is no adapter or lacks this port; "
			 "name a host (adverb run --host NAME); adverb fabric "
			 "--show lists the hosts",
			 path);
	else if (err == -ENODEV)
		snprintf(text, room,
			 "the fabric at %s has no host \"%s\" "
			 "(ADVERB_FABRIC_HOST) with this port; adverb fabric "
			 "--show lists the hosts",
			 path, host);
	else if (err == -ECONNRESET || err == -EPIPE)
		snprintf(text, room,
			 "the fabric at %s (ADVERB_FABRIC) has ended, or takes "
			 "no more programs; start a fabric by adverb fabric "
			 "FILE, or end other programs that use this fabric",
			 path);
	else if (err == -ETIMEDOUT)
		snprintf(text, room,
			 "the fabric at %s (ADVERB_FABRIC) does not answer; "
			 "continue its process if it is stopped, or start "
			 "another one by adverb fabric FILE",
			 path);
	else if (err == -EMFILE)
		snprintf(
			text, room,
			"the fabric at %s (ADVERB_FABRIC) cannot be used: this "
			"process, or the fabric, has too many open files; "
			"raise the limit (ulimit -n)",
			path);
	else
		snprintf(text, room,
			 "the fabric at %s (ADVERB_FABRIC) cannot be used: %s; "
			 "%s",
			 path, strerror(-err),
			 remedy_of(-err, "check the path, or start a fabric by "
					 "adverb fabric FILE"));
}
