/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/bind.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET_BYTES (8 << 20) /* the size asked for; the kernel may cap it */

int bind_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

void bind_buffer(int fd, int forced, int name)
{
	if (bind_set(fd, SOL_SOCKET, forced, SOCKET_BYTES))
		bind_set(fd, SOL_SOCKET, name, SOCKET_BYTES);
}

static int open_socket(bool *is_v4)
{
	int type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, err;
	int fd = *is_v4 ? -1 : socket(AF_INET6, type, 0);

	*is_v4 |= fd < 0 && errno == EAFNOSUPPORT;
	if (*is_v4)
		fd = socket(AF_INET, type, 0);
	if (fd < 0)
		return -errno;
	err = *is_v4 ? 0 : bind_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* sockaddr_in and sockaddr_in6 have family and port at the same offsets. */
int bind_udp(uint16_t port, bool *is_v4)
{
	struct sockaddr_in6 any = {.sin6_port = htons(port)};
	int fd = open_socket(is_v4), err;

	if (fd < 0)
		return fd;
	any.sin6_family = *is_v4 ? AF_INET : AF_INET6;
	if (!bind(fd, (struct sockaddr *)(void *)&any, sizeof(any)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}
