/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_watch.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

static int control_epoll(int epoll, int op, struct fabric_watch *w,
			 uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = w};

	return epoll_ctl(epoll, op, w->fd, &e) ? -errno : 0;
}

int fabric_watch_add(int epoll, struct fabric_watch *w, uint32_t events)
{
	return control_epoll(epoll, EPOLL_CTL_ADD, w, events);
}

void fabric_watch_change(int epoll, struct fabric_watch *w, uint32_t events)
{
	control_epoll(epoll, EPOLL_CTL_MOD, w, events);
}

void fabric_watch_remove(int epoll, const struct fabric_watch *w)
{
	epoll_ctl(epoll, EPOLL_CTL_DEL, w->fd, NULL);
}
