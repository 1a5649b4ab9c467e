/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * migrates [program] | server PORT | client GID GID PORT: an end of an RC
 * connection between two hosts of a fabric.  The path goes from port 1 to the
 * peer's port 1, and the alternate path from port 2 to the peer's port 2.
 *
 * Without `server` and `client`, the program prints the LIDs of both ports and
 * the QPN, reads those of the peer, and connects by verbs.  The server and the
 * client connect by rdma_cm: the client finds the paths to the GIDs of the
 * server's two ports, and gives both paths to its id.
 *
 * Both ends send numbered messages without a pause, and check the numbers that
 * come.  The program prints `armed` when the queue pair is ARMED and the peer
 * has acknowledged MESSAGES / 10 messages, or when the queue pair has migrated;
 * and `migrated` when the queue pair has migrated.  With `program`, the program
 * asks for the migration when it prints `armed`.  An end that has sent MESSAGES
 * messages after the migration, and has received the peer's last message,
 * prints `done`, and ends when the standard input ends.
 */
#include "check.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/ib.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum { DEPTH = 16, BYTES = 3000, MESSAGES = 2000 };

/* A message: its number, and whether it is the sender's last message. */
struct message {
	uint32_t number, is_last;
	uint8_t rest[BYTES];
};

/* An end of the connection, as its peer needs to know it. */
struct end {
	unsigned int lid[2], qpn;
};

static struct ibv_context *ctx;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static struct message out[DEPTH], in[2 * DEPTH];
/* sent, acked, received: how many messages.  since: how many of `sent` were
 * sent after the migration. */
static uint32_t sent, acked, received, since;
static bool is_armed, has_migrated, has_sent_last, has_received_last;

static uint16_t lid_of(uint8_t port)
{
	struct ibv_port_attr a;

	NEED(!ibv_query_port(ctx, port, &a));
	NEED(a.state == IBV_PORT_ACTIVE && a.lid);
	return a.lid;
}

static struct ibv_mr *register_all(struct ibv_pd *pd, void *at, size_t bytes)
{
	struct ibv_mr *region =
		ibv_reg_mr(pd, at, bytes, IBV_ACCESS_LOCAL_WRITE);

	NEED(region);
	return region;
}

static struct ibv_mr *in_mr;

/* Makes the objects that a queue pair of the open device needs, and writes the
 * attributes of the queue pair to *init.  Returns the protection domain. */
static struct ibv_pd *make_parts(struct ibv_qp_init_attr *init)
{
	struct ibv_device_attr attr;
	struct ibv_pd *pd;

	NEED(!ibv_query_device(ctx, &attr));
	NEED(attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 4 * DEPTH, NULL, NULL, 0);
	NEED(pd && cq);
	mr = register_all(pd, out, sizeof(out));
	in_mr = register_all(pd, in, sizeof(in));
	*init = (struct ibv_qp_init_attr){.cap = {DEPTH, 2 * DEPTH, 1, 1, 0},
					  .qp_type = IBV_QPT_RC,
					  .sq_sig_all = 1,
					  .send_cq = cq,
					  .recv_cq = cq};
	NEED(!fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK));
	return pd;
}

static struct end open_end(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init;
	struct ibv_pd *pd;

	NEED(list && list[0]);
	ctx = ibv_open_device(list[0]);
	NEED(ctx);
	ibv_free_device_list(list);
	pd = make_parts(&init);
	qp = ibv_create_qp(pd, &init);
	NEED(qp);
	return (struct end){{lid_of(1), lid_of(2)}, qp->qp_num};
}

static struct ibv_ah_attr path_to(const struct end *peer, uint8_t port)
{
	return (struct ibv_ah_attr){.dlid = (uint16_t)peer->lid[port - 1],
				    .port_num = port};
}

static void connect_end(const struct end *peer)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	NEED(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				    IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = peer->qpn,
				 .min_rnr_timer = 12,
				 .ah_attr = path_to(peer, 1)};
	NEED(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 18,
				 .retry_cnt = 6,
				 .rnr_retry = 7,
				 .alt_ah_attr = path_to(peer, 2),
				 .alt_port_num = 2,
				 .alt_timeout = 19,
				 .path_mig_state = IBV_MIG_REARM};
	NEED(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH |
				    IBV_QP_PATH_MIG_STATE));
}

