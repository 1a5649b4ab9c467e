/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/listeners.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATE_LISTEN 10 /* TCP_LISTEN, which Unix sockets have, too */
/* UDIAG_SHOW_UID and UNIX_DIAG_UID, which the headers of a Linux before 5.3
 * lack. */
#define SHOW_UID 0x40
#define ATTR_UID 7
/* The kernel fills at most 32 KiB of a receiver's buffer. */
#define ROOM 32768

struct list_question {
	struct nlmsghdr head;
	struct unix_diag_req req;
};

/* The result of reading a part of the list. */
enum part {
	PART_MORE,   /* another part follows */
	PART_ENDS,   /* this part was the last one, or `see` wants no more */
	PART_FAILED, /* the kernel gives no list, or a list without users */
};

struct reader {
	bool (*see)(void *arg, const struct listener *l);
	void *arg;
};

/* Returns a socket on which the list comes; -1: the kernel has no list, or no
 * socket can be made. */
static int ask_kernel(void)
{
	const struct list_question q = {
		.head = {.nlmsg_len = sizeof(q),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.req = {.sdiag_family = AF_UNIX,
			.udiag_states = 1u << STATE_LISTEN,
			.udiag_show = UDIAG_SHOW_NAME | SHOW_UID}};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -1;
	if (send(fd, &q, sizeof(q), MSG_NOSIGNAL) == (ssize_t)sizeof(q))
		return fd;
	close(fd);
	return -1;
}

/* Reads the attributes of a socket.  False: its user is not among them. */
static bool read_attributes(const struct nlmsghdr *head, struct listener *l)
{
	const size_t body = NLMSG_SPACE(sizeof(struct unix_diag_msg));
	const struct rtattr *a = (const void *)((const char *)head + body);
	size_t left = head->nlmsg_len - body;
	bool has_user = false;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == UNIX_DIAG_NAME) {
			l->name = RTA_DATA(a);
			l->bytes = RTA_PAYLOAD(a);
		} else if (a->rta_type == ATTR_UID &&
			   RTA_PAYLOAD(a) == sizeof(l->user)) {
			memcpy(&l->user, RTA_DATA(a), sizeof(l->user));
			has_user = true;
		}
	}
	return has_user;
}

static enum part take_socket(const struct nlmsghdr *head,
			     const struct reader *r)
{
	const struct unix_diag_msg *m = NLMSG_DATA(head);
	struct listener l = {0};

	if (head->nlmsg_len < NLMSG_SPACE(sizeof(*m)) ||
	    m->udiag_type != SOCK_SEQPACKET)
		return PART_MORE;
	if (!read_attributes(head, &l))
		return PART_FAILED;
	if (l.bytes < 2 || l.name[0])
		return PART_MORE; /* no abstract name */
	l.name++;
	l.bytes--;
	return r->see(r->arg, &l) ? PART_MORE : PART_ENDS;
}

static enum part take_message(const struct nlmsghdr *head,
			      const struct reader *r)
{
	if (head->nlmsg_type == NLMSG_DONE)
		return PART_ENDS;
	if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return PART_FAILED;
	return take_socket(head, r);
}

static enum part take_part(int fd, const struct reader *r)
{
	union {
		struct nlmsghdr head;
		char bytes[ROOM];
	} buffer;
	enum part part = PART_MORE;
	ssize_t n;
	size_t left;

	/* the kernel makes each part while the one before is received */
	n = recv(fd, &buffer, sizeof(buffer), MSG_DONTWAIT);
	if (n <= 0)
		return PART_FAILED;
	left = (size_t)n;
	for (const struct nlmsghdr *head = &buffer.head;
	     part == PART_MORE && NLMSG_OK(head, left);
	     head = NLMSG_NEXT(head, left))
		part = take_message(head, r);
	return part;
}

bool listeners_each(bool (*see)(void *arg, const struct listener *l), void *arg)
{
	const struct reader r = {see, arg};
	int fd = ask_kernel();
	enum part part = fd < 0 ? PART_FAILED : PART_MORE;

	while (part == PART_MORE)
		part = take_part(fd, &r);
	if (fd >= 0)
		close(fd);
	return part == PART_ENDS;
}
