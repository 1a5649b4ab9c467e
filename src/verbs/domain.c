/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, thread domains and parent domains.
 *
 * A program that gives queue pairs and completion queues a thread domain
 * promises to use each of these queues in one thread at a time.  Then posting
 * and extended polling take no lock of the front end (v_enter_queue).  The
 * other locks are still taken.  The post lock and the progress lock exclude the
 * progress thread, which executes and completes the requests of the program's
 * thread.  The lock of hca/cq.h excludes the threads that add completions to
 * the queue, or collect receives, during a poll: the progress thread, and
 * threads that use other queue pairs.  The lock of a shared receive queue is
 * always taken.
 *
 * If two threads break the promise, only this process is harmed.  Peers check
 * what they read in this arena, and this process copies a request before it
 * checks and executes the copy at a peer (struct direct_request).
 *
 * A parent domain stands for its protection domain.  The allocators of a parent
 * domain are never called, since queues lie in the arena.  adverb can use all
 * memory of the process, so V_PARENT_DOMAIN_UNPROTECTED has no effect.
 */
#include <errno.h>
#include <stdlib.h>

#include "util/map.h"
#include "verbs/fail.h"
#include "verbs/newer.h"
#include "verbs/object.h"
#include "verbs/ops.h"

/* Returns a new number for the domain of the handle pd.  Until number_free,
 * v_pd_import finds the domain by this number.  Returns 0 on failure, and
 * *cause then says why. */
static uint32_t number_new(struct v_context *c, struct v_pd *pd,
			   enum v_cause *cause)
{
	struct list *handles = malloc(sizeof(*handles));
	uint32_t number;

	*cause = handles ? V_LIMIT : V_MEMORY;
	host_lock(c->host);
	number = handles ? hca_pd_new(host_hca(c->host)) : 0;
	if (number && map_add(host_domains(c->host), number, handles)) {
		*cause = V_MEMORY;
		hca_pd_free(host_hca(c->host));
		number = 0;
	}
	if (number) {
		list_init(handles);
		list_push_tail(handles, &pd->same);
	}
	host_unlock(c->host);
	if (!number)
		free(handles);
	return number;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct v_context *c = v_context(context);
	enum v_cause cause;
	struct v_pd *pd;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_alloc_pd");
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_alloc_pd");
	list_init(&pd->same);
	pd->number = number_new(c, pd, &cause);
	if (!pd->number) {
		free(pd);
		return v_fail_null(ENOMEM, cause,
				   cause == V_LIMIT
					   ? "the number of protection domains"
					   : "ibv_alloc_pd");
	}
	pd->base.context = context;
	pd->base.handle = pd->number;
	count_up(&pd->users);
	count_up(&c->objects);
	return &pd->base;
}

/* Returns whether a handle of the domain other than pd has objects.  An
 * imported region does not count as an object. */
static bool is_used_by_others(const struct list *handles, const struct v_pd *pd)
{
	list_for_each (n, handles) {
		const struct v_pd *other = CONTAINER_OF(n, struct v_pd, same);

		if (other != pd &&
		    count_now(&other->users) >
			    count_now(&other->imports) + !other->is_returned)
			return true;
	}
	return false;
}

/* Frees the number of the handle's domain, unless the domain was freed by
 * another of its handles.  Returns false, and frees nothing, if another handle
 * has objects. */
static bool number_free(struct v_context *c, struct v_pd *pd)
{
	struct list *handles;
	bool is_used;

	host_lock(c->host);
	handles = map_find(host_domains(c->host), pd->number);
	is_used = handles && is_used_by_others(handles, pd);
	if (handles && !is_used) {
		map_remove(host_domains(c->host), pd->number);
		hca_pd_free(host_hca(c->host));
		while (list_pop_head(handles))
			;
		free(handles);
	}
	host_unlock(c->host);
	return !is_used;
}

bool v_pd_import(struct v_context *c, uint32_t number, struct v_pd *pd)
{
	struct list *handles;

	host_lock(c->host);
	handles = map_find(host_domains(c->host), number);
	if (handles)
		list_push_tail(handles, &pd->same);
	host_unlock(c->host);
	return handles;
}

int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct v_context *c = v_context(ibpd->context);
	struct v_pd *pd = v_pd(ibpd);

	if (count_now(&pd->users) > 1 ||
	    (!pd->parent && v_is_ours(c) && !number_free(c, pd)))
		return v_fail(EBUSY, V_BUSY,
			      "ibv_dealloc_pd: the domain has memory regions, "
			      "queue pairs or other objects, of this handle or "
			      "of another one (ibv_import_pd)");
	v_pd_drop(pd);
	return 0;
}

void v_pd_drop(struct v_pd *pd)
{
	struct v_context *c;

	if (!count_drop(&pd->users))
		return;
	c = v_context(pd->base.context);
	if (v_is_ours(c)) {
		host_lock(c->host);
		list_remove(&pd->same);
		host_unlock(c->host);
	}
	if (pd->parent)
		v_pd_drop(pd->parent);
	if (pd->thread)
		count_down(&pd->thread->users);
	count_down(&c->objects);
	free(pd);
}

struct ibv_td *v_alloc_td(struct ibv_context *context,
			  struct ibv_td_init_attr *attr)
{
	struct v_td *td;

	if (attr->comp_mask)
		return v_fail_null(EOPNOTSUPP, V_NOT_SUPPORTED,
				   "a thread domain with attributes "
				   "(ibv_alloc_td)");
	td = calloc(1, sizeof(*td));
	if (!td)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_alloc_td");
	td->base.context = context;
	count_up(&v_context(context)->objects);
	return &td->base;
}

int v_dealloc_td(struct ibv_td *ibtd)
{
	struct v_td *td = (struct v_td *)(void *)ibtd;

	if (count_now(&td->users))
		return v_fail(EBUSY, V_BUSY,
			      "ibv_dealloc_td: parent domains use the thread "
			      "domain");
	count_down(&v_context(ibtd->context)->objects);
	free(td);
	return 0;
}

struct ibv_pd *v_alloc_parent_domain(struct ibv_context *context,
				     struct ibv_parent_domain_init_attr *a)
{
	uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
			 V_PARENT_DOMAIN_UNPROTECTED;
	bool allocators = a->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	struct v_pd *pd;

	if (!a->pd || (a->comp_mask & ~known) ||
	    (allocators && (!a->alloc || !a->free)))
		return v_fail_null(EINVAL, V_INPUT,
				   "ibv_alloc_parent_domain needs a protection "
				   "domain, known attributes, and both "
				   "allocators or none");
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_alloc_parent_domain");
	list_init(&pd->same);
	pd->parent = v_pd(a->pd);
	pd->thread = (struct v_td *)(void *)a->td;
	pd->number = pd->parent->number;
	pd->base.context = context;
	pd->base.handle = a->pd->handle;
	count_up(&pd->users);
	count_up(&pd->parent->users);
	if (pd->thread)
		count_up(&pd->thread->users);
	count_up(&v_context(context)->objects);
	return &pd->base;
}
