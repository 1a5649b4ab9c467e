/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of iWARP as associations of SCTP (RFC 5043), with ADVERB_SCTP. */
#include "rdmacm/explain.h"
#include "rdmacm/iw_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "log/env.h"
#include "util/fd_identity.h"
#include "util/inaddr.h"
#include "verbs/iwarp.h"
#include "wire/sctp.h"

bool r_iw_uses_sctp(void)
{
	uint16_t port;

	return env_sctp(&port) != ENV_SCTP_OFF;
}

/* The calls of libibverbs for iWARP devices; NULL: not known yet.  start_sctp
 * sets the pointer before it passes capture_packet, which uses the calls, to
 * SCTP. */
static const struct verbs_iwarp *calls;

static struct inaddr plain_address(const struct sockaddr_in6 *a)
{
	struct inaddr at = {.port = ntohs(a->sin6_port)};

	memcpy(at.ip, &a->sin6_addr, sizeof(at.ip));
	return at;
}

static void capture_packet(const struct sockaddr_in6 *from,
			   const struct sockaddr_in6 *to, const void *packet,
			   size_t n)
{
	struct inaddr plain_from = plain_address(from);
	struct inaddr plain_to = plain_address(to);

	calls->capture(&plain_from, &plain_to, packet, n);
}

/* Starts SCTP in this process, unless it runs.  Returns 0, or -errno with a
 * message. */
static int start_sctp(void)
{
	struct sctp_options o = {0};
	const char *why = "ADVERB_SCTP has no valid value";
	enum env_sctp how = env_sctp(&o.udp_port);
	int err = -EINVAL;

	o.is_raw = how == ENV_SCTP_RAW;
	if (!calls)
		calls = r_device_iwarp();
	o.capture = calls ? capture_packet : NULL;
	if (how != ENV_SCTP_WRONG)
		err = sctp_start(&o, &why);
	if (err)
		r_say("rdma_cm: no connection of an iWARP device can be made "
		      "over SCTP, as ADVERB_SCTP asks for: %s; unset "
		      "ADVERB_SCTP to use TCP",
		      why);
	return err;
}

/* Returns the address as wire/sctp takes it: an IPv4 address is mapped. */
static struct sockaddr_in6 address_of(const struct sockaddr *addr)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6};
	struct sockaddr_in v4;

	if (addr->sa_family == AF_INET6) {
		memcpy(&at, addr, sizeof(at));
		return at;
	}
	memcpy(&v4, addr, sizeof(v4));
	at.sin6_port = v4.sin_port;
	at.sin6_addr.s6_addr[10] = at.sin6_addr.s6_addr[11] = 0xff;
	memcpy(at.sin6_addr.s6_addr + 12, &v4.sin_addr, 4);
	return at;
}

void r_iw_sctp_address(const struct sockaddr_in6 *from,
		       struct sockaddr_storage *to)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	memset(to, 0, sizeof(*to));
	if (!IN6_IS_ADDR_V4MAPPED(&from->sin6_addr)) {
		memcpy(to, from, sizeof(*from));
		return;
	}
	v4.sin_port = from->sin6_port;
	memcpy(&v4.sin_addr, from->sin6_addr.s6_addr + 12, 4);
	memcpy(to, &v4, sizeof(v4));
}

int r_iw_sctp_bind(struct r_iw *iw, const struct r_id *id,
		   const struct sockaddr *addr)
{
	struct sockaddr_in6 at = address_of(addr);
	int err = start_sctp(), fd;

	if (!err && !iw->sctp) {
		iw->sctp = calloc(1, sizeof(*iw->sctp));
		err = iw->sctp ? 0 : -ENOMEM;
	}
	if (err)
		return err;
	fd = sctp_bind(&at, id->options.is_family_only);
	if (fd < 0)
		return fd;
	r_iw_keep_fd(iw, fd);
	iw->sctp->local = at;
	return 0;
}

int r_iw_sctp_listen(struct r_iw *iw, int backlog)
{
	int fd;

	if (iw->state == R_IW_LISTENING)
		return 0;
	fd = sctp_listen(r_iw_give_fd(iw), &iw->sctp->local, backlog);
	return r_iw_keep_fd(iw, fd) < 0 ? fd : 0;
}

void r_iw_sctp_unlisten(struct r_iw *iw)
{
	r_iw_keep_fd(iw, sctp_unlisten(r_iw_give_fd(iw)));
}

int r_iw_sctp_accept(struct r_iw *l, struct sctp_news *news)
{
	int fd = fd_identity_holds(l->fd) ? sctp_accept(l->fd, news) : -EBADF;

	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

int r_iw_sctp_call(struct r_iw *iw)
{
	const struct rdma_addr *a = &iw->id->base.route.addr;
	struct sockaddr_in6 peer = address_of(&a->dst_addr);
	struct sockaddr_in6 from = address_of(&a->src_addr);
	int fd;

	/* The socket may be bound to all addresses, but sctp_connect needs the
	 * one that the route has given to the id. */
	from.sin6_port = iw->sctp->local.sin6_port;
	fd = sctp_connect(r_iw_give_fd(iw), &from, &peer);
	return r_iw_keep_fd(iw, fd) < 0 ? fd : 0;
}

int r_iw_sctp_answer(struct r_iw *iw)
{
	ssize_t n;

	if (!fd_identity_holds(iw->fd))
		return -EBADF;
	n = recv(iw->fd, iw->sctp, sizeof(*iw->sctp), MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return n == sizeof(*iw->sctp) ? -iw->sctp->err : -ECONNRESET;
}

void r_iw_sctp_end_session(struct r_iw *iw)
{
	uint8_t bytes[SESSION_CONTROL_BYTES];
	uint32_t n =
		iw->start ? startup_end_session(&iw->start->mpa, bytes) : 0;

	/* If the socket is full, the Terminate is not sent, and the peer sees
	 * only the end of the association. */
	if (n && fd_identity_holds(iw->fd) &&
	    send(iw->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0;
}
