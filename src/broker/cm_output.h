/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages that wait for one client of connection management, until the
 * end of the loop's turn and then until its socket takes them.  They count for
 * the share of its user.  Part of the broker's loop: one owner, no lock, no
 * call waits.
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
	struct user_share *share; /* borrowed */
	struct list queue;
	uint32_t waiting; /* messages in the queue */
	uint32_t most;	  /* the most that waited since the queue was empty */
	/* The client did not read: the queue has CMPROTO_DROPPED, and takes no
	 * other message. */
	bool is_lost;
};

/* Makes an empty queue for the client's socket fd; borrows fd and share. */
void cm_output_init(struct cm_output *o, int fd, struct user_share *share);
/* Frees what waits. */
void cm_output_fini(struct cm_output *o);
/* Copies m into the queue.  False: the user's share of bytes is used up, there
 * is no memory, or is_lost is set. */
bool cm_output_push(struct cm_output *o, const struct cmproto *m);
/* Frees what waits for a client that does not read it, and has the client read
 * CMPROTO_DROPPED instead. */
void cm_output_lose(struct cm_output *o);
/* Sends what the socket takes.  False: the caller drops the client, since its
 * socket is broken, or since it is lost and all has been sent. */
bool cm_output_send(struct cm_output *o);

#endif
