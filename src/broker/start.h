/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts adverbd in such a way that the program does not notice: the program
 * has no child to wait for, and gets no signal.  If no process can be made, or
 * adverbd cannot be run, a thread of this process is the broker.  A thread also
 * serves if the program is a subreaper (PR_SET_CHILD_SUBREAPER), which would
 * get adverbd as a child.  The first process of a PID namespace gets adverbd as
 * a child, as it gets every orphan.  The listener is bound first.  If several
 * processes start a broker at the same time, only one of them can bind the
 * listener; the connections of the others wait at this listener until its
 * broker serves.
 *
 *	starter                          adverbd
 *	bind, listen
 *	WHO            -- status -->     (waits in the socket)
 *	clone, execve  -- listener -->   0
 *	               <-- status --     2: text that a loader writes
 *	               <-- WHO_IS --     adverbd serves from now on
 *
 * The status socket is a socketpair for messages of proto.h.  adverbd's end is
 * its standard error until adverbd serves.  So the starter reads what a loader
 * writes to standard error, and sees the end of adverbd as a hang-up, although
 * adverbd is not its child.  The starter keeps the listener until it has
 * WHO_IS.  If WHO_IS does not come, a thread serves the same listener, and no
 * connection is lost.  A starter that stops waiting shuts its end of the status
 * socket down: adverbd then cannot send WHO_IS, and ends.  So a thread and
 * adverbd never both serve.
 *
 * libibverbs and librdmacm each have a copy of this code.  Each copy has its
 * own facts about past starts.  The callers' locks ensure that each copy makes
 * only one start at a time.
 */
#ifndef BROKER_START_H
#define BROKER_START_H

#include "broker/reason.h"

#include <stdint.h>
#include <sys/types.h>

#define START_SENTENCE 640 /* bytes of a message, with the final 0 */
#define START_WORDS    512 /* how much of the end of adverbd's output is kept */

/* A start of a broker that is under way; all 0: no start is under way.  In the
 * child of a fork, owner is another process, and no start is under way. */
struct start {
	/* the process that has these descriptors (process_number); 0: none */
	uint64_t owner;
	int listen_fd; /* the listener, which adverbd inherits */
	int status_fd; /* the status socket, to be polled for POLLIN */
	pid_t broker;  /* the pid of adverbd; 0: it is not visible */
	/* when the start began, in milliseconds of CLOCK_MONOTONIC */
	uint64_t began_ms;
	/* the time, in milliseconds of CLOCK_MONOTONIC, from which on a thread
	 * serves in place of an adverbd that does not serve yet */
	uint64_t limit_ms;
	uint32_t words_bytes; /* how many bytes words[] has */
	/* the last bytes that adverbd or its loader wrote to standard error */
	char words[START_WORDS];
	char path[REASON_PATH]; /* the path of adverbd, for messages */
	/* The message for the user about the last call: a sentence without a
	 * full stop.  Empty: there is nothing to tell. */
	char sentence[START_SENTENCE];
};

/*
 * Starts a broker, if no process has the broker's address.  Sets *s, whose
 * earlier contents are lost; s->sentence is for the user.  now_ms:
 * CLOCK_MONOTONIC.  patience_ms: how long other processes wait for a broker; a
 * thread serves before that time is over.  Returns 0: a broker serves now.
 * -EINPROGRESS: the caller calls start_turn when status_fd is readable, or at
 * limit_ms.  -EAGAIN: another process is about to start a broker, or the pause
 * after a lost broker lasts (start_lost).  -ENOTRECOVERABLE: that pause lasts,
 * and many brokers in a row had short lives.  -EPERM: this program has more
 * rights than its caller, and starts no broker.  Or another -errno.
 */
int start_begin(struct start *s, uint64_t now_ms, uint64_t patience_ms);
/*
 * Reads the status socket.  Has a thread serve if adverbd has ended or limit_ms
 * is over.  Sets s->sentence.  now_ms: CLOCK_MONOTONIC.  Never waits.  Returns
 * 0: a broker serves; -EINPROGRESS: the caller calls again when status_fd is
 * readable, or at limit_ms; or another -errno: there is no broker.
 */
int start_turn(struct start *s, uint64_t now_ms);
/* Abandons a start, if one is under way, and closes its descriptors: the
 * adverbd that was started ends, unless it serves already. */
void start_drop(struct start *s);
/* Notes that the broker with that pid is gone; now_ms: CLOCK_MONOTONIC.  The
 * life of a broker that this process has started was short if the broker has
 * served for less than a second.  After a few short lives in a row the next
 * start has to wait.  The wait grows with each further short life, up to a
 * limit. */
void start_lost(pid_t broker, uint64_t now_ms);
/* Sets the folder of adverbd; the string has to stay valid.  Without this call,
 * adverbd is looked for in the folder of the library that this code is part of.
 * ADVERB_BROKER overrides both. */
void start_folder(const char *folder);

#endif
