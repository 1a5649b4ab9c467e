/* SPDX-License-Identifier: BSD-2-Clause */
/* streamendcheck: tests how the TCP connections of an iWARP device's queue
 * pairs end, and which bytes are still sent.  Prints a line per case. */
#include "stream_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define AHEAD	    60	 /* WRITEs of post_ahead */
#define AHEAD_BYTES 4096 /* bytes of each of these WRITEs */

/* Opens one end, the responder, whose peer is *peer, a blocking socket. */
static void open_one(struct end *x, int *peer)
{
	int fd[2];

	connect_pair(fd);
	open_end(x);
	NEED(!give_connection(x, fd[0], true, ""));
	*peer = fd[1];
	fcntl(*peer, F_SETFL, 0);
}

/* Returns how many bytes the socket receives until the peer's FIN, or 0 if the
 * connection fails. */
static uint64_t count_bytes(int fd)
{
	static uint8_t sink[65536];
	uint64_t got = 0;
	ssize_t n;

	fcntl(fd, F_SETFL, 0);
	while ((n = recv(fd, sink, sizeof(sink), 0)) > 0)
		got += (uint64_t)n;
	return n ? 0 : got;
}

/* Gives the connection fd to x's queue pair, posts WRITEs and waits until all
 * have completed, although the peer has read nothing.  The bytes of these
 * WRITEs must arrive even if the program then destroys the queue pair, or ends.
 */
