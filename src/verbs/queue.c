/* SPDX-License-Identifier: BSD-2-Clause */
/* Events behind a descriptor: see queue.h. */
#include "verbs/queue.h"

#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/token.h"

int v_queue_init(struct v_queue *q)
{
	q->fd = fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC));
	if (q->fd < 0)
		return -errno;
	lock_init(&q->lock);
	list_init(&q->ready);
	q->is_claimed = q->is_claim_met = q->is_ended = false;
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

void v_queue_post(struct v_queue *q, struct v_source *s)
{
	void (*wake)(void *) = NULL;
	void *arg;

	lock_take(&q->lock);
	s->waiting++;
	if (!list_is_linked(&s->link))
		list_push_tail(&q->ready, &s->link);
	if (!q->is_claimed)
		token_put(q->fd);
	else if (!pthread_equal(q->claimer, pthread_self()))
		wake = q->wake;
	q->is_claim_met |= q->is_claimed;
	q->is_claimed = false;
	arg = q->wake_arg;
	lock_give(&q->lock);
	if (wake)
		wake(arg);
}

/* Takes one event of the source that waits longest, and returns the source, or
 * NULL. */
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

/* Reads a token, and takes an event.  NULL and errno EBADF: no event waits, and
 * the descriptor is not the queue's any more; then this function does not read
 * the file that the program may have there.  NULL and errno 0: v_queue_forget
 * has dropped the event after the token was read. */
static struct v_source *read_event(struct v_queue *q)
{
	bool is_ours = fd_identity_holds(q->fd);
	struct v_source *s;
	uint64_t token;

	if (is_ours && read(q->fd, &token, sizeof(token)) < 0)
		return NULL;
	s = take_event(q);
	errno = s || is_ours ? 0 : EBADF;
	return s;
}

struct v_source *v_queue_get(struct v_queue *q)
{
	struct v_source *s;

	do {
		s = read_event(q);
		if (!s && errno && (errno != EAGAIN || v_queue_is_quick(q)))
			return NULL;
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
	claims = list_is_empty(&q->ready) && !q->is_claimed && !q->is_claim_met;
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
	has = q->is_claim_met || q->is_ended;
	lock_give(&q->lock);
	return has;
}

bool v_queue_unclaim(struct v_queue *q, bool takes, struct v_source **s)
{
	bool is_ended;

	lock_take(&q->lock);
	is_ended = q->is_ended;
	*s = q->is_claim_met && takes ? pop_event(q) : NULL;
	if (q->is_claim_met && !takes)
		token_put(q->fd);
	q->is_claimed = q->is_claim_met = false;
	/* If the queue was ended: after lock_give v_queue_end may return, and
	 * its caller may free the queue. */
	lock_give(&q->lock);
	return !is_ended;
}

/* Marks the queue as ended.  Returns true if no thread has a claim.  If a
 * thread has a claim, *wake is the function that wakes the thread, and *arg is
 * the function's argument. */
static bool mark_ended(struct v_queue *q, void (**wake)(void *), void **arg)
{
	bool is_unclaimed;

	lock_take(&q->lock);
	q->is_ended = true;
	is_unclaimed = !q->is_claimed && !q->is_claim_met;
	*wake = q->wake;
	*arg = q->wake_arg;
	lock_give(&q->lock);
	return is_unclaimed;
}

void v_queue_end(struct v_queue *q)
{
	void (*wake)(void *);
	void *arg;

	while (!mark_ended(q, &wake, &arg)) {
		wake(arg);
		sched_yield();
	}
}

bool v_queue_is_quick(struct v_queue *q)
{
	bool waits;

	lock_take(&q->lock); /* under it token_take_back changes O_NONBLOCK */
	waits = token_reads_wait(q->fd);
	lock_give(&q->lock);
	return !waits;
}

uint32_t v_queue_forget(struct v_queue *q, struct v_source *s)
{
	uint32_t taken;

	lock_take(&q->lock);
	list_remove(&s->link);
	for (; s->waiting; s->waiting--)
		token_take_back(q->fd);
	if (q->is_claim_met && list_is_empty(&q->ready)) {
		/* The dropped event was the claimed event: the thread that has
		 * the claim claims the next event instead. */
		q->is_claim_met = false;
		q->is_claimed = true;
	}
	taken = s->taken;
	lock_give(&q->lock);
	return taken;
}
