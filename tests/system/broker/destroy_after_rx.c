/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * destroy_after_rx [ROUNDS]: tests that a packet is answered if it came before
 * the program destroyed the packet's queue pair or moved the queue pair to ERR.
 *
 *	caller: posts a WRITE --- byte in a socket --> callee: destroys at once
 *	        the WRITE succeeds
 *
 * The callee's main thread sleeps until the byte comes.  If both processes
 * share a core, the packet may still be in the callee's UDP socket when the
 * callee destroys the queue pair.  A post may return before the packet is sent,
 * so the caller waits until its namespace has sent a datagram.  No other
 * program may send datagrams in the namespace: the caller would take such a
 * datagram for its own, and the callee would destroy the queue pair before the
 * packet comes.
 */
#include "check.h"
#include "endpoint.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 100 };

static void swap_addresses(int fd, const struct endpoint_address *out,
			   struct endpoint_address *in)
{
	if (write(fd, out, sizeof(*out)) != (ssize_t)sizeof(*out) ||
	    recv(fd, in, sizeof(*in), MSG_WAITALL) != (ssize_t)sizeof(*in))
		exit(1); /* the peer has failed, and has printed why */
}

static void await_byte(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		exit(1);
}

static void send_byte(int fd)
{
	if (write(fd, "", 1) != 1)
		exit(1);
}

static void connect_by(struct endpoint *e, int fd,
		       struct endpoint_address *peer)
{
	struct endpoint_address self;

	endpoint_address_get(e, &self);
	swap_addresses(fd, &self, peer);
	endpoint_to_rtr(e, peer);
	endpoint_to_rts(e, &self, 7);
	send_byte(fd);
	await_byte(fd);
}

static void be_callee(int fd, int round)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct endpoint_address peer;
	struct endpoint e;

	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
	connect_by(&e, fd, &peer);
	await_byte(fd);
	if (round % 2)
		check_need(!ibv_modify_qp(e.qp, &error, IBV_QP_STATE),
			   "ibv_modify_qp");
	else
		check_need(!ibv_destroy_qp(e.qp), "ibv_destroy_qp");
	await_byte(fd);
	if (round % 2)
		check_need(!ibv_destroy_qp(e.qp), "ibv_destroy_qp");
	_exit(0);
}

/* Returns how many UDP datagrams the namespace has sent. */
static long count_sent(void)
{
	FILE *f = fopen("/proc/self/net/snmp", "r");
	char line[512];
	long count = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Udp: %*d %*d %*d %ld", &count) == 1)
			break;
	if (!f || fclose(f) || count < 0) {
		fprintf(stderr, "/proc/self/net/snmp has no count of the UDP "
				"datagrams that were sent\n");
		exit(1);
	}
	return count;
}

/* Returns whether the WRITE succeeds. */
static bool be_caller(int fd)
{
	struct endpoint_address peer;
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	struct ibv_sge sge = {.length = BYTES};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};
	struct endpoint e;
	long before;

	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE, 0);
	connect_by(&e, fd, &peer);
	sge.addr = (uintptr_t)e.region;
	sge.lkey = e.mr->lkey;
	wr.wr.rdma.remote_addr = peer.region;
	wr.wr.rdma.rkey = peer.rkey;
	before = count_sent();
	errno = ibv_post_send(e.qp, &wr, &bad);
	if (errno) {
		perror("ibv_post_send");
		return false;
	}
	while (count_sent() == before)
		sched_yield();
	send_byte(fd);
	if (!endpoint_wait(&e, &wc) || wc.status)
		fprintf(stderr, "the WRITE ends with: %s\n",
			ibv_wc_status_str(wc.status));
	send_byte(fd);
	endpoint_close(&e);
	return !wc.status;
}

/* Runs each end of a round in a process of its own.  Returns whether both ends
 * succeed. */
static bool run_round(int round)
{
	pid_t pid[2];
	int fd[2], status, good = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd)) {
		perror("socketpair");
		return false;
	}
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			perror("fork");
		if (pid[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fd[!i]);
		if (i)
			be_callee(fd[1], round);
		_exit(!be_caller(fd[0]));
	}
	close(fd[0]);
	close(fd[1]);
	for (int i = 0; i < 2; i++)
		good += pid[i] > 0 && waitpid(pid[i], &status, 0) == pid[i] &&
			!status;
	return good == 2;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;

	for (int i = 0; i < rounds; i++)
		if (!run_round(i)) {
			fprintf(stderr, "round %d of %d failed\n", i, rounds);
			return 1;
		}
	printf("%d rounds passed\n", rounds);
	return 0;
}
