/* SPDX-License-Identifier: BSD-2-Clause */
/* Low limits on open files, for tests of a broker or a client that may have no
 * more descriptors. */
#ifndef TESTS_UNIT_LOW_LIMITS_H
#define TESTS_UNIT_LOW_LIMITS_H

#include "brokers.h"
#include "in_flight.h"

#define FEW 32 /* a low limit on open files */
/* A limit on open files that is a little less than UNDER_WAY.  With a much
 * lower limit, the descriptors that other programs of the user have in flight
 * could already exceed it: the fd store of each broker has 17 in flight, and
 * more for each class. */
#define HARD 990

static const struct client_want silent = {
	.arena_fd = -1, .peer_wake_fd = -1, .patience_ms = 60000};

static void (*beside)(void); /* the body of run_beside_broker */

static inline void start_broker_and_run(void)
{
	struct client first;
	pid_t pid;

	open_or_fail(&first);
	pid = broker_of(&first);
	run_in_child(beside);
	client_close(&first);
	end_broker(pid);
}

/* Starts a broker from a client without a low limit, and then runs @body in a
 * child.  The broker, that client and the child are of one user, and have no
 * capabilities. */
static inline void run_beside_broker(void (*body)(void))
{
	beside = body;
	run_in_child(start_broker_and_run);
}

#endif
