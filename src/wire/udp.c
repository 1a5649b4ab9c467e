/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/udp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/check.h"
#include "wire/member.h"
#include "wire/relay.h"

#define SOCKET_BYTES (8 << 20) /* asked for; the kernel caps it */

#define JOINED_BYTES 65536 /* the longest datagram, so of GRO */
#define JOINED_BATCH 8	   /* fewer, to stay in the cache */
#define RX_BYTES     (UDP_BATCH * UDP_DATAGRAM_BYTES)

_Static_assert(JOINED_BATCH *JOINED_BYTES == RX_BYTES, "one area for both");

union control {
	struct cmsghdr align;
	uint8_t bytes[256];
};

struct udp_rings {
	struct mmsghdr rx[UDP_BATCH], tx[UDP_BATCH];
	struct iovec rx_iov[UDP_BATCH], tx_iov[UDP_BATCH];
	struct sockaddr_in6 rx_name[UDP_BATCH], tx_name[UDP_BATCH];
	union control rx_control[UDP_BATCH], tx_control[UDP_BATCH];
	unsigned rx_batch;
	uint8_t rx_bytes[RX_BYTES];
};

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof value) ? -errno : 0;
}

/* Dual-stack where there is IPv6; -errno. */
static int open_socket(bool *v4_only)
{
	int type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, err;
	int fd = socket(AF_INET6, type, 0);

	*v4_only = fd < 0 && errno == EAFNOSUPPORT;
	if (*v4_only)
		fd = socket(AF_INET, type, 0);
	if (fd < 0)
		return -errno;
	err = *v4_only ? 0 : set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* sin and sin6 have family and port in the same places. */
static int bind_port(uint16_t port, bool *v4_only)
{
	struct sockaddr_in6 any = {.sin6_port = htons(port)};
	int fd = open_socket(v4_only), err;

	if (fd < 0)
		return fd;
	any.sin6_family = *v4_only ? AF_INET : AF_INET6;
	if (!bind(fd, (struct sockaddr *)(void *)&any, sizeof any))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int udp_bind(uint16_t port)
{
	bool v4_only;

	return bind_port(port, &v4_only);
}

/* What sending rests on.  IP_* options reach the IPv4 traffic of a dual-stack
 * socket. */
static int set_tx_options(int fd, bool v4_only)
{
	int err = set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);

	if (!err && !v4_only)
		err = set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
			      IPV6_PMTUDISC_PROBE);
	/* A smaller buffer works, slower: not an error. */
	if (set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BYTES))
		set_int(fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BYTES);
	return err;
}

/* Every option that the data path rests on. */
static int set_options(int fd, bool v4_only)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_IPV6, IPV6_RECVPKTINFO, 1},
		{IPPROTO_IPV6, IPV6_RECVTCLASS, 1},
		{IPPROTO_IP, IP_PKTINFO, 1},
		{IPPROTO_IP, IP_RECVTOS, 1},
	};
	int err = set_tx_options(fd, v4_only);

	for (size_t i = 0; !err && i < sizeof options / sizeof *options; i++)
		if (!v4_only || options[i].level != IPPROTO_IPV6)
			err = set_int(fd, options[i].level, options[i].name,
				      options[i].value);
	if (err)
		return err;
	/* Groups that others in the namespace have joined are not ours.  An old
	 * kernel without the second option gives us more than we want. */
	set_int(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	/* Hardware and the kernel's rxe send no checksum over IPv6 either. */
	if (!v4_only)
		set_int(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	/* A smaller buffer works, slower: not an error. */
	if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BYTES))
		set_int(fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BYTES);
	return 0;
}

