/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of NETLINK_RDMA.  A kernel without RDMA has no such protocol, and a
 * kernel with RDMA does not know adverb's devices.  So the program gets a
 * socket of NETLINK_USERSOCK instead, a protocol that the kernel has for
 * messages between programs.  When the program sends a request, the shim sends
 * the answer from the socket to the same socket.  So only opening and sending
 * are done by the shim; the kernel binds, waits, receives and closes.
 *
 * Before the first answer, the shim connects the socket to itself and drops
 * what has arrived.  The kernel then refuses unicasts of other sockets.  So
 * another process can put an answer into the socket only if the program has
 * joined a multicast group with the socket, which needs CAP_NET_ADMIN.  If two
 * threads send the first two requests of a socket at the same time, the shim
 * may also drop one of the answers.  A request that a program sends by write(2)
 * is not answered: write fails with ECONNREFUSED or, once the shim has
 * connected the socket, the program receives its own request.
 *
 * The shim's sockets have a mark: a value of SO_LINGER, which has no effect on
 * a netlink socket.  So any number of them can be open, and a descriptor made
 * by dup(2) or fork(2) is known, too.
 *
 * Other sockets of the program are not changed.  As long as the program has
 * opened no socket of NETLINK_RDMA, each send costs one more load.  The
 * functions take no lock.
 */
#include "shim/nldev.h"
#include "shim/shim.h"

#include "util/count.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The mark's l_linger, in seconds.  The kernel stores the time in ticks, and
 * getsockopt returns the same number of seconds: for each value of the kernel's
 * HZ the number of ticks fits into a long. */
#define MARK 479147
/* The most bytes of one send; a longer send fails with EMSGSIZE.  Tools send
 * some dozens of bytes. */
#define REQUEST_BYTES 4096

SHIM_NEXT(socket);
SHIM_NEXT(send);
SHIM_NEXT(sendto);
SHIM_NEXT(sendmsg);
SHIM_NEXT(sendmmsg);

/* How many sockets were given the mark; never counted down. */
static struct count opened;

/* Gives the socket the mark.  Returns whether the kernel allows that. */
static bool mark_fd(int fd)
{
	const struct linger mark = {.l_onoff = 1, .l_linger = MARK};

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &mark, sizeof(mark)))
		return false;
	count_up(&opened);
	return true;
}

static bool has_option(int fd, int option, int value)
{
	int found = -1;
	socklen_t len = sizeof(found);

	return !getsockopt(fd, SOL_SOCKET, option, &found, &len) &&
	       found == value;
}

static bool has_mark(int fd)
{
	struct linger mark = {0};
	socklen_t len = sizeof(mark);

	return !getsockopt(fd, SOL_SOCKET, SO_LINGER, &mark, &len) &&
	       mark.l_onoff && mark.l_linger == MARK;
}

/* Is fd a socket that the shim has opened for NETLINK_RDMA?  Keeps errno. */
static bool is_ours(int fd)
{
	int saved = errno;
	bool is_marked;

	if (!count_now(&opened))
		return false;
	is_marked = has_option(fd, SO_PROTOCOL, NETLINK_USERSOCK) &&
		    has_option(fd, SO_DOMAIN, AF_NETLINK) && has_mark(fd);
	errno = saved;
	return is_marked;
}

SHIM int socket(int domain, int type, int protocol)
{
	if (!SHIM_FIND(socket))
		return -1;
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA &&
	    !getauxval(AT_SECURE)) {
		int fd = next_socket(domain, type, NETLINK_USERSOCK);

		if (fd >= 0 && mark_fd(fd))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return next_socket(domain, type, protocol);
}

static bool name_of(int fd, int (*get)(int, struct sockaddr *, socklen_t *),
		    struct sockaddr_nl *name)
{
	socklen_t len = sizeof(*name);

	memset(name, 0, sizeof(*name));
	return get(fd, (struct sockaddr *)(void *)name, &len) == 0;
}

static bool aim_at(int fd, uint32_t portid)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = portid};

	return connect(fd, (struct sockaddr *)(void *)&to, sizeof(to)) == 0;
}

/* If the socket is not yet connected to itself, connects it to itself and drops
 * the messages that it has.  Returns the socket's port ID, or 0 with errno. */
static uint32_t connect_self(int fd)
{
	struct sockaddr_nl own, peer;
	char byte;

	if (!name_of(fd, getsockname, &own))
		return 0;
	/* connect also binds the socket, if the program has not bound it */
	if (!own.nl_pid && (!aim_at(fd, 0) || !name_of(fd, getsockname, &own)))
		return 0;
	if (name_of(fd, getpeername, &peer) && peer.nl_pid == own.nl_pid)
		return own.nl_pid;
	if (!aim_at(fd, own.nl_pid))
		return 0;
	while (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0)
		continue;
	return own.nl_pid;
}

static int deliver_answer(int fd, const struct nldev_answer *a)
{
	size_t at = 0;

	while (at < a->size) {
		const struct nlmsghdr *h = (const void *)(a->bytes + at);

		if (next_send(fd, h, h->nlmsg_len, MSG_DONTWAIT) < 0)
			return -1;
		at += NLMSG_ALIGN(h->nlmsg_len);
	}
	return 0;
}

/* Answers every request in the `size` bytes.  Drops a request that is cut off,
 * as the kernel does.  Returns `size`; or -1 with errno: the socket cannot be
 * connected to itself, or its receive buffer has no room for an answer. */