static void post_ahead(struct end *x, struct memory *m, const struct end *other,
		       int fd)
{
	struct stream_config c = config_of(false);
	struct host_stream s = {
		.fd = fd, .config = &c, .news = note_news, .arg = x};
	struct ibv_wc wc;
	int small = 4096, done = 0;

	/* The send buffer holds only a small part of these WRITEs. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	NEED(!calls->open(x->e.ctx, x->e.qp->qp_num, &s));
	for (int i = 0; i < AHEAD; i++)
		post_wr(x, IBV_WR_RDMA_WRITE, m->mr[0], AHEAD_BYTES, other,
			m->mr[1]);
	while (done < AHEAD)
		if (ibv_poll_cq(x->e.cq, 1, &wc) == 1) {
			NEED(wc.status == IBV_WC_SUCCESS);
			done++;
		}
}

static void keep_what_completed(void)
{
	struct memory m;
	struct end x[2];
	int fd[2];

	connect_pair(fd);
	open_end(&x[0]);
	open_end(&x[1]);
	open_memory(&m, x);
	post_ahead(&x[0], &m, &x[1], fd[0]);
	ibv_destroy_qp(x[0].e.qp);
	EXPECT(count_bytes(fd[1]) >= AHEAD * AHEAD_BYTES);
	close(fd[1]);
	x[0].e.qp = endpoint_beside(&x[0].e, NULL, 0).qp;
	close_memory(&m);
	close_ends(x, 2);
}

static _Atomic int polls;

/* Polls without end, so that this thread nearly always makes progress while
 * another thread calls exit. */
static void *poll_for_ever(void *cq)
{
	struct ibv_wc wc;

	for (;; polls++)
		ibv_poll_cq(cq, 1, &wc);
	return NULL;
}

static void keep_at_exit(void)
{
	int fd[2], status;
	pthread_t poller;
	pid_t child;

	connect_pair(fd);
	child = fork();
	NEED(child >= 0);
	if (!child) {
		struct memory m;
		struct end x[2];

		close(fd[1]);
		open_end(&x[0]);
		open_end(&x[1]);
		open_memory(&m, x);
		post_ahead(&x[0], &m, &x[1], fd[0]);
		NEED(!pthread_create(&poller, NULL, poll_for_ever, x[1].e.cq));
		while (polls < 1000)
			sched_yield();
		exit(0);
	}
	close(fd[0]);
	usleep(100000); /* meanwhile the child fills the kernel's buffers */
	EXPECT(count_bytes(fd[1]) >= AHEAD * AHEAD_BYTES);
	NEED(waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(fd[1]);
}

static void end_in_order(void)
{
	struct end x[2];

	open_both(x);
	post_receive(&x[0], x[0].e.mr, 64);
	post_receive(&x[1], x[1].e.mr, 64);
	post_receive(&x[1], x[1].e.mr, 64);
	post_wr(&x[0], IBV_WR_SEND, x[0].e.mr, 64, &x[1], NULL);
	/* calls with another connection's argument have no effect */
	calls->close(x[0].e.ctx, x[0].e.qp->qp_num, &x[1]);
	calls->abort(x[0].e.ctx, x[0].e.qp->qp_num, &x[1]);
	calls->close(x[0].e.ctx, x[0].e.qp->qp_num, &x[0]);
	EXPECT(completes_with(&x[1], IBV_WC_SUCCESS));
	EXPECT(completes_with(&x[1], IBV_WC_WR_FLUSH_ERR));
	EXPECT(completes_with(&x[0], IBV_WC_SUCCESS));
	EXPECT(completes_with(&x[0], IBV_WC_WR_FLUSH_ERR));
	EXPECT(await_news(&x[0].ended) && await_news(&x[1].ended));
	EXPECT(endpoint_state(&x[0].e) == IBV_QPS_ERR &&
	       endpoint_state(&x[1].e) == IBV_QPS_ERR);
	close_ends(x, 2);
	EXPECT(x[0].ended == 1 && x[1].ended == 1);
}

static void end_at_once(void)
{
	struct end x[2];

	open_both(x);
	post_receive(&x[0], x[0].e.mr, 64);
	post_receive(&x[1], x[1].e.mr, 64);
	calls->abort(x[0].e.ctx, x[0].e.qp->qp_num, &x[0]);
	EXPECT(completes_with(&x[0], IBV_WC_WR_FLUSH_ERR));
	EXPECT(completes_with(&x[1], IBV_WC_WR_FLUSH_ERR));
	EXPECT(await_news(&x[1].ended) && !x[0].ended);
	close_ends(x, 2);
}

static void destroy_open(void)
{
	struct end x[2];

	open_both(x);
	post_receive(&x[1], x[1].e.mr, 64);
	endpoint_close(&x[0].e);
	EXPECT(completes_with(&x[1], IBV_WC_WR_FLUSH_ERR));
	EXPECT(await_news(&x[1].ended) && x[0].ended == 1);
	endpoint_close(&x[1].e);
}

static void fail_by_program(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct end x[2];

	open_both(x);
	post_receive(&x[0], x[0].e.mr, 64);
	post_receive(&x[1], x[1].e.mr, 64);
	EXPECT(!ibv_modify_qp(x[0].e.qp, &attr, IBV_QP_STATE));
	EXPECT(completes_with(&x[0], IBV_WC_WR_FLUSH_ERR));
	EXPECT(completes_with(&x[1], IBV_WC_WR_FLUSH_ERR));
	EXPECT(await_news(&x[0].ended) && await_news(&x[1].ended));
	attr.qp_state = IBV_QPS_RESET;
	EXPECT(!ibv_modify_qp(x[0].e.qp, &attr, IBV_QP_STATE));
	close_ends(x, 2);
}

/* RESET of a queue pair in RTS ends its connection, and the queue pair takes
 * another connection. */
static void reset_and_again(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET, .port_num = 1};
	struct end x[2], y;
	int fd[2];

	open_both(x);
	EXPECT(!ibv_modify_qp(x[0].e.qp, &attr, IBV_QP_STATE));
	EXPECT(x[0].ended == 1 && await_news(&x[1].ended));
	attr.qp_state = IBV_QPS_INIT;
	EXPECT(!ibv_modify_qp(x[0].e.qp, &attr, IBV_QP_STATE));
	connect_pair(fd);
	open_end(&y);
	NEED(!give_connection(&x[0], fd[0], false, ""));
	NEED(!give_connection(&y, fd[1], true, ""));
	post_receive(&y, y.e.mr, 64);
	post_wr(&x[0], IBV_WR_SEND, x[0].e.mr, 64, &y, NULL);
	EXPECT(completes_with(&y, IBV_WC_SUCCESS));
	endpoint_close(&y.e);
	close_ends(x, 2);
}

/* A move to RESET with an attribute that RESET does not allow is refused, and
 * the connection stays.  A move to RESET with the right current state ends the
 * connection. */
static void refuse_reset(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET,
				   .cur_qp_state = IBV_QPS_RTS,
				   .port_num = 1};
	struct end x[2];

	open_both(x);
	EXPECT(ibv_modify_qp(x[0].e.qp, &attr, IBV_QP_STATE | IBV_QP_PORT) ==
	       EINVAL);
	EXPECT(!x[0].ended && endpoint_state(&x[0].e) == IBV_QPS_RTS);
	post_receive(&x[1], x[1].e.mr, 64);
	post_wr(&x[0], IBV_WR_SEND, x[0].e.mr, 64, &x[1], NULL);
	EXPECT(completes_with(&x[1], IBV_WC_SUCCESS));
	EXPECT(!ibv_modify_qp(x[0].e.qp, &attr,
			      IBV_QP_STATE | IBV_QP_CUR_STATE));
	EXPECT(x[0].ended == 1 && await_news(&x[1].ended));
	close_ends(x, 2);
}

