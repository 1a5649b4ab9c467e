/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/cm_output.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/socket.h>

#define BATCH 16 /* messages that one system call sends */
/* If this many messages or more have waited at once, their memory is given back
 * to the kernel. */
#define MANY 256

struct output_message {
	struct list link;
	struct cmproto m;
};

void cm_output_init(struct cm_output *o, int fd, struct user_share *share)
{
	*o = (struct cm_output){.fd = fd, .share = share};
	list_init(&o->queue);
}

static void drop_first(struct cm_output *o)
{
	free(list_pop_head(&o->queue)); /* link is first */
	share_take_bytes(o->share, sizeof(struct output_message));
	o->waiting--;
}

/* Gives memory back to the kernel after many messages have waited at once, as
 * happens when many connections end. */
static void trim_memory(struct cm_output *o)
{
	if (o->most >= MANY)
		malloc_trim(0);
	o->most = 0;
}

void cm_output_fini(struct cm_output *o)
{
	while (o->waiting)
		drop_first(o);
	trim_memory(o);
}

static bool append_message(struct cm_output *o, const struct cmproto *m)
{
	struct output_message *new;

	if (!share_add_bytes(o->share, sizeof(*new)))
		return false;
	new = malloc(sizeof(*new));
	if (!new) {
		share_take_bytes(o->share, sizeof(*new));
		return false;
	}
	new->m = *m;
	new->m.magic = CMPROTO_MAGIC;
	new->m.version = CMPROTO_VERSION;
	list_init(&new->link);
	list_push_tail(&o->queue, &new->link);
	if (++o->waiting > o->most)
		o->most = o->waiting;
	return true;
}

bool cm_output_push(struct cm_output *o, const struct cmproto *m)
{
	return !o->is_lost && append_message(o, m);
}

void cm_output_lose(struct cm_output *o)
{
	const struct cmproto m = {.kind = CMPROTO_EVENT,
				  .event = CMPROTO_DROPPED};

	while (o->waiting)
		drop_first(o);
	append_message(o, &m);
	o->is_lost = true;
}

/* Sends up to BATCH of the first messages.  Returns how many the socket took,
 * or -1 with errno. */
static int send_batch(struct cm_output *o)
{
	struct mmsghdr h[BATCH] = {0};
	struct iovec v[BATCH];
	unsigned count = 0;

	list_for_each (n, &o->queue) {
		struct output_message *first =
			(struct output_message *)(void *)n;

		if (count == BATCH)
			break;
		v[count] = (struct iovec){&first->m, sizeof(first->m)};
		h[count].msg_hdr.msg_iov = &v[count];
		h[count++].msg_hdr.msg_iovlen = 1;
	}
	return sendmmsg(o->fd, h, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Does errno say that a later call may succeed?  Sets lacks_memory. */
static bool is_passing(struct cm_output *o)
{
	o->lacks_memory = errno == ENOBUFS || errno == ENOMEM;
	return o->lacks_memory || errno == EAGAIN || errno == EINTR;
}

bool cm_output_send(struct cm_output *o)
{
	o->lacks_memory = false;
	while (o->waiting) {
		int sent = send_batch(o);

		if (sent < 0)
			return is_passing(o);
		while (sent--)
			drop_first(o);
	}
	trim_memory(o);
	return !o->is_lost;
}
