/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages that a process receives from the socket of a data end, taken
 * apart into packets (FABRIC_PROTO_DATA in fabric/proto.h).  Messages are
 * received into memory of this process, which no other process can write.
 *
 * Lock: the caller's.
 */
#ifndef HOST_LINK_BATCH_H
#define HOST_LINK_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LINK_BATCH_MESSAGES 4 /* messages of one receive */

/* Messages of one receive. */
struct link_batch {
	uint32_t count; /* of messages */
	uint32_t next;	/* the index of the message that is taken apart */
	uint32_t taken; /* how many bytes of that message were taken */
	struct mmsghdr heads[LINK_BATCH_MESSAGES]; /* for recvmmsg(2) */
	struct iovec parts[LINK_BATCH_MESSAGES];   /* each message's room */
	uint8_t *bytes; /* room for all messages; owned */
};

/* Prepares an empty batch.  Returns 0 or -ENOMEM. */
int link_batch_init(struct link_batch *b);
/* Frees the memory of a batch, prepared or all zeroes. */
void link_batch_fini(struct link_batch *b);
/* Receives messages from a socket into a batch that has nothing left to take.
 * Returns 0, also if there are no messages, or -errno. */
int link_batch_fill(struct link_batch *b, int fd);
/* Forgets what was not taken. */
void link_batch_clear(struct link_batch *b);
/* Has the batch anything to take? */
bool link_batch_has(const struct link_batch *b);
/*
 * Takes the next packet, or the whole message if it does not begin with a whole
 * packet: sets *bytes and *n, which stay valid until link_batch_fill.  *n is 0
 * if the fabric has closed the socket.  Called only if link_batch_has.  Returns
 * 0, or -EPROTO: the message is longer than a fabric sends, bytes that follow a
 * packet in the message are no packet, or the message begins with no packet
 * although the message is longer than a packet can be.
 */
int link_batch_take(struct link_batch *b, const uint8_t **bytes, size_t *n);

#endif
