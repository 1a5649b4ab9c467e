/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts adverbd so that the program does not see it: no child to wait for, no
 * signal.  If that is forbidden, or adverbd cannot be run, a thread of this
 * process is the broker.  The listener is bound first: one of several starters
 * binds it, and the connections of the others wait there for the broker that it
 * starts.
 *
 *	starter                          adverbd
 *	bind, listen
 *	WHO            -- status -->     (a message that waits for it)
 *	clone, execve  -- listener -->   0
 *	               <-- status --     2: what a loader says
 *	               <-- WHO_IS --     it serves from now on
 *
 * The status socket is a socketpair of messages of proto.h.  Its other end is
 * adverbd's standard error until adverbd serves: so the starter reads there
 * what a loader says, and sees the end of the process as a hang-up, without
 * being its parent.  The starter keeps the listener until WHO_IS; without
 * WHO_IS a thread serves the same listener, and no connection is lost.  A
 * starter that waits no longer shuts its end down; then adverbd cannot say
 * WHO_IS, and ends: a thread and adverbd never serve both.
 *
 * One start at a time in a process: the callers' locks see to that.
 */
#ifndef BROKER_START_H
#define BROKER_START_H

#include "broker/reason.h"

#include <stdint.h>
#include <sys/types.h>

#define START_SENTENCE 640
#define START_WORDS    512 /* the last bytes of adverbd's words */

/* A start that is under way; all 0: none is.  A fork's child has none. */
struct start {
	pid_t owner; /* the process that has these descriptors; 0: none */
	int listen_fd;
	int status_fd;	   /* to wait for (POLLIN) */
	pid_t broker;	   /* 0: it is not visible */
	uint64_t began_ms; /* CLOCK_MONOTONIC, as all times here */
	/* from then on a thread serves, even if adverbd still lives */
	uint64_t limit_ms;
	uint32_t words_bytes;
	char words[START_WORDS];
	char path[REASON_PATH]; /* the path that is shown */
	/* For the user: the result of the last call, or why it has failed, in a
	 * sentence without a full stop.  Empty: there is nothing to tell. */
	char sentence[START_SENTENCE];
};

/*
 * Starts the broker, if the address is free.  0: a broker serves there now;
 * -EINPROGRESS: the caller calls start_turn when status_fd is readable, or at
 * limit_ms; -EAGAIN: another process is about to start a broker, or the pause
 * after a lost broker lasts (start_lost); -ENOTRECOVERABLE: that pause lasts,
 * and each broker that was started has ended at once; -EPERM: this program has
 * more rights than its caller, and starts none; or another -errno.
 */
int start_begin(struct start *s, uint64_t now_ms, uint64_t patience_ms);
/* Reads the status socket, and has a thread serve if adverbd has ended or
 * limit_ms is over.  Never waits.  Returns 0, -EINPROGRESS or -errno as
 * start_begin does. */
int start_turn(struct start *s, uint64_t now_ms);
/* Abandons a start: the adverbd that was started ends, unless it serves. */
void start_drop(struct start *s);
/*
 * Notes that the broker of that process id is gone.  If that broker is the last
 * one that this process started, and has served for less than a second, the
 * next start has to wait, longer each time.
 */
void start_lost(pid_t broker, uint64_t now_ms);
/* Sets the folder (borrowed) of adverbd, in place of that of the library that
 * this code is part of; ADVERB_BROKER overrides it. */
void start_folder(const char *folder);

#endif
