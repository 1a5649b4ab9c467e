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
#include "util/count.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"
#include "util/shared.h"

#define END_S 1 /* how long await_end waits for a thread that was not woken */
/* The program counts as polling if its last poll is less than this long ago:
 * RECENT_NS when the thread wakes up, POLLED_NS at the end of a nap.  The
 * program counts as sending a stream if its last post is less than RECENT_NS
 * ago. */
#define RECENT_NS 100000
#define POLLED_NS 50000
/* A thread that has yielded its core to two threads that compute gets it back
 * within about this time. */
#define SLICES_NS 6000000
/* The shortest and the longest nap. */
#define NAP_MIN_NS 50000
#define NAP_MAX_NS 1000000

static pthread_t thread;
static bool is_running;
static sem_t begun;	  /* posted after local_peer_begin */
static int begin_err;	  /* the result of local_peer_begin */
static struct count arms; /* how often the program has armed a CQ */
/*
 * `current` is the number of the progress thread; a thread with another number
 * ends.  `decided` is the number of the last thread about whose end decide_end
 * has decided.  Either that thread releases its locks and ends; or
 * progress_thread_stop could not wake that thread, which does not touch the
 * locks when it wakes up later.
 */
static shared_u32 current = 1, decided;
/* The number of this progress thread. */
static _Thread_local uint32_t own_number;
/* The number for the progress thread that is being created. */
static uint32_t first_number;

/*
 * Does the program make progress by polling, and did its latest poll find
 * nothing?  Then it will poll again.  The program may be unable to poll now,
 * because this thread has its core, so a poll in the last RECENT_NS is enough.
 */
static bool will_poll_again(struct progress *p)
{
	return shared_load(&p->activity.polled_in_vain) &&
	       progress_ago_ns(shared_load(&p->activity.polled)) < RECENT_NS;
}

/* Does the program send a stream of bulk datagrams (poll_policy.h)?  Then its
 * posts also receive the ACKs. */
static bool is_streaming(struct progress *p)
{
	return shared_load(&p->policy.stream.streak) >= POLL_POLICY_STREAM &&
	       progress_ago_ns(shared_load(&p->activity.posted)) < RECENT_NS;
}

/* Has a poll of the program yielded the core so that the reader of a full
 * socket or ring may run there?  The program polls as soon as it gets the core
 * back.
 */
static bool waits_for_room(struct progress *p)
{
	return shared_load(&p->activity.yields_for_room) &&
	       progress_ago_ns(shared_load(&p->activity.polled)) < SLICES_NS;
}

/*
 * Leaves progress to the program, and sleeps in naps (leader_nap).  Returns
 * when the program made no progress during a nap, when no look found anything
 * during a nap (poll_looks.news) although the program does not wait for room,
 * when the program arms a CQ, or when the thread has to end.
 *
 * A nap costs the program's core two thread switches, so naps get longer,
 * except while this thread serves posts that wait (posts.is_served).  `ns` is
 * the length of the next nap: NAP_MIN_NS after a nap in which the program made
 * no progress; otherwise kept if the next call comes within 2 * NAP_MAX_NS, so
 * that naps do not get short again after each short pause of the traffic.
 */
static void watch_program(struct progress *p, uint32_t armed)
{
	static uint64_t ns, until_ns;
	uint64_t now = monotonic_ns();
	bool driven, waits;
	uint32_t news;

	if (now - until_ns > 2 * NAP_MAX_NS)
		ns = NAP_MIN_NS;
	shared_store(&p->activity.is_watched, 1);
	/* Orders the store of is_watched before the load of `arms`.  The fence
	 * in progress_thread_armed orders the store of `arms` before the load
	 * of is_watched.  Without these fences each of the two threads could
	 * miss the other's store, and this thread would nap while the program
	 * sleeps. */
	shared_fence();
	do {
		if (shared_load(&current) != own_number ||
		    count_now(&arms) != armed)
			break;
		news = shared_load(&p->policy.looks.news);
		leader_nap(p,
			   shared_load(&p->posts.is_served) ? NAP_MIN_NS : ns);
		waits = waits_for_room(p);
		driven = waits ||
			 progress_ago_ns(shared_load(&p->activity.polled)) <
				 POLLED_NS ||
			 is_streaming(p) || progress_is_held(p);
		ns = driven ? bits_min_u64(2 * ns, NAP_MAX_NS) : NAP_MIN_NS;
	} while (waits ||
		 (driven && news != shared_load(&p->policy.looks.news)));
	shared_store(&p->activity.is_watched, 0);
	until_ns = monotonic_ns();
}

