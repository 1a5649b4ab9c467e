/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that receive what processes of other users send to the broker: one
 * thread for each user.
 *
 * A message may bring descriptors.  The process that receives the message, or
 * closes the socket in which the message waits, may then close the last
 * descriptor of a file.  That close may take as long as the sender likes: for
 * example, the close of a TCP socket with SO_LINGER and unsent data.  So the
 * broker's loop never receives from a connection of another user, and never
 * closes one for which there is a thread.  The user's thread does both, and
 * only that user waits.  The thread passes each message on without
 * descriptors:
 *
 *	process -> connection -> the user's thread -> pair -> the broker's loop
 *
 * The thread receives without room for descriptors, so the kernel closes them
 * and none gets a number in this process.  A close(2) of a number would also
 * flush the file, and no signal ends the flush of a file on FUSE.  Answers do
 * not pass the thread: the loop sends them at the connection.
 *
 * The thread also answers and closes the connections that the broker refuses.
 * If user_receiver_interrupt_by_signal was called, the loop sends a signal
 * again and again to each thread that has connections to close.  The signal
 * ends the wait of a close.  While USER_RECEIVER_UNCLOSED or more connections
 * of one user are still to be closed, the broker accepts no connection.
 *
 * Users that cannot be told from each other (USER_NONE, user.h) have a thread
 * for each connection.  A thread ends with its user's last connection.
 *
 * All functions belong to the thread of the broker's loop.  user_receiver_end
 * waits.  Without a thread, user_receiver_refuse and user_receiver_turn may
 * wait in a close.  No other function waits.
 */
#ifndef BROKER_USER_RECEIVER_H
#define BROKER_USER_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* If so many connections of one user are still to be closed, the broker accepts
 * no further connection. */
#define USER_RECEIVER_UNCLOSED 64

struct user_receiver;
/* a connection of another user, as its user's thread has it */
struct user_receiver_conn;

struct user_receivers {
	struct user_receiver *first; /* the threads that have connections */
	/* A thread for the next user.  It is made early: if no descriptor is
	 * left, no thread can be made, but the user's connection has to be
	 * refused and closed.  NULL: none. */
	struct user_receiver *spare;
	/* a user has had a thread, so each turn tries to make the spare one */
	bool has_served;
	bool no_threads; /* see user_receiver_init */
};

/* Lets the broker's loop interrupt the threads by SIGURG, for which this
 * function installs a handler that does nothing.  Only for a process that has
 * no other use for SIGURG. */
void user_receiver_interrupt_by_signal(void);
/* Makes *s, with the spare thread if it can be made.  no_threads: there are no
 * threads, and user_receiver_turn does their work. */
void user_receiver_init(struct user_receivers *s, bool no_threads);
/*
 * Gives a connection to the thread of its user.  fd: the connection, which the
 * thread closes after user_receiver_close; until then the caller may send at
 * fd, and does not receive or close.  *in_fd: the socket where the caller reads
 * what the client sends, message by message; the caller owns it.  A message
 * that is too long for every protocol of the broker is cut to a length that is
 * still wrong in every protocol.
 * At the end of the connection, *in_fd is at its end, too.  *conn: the
 * connection, which is valid until user_receiver_close.  Returns 0, or -errno,
 * and fd is still the caller's: there is no memory (-ENOMEM), no descriptor
 * (-EMFILE or -ENFILE), or no thread (-EAGAIN).
 */
int user_receiver_take(struct user_receivers *s, int fd, uid_t user, int *in_fd,
		       struct user_receiver_conn **conn);
/* Has the thread of `user` refuse the connection fd with err, a positive errno,
 * and a copy of the sentence `why`, and then close fd (refuse_full_answer).
 * Takes ownership of fd.  If no further thread can be made, the thread of
 * another user does that; if there is no thread or no memory, fd is closed at
 * once. */
void user_receiver_refuse(struct user_receivers *s, int fd, uid_t user, int err,
			  const char *why);
/* Notes that the process of c has ended, or that the client has closed the
 * connection.  The socket *in_fd of c is at its end after the messages that
 * wait now, 1024 at most, even if another process has the connection open. */
void user_receiver_finish(struct user_receiver_conn *c);
/* Has the thread close the connection.  c is invalid from then on. */
void user_receiver_close(struct user_receiver_conn *c);
/* May the broker accept connections?  True: no user has USER_RECEIVER_UNCLOSED
 * connections that are still to be closed. */
bool user_receiver_may_accept(const struct user_receivers *s);
/* Frees the threads that have ended, makes the spare thread, and interrupts
 * threads that have connections to close.  Returns for how many milliseconds
 * the caller's poll(2) may wait; -1: without a limit.  wait: the limit that the
 * caller has without these threads, with the same meaning of -1. */
int user_receiver_turn(struct user_receivers *s, int wait);
/* Ends all threads, and closes the connections that are left.  Waits for each
 * thread for a tenth of a second at most; a thread that still waits in a close
 * ends by itself later. */
void user_receiver_end(struct user_receivers *s);

#endif
