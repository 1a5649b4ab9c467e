/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte streams between the QPs of iWARP pairs, with the guarantees of TCP: each
 * byte arrives once and in order.  Bytes may be late, come in pieces of any
 * size, and be lost if a process ends.  Each flow has one stream.
 */
#ifndef SIM_BYTESTREAM_H
#define SIM_BYTESTREAM_H

#include "sim/workload.h"

struct bytestream;
struct stream_config;

/* Opens the stream of f, whose QP is in RTS, with the configuration c, which is
 * copied.  The world fails if the engine refuses. */
void bytestream_open(struct world *w, struct flow *f,
		     const struct stream_config *c);
/* Discards the stream of f and its bytes, at the end of a round. */
void bytestream_close(struct flow *f);
/* Ends the stream of f because the process of f's QP has ended.  A random
 * number of the bytes under way, the first ones, still arrive; then the peer
 * learns of the end. */
void bytestream_break(struct flow *f);
/* Have all bytes of f arrived?  True also if f has no open stream. */
bool bytestream_is_empty(const struct flow *f);
/* Moves the bytes that the engine of h has to send into the streams, as far as
 * these have room. */
void bytestream_send(struct host *h);
/* Gives the engine of h the bytes that are due, and tells it of the ends of
 * streams. */
void bytestream_receive(struct host *h);
/* Returns the world's time at which bytes or the end of a stream next reach h;
 * UINT64_MAX: never. */
uint64_t bytestream_next(const struct host *h);

#endif
