/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notify bits (enum qp_notify), by which peers of this host tell a QP's own
 * process what to do.  Each QP has a word of bits, qp_target.notify.  A bitmap,
 * hca_peer_area.notify, tells by row of the table of QPs which of these words
 * are not zero.  Lock: none; notify_take is for one thread at a time.
 */
#ifndef HCA_NOTIFY_H
#define HCA_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/adapter.h"
#include "hca/peer_area.h"

struct qp;

/* Sets bits for qp.  Called by a peer, or by the owner for itself.  True: the
 * owner sleeps, and the caller wakes it by a write to its eventfd. */
bool notify_post(struct hca *h, struct qp *qp, uint32_t bits);
/* For the owner: can there be bits for notify_take? */
static inline bool notify_pending(const struct hca *h)
{
	return shared_load(&h->peer_area->notify_pending);
}
/* For the owner: takes the bits of one QP into *bits, and returns the QP; NULL:
 * no bit is set. */
struct qp *notify_take(struct hca *h, uint32_t *bits);

#endif
