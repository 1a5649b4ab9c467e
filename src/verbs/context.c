/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing a device.  This file fills in the tables of operations
 * that inline functions of the public header call.  Some of these functions do
 * not test a pointer for NULL, so no pointer to an operation stays NULL.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"
#include "verbs/private.h"
#include "verbs/refuse.h"
#include "util/fd_identity.h"

static const struct host_sink sink = {
	.event = v_event, .port = v_port_event, .fatal = v_fatal_event};

_Static_assert(V_OPS_ROOM + V_OLDER_OPS >= V_NEWER_OPS,
	       "v_context has room for release 65's operations");
_Static_assert(offsetof(struct v_device, ops) == 664, "read by drivers");

/* Sets an operation that adverb does not support to its function in refuse.c.
 */
#define REFUSE(field, name) field = (__typeof__(field))(void *)v_refuse_##name

static void fill_old(struct ibv_context_ops *ops)
{
	void **slot = (void **)(void *)ops;

	for (size_t i = 0; i < sizeof(*ops) / sizeof(*slot); i++)
		slot[i] = (void *)private_command;
	ops->_compat_query_device = ibv_query_device;
	ops->_compat_query_port = v_query_port_compat;
	ops->alloc_mw = v_alloc_mw;
	ops->bind_mw = v_bind_mw;
	ops->dealloc_mw = v_dealloc_mw;
	ops->poll_cq = v_poll_cq;
	ops->req_notify_cq = v_req_notify_cq;
	ops->post_send = v_post_send;
	ops->post_recv = v_post_recv;
	ops->post_srq_recv = v_post_srq_recv;
}

static void fill_makers(struct verbs_context *v)
{
	REFUSE(v->alloc_null_mr, null_mr);
	REFUSE(v->create_counters, counters);
	REFUSE(v->create_flow_action_esp, flow_action);
	REFUSE(v->create_rwq_ind_table, rss);
	REFUSE(v->create_wq, wq);
	REFUSE(v->ibv_create_flow, flow);
	REFUSE(v->open_qp, xrc);
	REFUSE(v->open_xrcd, xrc);
	REFUSE(v->advise_mr, advice);
}

static void fill_newer(struct v_newer_ops *newer)
{
	*newer = (struct v_newer_ops){
		.free_buf = ibv_free_buf,
		.alloc_buf = ibv_alloc_buf,
		.dm_export_dmabuf_fd = ibv_dm_export_dmabuf_fd,
		.reg_mr_ex = ibv_reg_mr_ex,
		.dealloc_dmah = ibv_dealloc_dmah,
		.alloc_dmah = ibv_alloc_dmah,
	};
}

