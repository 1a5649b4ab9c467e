/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/cm_doubts.h"

#include <string.h>

void cm_doubts_add(struct cm_doubts *d, struct user_share *share,
		   const struct live_peer *about)
{
	uint32_t i = 0;

	if (cm_owner_may_add(&share->cm, share->doubts,
			     CM_DOUBTS_MAX - d->used))
		return;
	while (d->place[i].share)
		i++;
	d->place[i].share = share;
	d->place[i].about = *about;
	d->place[i].is_taken = false;
	share->doubts++;
	d->used++;
}

bool cm_doubts_take(struct cm_doubts *d, struct live_peer *about)
{
	for (uint32_t i = 0; d->used && i < CM_DOUBTS_MAX; i++) {
		if (!d->place[i].share || d->place[i].is_taken)
			continue;
		d->place[i].is_taken = true;
		*about = d->place[i].about;
		return true;
	}
	return false;
}

static bool is_same_peer(const struct live_peer *a, const struct live_peer *b)
{
	return a->qpn == b->qpn && !memcmp(a->local, b->local, 16) &&
	       !memcmp(a->peer, b->peer, 16);
}

void cm_doubts_settle(struct cm_doubts *d, const struct live_peer *about)
{
	for (uint32_t i = 0; d->used && i < CM_DOUBTS_MAX; i++) {
		if (!d->place[i].share || !d->place[i].is_taken ||
		    !is_same_peer(&d->place[i].about, about))
			continue;
		d->place[i].share->doubts--;
		d->place[i].share = NULL;
		d->used--;
		return;
	}
}
