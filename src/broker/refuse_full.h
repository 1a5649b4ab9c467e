/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that the broker refuses because no descriptor is left, or because
 * no further connection of the user is admitted (admission.h).  The broker
 * keeps such a connection outside of the table of clients.  When the client has
 * sent its first message, the broker tells the client why it is refused, and
 * closes the connection.  The broker waits for that message for REFUSE_FULL_MS
 * at most.
 *
 * If no descriptor is left, one connection at a time takes the place of a spare
 * descriptor, and other connections wait at the listener.  If a connection is
 * refused and needs no spare descriptor, it is kept, but only one such
 * connection at a time: further ones are closed at once.
 *
 * Only connections of the broker's own user are kept here: the thread of
 * another user (user_receiver.h) refuses that user's connections.
 *
 * Part of the broker's loop: one owner, no lock.  A call waits only while it
 * closes descriptors that a client's message brings (refuse_full_answer).
 * Times are those of CLOCK_MONOTONIC, in milliseconds.
 */
#ifndef BROKER_REFUSE_FULL_H
#define BROKER_REFUSE_FULL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long the first message of a client is awaited: a client sends it as soon
 * as it has connected. */
#define REFUSE_FULL_MS 100

/* The slots for the connections that are kept. */
enum refuse_full_place {
	/* the connection that has the place of the spare descriptor, or that
	 * took the last free descriptor while the spare one was still open */
	REFUSE_FULL_SPARE,
	/* a connection that was accepted with a descriptor of its own, while
	 * the table of clients was full */
	REFUSE_FULL_SHARE,
	REFUSE_FULL_SLOTS
};

struct refuse_full_slot {
	int fd;		   /* -1: none */
	uint64_t since_ms; /* when the connection was accepted */
	char why[96];	   /* the sentence that the client is told */
	int err;	   /* the errno that goes with why, positive */
};

struct refuse_full {
	/* Keeps a descriptor free for a connection that is refused; -1: none.
	 */
	int spare_fd;
	/* A connection has taken the place of the spare descriptor, or waits at
	 * the listener because no descriptor is left. */
	bool is_spent;
	struct refuse_full_slot slot[REFUSE_FULL_SLOTS];
};

/* Opens the spare descriptor, and makes all slots empty. */
void refuse_full_init(struct refuse_full *a);
/* Closes the connections that are left and the spare descriptor. */
void refuse_full_close(struct refuse_full *a);
/* The caller calls this after accept has failed because no descriptor is left.
 * Closes the spare descriptor, and accepts in its place the first connection
 * that waits at the listener.  Returns the connection, which the caller owns;
 * -1: none waits, or no descriptor was left, because there was no spare one or
 * another thread or process took its place.  In the second case
 * refuse_full_may_accept returns false until a descriptor is left again. */
int refuse_full_accept(struct refuse_full *a, int listen_fd);
/* Takes ownership of the connection fd, and keeps it in `place` until
 * refuse_full_turn refuses it with err, a positive errno, and the sentence why,
 * which is copied.  Closes fd at once if that place is taken. */
void refuse_full_take(struct refuse_full *a, enum refuse_full_place place,
		      int fd, int err, const char *why, uint64_t now_ms);
/* Fills *r for the connection fd, which was accepted at now_ms and is to be
 * refused with err, a positive errno, and the sentence why, which is copied. */
void refuse_full_fill(struct refuse_full_slot *r, int fd, int err,
		      const char *why, uint64_t now_ms);
/* Tells the client of r why it is refused, if the client has sent its first
 * message, or has sent nothing for REFUSE_FULL_MS.  The call may wait, since it
 * closes the descriptors that the message brings (user_receiver.h).  True: the
 * client was told, or has closed the connection; the caller closes r->fd.
 * False: the client has sent nothing yet, and has time left until
 * REFUSE_FULL_MS after r->since_ms. */
bool refuse_full_answer(const struct refuse_full_slot *r, uint64_t now_ms);
/* Tells each client that has sent its first message why it is refused, and
 * closes its connection.  Does the same with a client that has sent nothing for
 * REFUSE_FULL_MS.  Opens the spare descriptor again if a descriptor is left. */
void refuse_full_turn(struct refuse_full *a, uint64_t now_ms);
/* May the listener be polled?  False while a connection has the place of the
 * spare descriptor, or no descriptor is left: a further connection could not be
 * accepted. */
bool refuse_full_may_accept(const struct refuse_full *a);
/* Fills REFUSE_FULL_SLOTS entries at p, by which the caller polls the
 * connections. */
void refuse_full_poll(const struct refuse_full *a, struct pollfd *p);
/* Returns how many milliseconds poll may wait, so that refuse_full_turn closes
 * connections and looks for a descriptor in time.  `wait`: how long poll may
 * wait for other reasons; -1: without an end. */
int refuse_full_patience(const struct refuse_full *a, int wait);
/* Writes a sentence to why, of size bytes, which says what the broker lacks and
 * how to mend that.  err, positive, names what the broker lacks.  EMFILE: the
 * limit on the broker's open files is reached; ENFILE: that of the machine is
 * reached; ETOOMANYREFS: too many descriptors are under way; EAGAIN: a thread;
 * any other errno: memory. */
void refuse_full_why(int err, char *why, size_t size);

#endif
