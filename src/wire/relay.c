/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/relay.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* The send buffer that is asked for, in bytes; the kernel may give less. */
#define PAIR_BYTES (4 << 20)

int relay_pair(int fds[2])
{
	int bytes = PAIR_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	if (setsockopt(fds[0], SOL_SOCKET, SO_SNDBUFFORCE, &bytes,
		       sizeof(bytes)))
		setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes,
			   sizeof(bytes));
	/* Otherwise the receiving process could send messages to fds[0], which
	 * nobody reads.  The close of fds[0] would then close the descriptors
	 * that these messages bring, and might have to wait. */
	shutdown(fds[0], SHUT_RD);
	return 0;
}

uint32_t relay_waiting(int fd)
{
	int bytes = 0;

	return ioctl(fd, SIOCOUTQ, &bytes) || bytes < 0 ? 0 : (uint32_t)bytes;
}

bool relay_send(int fd, uint32_t most, const struct udp_dgram *d)
{
	struct relay_head head = {
		.from = d->from, .ifindex = d->ifindex, .tos = d->tos};
	struct iovec iov[2] = {{&head, sizeof(head)},
			       {(void *)(uintptr_t)d->bytes, d->len}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

	if (most != RELAY_NO_BOUND &&
	    relay_waiting(fd) + sizeof(head) + d->len > most)
		return false;
	memcpy(head.to_ip, d->to.ip, 16);
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool relay_parse(const uint8_t *bytes, size_t len, struct udp_dgram *d)
{
	struct relay_head head;

	if (len < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	d->from = head.from;
	memcpy(d->to.ip, head.to_ip, 16);
	d->ifindex = head.ifindex;
	d->tos = head.tos;
	d->bytes = bytes + sizeof(head);
	d->len = d->segment = len - sizeof(head);
	return true;
}
