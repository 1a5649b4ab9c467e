/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows, which are rows in the table of regions.  Work requests bind
 * them (ibt/local_wr.c). */
#include <errno.h>
#include <stdlib.h>

#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"

struct ibv_mw *v_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct v_context *c = v_context(pd->context);
	struct v_mw *mw;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_alloc_mw");
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return v_fail_null(EINVAL, V_INPUT,
				   "ibv_alloc_mw needs the type IBV_MW_TYPE_1 "
				   "or IBV_MW_TYPE_2");
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_alloc_mw");
	host_lock(c->host);
	mw->mr = mw_new(host_hca(c->host), v_pd(pd)->number,
			type == IBV_MW_TYPE_1 ? 1 : 2);
	host_unlock(c->host);
	if (!mw->mr) {
		free(mw);
		return v_fail_null(ENOMEM, V_LIMIT,
				   "the number of memory windows");
	}
	mw->base.context = pd->context;
	mw->base.pd = pd;
	mw->base.rkey = mw->mr->lkey;
	mw->base.handle = mw->mr->lkey;
	mw->base.type = type;
	count_up(&v_pd(pd)->users);
	count_up(&c->objects);
	return &mw->base;
}

int v_dealloc_mw(struct ibv_mw *mw)
{
	struct v_context *c = v_context(mw->context);
	access_set key;

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_dealloc_mw");
	key = access_key(v_mw(mw)->mr->lkey);
	host_lock(c->host);
	mw_free(host_hca(c->host), v_mw(mw)->mr);
	host_unlock(c->host);
	host_await_accesses(c->host, key);
	v_pd_drop(v_pd(mw->pd));
	count_down(&c->objects);
	free(mw);
	return 0;
}

/* Each bind of a type 1 window gives the window a new key. */
int v_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = bind->wr_id,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = bind->send_flags,
			.bind_mw = {.mw = mw,
				    .rkey = ibv_inc_rkey(mw->rkey),
				    .bind_info = bind->bind_info},
		};

	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_bind_mw: a window of type 1 cannot be "
			      "IBV_ACCESS_ZERO_BASED; leave the flag out");
	return v_post_send(qp, &wr, &bad);
}
