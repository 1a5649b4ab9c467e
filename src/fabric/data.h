/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data ends: programs that send and receive the packets of their queue pairs at
 * a port of a host.  A packet is that of an InfiniBand link, from LRH to VCRC
 * (hdr/lrh.h).  It goes through the switches by LID and by multicast group, as
 * management datagrams do, and each port judges it: state, P_Key, lane, MTU.
 *
 * No packet is lost because a queue is full.  A packet counts against its
 * sender until the receivers have fetched it, and a sender with too many such
 * packets waits (data_may_send).  Only a receiver that does not read loses
 * packets: the port in front of the receiver discards a packet that has been
 * the first to be fetched for longer than HOQLife, which the SM sets.  So the
 * receiver does not stop its senders for good.
 *
 * The QPNs of an end have its number, 1 to DATA_NUMBER_MAX, in their upper 10
 * bits.  QP 0 and 1 belong to management (fabric.h).
 */
#ifndef FABRIC_DATA_H
#define FABRIC_DATA_H

#include "fabric/fabric.h"

enum {
	DATA_ENDS = 1024,	/* most ends of a fabric */
	DATA_NUMBER_MAX = 1022, /* greatest number of an end of a host */
	DATA_REST_BITS = 14,	/* bits of a QPN below the end's number */
	DATA_GROUPS = 256,	/* most multicast groups of an end */
	/* A sender waits while receivers have not fetched so many of its
	 * packets. */
	DATA_UNREAD = 256,
	/* A sender waits while its packets that receivers have not fetched have
	 * so many bytes. */
	DATA_UNREAD_BYTES = 256 << 10,
	/* While data ends have so many packets in a fabric, copies of a
	 * multicast packet are discarded. */
	DATA_PACKETS = 65536,
};

struct data_end;

/*
 * Attaches a program to a port of a host.  The pointer `owner` comes back from
 * data_owner.  Returns NULL with *err -ENODEV (the node is no host with such a
 * port), -EMFILE (the fabric has DATA_ENDS ends, the host has DATA_NUMBER_MAX,
 * or too many packets of closed ends wait for their receivers) or -ENOMEM.
 */
struct data_end *data_open(struct node *node, uint32_t port, void *owner,
			   int *err);
/*
 * Attaches the program of `end` to a further port of its host.  Both ends have
 * the same number, so that a QPN of the program does not depend on its port.
 * Returns NULL with *err as data_open does, or -EBUSY: the program is attached
 * to that port.
 */
struct data_end *data_open_beside(const struct data_end *end, uint32_t port,
				  void *owner, int *err);
/* Frees the end.  Its packets that are on their way still arrive. */
void data_close(struct data_end *end);
/* Returns the pointer `owner` of data_open. */
void *data_owner(const struct data_end *end);
/* Returns the host at whose port the end is. */
struct node *data_node(const struct data_end *end);
/* Returns the end's number, 1 to DATA_NUMBER_MAX, which is in the upper bits of
 * the end's QPNs. */
uint32_t data_number(const struct data_end *end);

/* Joins the group whose packets have the destination GID `gid`.  Before the
 * call, the program joins the group at the SA, which decides whether the port
 * may join.  Returns 0, also if the end has joined already; -EINVAL: not a
 * multicast GID; -ENOMEM: the end has joined DATA_GROUPS groups. */
int data_join(struct data_end *end, const uint8_t gid[16]);
/* Leaves the group of data_join.  Returns 0, or -EINVAL: the end has not joined
 * the group. */
int data_leave(struct data_end *end, const uint8_t gid[16]);

/* Returns whether the end may send.  If not, data_resumed returns the end once
 * it may send again. */
bool data_may_send(struct data_end *end);
/*
 * Sends the packet of n bytes, VCRC included, at `bytes`.  Returns 0, also if
 * the packet is then dropped on its way, as on a wire; -ENETDOWN: the port is
 * not ACTIVE; -ENOMEM; or -EINVAL: an adapter sends no such packet.  -EINVAL
 * means a wrong frame or VCRC; lane VL15; an SLID, SGID or P_Key that the port
 * does not have; a source QP that is not the end's own; or a destination that
 * is a QP of management or no valid LID and group.
 */
int data_send(struct data_end *end, const uint8_t *bytes, size_t n);
/* Returns an end that data_may_send has refused and that may send again, and
 * takes it off the list of such ends; NULL: the list is empty. */
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

/* Returns an end that has a packet or changes to fetch and is not paused; NULL:
 * there is none. */
struct data_end *data_ready(struct fabric *f);
/* Returns the changes of the end's port since the last data_told: a set of enum
 * data_change. */
uint32_t data_changes(const struct data_end *end);
/* Clears the set that data_changes returns. */
void data_told(struct data_end *end);
/* Returns the first packet of an end and sets *bytes; NULL: there is none.  The
 * packet stays until data_fetched. */
const uint8_t *data_fetch(struct data_end *end, size_t *bytes);
/* Removes the first packet of an end, which data_fetch has returned. */
void data_fetched(struct data_end *end);
/* Takes the end off the list of data_ready until data_unpause: its program does
 * not read. */
void data_pause(struct data_end *end);
/* Ends data_pause. */
void data_unpause(struct data_end *end);

#endif
