/* SPDX-License-Identifier: BSD-2-Clause */
/* Two adapters with a pair of iWARP byte streams between them.  The caller
 * moves, cuts and damages the bytes of the streams.  A function that fails ends
 * the test. */
#ifndef TESTS_SCENARIO_JOINED_H
#define TESTS_SCENARIO_JOINED_H

#include "ibt/ibt.h"
#include "iwarp/stream.h"
#include "scenario/two_hcas.h"

struct joined_pipe {
	uint8_t *bytes;
	uint32_t head; /* the offset of the next byte that a side appends */
	uint32_t tail; /* the offset of the next byte that is delivered */
};

/* Side 0 is the initiator; pipe[i] goes from side i to the other side. */
struct joined {
	struct two_hcas *d;
	struct stream_config config[2]; /* of each side's stream */
	struct joined_pipe pipe[2];
	uint32_t piece; /* bytes that arrive at once; 0: all bytes of the pipe
			 */
};

/* A configuration with CRC, and without markers, extensions or a
 * ready-to-receive message. */
extern const struct stream_config joined_config;

/* Begins a connection.  The marker flags of *both are those of side 0; side 1
 * gets them with sending and receiving exchanged. */
void joined_with(struct joined *j, const struct stream_config *both);
/* Begins a connection with joined_config. */
void joined_plain(struct joined *j);
/* Begins a peer-to-peer connection.  The initiator sends a ready-to-receive
 * message of the kind `sent`, and the responder accepts the kinds `taken`. */
void joined_kinds(struct joined *j, uint8_t sent, uint8_t taken);
/* Opens both streams again with j->config, and empties the pipes. */
void joined_open(struct joined *j);
/* Frees the adapters and the pipes. */
void joined_part(struct joined *j);
/* Posts a request of side 0. */
void joined_post(struct joined *j, enum hca_wr op, uint64_t local,
		 uint32_t bytes, uint64_t remote);
/* Appends to pipe[i] the bytes that side i has to send.  Returns whether side i
 * had anything to send. */
bool joined_fill(struct joined *j, int i);
/* Gives side `to` n bytes, or as many as there are. */
void joined_deliver(struct joined *j, int to, uint32_t n);
/* Runs until neither side has anything to send. */
void joined_run(struct joined *j);
/* Takes a completion of side i. */
struct cqe joined_polled(struct joined *j, int i);
/* Takes a completion of side i, which must have this status. */
void joined_done(struct joined *j, int i, uint32_t status);
/* Fails if side i has a completion. */
void joined_idle(struct joined *j, int i);
/* Returns the memory of side i. */
uint8_t *joined_bytes(struct joined *j, int i);
/* Fails unless the bytes of side 0 at `from` equal those of side 1 at `to`. */
void joined_same(struct joined *j, uint64_t from, uint64_t to, uint32_t bytes);
/* Returns the phase of side i's stream. */
enum stream_phase joined_phase(struct joined *j, int i);
/* Returns the state of side i's QP. */
uint32_t joined_state(struct joined *j, int i);
/* Fails unless each side has sent packets, and has counted as received the
 * packets and bytes that the other side has counted as sent. */
void joined_counted(struct joined *j);
/* Fails unless both streams are over, both QPs are in the error state, the
 * Terminate of side 1 has this cause, and the sentence in which the engine of
 * side 0 explains the end contains the text of this cause. */
void joined_terminated(struct joined *j, enum terminate_cause cause);
/* Side 0 executes a WRITE, a SEND and a READ of `bytes` bytes each.  Fails
 * unless all bytes arrive. */
void joined_exchange(struct joined *j, uint32_t bytes);

#endif
