/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data ends.  A data end is the endpoint at which a program sends and receives
 * the packets of its queue pairs at one port of a host.  Each packet has the
 * bytes of an InfiniBand link, from LRH to VCRC (hdr/lrh.h).  As management
 * datagrams do, packets go through the switches by LID and by multicast group.
 * Each port checks its own state and the packet's P_Key, VL and length.
 *
 * A full queue loses no packet.  Each port has an input buffer for each VL, and
 * a packet crosses a link only if the far end has room for it (lane.h).  A
 * packet takes room at its receiver's port until the receiver fetches the
 * packet.  So while a receiver does not fetch, the packets of that VL stop on
 * one link after the other, back to the senders.  A sender whose port cannot
 * send its packets waits (data_may_send).
 *
 * Packets that wait for too long are lost.  If a receiver has fetched nothing
 * for the time HOQLife, the port at the far end of the receiver's cable
 * discards the packets that have waited that long.  If the receiver is paused
 * then, that port also discards the packets that come for the receiver, until
 * data_unpause.  A switch also discards packets that cannot leave (HOQLife,
 * LifeTimeValue).  The SM sets these times, which may be without limit.  An
 * adapter's port has no HOQLife, and uses one second.
 *
 * The QPNs of an end have the end's number, 1 to DATA_NUMBER_MAX, in their
 * upper 10 bits.  QP 0 and 1 belong to management (fabric.h).
 */
#ifndef FABRIC_DATA_H
#define FABRIC_DATA_H

#include "fabric/fabric.h"

enum {
	DATA_ENDS = 1024,	/* most data ends of a fabric */
	DATA_NUMBER_MAX = 1022, /* greatest data_number */
	DATA_REST_BITS = 14,	/* bits of a QPN below the end's number */
	DATA_GROUPS = 256,	/* most multicast groups of an end */
	/* A sender has to wait when so many of its packets of one VL have not
	 * left its port. */
	DATA_UNSENT = 256,
	/* A sender also has to wait when these packets together have so many
	 * bytes. */
	DATA_UNSENT_BYTES = 256 << 10,
	/* When a fabric has so many multicast packets of data ends, copies
	 * included, such packets are no longer copied, and so do not reach all
	 * receivers. */
	DATA_MULTICASTS = 65536,
};

struct data_end;

/* A packet from LRH to VCRC.  The bytes are valid until data_fetched or
 * data_lost removes the packet, until data_close or data_deafen of its end, or
 * until the next fabric_turn. */
struct data_part {
	const uint8_t *bytes;
	size_t n;
};

/*
 * Attaches a program to a port of a host.  The first port is 1.  Returns the
 * data end, which the caller closes by data_close.  data_owner returns the
 * pointer `owner`.  NULL: *err is -ENODEV (the node is a switch, or has no such
 * port), -EMFILE (the fabric has DATA_ENDS ends, all DATA_NUMBER_MAX numbers of
 * the host are taken, or too many packets of closed ends wait for their
 * links) or -ENOMEM.
 */
struct data_end *data_open(struct node *node, uint32_t port, void *owner,
			   int *err);
/*
 * Attaches the program of `end` to a further port of the same host.  Returns
 * the new data end, which the caller closes by data_close.  Both data ends have
 * the same number, so that a QPN of the program does not depend on the port.
 * data_owner returns the pointer `owner`.  NULL: *err is -ENODEV (the host has
 * no such port), -EBUSY (the program is attached to that port already), -EMFILE
 * (the fabric has DATA_ENDS ends, or too many packets of closed ends wait for
 * their links) or -ENOMEM.
 */
struct data_end *data_open_beside(const struct data_end *end, uint32_t port,
				  void *owner, int *err);
/* Frees the end and the packets that it has not fetched.  The packets that it
 * has sent move on. */
void data_close(struct data_end *end);
/* Makes an end receive nothing any more: frees the packets that it has not
 * fetched, and drops those that come.  data_ready does not return the end.  The
 * end still sends. */
void data_deafen(struct data_end *end);
/* Returns the pointer `owner` of data_open or data_open_beside. */
void *data_owner(const struct data_end *end);
/* Returns the host that has the end's port. */
struct node *data_node(const struct data_end *end);
/* Returns the end's number, 1 to DATA_NUMBER_MAX, which is in the upper bits of
 * the end's QPNs. */
uint32_t data_number(const struct data_end *end);

/* Joins the multicast group whose packets have the destination GID `gid`.
 * Before the call, the program joins the group at the SA, which decides whether
 * the port may join.  Returns 0, also if the end has joined already; -EINVAL:
 * `gid` is not a multicast GID; -ENOSPC: the end has joined DATA_GROUPS
 * groups. */
int data_join(struct data_end *end, const uint8_t gid[16]);
/* Leaves the multicast group `gid`.  Returns 0, or -EINVAL: the end has not
 * joined the group. */
int data_leave(struct data_end *end, const uint8_t gid[16]);

/* Returns whether the end may send: its packets that have not left its port
 * are, on each VL, fewer than DATA_UNSENT, and have less than DATA_UNSENT_BYTES
 * bytes.  Packets to ends at the same port count until they are fetched.  One
 * VL at its limit stops the end's packets of all VLs: a program sends them on
 * one socket, in order.  After false, data_resumed returns the end as soon as,
 * on each VL that was at its limit, the number of these packets and the number
 * of their bytes are at most half of the limits. */
