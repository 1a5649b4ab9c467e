/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/umad.h>

#include "hdr/mad.h"
#include "hdr/sa.h"
#include "ipoib/ask.h"

enum {
	RECEIVE_BYTES = IPOIB_VERBS_RECEIVE_BYTES,
	/* The bytes before a received packet: those of its GRH, or unused. */
	GRH = RECEIVE_BYTES - IPOIB_PACKET_MAX,
	SENDS_AT = IPOIB_VERBS_RECEIVES * RECEIVE_BYTES,
	BATCH = 32,
	PKEY_FULL = 0x8000,
	AT_SGID = 8, /* in a GRH */
	AT_DGID = 24,
	QP_MANAGEMENT = 1,
};

static int say_failure(const char *what, int err)
{
	fprintf(stderr,
		"adverb: adverb ipoib cannot start: %s%s%s; see the "
		"sentence above, or adverb doctor.\n",
		what, err ? ": " : "", err ? strerror(err) : "");
	return -1;
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	if (list && list[0])
		context = ibv_open_device(list[0]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

static int make_queues(struct ipoib_verbs *v)
{
	struct ibv_qp_init_attr init = {
		.cap = {v->places.count, IPOIB_VERBS_RECEIVES, 1, 1, 0},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
	size_t bytes = SENDS_AT + (size_t)v->places.count * v->places.bytes;

	v->pd = ibv_alloc_pd(v->context);
	v->channel = ibv_create_comp_channel(v->context);
	if (!v->pd || !v->channel)
		return -1;
	v->receive_cq = ibv_create_cq(v->context, IPOIB_VERBS_RECEIVES, NULL,
				      v->channel, 0);
	v->send_cq = ibv_create_cq(v->context, (int)v->places.count, NULL,
				   v->channel, 0);
	v->memory = calloc(1, bytes);
	if (!v->receive_cq || !v->send_cq || !v->memory)
		return -1;
	v->mr = ibv_reg_mr(v->pd, v->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = v->send_cq;
	init.recv_cq = v->receive_cq;
	v->qp = v->mr ? ibv_create_qp(v->pd, &init) : NULL;
	return v->qp ? 0 : -1;
}

/* Returns 0 or -errno. */
static int open_umad(struct ipoib_verbs *v)
{
	if (umad_init())
		return -EIO;
	v->umad = umad_open_port(
		(char *)ibv_get_device_name(v->context->device), v->port);
	if (v->umad < 0)
		return v->umad;
	v->agent = umad_register(v->umad, SA_CLASS, SA_VERSION, 0, NULL);
	return v->agent < 0 ? v->agent : 0;
}

static void unblock_fd(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Returns the first port that has a link; 1 if there is none. */
static uint8_t choose_port(struct ibv_context *context)
{
	struct ibv_device_attr device = {0};
	struct ibv_port_attr attr;

	ibv_query_device(context, &device);
	for (uint8_t i = 1; i <= device.phys_port_cnt; i++)
		if (!ibv_query_port(context, i, &attr) &&
		    attr.state != IBV_PORT_DOWN)
			return i;
	return 1;
}

/* Returns 0, or -1 after a sentence. */
static int check_port(const struct ipoib_verbs *v)
{
	struct ibv_port_attr attr;
	int err = ibv_query_port(v->context, v->port, &attr);

	if (err != EINVAL)
		return err ? say_failure("the port cannot be queried", err) : 0;
	fprintf(stderr,
		"adverb: adverb ipoib cannot start: the host has no port %u; "
		"choose another by --port (ibv_devinfo shows them).\n",
		v->port);
	return -1;
}

static void set_places(struct ipoib_verbs *v, bool is_connected)
{
	uint32_t bytes = is_connected ? IPOIB_STREAM_MAX + IPOIB_HEADROOM
				      : IPOIB_FRAME_MAX;

	v->places.bytes = (bytes + 15) & ~15u;
	v->places.count =
		is_connected ? IPOIB_VERBS_SENDS : IPOIB_VERBS_SENDS / 2;
}

int ipoib_verbs_open(struct ipoib_verbs *v, uint8_t port, uint16_t pkey,
		     bool is_connected)
{
	int err;

	memset(v, 0, sizeof(*v));
	v->umad = -1;
	v->wanted_pkey = pkey;
	set_places(v, is_connected);
	v->context = open_device();
	if (!v->context)
		return say_failure("the device cannot be opened", errno);
	v->port = port ? port : choose_port(v->context);
	if (check_port(v))
		return -1;
	if (make_queues(v))
		return say_failure("the queue pair cannot be made", errno);
	err = open_umad(v);
	if (err)
		return say_failure("the port cannot be opened for management "
				   "datagrams",
				   -err);
	unblock_fd(v->channel->fd);
	unblock_fd(v->context->async_fd);
	return 0;
}

void ipoib_verbs_close(struct ipoib_verbs *v)
{
	if (v->umad >= 0)
		umad_close_port(v->umad);
	if (v->qp)
		ibv_destroy_qp(v->qp);
	if (v->mr)
		ibv_dereg_mr(v->mr);
	if (v->send_cq)
		ibv_destroy_cq(v->send_cq);
	if (v->receive_cq)
		ibv_destroy_cq(v->receive_cq);
	if (v->channel)
		ibv_destroy_comp_channel(v->channel);
	if (v->pd)
		ibv_dealloc_pd(v->pd);
	if (v->context)
		ibv_close_device(v->context);
	free(v->memory);
}

/* Finds *pkey, with full membership, in the port's table, and stores the index
 * in v->pkey_index.  If *pkey is 0, first sets *pkey to the P_Key at index 0,
 * with the bit of full membership.  Returns whether *pkey was found. */
static bool find_pkey(struct ipoib_verbs *v, uint16_t entries, uint16_t *pkey)
{
	for (uint16_t i = 0; i < entries; i++) {
		__be16 value;
		uint16_t found;

		if (ibv_query_pkey(v->context, v->port, i, &value))
			continue;
		found = be16toh(value);
		if (!*pkey && !i)
			*pkey = found | PKEY_FULL;
		if (!(found & PKEY_FULL) || found != *pkey)
			continue;
		v->pkey_index = i;
		return true;
	}
	return false;
}

int ipoib_verbs_port(struct ipoib_verbs *v, struct ipoib_port *port)
{
	struct ibv_port_attr attr;
	union ibv_gid gid;
	int err = ibv_query_port(v->context, v->port, &attr);

	if (!err && ibv_query_gid(v->context, v->port, 0, &gid))
		err = errno;
	if (err)
		return -err;
	v->sm_lid = attr.sm_lid;
	v->sl = attr.sm_sl;
	*port = (struct ipoib_port){
		.is_active = attr.state == IBV_PORT_ACTIVE,
		.pkey = v->wanted_pkey,
		.lid = attr.lid,
		.sm_lid = attr.sm_lid,
		.mtu = (uint8_t)attr.active_mtu,
	};
	port->has_pkey = find_pkey(v, attr.pkey_tbl_len, &port->pkey);
	memcpy(port->gid, gid.raw, sizeof(port->gid));
	return 0;
}

static int post_receive(struct ipoib_verbs *v, uint32_t index)
{
	struct ibv_sge sge = {.addr = (uintptr_t)v->memory +
				      (size_t)index * RECEIVE_BYTES,
			      .length = RECEIVE_BYTES,
			      .lkey = v->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uint64_t)v->round << 32 | index,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	return ibv_post_recv(v->qp, &wr, &bad);
}

/* Frees the places of the sends by UD, which the reset of the queue pair has
 * ended.  A place of a flow stays in use: the flow's queue pair may still send
 * the packet in the place. */
static void free_places(struct ipoib_verbs *v)
{
	struct ipoib_verbs_places *p = &v->places;

	p->free_count = 0;
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->uses[i].flow)
			continue;
		p->uses[i] = (struct ipoib_verbs_use){0};
		p->free[p->free_count++] = (uint16_t)i;
	}
}

static int enter_init(struct ipoib_verbs *v, uint32_t qkey)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .pkey_index = v->pkey_index,
				   .port_num = v->port,
				   .qkey = qkey};
	int err = ibv_modify_qp(v->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_QKEY);

	v->used_index = v->pkey_index;
	for (uint32_t i = 0; !err && i < IPOIB_VERBS_RECEIVES; i++)
		err = post_receive(v, i);
	return err;
}

static int enter_rts(struct ipoib_verbs *v)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int err = ibv_modify_qp(v->qp, &attr, IBV_QP_STATE);

	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(v->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (!err)
		err = ibv_req_notify_cq(v->receive_cq, 0);
	return err;
}

int ipoib_verbs_start(struct ipoib_verbs *v, uint32_t qkey)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .qkey = qkey};
	int err;

	v->qkey = qkey;
	if (v->is_started)
		return -ibv_modify_qp(v->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY);
	v->round++;
	free_places(v);
	err = enter_init(v, qkey);
	if (!err)
		err = enter_rts(v);
	v->is_started = !err;
	return -err;
}

