/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/udp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/check.h"
#include "wire/bind.h"
#include "wire/member.h"
#include "wire/relay.h"
#include "util/fd_identity.h"

#define JOINED_BYTES 65536 /* the longest datagram that GRO makes */
#define JOINED_BATCH 8	   /* few, so that the buffers stay in the cache */
#define RX_BYTES     (UDP_BATCH * UDP_DATAGRAM_BYTES)

_Static_assert(JOINED_BATCH *JOINED_BYTES == RX_BYTES,
	       "rx_bytes has the bytes of a batch with GRO and without");

struct udp_rings {
	struct mmsghdr rx[UDP_BATCH], tx[UDP_BATCH];
	struct iovec rx_iov[UDP_BATCH], tx_iov[UDP_BATCH];
	struct sender_head rx_heads[UDP_BATCH], tx_heads[UDP_BATCH];
	unsigned rx_batch;
	uint8_t rx_bytes[RX_BYTES];
};

/* Sets every socket option that the data path needs. */
static int set_options(struct udp_socket *u)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_IPV6, IPV6_RECVPKTINFO, 1},
		{IPPROTO_IPV6, IPV6_RECVTCLASS, 1},
		{IPPROTO_IP, IP_PKTINFO, 1},
		{IPPROTO_IP, IP_RECVTOS, 1},
	};
	bool v4_only = u->v4_only;
	int fd = u->tx.fd, err = sender_init(&u->tx, fd, v4_only);

	for (size_t i = 0; !err && i < sizeof(options) / sizeof(*options); i++)
		if (!v4_only || options[i].level != IPPROTO_IPV6)
			err = bind_set(fd, options[i].level, options[i].name,
				       options[i].value);
	if (err)
		return err;
	/* Receive no datagrams of groups that only other sockets have joined.
	 * A kernel without IPV6_MULTICAST_ALL (before Linux 4.20) delivers such
	 * datagrams of IPv6 groups nevertheless. */
	bind_set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	bind_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	/* Accept UDP checksum 0 over IPv6: hardware and the kernel's rxe send
	 * no checksum. */
	if (!v4_only)
		bind_set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	bind_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
	return 0;
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
		r->rx[i].msg_hdr.msg_name = &r->rx_heads[i].name;
		r->rx[i].msg_hdr.msg_control = &r->rx_heads[i].control;
	}
	for (size_t i = 0; i < UDP_BATCH; i++) {
		r->tx[i].msg_hdr.msg_iov = &r->tx_iov[i];
		r->tx[i].msg_hdr.msg_iovlen = 1;
	}
}

/* Returns those of the allowed offloads that the kernel has.  Old kernels and
 * gVisor have none; each packet is then sent and received as one datagram. */
static struct udp_offload probe_offloads(int fd, struct udp_offload allowed)
{
	return (struct udp_offload){
		.gso = allowed.gso && !bind_set(fd, SOL_UDP, UDP_SEGMENT, 0),
		.gro = allowed.gro && !bind_set(fd, SOL_UDP, UDP_GRO, 0),
	};
}

void udp_join_datagrams(struct udp_socket *u)
{
	u->joins = u->has.gro && !bind_set(u->fd, SOL_UDP, UDP_GRO, 1);
}

int udp_unbound(void)
{
	int type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = socket(AF_INET6, type, 0);

	if (fd < 0)
		fd = socket(AF_INET, type, 0);
	return fd < 0 ? -errno : fd;
}

int udp_bind(uint16_t port)
{
	bool is_v4 = false;

	return bind_udp(port, &is_v4);
}

/* Finds out whether fd is a UDP socket or a relay.  Sets u->fd; u->tx.fd, the
 * socket of the main sender; *port, the port of that socket; and, for a relay,
 * u->silent_fd.  Returns 0 or -errno. */
