/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eager messages: a message of few bytes stays in the slot of its receive until
 * the owner collects the completion and copies it to where it belongs
 * (docs/decisions/015).  A peer that is about to read or write that memory has
 * the message collected first.
 */
#ifndef HCA_EAGER_H
#define HCA_EAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/adapter.h"
#include "hca/wq.h"

struct qp;
struct space_vec;

struct eager {
	uint64_t at; /* the owner's address of its place; 0: no message */
	uint8_t bytes[WQE_EAGER_BYTES];
};

/* For rq_complete: writes @eager into w, the receive that is held, or marks w
 * as a receive without a message. */
void eager_leave(struct hca *h, struct qp *qp, struct wqe *w,
		 const struct eager *eager);
/* Is there a message that was not collected? */
bool eager_is_any(const struct hca *h, const struct qp *qp);
/* Does a message that was not collected belong to memory in vec[0..n)? */
bool eager_is_in_way(const struct hca *h, const struct qp *qp,
		     const struct space_vec *vec, size_t n);
/* The owner collects w: copies its message to its place.  0 or -EFAULT. */
int eager_place(struct hca *h, const struct qp *qp, struct wqe *w);
/* The owner collects all messages, before memory is deregistered that they may
 * belong to.  Under the ctx lock. */
void eager_settle(struct hca *h);

#endif
