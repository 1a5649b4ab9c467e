/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/check.h"

#include "wire/bind.h"

void tcp_set_nodelay(int fd)
{
	bind_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

ssize_t tcp_send(int fd, const void *bytes, size_t count)
{
	ssize_t n;

	do
		n = send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	/* ENOBUFS, ENOMEM: the kernel is short of memory at the moment */
	return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? 0
								      : -errno;
}

ssize_t tcp_receive(int fd, void *bytes, size_t room)
{
	ssize_t n;

	/* Calls the kernel by syscall(2), since recv is a cancellation point: a
	 * thread that polls holds the progress lock here, and may not have
	 * disabled cancellation (stream_set_has_news).  If that thread were
	 * cancelled, the lock would stay held. */
	do
		n = syscall(SYS_recvfrom, fd, bytes, room, MSG_DONTWAIT, NULL,
			    NULL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

void tcp_await_room(const int *fds, size_t count, int ms)
{
	struct pollfd p[TCP_AWAIT_MAX];

	CHECK(count <= TCP_AWAIT_MAX);
	for (size_t i = 0; i < count; i++)
		p[i] = (struct pollfd){.fd = fds[i], .events = POLLOUT};
	poll(p, count, ms);
}

void tcp_finish(int fd)
{
	shutdown(fd, SHUT_WR);
}

void tcp_end(int fd)
{
	shutdown(fd, SHUT_RDWR);
}
