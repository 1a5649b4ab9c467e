/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's own data, for server.c, answer.c, admission.c, counter_tree.c
 * and unread.c alone. */
#ifndef BROKER_INSIDE_H
#define BROKER_INSIDE_H

#include "broker/refuse_full.h"
#include "broker/cm_inbox.h"
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
 * One client.  With fd -1 the client was connected to a dead broker, and the
 * entry stays until the client connects or dies.  The broker owns the
 * descriptors.
 */
struct conn {
	int fd;
	int pidfd;  /* -1: the process is not visible */
	uid_t user; /* or USER_NONE (user.h) */
	pid_t pid;
	uint32_t class;	    /* 0: the client has none yet */
	bool is_waiting;    /* its hello is not answered */
	struct proto hello; /* the hello, if is_waiting */
	int hello_fd;	    /* the socket that came with the hello; -1: none */
	int relay_fd; /* the relay's end that came with the hello; -1: none */
	/* the arena that the client shares with its user */
	struct proto_at arena;
	/* the eventfd that wakes the client; -1: none */
	int kick_fd;
	uint64_t waiting_ms;	    /* when the hello came, if is_waiting */
	struct cmserver_client *cm; /* NULL: the client has none */
	/* the asker's number in remote_liveness, never used twice; 0: none */
	uint64_t name;
	uint32_t questions; /* open questions about other hosts */
	/* One bit for each class whose arena was shown to the client; arenas
	 * that an earlier broker showed are not known. */
	uint64_t access_of[STEER_CLASS_MAX / 64 + 1];
	bool is_inherited; /* an earlier broker gave the class */
	/* the connection has ended, and the client has yet to read */
	bool is_over;
	uint64_t behind_ms; /* since when requests wait; 0: none waits */
	uint64_t full_ms; /* since when no descriptor can be sent; 0: one can */
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
	struct cm_inbox inbox;
	struct remote_liveness *remote_liveness;
	uint64_t names; /* how many names were given */
	struct counter_files counter_files;
	struct pollfd polled[FIXED + 2 * CONN_MAX], room[FIXED + 2 * CONN_MAX];
};

#endif
