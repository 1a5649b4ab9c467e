/* SPDX-License-Identifier: BSD-2-Clause */
/* Events behind a descriptor: see queue.h. */
#include "verbs/queue.h"

#include <errno.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

int v_queue_init(struct v_queue *q)
{
	q->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (q->fd < 0)
		return -errno;
	lock_init(&q->lock);
	list_init(&q->ready);
	return 0;
}

void v_queue_fini(struct v_queue *q)
{
	close(q->fd);
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
	uint64_t one = 1;

	lock_take(&q->lock);
	s->waiting++;
	if (!list_is_linked(&s->link))
		list_push_tail(&q->ready, &s->link);
	/* fails only at 2^64 - 2 tokens */
	while (write(q->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	lock_give(&q->lock);
}

/* The oldest source with an event, one event of it taken. */
static struct v_source *take(struct v_queue *q)
{
	struct v_source *s = NULL;
	struct list *node;

	lock_take(&q->lock);
	node = list_pop_head(&q->ready);
	if (node) {
		s = (struct v_source *)(void *)((char *)node -
						offsetof(struct v_source,
							 link));
		s->taken++;
		if (--s->waiting)
			list_push_tail(&q->ready, &s->link);
	}
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
		s = take(q);
	} while (!s);
	return s;
}

uint32_t v_queue_forget(struct v_queue *q, struct v_source *s)
{
	uint64_t token;
	struct iovec io = {&token, sizeof(token)};
	uint32_t taken;

	lock_take(&q->lock);
	list_remove(&s->link);
	/* Never wait: a reader may hold the token, and will find it void. */
	for (; s->waiting; s->waiting--)
		if (preadv2(q->fd, &io, 1, -1, RWF_NOWAIT) < 0)
			errno = 0;
	taken = s->taken;
	lock_give(&q->lock);
	return taken;
}
