/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "host/peer.h"
#include "util/bits.h"
#include "util/ring.h"

#define PARK_NS	   1000000
#define POLLS_FAST 100 /* polls in PARK_NS of a program that only polls */

static pthread_t thread;
static bool is_running;
static ring_index stopping, is_parked;
/* Approximate: several pollers may lose counts, which does no harm. */
static ring_index polls;

/* Sleep until the socket, the broker, the eventfd or `until` (UINT64_MAX: for
 * good). */
static void wait_until(struct lane *l, uint64_t until, short socket_events)
{
	struct pollfd fds[3] = {
		{.fd = l->wake_fd, .events = POLLIN},
		{.fd = peer_fd(), .events = POLLIN},
		{.fd = l->wire.fd, .events = socket_events},
	};
	uint64_t now = lane_now(), left = until > now ? until - now : 0, sink;
	struct timespec t = {
		.tv_sec = (time_t)(left / 1000000000u),
		.tv_nsec = (long)(left % 1000000000u),
	};
	int n = ppoll(fds, socket_events ? 3 : 2,
		      until == UINT64_MAX ? NULL : &t, NULL);

	if (n > 0 && fds[1].revents) {
		peer_woken();
		lane_try(l);
	}
	if (n > 0 && fds[0].revents & POLLIN &&
	    read(l->wake_fd, &sink, sizeof sink) < 0)
		return; /* nothing was there to take back */
}

static void park(struct lane *l)
{
	uint32_t before;

	ring_store(&is_parked, 1);
	do {
		before = ring_load(&polls);
		wait_until(l, lane_now() + PARK_NS, 0);
	} while (!ring_load(&stopping) &&
		 ring_load(&polls) - before >= POLLS_FAST);
	ring_store(&is_parked, 0);
}

/*
 * Does the program poll so fast that it drives the lane itself?  One that
 * polls its memory and only now and then its CQ (write latency) does not.
 */
static bool is_polled_fast(void)
{
	static uint64_t since;
	static uint32_t before;
	uint64_t now = lane_now();
	uint32_t polled = ring_load(&polls);
	bool fast;

	if (now - since < PARK_NS)
		return false;
	fast = polled - before >= POLLS_FAST && now - since < 4 * PARK_NS;
	since = now;
	before = polled;
	return fast;
}

/* Turn the lane, then sleep as long as it allows. */
static void drive(struct lane *l)
{
	uint64_t until;
	short events;

	lane_try(l);
	lane_take(l);
	until = l->wire.is_behind ? lane_now() : engine_deadline(l->engine);
	until = bits_min_u64(until, peer_due_ns());
	events = (short)(l->is_full ? POLLIN | POLLOUT : POLLIN);
	l->wake_ns = until;
	lock_give(&l->lock);
	wait_until(l, until, events);
	lock_take(&l->lock);
	l->wake_ns = 0;
	lock_give(&l->lock);
}

static void *run(void *arg)
{
	struct lane *l = arg;

	while (!ring_load(&stopping)) {
		if (is_polled_fast())
			park(l);
		else
			drive(l);
	}
	return NULL;
}

int thread_start(struct lane *l)
{
	sigset_t all, old;
	int err;

	if (is_running)
		return 0;
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake_fd < 0)
		return -errno;
	ring_store(&stopping, 0);
	sigfillset(&all);
	/* blocked, they would be fatal where guard.h has an exit */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, run, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		close(l->wake_fd);
		l->wake_fd = -1;
		return -err;
	}
	pthread_setname_np(thread, "adverb");
	is_running = true;
	return 0;
}

void thread_stop(struct lane *l)
{
	if (!is_running)
		return;
	ring_store(&stopping, 1);
	lane_wake(l);
	pthread_join(thread, NULL);
	close(l->wake_fd);
	l->wake_fd = -1;
	is_running = false;
}

void thread_forget(void)
{
	is_running = false;
}

void thread_polled(void)
{
	ring_store(&polls, ring_own(&polls) + 1);
}

void thread_armed(struct lane *l)
{
	if (ring_load(&is_parked))
		lane_wake(l);
}
