/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection to the broker without a class, for connection management
 * (cmproto.h) and for a caller that asks who the broker is. */
#ifndef BROKER_DIAL_H
#define BROKER_DIAL_H

#include "broker/client.h"

/* The broker that answers. */
struct dial_broker {
	pid_t pid; /* 0: it is not visible */
	uid_t user;
	/* How long after its last program it ends; UINT32_MAX: it is a thread
	 * of that process; PROTO_IDLE_NEVER: it does not end. */
	uint32_t idle_s;
	char release[PROTO_RELEASE]; /* to be shown as it is */
};

/*
 * Finds the broker or starts it, and asks who it is: waits for 15 s while there
 * is none, and for 30 s for an answer.  0 with *fd, blocking, which the caller
 * owns, and *broker, unless that is NULL; or -errno and a sentence in why: as
 * client_open, or -EPROTONOSUPPORT: the broker is of another version.  say: see
 * struct client_wish.  Thread-safe.
 */
int dial_open(int *fd, struct dial_broker *broker, client_say *say,
	      char why[START_SENTENCE]);

#endif
