/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lanes of a port: for each data VL the input buffer, which holds packets
 * that have come in by the port, and the queue of packets that wait to leave by
 * it (IBTA 7.6, 7.9, 18.2.5.4).
 *
 * A packet of a data end crosses a link only if the input buffer of its VL at
 * the far end has room.  The packet gives the room back when it leaves the
 * node, is dropped, or is fetched by its receiver.  So if a receiver does not
 * fetch its packets, their VL stops on one link after the other, back to the
 * senders.  The other VLs do not stop.  A sender at its limit on one VL waits
 * with its packets of all VLs (data_may_send).
 *
 * A link carries a limited number of blocks in one fabric_turn.  Where the
 * packets of several VLs wait for one link, the arbiter chooses (arbiter.h).
 *
 * Management datagrams use no lane.
 */
#ifndef FABRIC_LANE_H
#define FABRIC_LANE_H

#include "fabric/arbiter.h"
#include "fabric/inside.h"

enum {
	LANE_BLOCK = 64, /* bytes of a block, the unit of room and credits */
	/* The blocks that a link carries in one turn of the fabric, on all VLs
	 * together.  They suffice for all that a program can send on one VL
	 * before it has to wait: DATA_UNSENT_BYTES (256 KiB) and one more
	 * message of 64 KiB, in packets with a payload of 4096 bytes. */
	LANE_TURN = 80 * 67,
	/* Room of an input buffer, in blocks: a receiver can take what its link
	 * carries in a turn. */
	LANE_BLOCKS = LANE_TURN,
};

/* For each tick (1 ms) in which packets waited and none left, adds 1 to a
 * counter. */
struct lane_clock {
	/* The last tick that is counted, or in which the wait began or a packet
	 * left. */
	uint64_t from_ms;
	uint64_t ticks; /* the counter */
};

/* One data VL of a port. */
struct lane {
	struct port *port; /* the port that has the lane */
	struct list queue; /* struct packet.list: to leave, oldest first */
	uint64_t head_ms;  /* when the oldest packet became the oldest */
	/* VLStalled: until this time the port discards the packets of the VL;
	 * 0: it does not. */
	uint64_t stalled_ms;
	struct lane_clock idle; /* PortVLXmitWait */
	uint64_t rx_packets;	/* packets that have come in on the VL */
	uint64_t rx_words;	/* 32-bit words of these packets */
	uint32_t held;		/* blocks of the input buffer that are taken */
	/* In a search of deadlock.c: blocks of the input buffer whose packets
	 * wait in queues that the search has not found to move. */
	uint32_t hopeless;
	/* Packets discarded for HOQLife since a packet left or VLStalled
	 * began. */
	uint8_t losses;
	uint8_t mark;	/* of the queue in a search: enum mark of deadlock.c */
	bool is_wanted; /* the port at the far end waits for room in the input
			   buffer */
};

/* The lanes of a port. */
struct lanes {
	struct port *port;   /* the port that has the lanes */
	struct list waiting; /* in data_ends.waiting: some queue has packets */
	/* In data_ends.woken: a queue may have a packet that can leave.  Or in
	 * data_ends.tired: the link carries nothing more in this turn. */
	struct list woken;
	uint64_t turn;	 /* the last turn in which the link carried a packet */
	uint32_t blocks; /* blocks that the link has carried in that turn */
	uint32_t queued; /* a bit for each VL whose queue has packets */
	struct lane_clock idle;	 /* PortXmitWait */
	struct arbiter arbiter;	 /* chooses between the queues of the lanes */
	struct lane lane[LANES]; /* the index is the VL */
};

enum lane_verdict {
	LANE_PASSES, /* the packet leaves now */
	LANE_WAITS,  /* the queue has taken the packet */
	/* The VL is stalled, or no memory is left: the caller counts the packet
	 * as discarded by the port, and drops it. */
	LANE_LOST,
};

/* Decides whether the packet p leaves now by the port `out`, whose link is up,
 * on the VL p->vl.  After LANE_PASSES the caller moves the packet to the far
 * end at once. */
enum lane_verdict lane_try(struct port *out, struct packet *p);
/* Removes a packet that may now leave by the port from its queue, and returns
 * it.  The caller moves it to the far end at once.  NULL: no packet of the port
 * may leave. */
struct packet *lane_next(struct port *out);
/* Has the input buffer of the lane room for the packet?  An empty buffer has
 * room for a packet of any length. */
bool lane_has_room(const struct lane *l, const struct packet *p);
/* Takes room in the input buffer of the port `in` for a packet that has come in
 * on the VL p->vl, and gives back the room that the packet had before. */
void lane_enter(struct port *in, struct packet *p);
/* Discards all packets that wait to leave by the port. */
void lane_flush(struct port *out);
/* Discards all packets that wait to leave by any port. */
void lane_flush_all(struct fabric *f);
/* Begins a turn.  In a turn each link carries packets until they have
 * data_ends.turn_blocks blocks; the last packet may exceed this number. */
void lane_begin(struct fabric *f);
/* Returns a port by which a waiting packet may be able to leave now, and takes
 * the port off the list of such ports; NULL: there is none. */
struct port *lane_woken(struct fabric *f);
/* Discards packets in the queues of switches: those that, at f->now_ms, have
 * been the first of a queue for too long (HOQLife), or have been in a queue for
 * too long (LifeTimeValue). */
void lane_tick(struct fabric *f);
/* Returns when the first packet of the queue of a VL is discarded, in ms;
 * FABRIC_NEVER: it is not, or the queue is empty. */
uint64_t lane_due(const struct lanes *l, uint32_t vl);
/* Returns the time at which packets can move again or lane_tick has something
 * to do, in ms; FABRIC_NEVER: not before the next input. */
uint64_t lane_deadline(const struct fabric *f);
/* Returns the least lane.head_ms of all queues that have packets; FABRIC_NEVER:
 * no packet waits. */
uint64_t lane_oldest(const struct fabric *f);
/* Adds to the clocks of a port, which has lanes, the ticks up to f->now_ms. */
void lane_count_ticks(struct port *port);
/* Returns PortXmitWait in ticks, up to f->now_ms. */
uint64_t lane_waited(struct port *port);
/* Sets PortXmitWait, in ticks.  Does nothing at a port without lanes. */
void lane_set_waited(struct port *port, uint64_t ticks);

/* Has the fabric look at the queues of a port again. */
static inline void lane_wake(struct port *port)
{
	struct lanes *l = port->lanes;

	if (l && l->queued && !list_is_linked(&l->woken))
		list_push_tail(&port->node->fabric->data.woken, &l->woken);
}

/* Gives back the room that a packet has in an input buffer, if it has any. */
static inline void lane_leave(struct packet *p)
{
	struct lane *l = p->room;

	if (!l)
		return;
	p->room = NULL;
	l->held -= p->blocks;
	if (l->is_wanted) {
		l->is_wanted = false;
		lane_wake(l->port->peer);
	}
}

#endif
