/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups that programs of a host have joined by rdma_cm
 * (CMPROTO_JOIN).  The subnet administration counts ports, not programs (IBTA
 * Vol 1, 15.2.5.17).  So the port of a host joins a group when a program joins
 * the group, and leaves the group only after the last program has left.  No
 * I/O: the functions of the sink send the questions and the answers.  Messages
 * of programs and MADs are not trusted.  Owner: fabric_query, one thread.
 */
#ifndef TOOLS_FABRIC_GROUP_H
#define TOOLS_FABRIC_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "hdr/mad.h"
#include "hdr/sa.h"
#include "util/list.h"

enum {
	/* The most memberships of a host's programs, and the most groups. */
	FABRIC_GROUP_MEMBERS = 4096,
	/* The most memberships of a program, and the most open questions that
	 * it has caused. */
	FABRIC_GROUP_OWN = 256,
};

/* The functions by which a table asks the subnet administration and answers
 * programs.  user: the argument of fabric_group_init; owner: the argument of
 * fabric_group_join. */
struct fabric_group_sink {
	/* Sends a question to the subnet administration, from the port with the
	 * GID.  An answer, or the failure to get one, comes by
	 * fabric_group_take.  Returns 0 or -errno, as cmproto.h says. */
	int (*ask)(void *user, const uint8_t gid[16],
		   const uint8_t mad[MAD_BYTES]);
	/* Answers a program's request to join.  *m is set if err is 0. */
	void (*answer)(void *user, void *owner, uint32_t serial, int err,
		       const struct sa_member *m);
	/* Tells a program that its membership with this number has ended. */
	void (*lost)(void *user, void *owner, uint32_t number);
};

/* The table of the groups that programs of one host have joined. */
struct fabric_groups {
	const struct fabric_group_sink *sink; /* borrowed */
	void *user; /* the first argument of the sink's functions */
	/* The id of the last question.  Questions for paths take their ids
	 * from this counter, too. */
	uint32_t *last_id;
	struct list all;       /* struct sa_group */
	uint32_t member_count; /* memberships, of all groups */
	uint32_t group_count;  /* groups in all */
};

/* Returns the values of *r that a message tells a program (cmproto.h). */
static inline struct cmproto_group fabric_group_write(const struct sa_member *r)
{
	return (struct cmproto_group){.qkey = r->qkey,
				      .flow_label = r->flow_label,
				      .mlid = r->mlid,
				      .mtu = r->mtu,
				      .rate = r->rate,
				      .sl = r->sl,
				      .traffic_class = r->traffic_class,
				      .hop_limit = r->hop_limit,
				      .join_state = r->join_state};
}

/* Makes an empty table.  user: the first argument of the functions of sink.
 * sink and last_id are borrowed. */
void fabric_group_init(struct fabric_groups *all,
		       const struct fabric_group_sink *sink, void *user,
		       uint32_t *last_id);
/* Frees all groups of the table and their memberships, and sends nothing. */
void fabric_group_free(struct fabric_groups *all);
/* The program `owner` joins a group by the request m.  Returns 0: the sink's
 * `answer` is called, maybe at once; or -errno, as cmproto.h says. */
int fabric_group_join(struct fabric_groups *all, void *owner,
		      const struct cmproto *m);
/* The program ends its membership with this number, if there is one.  A join
 * without an answer is answered by -ECANCELED. */
void fabric_group_leave(struct fabric_groups *all, const void *owner,
			uint32_t number);
/* Ends all memberships of a program that ends.  Joins that have no answer yet
 * get none. */
void fabric_group_drop(struct fabric_groups *all, const void *owner);
/* Ends the memberships in each group for which is_lost returns true, because a
 * port may have lost the group.  The sink's `lost` tells each program that had
 * such a membership.  Does not ask the administration to join again: as with
 * the kernel, the programs have to do that.  A join that has no answer yet is
 * not ended.  When the answer comes, the administration is asked again, since
 * the port may have lost the group since the question. */
void fabric_group_lose(struct fabric_groups *all,
		       bool (*is_lost)(const void *arg,
				       const struct sa_member *r),
		       const void *arg);
/* Takes the answer to the question `id`; the answer may have any contents.  err
 * is 0; or -ETIMEDOUT: no answer has come, and mad is not read.  Returns false
 * if no group has asked this question. */
bool fabric_group_take(struct fabric_groups *all, uint32_t id, int err,
		       const uint8_t *mad, size_t bytes);
/* Is a question open? */
bool fabric_group_is_busy(const struct fabric_groups *all);

#endif
