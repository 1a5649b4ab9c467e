/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/link_table.h"

#include "rdmacm/explain.h"
#include "rdmacm/ib.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS	   256
#define LAST_ERRNO 4095 /* no errno is greater */
/* The limit of requests that have no answer yet.  Questions for a path and
 * joins do not count: the fabric keeps their answers while this process's
 * socket is full.  Without a limit the broker's answers could fill this
 * process's socket while the requests fill the broker's socket. */
#define PENDING	 64
#define RELEASES 256 /* notes of released ids that are kept */

static struct list waiters = {&waiters, &waiters};
static struct list pending = {&pending, &pending};
static uint32_t pendings; /* entries of pending that count for PENDING */
static struct list released = {&released, &released}; /* oldest first */
static uint32_t releases;			      /* entries of released */
static struct list ids[BUCKETS];		      /* by handle */

static struct r_id *find_id(uint32_t handle)
{
	struct list *l = &ids[handle % BUCKETS];

	if (!l->next)
		return NULL;
	list_for_each (n, l) {
		struct r_id *id = r_table_id(n);

		if (id->handle == handle)
			return id;
	}
	return NULL;
}

void r_link(struct r_id *id, uint32_t handle)
{
	struct list *l = &ids[handle % BUCKETS];

	if (!l->next)
		list_init(l);
	id->handle = handle;
	list_push_tail(l, &id->by_handle);
}

void r_table_unlink(struct r_id *id)
{
	list_remove(&id->by_handle);
	id->handle = 0;
}

bool r_table_has_note(const struct r_id *id)
{
	static const uint8_t none[CMPROTO_NOTE];

	return memcmp(id->note, none, CMPROTO_NOTE);
}

/* Returns whether a request of this kind counts for PENDING.  The subnet
 * administration may take a minute to answer a ROUTE or JOIN, and other
 * requests must not wait so long.  Only a fabric gets these two kinds.  A
 * fabric has no successor, so ask_pending (link.c), which would wait for one
 * answer after the other, never repeats them. */
static bool is_counted(uint16_t kind)
{
	return kind != CMPROTO_ROUTE && kind != CMPROTO_JOIN;
}

static void pending_free(struct r_pending *p)
{
	pendings -= is_counted(p->request.kind);
	list_remove(&p->link);
	free(p);
	pthread_cond_broadcast(&r_changed);
}

int r_table_result(uint16_t kind, const struct cmproto *m)
{
	bool has_object = kind == CMPROTO_BIND || kind == CMPROTO_RESUME;

	return !m->err && has_object && !m->new_id ? -EPROTO : m->err;
}

void r_table_settle(struct r_pending *p, const struct cmproto *m)
{
	const struct cmproto bad = {.err = r_table_result(p->request.kind, m)};
	struct r_id *id = p->id;

	m = bad.err ? &bad : m;
	if (p->request.kind == CMPROTO_BIND)
		r_id_bound(id, m);
	else if (p->request.kind == CMPROTO_ROUTE)
		r_ib_routed(id, m);
	else if (p->request.kind == CMPROTO_JOIN)
		r_ib_joined(id, p->request.call_id, m);
	else if (!m->err)
		memcpy(id->note, m->note, sizeof(m->note));
	/* If the id has no note, its conversation has ended, and the program
	 * has already got an event that says so. */
	else if (p->request.kind == CMPROTO_CONNECT || r_table_has_note(id))
		r_post_failed(id, m->err);
	pending_free(p);
}

/* Settles the pending request (r_table_add) that has the same serial as the
 * answer *m.  Returns false if there is no such request. */
static bool answer_pending(const struct cmproto *m)
{
	list_for_each (n, &pending) {
		struct r_pending *p = (struct r_pending *)(void *)n;

		if (p->request.serial == m->serial) {
			r_table_settle(p, m);
			return true;
		}
	}
	return false;
}

/*
 * Stores the answer for the waiting thread, and changes the id.  The id changes
 * here and not in the waiting thread, for two reasons.  The broker's next
 * message must find the id changed, even if the waiting thread has not run yet.
 * And that message may cause an event upon which the program destroys the id in
 * another thread.
 */
static void keep_answer(struct r_waiter *w, const struct cmproto *m)
{
	*w->answer = *m;
	w->answer->err = r_table_result(w->kind, m);
	w->is_done = true;
	if (w->answer->err)
		return;
	memcpy(w->id->note, m->note, sizeof(m->note));
	if (w->kind == CMPROTO_BIND)
		r_id_bound(w->id, m);
	if (w->kind == CMPROTO_LISTEN)
		w->id->state.is_listening = true;
	/* This ACCEPT is of a datagram id: for a connection, rdma_accept sets
	 * is_decided before it sends ACCEPT. */
	if (w->kind == CMPROTO_REJECT || w->kind == CMPROTO_ACCEPT)
		w->id->state.is_decided = true;
	if (w->kind == CMPROTO_ESTABLISH && !w->id->state.is_passive)
		w->id->state.is_up = true;
}

/* Gives the answer to the request, or to the thread, that waits for it. */
static void take_answer(const struct cmproto *m)
{
	if (answer_pending(m))
		return;
	list_for_each (n, &waiters) {
		struct r_waiter *w = (struct r_waiter *)(void *)n;

		if (w->serial != m->serial)
			continue;
		keep_answer(w, m);
		pthread_cond_broadcast(&r_changed);
		return;
	}
	/* The thread that has sent a BIND waits no longer, or the id is
	 * destroyed, and no id would ever release the port. */
	if (!m->err && m->new_id)
		r_tell(CMPROTO_RELEASE, m->new_id);
}

