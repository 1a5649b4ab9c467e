/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte streams between the QPs of iWARP pairs, as TCP gives them: each byte
 * arrives once and in order, in pieces of any size, late, or never if one of
 * the ends goes.  One stream for each flow.
 */
#ifndef SIM_BYTESTREAM_H
#define SIM_BYTESTREAM_H

#include "sim/workload.h"

struct bytestream;
struct stream_config;

/* Opens the stream of f, whose QP is in RTS. */
void bytestream_open(struct world *w, struct flow *f,
		     const struct stream_config *c);
/* Forgets the stream of f and its bytes: the round ends. */
void bytestream_close(struct flow *f);
/* The process of f's QP ends: bytes under way may still arrive, and the peer
 * learns of the end. */
void bytestream_break(struct flow *f);
/* Have all bytes of f arrived? */
bool bytestream_is_empty(const struct flow *f);
/* Takes the bytes that the engine of h has to send. */
void bytestream_send(struct host *h);
/* Gives the engine of h the bytes that are due. */
void bytestream_receive(struct host *h);
/* Returns the world's time at which h next receives bytes; UINT64_MAX: never.
 */
uint64_t bytestream_next(const struct host *h);

#endif
