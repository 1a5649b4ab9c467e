/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The questions of this process to a fabric about direct requests: which
 * program the packets of a queue pair would reach (FABRIC_PROTO_REACH), and
 * where the arena of a program is (FABRIC_PROTO_ARENA).  fabric_link sends one
 * question at a time, and passes the answers on.
 *
 * Owner: fabric_link.c.  Lock: the progress lock.
 */
#ifndef HOST_LINK_REACH_H
#define HOST_LINK_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/client.h"
#include "fabric/proto.h"
#include "util/shared.h"

enum {
	LINK_REACH_MAX = 32,	/* the most questions about queue pairs */
	LINK_REACH_ARENAS = 32, /* the most questions for arenas that wait */
};

enum link_reach_is {
	LINK_REACH_ASKED, /* there is no answer yet: the caller asks again */
	LINK_REACH_YES,	  /* the packets reach a program */
	LINK_REACH_NO,	  /* direct requests are not possible */
};

/* The packets of a queue pair. */
struct link_reach_about {
	uint32_t qpn;  /* of the queue pair */
	uint32_t port; /* the number of its port */
	/* When the queue pair began to wait (engine_wants_path).  An answer to
	 * an earlier wait may be about another queue pair that had the QPN, or
	 * about another time. */
	uint64_t since_ns;
	struct reach packets;
};

struct link_reach_question {
	enum {
		LINK_REACH_FREE,  /* this slot has no question */
		LINK_REACH_WAITS, /* the question was not sent yet */
		LINK_REACH_OPEN,  /* the question has no answer yet */
		LINK_REACH_DONE,  /* the question was answered */
	} state;
	bool is_yes; /* the answer: the packets reach a program */
	struct link_reach_about about;
	struct fabric_reached reached; /* that program, if is_yes is set */
};

struct link_reach {
	struct link_reach_question all[LINK_REACH_MAX];
	/* The numbers of programs whose arenas are asked for, oldest first. */
	uint32_t arenas[LINK_REACH_ARENAS];
	uint32_t arena_count;
};

/* If the fabric has answered the question about these packets, returns
 * LINK_REACH_YES, with the program in *reached, or LINK_REACH_NO, and forgets
 * the answer.  Otherwise returns LINK_REACH_ASKED, and notes the question,
 * unless the question was noted before or LINK_REACH_MAX questions have no
 * answer yet. */
enum link_reach_is link_reach_get(struct link_reach *r,
				  const struct link_reach_about *about,
				  struct fabric_reached *reached);
/* Asks for the arena of a program.  False: too many such questions wait. */
bool link_reach_want_arena(struct link_reach *r, uint32_t program);
/* Stores the kind and the members of the next question to be sent in *m.
 * False: there is none. */
bool link_reach_ask(struct link_reach *r, struct fabric_proto *m);
/* Takes the answer to the question about packets that was sent.  @reached: the
 * program that the packets reach; NULL: direct requests are not possible.
 * Afterwards local_peer_has_news returns true. */
void link_reach_answered(struct link_reach *r,
			 const struct fabric_reached *reached);
/* Is *r an answer that a fabric can give to the question about packets? */
bool link_reach_is_sound(const struct fabric_reached *r);
/* Judges the answer m to a question for an arena.  err: the answer's -errno or
 * 0.  fd: the descriptor that wakes the peer; -1: none came.  Returns
 * CLIENT_ARENA_GONE for -ESRCH; CLIENT_ARENA_LATER for another error, and if no
 * descriptor came: the fabric is then asked again; CLIENT_ARENA_NONE if m names
 * no process or fd can wake none (fd_check_is_wake); else CLIENT_ARENA_HERE. */
enum client_arena link_reach_judge_arena(const struct fabric_proto *m, int err,
					 int fd);
/* Passes the answer m to a question for an arena on to local_peer_answered.
 * err: the answer's -errno or 0.  Takes the descriptor fd; -1: none came. */
void link_reach_give_arena(const struct fabric_proto *m, int err, int fd);
/* Describes the arena of this process, with its descriptor fd. */
struct fabric_arena link_reach_arena(int fd);
/* Maps the subnet's number of changes, the first word of the fabric's page fd.
 * The caller unmaps the page by shared_page_unmap.  Returns NULL if fd is no
 * page (shared_page_is), or if there is no memory.  A child of fork does not
 * have the mapping. */
const shared_u32 *link_reach_map(int fd);

#endif