bool data_may_send(struct data_end *end);
/*
 * Sends the packet of n bytes, VCRC included, at `bytes`.  The fabric copies
 * the bytes first, and then looks at the copy only: the bytes may be in memory
 * that another process writes.  Does not check data_may_send.  Returns 0, also
 * if the packet is later dropped in the subnet, as on a wire; -ENETDOWN: the
 * port is not ACTIVE; -ENOMEM: no memory is left, or too many packets move in
 * the fabric; or -EINVAL: an adapter sends no such packet.  These packets get
 * -EINVAL:
 * - the frame or the VCRC is wrong, or the VL is VL15;
 * - the port does not have the SLID, the SGID or the P_Key;
 * - the source QP of a datagram (UD) does not have the end's number;
 * - the DLID is 0 or 0xffff;
 * - the destination QP of a unicast packet is 0 or 1;
 * - a multicast packet is not a datagram to QP 0xffffff, or has no GRH with a
 *   multicast GID.
 */
int data_send(struct data_end *end, const uint8_t *bytes, size_t n);
/* As data_send, but leaves most bytes of a long packet where they are, until
 * the receiver fetches the packet, or until data_settle, which the caller calls
 * before it uses the memory at `bytes` for something else.  Of these bytes no
 * VCRC is computed: they have crossed no cable.  If another process changes
 * them meanwhile, the receiver may get the changed ones; but the headers are
 * always those that were checked. */
int data_lend(struct data_end *end, const uint8_t *bytes, size_t n);
/* Copies the bytes of all packets of the fabric that data_lend has left. */
void data_settle(struct fabric *f);
/* Returns an end that data_may_send has refused and that may now send again.
 * The function returns the end once for this refusal.  NULL: there is no such
 * end. */
struct data_end *data_resumed(struct fabric *f);

/* The changes at a port that its programs are told. */
enum data_change {
	DATA_STATE = 1,	      /* PortState */
	DATA_LID = 2,	      /* LID or LMC */
	DATA_SM = 4,	      /* the SM's LID or SL */
	DATA_PKEYS = 8,	      /* the P_Key table */
	DATA_GIDS = 16,	      /* GidPrefix or a GUID */
	DATA_REREGISTER = 32, /* the SM asks to join groups again */
	DATA_MTU = 64,	      /* NeighborMTU; verbs have no event for it */
	/* No change of the port: a program of the subnet has ended whose arena
	 * the others may have mapped (data_tell_death). */
	DATA_DEATH = 128,
	/* No change of the port, and not in data_changes: the sender of a
	 * struct fabric_proto_news with this bit has mapped the rings, has put
	 * packets into a ring, or has made room there. */
	DATA_RING = 256,
};

/* The end's program has dropped a received datagram (UD) because of the
 * datagram's Q_Key.  Counts the packet at the port, which tells the subnet
 * manager (trap 258).  Ignores bytes that the end cannot have received: for
 * example, those of a port from which the end has fetched no more datagrams
 * than it has refused. */
void data_refused(struct data_end *end, const uint8_t *bytes, size_t n);

/* Returns an end that is not paused and has a packet or changes to fetch; NULL:
 * there is no such end. */
struct data_end *data_ready(struct fabric *f);
/* Returns the changes since the last data_changes_fetched: a set of enum
 * data_change. */
uint32_t data_changes(const struct data_end *end);
/* Clears the set that data_changes returns. */
void data_changes_fetched(struct data_end *end);
/* Returns the oldest packet for an end, from LRH to VCRC, and sets *bytes to
 * its length; NULL: there is no packet.  If no memory is left to write the VL
 * of the last link into a packet, drops this packet as data_lost does, and
 * returns the next one.  The bytes are valid until the next data_fetched,
 * data_lost, data_close or data_deafen of the end, or the next fabric_turn. */
const uint8_t *data_fetch(struct data_end *end, size_t *bytes);
/* Returns the length of the oldest packet for an end, from LRH to VCRC; 0:
 * there is no packet.  Drops packets as data_fetch does. */
size_t data_length(struct data_end *end);
/* Copies the oldest packet for an end to `to`, which has room for the bytes
 * that data_length has returned.  The caller makes no other call for the end
 * between data_length and this call. */
void data_copy(const struct data_end *end, uint8_t *to);
/* Removes the oldest packet for an end, which data_fetch or data_gather has
 * returned, or data_copy has copied. */
void data_fetched(struct data_end *end);
/* Removes the oldest packet for an end, which cannot be given to the program,
 * and counts it as discarded by the port from which it came over the last link.
 * The packet does not count as fetched, so data_refused counts no violation for
 * it. */
void data_lost(struct data_end *end);
/* Stores the oldest packets for an end in parts[]: at most `most`, which is 1
 * or more, and, if it stores more than one, at most `bytes` bytes in all.
 * Drops packets as data_fetch does.  Returns the number of packets stored.  The
 * caller calls data_fetched for each of them that it has used. */
size_t data_gather(struct data_end *end, struct data_part *parts, size_t most,
		   size_t bytes);
/* Adds DATA_DEATH to the changes of each data end of the fabric. */
void data_tell_death(struct fabric *f);
/* Pauses an end whose program does not read its packets: data_ready does not
 * return the end until data_unpause. */
void data_pause(struct data_end *end);
/* Ends the pause: data_ready may return the end again. */
void data_unpause(struct data_end *end);

#endif
