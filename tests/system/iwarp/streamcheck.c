/* SPDX-License-Identifier: BSD-2-Clause */
/* streamcheck: transfers of an iWARP device's queue pairs over TCP connections.
 * Prints a line per case. */
#include "stream_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MANY 40 /* connections of serve_many */
/* The rounds of write_without_polls.  Each round writes a different byte, so
 * there must be fewer than 256. */
#define ROUNDS 24
#define CYCLES 8  /* calls of post_and_poll without a penalty in each round */
#define STREAM 16 /* requests of a call of post_and_poll */
/* After a request that has waited too long, at most this many requests do not
 * wait (PENALTY_MAX of src/host/poll_policy.c). */
#define PENALTY 16384

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

/* Posts STREAM WRITEs one by one and polls until they have completed. */
static void post_and_poll(struct end x[2], const struct memory *m)
{
	for (int i = 0; i < STREAM; i++)
		post_wr(&x[0], IBV_WR_RDMA_WRITE, m->mr[0], 8, &x[1], m->mr[1]);
	for (int i = 0; i < STREAM; i++)
		EXPECT(completes_with(&x[0], IBV_WC_SUCCESS));
}

/*
 * If a program posts many requests and polls, a request may wait for the
 * program's next poll.  If that poll does not come, the progress thread must
 * send the request.  After such a request, up to PENALTY requests do not wait,
 * so each round begins with more requests than that.  In every second round the
 * program pauses before it posts the request, so that the progress thread has
 * begun to sleep.
 */
static void write_without_polls(void)
{
	struct end x[2];
	struct memory m;

	open_both(x);
	open_memory(&m, x);
	for (int round = 1; round <= ROUNDS; round++) {
		volatile uint8_t *place = m.at[1];
		int64_t until;

		for (int i = 0; i < PENALTY / STREAM + CYCLES; i++)
			post_and_poll(x, &m);
		if (round % 2)
			nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		m.at[0][0] = (uint8_t)round;
		until = now_ms() + WAIT_MS;
		post_wr(&x[0], IBV_WR_RDMA_WRITE, m.mr[0], 8, &x[1], m.mr[1]);
		while (*place != (uint8_t)round && now_ms() < until)
			;
		EXPECT(*place == (uint8_t)round);
		EXPECT(completes_with(&x[0], IBV_WC_SUCCESS));
	}
	close_memory(&m);
	close_ends(x, 2);
}

/* The receiver waits in ibv_get_cq_event, which returns for each message. */
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

/* While the peer reads nothing, WRITEs stay in the send queue, and the library
 * does not copy all of them into memory.  When the peer reads, every byte
 * comes. */
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

/* Contrary to RFC 5044 7.1.2, the initiator waits for the responder.  The
 * responder begins after begin_after_ns, and both ends then transfer messages.
 */
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
	find_calls();
	check_run("WRITE, READ and SEND transfer messages of each size",
		  transfer_sizes);
	check_run("a thread that sleeps for an event wakes", wake_sleepers);
	check_run("WRITEs arrive although their program does not poll",
		  write_without_polls);
	check_run("many connections transfer at once", serve_many);
	check_run("a peer that reads nothing delays completions, loses nothing",
		  meet_slow_peer);
	check_run("a responder begins if the initiator waits",
		  meet_waiting_peer);
	check_run("the given bytes are sent before the first FPDU",
		  send_first_bytes);
	check_run("misuse is refused", refuse_misuse);
	check_run("connections begin and end while a thread polls",
		  churn_beside_poll);
	return check_end();
}
