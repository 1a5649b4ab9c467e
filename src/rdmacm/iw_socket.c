/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of iWARP connections: options, addresses, and the frames of MPA
 * with which a connection starts. */
#include "rdmacm/iw_inside.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "util/fd_identity.h"
#include "wire/sctp.h"

#define SEGMENT_MIN 536 /* bytes: the default MSS of TCP over IPv4 */

static void set_option(int fd, int level, int name, int value)
{
	/* Failure is ignored: a connection works without these options. */
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		errno = 0;
}

int r_iw_socket(struct r_iw *iw, const struct r_id *id, int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (r_iw_keep_fd(iw, fd) < 0)
		return -errno;
	if (family == AF_INET6)
		set_option(iw->fd, IPPROTO_IPV6, IPV6_V6ONLY,
			   id->options.is_family_only);
	return 0;
}

void r_iw_use_tos(const struct r_iw *iw)
{
	uint8_t tos = iw->id->options.tos;

	if (!tos)
		return;
	set_option(iw->fd, IPPROTO_IP, IP_TOS, tos);
	if (iw->id->base.route.addr.src_addr.sa_family == AF_INET6)
		set_option(iw->fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
}

/* The argument of has_port, which r_iw_each calls for each object. */
struct claim {
	const struct r_iw *by; /* the object that wants the port */
	uint16_t port;	       /* host order */
	bool is_taken;	       /* an object with may_share has the port */
};

static void has_port(struct r_iw *iw, void *arg)
{
	struct claim *c = arg;

	c->is_taken |=
		iw != c->by && iw->state == R_IW_IDLE && iw->fd >= 0 &&
		iw->id->options.may_share &&
		r_addr_port(&iw->id->base.route.addr.src_addr) == c->port;
}

/* Returns whether another id of this process has bound the port with
 * RDMA_OPTION_ID_REUSEADDR and does not listen yet.  That id's socket has
 * SO_REUSEADDR, so the kernel would give the port to a second such socket. */
static bool is_shared(const struct r_iw *iw, const struct sockaddr *addr)
{
	struct claim c = {.by = iw, .port = r_addr_port(addr)};

	r_iw_each(has_port, &c);
	return c.is_taken;
}

/*
 * With SO_REUSEADDR, bind(2) succeeds although connections that are ending
 * still use the port.  Unless the id shares its port, the option is off again
 * after the bind, so that no other socket gets the port before rdma_listen.
 */
int r_iw_bind_socket(struct r_iw *iw, const struct r_id *id,
		     const struct sockaddr *addr)
{
	socklen_t size = r_addr_size(addr);

	if (id->options.may_share)
		set_option(iw->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!bind(iw->fd, addr, size))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (id->options.may_share || is_shared(iw, addr))
		return -EADDRINUSE;
	set_option(iw->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(iw->fd, addr, size))
		return -errno;
	set_option(iw->fd, SOL_SOCKET, SO_REUSEADDR, 0);
	return 0;
}

int r_iw_local(const struct r_iw *iw, struct sockaddr_storage *addr)
{
	socklen_t size = sizeof(*addr);

	if (iw->sctp) {
		r_iw_sctp_address(&iw->sctp->local, addr);
		return 0;
	}
	return getsockname(iw->fd, (struct sockaddr *)addr, &size) ? -errno : 0;
}

int r_iw_remote(const struct r_iw *iw, struct sockaddr_storage *addr)
{
	socklen_t size = sizeof(*addr);

	if (iw->sctp) {
		r_iw_sctp_address(&iw->sctp->remote, addr);
		return 0;
	}
	return getpeername(iw->fd, (struct sockaddr *)addr, &size) ? -errno : 0;
}

uint64_t r_iw_real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int r_iw_send_start(struct r_iw *iw)
{
	struct r_iw_start *s = iw->start;
	ssize_t n;

	if (s->out_sent == s->out_bytes)
		return 0;
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
		if (n > 0 && !s->begun_ns)
			s->begun_ns = s->request_ns = r_iw_real_ns();
		s->out_sent = (uint16_t)(s->out_sent + (n > 0 ? n : 0));
	}
	return 0;
}

/* ECONNRESET counts as the end of the peer's stream: if the peer closes before
 * it has read all bytes of this side, its kernel resets the connection. */
int r_iw_take_start(struct r_iw *iw)
{
	/* a message of SCTP is received whole, or its rest is lost */
	static uint8_t bytes[SCTP_MESSAGE_MAX];
	struct startup *mpa = &iw->start->mpa;
	size_t room = iw->sctp ? sizeof(bytes) : MPA_FRAME_MAX;
	ssize_t n;

	if (!fd_identity_holds(iw->fd))
		return -EBADF;
	while (mpa->state == STARTUP_WAITS || mpa->state == STARTUP_REQUESTED) {
		n = recv(iw->fd, bytes, room, MSG_DONTWAIT);
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
		/* epoll tells when more bytes of TCP come, and when the peer
		 * closes the connection */
		if (!iw->sctp && n > 0 && (size_t)n < room)
			return 0;
	}
	return 0;
}

uint32_t r_iw_segment(const struct r_iw *iw)
{
	int bytes = 0;
	socklen_t size = sizeof(bytes);

	if (iw->sctp)
		return iw->sctp->segment_bytes;
	if (getsockopt(iw->fd, IPPROTO_TCP, TCP_MAXSEG, &bytes, &size) ||
	    bytes < SEGMENT_MIN)
		return SEGMENT_MIN;
	return (uint32_t)bytes;
}