int udp_bind_sender(uint16_t port)
{
	bool v4_only;
	int fd = bind_port(port, &v4_only), err;

	err = fd < 0 ? fd : set_tx_options(fd, v4_only);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

static void init_rings(struct udp_rings *r, bool gro)
{
	size_t step = gro ? JOINED_BYTES : UDP_DATAGRAM_BYTES;

	r->rx_batch = gro ? JOINED_BATCH : UDP_BATCH;
	for (size_t i = 0; i < r->rx_batch; i++) {
		r->rx_iov[i].iov_base = r->rx_bytes + i * step;
		r->rx_iov[i].iov_len = step;
		r->rx[i].msg_hdr.msg_iov = &r->rx_iov[i];
		r->rx[i].msg_hdr.msg_iovlen = 1;
		r->rx[i].msg_hdr.msg_name = &r->rx_name[i];
		r->rx[i].msg_hdr.msg_control = &r->rx_control[i];
	}
	for (size_t i = 0; i < UDP_BATCH; i++) {
		r->tx[i].msg_hdr.msg_iov = &r->tx_iov[i];
		r->tx[i].msg_hdr.msg_iovlen = 1;
		r->tx[i].msg_hdr.msg_name = &r->tx_name[i];
		r->tx[i].msg_hdr.msg_control = &r->tx_control[i];
	}
}

/* Old kernels and gVisor have neither: then it goes packet by packet. */
static struct udp_offload probe(int fd, struct udp_offload allowed)
{
	return (struct udp_offload){
		.gso = allowed.gso && !set_int(fd, SOL_UDP, UDP_SEGMENT, 0),
		.gro = !set_int(fd, SOL_UDP, UDP_GRO, allowed.gro) &&
		       allowed.gro,
	};
}

/* What fd is, and what sends, from what port. */
static int look(struct udp *u, int fd, uint16_t *port)
{
	struct sockaddr_in6 name = {0};
	socklen_t len = sizeof(int);
	int domain = AF_INET6;

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	u->fd = u->tx_fd = fd;
	u->v4_only = domain == AF_INET;
	u->is_relayed = domain == AF_UNIX;
	*port = 4791;
	if (!u->is_relayed)
		return 0;
	u->tx_fd = udp_bind(0);
	if (u->tx_fd < 0)
		return u->tx_fd;
	len = sizeof name;
	getsockname(u->tx_fd, (struct sockaddr *)(void *)&name, &len);
	u->v4_only = name.sin6_family == AF_INET;
	*port = ntohs(name.sin6_port);
	return 0;
}

int udp_init(struct udp *u, int fd, struct udp_offload allowed, bool one_port)
{
	uint16_t port;
	int err;

	memset(u, 0, sizeof *u);
	err = look(u, fd, &port);
	if (err)
		return err;
	u->full_fd = u->tx_fd;
	err = set_options(u->tx_fd, u->v4_only);
	if (!err) {
		u->has = probe(u->tx_fd, allowed);
		u->has.gro &= !u->is_relayed;
		u->rings = calloc(1, sizeof *u->rings);
		err = u->rings ? sport_init(&u->sports, port, one_port)
			       : -ENOMEM;
	}
	if (!err) {
		init_rings(u->rings, u->has.gro);
		return 0;
	}
	free(u->rings);
	if (u->is_relayed)
		close(u->tx_fd);
	return err;
}

uint32_t udp_buffer_bytes(const struct udp *u)
{
	socklen_t len = sizeof(int);
	int bytes = 0;

	if (getsockopt(u->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len))
		return 0;
	return (uint32_t)bytes;
}

void udp_fini(struct udp *u)
{
	if (u->is_relayed)
		close(u->tx_fd);
	close(u->fd);
	sport_fini(&u->sports);
	free(u->rings);
}

/* Join or leave; ifindex 0: leave on any. */
int udp_join(struct udp *u, const uint8_t ip[16], uint32_t ifindex)
{
	return member_join(u->tx_fd, ip, ifindex);
}

void udp_leave(struct udp *u, const uint8_t ip[16])
{
	member_leave(u->tx_fd, ip);
}

static void put_mapped(uint8_t ip[16], const struct in_addr *a)
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, a, 4);
}

static void read_name(const struct sockaddr_in6 *name, struct inaddr *from)
{
	struct sockaddr_in four;

	from->port = ntohs(name->sin6_port);
	if (name->sin6_family == AF_INET6) {
		memcpy(from->ip, &name->sin6_addr, 16);
		return;
	}
	memcpy(&four, name, sizeof four);
	put_mapped(from->ip, &four.sin_addr);
}

static void read_control(struct msghdr *m, struct udp_dgram *d)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int level = c->cmsg_level, type = c->cmsg_type;

		if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof info);
			memcpy(d->to.ip, &info.ipi6_addr, 16);
			d->ifindex = info.ipi6_ifindex;
		} else if (level == IPPROTO_IP && type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof info);
			put_mapped(d->to.ip, &info.ipi_addr);
			d->ifindex = (uint32_t)info.ipi_ifindex;
		} else if (level == IPPROTO_IP && type == IP_TOS) {
			d->tos = *CMSG_DATA(c);
		} else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
			int tclass;

			memcpy(&tclass, CMSG_DATA(c), sizeof tclass);
			d->tos = (uint8_t)tclass;
		} else if (level == SOL_UDP && type == UDP_GRO) {
			int segment;

			memcpy(&segment, CMSG_DATA(c), sizeof segment);
			d->segment = (size_t)segment;
		}
	}
}

