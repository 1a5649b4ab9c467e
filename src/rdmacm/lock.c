/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock of this folder, and the wait for acknowledgements. */
#include "rdmacm/object.h"

#include "rdmacm/ib.h"
#include "rdmacm/last_event.h"

#include <pthread.h>

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

void r_await_acks(const struct r_id *id)
{
	pthread_cleanup_push(give_lock, NULL);
	while (id->unacked) {
		pthread_setcancelstate(cancel, NULL);
		pthread_cond_wait(&r_changed, &r_lock);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	}
	pthread_cleanup_pop(0);
}

/* Runs in the child of a fork.  The parent's other threads, which may have held
 * r_lock or waited for r_changed, do not exist in the child. */
static void after_fork(void)
{
	pthread_mutex_init(&r_lock, NULL);
	pthread_cond_init(&r_changed, NULL);
	r_forget_tokens();
	r_last_event_forget();
	r_ib_await_forked();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}
