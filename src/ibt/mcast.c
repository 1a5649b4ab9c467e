/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hdr/bth.h"
#include "ibt/rx_pending.h"

/* One queue pair in one group. */
struct mcast {
	uint8_t gid[16]; /* the group */
	/* the group to which the program has attached q: `gid`, or the IPv6
	 * group that has `gid` as its alias */
	uint8_t named[16];
	struct ibt_qp *q; /* borrowed */
	/* another row, whose `repeats` is false, has the same q and gid */
	bool repeats;
};

static bool is_in_group(const struct mcast *m, const uint8_t gid[16])
{
	return !memcmp(m->gid, gid, 16);
}

static bool is_named(const struct mcast *m, const uint8_t named[16])
{
	return !memcmp(m->named, named, 16);
}

int mcast_attach_alias(struct ibt *t, struct ibt_qp *q, const uint8_t named[16],
		       const uint8_t gid[16])
{
	struct mcast *more;
	uint32_t members = 0;
	bool repeats = false;

	for (uint32_t i = 0; i < t->mcast.count; i++) {
		const struct mcast *m = &t->mcast.rows[i];

		if (!is_in_group(m, gid))
			continue;
		if (m->q == q && is_named(m, named))
			return 0;
		repeats |= m->q == q;
		members += !m->repeats;
	}
	if (t->mcast.count == HCA_MAX_ATTACHED ||
	    (members == HCA_MAX_ATTACH && !repeats))
		return -ENOSPC;
	more = realloc(t->mcast.rows, (t->mcast.count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->mcast.rows = more;
	more += t->mcast.count++;
	*more = (struct mcast){.q = q, .repeats = repeats};
	memcpy(more->gid, gid, 16);
	memcpy(more->named, named, 16);
	return 0;
}

int mcast_attach(struct ibt *t, struct ibt_qp *q, const uint8_t gid[16])
{
	return mcast_attach_alias(t, q, gid, gid);
}

/* Called before row i is removed.  If row i repeats no other row and other rows
 * repeat row i, marks one of these as a row that repeats none. */
static void end_repeat(struct ibt *t, uint32_t i)
{
	const struct mcast *gone = &t->mcast.rows[i];

	for (uint32_t k = 0; k < t->mcast.count && !gone->repeats; k++) {
		struct mcast *m = &t->mcast.rows[k];

		if (k == i || m->q != gone->q || !is_in_group(m, gone->gid))
			continue;
		m->repeats = false;
		return;
	}
}

/* Removes row i; the last row takes its place. */
static void remove_row(struct ibt *t, uint32_t i)
{
	end_repeat(t, i);
	t->mcast.rows[i] = t->mcast.rows[--t->mcast.count];
}

int mcast_detach(struct ibt *t, struct ibt_qp *q, const uint8_t gid[16])
{
	int err = -EINVAL;

	for (uint32_t i = t->mcast.count; i-- > 0;) {
		if (t->mcast.rows[i].q != q ||
		    !is_named(&t->mcast.rows[i], gid))
			continue;
		remove_row(t, i);
		err = 0;
	}
	return err;
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

		if (t->mcast.rows[i].repeats ||
		    q->qp->is_by_lid != f->lid.is_used)
			continue;
		/* A queue pair does not receive its own message, whichever
		 * address of this host the message was sent from. */
		if (!is_in_group(&t->mcast.rows[i], f->to.ip) ||
		    (f->is_local && q->qp->qpn == p->deth.src_qpn))
			continue;
		/* Each device, and each port of a fabric, that is in the group
		 * receives its own copy, which is for its queue pairs alone.
		 */
		if (q->qp->device != f->device)
			continue;
		if (f->lid.is_used &&
		    (f->lid.port != q->qp->attr.port_num ||
		     !bth_is_same_partition(p->bth.pkey, ibt_pkey(t, q))))
			continue;
		rx_pending_rx(t, q, p, f, bytes, len);
	}
}