static void fill_ops(struct v_context *c)
{
	struct v_newer_ops *newer = v_newer_ops(c);
	struct verbs_context *v = &c->verbs;

	for (void **slot = (void **)(void *)newer;
	     slot < (void **)(void *)&v->sz; slot++)
		*slot = (void *)private_command;
	fill_newer(newer);
	fill_makers(v);
	v->priv = NULL;
	v->_ABI_placeholder3 = 0;
	v->create_qp_ex = v_create_qp_ex;
	v->alloc_td = v_alloc_td;
	v->dealloc_td = v_dealloc_td;
	v->alloc_parent_domain = v_alloc_parent_domain;
	v->alloc_dm = v_alloc_dm;
	v->free_dm = v_free_dm;
	v->reg_dm_mr = v_reg_dm_mr;
	v->create_cq_ex = v_create_cq_ex;
	v->modify_cq = v_modify_cq;
	v->create_srq_ex = v_create_srq_ex;
	v->query_rt_values = v_query_rt_values;
	v->get_srq_num = v_get_srq_num;
	v->query_device_ex = v_query_device_ex;
	v->query_port = v_query_port;
	/* The size of release 65's struct.  By this size a program that looks
	 * for an operation of a later release finds that there is none. */
	v->sz = (size_t)((char *)(&v->context + 1) - (char *)newer);
	fill_old(&v->context.ops);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

/* The open contexts, which v_device_of_fd, v_port_event and v_fatal_event
 * search.  Lock: contexts_lock. */
static struct list contexts = {&contexts, &contexts};
static struct lock contexts_lock;

/* The lock is held across fork(2), so that the child has a whole list and a
 * lock that its thread can release.  A thread that has contexts_lock takes no
 * other lock but v_queue.lock, and does not fork. */
static void about_to_fork(void) NO_LOCK_ANALYSIS
{
	lock_take(&contexts_lock);
}

static void has_forked(void) NO_LOCK_ANALYSIS
{
	lock_give(&contexts_lock);
}

/* A constructor registers the handlers, because a fork that has begun skips the
 * handlers that another thread registers meanwhile. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(about_to_fork, has_forked, has_forked);
}

void v_port_event(const struct device *dev, uint32_t number,
		  enum device_event what)
{
	lock_take(&contexts_lock);
	for (struct list *n = contexts.next; n != &contexts; n = n->next) {
		struct v_context *c = CONTAINER_OF(n, struct v_context, link);

		if (v_is_ours(c) && c->dev == dev)
			v_queue_post(&c->async, &c->port[number - 1][what]);
	}
	lock_give(&contexts_lock);
}

static void *fail_open(int err)
{
	if (err == EMFILE)
		return v_fail_null(err, V_SYSTEM,
				   "the device does not open (close some "
				   "files, or raise ulimit -n)");
	return v_fail_null(err, V_SYSTEM,
			   err == ENOMEM
				   ? "the device does not open: the memory or "
				     "the limits of ulimit -v and -d do not "
				     "suffice"
				   : "the device does not open (`adverb "
				     "doctor` says what is missing here)");
}

void v_fatal_event(void)
{
	lock_take(&contexts_lock);
	for (struct list *n = contexts.next; n != &contexts; n = n->next) {
		struct v_context *c = CONTAINER_OF(n, struct v_context, link);

		if (v_is_ours(c))
			v_queue_post(&c->async, &c->fatal);
	}
	lock_give(&contexts_lock);
}

static void sources_init(struct v_context *c)
{
	static const enum ibv_event_type types[DEVICE_EVENTS] = {
		[DEVICE_EVENT_UP] = IBV_EVENT_PORT_ACTIVE,
		[DEVICE_EVENT_DOWN] = IBV_EVENT_PORT_ERR,
		[DEVICE_EVENT_GIDS] = IBV_EVENT_GID_CHANGE,
		[DEVICE_EVENT_LID] = IBV_EVENT_LID_CHANGE,
		[DEVICE_EVENT_SM] = IBV_EVENT_SM_CHANGE,
		[DEVICE_EVENT_PKEYS] = IBV_EVENT_PKEY_CHANGE,
		[DEVICE_EVENT_REREGISTER] = IBV_EVENT_CLIENT_REREGISTER,
	};

	for (int n = 0; n < HCA_MAX_PORTS; n++)
		for (int i = 0; i < DEVICE_EVENTS; i++)
			v_source_init(&c->port[n][i], c->port[n],
				      (int)types[i]);
	v_source_init(&c->fatal, c, IBV_EVENT_DEVICE_FATAL);
}

struct ibv_device *v_device_of_fd(int fd)
{
	struct ibv_device *device = NULL;
	struct stat want, have;

	if (fstat(fd, &want))
		return NULL;
	lock_take(&contexts_lock);
	for (struct list *n = contexts.next; n != &contexts; n = n->next) {
		struct v_context *c = CONTAINER_OF(n, struct v_context, link);

		if (v_is_ours(c) && !fstat(c->verbs.context.cmd_fd, &have) &&
		    want.st_dev == have.st_dev && want.st_ino == have.st_ino)
			device = c->verbs.context.device;
	}
	lock_give(&contexts_lock);
	return device;
}

static void context_show(struct v_context *c, struct ibv_device *device,
			 int cmd_fd)
{
	c->dev = ((struct v_device *)(void *)device)->host;
	c->verbs.context.device = device;
	c->verbs.context.cmd_fd = fd_identity_note_shown(cmd_fd);
	c->verbs.context.async_fd = c->async.fd;
	c->verbs.context.num_comp_vectors = 1;
	pthread_mutex_init(&c->verbs.context.mutex, NULL);
	sources_init(c);
	lock_take(&contexts_lock);
	list_push_tail(&contexts, &c->link);
	lock_give(&contexts_lock);
}

struct ibv_context *v_open_device(struct ibv_device *device, int cmd_fd)
{
	struct v_context *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return fail_open(ENOMEM);
	fill_ops(c);
	err = v_queue_init(&c->async);
	if (err)
		goto free_context;
	c->process = v_process();
	c->host = host_get(&sink);
	if (!c->host) {
		err = -errno;
		goto free_queue;
	}
	context_show(c, device, cmd_fd);
	return &c->verbs.context;
free_queue:
	v_queue_fini(&c->async);
free_context:
	free(c);
	return fail_open(-err);
}

/* The context's descriptor is an empty file, whose inode number identifies the
 * context. */
struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	int fd = memfd_create("adverb-context", MFD_CLOEXEC);
	struct ibv_context *context;

	if (fd < 0)
		return fail_open(errno);
	context = v_open_device(device, fd);
	if (!context)
		close(fd);
	return context;
}

/*
 * Programs such as perftest close a device before they have destroyed all its
 * objects.  The context then stays until the process ends, since the objects
 * point to it.  A context with objects also stays in the child of a fork, which
 * cannot destroy its parent's objects, but may try to.
 */
int ibv_close_device(struct ibv_context *context)
{
	struct v_context *c = v_context(context);

	if (count_now(&c->objects))
		return 0;
	if (v_is_ours(c))
		host_put(c->host);
	lock_take(&contexts_lock);
	list_remove(&c->link);
	lock_give(&contexts_lock);
	fd_identity_close(context->cmd_fd);
	v_queue_fini(&c->async);
	pthread_mutex_destroy(&context->mutex);
	free(c);
	return 0;
}