static int find_main_sender(struct udp_socket *u, int fd, uint16_t *port)
{
	struct sockaddr_in6 name = {0};
	socklen_t len = sizeof(int);
	int domain = AF_INET6;

	u->fd = u->tx.fd = fd_identity_note(fd);
	getsockopt(u->fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	u->v4_only = domain == AF_INET;
	u->is_relayed = domain == AF_UNIX;
	*port = 4791;
	if (!u->is_relayed)
		return 0;
	u->tx.fd = fd_identity_note(udp_bind(0));
	if (u->tx.fd < 0)
		return u->tx.fd;
	u->silent_fd = fd_identity_note(eventfd(0, EFD_CLOEXEC));
	if (u->silent_fd < 0)
		return -errno;
	len = sizeof(name);
	getsockname(u->tx.fd, (struct sockaddr *)(void *)&name, &len);
	u->v4_only = name.sin6_family == AF_INET;
	*port = ntohs(name.sin6_port);
	return 0;
}

static void close_files(struct udp_socket *u)
{
	if (u->is_relayed)
		fd_identity_close(u->tx.fd);
	fd_identity_close(u->silent_fd);
	fd_identity_close(u->fd);
}

int udp_init(struct udp_socket *u, int fd, struct udp_offload allowed,
	     bool one_port)
{
	uint16_t port;
	int err;

	memset(u, 0, sizeof(*u));
	u->silent_fd = -1;
	err = find_main_sender(u, fd, &port);
	u->full_fd = u->tx.fd;
	if (!err)
		err = set_options(u);
	if (!err) {
		u->has = probe_offloads(u->tx.fd, allowed);
		u->has.gro &= !u->is_relayed;
		u->rings = calloc(1, sizeof(*u->rings));
		err = u->rings ? sport_init(&u->sports, port, one_port)
			       : -ENOMEM;
	}
	if (!err) {
		init_rings(u->rings, u->has.gro);
		return 0;
	}
	free(u->rings);
	close_files(u);
	return err;
}

uint32_t udp_buffer_bytes(const struct udp_socket *u)
{
	socklen_t len = sizeof(int);
	int bytes = 0;

	if (getsockopt(u->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len))
		return 0;
	return (uint32_t)bytes;
}

bool udp_is_ours(struct udp_socket *u)
{
	bool sends_apart = u->tx.fd != u->fd;

	if (!fd_identity_holds(u->fd) ||
	    (sends_apart && !fd_identity_holds(u->tx.fd)))
		shared_store(&u->is_lost, true);
	return !shared_load(&u->is_lost);
}

void udp_check_senders(struct udp_socket *u)
{
	if (!sport_check_next(&u->sports))
		shared_store(&u->is_lost, true);
}

void udp_fini(struct udp_socket *u)
{
	close_files(u);
	sport_fini(&u->sports);
	free(u->rings);
}

int udp_join(struct udp_socket *u, const uint8_t ip[16], uint32_t ifindex)
{
	return member_join(u->tx.fd, ip, ifindex);
}

void udp_leave(struct udp_socket *u, const uint8_t ip[16])
{
	member_leave(u->tx.fd, ip);
}

static void read_name(const struct sockaddr_in6 *name, struct inaddr *from)
{
	struct sockaddr_in four;

	from->port = ntohs(name->sin6_port);
	if (name->sin6_family == AF_INET6) {
		memcpy(from->ip, &name->sin6_addr, 16);
		return;
	}
	memcpy(&four, name, sizeof(four));
	inaddr_map_v4(from->ip, &four.sin_addr);
}

static void read_control(struct msghdr *m, struct udp_dgram *d)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int level = c->cmsg_level, type = c->cmsg_type;

		if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(d->to.ip, &info.ipi6_addr, 16);
			d->ifindex = info.ipi6_ifindex;
		} else if (level == IPPROTO_IP && type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			inaddr_map_v4(d->to.ip, &info.ipi_addr);
			d->ifindex = (uint32_t)info.ipi_ifindex;
		} else if (level == IPPROTO_IP && type == IP_TOS) {
			d->tos = *CMSG_DATA(c);
		} else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
			int tclass;

			memcpy(&tclass, CMSG_DATA(c), sizeof(tclass));
			d->tos = (uint8_t)tclass;
		} else if (level == SOL_UDP && type == UDP_GRO) {
			int segment;

			memcpy(&segment, CMSG_DATA(c), sizeof(segment));
			d->segment = (size_t)segment;
		}
	}
}