static void meet_rst(void)
{
	struct linger now = {.l_onoff = 1};
	struct end x;
	int peer;

	open_one(&x, &peer);
	post_receive(&x, x.e.mr, 64);
	setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(peer);
	EXPECT(completes_with(&x, IBV_WC_WR_FLUSH_ERR));
	EXPECT(await_news(&x.ended) && !x.ready);
	endpoint_close(&x.e);
}

/* Returns the offset of the last FPDU in the n bytes at p; -1: there is no
 * FPDU, or the bytes end within an FPDU. */
static ssize_t last_fpdu(const uint8_t *p, ssize_t n)
{
	ssize_t at = 0, last = -1;

	while (at + 6 <= n) {
		last = at;
		/* length, ULPDU, pad to 4 bytes, CRC */
		at += ((2 + (p[at] << 8 | p[at + 1]) + 3) & ~3) + 4;
	}
	return at == n ? last : -1;
}

/* An initiator answers an FPDU with a wrong CRC by a Terminate, and then by a
 * FIN. */
static void meet_junk(void)
{
	uint8_t junk[256] = {0}, answer[512];
	ssize_t n = 0, more, at;
	struct end x;
	int fd[2];

	connect_pair(fd);
	open_end(&x);
	NEED(!give_connection(&x, fd[0], false, ""));
	fcntl(fd[1], F_SETFL, 0);
	post_receive(&x, x.e.mr, 64);
	NEED(send(fd[1], junk, sizeof(junk), 0) == sizeof(junk));
	EXPECT(completes_with(&x, IBV_WC_WR_FLUSH_ERR));
	EXPECT(await_news(&x.ended));
	while ((more = recv(fd[1], answer + n, sizeof(answer) - (size_t)n, 0)) >
	       0)
		n += more;
	EXPECT(more == 0);
	at = last_fpdu(answer, n);
	/* a Terminate: untagged, the last segment, of queue 2 */
	EXPECT(at >= 0 && (answer[at + 2] & 0xc0) == 0x40 &&
	       answer[at + 11] == 2);
	close(fd[1]);
	endpoint_close(&x.e);
}

/* A responder that has received no valid FPDU sends no FPDU (RFC 5044 7.1.2),
 * and so no Terminate: it only closes the connection. */
static void meet_junk_first(void)
{
	uint8_t junk[256] = {0}, answer[16];
	struct end x;
	int peer;

	open_one(&x, &peer);
	post_receive(&x, x.e.mr, 64);
	NEED(send(peer, junk, sizeof(junk), 0) == sizeof(junk));
	EXPECT(completes_with(&x, IBV_WC_WR_FLUSH_ERR));
	EXPECT(await_news(&x.ended) && !x.ready);
	EXPECT(recv(peer, answer, sizeof(answer), 0) <= 0);
	close(peer);
	endpoint_close(&x.e);
}

/* A connection whose peer sends no FPDU within ready_within_ns ends; a
 * connection whose peer sends an FPDU in time stays. */
