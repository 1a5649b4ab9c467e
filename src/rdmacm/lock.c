/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock of this folder, and the wait for acknowledgements. */
#include "rdmacm/object.h"

#include "rdmacm/explain.h"
#include "rdmacm/neighbour.h"
#include "util/monotonic.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define ACK_S 5u /* a wait for acknowledgements is reported after so long */
#define PLACE (R_ADDR_TEXT + 20) /* bytes of a text of place_of */

pthread_mutex_t r_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t r_changed = PTHREAD_COND_INITIALIZER;

/* The cancellation state of this thread before it took r_lock. */
static _Thread_local int cancel;

void r_take(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&r_lock);
}

void r_give(void)
{
	pthread_mutex_unlock(&r_lock);
	pthread_setcancelstate(cancel, NULL);
}

static void give_lock(void *unused)
{
	r_give();
}

/* Writes the address of the id's peer, or else the id's own address, to text,
 * for a message.  Returns text. */
static const char *place_of(const struct rdma_cm_id *id, char text[PLACE])
{
	const struct rdma_addr *a = &id->route.addr;
	bool has_peer = r_addr_is_known(&a->dst_addr);
	char at[R_ADDR_TEXT];

	if (has_peer || r_addr_is_known(&a->src_addr))
		snprintf(text, PLACE, "%s %s",
			 has_peer ? "with the peer" : "at",
			 r_addr_text(has_peer ? &a->dst_addr : &a->src_addr,
				     at));
	else
		snprintf(text, PLACE, "without an address");
	return text;
}

/* Prints for which event the call has waited for so long.  The message names
 * `id`, and not the member `id` of the event: in the event of a connection
 * request that is the new id, which the program may have destroyed. */
static void say_unacked(const struct r_id *id, const char *call)
{
	struct list *oldest = id->taken.next;
	const struct rdma_cm_event *e = &r_event_of(oldest)->base;
	char text[PLACE];

	r_say("%s has waited for %u s and still waits: the program has taken "
	      "the event %s of the id %p, %s, and has not acknowledged the "
	      "event; call rdma_ack_cm_event for each event before %s, or in "
	      "another thread meanwhile",
	      call, ACK_S, rdma_event_str(e->event), (const void *)&id->base,
	      place_of(&id->base, text), call);
}

/* Waits for r_changed, until the time `until` or, if until is NULL, without a
 * limit.  Returns false if that time has come. */
static bool await_change(const struct timespec *until)
{
	int err = until ? pthread_cond_clockwait(&r_changed, &r_lock,
						 CLOCK_MONOTONIC, until)
			: pthread_cond_wait(&r_changed, &r_lock);

	return err != ETIMEDOUT;
}

/* As r_await_acks; if the thread is cancelled, the caller releases r_lock. */
static void await_all_acks(const struct r_id *id, const char *call)
{
	struct timespec when;
	bool is_said = false, is_late;

	monotonic_after(ACK_S * 1000, &when);
	while (!list_is_empty(&id->taken)) {
		pthread_setcancelstate(cancel, NULL);
		is_late = !await_change(is_said ? NULL : &when);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		/* The acknowledgement may have come after the time, but
		 * before this thread had r_lock again. */
		if (is_late && !list_is_empty(&id->taken)) {
			say_unacked(id, call);
			is_said = true;
		}
	}
}

void r_await_acks(const struct r_id *id, const char *call)
{
	pthread_cleanup_push(give_lock, NULL);
	await_all_acks(id, call);
	pthread_cleanup_pop(0);
}

/* Runs in the child of a fork.  The parent's other threads, which may have held
 * r_lock or waited for r_changed, do not exist in the child. */
static void after_fork(void)
{
	pthread_mutex_init(&r_lock, NULL);
	pthread_cond_init(&r_changed, NULL);
	r_forget_tokens();
	r_neighbour_forked();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}
