/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * streamcheck: tests queue pairs of an iWARP device over TCP connections that
 * this program makes itself, without rdma_cm and without MPA's start-up, so
 * that the peer may also be a plain socket.  Prints a line per case.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "endpoint.h"
#include "iwarp/stream.h"
#include "verbs/iwarp.h"

#define ALL	    (IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE)
#define BIG	    (1u << 20)
#define MANY	    40
#define AHEAD	    60 /* WRITEs */
#define AHEAD_BYTES 4096
#define WAIT_MS	    20000

static const struct verbs_iwarp *calls;

/* One end, and how often its connection has become ready and has ended. */
struct end {
	struct endpoint e;
	_Atomic int ready, ended;
};

static void note_news(void *arg, enum host_stream_news what)
{
	struct end *x = arg;

	if (what == HOST_STREAM_READY)
		x->ready++;
	else
		x->ended++;
}

/* Makes a TCP connection over loopback; both ends are non-blocking. */
static void connect_pair(int fd[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	NEED(!bind(l, (void *)&at, size) && !listen(l, 1));
	NEED(!getsockname(l, (void *)&at, &size));
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	NEED(!connect(fd[0], (void *)&at, size));
	fd[1] = accept(l, NULL, NULL);
	NEED(fd[1] >= 0);
	close(l);
	for (int i = 0; i < 2; i++)
		fcntl(fd[i], F_SETFL, O_NONBLOCK);
}

static struct stream_config config_of(bool is_responder)
{
	return (struct stream_config){
		.has_crc = true,
		.is_responder = is_responder,
		.rtr = MPA_RTR_WRITE,
		.ulpdu_max = 8192,
		.ird = 4,
		.ord = 4,
	};
}

static int give_connection(struct end *x, int fd, bool is_responder,
			   const char *first)
{
	struct stream_config c = config_of(is_responder);
	struct host_stream s = {
		.fd = fd,
		.config = &c,
		.first = (const uint8_t *)first,
		.first_bytes = (uint32_t)strlen(first),
		.news = note_news,
		.arg = x,
	};

	return calls->open(x->e.ctx, x->e.qp->qp_num, &s);
}

static void open_end(struct end *x)
{
	memset(x, 0, sizeof(*x));
	endpoint_open(&x->e, ALL, ENDPOINT_ALL_REMOTE);
}

static void close_ends(struct end *x, int n)
{
	for (int i = 0; i < n; i++)
		endpoint_close(&x[i].e);
}

/* Opens two connected ends: x[0] is the initiator, x[1] the responder. */
static void open_both(struct end x[2])
{
	int fd[2];

	connect_pair(fd);
	for (int i = 0; i < 2; i++) {
		open_end(&x[i]);
		NEED(!give_connection(&x[i], fd[i], i, ""));
	}
}

/* Opens one end, the responder, whose peer is the socket *peer. */
static void open_one(struct end *x, int *peer)
{
	int fd[2];

	connect_pair(fd);
	open_end(x);
	NEED(!give_connection(x, fd[0], true, ""));
	*peer = fd[1];
	fcntl(*peer, F_SETFL, 0);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until *word, a count of a struct end, is not 0, and polls no CQ: a
 * thread of the library must report the change.  Returns false after WAIT_MS.
 */
static bool await_news(_Atomic int *word)
{
	int64_t until = now_ms() + WAIT_MS;

	while (!*word && now_ms() < until)
		usleep(1000);
	return *word;
}

static void post_wr(struct end *from, enum ibv_wr_opcode op,
		    const struct ibv_mr *m, uint32_t bytes,
		    const struct end *to, const struct ibv_mr *at)
{
	struct ibv_sge sge = {(uintptr_t)m->addr, bytes, m->lkey};
	struct ibv_send_wr wr = {.wr_id = (uint64_t)op,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = op,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	if (at) {
		wr.wr.rdma.remote_addr = (uintptr_t)at->addr;
		wr.wr.rdma.rkey = at->rkey;
	}
	NEED(!ibv_post_send(from->e.qp, &wr, &bad) && to);
}

static void post_receive(struct end *x, const struct ibv_mr *m, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)m->addr, bytes, m->lkey};
	struct ibv_recv_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	NEED(!ibv_post_recv(x->e.qp, &wr, &bad));
}

static bool completes_with(struct end *x, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	return endpoint_wait(&x->e, &wc) && wc.status == status;
}

/* Registered memory of BIG bytes at each end. */
struct memory {
	uint8_t *at[2];
	struct ibv_mr *mr[2];
};

static void open_memory(struct memory *m, struct end x[2])
{
	for (int i = 0; i < 2; i++) {
		m->at[i] = endpoint_memory(BIG);
		for (uint32_t k = 0; k < BIG; k++)
			m->at[i][k] = (uint8_t)(k * 7 + k / 251 + (uint32_t)i);
		m->mr[i] = ibv_reg_mr(x[i].e.pd, m->at[i], BIG, ALL);
		NEED(m->mr[i]);
	}
}

static void close_memory(struct memory *m)
{
	for (int i = 0; i < 2; i++) {
		ibv_dereg_mr(m->mr[i]);
		endpoint_memory_free(m->at[i], BIG);
	}
}

static void transfer_sizes(void)
{
	static const uint32_t sizes[] = {0, 1, 8, 1400, 8192, 65536, BIG};
	struct end x[2];
	struct memory m;

	open_both(x);
	open_memory(&m, x);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t n = sizes[i];

		post_wr(&x[0], IBV_WR_RDMA_WRITE, m.mr[0], n, &x[1], m.mr[1]);
		EXPECT(completes_with(&x[0], IBV_WC_SUCCESS));
		post_receive(&x[1], m.mr[1], BIG);
		/* The SEND comes after the WRITE, so when the SEND has
		 * completed at the peer, the WRITE's bytes are placed. */
		post_wr(&x[0], IBV_WR_SEND, m.mr[0], 1, &x[1], NULL);
		EXPECT(completes_with(&x[0], IBV_WC_SUCCESS));
		EXPECT(completes_with(&x[1], IBV_WC_SUCCESS));
		EXPECT(n < 2 || !memcmp(m.at[0], m.at[1], n));
		memset(m.at[1], (int)i, n);
		post_wr(&x[0], IBV_WR_RDMA_READ, m.mr[0], n, &x[1], m.mr[1]);
		EXPECT(completes_with(&x[0], IBV_WC_SUCCESS));
		EXPECT(!memcmp(m.at[0], m.at[1], n));
		memset(m.at[0], 100 + (int)i, n);
		post_receive(&x[1], m.mr[1], BIG);
		post_wr(&x[0], IBV_WR_SEND, m.mr[0], n, &x[1], NULL);
		EXPECT(completes_with(&x[1], IBV_WC_SUCCESS));
		EXPECT(completes_with(&x[0], IBV_WC_SUCCESS));
		EXPECT(!memcmp(m.at[0], m.at[1], n));
	}
	EXPECT(x[1].ready == 1 && !x[0].ready && !x[0].ended);
	close_memory(&m);
	close_ends(x, 2);
}

