/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/sigrestart.h"

#include "host/progress.h"
#include "util/monotonic.h"

/* sigrestart_differ reads the program's handlers again if the last read was
 * more than LOOK_NS nanoseconds ago. */
#define LOOK_NS 100000000

/* Is this a signal of a fault or of abort(3)?  Such a signal goes to the thread
 * that has the fault or calls abort, and a thread that waits does neither.  So
 * no such signal is expected to interrupt a wait. */
static bool is_of_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE ||
	       sig == SIGILL || sig == SIGTRAP || sig == SIGSYS ||
	       sig == SIGABRT;
}

static void look_at_handlers(struct sigrestart *h)
{
	struct sigaction a;

	sigemptyset(&h->restarting);
	sigemptyset(&h->ending);
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		if (is_of_fault(sig) || sigaction(sig, NULL, &a) ||
		    a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN)
			continue;
		sigaddset(a.sa_flags & SA_RESTART ? &h->restarting : &h->ending,
			  sig);
	}
	h->looked_ns = monotonic_ns();
}

bool sigrestart_differ(struct sigrestart *h)
{
	if (!h->looked_ns || monotonic_ns() - h->looked_ns > LOOK_NS)
		look_at_handlers(h);
	return !sigisemptyset(&h->restarting) && !sigisemptyset(&h->ending);
}

bool sigrestart_end(struct sigrestart *h)
{
	const sigset_t before = h->ending;

	look_at_handlers(h);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sigismember(&before, sig) &&
		    !sigismember(&h->restarting, sig))
			return true;
	return !sigisemptyset(&h->ending);
}

bool sigrestart_block(const struct sigrestart *h, sigset_t *before)
{
	return !sigisemptyset(&h->ending) &&
	       !pthread_sigmask(SIG_BLOCK, &h->ending, before);
}

bool sigrestart_is_pending(const struct sigrestart *h, const sigset_t *before)
{
	sigset_t come;

	sigpending(&come);
	sigandset(&come, &come, &h->ending);
	for (int sig = 1; sig <= SIGRTMAX && !sigisemptyset(&come); sig++) {
		if (sigismember(&come, sig) && !sigismember(before, sig))
			return true;
		sigdelset(&come, sig);
	}
	return false;
}
