/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages that wait for one client of connection management.  A message
 * waits until the end of the turn of the broker's loop, and then until the
 * client's socket has room.  The messages count for the share of the client's
 * user.  Part of the broker's loop: one owner, no lock, no call waits.
 */
#ifndef BROKER_CM_OUTPUT_H
#define BROKER_CM_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "broker/share.h"
#include "util/list.h"

struct cm_output {
	int fd;			  /* the client's connection, borrowed */
	struct user_share *share; /* that of the client's user; borrowed */
	struct list queue;	  /* the messages that wait */
	uint32_t waiting;	  /* number of messages in the queue */
	uint32_t most; /* the most that waited since the queue was empty */
	/* The client did not read its messages: the queue takes none but
	 * CMPROTO_DROPPED. */
	bool is_lost;
	/* The last cm_output_send has failed for a lack of memory.  The socket
	 * may have room nevertheless, and then a poll(2) for POLLOUT returns at
	 * once. */
	bool lacks_memory;
};

/* Makes an empty queue for the client's socket fd; borrows fd and share. */
void cm_output_init(struct cm_output *o, int fd, struct user_share *share);
/* Frees the messages that wait. */
void cm_output_fini(struct cm_output *o);
/* Copies m into the queue, and sets magic and version of the copy.  False: m is
 * not in the queue, since the user's share of bytes is used up, there is no
 * memory, or is_lost is set. */
bool cm_output_push(struct cm_output *o, const struct cmproto *m);
/* Frees the messages that wait for a client that does not read them, and queues
 * CMPROTO_DROPPED in their place, if there is room.  Sets is_lost. */
void cm_output_lose(struct cm_output *o);
/* Sends as many messages as the socket takes.  False: the caller drops the
 * client, since sendmmsg(2) has failed for another reason than a full socket, a
 * signal or a lack of memory, or since is_lost is set and all has been sent. */
bool cm_output_send(struct cm_output *o);

#endif
