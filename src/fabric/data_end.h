/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data ends inside the fabric (data.h): the packets that wait for an end, the
 * packets from an end that have not left its port, and the changes of the port.
 */
#ifndef FABRIC_DATA_END_H
#define FABRIC_DATA_END_H

#include "fabric/data.h"
#include "fabric/inside.h"

/* Counts the packets of one VL that a data end has sent and that have not left
 * its port. */
struct unsent {
	uint32_t count; /* how many packets */
	uint32_t bytes; /* the length of these packets together */
};

/* A port from which an end has fetched datagrams (UD). */
struct data_sender {
	uint16_t lid; /* the SLID of the datagrams */
	/* The datagrams that the end has fetched and data_refused has not
	 * counted, at most UINT16_MAX. */
	uint16_t fetched;
};

struct data_end {
	struct list of_fabric; /* in data_ends.all */
	struct list of_port;   /* in port.data_ends */
	struct list ready;     /* in data_ends.ready */
	struct list resumed;   /* in data_ends.resumed */
	struct port *port;
	void *owner;	     /* what data_owner returns */
	uint64_t fetched_ms; /* when a packet was last fetched; 0: never */
	struct list inbox;   /* struct packet.list: packets to fetch */
	/* struct origin.list: packets of this end that have not left its port.
	 */
	struct list unsent;
	struct unsent unsent_on[LANES]; /* these packets by VL */
	uint32_t full;			/* a bit for each VL at its limit */
	/* A bit for each VL that was at its limit when data_may_send refused
	 * the end; cleared when the end is put into data_ends.resumed. */
	uint32_t waits_on;
	uint32_t number;       /* upper bits of the end's QPNs */
	uint32_t changes;      /* set of enum data_change */
	uint32_t group_count;  /* joined groups */
	uint8_t (*groups)[16]; /* their GIDs; room for DATA_GROUPS */
	/* DATA_SENDERS entries, the index of a LID is its lower bits; NULL: no
	 * datagram was fetched, or there was no memory. */
	struct data_sender *senders;
	bool is_deaf;	/* data_deafen was called */
	bool is_paused; /* between data_pause and data_unpause */
	/* The end is paused, and has lost packets because its program did not
	 * fetch them in time.  Packets that come are lost, too. */
	bool is_stalled;
};

enum { DATA_SENDERS = 1024 };

/* Notes the sender of a datagram (UD) that the end has fetched.  Does nothing
 * for another packet, or if no memory is left. */
void data_end_note_sender(struct data_end *end, const struct packet *p);
/* Has the end fetched a datagram with this SLID that was not counted before?
 * If so, counts the datagram.  False also if the end has since fetched a
 * datagram of another SLID with the same lower bits, or if there was no memory.
 */
bool data_end_count_sender(struct data_end *end, uint16_t lid);
/* Closes all data ends of the fabric. */
void data_end_free_all(struct fabric *f);
/* Gives a packet that is at its destination port to the port's data end with
 * the number in the destination QPN, or to each data end there that has joined
 * the packet's group.  Drops the packet if no P_Key of the port fits it, if
 * there is no such data end, or if that end is stalled.  A member of the group
 * gets no copy if it is stalled or if packet_copy fails; no member gets one if
 * no memory is left for the bytes that the copies share.  Takes ownership of
 * the packet. */
void data_end_take(struct packet *p);
/* Returns the port's data end that receives packets for this number; NULL:
 * there is none. */
struct data_end *data_end_find(const struct port *port, uint32_t number);
/* Returns the index of a group in end->groups; end->group_count: the end has
 * not joined the group. */
uint32_t data_end_group(const struct data_end *end, const uint8_t gid[16]);
/* Counts a lost packet at the port from which the packet came over the last
 * link.  The packet could not be copied or given to its receiver, or its
 * receiver did not fetch it in time.  The copies of a multicast packet for the
 * members at one port count as one packet.  A packet that has crossed no link
 * is not counted. */
void data_end_count_lost(struct packet *p);
/* Writes the VL of the last link into the LRH of a packet that is at its
 * destination port, and the VCRC that then fits.  If other packets share the
 * bytes, the packet first gets its own copy.  False: there is no memory for the
 * copy. */
bool data_end_write_vl(struct packet *p);
/* Drops the packets that, at f->now_ms, have waited too long to be fetched. */
void data_end_tick(struct fabric *f);
/* Returns the time at which data_end_tick has something to do, in ms;
 * FABRIC_NEVER: never. */
uint64_t data_end_deadline(const struct fabric *f);

/* data_wake.c */
/* Gives `changes`, a set of enum data_change, to the function of
 * fabric_watch_ports, and adds them to the changes that each data end at the
 * port has to fetch.  Does nothing if the set is empty. */
void data_wake_port(struct port *port, uint32_t changes);
/* Appends an end to data_ends.ready if the end is neither paused nor deaf, and
 * has a packet or changes to fetch. */
void data_wake(struct data_end *end);

#endif
