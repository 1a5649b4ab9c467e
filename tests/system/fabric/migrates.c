/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * migrates [program]: an end of an RC connection whose path goes from port 1 to
 * the peer's port 1, and whose alternate path goes from port 2 to the peer's
 * port
 * 2.  The other end runs on another host of the fabric.
 *
 * Prints the LIDs of both ports and the QPN, and reads those of the peer.  Both
 * ends send numbered messages without a pause, and check the numbers that come.
 * Prints `armed` when the connection can migrate, or has migrated.  With
 * `program`, asks for the migration then; else waits for it.  Ends after both
 * ends have migrated and have sent MESSAGES more messages, when the standard
 * input ends.
 */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

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

static struct end open_end(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.cap = {DEPTH, 2 * DEPTH, 1, 1, 0},
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1};
	struct ibv_device_attr attr;
	struct ibv_pd *pd;

	NEED(list && list[0]);
	ctx = ibv_open_device(list[0]);
	NEED(ctx);
	ibv_free_device_list(list);
	NEED(!ibv_query_device(ctx, &attr));
	NEED(attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 4 * DEPTH, NULL, NULL, 0);
	NEED(pd && cq);
	mr = register_all(pd, out, sizeof(out));
	in_mr = register_all(pd, in, sizeof(in));
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	NEED(qp);
	NEED(!fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK));
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

/* The paths have changed places. */
static void check_paths(const struct end *peer)
{
	struct ibv_qp_attr a = query_path();

	NEED(a.path_mig_state == IBV_MIG_MIGRATED);
	NEED(a.port_num == 2 && a.ah_attr.dlid == peer->lid[1]);
	NEED(a.alt_port_num == 1 && a.alt_ah_attr.dlid == peer->lid[0]);
	NEED(a.timeout == 19 && a.alt_timeout == 18);
}

int main(int argc, char **argv)
{
	bool by_program = argc == 2 && !strcmp(argv[1], "program");
	struct end self = open_end(), peer;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%u %u %u\n", self.lid[0], self.lid[1], self.qpn);
	NEED(scanf("%u %u %u", &peer.lid[0], &peer.lid[1], &peer.qpn) == 3);
	connect_end(&peer);
	for (uint32_t i = 0; i < 2 * DEPTH; i++)
		post_receive(i);
	while (!has_sent_last || acked < sent || !has_received_last) {
		take_events();
		look_armed(by_program);
		while (!has_sent_last && sent - acked < DEPTH)
			post_message();
		poll_queue();
	}
	check_paths(&peer);
	printf("done: %u sent, %u received\n", sent, received);
	while (getchar() != EOF)
		;
	return 0;
}
