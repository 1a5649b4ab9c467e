/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that receive what processes of other users send to the broker: one
 * thread for each user.
 *
 * A message may bring descriptors, and whoever receives it, or closes the
 * socket in which it waits, closes the last descriptor of such a file.  That
 * close may take as long as the sender likes: for example, of a TCP socket with
 * SO_LINGER and unsent data.  So the broker's loop never receives from a
 * connection of another user, and never closes one.  The user's thread does
 * both, and only that user waits.  It passes each message on without
 * descriptors:
 *
 *	process -> connection -> the user's thread -> pair -> the broker's loop
 *
 * The thread has no room for descriptors when it receives, so that none gets a
 * number in this process: the close of a number also flushes the file, which no
 * signal ends if the file is one of FUSE.  Answers do not pass the thread: the
 * loop sends them at the connection.
 *
 * The thread also answers and closes the connections that the broker refuses.
 * While a thread has connections to close, the loop interrupts it again and
 * again by a signal, which ends the wait of a close.  If more than
 * USER_RECEIVER_OWED connections of a user are to be closed, the broker accepts
 * no connection until the thread has closed some.
 *
 * Users that cannot be told from each other (USER_NONE, user.h) have a thread
 * for each connection.  A thread ends with its user's last connection.
 *
 * All functions belong to the thread of the broker's loop.  Only
 * user_receiver_end waits.
 */
#ifndef BROKER_USER_RECEIVER_H
#define BROKER_USER_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How many connections of one user may wait to be closed by its thread. */
#define USER_RECEIVER_OWED 64

struct user_receiver;
/* a connection of another user, as its user's thread has it */
struct user_receiver_conn;

struct user_receivers {
	struct user_receiver *first; /* the threads that have connections */
	/* A thread for the next user.  If no descriptor is left, and so no
	 * thread can be made, this one closes the connection of that user.
	 * NULL: none. */
	struct user_receiver *spare;
	bool no_threads; /* see user_receiver_init */
};

/* Lets the broker's loop interrupt the threads, by SIGURG, of which this
 * function makes a handler that does nothing.  Only for a process that has no
 * other use for SIGURG. */
void user_receiver_interrupt_by_signal(void);
/* Makes *s, with the spare thread if it can be made.  no_threads:
 * user_receiver_turn does what otherwise the threads do. */
void user_receiver_init(struct user_receivers *s, bool no_threads);
/*
 * Gives a connection to the thread of its user.  fd: the connection, which the
 * thread closes after user_receiver_close; until then the caller may send at
 * fd, and does not receive or close.  *in_fd: the socket where the caller reads
 * what the client sends, in messages of the same lengths; the caller owns it.
 * At the end of the connection, *in_fd is at its end, too.  Returns NULL if
 * there is no memory, no descriptor, or no thread; fd is still the caller's
 * then.
 */
struct user_receiver_conn *user_receiver_take(struct user_receivers *s, int fd,
					      uid_t user, int *in_fd);
/* Refuses a connection with the errno err and a sentence, as refuse_full.h
 * describes, and closes it.  Takes ownership of fd.  If no further thread can
 * be made, the thread of another user does that. */
void user_receiver_refuse(struct user_receivers *s, int fd, uid_t user, int err,
			  const char *why);
/* Notes that the process of c has ended: after the messages that wait now, and
 * at most a thousand, the socket in_fd of c is at its end, even if another
 * process has the connection open. */
void user_receiver_finish(struct user_receiver_conn *c);
/* Closes the connection.  c is invalid from then on. */
void user_receiver_close(struct user_receiver_conn *c);
/* Whether the broker may accept connections. */
bool user_receiver_may_accept(const struct user_receivers *s);
/* Frees the threads that have ended, makes the spare thread, and interrupts
 * threads that have connections to close.  Returns how many milliseconds poll
 * may wait; `wait`: how long it may wait for other reasons; -1: without an end.
 */
int user_receiver_turn(struct user_receivers *s, int wait);
/* Ends all threads, and closes the connections that are left.  Waits for each
 * thread for a tenth of a second at most; a thread that still waits in a close
 * ends by itself later. */
void user_receiver_end(struct user_receivers *s);

#endif
