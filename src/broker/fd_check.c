/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/fd_check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROCEV2_UDP_PORT 4791
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* since Linux 5.14 */
#endif

/* Returns a socket option of fd; -1: fd is not a socket, or has no such option.
 */
static int option_of(int fd, int option)
{
	int value;
	socklen_t length = sizeof(value);

	if (getsockopt(fd, SOL_SOCKET, option, &value, &length) ||
	    length != sizeof(value))
		return -1;
	return value;
}

static bool is_bound(int fd, int domain)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = {0};
	socklen_t length = sizeof(a);

	if (getsockname(fd, &a.any, &length) || a.any.sa_family != domain)
		return false;
	return ntohs(domain == AF_INET ? a.v4.sin_port : a.v6.sin6_port) ==
	       ROCEV2_UDP_PORT;
}

/* Are two sockets in the same network namespace?  Returns true on a kernel
 * before Linux 5.14, which does not report the namespace of a socket. */
static bool is_of_namespace(int fd, int other)
{
	uint64_t mine, its;
	socklen_t length = sizeof(mine), its_length = sizeof(its);

	if (getsockopt(other, SOL_SOCKET, SO_NETNS_COOKIE, &mine, &length) ||
	    getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &its, &its_length))
		return true;
	return mine == its;
}

bool fd_check_is_messages(int fd)
{
	return option_of(fd, SO_DOMAIN) == AF_UNIX &&
	       option_of(fd, SO_TYPE) == SOCK_SEQPACKET &&
	       !option_of(fd, SO_ACCEPTCONN);
}

bool fd_check_is_receiver(int fd, int broker)
{
	int domain = option_of(fd, SO_DOMAIN);

	if (domain != AF_INET && domain != AF_INET6)
		return fd_check_is_messages(fd);
	return option_of(fd, SO_TYPE) == SOCK_DGRAM &&
	       option_of(fd, SO_PROTOCOL) == IPPROTO_UDP &&
	       is_bound(fd, domain) && is_of_namespace(fd, broker);
}

bool fd_check_is_sealed(int fd, size_t bytes)
{
	const int least = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat s;

	return seals >= 0 && (seals & least) == least && !fstat(fd, &s) &&
	       s.st_size == (off_t)bytes;
}

bool fd_check_is_wake(int fd)
{
	static const char eventfd[] = "anon_inode:[eventfd]";
	char path[40], link[sizeof(eventfd)];
	int flags = fcntl(fd, F_GETFL);
	ssize_t n;

	if (flags < 0 || !(flags & O_NONBLOCK))
		return false;
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	n = readlink(path, link, sizeof(link));
	/* without /proc the kind of file is not known */
	return n < 0 || (n == (ssize_t)strlen(eventfd) &&
			 !memcmp(link, eventfd, strlen(eventfd)));
}
