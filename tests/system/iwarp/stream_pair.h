/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of an iWARP device over TCP connections that a program makes
 * itself, without rdma_cm and without MPA's start-up, so that the peer may also
 * be a plain socket.
 */
#ifndef TESTS_SYSTEM_IWARP_STREAM_PAIR_H
#define TESTS_SYSTEM_IWARP_STREAM_PAIR_H

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "endpoint.h"
#include "iwarp/stream.h"
#include "verbs/iwarp.h"

#define ALL (IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE)
#define BIG (1u << 20) /* bytes of struct memory at each end */

/* Limit of a wait: shorter than the 400 s for which a suite lets its program
 * run. */
#define WAIT_MS 300000

/* The calls of adverb's libibverbs that librdmacm uses; set by find_calls. */
static const struct verbs_iwarp *calls;

/* One end, and how often its connection has become ready and has ended.  Any
 * thread may call note_news, which counts. */
struct end {
	struct endpoint e;
	_Atomic int ready, ended;
};

static inline void note_news(void *arg, enum host_stream_news what)
{
	struct end *x = arg;

	if (what == HOST_STREAM_READY)
		x->ready++;
	else
		x->ended++;
}

/* Makes a TCP connection over loopback; both ends are non-blocking. */
static inline void connect_pair(int fd[2])
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

/* Returns the parameters that the connections of these tests have. */
static inline struct stream_config config_of(bool is_responder)
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

/* Gives the TCP connection fd to x's queue pair, which sends the text `first`
 * before any FPDU.  Returns 0 or -errno.  After 0 the library owns fd; after
 * -errno the caller still owns fd. */
static inline int give_connection(struct end *x, int fd, bool is_responder,
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

/* Opens an end, which has no connection yet. */
static inline void open_end(struct end *x)
{
	memset(x, 0, sizeof(*x));
	endpoint_open(&x->e, ALL, ENDPOINT_ALL_REMOTE);
}

/* Closes the n ends at x, and with them their connections. */
static inline void close_ends(struct end *x, int n)
{
	for (int i = 0; i < n; i++)
		endpoint_close(&x[i].e);
}

/* Opens two connected ends: x[0] is the initiator, x[1] the responder. */
static inline void open_both(struct end x[2])
{
	int fd[2];

	connect_pair(fd);
	for (int i = 0; i < 2; i++) {
		open_end(&x[i]);
		NEED(!give_connection(&x[i], fd[i], i, ""));
	}
}

static inline int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until *word, a count of a struct end, is not 0, and polls no CQ: a
 * thread of the library must report the change.  Returns false after WAIT_MS.
 */
static inline bool await_news(_Atomic int *word)
{
	int64_t until = now_ms() + WAIT_MS;

	while (!*word && now_ms() < until)
		usleep(1000);
	return *word;
}

/* Posts a signaled request for the first @bytes of m.  at: the peer's region
 * for a WRITE or a READ, and NULL for a SEND.  to: the peer, which must not be
 * NULL and is not used otherwise. */
static inline void post_wr(struct end *from, enum ibv_wr_opcode op,
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

/* Posts a receive with the wr_id 77 into the first @bytes of m. */
static inline void post_receive(struct end *x, const struct ibv_mr *m,
				uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)m->addr, bytes, m->lkey};
	struct ibv_recv_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	NEED(!ibv_post_recv(x->e.qp, &wr, &bad));
}

/* Returns whether the next completion at x comes in time (endpoint_wait) and
 * has this status. */
static inline bool completes_with(struct end *x, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	return endpoint_wait(&x->e, &wc) && wc.status == status;
}

/* Registered memory of BIG bytes at each end. */
struct memory {
	uint8_t *at[2];
	struct ibv_mr *mr[2];
};

/* Allocates, fills and registers the memory of both ends.  The contents of the
 * two differ. */
static inline void open_memory(struct memory *m, struct end x[2])
{
	for (int i = 0; i < 2; i++) {
		m->at[i] = endpoint_memory(BIG);
		for (uint32_t k = 0; k < BIG; k++)
			m->at[i][k] = (uint8_t)(k * 7 + k / 251 + (uint32_t)i);
		m->mr[i] = ibv_reg_mr(x[i].e.pd, m->at[i], BIG, ALL);
		NEED(m->mr[i]);
	}
}

/* Deregisters and frees the memory of both ends. */
static inline void close_memory(struct memory *m)
{
	for (int i = 0; i < 2; i++) {
		ibv_dereg_mr(m->mr[i]);
		endpoint_memory_free(m->at[i], BIG);
	}
}

/* Sets `calls`, and checks that ibv_adverb_iwarp refuses another version. */
static inline void find_calls(void)
{
	__typeof__(ibv_adverb_iwarp) *find;

	*(void **)&find = dlsym(RTLD_DEFAULT, "ibv_adverb_iwarp");
	NEED(find && !find(VERBS_IWARP_VERSION + 1));
	calls = find(VERBS_IWARP_VERSION);
	NEED(calls);
}

#endif
