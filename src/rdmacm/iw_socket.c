/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of iWARP connections: options, addresses, and the bytes of the
 * start. */
#include "rdmacm/iw_inside.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "util/fd_identity.h"

#define SEGMENT_MIN 536 /* bytes: the least that hosts of IPv4 take */

static void set_option(int fd, int level, int name, int value)
{
	/* A kernel that lacks the option does without. */
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		errno = 0;
}

int r_iw_socket(struct r_iw *iw, const struct r_id *id, int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool is_v6 = family == AF_INET6;

	if (r_iw_keep_fd(iw, fd) < 0)
		return -errno;
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (is_v6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY,
			   id->options.is_family_only);
	if (id->options.tos) {
		set_option(fd, IPPROTO_IP, IP_TOS, id->options.tos);
		if (is_v6)
			set_option(fd, IPPROTO_IPV6, IPV6_TCLASS,
				   id->options.tos);
	}
	return 0;
}

/*
 * A socket with SO_REUSEADDR gets the port of connections that are ending.  The
 * option is off again while the socket is bound, so that no other socket gets
 * the port before rdma_listen.
 */
int r_iw_bind_socket(struct r_iw *iw, const struct r_id *id,
		     const struct sockaddr *addr)
{
	socklen_t size = r_addr_size(addr);

	if (id->options.may_share)
		set_option(iw->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* With port 0 the port is chosen by connect(2), or by listen(2). */
	if (!bind(iw->fd, addr, size))
		return 0;
	if (errno != EADDRINUSE || id->options.may_share)
		return -errno;
	set_option(iw->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(iw->fd, addr, size))
		return -errno;
	set_option(iw->fd, SOL_SOCKET, SO_REUSEADDR, 0);
	return 0;
}

int r_iw_local(const struct r_iw *iw, struct sockaddr_storage *addr)
{
	socklen_t size = sizeof(*addr);

	return getsockname(iw->fd, (struct sockaddr *)addr, &size) ? -errno : 0;
}

int r_iw_remote(const struct r_iw *iw, struct sockaddr_storage *addr)
{
	socklen_t size = sizeof(*addr);

	return getpeername(iw->fd, (struct sockaddr *)addr, &size) ? -errno : 0;
}

int r_iw_send_start(struct r_iw *iw)
{
	struct r_iw_start *s = iw->start;
	ssize_t n;

	if (!fd_identity_holds(iw->fd))
		return -EBADF; /* the program has closed the descriptor */
	while (s->out_sent < s->out_bytes) {
		n = send(iw->fd, s->out + s->out_sent,
			 (size_t)(s->out_bytes - s->out_sent),
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		s->out_sent = (uint16_t)(s->out_sent + (n > 0 ? n : 0));
	}
	return 0;
}

/* A connection that the peer has reset has ended for MPA, too: a peer that
 * closes before it has read all resets the connection. */
int r_iw_take_start(struct r_iw *iw)
{
	struct startup *mpa = &iw->start->mpa;
	uint8_t bytes[MPA_FRAME_MAX];
	ssize_t n;

	if (!fd_identity_holds(iw->fd))
		return -EBADF;
	while (mpa->state == STARTUP_WAITS || mpa->state == STARTUP_REQUESTED) {
		n = recv(iw->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != ECONNRESET)
			return -errno;
		if (n > 0)
			startup_take(mpa, bytes, (size_t)n);
		else
			startup_end(mpa);
	}
	return 0;
}

uint32_t r_iw_segment(int fd)
{
	int bytes = 0;
	socklen_t size = sizeof(bytes);

	if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &bytes, &size) ||
	    bytes < SEGMENT_MIN)
		return SEGMENT_MIN;
	return (uint32_t)bytes;
}