/*
 * If the program polls, leaves the work for which this thread woke up to the
 * program: the program does the work sooner, and two threads would only hinder
 * each other.  This thread does the work of a program that has armed a CQ and
 * sleeps, and of a program that polls its own memory and polls a CQ only now
 * and then.
 */
static void leave_to_program(struct progress *p)
{
	static uint32_t seen;
	uint32_t armed = count_now(&arms);

	if (armed == seen &&
	    (will_poll_again(p) || is_streaming(p) || waits_for_room(p)))
		watch_program(p, armed);
	seen = count_now(&arms);
}

/*
 * Decides who disposes of the locks of the thread `number`.  The thread calls
 * this function before it releases the locks, and progress_thread_stop before
 * it makes them free for the next thread.  Only the first of these two calls
 * returns true.
 */
static bool decide_end(uint32_t number)
{
	uint32_t last = shared_load(&decided);

	while ((int32_t)(number - last) > 0)
		if (atomic_compare_exchange_weak(&decided, &last, number))
			return true;
	return false;
}

static void *run_thread(void *arg)
{
	struct progress *p = arg;

	/* This thread does not load its number from `current`: if
	 * progress_thread_stop was called before this thread began to run,
	 * `current` is another number already. */
	own_number = first_number;
	/* The default timer slack, 50 us, would double the shortest nap. */
	prctl(PR_SET_TIMERSLACK, 1ul);
	begin_err = local_peer_begin();
	sem_post(&begun);
	if (begin_err)
		return NULL;
	leader_take();
	while (shared_load(&current) == own_number) {
		leader_turn(p);
		leave_to_program(p);
	}
	if (!decide_end(own_number))
		return NULL; /* a later progress thread may have the locks */
	leader_give();
	local_peer_end();
	return NULL;
}

/* Returns a new descriptor of the eventfd by which local peers wake this
 * process, or of a new eventfd if there can be no local peers; -1 and errno. */
static int make_wake(void)
{
	if (local_peer_wake_fd() >= 0)
		return fd_identity_note(
			fcntl(local_peer_wake_fd(), F_DUPFD_CLOEXEC, 0));
	return fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

/* Waits until the thread holds the lock that hca_is_alive reads.  From then on
 * peers reach this process, even if it is stopped.  Returns 0, or a positive
 * errno: the thread could not begin, and has ended. */
static int await_begin(void)
{
	if (!local_peer_is_open())
		return 0;
	while (sem_wait(&begun) && errno == EINTR)
		;
	if (begin_err)
		pthread_join(thread, NULL);
	return -begin_err;
}

int progress_thread_start(struct progress *p)
{
	sigset_t all, old;
	int err;

	if (is_running)
		return 0;
	p->wake.fd = make_wake();
	if (p->wake.fd < 0)
		return -errno;
	leader_open(p);
	sem_init(&begun, 0, 0);
	sigfillset(&all);
	/* copy_nofault.h handles faults by these signals.  If the thread
	 * blocked them, a fault would end the process. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	first_number = shared_own(&current);
	err = pthread_create(&thread, NULL, run_thread, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		err = await_begin();
	if (err) {
		leader_close(p);
		leader_closed();
		fd_identity_close(p->wake.fd);
		p->wake.fd = -1;
		return -err;
	}
	pthread_setname_np(thread, "adverb");
	is_running = true;
	return 0;
}

/* Waits until the thread `number` has ended.  False: the program has closed the
 * eventfd, so the thread was not woken, and the thread has not begun to end by
 * itself within END_S seconds. */
static bool await_end(const struct progress *p, uint32_t number)
{
	struct timespec until;

	if (fd_identity_holds(p->wake.fd))
		return pthread_join(thread, NULL) == 0;
	monotonic_after(END_S * 1000, &until);
	if (!pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until))
		return true;
	if (decide_end(number))
		return false;
	/* the thread waits for nothing more */
	return pthread_join(thread, NULL) == 0;
}

bool progress_thread_stop(struct progress *p)
{
	uint32_t number = shared_own(&current);

	if (!is_running)
		return true;
	is_running = false;
	shared_store(&current, number + 1);
	leader_close(p);
	if (!await_end(p, number)) {
		pthread_detach(thread);
		leader_forget();
		return false;
	}
	leader_closed();
	fd_identity_close(p->wake.fd);
	p->wake.fd = -1;
	return true;
}

void progress_thread_forget(void)
{
	leader_forget();
	is_running = false;
}

void progress_thread_armed(struct progress *p)
{
	count_up(&arms);
	/* Orders the store of `arms` before the load of is_watched.  Without
	 * this fence and the one in watch_program, the progress thread could
	 * nap while the program sleeps. */
	shared_fence_after_exchange();
	if (shared_load(&p->activity.is_watched))
		progress_wake(p);
}
