/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of packets in memory that two processes share: one process, the
 * producer, puts packets in, and the other process, the consumer, takes them
 * out.  Neither process makes a system call for a packet.  A process that waits
 * sets a flag in the ring, and the other process wakes it.
 *
 *	producer	packet_ring_room, _put; after some packets _publish
 *	consumer	packet_ring_next; after some packets _release
 *
 * Neither process trusts the other: each word of the other process is read once
 * and checked, and only that copy is used.  After a wrong word the ring is
 * broken, and gives and takes nothing more.  The bytes of a packet may change
 * at any time, so the consumer copies what it looks at, and looks at the copy
 * only.
 *
 *	0            64           4096                  PACKET_RING_BYTES
 *	+------------+------------+---------------------+
 *	| producer's | consumer's | PACKET_RING_BLOCKS  |
 *	| words      | words      | blocks of 64 bytes  |
 *	+------------+------------+---------------------+
 *
 * A packet takes whole blocks, one behind the other: its length as a 32-bit
 * word, 4 bytes that are not used, and its bytes.  The length 0 says that no
 * packet is in the blocks up to the end, and that the next one is in block 0.
 *
 * Owner: each side owns its struct, and no lock is taken.  Sans-IO.
 */
#ifndef FABRIC_PACKET_RING_H
#define FABRIC_PACKET_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/ring.h"
#include "util/shared.h"

enum {
	/* The bytes of a block: a cache line. */
	PACKET_RING_BLOCK = 64,
	/* The blocks of a ring.  A power of two. */
	PACKET_RING_BLOCKS = 8192,
	/* The bytes before a packet in its first block: its length, and 4
	 * unused bytes. */
	PACKET_RING_HEAD = 8,
	/* Where the blocks begin. */
	PACKET_RING_DATA = 4096,
	PACKET_RING_BYTES =
		PACKET_RING_DATA + PACKET_RING_BLOCKS * PACKET_RING_BLOCK,
	/* The rings of a data end lie in one memory file: first the ring to the
	 * fabric, then the ring to the program. */
	PACKET_RING_FILE = 2 * PACKET_RING_BYTES,
};

/* The words of a ring.  The indices count blocks. */
struct packet_ring_words {
	/* The end of the packets.  The producer stores it. */
	ring_index tail;
	/* The producer waits for room.  A consumer whose packet_ring_release
	 * leaves half of the ring free, or more, clears the flag, and wakes the
	 * producer. */
	shared_flag wants_room;
	/* Puts the consumer's words into a cache line of their own. */
	uint8_t apart[PACKET_RING_BLOCK - 2 * sizeof(uint32_t)];
	/* The end of the packets whose room is free again.  The consumer stores
	 * it. */
	ring_index head;
	/* The consumer waits for packets.  A producer that puts some clears the
	 * flag, and wakes the consumer. */
	shared_flag is_idle;
};

/* The producer's side. */
struct packet_ring_out {
	struct packet_ring_words *words; /* of the ring, in shared memory */
	uint8_t *data;			 /* the blocks of the ring */
	/* The end of the packets that were put. */
	uint32_t tail;
	/* The end of the packets that were published. */
	uint32_t shown;
	/* The consumer's index when it was last read. */
	uint32_t head;
	/* The consumer has stored a wrong index. */
	bool is_broken;
};

/* The consumer's side. */
struct packet_ring_in {
	struct packet_ring_words *words; /* of the ring, in shared memory */
	uint8_t *data;			 /* the blocks of the ring */
	/* The end of the packets that were taken. */
	uint32_t head;
	/* The end of the packets that were released. */
	uint32_t freed;
	/* The producer's index when it was last read. */
	uint32_t tail;
	/* The producer has stored a wrong index or length. */
	bool is_broken;
};

/* Begins the producer's use of a ring of PACKET_RING_BYTES zeroes at `memory`,
 * which is borrowed. */
void packet_ring_init_out(struct packet_ring_out *o, void *memory);
/* Begins the consumer's use of a ring of PACKET_RING_BYTES zeroes at `memory`,
 * which is borrowed. */
void packet_ring_init_in(struct packet_ring_in *in, void *memory);

/* Returns where the producer writes a packet of n bytes; NULL: there is no
 * room, or the ring is broken.  n is at least 1, and so small that the packet
 * fits into half of the blocks: a producer that waits is woken when half of the
 * ring is free. */
uint8_t *packet_ring_room(struct packet_ring_out *o, size_t n);
/* Puts the packet that was written at packet_ring_room(n). */
void packet_ring_put(struct packet_ring_out *o, size_t n);
/* Shows the consumer all packets that were put.  True: the consumer waits, and
 * the caller wakes it. */
bool packet_ring_publish(struct packet_ring_out *o);
/* Asks to be woken when half of the ring is free.  The caller has published its
 * packets, and then calls packet_ring_room once more before it waits. */
void packet_ring_want_room(struct packet_ring_out *o);

/* Takes the next packet, and sets *n to its length.  The bytes stay until
 * packet_ring_release.  A packet of more than `most` bytes breaks the ring.
 * NULL: there is no packet, or the ring is broken. */
const uint8_t *packet_ring_next(struct packet_ring_in *in, size_t most,
				size_t *n);
/* Is there a packet to take? */
bool packet_ring_has(const struct packet_ring_in *in);
/* Gives back the room of all packets that were taken.  True: the producer waits
 * for room, and the caller wakes it. */
bool packet_ring_release(struct packet_ring_in *in);
/* Asks to be woken when there is a packet.  False: there is one now, or the
 * ring is broken, and the caller does not wait.  The producer wakes the
 * consumer once, and any thread of the consumer may take this wake-up.  After
 * it, each thread that wants to wait calls this function again. */
bool packet_ring_idle(struct packet_ring_in *in);

#endif