/* Nobody hands anything on any more: an end that has closed is always ready. */
static int hang_up(struct udp *u)
{
	int silent = eventfd(0, EFD_CLOEXEC);

	if (silent >= 0) {
		dup3(silent, u->fd, O_CLOEXEC);
		close(silent);
	}
	return 0;
}

/*
 * One datagram, or after one a batch: who waits for an answer has it sooner
 * if the socket is not asked for more, and a stream is read by the batch.  The
 * bare calls: a thread that is cancelled must not end here, where it holds the
 * lane.
 */
static int read_some(struct udp *u, unsigned most)
{
	struct udp_rings *r = u->rings;
	ssize_t n;

	for (unsigned i = 0; i < most; i++) {
		r->rx[i].msg_hdr.msg_namelen = sizeof r->rx_name[i];
		r->rx[i].msg_hdr.msg_controllen = sizeof r->rx_control[i];
	}
	do
		n = most > 1 ? syscall(SYS_recvmmsg, u->fd, r->rx, most,
				       MSG_DONTWAIT, NULL)
			     : syscall(SYS_recvmsg, u->fd, &r->rx[0].msg_hdr,
				       MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (most > 1 || n < 0)
		return n > 0 ? (int)n : 0;
	r->rx[0].msg_len = (unsigned)n;
	return 1;
}

size_t udp_receive(struct udp *u, struct udp_dgram *got)
{
	struct udp_rings *r = u->rings;
	unsigned most = u->is_empty ? 1 : r->rx_batch;
	int n = read_some(u, most);
	size_t kept = 0;

	if (u->is_relayed && n > 0 && !r->rx[0].msg_len)
		n = hang_up(u);
	u->is_empty = n == 0;
	u->is_drained = n < (int)most;
	u->is_behind = most > 1 && n == (int)most;
	for (int i = 0; i < n; i++) {
		struct msghdr *m = &r->rx[i].msg_hdr;
		struct udp_dgram *d = &got[kept];

		if (m->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
			u->truncated++;
			continue;
		}
		memset(d, 0, sizeof *d);
		d->to.port = 4791;
		if (u->is_relayed) {
			kept += relay_parse(r->rx_iov[i].iov_base,
					    r->rx[i].msg_len, d);
			continue;
		}
		read_name(&r->rx_name[i], &d->from);
		d->bytes = r->rx_iov[i].iov_base;
		d->len = d->segment = r->rx[i].msg_len;
		read_control(m, d);
		kept++;
	}
	return kept;
}

static uint8_t *put_cmsg(struct msghdr *m, struct cmsghdr **c, int level,
			 int type, size_t len)
{
	(*c)->cmsg_level = level;
	(*c)->cmsg_type = type;
	(*c)->cmsg_len = CMSG_LEN(len);
	m->msg_controllen += CMSG_SPACE(len);
	return CMSG_DATA(*c);
}

/* The next header's place, computed: CMSG_NXTHDR wants it zeroed. */
static struct cmsghdr *after(struct cmsghdr *c, size_t len)
{
	return (struct cmsghdr *)(void *)((uint8_t *)c + CMSG_SPACE(len));
}

/* Source address and traffic class of one datagram. */
static void write_control(struct msghdr *m, union control *buf,
			  const struct udp_dgram *d)
{
	bool v4 = inaddr_is_v4(d->from.ip);
	struct cmsghdr *c = &buf->align;
	size_t info_len =
		v4 ? sizeof(struct in_pktinfo) : sizeof(struct in6_pktinfo);
	int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	int tos = d->tos, ttl = d->ttl;
	uint16_t segment = (uint16_t)d->segment;

	m->msg_controllen = 0;
	if (v4) {
		struct in_pktinfo info = {.ipi_ifindex = (int)d->ifindex};

		memcpy(&info.ipi_spec_dst, d->from.ip + 12, 4);
		memcpy(put_cmsg(m, &c, level, IP_PKTINFO, info_len), &info,
		       sizeof info);
	} else {
		struct in6_pktinfo info = {.ipi6_ifindex = d->ifindex};

		memcpy(&info.ipi6_addr, d->from.ip, 16);
		memcpy(put_cmsg(m, &c, level, IPV6_PKTINFO, info_len), &info,
		       sizeof info);
	}
	c = after(c, info_len);
	memcpy(put_cmsg(m, &c, level, v4 ? IP_TOS : IPV6_TCLASS, sizeof tos),
	       &tos, sizeof tos);
	c = after(c, sizeof tos);
	if (ttl) {
		memcpy(put_cmsg(m, &c, level, v4 ? IP_TTL : IPV6_HOPLIMIT,
				sizeof ttl),
		       &ttl, sizeof ttl);
		c = after(c, sizeof ttl);
	}
	if (d->segment < d->len)
		memcpy(put_cmsg(m, &c, SOL_UDP, UDP_SEGMENT, sizeof segment),
		       &segment, sizeof segment);
}

static socklen_t write_name(const struct udp *u, const struct udp_dgram *d,
			    struct sockaddr_in6 *to)
{
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_port = htons(d->to.port)};

	memset(to, 0, sizeof *to);
	if (u->v4_only && inaddr_is_v4(d->to.ip)) {
		memcpy(&four.sin_addr, d->to.ip + 12, 4);
		memcpy(to, &four, sizeof four);
		return sizeof four;
	}
	to->sin6_family = AF_INET6;
	to->sin6_port = htons(d->to.port);
	memcpy(&to->sin6_addr, d->to.ip, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&to->sin6_addr))
		to->sin6_scope_id = d->ifindex;
	return sizeof *to;
}