/* Gives u->fd the file of fd, which stays open.  If the kernel refuses that, u
 * is lost: the program has lowered RLIMIT_NOFILE below u->fd (EBADF), or has
 * closed u->fd and is opening a file at this number (EBUSY). */
static void put_file(struct udp_socket *u, int fd)
{
	if (dup3(fd, u->fd, O_CLOEXEC) < 0)
		shared_store(&u->is_lost, true);
	else
		fd_identity_mark(u->fd);
	/* The release store comes after dup3: a thread that loads the new
	 * number adds the new file to its epoll set.  Otherwise the thread
	 * could add the old file, and sleep while datagrams come to the new
	 * one. */
	shared_store(&u->hang_ups, shared_own(&u->hang_ups) + 1);
}

/*
 * Called when the broker has closed its end of the relay.  poll would always
 * report such a relay as readable, so an eventfd that is never readable
 * replaces the relay.  dup3 needs no free descriptor.  The thread must not be
 * cancelled here, since it holds the progress lock.  Returns 0, the number of
 * datagrams that were received.
 */
static int replace_relay(struct udp_socket *u)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (fd_identity_holds(u->silent_fd))
		put_file(u, u->silent_fd);
	else
		shared_store(&u->is_lost, true);
	pthread_setcancelstate(cancel, NULL);
	return 0;
}

void udp_take_relay(struct udp_socket *u, int fd)
{
	if (fd < 0)
		return;
	if (u->is_relayed && udp_is_ours(u))
		put_file(u, fd);
	close(fd);
}

/*
 * Receives up to `most` datagrams and returns their number.  recvmsg receives a
 * single datagram faster, for a program that waits for an answer; recvmmsg
 * receives a stream in batches.  The system calls are made directly, because
 * libc's functions are cancellation points, and a thread must not end while it
 * holds the progress lock.
 */