static void post_receive(uint32_t slot)
{
	struct ibv_sge sge = {(uintptr_t)&in[slot], sizeof(*in), in_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	NEED(!ibv_post_recv(qp, &wr, &bad));
}

static void post_receives(void)
{
	for (uint32_t i = 0; i < 2 * DEPTH; i++)
		post_receive(i);
}

/* ---- connected by rdma_cm ---- */

static struct rdma_event_channel *channel;

/* Returns the next event, which must be of this type, and which the caller
 * acknowledges. */
static struct rdma_cm_event *take_event(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	NEED(!rdma_get_cm_event(channel, &e));
	NEED(e->event == type && !e->status);
	return e;
}

static void await_event(enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(take_event(type));
}

static struct rdma_cm_id *make_id(void)
{
	struct rdma_cm_id *id;

	NEED(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	return id;
}

static struct sockaddr_ib address_of(const char *gid, const char *port)
{
	struct sockaddr_ib a = {.sib_family = AF_IB,
				.sib_sid_mask = UINT64_MAX};

	a.sib_sid = htobe64((uint64_t)RDMA_PS_TCP << 16 | (uint64_t)atoi(port));
	NEED(inet_pton(AF_INET6, gid, &a.sib_addr) == 1);
	return a;
}

/* Returns a new id that has resolved the address `to`.  from: the GID of the
 * id; NULL: librdmacm chooses the GID. */
static struct rdma_cm_id *resolve_address(struct sockaddr_ib to,
					  const union ibv_gid *from)
{
	struct sockaddr_ib own = {.sib_family = AF_IB};
	struct rdma_cm_id *id = make_id();

	if (from)
		memcpy(&own.sib_addr, from, sizeof(*from));
	NEED(!rdma_resolve_addr(id, from ? (struct sockaddr *)&own : NULL,
				(struct sockaddr *)&to, 5000));
	await_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	return id;
}

/* Returns a new id with the path to the address `to`.  from: the GID of the id;
 * NULL: librdmacm chooses the GID. */
static struct rdma_cm_id *resolve_id(struct sockaddr_ib to,
				     const union ibv_gid *from)
{
	struct rdma_cm_id *id = resolve_address(to, from);

	NEED(!rdma_resolve_route(id, 60000));
	await_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
	NEED(id->route.num_paths == 1);
	return id;
}

static struct ibv_path_data path_data(const struct rdma_cm_id *id,
				      uint32_t flags)
{
	const struct ibv_sa_path_rec *r = id->route.path_rec;

	return (struct ibv_path_data){
		.flags = flags | IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = {.dgid = r->dgid,
			 .sgid = r->sgid,
			 .dlid = r->dlid,
			 .slid = r->slid,
			 .flowlabel_hoplimit = htobe32(r->hop_limit),
			 .reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1,
			 .pkey = r->pkey,
			 .qosclass_sl = htobe16(r->sl),
			 .mtu = r->mtu,
			 .rate = r->rate,
			 .packetlifetime = r->packet_life_time}};
}

/* Creates the id's queue pair, with receives. */
static void make_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_pd *pd;

	ctx = id->verbs;
	pd = make_parts(&init);
	NEED(!rdma_create_qp(id, pd, &init));
	qp = id->qp;
	post_receives();
}

/* Returns the LIDs of the peer in the two paths of the id. */
static struct end peer_of(const struct rdma_cm_id *id)
{
	const struct ibv_sa_path_rec *r = id->route.path_rec;

	NEED(id->route.num_paths == 2);
	NEED(be16toh(r[0].slid) == lid_of(1) &&
	     be16toh(r[1].slid) == lid_of(2));
	return (struct end){{be16toh(r[0].dlid), be16toh(r[1].dlid)}, 0};
}

static struct end connect_client(char **argv)
{
	struct rdma_conn_param param = {.retry_count = 2, .rnr_retry_count = 7};
	struct sockaddr_ib to = address_of(argv[0], argv[2]);
	struct rdma_cm_id *id = resolve_address(to, NULL);
	struct rdma_cm_id *one = resolve_id(to, NULL), *other;
	struct ibv_path_data paths[2];
	union ibv_gid second;

	NEED(!ibv_query_gid(id->verbs, 2, 0, &second));
	other = resolve_id(address_of(argv[1], argv[2]), &second);
	paths[0] = path_data(one, IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY);
	paths[1] = path_data(other, IBV_PATH_FLAG_ALTERNATE);
	rdma_destroy_id(one);
	rdma_destroy_id(other);
	NEED(!rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths,
			      sizeof(paths)));
	await_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_pair(id);
	NEED(!rdma_connect(id, &param));
	await_event(RDMA_CM_EVENT_ESTABLISHED);
	return peer_of(id);
}

static struct end accept_server(const char *port)
{
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	struct sockaddr_ib any = address_of("::", port);
	struct rdma_cm_id *listener = make_id(), *id;
	struct rdma_cm_event *e;

