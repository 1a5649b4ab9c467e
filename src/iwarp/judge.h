/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides by the header of a segment whether the segment may be placed (RFC
 * 5041 7.1, RFC 5040 7.2).  The present segment is iwarp_stream.segment, whose
 * DDP header has come.  Nothing is placed or completed here.  Owner and lock:
 * those of the stream.
 */
#ifndef IWARP_JUDGE_H
#define IWARP_JUDGE_H

#include <stdbool.h>

#include "ibt/ibt.h"
#include "iwarp/terminate.h"

struct iwarp_stream;

/*
 * Judges the present segment of q's stream: its versions, queue, opcode, order,
 * key and length.  A SEND or Immediate Data takes a receive if it has none yet;
 * a SEND that is MPA's ready-to-receive takes none.  Sets segment.info, and the
 * facts for a message to the user in segment.explain.  Returns true if the
 * segment may be placed.  False: segment.refused is the cause, and if a SEND is
 * longer than its receive, segment.receive_status is the receive's status.
 */
bool judge_segment(struct ibt *t, struct ibt_qp *q);
/* Refuses the present segment of the stream because of `cause`.  Always returns
 * false, so that the caller can return this result. */
bool judge_refuse(struct iwarp_stream *s, enum terminate_cause cause);

#endif
