/* SPDX-License-Identifier: BSD-2-Clause */
#include "umad/fabric.h"

#include "umad/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/scm_rights.h"

bool u_fabric_is_used(void)
{
	const char *path = secure_getenv("ADVERB_FABRIC");

	return path && *path;
}

/* Returns 0 if this process's user also runs the fabric, or -errno.  No other
 * fabric is trusted, since a fabric reads and writes all datagrams of this
 * program. */
static int check_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return -errno;
	return peer.uid == geteuid() ? 0 : -EPERM;
}

int u_fabric_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, err = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		err = -errno;
	if (!err)
		err = check_user(fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int receive_answer(int connection, struct fabric_proto *m, int *fd)
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
	ssize_t n;

	do {
		n = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* CMSG_SPACE is aligned up, so there may be room for two descriptors.
	 */
	scm_rights_take(&message, fd, fd ? 1 : 0);
	if (!n)
		return -ECONNRESET;
	if (n != sizeof(*m) || m->version != FABRIC_PROTO_VERSION)
		return -EPROTO;
	m->host[FABRIC_PROTO_NAME - 1] = m->text[FABRIC_PROTO_NAME - 1] = '\0';
	return m->err > 0 ? -EPROTO : m->err;
}

int u_fabric_ask(int connection, struct fabric_proto *m, int *fd)
{
	int err;

	if (fd)
		*fd = -1;
	m->version = FABRIC_PROTO_VERSION;
	if (send(connection, m, sizeof(*m), MSG_NOSIGNAL) != sizeof(*m))
		return -errno;
	err = receive_answer(connection, m, fd);
	if (err && fd && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

static void say_failure(const char *path, const char *host, int err)
{
	if (err == -ECONNREFUSED || err == -ENOENT)
		u_say("umad: no fabric listens at %s (ADVERB_FABRIC); start "
		      "one by adverb fabric FILE",
		      path);
	else if (err == -EPERM)
		u_say("umad: the fabric at %s (ADVERB_FABRIC) belongs to "
		      "another user, and is not used; start one of your own by "
		      "adverb fabric FILE",
		      path);
	else if (err == -EPROTO)
		u_say("umad: the process at %s (ADVERB_FABRIC) is not a fabric "
		      "of this release of adverb; start one again by adverb "
		      "fabric FILE",
		      path);
	else if (err == -ENODEV)
		u_say("umad: the fabric at %s has no host \"%s\" "
		      "(ADVERB_FABRIC_HOST) with this port; adverb fabric "
		      "--show lists the hosts",
		      path, host);
	else
		u_say("umad: the fabric at %s (ADVERB_FABRIC) fails: %s", path,
		      strerror(-err));
}

int u_fabric_query(struct fabric_proto *m, int *fd)
{
	const char *path = secure_getenv("ADVERB_FABRIC");
	const char *host = secure_getenv("ADVERB_FABRIC_HOST");
	int connection, err;

	if (fd)
		*fd = -1;
	host = host ? host : "";
	snprintf(m->host, sizeof(m->host), "%s", host);
	connection = u_fabric_connect(path ? path : "");
	err = connection < 0 ? connection : u_fabric_ask(connection, m, fd);
	if (!err)
		return connection;
	say_failure(path, host, err);
	if (connection >= 0)
		close(connection);
	return err;
}
