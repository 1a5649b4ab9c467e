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
#define SCTP_BYTES  12 /* common header; libusrsctp might not count it */
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

/* Opens a raw socket of IPv4, and refuses an address of IPv6: unlike a UDP
 * socket, a raw socket of IPv6 receives no packets of IPv4. */
static int open_raw(const struct sockaddr_in6 *at)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	int fd;

	if (!is_ipv4(&at->sin6_addr))
		return -EAFNOSUPPORT;
	memcpy(&v4.sin_addr, at->sin6_addr.s6_addr + 12, 4);
	fd = socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    IPPROTO_SCTP);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&v4, sizeof(v4))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd < 0 ? -errno : fd;
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
		return open_raw(at);
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY,
		   is_v6_only && !is_ipv4(&at->sin6_addr));
	set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	set_option(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	set_option(fd, IPPROTO_IP, IP_RECVERR, 1);
	set_option(fd, SOL_SOCKET, SO_RCVBUF, BUFFER);
	set_option(fd, SOL_SOCKET, SO_SNDBUF, BUFFER);
	err = bind_socket(fd, at);
	if (!err)
		return fd;
	close(fd);
	return err;
}

bool sctp_path_address(int fd, struct sockaddr_in6 *at)
{
	struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
	socklen_t size = sizeof(bound);
	struct sockaddr_in v4;

	if (getsockname(fd, (struct sockaddr *)&bound, &size))
		return false;
	memcpy(at, &bound, sizeof(*at));
	if (bound.ss_family != AF_INET)
		return true;
	memcpy(&v4, &bound, sizeof(v4));
	*at = (struct sockaddr_in6){.sin6_family = AF_INET6};
	map_ipv4(&at->sin6_addr, &v4.sin_addr);
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

/* Names the source address in each message: for a socket that is bound to all
 * addresses, the kernel would choose the source by the route alone, but the
 * packets of an association must come from the address that the peer has
 * called. */
static bool send_raw(const struct sctp_path *p, const void *packet, size_t n)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
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

	memcpy(&to.sin_addr, p->remote.sin6_addr.s6_addr + 12, 4);
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

	if (p->socket->is_raw)
		return send_raw(p, packet, n);
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
 * the packet is too short. */
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

		if (c->cmsg_level != IPPROTO_IPV6 ||
		    c->cmsg_type != IPV6_PKTINFO)
			continue;
		memcpy(&to, CMSG_DATA(c), sizeof(to));
		p->local = to.ipi6_addr;
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
	return is_refusal(&m) ? n : 0;
}

uint32_t sctp_path_mtu(const struct sctp_path *p)
{
	bool v4 = is_ipv4(&p->remote.sin6_addr);
	struct sockaddr_in6 to = p->remote;
	int mtu = MTU_MIN, over = v4 ? IP_BYTES : IPV6_BYTES;
	socklen_t size = sizeof(mtu);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	to.sin6_port = htons(1); /* any port: connect(2) of UDP sends nothing */
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
