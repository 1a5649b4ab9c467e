/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/sctp_path.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/random.h"
#include "util/siphash.h"

#define IP_BYTES    20
#define IPV6_BYTES  40
#define UDP_BYTES   8
#define SCTP_BYTES  12 /* the common header, which precedes the chunks */
#define MTU_MIN	    1280
#define MTU_MAX	    9000 /* a socket's buffer holds few larger datagrams */
#define BUFFER	    (4 << 20)
#define NAMES_BYTES 64 /* room for the control message with an address */

static struct siphash_key key;

bool sctp_path_begin(void)
{
	return random_fill(&key, sizeof(key), false);
}

static void set_option(int fd, int level, int name, int value)
{
	/* The socket works without the option, which the kernel may lack. */
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		errno = 0;
}

static bool is_ipv4(const struct in6_addr *a)
{
	return IN6_IS_ADDR_V4MAPPED(a);
}

static void map_ipv4(struct in6_addr *to, const void *ip)
{
	memset(to, 0, sizeof(*to));
	to->s6_addr[10] = to->s6_addr[11] = 0xff;
	memcpy(to->s6_addr + 12, ip, 4);
}

/* Returns the address ::ffff:a.b.c.d and its port as an address of IPv4. */
static struct sockaddr_in narrow_address(const struct sockaddr_in6 *at)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET,
				 .sin_port = at->sin6_port};

	memcpy(&v4.sin_addr, at->sin6_addr.s6_addr + 12, 4);
	return v4;
}

static void set_buffers(int fd)
{
	set_option(fd, SOL_SOCKET, SO_RCVBUF, BUFFER);
	set_option(fd, SOL_SOCKET, SO_SNDBUF, BUFFER);
}

/* Binds the socket of IPv4 to *at, and stores the port of a UDP socket in *at.
 */
static int bind_ipv4(int fd, struct sockaddr_in6 *at, bool is_raw)
{
	struct sockaddr_in v4 = narrow_address(at);
	socklen_t size = sizeof(v4);

	if (bind(fd, (struct sockaddr *)&v4, size) ||
	    getsockname(fd, (struct sockaddr *)&v4, &size))
		return -errno;
	if (!is_raw)
		at->sin6_port = v4.sin_port;
	return 0;
}

/* Opens a socket of IPv4; -EAFNOSUPPORT: *at is an address of IPv6.  All raw
 * sockets are of IPv4, since a raw socket of IPv6 receives no packets of IPv4.
 * A UDP socket is of IPv4 only if the kernel has no IPv6. */