	NEED(!rdma_bind_addr(listener, (struct sockaddr *)&any));
	NEED(!rdma_listen(listener, 1));
	puts("listens");
	e = take_event(RDMA_CM_EVENT_CONNECT_REQUEST);
	id = e->id;
	rdma_ack_cm_event(e);
	make_pair(id);
	NEED(!rdma_accept(id, &param));
	await_event(RDMA_CM_EVENT_ESTABLISHED);
	return peer_of(id);
}

/* ---- the load ---- */

static void post_message(void)
{
	struct message *m = &out[sent % DEPTH];
	struct ibv_sge sge = {(uintptr_t)m, sizeof(*m), mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	since += has_migrated;
	has_sent_last = since == MESSAGES;
	m->number = sent++;
	m->is_last = has_sent_last;
	memset(m->rest, (int)m->number, sizeof(m->rest));
	NEED(!ibv_post_send(qp, &wr, &bad));
}

static void take_message(const struct ibv_wc *wc)
{
	const struct message *m = &in[wc->wr_id];

	NEED(wc->byte_len == sizeof(*m) && !has_received_last);
	NEED(m->number == received && m->rest[0] == (uint8_t)received &&
	     m->rest[sizeof(m->rest) - 1] == (uint8_t)received);
	received++;
	has_received_last = m->is_last;
	post_receive((uint32_t)wc->wr_id);
}

static void poll_queue(void)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) > 0) {
		NEED(wc.status == IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			take_message(&wc);
		else
			acked++;
	}
	NEED(!n);
}

static void note_armed(void)
{
	if (!is_armed)
		puts("armed");
	is_armed = true;
}

static void take_events(void)
{
	struct ibv_async_event e;

	while (!ibv_get_async_event(ctx, &e)) {
		NEED(e.event_type != IBV_EVENT_PATH_MIG_ERR);
		if (e.event_type == IBV_EVENT_PATH_MIG) {
			NEED(e.element.qp == qp && !has_migrated);
			has_migrated = true;
			note_armed();
			puts("migrated");
		}
		ibv_ack_async_event(&e);
	}
}

static struct ibv_qp_attr query_path(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	NEED(!ibv_query_qp(qp, &a,
			   IBV_QP_PATH_MIG_STATE | IBV_QP_AV | IBV_QP_ALT_PATH,
			   &init));
	return a;
}

static void ask_migration(void)
{
	struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_MIGRATED};

	NEED(!ibv_modify_qp(qp, &a, IBV_QP_PATH_MIG_STATE));
}

static void look_armed(bool by_program)
{
	if (is_armed || has_migrated || acked < MESSAGES / 10 ||
	    query_path().path_mig_state != IBV_MIG_ARMED)
		return;
	note_armed();
	if (by_program)
		ask_migration();
}

/* Expects that the two paths of the queue pair have changed places. */
static void check_paths(const struct end *peer, bool by_cm)
{
	struct ibv_qp_attr a = query_path();

	NEED(a.path_mig_state == IBV_MIG_MIGRATED);
	NEED(a.port_num == 2 && a.ah_attr.dlid == peer->lid[1]);
	NEED(a.alt_port_num == 1 && a.alt_ah_attr.dlid == peer->lid[0]);
	NEED(by_cm || (a.timeout == 19 && a.alt_timeout == 18));
}

/* Opens this end, prints its LIDs and QPN, reads those of the peer, and
 * connects to the peer.  Returns the peer. */
static struct end exchange_ends(void)
{
	struct end self = open_end(), peer;

	printf("%u %u %u\n", self.lid[0], self.lid[1], self.qpn);
	NEED(scanf("%u %u %u", &peer.lid[0], &peer.lid[1], &peer.qpn) == 3);
	connect_end(&peer);
	post_receives();
	return peer;
}

int main(int argc, char **argv)
{
	bool by_program = argc == 2 && !strcmp(argv[1], "program");
	bool by_cm = argc > 2;
	struct end peer;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (by_cm) {
		channel = rdma_create_event_channel();
		NEED(channel);
	}
	peer = argc == 3   ? accept_server(argv[2])
	       : argc == 5 ? connect_client(argv + 2)
			   : exchange_ends();
	while (!has_sent_last || acked < sent || !has_received_last) {
		take_events();
		look_armed(by_program);
		while (!has_sent_last && sent - acked < DEPTH)
			post_message();
		poll_queue();
	}
	check_paths(&peer, by_cm);
	printf("done: %u sent, %u received\n", sent, received);
	while (getchar() != EOF)
		;
	return 0;
}
