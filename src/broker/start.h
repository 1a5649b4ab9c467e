/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts adverbd so that the program does not see it: no child to wait for, no
 * signal.  Where that is forbidden, or adverbd cannot be run, a thread of this
 * process is the broker.  The listener is bound before, so that of several
 * starters one wins and the others' connections wait for what it starts.
 *
 *	starter                          adverbd
 *	bind, listen
 *	WHO            -- status -->     (a message that waits for it)
 *	clone, execve  -- listener -->   0
 *	               <-- status --     2: what a loader says
 *	               <-- WHO_IS --     it serves from now on
 *
 * The status socket is a socketpair of messages, proto.h's.  adverbd's end is
 * its standard error until it serves, so the words of who cannot even load it
 * come there, and its end is seen without being its parent: as a hang-up.  The
 * starter keeps the listener until WHO_IS; without it a thread serves the same
 * listener, and nobody else's connection is lost.  A starter that waits no
 * longer shuts its end down, after which adverbd cannot say WHO_IS, and ends:
 * never do both serve.
 *
 * One start at a time in a process: the locks of who opens see to it.
 */
#ifndef BROKER_START_H
#define BROKER_START_H

#include "broker/reason.h"

#include <stdint.h>
#include <sys/types.h>

#define START_SENTENCE 640
#define START_WORDS    512 /* the last of what it has said */

/* A start that is under way; all 0: none is.  A fork's child has none. */
struct start {
	pid_t owner; /* whose descriptors these are; 0: there are none */
	int listen_fd;
	int status_fd;	   /* to wait for (POLLIN) */
	pid_t broker;	   /* 0: it cannot be seen */
	uint64_t began_ms; /* CLOCK_MONOTONIC, as all times here */
	uint64_t limit_ms; /* then a thread serves, though it still lives */
	uint32_t words_bytes;
	char words[START_WORDS];
	char path[REASON_PATH]; /* as it is shown */
	/* For people: what came of the last call, or why it has failed, a
	 * sentence without a full stop.  Empty: nothing. */
	char sentence[START_SENTENCE];
};

/*
 * Starts the broker, if the address is free.  0: somebody serves it now;
 * -EINPROGRESS: start_turn knows more, when there is something to read from
 * status_fd or at limit_ms; -EAGAIN: another process is about to start one, or
 * it is too early (start_lost); -ENOTRECOVERABLE: it is too early, and each
 * that was started has ended at once; -EPERM: this program has rights of its
 * own, and starts none; or another -errno.
 */
int start_begin(struct start *s, uint64_t now_ms, uint64_t patience_ms);
/* Never waits.  0, -EINPROGRESS or -errno, as above. */
int start_turn(struct start *s, uint64_t now_ms);
/* Leaves it to itself: it ends, unless it serves. */
void start_drop(struct start *s);
/* The broker of that process id has gone: if it is the last that this process
 * started, and has served for less than a second, the next one has to wait,
 * longer each time. */
void start_lost(pid_t broker, uint64_t now_ms);
/* adverbd lies in this folder (borrowed), and not beside what we are part of;
 * ADVERB_BROKER has the last word. */
void start_folder(const char *folder);

#endif
