/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/client_wait.h"

#include "broker/procfs.h"
#include "util/monotonic.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

/* How long client_open goes on while it awaits no broker (awaits_broker).  In
 * all, client_open waits for OPEN_MS + client_want.patience_ms at most; the
 * time for which this process did not run is not counted (struct client_wait).
 */
#define OPEN_MS 15000
/* How long client_open waits before it tells the user that the broker is late:
 * LATE_MS if the broker is stopped, or sleeps while it starts; otherwise
 * SLOW_MS. */
#define LATE_MS 1000
#define SLOW_MS 5000
/* The longest poll.  If a poll took twice as long, this process was stopped or
 * got no processor. */
#define NAP_MS 500

void client_wait_begin(struct client_wait *w, uint64_t patience_ms)
{
	uint64_t now = monotonic_ms();

	*w = (struct client_wait){.end_ms = now + OPEN_MS,
				  .last_ms = now + OPEN_MS + patience_ms,
				  .began_ms = now};
}

/* Whether client_open fails now, since another try would fail too. */
static bool is_final(const struct client *c)
{
	return c->state == CLIENT_ALONE ||
	       (c->state == CLIENT_LOST && c->err != -EAGAIN &&
		c->err != -EPIPE && c->err != -ECONNRESET &&
		c->err != -ECONNREFUSED);
}

/* Whether the broker has yet to serve, or to welcome or refuse this client. */
static bool has_yet_to_answer(const struct client *c)
{
	return c->state == CLIENT_STARTING || c->state == CLIENT_ASKING ||
	       c->state == CLIENT_GREETING;
}

/* Whether a broker has yet to answer, or (-EAGAIN) another process is about to
 * start one, or this process has to wait before it starts one. */
static bool awaits_broker(const struct client *c)
{
	return has_yet_to_answer(c) || c->err == -EAGAIN;
}

void client_wait_nap(struct client *c, struct client_wait *w)
{
	struct pollfd p = {client_fd(c), POLLIN, 0};
	uint64_t began = monotonic_ms(), took;
	uint64_t until = c->due_ms < w->end_ms ? c->due_ms : w->end_ms;
	uint64_t left = until > began ? until - began : 0;

	poll(&p, 1, left < NAP_MS ? (int)left : NAP_MS);
	took = monotonic_ms() - began;
	if (took < 2 * NAP_MS)
		return;
	w->end_ms += took;
	w->last_ms += took;
	w->began_ms += took;
	c->start.began_ms += took;
	c->start.limit_ms += took;
	if (c->due_ms != UINT64_MAX)
		c->due_ms += took;
}

/*
 * Returns what to tell the user about a broker that has not answered for ms
 * milliseconds; NULL: nothing yet.  A broker that sleeps while it starts is
 * slow by itself.  A broker that waits for a processor is delayed by other
 * programs, so the user is told of it later.
 */
static const char *say_lateness(const struct client *c, pid_t pid, uint64_t ms)
{
	struct procfs_stat p = {0};
	bool starts = c->state == CLIENT_STARTING, sleeps;

	procfs_look(pid, &p);
	sleeps = starts && p.state == 'S';
	if (procfs_is_stopped(pid))
		return "is stopped";
	if (ms < SLOW_MS && !sleeps)
		return NULL;
	return starts ? "is slow to start" : "has not answered for 5 s";
}

static void tell_late(const struct client *c, struct client_wait *w,
		      uint64_t now)
{
	bool starts = c->state == CLIENT_STARTING;
	char text[128], who[24] = "";
	const char *how;
	pid_t pid;
	uint64_t began = starts ? c->start.began_ms : w->began_ms;

	if (w->is_reported || !c->say || now < began + LATE_MS)
		return;
	pid = starts ? c->start.broker : c->broker.visible_pid;
	how = say_lateness(c, pid, now - began);
	if (!how)
		return;
	w->is_reported = true;
	if (pid)
		snprintf(who, sizeof(who), ", process %d,", (int)pid);
	snprintf(text, sizeof(text),
		 "the broker adverbd%s %s: waiting for it as long as "
		 "ADVERB_PATIENCE says",
		 who, how);
	c->say(CLIENT_SAYS_LATE, text);
}

bool client_wait_goes_on(struct client *c, struct client_wait *w)
{
	uint64_t now = monotonic_ms();

	if (awaits_broker(c) && now + OPEN_MS > w->end_ms)
		w->end_ms = now + OPEN_MS;
	if (w->end_ms > w->last_ms)
		w->end_ms = w->last_ms;
	if (has_yet_to_answer(c))
		tell_late(c, w, now);
	return !is_final(c) && now < w->end_ms;
}
