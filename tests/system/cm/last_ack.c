/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * last_ack ADDRESS: tests that DISCONNECTED comes only after the completions of
 * the requests that the peer has acknowledged.  ADDRESS: an address of a
 * device.  The peer is a child of the test, so that the test can stop the peer.
 * The two processes must exchange packets (ADVERB_DIRECT=0).  Prints a line per
 * case, as verbcheck does.  One thread in each process.
 */
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "step_timeout.h"

enum { BYTES = 16, HANG_S = 300 };

static const char *address;
static char memory[BYTES];

static struct rdma_cm_id *make_endpoint(const char *port, bool serves)
{
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, BYTES},
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1};
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
				      .ai_flags = serves ? RAI_PASSIVE : 0};
	struct rdma_addrinfo *found;
	struct rdma_cm_id *id = NULL;

	check_need(!rdma_getaddrinfo(address, port, &hints, &found) &&
			   !rdma_create_ep(&id, found, NULL, &init),
		   "rdma_create_ep");
	rdma_freeaddrinfo(found);
	return id;
}

/* The peer: reads the listener's port from the pipe `ports`, connects, writes a
 * byte to the pipe `said`, receives one message, disconnects at once and exits.
 */
static void receive_and_leave(int ports, int said)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	char port[8];

	check_need(read(ports, port, sizeof(port)) > 0, "read");
	id = make_endpoint(port, false);
	mr = rdma_reg_msgs(id, memory, sizeof(memory));
	check_need(mr && !rdma_post_recv(id, NULL, memory, BYTES, mr),
		   "rdma_post_recv");
	check_need(!rdma_connect(id, &param), "rdma_connect");
	check_need(write(said, "c", 1) == 1, "write");
	while (!ibv_poll_cq(id->recv_cq, 1, &wc))
		;
	check_need(!wc.status && !rdma_disconnect(id), "rdma_disconnect");
	rdma_destroy_ep(id);
	_exit(0);
}

/* Stops the peer, sends it a message, polls, and lets the peer continue.  So
 * only a later poll can find the completion. */
static void send_to_stopped(struct rdma_cm_id *id, pid_t peer)
{
	struct ibv_wc wc;
	int status;

	check_need(!kill(peer, SIGSTOP) &&
			   waitpid(peer, &status, WUNTRACED) == peer,
		   "waitpid");
	check_need(!rdma_post_send(id, NULL, "last", 4, NULL, IBV_SEND_INLINE),
		   "rdma_post_send");
	EXPECT(!ibv_poll_cq(id->send_cq, 1, &wc));
	EXPECT(!kill(peer, SIGCONT));
}

/* Waits for DISCONNECTED like a program that polls seldom: waits for the event
 * for 20 ms, polls the completion queue once, and repeats both.  Returns
 * whether a poll has found the completion of the send before the event came. */
static bool poll_until_event(struct rdma_cm_id *id)
{
	struct pollfd p = {.fd = id->channel->fd, .events = POLLIN};
	bool is_done = false, has_event = false;
	struct rdma_cm_event *e;
	struct ibv_wc wc;

	while (!has_event) {
		for (int i = 0; i < 20 && !has_event; i++)
			has_event = poll(&p, 1, 1) == 1;
		if (!has_event)
			is_done |= ibv_poll_cq(id->send_cq, 1, &wc) == 1 &&
				   !wc.status;
	}
	check_need(!rdma_get_cm_event(id->channel, &e), "rdma_get_cm_event");
	EXPECT(e->event == RDMA_CM_EVENT_DISCONNECTED);
	EXPECT(!rdma_ack_cm_event(e));
	return is_done;
}

/* Blocks until DISCONNECTED comes, and then polls the completion queue once.
 * Returns whether the poll has found the completion of the send. */
static bool poll_after_event(struct rdma_cm_id *id)
{
	struct rdma_cm_event *e;
	struct ibv_wc wc;

	check_need(!rdma_get_cm_event(id->channel, &e), "rdma_get_cm_event");
	EXPECT(e->event == RDMA_CM_EVENT_DISCONNECTED);
	EXPECT(!rdma_ack_cm_event(e));
	return ibv_poll_cq(id->send_cq, 1, &wc) == 1 && !wc.status;
}

/* Listens, writes the port to the pipe `ports`, and accepts the peer's
 * connection.  Returns the id of the connection, which has an event channel of
 * its own. */
static struct rdma_cm_id *accept_peer(struct rdma_cm_id *listener, int ports)
{
	struct rdma_cm_id *id;
	char port[8];

	check_need(!rdma_listen(listener, 1), "rdma_listen");
	snprintf(port, sizeof(port), "%d", ntohs(rdma_get_src_port(listener)));
	check_need(write(ports, port, sizeof(port)) == sizeof(port), "write");
	check_need(!rdma_get_request(listener, &id) && !rdma_accept(id, NULL),
		   "rdma_accept");
	rdma_ack_cm_event(id->event);
	id->event = NULL;
	return id;
}

static void send_the_last(bool (*sees_completion)(struct rdma_cm_id *id))
{
	int ports[2], said[2], status;
	struct rdma_cm_id *listener, *id;
	pid_t peer;
	char c;

	check_need(!pipe(ports) && !pipe(said), "pipe");
	step_timeout_step("the peer's connection and its end", HANG_S);
	peer = fork();
	check_need(peer >= 0, "fork");
	if (!peer)
		receive_and_leave(ports[0], said[1]);
	listener = make_endpoint("0", true);
	id = accept_peer(listener, ports[1]);
	check_need(read(said[0], &c, 1) == 1, "read");
	send_to_stopped(id, peer);
	EXPECT(sees_completion(id));
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	EXPECT(waitpid(peer, &status, 0) == peer && !status);
	step_timeout_step("", 0);
	for (int i = 0; i < 2; i++) {
		close(ports[i]);
		close(said[i]);
	}
}

static void disconnected_comes_after_the_last_completion(void)
{
	send_the_last(poll_until_event);
}

static void a_poll_after_disconnected_finds_the_last_completion(void)
{
	send_the_last(poll_after_event);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: last_ack ADDRESS\n");
		return 2;
	}
	address = argv[1];
	step_timeout_watch("it hangs");
	check_run("DISCONNECTED comes after the completion of the last message",
		  disconnected_comes_after_the_last_completion);
	check_run("a poll after DISCONNECTED finds the completion of the last "
		  "message",
		  a_poll_after_disconnected_finds_the_last_completion);
	return check_end();
}
