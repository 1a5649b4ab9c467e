/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/closed.h"

bool closed_has(const struct closed *c, uint32_t qpn)
{
	for (uint32_t i = 0; i < CLOSED_SLOTS; i++)
		if (ring_load(&c->qpn[i]) == qpn)
			return true;
	return false;
}

void closed_note(struct closed *c, uint32_t qpn)
{
	uint32_t next = ring_own(&c->next);

	if (closed_has(c, qpn))
		return;
	ring_store(&c->qpn[next % CLOSED_SLOTS], qpn);
	ring_store(&c->next, next + 1);
}

void closed_open(struct closed *c, uint32_t qpn)
{
	for (uint32_t i = 0; i < CLOSED_SLOTS; i++)
		if (ring_own(&c->qpn[i]) == qpn)
			ring_store(&c->qpn[i], 0);
}
