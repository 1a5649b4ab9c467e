/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data ends inside the fabric (data.h): the packets that wait for them, what
 * their senders may still send, and the changes of their ports.
 */
#ifndef FABRIC_DATA_END_H
#define FABRIC_DATA_END_H

#include "fabric/data.h"
#include "fabric/inside.h"

struct data_end {
	struct list of_fabric;
	struct list of_port;
	struct list ready;
	struct list resumed;
	struct port *port;
	void *owner;
	uint64_t fetched_ms; /* when a packet was last fetched */
	struct list inbox;   /* struct packet.list, which wait to be fetched */
	struct list unread;  /* struct payload.of_sender: own, unfetched */
	uint32_t number;     /* upper bits of its QPNs */
	uint32_t unread_count;
	uint32_t unread_bytes;
	uint32_t changes; /* enum data_change */
	uint32_t group_count;
	uint8_t (*groups)[16]; /* DATA_GROUPS */
	bool is_paused;
	bool waits; /* was told that it may not send */
};

void data_end_free_all(struct fabric *f);
/* Drops one reference to a payload; the last one lets its sender send more. */
void data_end_release(struct payload *payload);
/* Gives a packet to the data ends for which it is.  Takes ownership of the
 * packet, which is at a port of its destination. */
void data_end_take(struct packet *p);
/* Returns the place of a group in end->groups; end->group_count: the end has
 * not joined the group. */
uint32_t data_end_group(const struct data_end *end, const uint8_t gid[16]);
/* Tells a port's data ends of changes, a set of enum data_change. */
void data_end_note(struct port *port, uint32_t changes);
/* Puts an end on the list of data_ready if it has something to fetch. */
void data_end_wake(struct data_end *end);
/* Drops packets that have waited too long. */
void data_end_tick(struct fabric *f);
uint64_t data_end_deadline(const struct fabric *f);

#endif
