/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/packet_ring: a producer and a consumer of one ring.  The first byte of
 * the input chooses the kind of run, the next two bytes choose the first
 * indices of the ring, and the rest chooses the steps.  In a run without
 * HOSTILE, all packets arrive in order, and no wake-up is lost.  In a run with
 * HOSTILE, any word of the ring may change between the steps, as a peer that
 * has the memory can change it; with BY_THREAD a thread changes words during
 * the steps, too.  In each run with HOSTILE the producer writes, and the
 * consumer reads, only blocks of the ring, no packet is longer than the
 * consumer allows, and a broken ring gives and takes nothing more.  In a run
 * with SLOW the consumer takes less than the producer puts.  Pages without
 * access surround the ring.
 */
#include "fuzz.h"
#include "input.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "fabric/packet_ring.h"
#include "hdr/lrh.h"

#define PAGE	 4096
#define STEPS	 2000
#define BLOCKS	 PACKET_RING_BLOCKS
#define MOST	 LRH_FRAME_MAX
#define LENGTHS	 (MOST + 64) /* some packets are too long for the consumer */
#define GUARDED	 (PACKET_RING_BYTES + 2 * PAGE)
#define HALF_END (BLOCKS / 2 * PACKET_RING_BLOCK - PACKET_RING_HEAD)

/* Bits of the first byte of the input. */
enum { HOSTILE = 1, BY_THREAD = 2, SLOW = 4 };

/* A packet that was put.  All its bytes have the value mark.  Only check_packet
 * reads this struct, in a run without HOSTILE. */
struct put {
	uint32_t bytes;
	uint8_t mark;
};

struct script {
	struct input_bytes in;
	uint8_t *memory; /* of the ring */
	struct packet_ring_out out;
	struct packet_ring_in from;
	/* puts[i % BLOCKS]: packet number i, from 0.  first: how many packets
	 * check_packet has checked.  last: how many were put. */
	struct put puts[BLOCKS];
	uint32_t first, last;
	/* The block with the length that the consumer reads next.  The thread
	 * may read an old value, which is as good. */
	shared_u32 next;
	bool is_hostile, is_slow;
	/* packet_ring_idle has returned true, and no packets were published
	 * since. */
	bool is_idle;
	/* The producer found no room after its last packet_ring_want_room, and
	 * no packet_ring_release has woken the producer since. */
	bool wants_room;
	/* Not 0: the thread ends.  No other data depends on this member, so
	 * the order of its accesses does not matter. */
	_Atomic int is_over;
};

