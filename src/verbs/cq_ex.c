/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended polling: the program reads one completion at a time, field by field.
 * The current completion is a copy, so its entry in the queue is free already.
 * Lock: v_cq.poll_lock, held from start_poll to end_poll (v_enter_queue).
 */
#include <errno.h>
#include <time.h>

#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"

static struct v_cq *cq_of(struct ibv_cq_ex *cq)
{
	return v_cq(ibv_cq_ex_to_cq(cq));
}

static void show_entry(struct v_cq *cq)
{
	cq->base.status = (enum ibv_wc_status)cq->now.status;
	cq->base.wr_id = cq->now.wr_id;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct v_context *c = v_context(ex->context);
	struct v_cq *cq = cq_of(ex);

	if (attr && attr->comp_mask)
		return EINVAL;
	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_start_poll");
	v_enter_queue(&cq->poll_lock, cq->is_single);
	if (v_poll(c->host, cq, &cq->now, 1)) {
		show_entry(cq);
		/* The program runs between start_poll and end_poll.
		 * ThreadSanitizer must see the program's accesses, although
		 * this thread holds a lock of adverb's. */
		instrument_ignore_end();
		instrument_happens_after(&cq->poll_lock);
		instrument_happens_after(c->host);
		return 0;
	}
	v_leave_queue(&cq->poll_lock, cq->is_single);
	return ENOENT;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct v_context *c = v_context(ex->context);
	struct v_cq *cq = cq_of(ex);

	if (!cq_poll(host_hca(c->host), cq->cq, &cq->now, 1))
		return ENOENT;
	show_entry(cq);
	instrument_happens_after(c->host);
	return 0;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct v_cq *cq = cq_of(ex);

	instrument_happens_before(&cq->poll_lock);
	instrument_ignore();
	v_leave_queue(&cq->poll_lock, cq->is_single);
	/* next_poll calls cq_poll, which may set a notify bit.  If a notify bit
	 * is set, host_polled wakes the progress thread. */
	host_polled(v_context(cq->base.context)->host, &cq->polls, false);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)cq_of(ex)->now.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.byte_len;
}

/* ibv_wc_read_invalidated_rkey calls this function too, and takes the value as
 * the key, without swapping bytes. */
static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.imm_be;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.src_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.wc_flags;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.sl;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.slid;
}

static uint8_t read_path_bits(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.dlid_path_bits;
}

/* read_cvlan, read_flow_tag and read_tm_info give zeroes, since adverb
 * supports no completions with VLAN, flow tag or tag matching. */
static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
	return 0;
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	*info = (struct ibv_wc_tm_info){0};
}

/* Returns the time in ticks of the device's clock, which are nanoseconds:
 * hca_core_clock is 1 GHz. */
static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->now.at_ns;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t read_wallclock_ns(struct ibv_cq_ex *ex)
{
	uint64_t age = clock_ns(CLOCK_MONOTONIC) - cq_of(ex)->now.at_ns;

	return clock_ns(CLOCK_REALTIME) - age;
}

void v_cq_fill(struct ibv_cq_ex *ex)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_path_bits;
	ex->read_completion_ts = read_completion_ts;
	ex->read_cvlan = read_cvlan;
	ex->read_flow_tag = read_flow_tag;
	ex->read_tm_info = read_tm_info;
	ex->read_completion_wallclock_ns = read_wallclock_ns;
}

struct ibv_cq_ex *v_create_cq_ex(struct ibv_context *context,
				 struct ibv_cq_init_attr_ex *a)
{
	const uint64_t known = IBV_WC_STANDARD_FLAGS |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	uint32_t flags =
		a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? a->flags : 0;
	const uint32_t attributes =
		IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	struct ibv_cq *cq;

	if ((a->wc_flags & ~known) || (a->comp_mask & ~attributes) ||
	    (flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return v_fail_null(EOPNOTSUPP, V_NOT_SUPPORTED,
				   "a completion queue with VLAN, flow tag, "
				   "tag matching, ignored overruns or an "
				   "unknown attribute (ibv_create_cq_ex)");
	if (a->cqe > HCA_MAX_CQE)
		return v_fail_null(EINVAL, V_LIMIT,
				   "the size of a completion queue");
	if ((a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && !a->parent_domain)
		return v_fail_null(EINVAL, V_INPUT,
				   "ibv_create_cq_ex: comp_mask has "
				   "IBV_CQ_INIT_ATTR_MASK_PD, and "
				   "parent_domain is NULL; pass a parent "
				   "domain, or leave the bit out");
	/* As an int, a comp_vector above INT32_MAX is negative, which
	 * ibv_create_cq refuses. */
	cq = ibv_create_cq(context, (int)a->cqe, a->cq_context, a->channel,
			   (int)a->comp_vector);
	if (!cq)
		return NULL;
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		v_cq(cq)->domain = v_pd(a->parent_domain);
		count_up(&v_cq(cq)->domain->users);
		v_cq(cq)->is_single = v_cq(cq)->domain->thread;
	}
	if (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		v_cq(cq)->is_single = true;
	return &v_cq(cq)->base;
}
