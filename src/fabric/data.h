/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data ends: programs that send and receive the packets of their queue pairs at
 * a port of a host.  A packet is that of an InfiniBand link, from LRH to VCRC
 * (hdr/lrh.h).  It goes through the switches by LID and by multicast group, as
 * management datagrams do, and each port judges it: state, P_Key, lane, MTU.
 *
 * No packet is lost because a queue is full.  A packet counts against its
 * sender until the receivers have fetched it; a sender with too many of them
 * waits (data_may_send).  Only a receiver that does not read for the lifetime
 * that the SM has set for the head of a queue (HOQLife) loses packets, so that
 * it does not stop its senders for good.
 *
 * The QPNs of an end have its number, 1 to DATA_NUMBER_MAX, in their upper 10
 * bits.  QP 0 and 1 belong to management (fabric.h).
 */
#ifndef FABRIC_DATA_H
#define FABRIC_DATA_H

#include "fabric/fabric.h"

enum {
	DATA_ENDS = 1024,	/* of a fabric */
	DATA_NUMBER_MAX = 1022, /* of a host's ends */
	DATA_REST_BITS = 14,	/* of a QPN, below the end's number */
	DATA_GROUPS = 256,	/* multicast groups of an end */
	DATA_UNREAD = 256, /* packets of a sender that nobody has fetched */
	DATA_UNREAD_BYTES = 256 << 10,
	/* While a fabric has so many packets, copies of a multicast
	 * packet are discarded. */
	DATA_PACKETS = 65536,
};

struct data_end;

/*
 * Attaches a program to a port of a host.  The pointer `owner` comes back from
 * data_owner.  Returns NULL with *err -ENODEV (the node is no host with such a
 * port), -EMFILE (DATA_ENDS of the fabric or DATA_NUMBER_MAX of the host are
 * open, or too many packets of closed ends wait for their receivers) or
 * -ENOMEM.
 */
struct data_end *data_open(struct node *node, uint32_t port, void *owner,
			   int *err);
/* Frees the end.  Its packets that are on their way still arrive. */
void data_close(struct data_end *end);
void *data_owner(const struct data_end *end);
/* The end's number in its QPNs. */
uint32_t data_number(const struct data_end *end);

/* Joins or leaves the group whose packets have the destination GID `gid`.  The
 * caller makes sure, by the SA, that the SM lets the port join.  Return 0;
 * -EINVAL: not a multicast GID, or not joined; -ENOMEM: DATA_GROUPS are joined.
 */
int data_join(struct data_end *end, const uint8_t gid[16]);
int data_leave(struct data_end *end, const uint8_t gid[16]);

/* Returns whether the end may send.  If not, data_resumed returns the end once
 * it may send again. */
bool data_may_send(struct data_end *end);
/*
 * Sends the packet of n bytes, VCRC included, at `bytes`.  Returns 0, also if
 * the packet is then dropped on its way, as on a wire; -EINVAL: an adapter
 * sends no such packet: wrong frame or VCRC, an SLID, SGID or P_Key that the
 * port does not have, a QP that is not the end's own, or one of management;
 * -ENETDOWN: the port is not ACTIVE; -ENOMEM.
 */
int data_send(struct data_end *end, const uint8_t *bytes, size_t n);
/* Returns an end that had to wait, and for which the caller calls data_may_send
 * again; NULL: there is none. */
struct data_end *data_resumed(struct fabric *f);

/* What has changed at the port since data_told was called last. */
enum data_change {
	DATA_STATE = 1,	      /* PortState */
	DATA_LID = 2,	      /* LID or LMC */
	DATA_SM = 4,	      /* the SM's LID or SL */
	DATA_PKEYS = 8,	      /* the P_Key table */
	DATA_GIDS = 16,	      /* GidPrefix or a GUID */
	DATA_REREGISTER = 32, /* the SM asks to join groups again */
};

/* Returns an end that has a packet or changes, or NULL. */
struct data_end *data_ready(struct fabric *f);
/* Returns a set of enum data_change, which data_told clears. */
uint32_t data_changes(const struct data_end *end);
void data_told(struct data_end *end);
/* Returns the first packet of an end and sets *bytes; NULL: there is none.  The
 * packet stays until data_fetched. */
const uint8_t *data_fetch(struct data_end *end, size_t *bytes);
void data_fetched(struct data_end *end);
/* Takes the end off the list of data_ready until data_unpause: its program does
 * not read. */
void data_pause(struct data_end *end);
void data_unpause(struct data_end *end);

#endif
