/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels and their events.  A channel's descriptor is an eventfd in
 * semaphore mode with one token for each event, so it is readable exactly when
 * rdma_get_cm_event does not block.
 *
 * A token wakes the thread that waits for an event, and that thread then waits
 * for r_lock.  So a thread that posts several events under r_lock holds their
 * tokens back, and puts them at the end.
 */
#include "rdmacm/explain.h"
#include "rdmacm/newer.h"
#include "rdmacm/object.h"
#include "util/fd_identity.h"
#include "util/remedy.h"
#include "util/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#define KEPT 64 /* destroyed channels whose memory is kept */

/* Prints why a channel cannot be made.  Returns NULL and errno err. */
static struct rdma_event_channel *fail_channel(int err)
{
	r_fail(err, "rdma_create_event_channel: no channel can be made: %s; %s",
	       strerror(err),
	       remedy_of(err, "allow eventfd2(2) in the sandbox"));
	return NULL;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct r_channel *c;
	int err;

	/* Without devices the call fails here already, as with the kernel: some
	 * programs crash if their first rdma_create_id fails (cmtime frees its
	 * memory twice). */
	if (r_devices())
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return fail_channel(ENOMEM);
	list_init(&c->events);
	c->base.fd =
		fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC));
	if (c->base.fd < 0) {
		err = errno;
		free(c);
		return fail_channel(err);
	}
	return &c->base;
}

/*
 * Programs such as rping destroy a channel while another thread of theirs waits
 * on the channel, and then end.  So the memory is freed only after KEPT more
 * channels have been destroyed.
 */
void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	static struct r_channel *kept[KEPT];
	static unsigned next;
	struct r_channel *c = r_channel(channel), *oldest;
	int fd;

	r_take();
	fd = channel->fd;
	/* fd becomes -1 before the close: another thread whose read(2) then
	 * fails with EBADF calls wait_if_destroyed, which must find -1. */
	channel->fd = -1;
	fd_identity_close(fd);
	oldest = kept[next % KEPT];
	kept[next++ % KEPT] = c;
	r_give();
	free(oldest);
}

static struct r_event *begin_event(struct r_event *e, struct r_id *id,
				   enum rdma_cm_event_type type, int status)
{
	list_init(&e->link);
	e->base.id = &id->base;
	e->base.event = type;
	e->base.status = status;
	return e;
}

struct r_event *r_event_new(struct r_id *id, enum rdma_cm_event_type type,
			    int status)
{
	struct r_event *e = calloc(1, sizeof(*e));

	return e ? begin_event(e, id, type, status) : NULL;
}

struct r_event *r_event_sure(struct r_id *id, enum rdma_cm_event_type type,
			     int status)
{
	struct r_event *e = r_event_new(id, type, status);
	char text[R_ADDR_TEXT];

	if (e)
		return e;
	if (id->state.uses_kept) {
		r_say("rdma_cm: the event %s of the id with the peer %s is "
		      "lost, since no memory is left, and the program has not "
		      "acknowledged an earlier event; free memory, or raise "
		      "ulimit -v and -d",
		      rdma_event_str(type),
		      r_addr_text(&id->base.route.addr.dst_addr, text));
		return NULL;
	}
	id->state.uses_kept = true;
	memset(&id->kept, 0, sizeof(id->kept));
	return begin_event(&id->kept, id, type, status);
}

void r_event_free(struct r_event *e)
{
	struct r_id *id = r_id(e->base.id);

	/* A connection request is never the kept event, so its id, which may
	 * not exist any more, is not read. */
	if (e == &id->kept)
		id->state.uses_kept = false;
	else
		free(e);
}

/* Under r_lock: the tokens that were held back since r_hold_tokens. */
static struct {
	bool is_on;
	const struct r_channel *channel; /* valid while count is not 0 */
	uint64_t count;			 /* how many; all are of `channel` */
} held;

static void put_held(void)
{
	if (held.count)
		token_put_all(held.channel->base.fd, held.count);
	held.count = 0;
}

/* Puts a token, or holds it back with the other tokens of this channel. */
static void put_token(const struct r_channel *c)
{
	if (!held.is_on) {
		token_put(c->base.fd);
		return;
	}
	if (held.channel != c)
		put_held();
	held.channel = c;
	held.count++;
}

void r_hold_tokens(void)
{
	held.is_on = true;
}

void r_put_tokens(void)
{
	put_held();
	held.is_on = false;
}

void r_take_back_token(const struct r_channel *c)
{
	if (held.count && held.channel == c)
		held.count--;
	else
		token_take_back(c->base.fd);
}

void r_forget_tokens(void)
{
	held.is_on = false;
	held.count = 0;
}

void r_post_now(struct r_event *e)
{
	struct r_channel *c = r_channel(r_event_owner(e)->channel);

	list_push_tail(&c->events, &e->link);
	r_id(r_event_owner(e))->queued++;
	put_token(c);
}

void r_unqueue(struct r_event *e)
{
	list_remove(&e->link);
	r_id(r_event_owner(e))->queued--;
}

int r_post_local(struct r_id *id, enum rdma_cm_event_type type, int status)
{
	struct r_event *e = r_event_new(id, type, status);

	if (!e)
		return r_fail(ENOMEM,
			      "rdma_cm: no memory is left for the event %s; "
			      "free some, or raise ulimit -v and -d",
			      rdma_event_str(type));
	r_take();
	r_post_now(e);
	r_give();
	return 0;
}

void r_forget_join(const struct r_id *id, const struct r_multicast *m)
{
	struct r_channel *c = r_channel(id->base.channel);

	list_for_each_safe (n, &c->events) {
		if (r_event_of(n)->multicast != m)
			continue;
		r_unqueue(r_event_of(n));
		r_take_back_token(c);
		r_event_free(r_event_of(n));
	}
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct r_event *e = (struct r_event *)(void *)event;

	if (!event) {
		errno = EINVAL;
		return -1;
	}
	r_take();
	list_remove(&e->link);
	r_event_free(e);
	pthread_cond_broadcast(&r_changed);
	r_give();
	return 0;
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg)
{
	struct r_event *e;

	if ((unsigned)event != NEWER_EVENT_USER &&
	    (unsigned)event != NEWER_EVENT_INTERNAL)
		return r_fail(EINVAL, "rdma_write_cm_event takes the events "
				      "RDMA_CM_EVENT_USER and "
				      "RDMA_CM_EVENT_INTERNAL only");
	e = r_event_new(r_id(id), event, status);
	if (!e)
		return r_fail(ENOMEM, "rdma_write_cm_event: no memory is left; "
				      "free some, or raise ulimit -v and -d");
	/* Stores param.arg, a member that older headers lack. */
	memcpy(&e->base.param, &arg, sizeof(arg));
	r_take();
	r_post_now(e);
	r_give();
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	/* clang-format off */
	static const char *const names[] = {
#define NAME(event) [event] = #event
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
		NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
		NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
		NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),
		NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),
		NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),
		NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
		NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),
		NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
#undef NAME
		[NEWER_EVENT_ADDRINFO_RESOLVED] =
			"RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[NEWER_EVENT_ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
		[NEWER_EVENT_USER] = "RDMA_CM_EVENT_USER",
		[NEWER_EVENT_INTERNAL] = "RDMA_CM_EVENT_INTERNAL",
	};
	/* clang-format on */

	if ((unsigned int)event >= sizeof(names) / sizeof(names[0]))
		return "UNKNOWN EVENT";
	return names[event];
}
