/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/progress_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "host/leader.h"
#include "host/local_peer.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/shared.h"

#define END_S	   1	  /* a thread may be past all its waits */
#define HUNGRY_NS  100000 /* a polling program comes back by then */
#define POLLED_NS  50000
#define NAP_MIN_NS 50000
#define NAP_MAX_NS 1000000

static pthread_t thread;
static bool is_running;
static sem_t begun;
static shared_u32 arms;
/* The number of the thread that is to run, and of the last that was left alone:
 * all up to that have ended, or sleep for good. */
static shared_u32 current = 1, left_alone;
static _Thread_local uint32_t own_number; /* our thread's, and */
static uint32_t first_number;		  /* as it was when that was made */

/*
 * Does the program make progress by polling, and did its latest poll find
 * nothing?  Then it polls again.  Judged by the clock: this thread may have
 * taken the program's core.
 */
static bool is_hungry(struct progress *l)
{
	return shared_load(&l->activity.is_hungry) &&
	       progress_ago_ns(shared_load(&l->activity.polled)) < HUNGRY_NS;
}

/* Does it send a stream?  It receives the ACKs while it posts. */
static bool is_streaming(struct progress *l)
{
	return shared_load(&l->policy.stream.streak) >= POLL_POLICY_STREAM &&
	       progress_ago_ns(shared_load(&l->activity.posted)) < HUNGRY_NS;
}

/*
 * Leaves progress to the program for as long as the program makes progress and
 * there is news; arming a CQ ends this.  A nap costs the program's core two
 * switches, so naps get longer, also over times without news.
 */
static void watch_program(struct progress *l, uint32_t armed)
{
	static uint64_t ns, until_ns;
	uint64_t now = clock_real();
	bool driven;
	uint32_t news;

	if (now - until_ns > 2 * NAP_MAX_NS)
		ns = NAP_MIN_NS;
	shared_store(&l->activity.is_watched, 1);
	shared_fence();
	do {
		if (shared_load(&current) != own_number ||
		    shared_load(&arms) != armed)
			break;
		news = shared_load(&l->policy.looks.news);
		leader_nap(l,
			   shared_load(&l->posts.is_minded) ? NAP_MIN_NS : ns);
		driven = progress_ago_ns(shared_load(&l->activity.polled)) <
				 POLLED_NS ||
			 is_streaming(l) || progress_is_held(l);
		ns = driven ? bits_min_u64(2 * ns, NAP_MAX_NS) : NAP_MIN_NS;
	} while (driven && news != shared_load(&l->policy.looks.news));
	shared_store(&l->activity.is_watched, 0);
	until_ns = clock_real();
}

/*
 * Woken, there is something to do.  A program that polls does it sooner than
 * we, and two at once only hinder each other; a program that has armed a CQ
 * sleeps, one that polls its memory only now and then polls a CQ.
 */
static void leave_to_program(struct progress *l)
{
	static uint32_t seen;
	uint32_t armed = shared_load(&arms);

	if (armed == seen && (is_hungry(l) || is_streaming(l)))
		watch_program(l, armed);
	seen = shared_load(&arms);
}

static void *run_thread(void *arg)
{
	struct progress *l = arg;

	/* it may be stopped already: then another number is to run */
	own_number = first_number;
	/* naps are shorter than the slack that timers have */
	prctl(PR_SET_TIMERSLACK, 1ul);
	local_peer_begin();
	sem_post(&begun);
	leader_take();
	while (shared_load(&current) == own_number) {
		leader_turn(l);
		leave_to_program(l);
	}
	if (own_number <= shared_load(&left_alone))
		return NULL; /* the locks are its successor's */
	leader_give();
	local_peer_end();
	return NULL;
}

/* Others of this host wake us by the same. */
static int make_wake(void)
{
	if (local_peer_kick_fd() >= 0)
		return fd_identity_note(
			fcntl(local_peer_kick_fd(), F_DUPFD_CLOEXEC, 0));
	return fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

int progress_thread_start(struct progress *l)
{
	sigset_t all, old;
	int err;

	if (is_running)
		return 0;
	l->wake.fd = make_wake();
	if (l->wake.fd < 0)
		return -errno;
	leader_open(l);
	sem_init(&begun, 0, 0);
	sigfillset(&all);
	/* blocked, they would be fatal where copy_nofault.h has an exit */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	first_number = shared_own(&current);
	err = pthread_create(&thread, NULL, run_thread, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		leader_close(l);
		leader_closed();
		fd_identity_close(l->wake.fd);
		l->wake.fd = -1;
		return -err;
	}
	pthread_setname_np(thread, "adverb");
	is_running = true;
	/* A process that is stopped from here on can be reached all the same.
	 */
	while (local_peer_is_open() && sem_wait(&begun) && errno == EINTR)
		;
	return 0;
}

/* False: it sleeps by descriptors that the program has closed, so nothing can
 * wake it. */
static bool await_end(const struct progress *l)
{
	struct timespec until;

	if (fd_identity_holds(l->wake.fd))
		return pthread_join(thread, NULL) == 0;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_S;
	return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

bool progress_thread_stop(struct progress *l)
{
	if (!is_running)
		return true;
	is_running = false;
	shared_store(&current, shared_own(&current) + 1);
	leader_close(l);
	if (!await_end(l)) {
		shared_store(&left_alone, shared_own(&current) - 1);
		pthread_detach(thread);
		leader_forget();
		return false;
	}
	leader_closed();
	fd_identity_close(l->wake.fd);
	l->wake.fd = -1;
	return true;
}

void progress_thread_forget(void)
{
	leader_forget();
	is_running = false;
}

void progress_thread_armed(struct progress *l)
{
	shared_store(&arms, shared_own(&arms) + 1);
	shared_fence();
	if (shared_load(&l->activity.is_watched))
		progress_wake(l);
}