static void fill_tx(const struct udp *u, size_t i, const struct udp_dgram *d)
{
	struct udp_rings *r = u->rings;

	r->tx[i].msg_hdr.msg_namelen = write_name(u, d, &r->tx_name[i]);
	r->tx_iov[i].iov_base = (void *)(uintptr_t)d->bytes;
	r->tx_iov[i].iov_len = d->len;
	write_control(&r->tx[i].msg_hdr, &r->tx_control[i], d);
}

/* What the kernel would not cut up, for the interface or for its length. */
static void send_apart(struct udp *u, int fd, const struct udp_dgram *d)
{
	struct udp_rings *r = u->rings;
	struct udp_dgram one = *d;

	for (size_t off = 0; off < d->len; off += d->segment) {
		one.bytes = d->bytes + off;
		one.len = bits_min_u64(d->segment, d->len - off);
		one.segment = one.len;
		fill_tx(u, 0, &one);
		if (syscall(SYS_sendmsg, fd, &r->tx[0].msg_hdr,
			    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			u->refused++;
	}
}

/* Those that the kernel took, in one call. */
static int send_some(int fd, struct mmsghdr *first, size_t n)
{
	int k;

	do
		k = n > 1 ? (int)syscall(SYS_sendmmsg, fd, first, (unsigned)n,
					 MSG_DONTWAIT | MSG_NOSIGNAL)
			  : (int)syscall(SYS_sendmsg, fd, &first->msg_hdr,
					 MSG_DONTWAIT | MSG_NOSIGNAL);
	while (k < 0 && errno == EINTR);
	return n > 1 || k < 0 ? k : 1;
}

/* The socket that a datagram leaves by. */
static int socket_of(const struct udp *u, const struct udp_dgram *d)
{
	int fd = sport_fd(&u->sports, d->from.port);

	return fd < 0 ? u->tx_fd : fd;
}

size_t udp_send(struct udp *u, const struct udp_dgram *send, size_t n)
{
	size_t sent = 0, end;

	CHECK(n <= UDP_BATCH);
	for (size_t i = 0; i < n; i++)
		fill_tx(u, i, &send[i]);
	while (sent < n) {
		int fd = socket_of(u, &send[sent]), k;

		for (end = sent + 1;
		     end < n && send[end].from.port == send[sent].from.port;)
			end++;
		k = send_some(fd, u->rings->tx + sent, end - sent);
		if (k > 0) {
			sent += (size_t)k;
			continue;
		}
		if (errno == EAGAIN || errno == ENOBUFS) {
			u->full_fd = fd;
			break;
		}
		/* EMSGSIZE, no route, a firewall, or an old ICMP error. */
		if (send[sent].segment < send[sent].len)
			send_apart(u, fd, &send[sent]);
		else
			u->refused++;
		sent++;
	}
	return sent;
}
