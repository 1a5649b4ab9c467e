/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/packet_ring.h"

#include <string.h>

#include "util/bits.h"

#define BLOCKS PACKET_RING_BLOCKS

_Static_assert(sizeof(struct packet_ring_words) <= PACKET_RING_DATA,
	       "the words lie before the blocks");
_Static_assert(offsetof(struct packet_ring_words, head) == PACKET_RING_BLOCK,
	       "each side's words have a cache line of their own");

static uint32_t blocks_of(size_t n)
{
	return (uint32_t)bits_div_up(PACKET_RING_HEAD + n, PACKET_RING_BLOCK);
}

static uint32_t place_of(uint32_t index)
{
	return index & (BLOCKS - 1);
}

/* Returns the word at the beginning of a packet, which holds the packet's
 * length. */
static shared_u32 *length_at(uint8_t *data, uint32_t index)
{
	return (shared_u32 *)(void *)(data +
				      place_of(index) * PACKET_RING_BLOCK);
}

/* Clears a flag by which the other side asks to be woken.  Returns whether it
 * was set. */
static bool take_flag(shared_flag *flag)
{
	if (!shared_load(flag))
		return false;
	/* If the other side sets the flag again between the load and this
	 * store, the flag is lost.  That does no harm: after this function has
	 * returned true, this side wakes the other side, which then looks at
	 * the ring again. */
	shared_store(flag, 0);
	return true;
}

void packet_ring_init_out(struct packet_ring_out *o, void *memory)
{
	*o = (struct packet_ring_out){
		.words = memory, .data = (uint8_t *)memory + PACKET_RING_DATA};
}

void packet_ring_init_in(struct packet_ring_in *in, void *memory)
{
	*in = (struct packet_ring_in){
		.words = memory, .data = (uint8_t *)memory + PACKET_RING_DATA};
}

/* Reads the consumer's index, which may be neither behind the index that was
 * read before nor ahead of the published packets. */
static void read_head(struct packet_ring_out *o)
{
	uint32_t head = shared_load(&o->words->head);

	if (head - o->head > o->shown - o->head)
		o->is_broken = true;
	else
		o->head = head;
}

static bool has_room(struct packet_ring_out *o, uint32_t blocks)
{
	if (blocks > BLOCKS - (o->tail - o->head))
		read_head(o);
	return !o->is_broken && blocks <= BLOCKS - (o->tail - o->head);
}

uint8_t *packet_ring_room(struct packet_ring_out *o, size_t n)
{
	uint32_t blocks = blocks_of(n), rest = BLOCKS - place_of(o->tail);
	uint32_t skipped = blocks > rest ? rest : 0;

	if (!has_room(o, skipped + blocks))
		return NULL;
	if (skipped)
		shared_store(length_at(o->data, o->tail), 0);
	o->tail += skipped;
	return (uint8_t *)length_at(o->data, o->tail) + PACKET_RING_HEAD;
}

void packet_ring_put(struct packet_ring_out *o, size_t n)
{
	shared_store(length_at(o->data, o->tail), (uint32_t)n);
	o->tail += blocks_of(n);
}

bool packet_ring_publish(struct packet_ring_out *o)
{
	if (o->shown == o->tail)
		return false;
	o->shown = o->tail;
	/* Release: the packets and their lengths are stored before tail.  A
	 * consumer that loads this tail (read_tail) could otherwise read old
	 * bytes of the blocks. */
	shared_store(&o->words->tail, o->tail);
	/* Orders the store of tail before the load of is_idle.  The fence in
	 * ask_to_be_woken orders the consumer's store of is_idle before its
	 * load of tail.  Without these fences each side could miss the other's
	 * store, and the consumer would wait although there is a packet. */
	shared_fence();
	return take_flag(&o->words->is_idle);
}

void packet_ring_want_room(struct packet_ring_out *o)
{
	shared_store(&o->words->wants_room, 1);
	/* Orders the store of wants_room before the load of head in the
	 * caller's next packet_ring_room.  The fence in packet_ring_release
	 * orders the consumer's store of head before its load of wants_room.
	 * Without these fences the producer could wait although blocks are
	 * free. */
	shared_fence();
}

/* Reads the producer's index, which may be neither behind the index that was
 * read before nor more than the ring's length ahead of the released packets. */
static void read_tail(struct packet_ring_in *in)
{
	uint32_t tail = shared_load(&in->words->tail);

	if (tail - in->freed > BLOCKS ||
	    tail - in->freed < in->tail - in->freed)
		in->is_broken = true;
	else
		in->tail = tail;
}

/* Steps over the blocks from in->head to the end of the ring, which contain no
 * packet. */
static void skip_rest(struct packet_ring_in *in)
{
	uint32_t rest = BLOCKS - place_of(in->head);

	if (rest == BLOCKS || rest > in->tail - in->head)
		in->is_broken = true;
	else
		in->head += rest;
}

static const uint8_t *take_packet(struct packet_ring_in *in, uint32_t length,
				  size_t most)
{
	const uint8_t *at = (const uint8_t *)length_at(in->data, in->head);
	uint32_t blocks;

	in->is_broken = length > most;
	blocks = in->is_broken ? 0 : blocks_of(length);
	in->is_broken |= blocks > in->tail - in->head ||
			 blocks > BLOCKS - place_of(in->head);
	if (in->is_broken)
		return NULL;
	in->head += blocks;
	return at + PACKET_RING_HEAD;
}

const uint8_t *packet_ring_next(struct packet_ring_in *in, size_t most,
				size_t *n)
{
	for (;;) {
		if (in->head == in->tail && !in->is_broken)
			read_tail(in);
		if (in->is_broken || in->head == in->tail)
			return NULL;
		*n = shared_load(length_at(in->data, in->head));
		if (*n)
			return take_packet(in, (uint32_t)*n, most);
		skip_rest(in);
	}
}

bool packet_ring_has(const struct packet_ring_in *in)
{
	return !in->is_broken && shared_load(&in->words->tail) != in->head;
}

bool packet_ring_release(struct packet_ring_in *in)
{
	if (in->freed == in->head)
		return false;
	in->freed = in->head;
	/* Release: the consumer's reads of the packets precede the store of
	 * head.  A producer that loads this head (read_head) could otherwise
	 * overwrite blocks that the consumer still reads. */
	shared_store(&in->words->head, in->head);
	/* Orders the store of head before the load of wants_room; see
	 * packet_ring_want_room. */
	shared_fence();
	return in->tail - in->head <= BLOCKS / 2 &&
	       take_flag(&in->words->wants_room);
}

/* Sets the flag by which this process asks the producer to wake it.  A flag
 * that is still set needs no second fence: a fence followed the store of the
 * flag, and the producer, which has not taken the flag since, takes it with the
 * next packets that it publishes. */
static void ask_to_be_woken(struct packet_ring_in *in)
{
	if (shared_load(&in->words->is_idle))
		return;
	shared_store(&in->words->is_idle, 1);
	/* Orders the store of is_idle before the load of tail; see
	 * packet_ring_publish. */
	shared_fence();
}

bool packet_ring_idle(struct packet_ring_in *in)
{
	ask_to_be_woken(in);
	if (!packet_ring_has(in) && !in->is_broken)
		return true;
	shared_store(&in->words->is_idle, 0);
	return false;
}
