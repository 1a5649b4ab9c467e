/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steady: an end of an RC connection by LID, from port 1 to port 1 of another
 * host of the fabric.  Prints its LID and its QPN, and reads those of the peer.
 * Both ends then send numbered messages without a pause, and check the numbers
 * that come.
 *
 * The program prints `runs` after MESSAGES messages in each direction.  For a
 * line `count` it prints how many messages have arrived.  For `pause` it sends
 * no further message, and prints `paused` when all are acknowledged.  For
 * `once` it sends one message, and prints `sent` when that is acknowledged.  If
 * a request fails with status N, the program prints `error N` and ends.  The
 * program also ends when the standard input ends.
 *
 * Variables: STEADY_PKEY and STEADY_TIMEOUT are the P_Key and the local ACK
 * timeout of the queue pair.  With STEADY_CHILD the program forks, and the
 * child keeps all descriptors open until the standard input ends.  With
 * STEADY_SLEEPS the program sleeps until a completion or a line comes.
 * STEADY_POLLERS is a number of threads, each of which polls an empty
 * completion queue now and then.
 */
#include "check.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

enum { DEPTH = 16, BYTES = 3000, MESSAGES = 1000 };

struct message {
	uint32_t number;
	uint8_t rest[BYTES];
};

static struct ibv_cq *cq;
static struct ibv_comp_channel *channel; /* NULL: the program polls */
static struct ibv_mr *mr;
static struct ibv_qp *qp;
/* The messages that arrive, and behind them those that are sent, in one region.
 */
static struct message in[3 * DEPTH], *const out = in + 2 * DEPTH;
static uint32_t sent, acked, received;
static uint32_t most = UINT32_MAX; /* how many messages may be sent */

static void post_receive(uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)&in[i], sizeof(in[i]), mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	NEED(!ibv_post_recv(qp, &wr, &bad));
}

static void post_send(void)
{
	struct message *m = &out[sent % DEPTH];
	struct ibv_sge sge = {(uintptr_t)m, sizeof(*m), mr->lkey};
	struct ibv_send_wr wr = {.wr_id = sent,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	m->number = sent++;
	m->rest[BYTES - 1] = (uint8_t)m->number;
	NEED(!ibv_post_send(qp, &wr, &bad));
}

static void take_completion(const struct ibv_wc *wc)
{
	const struct message *m = &in[wc->wr_id % (2 * DEPTH)];

	if (wc->status) {
		printf("error %d\n", wc->status);
		exit(0);
	}
	if (wc->opcode == IBV_WC_SEND) {
		NEED(wc->wr_id == acked);
		acked++;
		return;
	}
	NEED(wc->byte_len == sizeof(*m) && m->number == received &&
	     m->rest[BYTES - 1] == (uint8_t)m->number);
	received++;
	post_receive((uint32_t)wc->wr_id);
}

/* Takes completions, and sends what may be sent.  Returns false if there was no
 * completion. */
static bool do_work(void)
{
	struct ibv_wc wc[DEPTH];
	int n = ibv_poll_cq(cq, DEPTH, wc);

	NEED(n >= 0);
	for (int i = 0; i < n; i++)
		take_completion(&wc[i]);
	while (sent - acked < DEPTH && sent < most)
		post_send();
	return n > 0;
}

/* Sends until `most` messages are sent.  Prints the word when all of them are
 * acknowledged. */
static void settle_all(const char *word)
{
	while (acked != sent || sent < most)
		do_work();
	printf("%s\n", word);
}

/* Reads a line, if there is one.  Returns false at the end of the input. */
static bool take_line(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};
	char line[64] = "";
	size_t n = 0;

	if (poll(&p, 1, 0) <= 0)
		return true;
	while (n < sizeof(line) - 1 && read(0, line + n, 1) == 1)
		if (line[n++] == '\n')
			break;
	if (!n)
		return false;
	if (!strcmp(line, "count\n")) {
		printf("%u\n", received);
	} else if (!strcmp(line, "pause\n")) {
		most = sent;
		settle_all("paused");
	} else if (!strcmp(line, "once\n")) {
		most = sent + 1;
		settle_all("sent");
	}
	return true;
}

