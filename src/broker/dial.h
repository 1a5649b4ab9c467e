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
	/* How many seconds after its last program the broker ends; UINT32_MAX:
	 * the broker is a thread of that process; PROTO_IDLE_NEVER: the broker
	 * does not end. */
	uint32_t idle_s;
	char release[PROTO_RELEASE]; /* to be shown as it is */
};

/*
 * Finds or starts the broker, and asks for its introduction: waits for 15 s
 * while there is no broker, and for 30 s for the answer.  0 with *fd, a
 * blocking socket that the caller owns, and *broker, unless broker is NULL; or
 * -errno and a sentence in why.  The errors are those of client_open, and
 * -EPROTONOSUPPORT: the broker is of another version. say: see struct
 * client_wish.  Thread-safe.
 */
int dial_open(int *fd, struct dial_broker *broker, client_say *say,
	      char why[START_SENTENCE]);

#endif