/* Maps a ring of zeroes between two pages without access. */
static uint8_t *map_ring(void)
{
	uint8_t *base = mmap(NULL, GUARDED, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	FUZZ_REQUIRE(base != MAP_FAILED);
	FUZZ_REQUIRE(!mprotect(base + PAGE, PACKET_RING_BYTES,
			       PROT_READ | PROT_WRITE));
	return base + PAGE;
}

/* Sets all indices of the ring to one value, which is less than BLOCKS / 16
 * below BLOCKS for half of the inputs, and less than BLOCKS / 16 below 2^32 for
 * the other inputs.  So a few long packets pass the last block and, with the
 * other inputs, the greatest index, 2^32 - 1. */
static void begin_ring(struct script *s)
{
	uint32_t random = input_u16(&s->in), end = random & 1 ? 0 : BLOCKS;
	uint32_t first = end - random / 2 % (BLOCKS / 16);
	struct packet_ring_words *words = (void *)s->memory;

	packet_ring_init_out(&s->out, s->memory);
	packet_ring_init_in(&s->from, s->memory);
	shared_store(&words->tail, first);
	shared_store(&words->head, first);
	s->out.tail = s->out.shown = s->out.head = first;
	s->from.tail = s->from.freed = s->from.head = first;
	shared_store(&s->next, first % BLOCKS);
}

/* ---- the hostile peer ---- */

/* Returns an index or a flag of the ring, a word at the beginning of a block,
 * or any word. */
static shared_u32 *choose_word(struct script *s, uint32_t random)
{
	struct packet_ring_words *words = (void *)s->memory;
	uint32_t word = random >> 8;

	switch (random % 8) {
	case 0:
	case 1:
		return &words->tail;
	case 2:
		return &words->head;
	case 3:
		return &words->is_idle;
	case 4:
		return &words->wants_room;
	case 5:
		/* the beginning of a block, where a length may be */
		return (shared_u32 *)(void *)(s->memory + PACKET_RING_DATA) +
		       word % BLOCKS * (PACKET_RING_BLOCK / 4);
	case 6:
		/* the length that the consumer reads next */
		return (shared_u32 *)(void *)(s->memory + PACKET_RING_DATA) +
		       shared_load(&s->next) * (PACKET_RING_BLOCK / 4);
	default:
		return (shared_u32 *)(void *)s->memory +
		       word % (PACKET_RING_BYTES / 4);
	}
}

/* Adds a small number or about BLOCKS to the word, or changes one bit of it, or
 * sets it to a length or an index near a limit, to 0 or 1, or to a random
 * value. */
static void change_word(shared_u32 *word, uint32_t random)
{
	uint32_t small = random % 256;

	switch (random >> 29) {
	case 0:
		shared_store(word, shared_load(word) + small - 128);
		break;
	case 1:
		shared_store(word, shared_load(word) ^ 1u << small % 32);
		break;
	case 2:
		shared_store(word, MOST + small - 128);
		break;
	case 3:
		shared_store(word, shared_load(word) + BLOCKS + small - 128);
		break;
	case 4:
		shared_store(word, UINT32_MAX - small);
		break;
	case 5:
		shared_store(word, small % 2);
		break;
	default:
		shared_store(word, random * 2654435761u);
		break;
	}
}

static void *change_words(void *arg)
{
	struct script *s = arg;
	uint32_t random = 2463534242u;

	while (!s->is_over) {
		uint32_t value;

		random ^= random << 13;
		random ^= random >> 17;
		random ^= random << 5;
		value = random * 747796405u;
		change_word(choose_word(s, random), value);
	}
	return NULL;
}

/* ---- the producer ---- */

/* Returns whether n bytes at p, and the PACKET_RING_HEAD bytes before them, lie
 * within the blocks. */
static bool is_inside(const struct script *s, const uint8_t *p, size_t n)
{
	size_t at = (size_t)(p - s->memory);

	return at >= PACKET_RING_DATA + PACKET_RING_HEAD &&
	       at <= PACKET_RING_BYTES && n <= PACKET_RING_BYTES - at;
}

static uint8_t *find_room(struct script *s, size_t n)
{
	bool was_broken = s->out.is_broken;
	uint8_t *room = packet_ring_room(&s->out, n);

	FUZZ_REQUIRE(!room || (!was_broken && is_inside(s, room, n)));
	FUZZ_REQUIRE(s->is_hostile || !s->out.is_broken);
	return room;
}

static void publish_packets(struct script *s)
{
	bool has_new = s->out.shown != s->out.tail;
	bool wakes = packet_ring_publish(&s->out);

	FUZZ_REQUIRE(s->is_hostile || wakes == (has_new && s->is_idle));
	s->is_idle &= !has_new;
}

static void put_packet(struct script *s)
{
	uint32_t n = input_u16(&s->in) % LENGTHS + 1;
	uint8_t *room;

	if (!s->is_hostile && n > MOST)
		n = MOST;
	else if (n == LENGTHS)
		n = HALF_END;
	room = find_room(s, n);
	if (!room) {
		publish_packets(s);
		packet_ring_want_room(&s->out);
		room = find_room(s, n);
		s->wants_room = !room;
	}
	if (!room)
		return;
	memset(room, (int)s->last, n);
	packet_ring_put(&s->out, n);
	s->puts[s->last % BLOCKS] = (struct put){n, (uint8_t)s->last};
	s->last++;
}

/* ---- the consumer ---- */

static void check_packet(struct script *s, const uint8_t *copy, size_t n)
{
	const struct put *put = &s->puts[s->first++ % BLOCKS];

	FUZZ_REQUIRE(s->first <= s->last && n == put->bytes);
	FUZZ_REQUIRE(copy[0] == put->mark && copy[n - 1] == put->mark);
}

/* Takes a packet.  Returns false if there is none. */
static bool take_packet(struct script *s)
{
	uint8_t copy[MOST];
	bool was_broken = s->from.is_broken;
	size_t n;
	const uint8_t *p = packet_ring_next(&s->from, MOST, &n);

	shared_store(&s->next, s->from.head % BLOCKS);
	FUZZ_REQUIRE(s->is_hostile || !s->from.is_broken);
	if (!p)
		return false;
	FUZZ_REQUIRE(!was_broken && n && n <= MOST && is_inside(s, p, n));
	memcpy(copy, p, n);
	if (!s->is_hostile)
		check_packet(s, copy, n);
	return true;
}

static void release_room(struct script *s)
{
	bool has_new = s->from.freed != s->from.head;
	bool wakes = packet_ring_release(&s->from);

	FUZZ_REQUIRE(has_new || !wakes);
	s->wants_room &= !wakes;
	FUZZ_REQUIRE(s->is_hostile || !has_new || !s->wants_room ||
		     s->from.tail - s->from.head > BLOCKS / 2);
}

static void idle_ring(struct script *s)
{
	bool is_idle = packet_ring_idle(&s->from);

	if (s->is_hostile)
		return;
	/* the consumer may wait if, and only if, it has taken all that was
	 * published */
	FUZZ_REQUIRE(is_idle == (s->out.shown == s->from.head));
	s->is_idle = is_idle;
}

/* ---- runs ---- */

/* Checks that neither side uses more blocks than the ring has, unless that side
 * has found the ring broken. */
static void check_indices(const struct script *s)
{
	const struct packet_ring_in *in = &s->from;

	FUZZ_REQUIRE(s->out.is_broken || s->out.tail - s->out.head <= BLOCKS);
	FUZZ_REQUIRE(in->is_broken || (in->tail - in->head <= BLOCKS &&
				       in->tail - in->freed <= BLOCKS));
}

static void run_step(struct script *s)
{
	uint8_t what = input_u8(&s->in);
	int most = s->is_slow ? 1 : what >> 3 & 7;

	if (s->is_hostile && what & 0x40)
		change_word(choose_word(s, input_u32(&s->in)),
			    input_u32(&s->in));
	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		put_packet(s);
		if (s->is_slow)
			put_packet(s);
		break;
	case 3:
		publish_packets(s);
		break;
	case 4:
	case 5:
		while (most-- && take_packet(s))
			;
		break;
	case 6:
		release_room(s);
		break;
	default:
		idle_ring(s);
		break;
	}
	check_indices(s);
}

/* Takes the packets that are left.  In a run without HOSTILE, all packets that
 * were put have then arrived, and a producer that wanted room was woken. */
static void take_rest(struct script *s)
{
	publish_packets(s);
	while (take_packet(s))
		;
	release_room(s);
	FUZZ_REQUIRE(s->is_hostile || (s->first == s->last && !s->wants_room));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.in = {data, data + size}};
	uint8_t how = input_u8(&s.in);
	bool by_thread = (how & HOSTILE) && (how & BY_THREAD);
	pthread_t thread = 0;

	s.memory = map_ring();
	s.is_hostile = how & HOSTILE;
	s.is_slow = how & SLOW;
	begin_ring(&s);
	if (by_thread)
		FUZZ_REQUIRE(!pthread_create(&thread, NULL, change_words, &s));
	for (int i = 0; i < STEPS && s.in.at < s.in.end; i++)
		run_step(&s);
	if (by_thread) {
		s.is_over = 1;
		pthread_join(thread, NULL);
	}
	take_rest(&s);
	munmap(s.memory - PAGE, GUARDED);
	return 0;
}
