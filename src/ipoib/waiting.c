/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/waiting.h"

#include <stdlib.h>
#include <string.h>

struct waiting_packet waiting_take(struct waiting *w)
{
	struct waiting_packet first = {0};

	if (!w->count)
		return first;
	first = w->all[0];
	w->count--;
	memmove(w->all, w->all + 1, w->count * sizeof(w->all[0]));
	return first;
}

uint32_t waiting_add(struct waiting *w, const uint8_t *p, size_t bytes)
{
	struct waiting_packet copy = {malloc(bytes ? bytes : 1), bytes};
	uint32_t dropped = 0;

	if (!copy.p)
		return 1;
	if (w->count == WAITING_MAX) {
		free(waiting_take(w).p);
		dropped = 1;
	}
	memcpy(copy.p, p, bytes);
	w->all[w->count++] = copy;
	return dropped;
}

uint32_t waiting_drop(struct waiting *w)
{
	uint32_t dropped = w->count;

	while (w->count)
		free(waiting_take(w).p);
	return dropped;
}
