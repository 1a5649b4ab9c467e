/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids that wait for a neighbour.  A thread waits while there are such ids: the
 * kernel tells the thread when a neighbour has changed.
 */
#include "rdmacm/neighbour.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"

/* After this pause the kernel is made to ask again, in case it has given up. */
#define AGAIN_MS 500

struct neighbour_wait {
	struct list link; /* in waits */
	struct r_id *id;
	r_neighbour_end *end;
	struct neighbour_hop hop;
	/* If has_old: a MAC that the fabric does not know.  The neighbour's
	 * interface may have been made again, and will announce its new MAC. */
	bool has_old;
	uint8_t old[NEIGHBOUR_MAC_BYTES];
	uint64_t until_ms; /* when the wait ends in any case */
	uint64_t again_ms; /* when the kernel is made to ask next */
	/* When the wait has ended: the arguments of `end`. */
	int err;
	uint8_t mac[NEIGHBOUR_MAC_BYTES];
};

/* r_lock is the lock of the variables below. */
static struct list waits = {&waits, &waits};
/* Waits that have ended: the thread will call `end` for their ids. */
static struct list ended = {&ended, &ended};
static bool is_running;		  /* the thread exists */
static uint64_t looks_ms;	  /* until when the thread may sleep */
static int watch_fd = -1;	  /* the socket of the thread that runs */
static const struct r_id *in_use; /* the thread calls `end` for this id */

static struct neighbour_wait *wait_of(struct list *l)
{
	return (struct neighbour_wait *)(void *)
		l; /* link is the first member */
}

/* Looks for the neighbour's MAC, as neighbour_look does.  Returns -EAGAIN also
 * if the kernel knows only the old MAC.  After
 * the wait's time, an old MAC is better than none: the fabric is asked once
 * more for the interface with this MAC. */
static int look_for(const struct neighbour_wait *w, uint64_t now_ms,
		    uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	int err = neighbour_look(w->hop.ifindex, w->hop.ip, mac);

	if (!err && w->has_old && now_ms < w->until_ms &&
	    !memcmp(mac, w->old, sizeof(w->old)))
		return -EAGAIN;
	return err;
}

/* Moves the waits that have ended to `ended`. */
static void collect_ended(void)
{
	uint64_t now_ms = monotonic_ms();

	list_for_each_safe (l, &waits) {
		struct neighbour_wait *w = wait_of(l);

		w->err = look_for(w, now_ms, w->mac);
		if ((w->err == -EAGAIN || w->err == -ENOENT) &&
		    now_ms < w->until_ms)
			continue;
		if (w->err == -EAGAIN)
			w->err = -ETIMEDOUT;
		list_remove(l);
		list_push_tail(&ended, l);
	}
}

/* Makes the kernel ask for each neighbour whose again_ms has come.  Returns how
 * long the thread may sleep, in ms. */
static int ask_again(void)
{
	uint64_t now_ms = monotonic_ms(), until_ms = now_ms + AGAIN_MS;

	list_for_each (l, &waits) {
		struct neighbour_wait *w = wait_of(l);

		if (w->again_ms <= now_ms) {
			neighbour_ask(w->hop.ifindex, w->hop.ip);
			w->again_ms = now_ms + AGAIN_MS;
		}
		until_ms = bits_min_u64(until_ms, w->again_ms);
		until_ms = bits_min_u64(until_ms, w->until_ms);
	}
	return until_ms > now_ms ? (int)(until_ms - now_ms) : 0;
}

/* Calls `end` for the ids whose wait has ended.  Returns the pause until the
 * next look in ms; -1: no id waits, and the thread is to end. */
static int serve_waits(void)
{
	struct list *l;
	int pause_ms = -1;

	r_take();
	collect_ended();
	while ((l = list_pop_head(&ended))) {
		struct neighbour_wait *w = wait_of(l);

		in_use = w->id;
		r_give();
		w->end(w->id, w->err, w->mac);
		free(w);
		r_take();
		in_use = NULL;
		pthread_cond_broadcast(&r_changed);
	}
	is_running = !list_is_empty(&waits);
	if (is_running)
		pause_ms = ask_again();
	else
		watch_fd = -1;
	looks_ms = monotonic_ms() + (pause_ms > 0 ? (uint64_t)pause_ms : 0);
	r_give();
	return pause_ms;
}