/* The receiver sleeps in ibv_get_cq_event, and wakes for each message. */
static void wake_sleepers(void)
{
	struct end x[2];
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	open_both(x);
	for (int i = 0; i < 50; i++) {
		post_receive(&x[1], x[1].e.mr, 64);
		NEED(!ibv_req_notify_cq(x[1].e.cq, 0));
		post_wr(&x[0], IBV_WR_SEND, x[0].e.mr, 64, &x[1], NULL);
		NEED(!ibv_get_cq_event(x[1].e.channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		EXPECT(completes_with(&x[1], IBV_WC_SUCCESS));
		EXPECT(completes_with(&x[0], IBV_WC_SUCCESS));
	}
	EXPECT(ibv_poll_cq(x[1].e.cq, 1, &wc) == 0);
	close_ends(x, 2);
}

static void serve_many(void)
{
	static struct end x[MANY][2];

	for (int i = 0; i < MANY; i++)
		open_both(x[i]);
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < MANY; i++) {
			post_receive(&x[i][1], x[i][1].e.mr, 512);
			post_wr(&x[i][0], IBV_WR_SEND, x[i][0].e.mr, 512,
				&x[i][1], NULL);
		}
	for (int i = 0; i < MANY; i++) {
		for (int k = 0; k < 20; k++)
			EXPECT(completes_with(&x[i][1], IBV_WC_SUCCESS) &&
			       completes_with(&x[i][0], IBV_WC_SUCCESS));
		close_ends(x[i], 2);
	}
}

/* While the peer reads nothing, WRITEs stay in the send queue, and are not
 * copied into memory without limit; when the peer reads, every byte comes. */
static void meet_slow_peer(void)
{
	struct memory m;
	struct end x[2];
	int fd[2], posted = 0, done = 0;
	struct ibv_wc wc;
	uint64_t got = 0;
	static uint8_t sink[65536];
	struct stream_config c = config_of(false);
	struct host_stream s = {.config = &c, .news = note_news};

	connect_pair(fd);
	open_end(&x[0]);
	open_end(&x[1]); /* only for the rkey of its memory */
	open_memory(&m, x);
	s.fd = fd[0];
	s.arg = &x[0];
	NEED(!calls->open(x[0].e.ctx, x[0].e.qp->qp_num, &s));
	for (; posted < 60; posted++)
		post_wr(&x[0], IBV_WR_RDMA_WRITE, m.mr[0], BIG, &x[1], m.mr[1]);
	usleep(50000);
	while (ibv_poll_cq(x[0].e.cq, 1, &wc) == 1)
		done++;
	EXPECT(done < posted);
	fcntl(fd[1], F_SETFL, 0);
	while (done < posted || got < 60ull * BIG) {
		ssize_t n = recv(fd[1], sink, sizeof(sink), MSG_DONTWAIT);

		NEED(n != 0);
		got += n > 0 ? (uint64_t)n : 0;
		if (ibv_poll_cq(x[0].e.cq, 1, &wc) == 1) {
			NEED(wc.status == IBV_WC_SUCCESS);
			done++;
		}
	}
	EXPECT(!x[0].ended);
	close(fd[1]);
	close_memory(&m);
	close_ends(x, 2);
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

/* Posts WRITEs and waits until all have completed, although the peer has read
 * nothing.  Their bytes must come also if the program then destroys the queue
 * pair, or ends. */
static void post_ahead(struct end *x, struct memory *m, const struct end *other,
		       int fd)
{
	struct stream_config c = config_of(false);
	struct host_stream s = {
		.fd = fd, .config = &c, .news = note_news, .arg = x};
	struct ibv_wc wc;
	int small = 4096, done = 0;

	/* a buffer that holds only a small part of these WRITEs */
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

/* Makes progress nearly all the time. */
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
	usleep(100000); /* the child fills the kernel's buffers */
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

/* An initiator that waits for the responder, against RFC 5044 7.1.2: the
 * responder begins after a while, and both go on. */
static void meet_waiting_peer(void)
{
	struct stream_config c[2] = {config_of(false), config_of(true)};
	struct end x[2];
	int fd[2];

	connect_pair(fd);
	for (int i = 0; i < 2; i++) {
		struct host_stream s = {.fd = fd[i],
					.config = &c[i],
					.news = note_news,
					.begin_after_ns = 50000000,
					.arg = &x[i]};

		c[i].rtr = 0;
		open_end(&x[i]);
		NEED(!calls->open(x[i].e.ctx, x[i].e.qp->qp_num, &s));
	}
	post_receive(&x[0], x[0].e.mr, 64);
	post_wr(&x[1], IBV_WR_SEND, x[1].e.mr, 64, &x[0], NULL);
	EXPECT(completes_with(&x[0], IBV_WC_SUCCESS) && !x[1].ready);
	EXPECT(completes_with(&x[1], IBV_WC_SUCCESS));
	post_receive(&x[1], x[1].e.mr, 64);
	post_wr(&x[0], IBV_WR_SEND, x[0].e.mr, 64, &x[1], NULL);
	EXPECT(completes_with(&x[1], IBV_WC_SUCCESS));
	EXPECT(await_news(&x[1].ready) && !x[0].ended && !x[1].ended);
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

/* The bytes that the caller gives with the connection, a responder's MPA reply,
 * are sent before any FPDU. */
static void send_first_bytes(void)
{
	struct end x;
	char got[6] = "";
	int fd[2];

	connect_pair(fd);
	open_end(&x);
	NEED(!give_connection(&x, fd[0], true, "reply"));
	fcntl(fd[1], F_SETFL, 0);
	EXPECT(recv(fd[1], got, 5, MSG_WAITALL) == 5 && !strcmp(got, "reply"));
	close(fd[1]);
	EXPECT(await_news(&x.ended));
	endpoint_close(&x.e);
}

static void refuse_misuse(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct host_stream s = {.news = note_news};
	struct stream_config c = config_of(false);
	struct end x[2];
	int fd[2];

	open_both(x);
	connect_pair(fd);
	EXPECT(give_connection(&x[0], fd[0], false, "") == -EISCONN);
	s.config = &c;
	s.fd = fd[0];
	s.arg = &x[0];
	EXPECT(calls->open(x[0].e.ctx, 0xabcdef, &s) == -ENOENT);
	calls->close(x[0].e.ctx, 0xabcdef, &x[0]);
	calls->abort(x[0].e.ctx, 0xabcdef, &x[0]);
	close_ends(x, 2);
	open_end(&x[0]);
	EXPECT(ibv_modify_qp(x[0].e.qp, &attr, IBV_QP_STATE) == EINVAL);
	c.ulpdu_max = 1;
	s.arg = &x[0];
	EXPECT(calls->open(x[0].e.ctx, x[0].e.qp->qp_num, &s) == -EINVAL);
	EXPECT(fcntl(fd[0], F_GETFD) >= 0); /* the socket is still open */
	c = config_of(false);
	EXPECT(!calls->open(x[0].e.ctx, x[0].e.qp->qp_num, &s));
	endpoint_close(&x[0].e);
	close(fd[1]);
}

/* The program puts a file of its own in the place of the socket, by dup2: the
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

static _Atomic bool stops;

static void *poll_on(void *arg)
{
	struct ibv_wc wc;

	while (!stops)
		ibv_poll_cq(((struct end *)arg)->e.cq, 1, &wc);
	return NULL;
}

/* Connections begin and end while another thread polls. */
static void churn_beside_poll(void)
{
	struct end x[2], y[2];
	pthread_t t;

	open_both(x);
	stops = false;
	NEED(!pthread_create(&t, NULL, poll_on, &x[1]));
	for (int i = 0; i < 100; i++) {
		open_both(y);
		post_receive(&y[1], y[1].e.mr, 64);
		post_wr(&y[0], IBV_WR_SEND, y[0].e.mr, 64, &y[1], NULL);
		EXPECT(completes_with(&y[1], IBV_WC_SUCCESS));
		close_ends(y, 2);
	}
	stops = true;
	pthread_join(t, NULL);
	close_ends(x, 2);
}

int main(void)
{
	__typeof__(ibv_adverb_iwarp) *find;

	*(void **)&find = dlsym(RTLD_DEFAULT, "ibv_adverb_iwarp");
	NEED(find && !find(VERBS_IWARP_VERSION + 1));
	calls = find(VERBS_IWARP_VERSION);
	NEED(calls);
	check_run("WRITE, READ and SEND transfer messages of each size",
		  transfer_sizes);
	check_run("a thread that sleeps for an event wakes", wake_sleepers);
	check_run("many connections transfer at once", serve_many);
	check_run("a peer that reads nothing delays completions, loses nothing",
		  meet_slow_peer);
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
	check_run("RST by the peer ends the connection", meet_rst);
	check_run("junk is answered by a Terminate and FIN", meet_junk);
	check_run("junk as the first FPDU gets no Terminate", meet_junk_first);
	check_run("a peer whose first FPDU is late loses the connection",
		  meet_silence);
	check_run("a responder begins if the initiator waits",
		  meet_waiting_peer);
	check_run("the peer sees the end although a child has the socket",
		  end_beside_a_child);
	check_run("the given bytes are sent before the first FPDU",
		  send_first_bytes);
	check_run("misuse is refused", refuse_misuse);
	check_run("a socket that the program has replaced is not written",
		  lose_socket);
	check_run("connections begin and end while a thread polls",
		  churn_beside_poll);
	return check_end();
}
