/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's own data, for server.c, answer.c, admission.c and unread.c
 * alone. */
#ifndef BROKER_INSIDE_H
#define BROKER_INSIDE_H

#include "broker/refuse_full.h"
#include "broker/cmserver.h"
#include "broker/remote_liveness.h"
#include "broker/reuseport_group.h"
#include "broker/gsi.h"
#include "broker/proto.h"
#include "broker/counter_files.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A process may have two connections: for its class, and for rdma_cm. */
#define CONN_MAX (2 * STEER_CLASS_MAX + 64)
/* Descriptors that are polled besides those of the clients. */
#define FIXED (3 + REFUSE_FULL_SLOTS)

/*
 * One client.  Without a connection (fd -1) it is what a broker that died has
 * left of a client, until that client comes or dies.  The broker owns the
 * descriptors.
 */
struct conn {
	int fd;
	int pidfd;  /* -1: the process is not visible */
	uid_t user; /* or USER_NONE (user.h) */
	pid_t pid;
	uint32_t class;	    /* 0: it has none yet */
	bool is_waiting;    /* its hello is not answered */
	struct proto hello; /* the hello, if is_waiting */
	int hello_fd;	    /* the socket that came with the hello; -1: none */
	int relay_fd; /* the relay's end that came with the hello; -1: none */
	/* where the arena is that it shares with its user */
	struct proto_at arena;
	int kick_fd;		    /* the eventfd that wakes it; -1: none */
	uint64_t waiting_ms;	    /* when the hello came, if is_waiting */
	struct cmserver_client *cm; /* NULL: it does no connection management */
	/* names it to remote_liveness, never used twice; 0: none */
	uint64_t name;
	uint32_t questions; /* open ones, about other hosts */
	/* The classes whose arenas it was shown, as bits; not known of a client
	 * of another broker. */
	uint64_t access_of[STEER_CLASS_MAX / 64 + 1];
	bool is_inherited;  /* it had its class of the broker before this one */
	bool is_over;	    /* it has ended, and its client has yet to read */
	uint64_t behind_ms; /* since when its requests wait; 0: they do not */
	uint64_t full_ms; /* since when no descriptor can be sent; 0: it can */
};

struct server {
	int listen_fd;
	struct refuse_full refuse_full;
	uint64_t idle_ms, idle_since_ms;
	/* the server is a thread of a program, with which it ends */
	bool is_thread;
	bool holds_port; /* server_hold_port was called */
	uint32_t conns;
	struct conn conn[CONN_MAX];
	struct reuseport_group group;
	struct gsi gsi;
	struct cmserver *cm;
	struct remote_liveness *remote_liveness;
	uint64_t names; /* how many names were given */
	struct counter_files counter_files;
	struct pollfd polled[FIXED + 2 * CONN_MAX], room[FIXED + 2 * CONN_MAX];
};

#endif