static void meet_silence(void)
{
	struct stream_config c = config_of(true);
	struct host_stream s = {
		.config = &c, .news = note_news, .ready_within_ns = 50000000};
	struct end x[2];
	int fd[2], silent[2];

	connect_pair(silent);
	connect_pair(fd);
	open_end(&x[0]);
	s.fd = silent[0];
	s.arg = &x[0];
	NEED(!calls->open(x[0].e.ctx, x[0].e.qp->qp_num, &s));
	EXPECT(await_news(&x[0].ended) && !x[0].ready);
	endpoint_close(&x[0].e);
	close(silent[1]);
	open_end(&x[0]);
	open_end(&x[1]);
	NEED(!give_connection(&x[0], fd[0], false, ""));
	s.fd = fd[1];
	s.arg = &x[1];
	s.ready_within_ns = 20000000000;
	NEED(!calls->open(x[1].e.ctx, x[1].e.qp->qp_num, &s));
	EXPECT(await_news(&x[1].ready) && !x[1].ended);
	close_ends(x, 2);
}

/* A child of fork has a copy of the socket, and yet the peer sees the end of
 * the connection. */
static void end_beside_a_child(void)
{
	struct stream_config c = config_of(true);
	struct host_stream s = {
		.config = &c, .news = note_news, .ready_within_ns = 50000000};
	struct pollfd p = {.events = POLLIN};
	int fd[2], lives[2];
	struct end x;
	pid_t child;
	char byte;

	connect_pair(fd);
	NEED(!pipe(lives));
	open_end(&x);
	s.fd = fd[0];
	s.arg = &x;
	NEED(!calls->open(x.e.ctx, x.e.qp->qp_num, &s));
	child = fork();
	NEED(child >= 0);
	if (!child) {
		close(lives[1]);
		_exit(read(lives[0], &byte, 1) != 0);
	}
	EXPECT(await_news(&x.ended));
	p.fd = fd[1];
	EXPECT(poll(&p, 1, WAIT_MS) == 1 && recv(fd[1], &byte, 1, 0) == 0);
	close(lives[1]);
	NEED(waitpid(child, NULL, 0) == child);
	close(lives[0]);
	close(fd[1]);
	endpoint_close(&x.e);
}

/* By dup2 the program puts a file of its own in the place of the socket.  The
 * library does not write to the file, and the connection ends. */
static void lose_socket(void)
{
	struct end x;
	char text[8] = "";
	int fd[2], mine = memfd_create("mine", 0);

	NEED(write(mine, "mine", 4) == 4);
	connect_pair(fd);
	open_end(&x);
	NEED(!give_connection(&x, fd[0], false, ""));
	NEED(dup2(mine, fd[0]) == fd[0]);
	post_wr(&x, IBV_WR_SEND, x.e.mr, 64, &x, NULL);
	while (!x.ended) {
		struct ibv_wc wc;

		ibv_poll_cq(x.e.cq, 1, &wc);
		sched_yield();
	}
	EXPECT(x.ended == 1);
	EXPECT(pread(fd[0], text, 8, 0) == 4 && !strcmp(text, "mine"));
	endpoint_close(&x.e);
	close(fd[0]);
	close(fd[1]);
	close(mine);
}

int main(void)
{
	find_calls();
	check_run("completed requests are sent after the queue pair's end",
		  keep_what_completed);
	check_run("completed requests are sent after exit", keep_at_exit);
	check_run("close ends a connection after the posted requests",
		  end_in_order);
	check_run("abort ends a connection at once", end_at_once);
	check_run("the end of a queue pair ends the connection", destroy_open);
	check_run("a move to ERR ends the connection", fail_by_program);
	check_run("a queue pair takes another connection after RESET",
		  reset_and_again);
	check_run("a refused RESET leaves the connection", refuse_reset);
	check_run("RST by the peer ends the connection", meet_rst);
	check_run("junk is answered by a Terminate and FIN", meet_junk);
	check_run("junk as the first FPDU gets no Terminate", meet_junk_first);
	check_run("a peer whose first FPDU is late loses the connection",
		  meet_silence);
	check_run("the peer sees the end although a child has the socket",
		  end_beside_a_child);
	check_run("a socket that the program has replaced is not written",
		  lose_socket);
	return check_end();
}
