/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that the process of a fabric watches by epoll.  Owner: the
 * process's one thread.
 */
#ifndef TOOLS_FABRIC_WATCH_H
#define TOOLS_FABRIC_WATCH_H

#include <stdint.h>

enum fabric_watch_kind {
	FABRIC_WATCH_CONTROL, /* requests of a program; also the listener and
				 the signals */
	FABRIC_WATCH_PORT,    /* management datagrams */
	FABRIC_WATCH_DATA,    /* packets of a data end */
	FABRIC_WATCH_CM,      /* connection management of all programs */
	FABRIC_WATCH_PROCESS, /* the end of a program (fabric_process_open) */
};

struct connection;

/* A watched descriptor, and the connection to which it belongs. */
struct fabric_watch {
	/* NULL: the descriptor is no program's. */
	struct connection *connection;
	enum fabric_watch_kind kind; /* says which function serves it */
	int fd;			     /* -1: not open */
};

/* Watches w->fd for `events` (EPOLLIN, EPOLLOUT).  The data.ptr of each event
 * that epoll_wait(2) reports for w->fd is w.  Returns 0 or -errno. */
int fabric_watch_add(int epoll, struct fabric_watch *w, uint32_t events);
/* Watches w->fd, which is watched already, for `events` alone (0: only for its
 * end). */
void fabric_watch_change(int epoll, struct fabric_watch *w, uint32_t events);
/* Ends the watch.  The descriptor stays open. */
void fabric_watch_remove(int epoll, const struct fabric_watch *w);

#endif