/* Sleeps until a neighbour has changed, or the pause is over.  If the program
 * has closed the socket, or has put another file in the socket's place, only
 * the pause ends the sleep. */
static void await_change(int fd, int pause_ms)
{
	struct pollfd watch = {.fd = fd_identity_holds(fd) ? fd : -1,
			       .events = POLLIN};

	if (poll(&watch, 1, pause_ms) > 0 && fd_identity_holds(fd))
		neighbour_drain(fd);
}

static void *run_thread(void *arg)
{
	int fd = (int)(intptr_t)arg, pause_ms = serve_waits();

	while (pause_ms >= 0) {
		await_change(fd, pause_ms);
		pause_ms = serve_waits();
	}
	fd_identity_close(fd);
	return NULL;
}

/* Returns 0 or -errno. */
static int start_thread(void)
{
	sigset_t all, old;
	pthread_t thread;
	int err, fd = fd_identity_note(neighbour_watch());

	if (fd < 0)
		return fd;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, run_thread, (void *)(intptr_t)fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		fd_identity_close(fd);
		return -err;
	}
	pthread_setname_np(thread, "adverb-cm-ip");
	pthread_detach(thread);
	is_running = true;
	watch_fd = fd;
	return 0;
}

/* Returns whether look_for ends the wait. */
static bool has_result(struct neighbour_wait *w, uint64_t now_ms)
{
	int err = look_for(w, now_ms, w->mac);

	return err != -EAGAIN && err != -ENOENT;
}

/* Called for a wait that was added while the thread runs: makes the kernel ask
 * for the neighbour.  Wakes the thread only if the wait ends before the sleep
 * of the thread does, or if there is a result already, since a thread that
 * wakes up asks the kernel about each wait. */
static void begin_beside(struct neighbour_wait *w)
{
	uint64_t now_ms = monotonic_ms();

	neighbour_ask(w->hop.ifindex, w->hop.ip);
	w->again_ms = now_ms + AGAIN_MS;
	if ((w->until_ms < looks_ms || has_result(w, now_ms)) &&
	    fd_identity_holds(watch_fd))
		neighbour_wake(watch_fd);
}

void r_neighbour_forked(void)
{
	list_init(&waits);
	list_init(&ended);
	is_running = false;
	in_use = NULL;
	fd_identity_close(watch_fd);
	watch_fd = -1;
}

int r_neighbour_await(struct r_id *id, const struct neighbour_hop *hop,
		      const uint8_t *old, int timeout_ms, r_neighbour_end *end)
{
	struct neighbour_wait *w = malloc(sizeof(*w));
	bool was_running;
	int err;

	if (!w)
		return -ENOMEM;
	*w = (struct neighbour_wait){
		.id = id,
		.end = end,
		.hop = *hop,
		.until_ms = monotonic_ms() +
			    (timeout_ms > 0 ? (uint64_t)timeout_ms : 0)};
	w->has_old = old;
	if (old)
		memcpy(w->old, old, sizeof(w->old));
	list_init(&w->link);
	r_take();
	was_running = is_running;
	err = was_running ? 0 : start_thread();
	if (!err) {
		list_push_tail(&waits, &w->link);
		if (was_running)
			begin_beside(w);
		w = NULL;
	}
	r_give();
	free(w);
	return err;
}

static void drop_waits(struct list *list, const struct r_id *id)
{
	list_for_each_safe (l, list)
		if (wait_of(l)->id == id) {
			list_remove(l);
			free(wait_of(l));
		}
}

void r_neighbour_stop(const struct r_id *id)
{
	drop_waits(&waits, id);
	drop_waits(&ended, id);
	while (in_use == id)
		pthread_cond_wait(&r_changed, &r_lock);
}
