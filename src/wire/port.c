/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/port.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANY_STATE UINT32_MAX
#define WAIT_US	  200000 /* the kernel answers at once or never */

struct port_question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 req;
};

struct port_answer {
	struct nlmsghdr head;
	union {
		struct nlmsgerr error;
		struct inet_diag_msg socket;
	};
	uint8_t attributes[1024];
};

static void put_address(__be32 to[4], const uint8_t ip[16])
{
	if (inaddr_is_v4(ip))
		memcpy(to, ip + 12, 4);
	else
		memcpy(to, ip, 16);
}

/*
 * Fills *q with the request for the socket that would receive a datagram from
 * `to` to `from`.  The kernel takes idiag_src as the source of that datagram,
 * and idiag_dst as its destination.
 */
static void make_question(struct port_question *q, const struct inaddr *from,
			  const struct inaddr *to)
{
	bool v4 = inaddr_is_v4(from->ip);

	*q = (struct port_question){
		.head = {.nlmsg_len = sizeof(*q),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.req = {.sdiag_family = v4 ? AF_INET : AF_INET6,
			.sdiag_protocol = IPPROTO_UDP,
			.idiag_states = ANY_STATE,
			.id = {.idiag_sport = htons(to->port),
			       .idiag_dport = htons(from->port),
			       .idiag_cookie = {INET_DIAG_NOCOOKIE,
						INET_DIAG_NOCOOKIE}}},
	};
	put_address(q->req.id.idiag_src, to->ip);
	put_address(q->req.id.idiag_dst, from->ip);
}

/* Sends q to the kernel, stores the answer in *a and returns the length of the
 * answer in bytes; 0: there is none. */
static size_t exchange_messages(const struct port_question *q,
				struct port_answer *a)
{
	struct timeval wait = {.tv_usec = WAIT_US};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	ssize_t n = -1;

	if (fd < 0)
		return 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (send(fd, q, sizeof(*q), MSG_NOSIGNAL) == (ssize_t)sizeof(*q))
		do
			n = recv(fd, a, sizeof(*a), 0);
		while (n < 0 && errno == EINTR);
	close(fd);
	return n < (ssize_t)sizeof(a->head) || a->head.nlmsg_len > (size_t)n
		       ? 0
		       : (size_t)n;
}

static enum port_owner ask_kernel(const struct inaddr *from,
				  const struct inaddr *to, uid_t *user)
{
	static const uint8_t every[16];
	struct port_question q;
	struct port_answer a;
	static _Atomic bool has_worked;
	size_t n;

	make_question(&q, from, to);
	memset(&a, 0, sizeof(a));
	n = exchange_messages(&q, &a);
	/* A kernel without udp_diag answers ENOENT too.  So ENOENT is believed
	 * only after the kernel has found a socket once. */
	if (n >= NLMSG_LENGTH(sizeof(a.error)) &&
	    a.head.nlmsg_type == NLMSG_ERROR && a.error.error == -ENOENT)
		return has_worked ? PORT_NOBODY : PORT_UNKNOWN;
	if (n < NLMSG_LENGTH(sizeof(a.socket)) ||
	    a.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    a.socket.id.idiag_sport != htons(from->port))
		return PORT_UNKNOWN;
	has_worked = true;
	*user = a.socket.idiag_uid;
	if (memcmp(a.socket.id.idiag_src, every,
		   a.socket.idiag_family == AF_INET ? 4 : 16) != 0)
		return PORT_NOBODY;
	return PORT_USER;
}

/* Returns whether a line has this port and an address of all zeroes; sets *user
 * if so. */
static bool is_everywhere(const char *line, uint16_t port, uid_t *user)
{
	char ip[33];
	unsigned has, uid;

	if (sscanf(line, " %*u: %32[0-9A-F]:%x %*s %*s %*s %*s %*s %u", ip,
		   &has, &uid) != 3 ||
	    has != port || strspn(ip, "0") != strlen(ip))
		return false;
	*user = (uid_t)uid;
	return true;
}

static enum port_owner look_in(const char *path, uint16_t port, uid_t *user)
{
	FILE *f = fopen(path, "re");
	char line[512];
	bool found = false;

	/* At a limit of the process the answer is PORT_NOBODY, so the caller
	 * refuses the datagram: a peer may have brought the process there. */
	if (!f)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM
			       ? PORT_NOBODY
			       : PORT_UNKNOWN;
	while (!found && fgets(line, sizeof(line), f))
		found = is_everywhere(line, port, user);
	fclose(f);
	return found ? PORT_USER : PORT_NOBODY;
}

enum port_owner port_owner_listed(const struct inaddr *from, uid_t *user)
{
	enum port_owner four = PORT_NOBODY, six;

	/* a dual-stack socket, which udp6 lists, may also own an IPv4 port */
	if (inaddr_is_v4(from->ip))
		four = look_in("/proc/net/udp", from->port, user);
	if (four == PORT_USER)
		return four;
	six = look_in("/proc/net/udp6", from->port, user);
	/* A kernel without IPv6 has no udp6, and receives only IPv4. */
	return six == PORT_UNKNOWN && inaddr_is_v4(from->ip) ? four : six;
}

enum port_owner port_owner(const struct inaddr *from, const struct inaddr *to,
			   uid_t *user)
{
	enum port_owner said = ask_kernel(from, to, user);

	return said == PORT_UNKNOWN ? port_owner_listed(from, user) : said;
}
