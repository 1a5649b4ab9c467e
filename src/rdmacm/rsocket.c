/* SPDX-License-Identifier: BSD-2-Clause */
/* rsockets, the socket calls over RDMA, which adverb does not support. */
#include "rdmacm/explain.h"
#include "rdmacm/newer.h"

#include <rdma/rsocket.h>

#include <errno.h>

static int refuse_call(const char *call)
{
	return r_fail(ENOSYS,
		      "rsockets are not supported: %s fails with ENOSYS; use "
		      "ordinary sockets",
		      call);
}

int rsocket(int domain, int type, int protocol)
{
	return refuse_call("rsocket");
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return refuse_call("rbind");
}

int rlisten(int socket, int backlog)
{
	return refuse_call("rlisten");
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return refuse_call("raccept");
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return refuse_call("rconnect");
}

int rshutdown(int socket, int how)
{
	return refuse_call("rshutdown");
}

int rclose(int socket)
{
	return refuse_call("rclose");
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return refuse_call("rrecv");
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags,
		  struct sockaddr *src_addr, socklen_t *addrlen)
{
	return refuse_call("rrecvfrom");
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	return refuse_call("rrecvmsg");
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return refuse_call("rsend");
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
		const struct sockaddr *dest_addr, socklen_t addrlen)
{
	return refuse_call("rsendto");
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	return refuse_call("rsendmsg");
}

ssize_t rread(int socket, void *buf, size_t count)
{
	return refuse_call("rread");
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return refuse_call("rreadv");
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return refuse_call("rwrite");
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return refuse_call("rwritev");
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return refuse_call("rpoll");
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
	    struct timeval *timeout)
{
	return refuse_call("rselect");
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return refuse_call("rgetpeername");
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return refuse_call("rgetsockname");
}

int rsetsockopt(int socket, int level, int optname, const void *optval,
		socklen_t optlen)
{
	return refuse_call("rsetsockopt");
}

int rgetsockopt(int socket, int level, int optname, void *optval,
		socklen_t *optlen)
{
	return refuse_call("rgetsockopt");
}

int rfcntl(int socket, int cmd, ...)
{
	return refuse_call("rfcntl");
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags,
	     off_t offset)
{
	return refuse_call("riomap");
}

int riounmap(int socket, void *buf, size_t len)
{
	return refuse_call("riounmap");
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset,
		int flags)
{
	return (size_t)refuse_call("riowrite");
}

int repoll_create(int flags)
{
	return refuse_call("repoll_create");
}

int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return refuse_call("repoll_ctl");
}

int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout)
{
	return refuse_call("repoll_wait");
}
