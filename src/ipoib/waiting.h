/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets that wait for the path to a neighbour, the connection with it, or
 * the join of a group: at most WAITING_MAX for each neighbour or group.  The
 * kernel's IPoIB has the same bound for a neighbour (IPOIB_MAX_PATH_REC_QUEUE).
 * When one more packet comes, the oldest is dropped.  Owner: a neighbour or a
 * group.
 */
#ifndef IPOIB_WAITING_H
#define IPOIB_WAITING_H

#include <stddef.h>
#include <stdint.h>

#define WAITING_MAX 3

struct waiting_packet {
	uint8_t *p; /* allocated */
	size_t bytes;
};

/* All zero: no packet waits. */
struct waiting {
	struct waiting_packet all[WAITING_MAX];
	uint32_t count;
};

/* Appends a copy of a packet.  Returns how many packets were dropped: 1 if the
 * queue was full, or if there is no memory for the copy, which is then not
 * appended. */
uint32_t waiting_add(struct waiting *w, const uint8_t *p, size_t bytes);
/* Takes the oldest packet, whose p the caller frees; p is NULL if there is
 * none. */
struct waiting_packet waiting_take(struct waiting *w);
/* Drops all packets.  Returns how many. */
uint32_t waiting_drop(struct waiting *w);

#endif