static uint16_t make_parts(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_qp_init_attr init = {.cap = {DEPTH, 2 * DEPTH, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_port_attr port;

	NEED(pd && !ibv_query_port(ctx, 1, &port) && port.lid);
	if (getenv("STEADY_SLEEPS")) {
		channel = ibv_create_comp_channel(ctx);
		NEED(channel);
	}
	cq = init.send_cq = init.recv_cq =
		ibv_create_cq(ctx, 4 * DEPTH, NULL, channel, 0);
	mr = ibv_reg_mr(pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE);
	NEED(cq && mr);
	qp = ibv_create_qp(pd, &init);
	NEED(qp);
	return port.lid;
}

/* Returns the index of the P_Key STEADY_PKEY, or 0. */
static uint16_t pkey_index(void)
{
	const char *wanted = getenv("STEADY_PKEY");
	uint16_t i = 0;
	__be16 pkey;

	if (!wanted)
		return 0;
	for (;; i++) {
		/* ibv_query_pkey fails behind the last index: the port has no
		 * such P_Key */
		NEED(!ibv_query_pkey(qp->context, 1, i, &pkey));
		if (ntohs(pkey) == strtoul(wanted, NULL, 0))
			return i;
	}
}

static uint8_t ack_timeout(void)
{
	const char *wanted = getenv("STEADY_TIMEOUT");

	return wanted ? (uint8_t)strtoul(wanted, NULL, 0) : 17; /* 0.5 s */
}

static void connect_to(unsigned int lid, unsigned int qpn)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.pkey_index = pkey_index(),
				.port_num = 1};

	NEED(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	for (uint32_t i = 0; i < 2 * DEPTH; i++)
		post_receive(i);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.min_rnr_timer = 1,
		.ah_attr = {.dlid = (uint16_t)lid, .port_num = 1}};
	NEED(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = ack_timeout(),
				 .retry_cnt = 7,
				 .rnr_retry = 7};
	NEED(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

static void make_child(void)
{
	struct pollfd p = {.fd = 0};
	pid_t child = getenv("STEADY_CHILD") ? fork() : getpid();

	NEED(child >= 0);
	if (child)
		return;
	while (!(p.revents & POLLHUP))
		NEED(poll(&p, 1, -1) == 1);
	_exit(0);
}

/* Polls in bursts with pauses, so that different threads make progress in turn.
 */
static void *poll_in_vain(void *number)
{
	unsigned int random = (unsigned int)(uintptr_t)number;
	struct ibv_cq *empty = ibv_create_cq(cq->context, 1, NULL, NULL, 0);
	struct ibv_wc wc;

	NEED(empty);
	for (;;) {
		random = random * 1664525 + 1013904223;
		for (unsigned int i = random >> 20; i; i--)
			NEED(!ibv_poll_cq(empty, 1, &wc));
		usleep(random >> 22);
	}
	return NULL;
}

static void start_pollers(void)
{
	const char *count = getenv("STEADY_POLLERS");
	pthread_t thread;

	for (uintptr_t i = count ? strtoul(count, NULL, 0) : 0; i; i--)
		NEED(!pthread_create(&thread, NULL, poll_in_vain, (void *)i));
}

/* Sleeps until a completion or a line comes. */
static void await_work(void)
{
	struct pollfd p[] = {{.fd = channel->fd, .events = POLLIN},
			     {.fd = 0, .events = POLLIN}};
	struct ibv_cq *of;
	void *context;

	NEED(!ibv_req_notify_cq(cq, 0));
	if (do_work() || poll(p, 2, -1) < 0 || !p[0].revents)
		return;
	NEED(!ibv_get_cq_event(channel, &of, &context));
	ibv_ack_cq_events(of, 1);
}

int main(void)
{
	bool has_said = false;
	unsigned int lid, qpn;

	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	lid = make_parts();
	printf("%u %u\n", lid, qp->qp_num);
	NEED(scanf("%u %u", &lid, &qpn) == 2);
	connect_to(lid, qpn);
	make_child();
	start_pollers();
	while (take_line()) {
		if (!do_work() && channel)
			await_work();
		if (!has_said && acked > MESSAGES && received > MESSAGES)
			printf("runs\n");
		has_said |= acked > MESSAGES && received > MESSAGES;
	}
	return 0;
}
