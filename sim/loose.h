/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts that the simulations of UC and UD have in common: a message may be
 * lost, duplicated or delayed, but each received message equals a sent message
 * byte by byte.  Each function implements a member of struct service, which
 * says what the function does.
 */
#ifndef SIM_LOOSE_H
#define SIM_LOOSE_H

#include "sim/service.h"

/* Implements service.make: draws one of the n opcodes, and a length of at most
 * `most` bytes.  A receive has `head` bytes in front of the message (UD: the
 * GRH). */
bool loose_make(struct world *w, struct flow *f, bool defective,
		const uint8_t *opcodes, uint32_t n, uint32_t most,
		uint32_t head);
/* Implements service.may_end. */
bool loose_may_end(const struct flow *f, uint32_t i, uint32_t status);
/* Implements service.received: a receive has `head` bytes in front of the
 * message. */
void loose_received(struct world *w, struct flow *f, uint32_t i,
		    const struct cqe *c, uint32_t head);
/* Implements service.is_over: always true, because any message may be lost. */
bool loose_is_over(const struct flow *f);
/* Implements service.replay: a receive has `head` bytes in front of the
 * message. */
void loose_replay(struct flow *f, uint32_t head);

#endif
