/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/waitset.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "host/broker_link.h"
#include "host/fabric_link.h"
#include "host/progress.h"
#include "util/fd_identity.h"
#include "util/instrument.h"
#include "util/libc.h"
#include "util/monotonic.h"
#include "util/token.h"

#define NS_PER_S 1000000000u
#define NAP_NS	 10000000 /* the longest wait of wait_without */

enum { FROM_WAKE, FROM_BROKER, FROM_WIRE, FROM_STREAMS, FROM_LINK, SOURCES };

/* Returns a number that changes when a descriptor of the set changes. */
static uint32_t version_of(const struct progress *p)
{
	return broker_link_changes() + shared_load(&p->wire.hang_ups) +
	       shared_load(&p->streams.waits_on) + fabric_link_changes();
}

/* Returns the epoll set of the streams (stream_set.h), or -1. */
static int streams_of(const struct progress *p)
{
	return (int)shared_load(&p->streams.waits_on) - 1;
}

/*
 * Adds fd to the epoll set, unless fd is -1.  The thread that makes progress
 * may close fd just now, and the number may already belong to another file: to
 * this epoll set (EINVAL), to a file that is in the set (EEXIST), or to a file
 * that cannot be polled (EPERM).  Then version_of changes, and the next wait
 * makes a new set.  False: the kernel has refused.
 */
static bool add_if_open(int epoll, int fd, struct epoll_event *source)
{
	return fd < 0 || !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, source) ||
	       (errno != ENOSPC && errno != ENOMEM);
}

/*
 * Makes a new epoll set, or sets is_refused.  Called again when one of the
 * descriptors refers to another file: this process has closed the old file, and
 * so cannot remove it from the old set, where the file stays as long as a child
 * of fork has it open.  With EPOLLET the set reports each write to the eventfd
 * once, so no thread needs to read the eventfd.
 */
static void make_epoll(struct waitset *in, struct progress *p)
{
	struct epoll_event wake = {EPOLLIN | EPOLLET, {.u32 = FROM_WAKE}};
	struct epoll_event broker = {EPOLLIN, {.u32 = FROM_BROKER}};
	struct epoll_event wire = {EPOLLIN, {.u32 = FROM_WIRE}};
	struct epoll_event streams = {EPOLLIN, {.u32 = FROM_STREAMS}};
	struct epoll_event link = {EPOLLIN, {.u32 = FROM_LINK}};

	in->version = version_of(p);
	in->fd = fd_identity_note(epoll_create1(EPOLL_CLOEXEC));
	in->is_refused |= in->fd < 0 ||
			  epoll_ctl(in->fd, EPOLL_CTL_ADD, p->wake.fd, &wake) ||
			  epoll_ctl(in->fd, EPOLL_CTL_ADD, p->wire.fd, &wire) ||
			  !add_if_open(in->fd, streams_of(p), &streams) ||
			  !add_if_open(in->fd, fabric_link_fd(), &link) ||
			  !add_if_open(in->fd, broker_link_fd(), &broker);
}

void waitset_open(struct waitset *in, struct progress *p)
{
	in->socket_is_empty = false;
	/* valgrind prints a warning for epoll_pwait2, which it does not
	 * know. */
	in->is_refused = !libc_epoll_pwait2 || instrument_by_valgrind();
	make_epoll(in, p);
}

void waitset_close(struct waitset *in)
{
	int fd = in->fd;

	/* in->fd is reset before the close: a thread that is cancelled in close
	 * has closed fd nevertheless, and no thread may use that number from
	 * then on. */
	in->fd = -1;
	fd_identity_close(fd);
}

static struct timespec left_until(uint64_t until)
{
	uint64_t now = monotonic_ns(), left = until > now ? until - now : 0;

	return (struct timespec){.tv_sec = (time_t)(left / NS_PER_S),
				 .tv_nsec = (long)(left % NS_PER_S)};
}

/* Renews the epoll set if a descriptor has changed.  False: epoll cannot be
 * used. */