static int open_ipv4(struct sockaddr_in6 *at, bool is_raw)
{
	int type =
		(is_raw ? SOCK_RAW : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
	int fd, err;

	if (!is_ipv4(&at->sin6_addr))
		return -EAFNOSUPPORT;
	fd = socket(AF_INET, type, is_raw ? IPPROTO_SCTP : 0);
	if (fd < 0)
		return -errno;
	if (!is_raw) {
		set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
		set_option(fd, IPPROTO_IP, IP_RECVERR, 1);
		set_buffers(fd);
	}
	err = bind_ipv4(fd, at, is_raw);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int bind_socket(int fd, struct sockaddr_in6 *at)
{
	socklen_t size = sizeof(*at);

	if (bind(fd, (struct sockaddr *)at, size) ||
	    getsockname(fd, (struct sockaddr *)at, &size))
		return -errno;
	return 0;
}

int sctp_path_open(struct sockaddr_in6 *at, bool is_v6_only, bool is_raw)
{
	int fd, err;

	if (is_raw)
		return open_ipv4(at, true);
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 && errno == EAFNOSUPPORT) /* the kernel has no IPv6 */
		return open_ipv4(at, false);
	if (fd < 0)
		return -errno;
	set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY,
		   is_v6_only && !is_ipv4(&at->sin6_addr));
	set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	set_option(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	set_option(fd, IPPROTO_IP, IP_RECVERR, 1);
	set_buffers(fd);
	err = bind_socket(fd, at);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int option_of(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	getsockopt(fd, SOL_SOCKET, name, &value, &size);
	return value;
}

bool sctp_path_is_ipv4(int fd)
{
	return option_of(fd, SO_DOMAIN) == AF_INET;
}

/* Replaces an address of IPv4 by the same address in the form ::ffff:a.b.c.d.
 */
static void widen_address(struct sockaddr_in6 *at)
{
	struct sockaddr_in v4;

	memcpy(&v4, at, sizeof(v4));
	*at = (struct sockaddr_in6){.sin6_family = AF_INET6,
				    .sin6_port = v4.sin_port};
	map_ipv4(&at->sin6_addr, &v4.sin_addr);
}

bool sctp_path_address(int fd, struct sockaddr_in6 *at)
{
	struct sockaddr_in6 bound = {.sin6_family = AF_UNSPEC};
	socklen_t size = sizeof(bound);

	if (getsockname(fd, (struct sockaddr *)&bound, &size))
		return false;
	*at = bound;
	if (bound.sin6_family != AF_INET)
		return true;
	widen_address(at);
	if (option_of(fd, SO_TYPE) == SOCK_RAW)
		at->sin6_port = 0; /* the kernel has stored IPPROTO_SCTP */
	return true;
}

void sctp_path_number(struct sctp_path *p)
{
	struct {
		struct in6_addr local, remote;
		uint32_t scope, socket;
		uint16_t port, zero[3];
	} all = {.local = p->local,
		 .remote = p->remote.sin6_addr,
		 .scope = p->remote.sin6_scope_id,
		 .socket = p->socket->key,
		 .port = p->remote.sin6_port};

	p->id = siphash(&key, &all, sizeof(all));
	p->id += !p->id; /* to libusrsctp, 0 is no address */
}

/* ---- sending ---- */

static bool hand_over(int fd, const struct msghdr *m)
{
	if (sendmsg(fd, m, MSG_DONTWAIT) >= 0)
		return true;
	errno = 0;
	return false;
}

/* Names the source address, p->local, in each message.  Otherwise, for a socket
 * that is bound to all addresses, the kernel would choose the source by the
 * route alone, but all packets of an association must come from the address
 * that the peer knows.  If p->local is 0.0.0.0, the kernel chooses. */
static bool send_ipv4(const struct sctp_path *p, const void *packet, size_t n)
{
	struct sockaddr_in to = narrow_address(&p->remote);
	struct iovec piece = {.iov_base = (void *)(uintptr_t)packet,
			      .iov_len = n};
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = {.bytes = {0}};
	struct msghdr m = {.msg_name = &to,
			   .msg_namelen = sizeof(to),
			   .msg_iov = &piece,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct in_pktinfo from = {.ipi_ifindex = 0};

	memcpy(&from.ipi_spec_dst, p->local.s6_addr + 12, 4);
	control.head = (struct cmsghdr){.cmsg_level = IPPROTO_IP,
					.cmsg_type = IP_PKTINFO,
					.cmsg_len = CMSG_LEN(sizeof(from))};
	memcpy(CMSG_DATA(&control.head), &from, sizeof(from));
	return hand_over(p->socket->fd, &m);
}

bool sctp_path_send(const struct sctp_path *p, const void *packet, size_t n)
{
	struct iovec piece = {.iov_base = (void *)(uintptr_t)packet,
			      .iov_len = n};
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = {.bytes = {0}};
	struct msghdr m = {.msg_name = (void *)(uintptr_t)&p->remote,
			   .msg_namelen = sizeof(p->remote),
			   .msg_iov = &piece,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct in6_pktinfo from = {.ipi6_addr = p->local};

	if (p->socket->is_ipv4)
		return send_ipv4(p, packet, n);
	control.head = (struct cmsghdr){.cmsg_level = IPPROTO_IPV6,
					.cmsg_type = IPV6_PKTINFO,
					.cmsg_len = CMSG_LEN(sizeof(from))};
	memcpy(CMSG_DATA(&control.head), &from, sizeof(from));
	if (IN6_IS_ADDR_UNSPECIFIED(&p->local))
		m.msg_controllen = 0;
	return hand_over(p->socket->fd, &m);
}

/* ---- receiving ---- */

/* Removes the IP header, which a raw socket of IPv4 receives too, and copies
 * the header's addresses into *p.  Returns the number of bytes that remain; 0:
 * the packet has no data, or the header is malformed. */
static ssize_t strip_ip(struct sctp_socket *s, uint8_t *packet, ssize_t n,
			struct sctp_path *p)
{
	ssize_t head = n > IP_BYTES ? (packet[0] & 15) * 4 : 0;

	if (head < IP_BYTES || head >= n)
		return 0;
	map_ipv4(&p->remote.sin6_addr, packet + 12);
	map_ipv4(&p->local, packet + 16);
	p->remote.sin6_family = AF_INET6;
	memmove(packet, packet + head, (size_t)(n - head));
	p->socket = s;
	sctp_path_number(p);
	return n - head;
}

static void note_local(struct msghdr *m, struct sctp_path *p)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct in6_pktinfo to;
		struct in_pktinfo to_ipv4;

		if (c->cmsg_level == IPPROTO_IPV6 &&
		    c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&to, CMSG_DATA(c), sizeof(to));
			p->local = to.ipi6_addr;
		} else if (c->cmsg_level == IPPROTO_IP &&
			   c->cmsg_type == IP_PKTINFO) {
			memcpy(&to_ipv4, CMSG_DATA(c), sizeof(to_ipv4));
			map_ipv4(&p->local, &to_ipv4.ipi_addr);
		}
	}
}

ssize_t sctp_path_receive(struct sctp_socket *s, void *packet, size_t room,
			  struct sctp_path *p)
{
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(NAMES_BYTES)];
	} control;
	struct iovec piece = {.iov_base = packet, .iov_len = room};
	struct msghdr m = {.msg_name = &p->remote,
			   .msg_namelen = sizeof(p->remote),
			   .msg_iov = &piece,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n;

	memset(p, 0, sizeof(*p));
	p->socket = s;
	p->local = s->at.sin6_addr;
	n = recvmsg(s->fd, &m, MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (s->is_raw)
		return strip_ip(s, packet, n, p);
	if (s->is_ipv4)
		widen_address(&p->remote);
	note_local(&m, p);
	sctp_path_number(p);
	return n;
}

/* Does the error say that the peer's port has no socket? */
static bool is_refusal(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct sock_extended_err e;

		if (!(c->cmsg_level == IPPROTO_IP &&
		      c->cmsg_type == IP_RECVERR) &&
		    !(c->cmsg_level == IPPROTO_IPV6 &&
		      c->cmsg_type == IPV6_RECVERR))
			continue;
		memcpy(&e, CMSG_DATA(c), sizeof(e));
		if (e.ee_errno == ECONNREFUSED)
			return true;
	}
	return false;
}

