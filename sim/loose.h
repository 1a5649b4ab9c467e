/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What UC and UD have in common: a message may be lost, come twice or late,
 * but what is received is a message that was sent, to the byte.
 */
#ifndef SIM_LOOSE_H
#define SIM_LOOSE_H

#include "sim/service.h"

/* Draw a request of one of n opcodes, at most `most` bytes, and its receive,
 * which has `head` bytes in front. */
bool loose_make(struct world *w, struct flow *f, bool defective,
		const uint8_t *opcodes, uint32_t n, uint32_t most,
		uint32_t head);
bool loose_may_end(const struct flow *f, uint32_t i, uint32_t status);
void loose_received(struct world *w, struct flow *f, uint32_t i,
		    const struct cqe *c, uint32_t head);
bool loose_is_over(const struct flow *f);
void loose_replay(struct flow *f, uint32_t head);

#endif