static bool has_epoll(struct waitset *in, struct progress *p)
{
	if (!in->is_refused && in->version != version_of(p)) {
		waitset_close(in);
		make_epoll(in, p);
	}
	return !in->is_refused;
}

static int wait_by_epoll(struct waitset *in, uint64_t until)
{
	struct timespec left = left_until(until);
	struct epoll_event got[SOURCES];
	int n;

	n = libc_epoll_pwait2(in->fd, got, SOURCES,
			      until == UINT64_MAX ? NULL : &left, NULL);
	in->socket_is_empty = n > 0;
	in->has_timed_out = n == 0;
	for (int i = 0; i < n; i++) {
		in->socket_is_empty &= got[i].data.u32 != FROM_WIRE;
		if (got[i].data.u32 == FROM_BROKER)
			broker_link_woken();
	}
	if (n < 0 && errno == EINTR)
		return -EINTR;
	in->is_refused |= n < 0; /* refused by the kernel or a sandbox */
	return 0;
}

static int wait_by_poll(struct waitset *in, struct progress *p, uint64_t until,
			short socket_events, int streams_fd)
{
	struct pollfd fds[] = {
		{.fd = p->wake.fd, .events = POLLIN},
		{.fd = broker_link_fd(), .events = POLLIN},
		{.fd = socket_events ? p->wire.fd : -1,
		 .events = socket_events & POLLIN},
		{.fd = socket_events & POLLOUT ? p->wake.awaited_fd : -1,
		 .events = POLLOUT},
		{.fd = streams_fd, .events = POLLIN},
		{.fd = socket_events & POLLIN ? fabric_link_fd() : -1,
		 .events = POLLIN},
	};
	struct timespec left = left_until(until);
	int n = ppoll(fds, sizeof(fds) / sizeof(fds[0]),
		      until == UINT64_MAX ? NULL : &left, in->mask);

	in->has_timed_out = n == 0;
	if (n > 0 && fds[1].revents)
		broker_link_woken();
	/* Local peers have the eventfd, too.  If one of them cleared O_NONBLOCK
	 * and read the eventfd first, a read(2) here would wait.
	 * token_take_back does not wait. */
	if (n > 0 && fds[0].revents & POLLIN)
		token_take_back(p->wake.fd);
	return n < 0 && errno == EINTR ? -EINTR : 0;
}

/* Waits without descriptors, since the program has closed them: until `until`,
 * but for NAP_NS at most.  Returns 0 or -EINTR. */
static int wait_without(struct waitset *in, uint64_t until)
{
	struct timespec nap = left_until(until);

	in->has_timed_out = false;
	if (nap.tv_sec || nap.tv_nsec > NAP_NS)
		nap = (struct timespec){.tv_nsec = NAP_NS};
	return nanosleep(&nap, NULL) ? -EINTR : 0;
}

int waitset_wait(struct waitset *in, struct progress *p, uint64_t until,
		 short socket_events)
{
	if (!progress_has_files(p))
		return wait_without(in, until);
	/* A caller that sets a mask takes -EINTR for a handler that has run.
	 * But after a stop of the process, as by Ctrl-Z and fg, epoll_pwait2(2)
	 * returns EINTR although no handler has run; ppoll(2) continues to
	 * wait.  So a wait with a mask does not use epoll. */
	if (socket_events == POLLIN && !in->mask && has_epoll(in, p))
		return wait_by_epoll(in, until);
	in->socket_is_empty = false;
	return wait_by_poll(in, p, until, socket_events, streams_of(p));
}

int waitset_nap(struct waitset *in, struct progress *p, uint64_t until)
{
	int err;

	/* A nap is short and frequent, so it leaves the system calls of
	 * progress_has_files to the threads that take the progress lock. */
	if (shared_load(&p->wire.is_lost))
		return wait_without(in, until);
	in->socket_is_empty = false;
	err = wait_by_poll(in, p, until, 0, -1);
	/* A descriptor that the program has closed, or has put to another use,
	 * ends each nap at once. */
	if (err || in->has_timed_out || fd_identity_holds(p->wake.fd))
		return err;
	return wait_without(in, until);
}