ssize_t sctp_path_refused(struct sctp_socket *s, uint8_t *packet, size_t room,
			  struct sctp_path *p)
{
	union {
		struct cmsghdr head;
		uint8_t bytes[512];
	} control;
	struct iovec piece = {.iov_base = packet, .iov_len = room};
	struct msghdr m = {.msg_name = &p->remote,
			   .msg_namelen = sizeof(p->remote),
			   .msg_iov = &piece,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n;

	memset(p, 0, sizeof(*p));
	p->socket = s;
	n = recvmsg(s->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (s->is_ipv4)
		widen_address(&p->remote);
	return is_refusal(&m) ? n : 0;
}

uint32_t sctp_path_mtu(const struct sctp_path *p)
{
	bool v4 = is_ipv4(&p->remote.sin6_addr);
	struct sockaddr_in6 to = p->remote;
	struct sockaddr_in to_ipv4;
	int mtu = MTU_MIN, over = v4 ? IP_BYTES : IPV6_BYTES;
	socklen_t size = sizeof(mtu);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	to.sin6_port = htons(1); /* any port: connect(2) of UDP sends nothing */
	to_ipv4 = narrow_address(&to);
	if (v4)
		memcpy(&to, &to_ipv4, sizeof(to_ipv4));
	if (fd >= 0) {
		if (connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
		    getsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6,
			       v4 ? IP_MTU : IPV6_MTU, &mtu, &size))
			mtu = MTU_MIN;
		close(fd);
	}
	mtu = mtu < MTU_MIN ? MTU_MIN : mtu > MTU_MAX ? MTU_MAX : mtu;
	over += SCTP_BYTES;
	if (!p->socket->is_raw)
		over += UDP_BYTES;
	return (uint32_t)(mtu - over) & ~3u;
}
