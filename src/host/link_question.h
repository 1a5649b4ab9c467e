/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The question that the link to an emulated subnet has sent to the fabric, and
 * to which no answer has come.  There is one at a time.
 *
 * Owner: fabric_link.c.  Lock: the progress lock.
 */
#ifndef HOST_LINK_QUESTION_H
#define HOST_LINK_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/proto.h"

/* Initially all zero. */
struct link_question {
	/* The question.  The answer repeats its serial.  kind 0: there is no
	 * open question. */
	struct fabric_proto asked;
	/* The kernel had no memory to send the open question. */
	bool is_owed;
	/* The serial of an earlier request, if this process has stopped
	 * waiting for its answer, and the answer has not come; 0: no such
	 * answer is to come. */
	uint32_t late;
};

/* Sends the question *m by the connection `control`.  No question is open, so
 * the socket has room.  Returns 0, also if the kernel has no memory for the
 * message now and link_question_resume has to send it; or -errno. */
int link_question_send(struct link_question *q, int control,
		       struct fabric_proto *m);
/* Sends the open question, if it is owed.  Returns 0 or -errno, as
 * link_question_send does. */
int link_question_resume(struct link_question *q, int control);
/* Is the message a valid answer to the open question? */
bool link_question_is_answer(const struct link_question *q,
			     const struct fabric_proto *m);
/* Does err, the result of fabric_client_judge, mean that the fabric refuses the
 * open question?  A fabric may refuse only FABRIC_PROTO_JOIN,
 * FABRIC_PROTO_REACH and FABRIC_PROTO_ARENA. */
bool link_question_is_refused(const struct link_question *q, int err);
/* Is the message of n bytes the answer to the request q->late?  If so, sets
 * q->late to 0, since that answer comes once at most. */
bool link_question_is_late(struct link_question *q,
			   const struct fabric_proto *m, size_t n);

#endif
