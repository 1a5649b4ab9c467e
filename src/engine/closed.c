/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/closed.h"

bool closed_has(const struct closed *c, uint32_t qpn)
{
	for (uint32_t i = 0; i < CLOSED_SLOTS; i++)
		if (shared_load(&c->qpn[i]) == qpn)
			return true;
	return false;
}

void closed_note(struct closed *c, uint32_t qpn)
{
	uint32_t next = shared_own(&c->next);

	if (closed_has(c, qpn))
		return;
	shared_store(&c->qpn[next % CLOSED_SLOTS], qpn);
	shared_store(&c->next, next + 1);
}

void closed_open(struct closed *c, uint32_t qpn)
{
	for (uint32_t i = 0; i < CLOSED_SLOTS; i++)
		if (shared_own(&c->qpn[i]) == qpn)
			shared_store(&c->qpn[i], 0);
}
