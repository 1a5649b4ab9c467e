/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rejoins GID MGID: an id of rdma_cm that is bound to the GID joins the
 * multicast group MGID, and joins the group again whenever the membership has
 * ended.  A member sends its GID to the group every 100 ms.  The program prints
 * `joined LID`, `lost ERRNO`, and `hears 0` for the first datagram of another
 * member after a join, and ends when its standard input ends.
 */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

enum { GRH_BYTES = 40, BYTES = 16, DEPTH = 16, PAUSE_MS = 100 };

static struct sockaddr_ib own = {.sib_family = AF_IB};
static struct sockaddr_ib group = {.sib_family = AF_IB};
static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct ibv_mr *mr;
/* The buffers of the receives, and behind them the datagram that is sent. */
static uint8_t memory[DEPTH + 1][GRH_BYTES + BYTES];
static struct ibv_ah *ah; /* NULL: the id is no member */
static struct rdma_ud_param to;
static bool has_joined, hears;

static void say_line(const char *word, int number)
{
	printf("%s %d\n", word, number);
	fflush(stdout);
}

static void read_gid(const char *text, struct sockaddr_ib *a)
{
	NEED(inet_pton(AF_INET6, text, &a->sib_addr) == 1);
}

static void post_receive(uint64_t i)
{
	NEED(!rdma_post_recv(id, (void *)(uintptr_t)i, memory[i],
			     sizeof(memory[i]), mr));
}

static void make_id(void)
{
	struct ibv_qp_init_attr init = {.cap = {DEPTH, DEPTH, 1, 1, 0},
					.qp_type = IBV_QPT_UD};

	channel = rdma_create_event_channel();
	NEED(channel);
	NEED(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	NEED(!rdma_create_id(channel, &id, NULL, RDMA_PS_UDP));
	NEED(!rdma_bind_addr(id, (struct sockaddr *)&own));
	NEED(!rdma_create_qp(id, NULL, &init));
	mr = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	NEED(mr);
	for (uint64_t i = 0; i < DEPTH; i++)
		post_receive(i);
	memcpy(memory[DEPTH], &own.sib_addr, BYTES);
}

static void join_group(void)
{
	NEED(!rdma_join_multicast(id, (struct sockaddr *)&group, &group));
}

static void begin_membership(const struct rdma_ud_param *param)
{
	to = *param;
	ah = ibv_create_ah(id->pd, &to.ah_attr);
	NEED(ah);
	has_joined = true;
	hears = false;
	say_line("joined", to.ah_attr.dlid);
}

/* Joins the group again, after the membership has ended or a join of this
 * function has failed.  A failed join prints nothing, since the port may still
 * be inactive. */
static void end_membership(int status)
{
	NEED(has_joined);
	if (ah) {
		say_line("lost", -status);
		NEED(!ibv_destroy_ah(ah));
	} else {
		poll(NULL, 0, PAUSE_MS);
	}
	ah = NULL;
	NEED(!rdma_leave_multicast(id, (struct sockaddr *)&group));
	join_group();
}

static void take_event(void)
{
	struct rdma_cm_event *e;
	struct rdma_ud_param param;
	enum rdma_cm_event_type type;
	int status;

	if (rdma_get_cm_event(channel, &e)) {
		NEED(errno == EAGAIN);
		return;
	}
	type = e->event;
	status = e->status;
	param = e->param.ud;
	NEED(param.private_data == &group);
	NEED(!rdma_ack_cm_event(e));
	if (type == RDMA_CM_EVENT_MULTICAST_JOIN) {
		begin_membership(&param);
		return;
	}
	NEED(type == RDMA_CM_EVENT_MULTICAST_ERROR);
	end_membership(status);
}

static bool is_of_other(const uint8_t *datagram)
{
	return memcmp(datagram + GRH_BYTES, &own.sib_addr, BYTES) != 0;
}

static void take_completions(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(id->send_cq, 1, &wc) == 1)
		NEED(!wc.status);
	while (ibv_poll_cq(id->recv_cq, 1, &wc) == 1) {
		NEED(!wc.status);
		if (!hears && ah && is_of_other(memory[wc.wr_id])) {
			hears = true;
			say_line("hears", 0);
		}
		post_receive(wc.wr_id);
	}
}

int main(int argc, char **argv)
{
	struct pollfd in[2] = {{.fd = 0, .events = POLLIN}, {.events = POLLIN}};

	if (argc != 3) {
		fprintf(stderr, "usage: rejoins GID MGID\n");
		return 2;
	}
	read_gid(argv[1], &own);
	read_gid(argv[2], &group);
	make_id();
	in[1].fd = channel->fd;
	join_group();
	for (;;) {
		NEED(poll(in, 2, PAUSE_MS) >= 0);
		if (in[0].revents)
			break;
		take_event();
		take_completions();
		if (ah)
			NEED(!rdma_post_ud_send(id, NULL, memory[DEPTH], BYTES,
						mr, IBV_SEND_SIGNALED, ah,
						to.qp_num));
	}
	if (ah)
		NEED(!ibv_destroy_ah(ah));
	NEED(!rdma_leave_multicast(id, (struct sockaddr *)&group));
	rdma_destroy_qp(id);
	NEED(!ibv_dereg_mr(mr));
	NEED(!rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	return 0;
}
