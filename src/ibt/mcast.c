/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibt/rx_pending.h"

/* One queue pair in one group. */
struct mcast {
	uint8_t gid[16];
	struct ibt_qp *q;
};

static bool is_in_group(const struct mcast *m, const uint8_t gid[16])
{
	return !memcmp(m->gid, gid, 16);
}

int mcast_attach(struct ibt *t, struct ibt_qp *q, const uint8_t gid[16])
{
	struct mcast *more;
	uint32_t members = 0;

	for (uint32_t i = 0; i < t->mcast.count; i++) {
		if (!is_in_group(&t->mcast.rows[i], gid))
			continue;
		if (t->mcast.rows[i].q == q)
			return 0;
		members++;
	}
	if (t->mcast.count == MCAST_MAX_ROWS || members == HCA_MAX_ATTACH)
		return -ENOSPC;
	more = realloc(t->mcast.rows, (t->mcast.count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->mcast.rows = more;
	memcpy(more[t->mcast.count].gid, gid, 16);
	more[t->mcast.count++].q = q;
	return 0;
}

/* Removes row i; the last row takes its place. */
static void remove_row(struct ibt *t, uint32_t i)
{
	t->mcast.rows[i] = t->mcast.rows[--t->mcast.count];
}

int mcast_detach(struct ibt *t, struct ibt_qp *q, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < t->mcast.count; i++) {
		if (t->mcast.rows[i].q != q ||
		    !is_in_group(&t->mcast.rows[i], gid))
			continue;
		remove_row(t, i);
		return 0;
	}
	return -EINVAL;
}

bool mcast_has(const struct ibt *t, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < t->mcast.count; i++)
		if (is_in_group(&t->mcast.rows[i], gid))
			return true;
	return false;
}

void mcast_forget(struct ibt *t, struct ibt_qp *q)
{
	for (uint32_t i = t->mcast.count; i-- > 0;)
		if (t->mcast.rows[i].q == q)
			remove_row(t, i);
}

void mcast_rx(struct ibt *t, const struct pkt *p, const struct ud_from *f,
	      const uint8_t *bytes, size_t len)
{
	for (uint32_t i = 0; i < t->mcast.count; i++) {
		struct ibt_qp *q = t->mcast.rows[i].q;

		/* A queue pair does not receive a message that it has sent
		 * itself, from whichever address of this host. */
		if (!is_in_group(&t->mcast.rows[i], f->to.ip) ||
		    (f->is_local && q->qp->qpn == p->deth.src_qpn))
			continue;
		rx_pending_rx(t, q, p, f, bytes, len);
	}
}
