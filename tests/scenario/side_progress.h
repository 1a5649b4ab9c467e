/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress loop of a process that has side 0 of a struct two_hcas.  The
 * test's thread makes the calls that the threads of such a process make. */
#ifndef TESTS_SCENARIO_SIDE_PROGRESS_H
#define TESTS_SCENARIO_SIDE_PROGRESS_H

#include "test.h"

#include <sys/eventfd.h>

#include "host/progress.h"
#include "host/waitset.h"
#include "scenario/two_hcas.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"

#define WAIT_NS 60000000000ull /* far more than any wait takes */

static struct progress progress;

static inline void ignore_event(const struct engine_event *e)
{
}

static inline void ignore_fatal(void)
{
}

/* Gives side 0's engine to the progress loop. */
static inline void begin_progress(struct two_hcas *d, void (*fatal)(void))
{
	const struct host_sink sink = {.event = ignore_event, .fatal = fatal};
	int fd = udp_bind(0);

	assert_true(fd >= 0);
	d->now_ns = monotonic_ns();
	assert_int_equal(progress_init(&progress, d->side[0].engine, fd, &sink,
				       (struct udp_offload){0}, false),
			 0);
	progress.wake.fd =
		fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

static inline void end_progress(struct two_hcas *d)
{
	engine_qp_remove(d->side[0].engine, d->side[0].side);
	fd_identity_close(progress.wake.fd);
	progress_fini(&progress);
	d->side[0].is_dead = true;
}

static inline void poll_once(void)
{
	static shared_u32 skipped;

	progress_poll(&progress, &skipped);
}

static inline bool never_over(void *arg)
{
	return false;
}

/* Makes progress as the leader (host/leader.h) does before it waits for work.
 * Returns the events of the sockets for which the leader would wait. */
static inline short rest_once(void)
{
	const struct host_sleep sleep = {.is_over = never_over};
	struct progress_rest r = {.sleep = &sleep};

	assert_true(progress_rest(&progress, &r));
	return r.events;
}

/* Waits as the leader does, and expects that an event ends the wait. */
static inline void wait_once(struct waitset *in, short events)
{
	assert_int_equal(
		waitset_wait(in, &progress, monotonic_ns() + WAIT_NS, events),
		0);
	assert_false(in->has_timed_out);
	progress_rested(&progress);
}

#endif