static int read_some(struct udp_socket *u, unsigned most)
{
	struct udp_rings *r = u->rings;
	ssize_t n;

	for (unsigned i = 0; i < most; i++) {
		r->rx[i].msg_hdr.msg_namelen = sizeof(r->rx_heads[i].name);
		/* The control data of a relay's message could only be
		 * descriptors, which this process does not want. */
		r->rx[i].msg_hdr.msg_controllen =
			u->is_relayed ? 0 : sizeof(r->rx_heads[i].control);
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

size_t udp_receive(struct udp_socket *u, struct udp_dgram *got)
{
	struct udp_rings *r = u->rings;
	unsigned most = u->is_empty ? 1 : r->rx_batch;
	int n = shared_load(&u->is_lost) ? 0 : read_some(u, most);
	size_t kept = 0;

	if (u->is_relayed && n > 0 && !r->rx[0].msg_len)
		n = replace_relay(u);
	u->read = (size_t)n;
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
		memset(d, 0, sizeof(*d));
		d->to.port = 4791;
		if (u->is_relayed) {
			kept += relay_parse(r->rx_iov[i].iov_base,
					    r->rx[i].msg_len, d);
			continue;
		}
		read_name(&r->rx_heads[i].name, &d->from);
		d->bytes = r->rx_iov[i].iov_base;
		d->len = d->segment = r->rx[i].msg_len;
		read_control(m, d);
		kept++;
	}
	return kept;
}

/* Returns the sender of d. */
static struct sender *sender_of(struct udp_socket *u, const struct udp_dgram *d)
{
	struct sender *s = sport_sender(&u->sports, d->from.port);

	return s ? s : &u->tx;
}

static void fill_tx(struct udp_socket *u, size_t i, const struct udp_dgram *d)
{
	struct udp_rings *r = u->rings;

	r->tx_iov[i].iov_base = (void *)(uintptr_t)d->bytes;
	r->tx_iov[i].iov_len = d->len;
	sender_address(sender_of(u, d), &r->tx[i].msg_hdr, &r->tx_heads[i], d);
}

/* Notes that d was dropped because of the error `err`. */
static void note_refusal(struct udp_socket *u, struct udp_dgram *d, int err)
{
	d->err = err;
	u->refused++;
}

/* Sends the segments of d one by one, after the kernel has refused to segment d
 * because of the interface or the length. */
static void send_apart(struct udp_socket *u, int fd, struct udp_dgram *d)
{
	struct udp_rings *r = u->rings;
	struct udp_dgram one = *d;

	for (size_t off = 0; off < d->len; off += d->segment) {
		one.bytes = d->bytes + off;
		one.len = bits_min_u64(d->segment, d->len - off);
		one.segment = one.len;
		u->seal(&d->from, &d->to, (uint8_t *)(uintptr_t)one.bytes,
			one.len);
		fill_tx(u, 0, &one);
		if (syscall(SYS_sendmsg, fd, &r->tx[0].msg_hdr,
			    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			note_refusal(u, d, errno);
	}
}

/* Sends n messages in one call; returns the number sent, or -1 with errno. */
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

/* Does errno say that a later send may succeed? */
static bool is_for_lack_of_room(void)
{
	return errno == EAGAIN || errno == ENOBUFS;
}

/* Sends n messages by one socket; returns the number sent, or 0 with errno. */
static size_t send_group(struct udp_socket *u, const struct sender *s,
			 size_t first, size_t n)
{
	int k = send_some(s->fd, u->rings->tx + first, n);

	/* A connected socket reports the error of an earlier datagram once, and
	 * sends nothing then.  The second call sends the messages. */
	if (k <= 0 && s->is_connected && !is_for_lack_of_room())
		k = send_some(s->fd, u->rings->tx + first, n);
	return k > 0 ? (size_t)k : 0;
}

/* Fills the messages of the datagrams from `first` on that one call can send.
 * All of them have the same sender, ToS and TTL: the sender may set the ToS and
 * the TTL of a datagram as defaults of its socket (wire/sender.h), and these
 * defaults apply to the whole call.  Returns the index after the last of these
 * datagrams. */
static size_t fill_group(struct udp_socket *u, const struct udp_dgram *send,
			 size_t first, size_t n)
{
	const struct udp_dgram *d = &send[first];
	size_t end = first;

	do
		fill_tx(u, end, &send[end]);
	while (++end < n && send[end].from.port == d->from.port &&
	       send[end].tos == d->tos && send[end].ttl == d->ttl);
	return end;
}

/* Drops d, which the kernel has refused with `err`: the datagram is too long,
 * or an address, a route or a firewall forbids it.  Segments may pass alone. */
static void take_refusal(struct udp_socket *u, int fd, struct udp_dgram *d,
			 int err)
{
	if (d->segment < d->len)
		send_apart(u, fd, d);
	else
		note_refusal(u, d, err);
}

size_t udp_send(struct udp_socket *u, struct udp_dgram *send, size_t n)
{
	bool is_lost = shared_load(&u->is_lost);
	size_t sent = 0, filled = 0, k;

	CHECK(n <= UDP_BATCH);
	for (size_t i = 0; i < n; i++) {
		send[i].err = 0;
		if (is_lost)
			note_refusal(u, &send[i], EBADF);
	}
	while (!is_lost && sent < n) {
		struct sender *s = sender_of(u, &send[sent]);

		if (sent == filled)
			filled = fill_group(u, send, sent, n);
		k = send_group(u, s, sent, filled - sent);
		if (!k && is_for_lack_of_room()) {
			u->full_fd = s->fd;
			return sent;
		}
		if (!k)
			take_refusal(u, s->fd, &send[sent], errno);
		sent += k ? k : 1;
	}
	return n;
}
