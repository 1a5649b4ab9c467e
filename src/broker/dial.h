/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection to the broker without a class: for connection management
 * (cmproto.h), and for a caller that asks for the broker's pid and version. */
#ifndef BROKER_DIAL_H
#define BROKER_DIAL_H

#include "broker/client.h"

/* The broker to which dial_open has connected. */
struct dial_broker {
	pid_t pid;  /* 0: the broker is in another PID namespace */
	uid_t user; /* the broker's user, by SO_PEERCRED */
	/* The broker ends this many seconds after its last program has ended.
	 * UINT32_MAX: the broker is a thread of process pid and ends with that
	 * process.  PROTO_IDLE_NEVER: the broker does not end. */
	uint32_t idle_s;
	/* The broker's version of adverb, a string of printable ASCII. */
	char release[PROTO_RELEASE];
};

/*
 * Connects to the broker, or starts one if there is none, and asks the broker
 * to introduce itself.  Tries for up to 15 s to reach or to start a broker; a
 * start that begins at the end of that time takes up to 12 s more.  Then waits
 * up to 30 s for the broker's answer.  Returns 0 and stores a blocking socket,
 * which the caller owns, in *fd, and the broker's introduction in *broker
 * unless broker is NULL.  Otherwise stores -1 in *fd and returns -errno with a
 * sentence in why; client_open lists the errors.  say may be NULL and gets
 * CLIENT_SAYS_THREAD only.  Thread-safe: a second thread waits until the call
 * of the first one is done.
 */
int dial_open(int *fd, struct dial_broker *broker, client_say *say,
	      char why[START_SENTENCE]);

#endif
