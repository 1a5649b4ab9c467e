/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/sender.h"

#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "wire/bind.h"
#include "util/fd_identity.h"

#define USUAL_TTL 64
/* The limit of sender.changes.  After that many changes each datagram whose ToS
 * or TTL is not the default has control messages. */
#define CHANGES_MAX 64

/* The IP_* options also apply to the IPv4 traffic of a dual-stack socket. */
int sender_init(struct sender *s, int fd, bool is_v4)
{
	int err = bind_set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);

	if (!err && !is_v4)
		err = bind_set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
			       IPV6_PMTUDISC_PROBE);
	bind_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
	*s = (struct sender){.fd = fd, .is_v4 = is_v4, .changes = CHANGES_MAX};
	return err;
}

/* Writes a socket address and returns its length. */
static socklen_t write_name(const struct sender *s, const struct inaddr *a,
			    uint32_t ifindex, struct sockaddr_in6 *to)
{
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_port = htons(a->port)};

	memset(to, 0, sizeof(*to));
	if (s->is_v4 && inaddr_is_v4(a->ip)) {
		memcpy(&four.sin_addr, a->ip + 12, 4);
		memcpy(to, &four, sizeof(four));
		return sizeof(four);
	}
	to->sin6_family = AF_INET6;
	to->sin6_port = htons(a->port);
	memcpy(&to->sin6_addr, a->ip, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&to->sin6_addr))
		to->sin6_scope_id = ifindex;
	return sizeof(*to);
}

/* A connect to AF_UNSPEC never fails for a UDP socket.  The program may have
 * closed the socket, and have a connection of its own at its number. */
void sender_disconnect(struct sender *s)
{
	struct sockaddr_in6 none = {.sin6_family = AF_UNSPEC};

	if (fd_identity_holds(s->fd))
		(void)connect(s->fd, (struct sockaddr *)(void *)&none,
			      sizeof(none));
	s->is_connected = false;
}

/* Connects the socket.  An IPv4 socket is not connected (sender.h), nor is a
 * socket to a link-local address, which needs an interface. */
static void connect_to(struct sender *s, const struct inaddr *to)
{
	struct sockaddr_in6 name;
	socklen_t len = write_name(s, to, 0, &name);

	if (s->is_v4 || inaddr_is_link_local(to->ip) ||
	    connect(s->fd, (struct sockaddr *)(void *)&name, len))
		return;
	len = sizeof(name);
	if (getsockname(s->fd, (struct sockaddr *)(void *)&name, &len))
		return;
	if (!memcmp(&name.sin6_addr, to->ip, 16)) {
		sender_disconnect(s);
		return;
	}
	s->to = *to;
	memcpy(s->from, &name.sin6_addr, 16);
	s->is_connected = true;
}

int sender_open(struct sender *s, uint16_t port, const struct inaddr *to)
{
	bool is_v4 = inaddr_is_v4(to->ip);
	int fd = fd_identity_note(bind_udp(port, &is_v4)), err;

	if (fd < 0)
		return fd;
	err = sender_init(s, fd, is_v4);
	if (err) {
		fd_identity_close(fd);
		return err;
	}
	s->changes = 0;
	connect_to(s, to);
	return 0;
}

void sender_close(struct sender *s)
{
	fd_identity_close(s->fd);
	s->fd = -1;
}

static void put_cmsg(struct msghdr *m, int level, int type, const void *data,
		     size_t len)
{
	/* CMSG_NXTHDR would read the length of the next header, which is not
	 * set yet. */
	struct cmsghdr *c =
		(struct cmsghdr *)(void *)((uint8_t *)m->msg_control +
					   m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	m->msg_controllen += CMSG_SPACE(len);
}

static void put_int(struct msghdr *m, bool v4, int four, int six, int value)
{
	put_cmsg(m, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? four : six, &value,
		 sizeof(value));
}

static void put_source(struct msghdr *m, bool v4, const struct udp_dgram *d)
{
	struct in_pktinfo four = {.ipi_ifindex = (int)d->ifindex};
	struct in6_pktinfo six = {.ipi6_ifindex = d->ifindex};

	if (v4) {
		memcpy(&four.ipi_spec_dst, d->from.ip + 12, 4);
		put_cmsg(m, IPPROTO_IP, IP_PKTINFO, &four, sizeof(four));
	} else {
		memcpy(&six.ipi6_addr, d->from.ip, 16);
		put_cmsg(m, IPPROTO_IPV6, IPV6_PKTINFO, &six, sizeof(six));
	}
}

static void put_segment(struct msghdr *m, size_t segment)
{
	uint16_t bytes = (uint16_t)segment;

	put_cmsg(m, SOL_UDP, UDP_SEGMENT, &bytes, sizeof(bytes));
}

/* Sets the ToS and TTL of d as the socket's defaults; returns false if they
 * cannot be set or change too often. */
static bool adopt_datagram(struct sender *s, const struct udp_dgram *d)
{
	int level = s->is_v4 ? IPPROTO_IP : IPPROTO_IPV6;

	if (s->changes == CHANGES_MAX)
		return false;
	s->changes++;
	if (!bind_set(s->fd, level, s->is_v4 ? IP_TOS : IPV6_TCLASS, d->tos))
		s->tos = d->tos;
	if (!bind_set(s->fd, level, s->is_v4 ? IP_TTL : IPV6_UNICAST_HOPS,
		      d->ttl ? d->ttl : -1))
		s->ttl = d->ttl;
	if (s->tos == d->tos && s->ttl == d->ttl)
		return true;
	s->changes = CHANGES_MAX;
	return false;
}

/* Adds the ToS and TTL of d, unless they are the socket's defaults or can be
 * made the defaults. */
static void put_class(struct sender *s, struct msghdr *m, bool v4,
		      const struct udp_dgram *d)
{
	if ((d->tos == s->tos && d->ttl == s->ttl) || adopt_datagram(s, d))
		return;
	put_int(m, v4, IP_TOS, IPV6_TCLASS, d->tos);
	if (d->ttl || s->ttl)
		put_int(m, v4, IP_TTL, IPV6_HOPLIMIT,
			d->ttl ? d->ttl : USUAL_TTL);
}

static bool is_connected_to(const struct sender *s, const struct udp_dgram *d)
{
	return s->is_connected && d->to.port == s->to.port && !d->ifindex &&
	       inaddr_has_same_ip(d->to.ip, s->to.ip) &&
	       inaddr_has_same_ip(d->from.ip, s->from);
}

void sender_address(struct sender *s, struct msghdr *m,
		    struct sender_head *head, const struct udp_dgram *d)
{
	bool v4 = inaddr_is_v4(d->from.ip);

	m->msg_name = NULL;
	m->msg_namelen = 0;
	m->msg_control = &head->control;
	m->msg_controllen = 0;
	if (!is_connected_to(s, d)) {
		m->msg_name = &head->name;
		m->msg_namelen = write_name(s, &d->to, d->ifindex, &head->name);
		put_source(m, v4, d);
	}
	put_class(s, m, v4, d);
	if (d->segment < d->len)
		put_segment(m, d->segment);
}
