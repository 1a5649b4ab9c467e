/* SPDX-License-Identifier: BSD-2-Clause */
/* Events behind a descriptor: see queue.h. */
#include "verbs/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/fd_identity.h"

int v_queue_init(struct v_queue *q)
{
	q->fd = fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC));
	if (q->fd < 0)
		return -errno;
	lock_init(&q->lock);
	list_init(&q->ready);
	q->is_claimed = q->is_owed = q->is_ended = false;
	return 0;
}

void v_queue_fini(struct v_queue *q)
{
	fd_identity_close(q->fd);
	lock_fini(&q->lock);
}

void v_source_init(struct v_source *s, void *object, int type)
{
	list_init(&s->link);
	s->waiting = 0;
	s->taken = 0;
	s->object = object;
	s->type = type;
}

/* The bare calls: a thread that is cancelled must not end here, with the lock.
 */
static void put_token(struct v_queue *q)
{
	uint64_t one = 1;

	/* fails only at 2^64 - 2 tokens */
	while (fd_identity_holds(q->fd) &&
	       syscall(SYS_write, q->fd, &one, sizeof(one)) < 0 &&
	       errno == EINTR)
		;
}

/* Never wait: a reader may hold the token, and will find it void. */
static void void_token(struct v_queue *q)
{
	uint64_t token;
	struct iovec io = {&token, sizeof(token)};

	if (fd_identity_holds(q->fd))
		syscall(SYS_preadv2, q->fd, &io, 1, -1L, -1L, RWF_NOWAIT);
}

void v_queue_post(struct v_queue *q, struct v_source *s)
{
	void (*wake)(void *) = NULL;
	void *arg;

	lock_take(&q->lock);
	s->waiting++;
	if (!list_is_linked(&s->link))
		list_push_tail(&q->ready, &s->link);
	if (!q->is_claimed)
		put_token(q);
	else if (!pthread_equal(q->claimer, pthread_self()))
		wake = q->wake;
	q->is_owed |= q->is_claimed;
	q->is_claimed = false;
	arg = q->wake_arg;
	lock_give(&q->lock);
	if (wake)
		wake(arg);
}

/* The oldest source with an event, one event of it taken. */
static struct v_source *pop_event(struct v_queue *q)
{
	struct list *node = list_pop_head(&q->ready);
	struct v_source *s;

	if (!node)
		return NULL;
	s = CONTAINER_OF(node, struct v_source, link);
	s->taken++;
	if (--s->waiting)
		list_push_tail(&q->ready, &s->link);
	return s;
}

static struct v_source *take_event(struct v_queue *q)
{
	struct v_source *s;

	lock_take(&q->lock);
	s = pop_event(q);
	lock_give(&q->lock);
	return s;
}

struct v_source *v_queue_get(struct v_queue *q)
{
	struct v_source *s;
	uint64_t token;

	/* A token whose event was forgotten meanwhile is spent: go on. */
	do {
		if (read(q->fd, &token, sizeof(token)) < 0)
			return NULL;
		s = take_event(q);
	} while (!s);
	return s;
}

bool v_queue_has(struct v_queue *q)
{
	bool has;

	lock_take(&q->lock);
	has = !list_is_empty(&q->ready);
	lock_give(&q->lock);
	return has;
}

bool v_queue_claim(struct v_queue *q, void (*wake)(void *), void *arg)
{
	bool claims;

	lock_take(&q->lock);
	claims = list_is_empty(&q->ready) && !q->is_claimed && !q->is_owed;
	if (claims) {
		q->is_claimed = true;
		q->claimer = pthread_self();
		q->wake = wake;
		q->wake_arg = arg;
	}
	lock_give(&q->lock);
	return claims;
}

bool v_queue_has_claimed(struct v_queue *q)
{
	bool has;

	lock_take(&q->lock);
	has = q->is_owed || q->is_ended;
	lock_give(&q->lock);
	return has;
}

int v_queue_unclaim(struct v_queue *q, bool takes, struct v_source **s)
{
	bool is_ended;

	lock_take(&q->lock);
	is_ended = q->is_ended;
	*s = q->is_owed && takes ? pop_event(q) : NULL;
	if (q->is_owed && !takes)
		put_token(q);
	q->is_claimed = q->is_owed = false;
	lock_give(&q->lock); /* ended, it is gone from here on */
	return is_ended ? -EBADF : 0;
}

/* Ends it, and says who has a claim, if anybody has. */
static bool is_left(struct v_queue *q, void (**wake)(void *), void **arg)
{
	bool is_left;

	lock_take(&q->lock);
	q->is_ended = true;
	is_left = !q->is_claimed && !q->is_owed;
	*wake = q->wake;
	*arg = q->wake_arg;
	lock_give(&q->lock);
	return is_left;
}

void v_queue_end(struct v_queue *q)
{
	void (*wake)(void *);
	void *arg;

	while (!is_left(q, &wake, &arg)) {
		wake(arg);
		sched_yield();
	}
}

bool v_queue_is_quick(const struct v_queue *q)
{
	return fcntl(q->fd, F_GETFL) & O_NONBLOCK;
}

uint32_t v_queue_forget(struct v_queue *q, struct v_source *s)
{
	uint32_t taken;

	lock_take(&q->lock);
	list_remove(&s->link);
	for (; s->waiting; s->waiting--)
		void_token(q);
	if (q->is_owed && list_is_empty(&q->ready)) {
		q->is_owed = false; /* that was it: the next one is */
		q->is_claimed = true;
	}
	taken = s->taken;
	lock_give(&q->lock);
	return taken;
}