void ipoib_verbs_stop(struct ipoib_verbs *v)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	if (v->is_started)
		ibv_modify_qp(v->qp, &attr, IBV_QP_STATE);
	v->is_started = false;
	v->places.free_count = 0;
	v->batch.count = 0;
}

static uint8_t *place_at(struct ipoib_verbs *v, uint32_t index)
{
	return v->memory + SENDS_AT + (size_t)index * v->places.bytes;
}

static void free_place(struct ipoib_verbs *v, uint32_t index)
{
	struct ipoib_verbs_use *use = &v->places.uses[index];

	if (use->flow) {
		use->flow->in_flight--;
		use->flow->complete++;
	}
	*use = (struct ipoib_verbs_use){0};
	v->places.free[v->places.free_count++] = (uint16_t)index;
}

/* The number in wr_id tells the present use of a place from earlier uses. */
void ipoib_verbs_free_place(struct ipoib_verbs *v, uint64_t wr_id,
			    bool has_failed)
{
	uint32_t index = (uint32_t)wr_id;

	if (index >= v->places.count || !wr_id ||
	    v->places.uses[index].number != wr_id >> 32)
		return;
	if (v->places.uses[index].flow)
		v->places.uses[index].flow->is_broken |= has_failed;
	free_place(v, index);
}

