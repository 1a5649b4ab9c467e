/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with descriptors; see proto.h. */
#include "broker/proto.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "util/scm_rights.h"

/* How many descriptors fit in a union control: CMSG_SPACE aligns the room up,
 * so there may be room for one more than PROTO_FDS. */
#define CONTROL_FDS (PROTO_FDS + 1)

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(PROTO_FDS * sizeof(int))];
};

void proto_introduce(struct proto *m, uint32_t idle_s)
{
	m->magic = PROTO_MAGIC;
	m->version = PROTO_VERSION;
	m->about = (uint32_t)getpid();
	m->idle_s = idle_s;
	snprintf(m->release, sizeof(m->release), "%s", ADVERB_VERSION);
}

static int connect_to(unsigned version, bool receives_nothing)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	struct sockaddr_un a;
	socklen_t length = proto_address_of(version, &a);
	int err;

	if (fd < 0)
		return -errno;
	scm_rights_let_bring(fd, false);
	if ((!receives_nothing || !shutdown(fd, SHUT_RD)) &&
	    !connect(fd, (struct sockaddr *)&a, length))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int proto_connect(unsigned version)
{
	return connect_to(version, false);
}

int proto_look(unsigned version, struct ucred *who)
{
	socklen_t length = sizeof(*who);
	int fd = connect_to(version, true), err = 0;

	if (fd < 0)
		return fd;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &length))
		err = -errno;
	close(fd);
	return err;
}

int proto_send(int socket, const struct proto *m, const int *fds)
{
	size_t n = (size_t)__builtin_popcount(m->brings);
	ssize_t sent =
		scm_rights_send(socket, m, sizeof(*m), fds, n, MSG_DONTWAIT);

	return sent < 0 ? -errno : 0;
}

/* Checks magic, version and length.  Returns 0, -EPIPE, -EPROTO or
 * -EPROTONOSUPPORT. */
static int judge_message(const struct proto *m, size_t length, int flags)
{
	if (!length)
		return -EPIPE;
	if (length < offsetof(struct proto, serial) || m->magic != PROTO_MAGIC)
		return -EPROTO;
	if (m->version != PROTO_VERSION)
		return length < PROTO_HEAD ? -EPROTO : -EPROTONOSUPPORT;
	return length != sizeof(*m) || flags & MSG_TRUNC ? -EPROTO : 0;
}

/* Sorts the n descriptors in got by the bits of m->brings, and closes those
 * that have no bit.  False: a bit has no descriptor. */
static bool sort_fds(const struct proto *m, int *got, size_t n,
		     int fds[PROTO_FDS])
{
	size_t used = 0;
	bool lacks = false;

	for (int i = 0; i < PROTO_FDS; i++)
		if (m->brings & 1u << i) {
			fds[i] = used < n ? got[used++] : -1;
			lacks |= fds[i] < 0;
		}
	while (used < n)
		close(got[used++]);
	return !lacks;
}

int proto_receive(int socket, struct proto *m, int fds[PROTO_FDS])
{
	const struct proto nothing = {0};
	union control control;
	struct iovec iov = {m, sizeof(*m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int got[CONTROL_FDS];
	ssize_t length;
	bool is_whole;
	size_t n;
	int err;

	for (int i = 0; i < PROTO_FDS; i++)
		fds[i] = -1;
	length = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (length < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	/* A message that is refused, for example an empty one, may have brought
	 * descriptors, too. */
	n = scm_rights_take(&msg, got, CONTROL_FDS);
	err = judge_message(m, (size_t)length, msg.msg_flags);
	/* In another version, or another protocol, the bits of m->brings may
	 * mean other things. */
	is_whole = sort_fds(err ? &nothing : m, got, n, fds);
	/* MSG_CTRUNC: the kernel has dropped descriptors.  If all that m names
	 * have come, the sender has sent too many.  If not, this process has
	 * reached its limit on open files. */
	if (!err && msg.msg_flags & MSG_CTRUNC)
		err = is_whole ? -EPROTO : -EMFILE;
	return err;
}