static ssize_t answer_request(int fd, const char *bytes, size_t size)
{
	static const size_t least = sizeof(struct nlmsghdr);
	struct device devices[DEVICE_MOST];
	uint32_t count = device_read(devices);
	uint32_t portid = connect_self(fd);
	size_t at = 0;

	if (!portid)
		return -1;
	while (size - at >= least) {
		const struct nlmsghdr *h = (const void *)(bytes + at);
		struct nldev_answer a;
		int ext_ack = 0;
		socklen_t len = sizeof(ext_ack);

		if (h->nlmsg_len < least || h->nlmsg_len > size - at)
			break;
		getsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &ext_ack, &len);
		a.size = 0;
		a.portid = portid;
		a.explains = ext_ack;
		nldev_answer(&a, h, devices, count);
		if (deliver_answer(fd, &a))
			return -1;
		if (NLMSG_ALIGN(h->nlmsg_len) >= size - at)
			break;
		at += NLMSG_ALIGN(h->nlmsg_len);
	}
	return (ssize_t)size;
}

/* Copies `size` bytes through a pipe, since write(2) and read(2) check the
 * addresses.  False as for end_copy. */
static bool copy_by_pipe(void *to, const void *from, size_t size)
{
	int ends[2];
	bool is_copied;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return false;
	is_copied = write(ends[1], from, size) == (ssize_t)size &&
		    read(ends[0], to, size) == (ssize_t)size;
	close(ends[0]);
	close(ends[1]);
	if (!is_copied)
		errno = EFAULT;
	return is_copied;
}

/* Judges n, the result of process_vm_readv or process_vm_writev for a copy.  If
 * a sandbox has refused the call, copies through a pipe.  size: at most
 * REQUEST_BYTES, which a pipe holds.  False with errno: an address is bad
 * (EFAULT), or the pipe cannot be made (pipe(2)). */
static bool end_copy(ssize_t n, void *to, const void *from, size_t size)
{
	if (n == (ssize_t)size)
		return true;
	if (n < 0 && (errno == EPERM || errno == ENOSYS))
		return copy_by_pipe(to, from, size);
	errno = EFAULT;
	return false;
}

/* Copies from memory that the program names.  False as for end_copy. */
static bool copy_given(void *to, const void *from, size_t size)
{
	const struct iovec own = {to, size};
	const struct iovec given = {(void *)(uintptr_t)from, size};

	return end_copy(size ? process_vm_readv(getpid(), &own, 1, &given, 1, 0)
			     : 0,
			to, from, size);
}

/* Copies to memory that the program names.  False as for end_copy. */
static bool copy_back(void *to, const void *from, size_t size)
{
	const struct iovec own = {(void *)(uintptr_t)from, size};
	const struct iovec given = {to, size};

	return end_copy(process_vm_writev(getpid(), &own, 1, &given, 1, 0), to,
			from, size);
}

/* Appends a part of a request to the *size bytes at `bytes`.  False with errno:
 * the part is too long, or its address is bad. */
static bool append_part(char bytes[REQUEST_BYTES], size_t *size,
			const struct iovec *part)
{
	if (part->iov_len > REQUEST_BYTES - *size) {
		errno = EMSGSIZE;
		return false;
	}
	if (!copy_given(bytes + *size, part->iov_base, part->iov_len))
		return false;
	*size += part->iov_len;
	return true;
}

/* Answers the request whose parts the program names by `parts`.  Returns the
 * request's length; or -1 with errno: that of append_part, of answer_request,
 * or EMSGSIZE for more than IOV_MAX parts. */
static ssize_t take_request(int fd, const struct iovec *parts, size_t count)
{
	_Alignas(struct nlmsghdr) char bytes[REQUEST_BYTES];
	size_t size = 0;

	if (count > IOV_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	for (size_t i = 0; i < count; i++) {
		struct iovec part = {0};

		if (!copy_given(&part, &parts[i], sizeof(part)) ||
		    !append_part(bytes, &size, &part))
			return -1;
	}
	if (!SHIM_FIND(send))
		return -1;
	return answer_request(fd, bytes, size);
}

/* Does the work of take_request for the message that the program names. */
static ssize_t take_message(int fd, const struct msghdr *message)
{
	struct msghdr m = {0};

	if (!copy_given(&m, message, sizeof(m)))
		return -1;
	return take_request(fd, m.msg_iov, m.msg_iovlen);
}

SHIM ssize_t sendto(int fd, const void *bytes, size_t size, int flags,
		    const struct sockaddr *to, socklen_t len)
{
	struct iovec part = {(void *)(uintptr_t)bytes, size};

	if (is_ours(fd))
		return take_request(fd, &part, 1);
	return SHIM_FIND(sendto) ? next_sendto(fd, bytes, size, flags, to, len)
				 : -1;
}

SHIM ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	struct iovec part = {(void *)(uintptr_t)bytes, size};

	if (is_ours(fd))
		return take_request(fd, &part, 1);
	return SHIM_FIND(send) ? next_send(fd, bytes, size, flags) : -1;
}

SHIM ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (is_ours(fd))
		return take_message(fd, message);
	return SHIM_FIND(sendmsg) ? next_sendmsg(fd, message, flags) : -1;
}

SHIM int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	unsigned done = 0;

	if (!is_ours(fd))
		return SHIM_FIND(sendmmsg)
			       ? next_sendmmsg(fd, messages, count, flags)
			       : -1;
	for (; done < count; done++) {
		ssize_t n = take_message(fd, &messages[done].msg_hdr);
		unsigned len = (unsigned)n;

		if (n < 0 ||
		    !copy_back(&messages[done].msg_len, &len, sizeof(len)))
			break;
	}
	return done || !count ? (int)done : -1;
}
