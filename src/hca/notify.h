/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notify bits: what peers of this host tell a QP's own process (enum
 * qp_notify).  Each QP has a word of bits; a bitmap by row of the table of QPs
 * says which words are not zero.
 */
#ifndef HCA_NOTIFY_H
#define HCA_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/adapter.h"
#include "hca/peer_area.h"

struct qp;

/* A peer sets bits for qp.  True: the owner sleeps, and the peer writes its
 * eventfd. */
bool notify_post(struct hca *h, struct qp *qp, uint32_t bits);
/* The owner: may a bit be set? */
static inline bool notify_pending(const struct hca *h)
{
	return shared_load(&h->peer_area->notify_pending);
}
/* The owner takes the bits of one QP, which is returned; NULL: no bit is set.
 */
struct qp *notify_take(struct hca *h, uint32_t *bits);

#endif
