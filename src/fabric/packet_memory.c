/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/packet_memory.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define KEPT 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEPT 0
#endif
#endif
#ifndef KEPT
#define KEPT PACKET_MEMORY_KEPT
#endif

void *packet_memory_take(struct packet_memory *m, size_t bytes)
{
	void *piece = m->first;

	if (!piece)
		return malloc(bytes);
	memcpy(&m->first, piece, sizeof(m->first));
	m->count--;
	return piece;
}

void packet_memory_give(struct packet_memory *m, void *piece)
{
	if (m->count == KEPT) {
		free(piece);
		return;
	}
	memcpy(piece, &m->first, sizeof(m->first));
	m->first = piece;
	m->count++;
}

void packet_memory_clear(struct packet_memory *m)
{
	while (m->first)
		free(packet_memory_take(m, 0));
}
