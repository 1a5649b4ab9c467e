/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * passing: a thread passes packets to a second thread by a ring
 * (packet_ring.h).  The first thread sleeps when the ring is full, the second
 * thread when the ring is empty, so a lost wake-up stops the test for good.
 * ThreadSanitizer reports a race if the ring does not order the accesses to the
 * packets.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/packet_ring.h"

enum { COUNT = 200000, MOST = 4000 };

static _Alignas(4096) uint8_t memory[PACKET_RING_BYTES];
static sem_t packets, room;

/* Returns the length of packet i.  Bursts of 1024 short packets and bursts of
 * 1024 packets of up to MOST bytes alternate. */
static size_t length_of(uint32_t i)
{
	return 4 + i * 2654435761u % (i & 1024 ? MOST - 4 : 60);
}

/* Returns room for a packet.  Ends the process if the ring is broken, because a
 * broken ring never has room. */
static uint8_t *find_room(struct packet_ring_out *out, size_t n)
{
	uint8_t *at;

	while (!(at = packet_ring_room(out, n))) {
		if (packet_ring_publish(out))
			sem_post(&packets);
		packet_ring_want_room(out);
		at = packet_ring_room(out, n);
		if (at)
			return at;
		if (out->is_broken) {
			fprintf(stderr, "passing: the ring is broken\n");
			exit(1);
		}
		sem_wait(&room);
	}
	return at;
}

static void *produce_packets(void *arg)
{
	struct packet_ring_out out;

	packet_ring_init_out(&out, memory);
	for (uint32_t i = 0; i < COUNT; i++) {
		size_t n = length_of(i);
		uint8_t *at = find_room(&out, n);

		memset(at, (uint8_t)i, n);
		memcpy(at, &i, sizeof(i));
		packet_ring_put(&out, n);
		if (i % 7 == 0 || i == COUNT - 1)
			if (packet_ring_publish(&out))
				sem_post(&packets);
	}
	return NULL;
}

static const uint8_t *next_packet(struct packet_ring_in *in, size_t *n)
{
	const uint8_t *at;

	while (!(at = packet_ring_next(in, MOST, n))) {
		if (packet_ring_release(in))
			sem_post(&room);
		if (in->is_broken)
			return NULL;
		if (packet_ring_idle(in))
			sem_wait(&packets);
	}
	return at;
}

static bool is_packet(const uint8_t *at, size_t n, uint32_t i)
{
	return at && n == length_of(i) && !memcmp(at, &i, sizeof(i)) &&
	       (n == sizeof(i) || at[n - 1] == (uint8_t)i);
}

int main(void)
{
	struct packet_ring_in in;
	pthread_t other;
	size_t n;

	sem_init(&packets, 0, 0);
	sem_init(&room, 0, 0);
	packet_ring_init_in(&in, memory);
	if (pthread_create(&other, NULL, produce_packets, NULL))
		return 1;
	for (uint32_t i = 0; i < COUNT; i++) {
		const uint8_t *at = next_packet(&in, &n);

		if (!is_packet(at, n, i)) {
			fprintf(stderr, "passing: packet %u is wrong\n", i);
			exit(1);
		}
		if (i % 5 == 0 && packet_ring_release(&in))
			sem_post(&room);
	}
	pthread_join(other, NULL);
	return 0;
}