void ipoib_verbs_end_flow(struct ipoib_verbs *v,
			  const struct ipoib_verbs_flow *flow)
{
	for (uint32_t i = 0; i < v->places.count && flow->in_flight; i++)
		if (v->places.uses[i].flow == flow)
			free_place(v, i);
}

uint64_t ipoib_verbs_take_place(struct ipoib_verbs *v,
				struct ipoib_verbs_flow *flow, const uint8_t *p,
				size_t bytes, struct ibv_sge *sge)
{
	uint8_t *place = ipoib_verbs_place(v);
	uint16_t index;

	if (!place || bytes > v->places.bytes)
		return 0;
	if (p < place || p >= place + v->places.bytes) {
		memcpy(place, p, bytes);
		p = place;
	}
	index = v->places.free[--v->places.free_count];
	v->places.last_number++;
	v->places.last_number += !v->places.last_number;
	v->places.uses[index] =
		(struct ipoib_verbs_use){v->places.last_number, flow};
	if (flow)
		flow->in_flight++;
	*sge = (struct ibv_sge){.addr = (uintptr_t)p,
				.length = (uint32_t)bytes,
				.lkey = v->mr->lkey};
	return (uint64_t)v->places.last_number << 32 | index;
}

void ipoib_verbs_collect(struct ipoib_verbs *v)
{
	struct ibv_wc wc[BATCH];
	int n;

	do {
		n = ibv_poll_cq(v->send_cq, BATCH, wc);
		for (int i = 0; i < n; i++)
			ipoib_verbs_free_place(v, wc[i].wr_id,
					       wc[i].status != IBV_WC_SUCCESS);
	} while (n == BATCH);
}

uint8_t *ipoib_verbs_place(struct ipoib_verbs *v)
{
	if (v->is_started && v->places.free_count < v->places.count / 2)
		ipoib_verbs_collect(v);
	return v->places.free_count
		       ? place_at(v, v->places.free[v->places.free_count - 1])
		       : NULL;
}

bool ipoib_verbs_await_place(struct ipoib_verbs *v)
{
	if (!v->is_started || ipoib_verbs_place(v))
		return false;
	ibv_req_notify_cq(v->send_cq, 0);
	/* a send may have completed before ibv_req_notify_cq */
	return !ipoib_verbs_place(v);
}

static struct ibv_ah *make_handle(struct ipoib_verbs *v, const struct route *r)
{
	struct ibv_ah_attr attr = {.dlid = r->lid,
				   .sl = r->sl,
				   .static_rate = r->rate,
				   .is_global = r->is_global,
				   .port_num = v->port};

	memcpy(attr.grh.dgid.raw, r->gid, 16);
	attr.grh.flow_label = r->flow_label;
	attr.grh.hop_limit = r->hop_limit;
	attr.grh.traffic_class = r->traffic_class;
	return ibv_create_ah(v->pd, &attr);
}

void ipoib_verbs_flush(struct ipoib_verbs *v)
{
	struct ipoib_verbs_batch *b = &v->batch;
	struct ibv_send_wr *bad = NULL;

	if (!b->count)
		return;
	b->wr[b->count - 1].next = NULL;
	if (ibv_post_send(v->qp, b->wr, &bad))
		for (; bad; bad = bad->next)
			ipoib_verbs_free_place(v, bad->wr_id, false);
	b->count = 0;
}

void ipoib_verbs_release(struct ipoib_verbs *v, struct route *r)
{
	/* a send of the batch may use the handle */
	ipoib_verbs_flush(v);
	ibv_destroy_ah(r->handle);
}