/* Handles the end of the group membership with this number. */
static void end_membership(uint32_t number)
{
	for (int i = 0; i < BUCKETS; i++) {
		if (!ids[i].next)
			continue;
		list_for_each (n, &ids[i])
			if (r_ib_lost(r_table_id(n), number))
				return;
	}
}

bool r_table_is_valid(const struct cmproto *m, ssize_t n)
{
	return n == sizeof(*m) && m->magic == CMPROTO_MAGIC &&
	       m->version == CMPROTO_VERSION && m->err <= 0 &&
	       m->err >= -LAST_ERRNO && m->private_bytes <= CMPROTO_PRIVATE;
}

void r_table_message(const struct cmproto *m)
{
	struct r_id *id;

	if (m->kind == CMPROTO_DONE) {
		take_answer(m);
		return;
	}
	id = m->kind == CMPROTO_EVENT ? find_id(m->id) : NULL;
	if (id)
		r_id_message(id, m);
	else if (m->kind == CMPROTO_EVENT && m->event == CMPROTO_DROPPED)
		r_say("rdma_cm: the %s ends this process's connections, "
		      "since the process has not read its messages, and too "
		      "many messages wait for processes of this user; do "
		      "not stop the process, for example in a debugger, while "
		      "peers connect to it",
		      r_ib_server());
	else if (m->kind == CMPROTO_EVENT && m->event == CMPROTO_GROUP_LOST)
		end_membership(m->call_id);
	/* the listener was destroyed meanwhile */
	else if (m->kind == CMPROTO_EVENT && m->event == CMPROTO_REQUEST)
		r_tell(CMPROTO_RELEASE, m->new_id);
}

void r_table_fail_waiters(void)
{
	list_for_each (n, &waiters) {
		struct r_waiter *w = (struct r_waiter *)(void *)n;

		if (w->is_done)
			continue;
		w->answer->err = -EPIPE;
		w->is_done = true;
	}
	pthread_cond_broadcast(&r_changed);
}

void r_table_fail_pending(void)
{
	list_for_each_safe (n, &pending)
		r_table_settle((struct r_pending *)(void *)n,
			       &(struct cmproto){.err = -EPIPE});
}

void r_table_remove_device(void)
{
	const struct cmproto gone = {.err = -ENODEV};

	list_for_each_safe (n, &pending) {
		struct r_pending *p = (struct r_pending *)(void *)n;

		if (p->request.kind == CMPROTO_BIND)
			r_table_settle(p, &gone);
		else
			pending_free(p);
	}
	for (int i = 0; i < BUCKETS; i++) {
		if (!ids[i].next)
			continue;
		list_for_each (n, &ids[i])
			r_post_removed(r_table_id(n));
	}
}

/* Keeps the note of a released id.  If RELEASES notes are kept, frees the
 * oldest of them. */
static void keep_note(const uint8_t note[CMPROTO_NOTE])
{
	struct r_released *r;

	if (releases == RELEASES) {
		free(list_pop_head(&released)); /* link is the first member */
		releases--;
	}
	r = malloc(sizeof(*r));
	if (!r)
		return;
	memcpy(r->note, note, sizeof(r->note));
	list_init(&r->link);
	list_push_tail(&released, &r->link);
	releases++;
}

uint32_t r_table_remove(struct r_id *id)
{
	uint32_t handle = id->handle;

	r_table_unlink(id);
	list_for_each_safe (n, &pending)
		if (((struct r_pending *)(void *)n)->id == id)
			pending_free((struct r_pending *)(void *)n);
	if (handle && r_table_has_note(id))
		keep_note(id->note);
	return handle;
}

void r_table_reset(void)
{
	list_init(&waiters);
	list_init(&pending);
	pendings = 0;
	list_init(&released);
	releases = 0;
	/* Each id of the parent is taken out of its list, so that
	 * rdma_destroy_id does not change the child's lists. */
	for (int i = 0; i < BUCKETS; i++)
		while (ids[i].next && list_pop_head(&ids[i]))
			;
}

bool r_table_has_ids(void)
{
	bool has = false;

	for (int i = 0; i < BUCKETS && !has; i++)
		has = ids[i].next && !list_is_empty(&ids[i]);
	return has;
}

void r_table_take_ids(struct list *others, struct list *listeners)
{
	for (int i = 0; i < BUCKETS; i++)
		while (ids[i].next && !list_is_empty(&ids[i])) {
			struct list *n = list_pop_head(&ids[i]);

			list_push_tail(r_table_id(n)->state.is_listening
					       ? listeners
					       : others,
				       n);
		}
}

void r_table_await(struct r_waiter *w)
{
	list_init(&w->link);
	list_push_tail(&waiters, &w->link);
}

bool r_table_is_full(uint16_t kind)
{
	return is_counted(kind) && pendings >= PENDING;
}

void r_table_add(struct r_pending *p)
{
	list_init(&p->link);
	list_push_tail(&pending, &p->link);
	pendings += is_counted(p->request.kind);
}

struct list *r_table_pending(void)
{
	return &pending;
}

struct list *r_table_released(void)
{
	return &released;
}

void r_tell(uint16_t kind, uint32_t handle)
{
	struct cmproto m = {0};

	r_tell_message(&m, kind, handle);
}

void r_release(struct r_id *id)
{
	uint32_t handle = r_table_remove(id);

	if (handle)
		r_tell(CMPROTO_RELEASE, handle);
}
