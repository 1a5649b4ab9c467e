/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a broker consists of, for the files that its loop is in: server.c and,
 * for what it answers to its clients, answer.c.  Nobody else looks.
 */
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

/* a process may have two: for its class, and for its connections */
#define CONN_MAX (2 * STEER_CLASS_MAX + 64)
/* Descriptors that are polled besides those of the clients. */
#define FIXED (3 + REFUSE_FULL_SLOTS)

/*
 * One client, or (fd -1) what is left of one that had a class of a broker that
 * died, until it comes to us or dies.  The broker owns the descriptors.
 */
struct conn {
	int fd;
	int pidfd;  /* -1: its process is not visible */
	uid_t user; /* or USER_NONE (user.h) */
	pid_t pid;
	uint32_t class;		    /* 0: has none yet */
	bool is_waiting;	    /* its hello is not answered */
	struct proto hello;	    /* then, */
	int hello_fd;		    /* the socket that came with it or -1, */
	int relay_fd;		    /* of another user the relay's end or -1, */
	struct proto_at arena;	    /* that it shares with its user, */
	int kick_fd;		    /* to wake it then, or -1 */
	uint64_t waiting_ms;	    /* and since when */
	struct cmserver_client *cm; /* NULL: no connection management */
	uint64_t name;		    /* never given twice; 0: asks nobody */
	uint32_t questions;	    /* about other hosts, to be answered */
	/* Whose arenas it was shown, by class; of another broker's client
	 * nobody knows. */
	uint64_t access_of[STEER_CLASS_MAX / 64 + 1];
	bool is_heirloom;
	bool is_over;	    /* has ended, and waits for its client to read */
	uint64_t behind_ms; /* since when its requests wait; 0: they do not */
	uint64_t full_ms;   /* since when no descriptor can be sent; 0 */
};

struct server {
	int listen_fd;
	struct refuse_full refuse_full;
	uint64_t idle_ms, idle_since_ms;
	bool is_thread;	 /* of a program, with which it ends */
	bool holds_port; /* whether or not there is a client */
	uint32_t conns;
	struct conn conn[CONN_MAX];
	struct reuseport_group group;
	struct gsi gsi;
	struct cmserver *cm;
	struct remote_liveness *remote_liveness;
	uint64_t names; /* given */
	struct counter_files counter_files;
	struct pollfd polled[FIXED + 2 * CONN_MAX], room[FIXED + 2 * CONN_MAX];
};

#endif
