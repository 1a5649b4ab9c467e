/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs of a fabric that let other programs map their arenas
 * (FABRIC_PROTO_SHARE), and the page that shows these programs the subnet's
 * number of changes (reach_changes).  Owner: the process's one thread.
 */
#ifndef TOOLS_FABRIC_DIRECT_H
#define TOOLS_FABRIC_DIRECT_H

#include "fabric/proto.h"
#include "util/shared.h"

#include <stdbool.h>
#include <stdint.h>

/* A program; a member of its struct connection. */
struct fabric_program {
	uint32_t number; /* 1 to DATA_NUMBER_MAX; 0: shares no arena */
	struct fabric_arena arena; /* where the program's arena is */
	int wake_fd; /* the eventfd that wakes the program; owned */
};

/* The sharing programs of a fabric. */
struct fabric_direct {
	bool is_allowed;     /* programs may share */
	int page_fd;	     /* a memfd that programs can only read; -1: none */
	shared_u32 *changes; /* the first word of the page; NULL: none */
	uint32_t last;	     /* the number that was given last */
	/* The programs by number; NULL: none. */
	struct fabric_program *programs[DATA_NUMBER_MAX + 1];
};

/* Prepares *d.  If is_allowed, makes the page.  Returns 0 or -errno. */
int fabric_direct_open(struct fabric_direct *d, bool is_allowed);
/* Closes the page.  The caller has ended the sharing of all programs before. */
void fabric_direct_close(struct fabric_direct *d);
/* Shows the programs the subnet's number of changes.  The caller calls this
 * after fabric_turn, and before it sends programs the MADs and packets of that
 * turn.  Otherwise a program that has learned of a change from a MAD could find
 * the old number in the page, and would use an answer of FABRIC_PROTO_REACH
 * that is no longer true. */
void fabric_direct_show(struct fabric_direct *d, uint32_t changes);
/* Notes that the program *p, which must stay valid until fabric_direct_leave,
 * shares its arena.  @pid: the program's pid as the kernel tells it.  Takes
 * wake_fd if the result is 0.  Returns 0; -EOPNOTSUPP: programs may not share;
 * -EBUSY: the program shares already; -EINVAL: wake_fd is no eventfd, or the
 * pid or the descriptor in *arena is wrong; -EMFILE: too many programs share.
 */
int fabric_direct_share(struct fabric_direct *d, struct fabric_program *p,
			const struct fabric_arena *arena, int pid, int wake_fd);
/* Ends the sharing of a program, and closes its eventfd.  Returns whether the
 * program shared. */
bool fabric_direct_leave(struct fabric_direct *d, struct fabric_program *p);
/* Returns the program with a number; NULL: none shares with this number. */
const struct fabric_program *fabric_direct_find(const struct fabric_direct *d,
						uint32_t number);

#endif