/* Adds a send to the batch. */
static void add_send(struct ipoib_verbs *v, const struct route *r,
		     const uint8_t *p, size_t bytes)
{
	struct ipoib_verbs_batch *b = &v->batch;
	struct ibv_sge *sge = &b->sge[b->count];
	struct ibv_send_wr *wr = &b->wr[b->count];

	*wr = (struct ibv_send_wr){.sg_list = sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .next = wr + 1};
	wr->wr_id = ipoib_verbs_take_place(v, NULL, p, bytes, sge);
	if (!wr->wr_id)
		return;
	wr->wr.ud.ah = r->handle;
	wr->wr.ud.remote_qpn = r->qpn;
	wr->wr.ud.remote_qkey = v->qkey;
	b->count++;
}

void ipoib_verbs_send(struct ipoib_verbs *v, struct route *r, const uint8_t *p,
		      size_t bytes)
{
	if (!r->handle)
		r->handle = make_handle(v, r);
	if (!r->handle)
		return;
	add_send(v, r, p, bytes);
	if (v->batch.count == IPOIB_VERBS_BATCH)
		ipoib_verbs_flush(v);
}

bool ipoib_verbs_attach(struct ipoib_verbs *v, const uint8_t mgid[16],
			bool attaches)
{
	union ibv_gid gid;

	memcpy(gid.raw, mgid, sizeof(gid.raw));
	return !(attaches ? ibv_attach_mcast(v->qp, &gid, 0)
			  : ibv_detach_mcast(v->qp, &gid, 0));
}

static void receive_one(struct ipoib_verbs *v, struct ipoib *m,
			const struct ibv_wc *wc, uint64_t now_ms)
{
	uint32_t index = (uint32_t)wc->wr_id;
	uint8_t *p = v->memory + (size_t)index * RECEIVE_BYTES;
	struct ipoib_from from = {.qpn = wc->src_qp,
				  .lid = wc->slid,
				  .is_global = wc->wc_flags & IBV_WC_GRH};

	memcpy(from.sgid, p + AT_SGID, 16);
	memcpy(from.dgid, p + AT_DGID, 16);
	if (wc->status == IBV_WC_SUCCESS && wc->byte_len > GRH)
		ipoib_packet(m, &from, p + GRH, wc->byte_len - GRH, now_ms);
	if (v->is_started)
		post_receive(v, index);
}

int ipoib_verbs_receive(struct ipoib_verbs *v, struct ipoib *m, int most,
			uint64_t now_ms)
{
	struct ibv_wc wc[BATCH];
	int all = 0, n;

	if (!v->is_started)
		return 0;
	do {
		n = ibv_poll_cq(v->receive_cq, BATCH, wc);
		for (int i = 0; i < n; i++)
			if (wc[i].wr_id >> 32 == v->round)
				receive_one(v, m, &wc[i], now_ms);
		all += n > 0 ? n : 0;
	} while (n == BATCH && all < most);
	return all;
}

void ipoib_verbs_events(struct ipoib_verbs *v)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(v->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		/* a CQ that is neither of *v is the receive CQ of ipoib_rc.c,
		 * which is armed from the start */
		if (cq != v->send_cq && (cq != v->receive_cq || v->is_started))
			ibv_req_notify_cq(cq, 0);
	}
}

void ipoib_verbs_ask(struct ipoib_verbs *v, const uint8_t mad[MAD_BYTES])
{
	uint8_t message[256 + 128] __attribute__((aligned(8))) = {0};

	if (umad_size() + MAD_BYTES > sizeof(message))
		return;
	memcpy(umad_get_mad(message), mad, MAD_BYTES);
	umad_set_addr(message, v->sm_lid, QP_MANAGEMENT, v->sl,
		      (int)MAD_QP1_QKEY);
	umad_set_pkey(message, 0);
	/* after an error the question is asked again when its time ends */
	umad_send(v->umad, v->agent, message, MAD_BYTES, ASK_TRY_MS, 0);
}

int ipoib_verbs_answers(struct ipoib_verbs *v, struct ipoib *m, uint64_t now_ms)
{
	uint8_t message[256 + 128] __attribute__((aligned(8)));

	for (;;) {
		int bytes = MAD_BYTES;
		int err = umad_recv(v->umad, message, &bytes, 0);

		if (err < 0)
			return err == -EWOULDBLOCK || err == -EINTR ? 0 : err;
		if (!umad_status(message))
			ipoib_answer(m, umad_get_mad(message), (size_t)bytes,
				     now_ms);
	}
}
