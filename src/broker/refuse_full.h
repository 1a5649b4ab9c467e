/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that the broker refuses because no descriptor is left, or because
 * a share is used up.  Such a connection is kept, outside of the table of
 * clients, until the client has sent its first message and has been told why it
 * is refused, REFUSE_FULL_MS at most.
 *
 * For want of a descriptor one connection at a time takes the place of a spare
 * descriptor; the others wait at the listener.  A connection that has a
 * descriptor is kept in one of a few slots, one for each user, so that a user
 * that sends nothing delays no other user; further connections are closed at
 * once.
 *
 * One owner, the broker's loop; no lock.  Nothing here waits.
 */
#ifndef BROKER_REFUSE_FULL_H
#define BROKER_REFUSE_FULL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define REFUSE_FULL_MS	  100 /* a client speaks as soon as it has come */
#define REFUSE_FULL_SLOTS 9

struct refuse_full_slot {
	int fd; /* -1: none */
	uid_t user;
	uint64_t since_ms;
	char why[96]; /* the sentence */
	int err;      /* and its errno */
};

struct refuse_full {
	int spare_fd;
	/* Slot 0 has the connection that took the spare descriptor's place. */
	struct refuse_full_slot slot[REFUSE_FULL_SLOTS];
};

/* Opens the spare descriptor; no slot has a connection. */
void refuse_full_init(struct refuse_full *a);
/* Closes the connections that are left and the spare descriptor. */
void refuse_full_close(struct refuse_full *a);
/* Accepts the first connection that waits at the listener in the place of the
 * spare descriptor, after accept has failed for want of a descriptor. */
void refuse_full_accept(struct refuse_full *a, int listen_fd, uint64_t now_ms);
/* Takes the connection fd of user, and refuses it with EUSERS and the sentence
 * why when the client has sent its first message. */
void refuse_full_take(struct refuse_full *a, int fd, uid_t user,
		      const char *why, uint64_t now_ms);
/* Tells each client that has sent its first message why it is refused, and
 * closes its connection.  Closes also the connection of a client that has sent
 * nothing in time. */
void refuse_full_turn(struct refuse_full *a, uint64_t now_ms);
/* Whether the listener may be polled: accept has a descriptor. */
bool refuse_full_may_accept(const struct refuse_full *a);
/* Fills the REFUSE_FULL_SLOTS entries at p, by which the connections are
 * polled. */
void refuse_full_poll(const struct refuse_full *a, struct pollfd *p);
/* Returns how many milliseconds poll may wait, if it would otherwise wait for
 * `wait` (-1: without an end). */
int refuse_full_patience(const struct refuse_full *a, int wait);
/* Writes a sentence, of at most size bytes, about the limit on open files
 * (EMFILE) or on descriptors under way (ETOOMANYREFS). */
void refuse_full_why(int err, char *why, size_t size);

#endif
