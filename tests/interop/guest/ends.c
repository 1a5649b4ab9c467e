/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client or a server of rdma_cm, for tests that no tool makes: rejections
 * with private data, checked data, disconnects.  The same program runs on
 * adverb and in the guest.  In the comments, each of the two processes is an
 * end.
 *
 *	ends server|client ACTION ADDRESS PORT
 *
 *	the server's ACTION				the client's ACTION
 *	reject	rejects the request			reject
 *	leave	disconnects				stay
 *	stay	waits until the client disconnects	leave
 *	data	checks the client's data, then
 *		  sends data to the client		data
 *	short	data without the two longest messages	short
 *	guard	refuses a READ by a wrong key		trespass
 *
 * The client sends the first message, as the client-server model requires (RFC
 * 5044 7.1.2).  Each end prints a line for each event and each result.  Exit
 * status 1: a check has failed.
 */
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECEIVES 4
#define SHORT	 256	    /* bytes of a receive at room.in */
#define BIG	 (8u << 20) /* the longest message */
#define HELLO	 200	    /* bytes of the request's private data */
#define WELCOME	 100	    /* bytes of the reply's private data */
#define REASON	 120	    /* bytes of a rejection's private data */
#define DEPTH	 4	    /* READs at once */
#define SECONDS	 300	    /* longest wait for a completion */
#define RIGHTS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |                     \
	 IBV_ACCESS_REMOTE_WRITE)

/* The message in which an end names its memory to the other end. */
struct memory {
	uint64_t at;  /* the address of the end's room.sink */
	uint32_t key; /* the rkey of the end's memory */
};

/* The registered memory of an end, which is one region. */
struct room {
	/* in: receives of short messages.  out: short messages to the other
	 * end. */
	char in[RECEIVES][SHORT], out[SHORT];
	/* source: the bytes of SENDs and WRITEs, and where READs put theirs.
	 * landing: the receive of a message of data.  sink: the other end
	 * WRITEs and READs here. */
	uint8_t source[BIG], landing[BIG], sink[BIG];
};

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct room *mem;
static struct memory peer;
static unsigned flushed;	  /* completions with a flush error */
static unsigned done[256];	  /* by opcode: completions not awaited yet */
static uint32_t got_bytes;	  /* length of the last message */
static bool is_error_due;	  /* an error of a request is no failure */
static enum ibv_wc_status failed; /* the first status that was an error */

static void __attribute__((format(printf, 1, 2), noreturn))
fail(const char *form, ...)
{
	va_list args;

	va_start(args, form);
	printf("failed: ");
	vprintf(form, args);
	printf("\n");
	va_end(args);
	exit(1);
}

/* Ends the program if `ok` is 0.  The message has the text of errno, which the
 * call `what` has set. */
static void need_good(int ok, const char *what)
{
	if (!ok)
		fail("%s: %s", what, strerror(errno));
}

/* Ends the program if `err`, which the call `what` has returned, is not 0.  The
 * message has the text of this errno value; the call may not have set errno. */
static void need_zero(int err, const char *what)
{
	if (err)
		fail("%s: %s", what, strerror(err));
}

/* ---- events ---- */

/* Fills in private data of `bytes` bytes: a text, and after it bytes that all
 * have the value `bytes`. */
static void fill_private(char *data, uint8_t bytes, const char *text)
{
	memset(data, bytes, bytes);
	memcpy(data, text, strlen(text) + 1);
}

static void check_private(const struct rdma_cm_event *e, uint8_t bytes,
			  const char *text)
{
	char want[256];

	fill_private(want, bytes, text);
	printf("private data: %d bytes\n", e->param.conn.private_data_len);
	if (e->param.conn.private_data_len != bytes ||
	    memcmp(e->param.conn.private_data, want, bytes))
		fail("the private data is not that of the peer");
}

static struct rdma_cm_event *next_event(enum rdma_cm_event_type want)
{
	struct rdma_cm_event *e;

	need_good(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	printf("event: %s, status %d\n", rdma_event_str(e->event), e->status);
	fflush(stdout);
	if (e->event != want)
		fail("the event is not %s", rdma_event_str(want));
	return e;
}

static void take_event(enum rdma_cm_event_type want)
{
	need_good(!rdma_ack_cm_event(next_event(want)), "rdma_ack_cm_event");
}

/* ---- requests and completions ---- */

static time_t now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void take_completion(void)
{
	time_t until = now_seconds() + SECONDS;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0)
			fail("ibv_poll_cq returns %d", n);
	} while (!n && now_seconds() < until);
	if (!n)
		fail("no completion comes");
	flushed += wc.status == IBV_WC_WR_FLUSH_ERR;
	if (wc.status && wc.status != IBV_WC_WR_FLUSH_ERR && !is_error_due)
		fail("a request ends by: %s", ibv_wc_status_str(wc.status));
	if (wc.status && !failed)
		failed = wc.status;
	if (wc.status)
		return;
	done[wc.opcode & 255]++;
	if (wc.opcode == IBV_WC_RECV)
		got_bytes = wc.byte_len;
}

/* Waits for the first completion with an error. */
static void await_failure(void)
{
	is_error_due = true;
	while (!failed)
		take_completion();
	printf("the request ends by: %s\n", ibv_wc_status_str(failed));
}

static void await_completion(enum ibv_wc_opcode opcode)
{
	while (!done[opcode])
		take_completion();
	done[opcode]--;
}

/* Waits for a message of `bytes` bytes.  No second message may be under way. */
static void await_message(uint32_t bytes)
{
	await_completion(IBV_WC_RECV);
	if (got_bytes != bytes)
		fail("a message has %u bytes, not %u", got_bytes, bytes);
}

static void post_receive(void *at, uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)at, .length = bytes, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	need_zero(ibv_post_recv(id->qp, &wr, &bad), "ibv_post_recv");
}

/* Posts a request with three scatter/gather elements.  A READ has one element,
 * because iWARP allows no more.  A request of less than three bytes has one,
 * too. */
static void post_request(enum ibv_wr_opcode opcode, void *at, uint32_t bytes)
{
	int parts = opcode == IBV_WR_RDMA_READ || bytes < 3 ? 1 : 3;
	uint32_t part = bytes / (uint32_t)parts;
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = parts,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	for (int i = 0; i < parts; i++) {
		sge[i].addr = (uintptr_t)at + (uint32_t)i * part;
		sge[i].length = part;
		sge[i].lkey = mr->lkey;
	}
	sge[parts - 1].length = bytes - part * (uint32_t)(parts - 1);
	wr.wr.rdma.remote_addr = peer.at;
	wr.wr.rdma.rkey = peer.key;
	need_zero(ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
}

static void run_request(enum ibv_wr_opcode opcode, enum ibv_wc_opcode completes,
			void *at, uint32_t bytes)
{
	post_request(opcode, at, bytes);
	await_completion(completes);
}

static void send_bytes(void *at, uint32_t bytes)
{
	run_request(IBV_WR_SEND, IBV_WC_SEND, at, bytes);
}

/* ---- data ---- */

/* The sizes near 1430 are close to the payload of one TCP segment. */
static const uint32_t sizes[] = {
	1,    2,    3,	   4,	  5,	 7,	  8,	9,    63,   64,
	127,  1000, 1419,  1420,  1421,	 1422,	  1423, 1424, 1425, 1426,
	1427, 1428, 1429,  1430,  1431,	 1432,	  1433, 1434, 1435, 1436,
	2840, 4096, 65535, 65536, 65537, 1000003, BIG};
#define SIZES (sizeof(sizes) / sizeof(*sizes))
static unsigned rounds = SIZES;

static void fill_pattern(uint8_t *p, uint32_t bytes, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + bytes;

	for (uint32_t i = 0; i < bytes; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = (uint8_t)(x >> 24);
	}
}

static void check_pattern(const uint8_t *p, uint32_t bytes, uint32_t seed,
			  const char *what)
{
	static uint8_t want[BIG];

	fill_pattern(want, bytes, seed);
	for (uint32_t i = 0; i < bytes; i++)
		if (p[i] != want[i])
			fail("byte %u of %u of a %s is %02x, not %02x", i,
			     bytes, what, p[i], want[i]);
}

/* Sends a message, and waits until the other end has checked the data. */
static void send_and_wait(void *at, uint32_t bytes)
{
	post_receive(mem->in[0], SHORT);
	send_bytes(at, bytes);
	await_message(1);
}

/* Executes for each size a SEND; then a WRITE, and a SEND that tells the other
 * end of this WRITE; and then a READ of the written bytes. */
static void drive_rounds(void)
{
	for (uint32_t i = 0; i < rounds; i++) {
		fill_pattern(mem->source, sizes[i], i);
		send_and_wait(mem->source, sizes[i]);
		fill_pattern(mem->source, sizes[i], i + SIZES);
		run_request(IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, mem->source,
			    sizes[i]);
		send_and_wait(mem->out, 1);
		memset(mem->source, 0, sizes[i]);
		run_request(IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, mem->source,
			    sizes[i]);
		check_pattern(mem->source, sizes[i], i + SIZES, "READ");
	}
	/* If the other end calls drive_rounds() next, the receive is for its
	 * first SEND.  The message ends the other end's serve_rounds(). */
	post_receive(mem->landing, BIG);
	send_bytes(mem->out, 1);
	printf("drove %u sizes\n", rounds);
}

/* Posts a receive at `landing` for the other end's next message, and tells the
 * other end to continue. */
static void confirm_message(void)
{
	post_receive(mem->landing, BIG);
	send_bytes(mem->out, 1);
}

static void serve_rounds(void)
{
	for (uint32_t i = 0; i < rounds; i++) {
		await_message(sizes[i]);
		check_pattern(mem->landing, sizes[i], i, "SEND");
		memset(mem->sink, 0, sizes[i]);
		confirm_message();
		await_message(1);
		check_pattern(mem->sink, sizes[i], i + SIZES, "WRITE");
		confirm_message();
	}
	await_message(1);
	printf("served %u sizes\n", rounds);
}

/* Names this end's memory to the other end. */
static void tell_memory(void)
{
	struct memory mine = {.at = (uintptr_t)mem->sink, .key = mr->rkey};

	memcpy(mem->out, &mine, sizeof(mine));
	send_bytes(mem->out, sizeof(mine));
}

static void learn_memory(void)
{
	await_message(sizeof(peer));
	memcpy(&peer, mem->in[0], sizeof(peer));
}

/* The client READs by a key that the server has not made: the READ fails, and
 * the connection ends. */
static void meet_trespasser(bool is_client)
{
	if (!is_client) {
		learn_memory();
		post_receive(mem->landing, BIG);
		tell_memory();
	} else {
		tell_memory();
		learn_memory();
		peer.key ^= 0x5a5a00;
		post_request(IBV_WR_RDMA_READ, mem->source, 64);
		await_failure();
	}
	take_event(RDMA_CM_EVENT_DISCONNECTED);
}

/* ---- the ends ---- */

/* Makes the memory, and the queue pair with its receives. */
static void prepare_qp(bool has_data)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};

	mem = aligned_alloc(4096, (sizeof(*mem) + 4095) / 4096 * 4096);
	need_good(mem != NULL, "aligned_alloc");
	memset(mem, 0, sizeof(*mem));
	pd = ibv_alloc_pd(id->verbs);
	need_good(pd != NULL, "ibv_alloc_pd");
	cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
	need_good(cq != NULL, "ibv_create_cq");
	mr = ibv_reg_mr(pd, mem, sizeof(*mem), RIGHTS);
	need_good(mr != NULL, "ibv_reg_mr");
	attr.send_cq = attr.recv_cq = cq;
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 16;
	attr.cap.max_send_sge = 3;
	attr.cap.max_recv_sge = 1;
	need_good(!rdma_create_qp(id, pd, &attr), "rdma_create_qp");
	for (int i = 0; i < (has_data ? 1 : RECEIVES); i++)
		post_receive(mem->in[i], SHORT);
}

static struct rdma_conn_param conn_param(char *data, uint8_t bytes)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = bytes,
					.responder_resources = DEPTH,
					.initiator_depth = DEPTH,
					.retry_count = 7,
					.rnr_retry_count = 7};
}

/* Returns whether the ends name their memory to each other. */
static bool has_memory(const char *action)
{
	return !strcmp(action, "data") || !strcmp(action, "short") ||
	       !strcmp(action, "guard") || !strcmp(action, "trespass");
}

static void serve_connection(const struct sockaddr *at, const char *action)
{
	struct rdma_cm_id *listener;
	struct rdma_cm_event *e;
	struct rdma_conn_param p;
	char data[256];

	need_good(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP),
		  "rdma_create_id");
	need_good(!rdma_bind_addr(listener, (struct sockaddr *)at),
		  "rdma_bind_addr");
	need_good(!rdma_listen(listener, 8), "rdma_listen");
	e = next_event(RDMA_CM_EVENT_CONNECT_REQUEST);
	check_private(e, HELLO, "may I?");
	id = e->id;
	need_good(!rdma_ack_cm_event(e), "rdma_ack_cm_event");
	if (!strcmp(action, "reject")) {
		fill_private(data, REASON, "not you");
		need_good(!rdma_reject(id, data, REASON), "rdma_reject");
	} else {
		prepare_qp(has_memory(action));
		fill_private(data, WELCOME, "welcome");
		p = conn_param(data, WELCOME);
		need_good(!rdma_accept(id, &p), "rdma_accept");
		take_event(RDMA_CM_EVENT_ESTABLISHED);
	}
	need_good(!rdma_destroy_id(listener), "rdma_destroy_id");
}

static void connect_to(const struct sockaddr *at, const char *action)
{
	bool is_rejected = !strcmp(action, "reject");
	struct rdma_cm_event *e;
	struct rdma_conn_param p;
	char data[256];

	need_good(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP),
		  "rdma_create_id");
	need_good(!rdma_resolve_addr(id, NULL, (struct sockaddr *)at, 5000),
		  "rdma_resolve_addr");
	take_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	need_good(!rdma_resolve_route(id, 5000), "rdma_resolve_route");
	take_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
	prepare_qp(has_memory(action));
	fill_private(data, HELLO, "may I?");
	p = conn_param(data, HELLO);
	need_good(!rdma_connect(id, &p), "rdma_connect");
	e = next_event(is_rejected ? RDMA_CM_EVENT_REJECTED
				   : RDMA_CM_EVENT_ESTABLISHED);
	if (is_rejected)
		check_private(e, REASON, "not you");
	else
		check_private(e, WELCOME, "welcome");
	need_good(!rdma_ack_cm_event(e), "rdma_ack_cm_event");
}

/* Sends the message that precedes the disconnect.  Only an end that leaves
 * waits for the completion: if the other end disconnects at once, siw may fail
 * this SEND although the other end has received the message (../siw.md). */
static void send_greeting(bool leaves)
{
	if (leaves)
		send_bytes(mem->out, SHORT);
	else
		post_request(IBV_WR_SEND, mem->out, SHORT);
}

/* This end disconnects if `leaves` is set, else the other end does.  Messages
 * that were sent before the disconnect arrive, and the receives that are left
 * are flushed.  The ends first exchange a message, because the kernel crashes
 * if the client disconnects at once from a server on siw (../siw.md). */
static void end_connection(bool is_client, bool leaves)
{
	unsigned left = RECEIVES;

	is_error_due = !leaves;
	if (is_client)
		send_greeting(leaves);
	await_message(SHORT), left--;
	if (!is_client)
		send_greeting(leaves);
	if (leaves) {
		strcpy(mem->out, "last words");
		send_bytes(mem->out, SHORT);
		need_good(!rdma_disconnect(id), "rdma_disconnect");
	}
	take_event(RDMA_CM_EVENT_DISCONNECTED);
	if (!leaves) {
		await_message(SHORT), left--;
		printf("received: %s\n", mem->in[RECEIVES - 1 - left]);
	}
	while (flushed < left)
		take_completion();
	printf("flushed: %u\n", flushed);
}

static void exchange_data(bool is_client)
{
	if (is_client) {
		tell_memory();
		learn_memory();
		drive_rounds();
		serve_rounds();
		need_good(!rdma_disconnect(id), "rdma_disconnect");
	} else {
		learn_memory();
		post_receive(mem->landing, BIG);
		tell_memory();
		serve_rounds();
		drive_rounds();
	}
	take_event(RDMA_CM_EVENT_DISCONNECTED);
}

static void free_objects(void)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (mr)
		need_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
	if (cq)
		need_zero(ibv_destroy_cq(cq), "ibv_destroy_cq");
	if (pd)
		need_zero(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	need_good(!rdma_destroy_id(id), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
	free(mem);
}

int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
	struct addrinfo *at;
	bool is_client;

	if (argc != 5 || getaddrinfo(argv[3], argv[4], &hints, &at))
		fail("usage: ends server|client ACTION ADDRESS PORT");
	is_client = !strcmp(argv[1], "client");
	channel = rdma_create_event_channel();
	need_good(channel != NULL, "rdma_create_event_channel");
	if (is_client)
		connect_to(at->ai_addr, argv[2]);
	else
		serve_connection(at->ai_addr, argv[2]);
	freeaddrinfo(at);
	if (!strcmp(argv[2], "short"))
		rounds = SIZES - 2;
	if (!strcmp(argv[2], "data") || !strcmp(argv[2], "short"))
		exchange_data(is_client);
	else if (has_memory(argv[2]))
		meet_trespasser(is_client);
	else if (strcmp(argv[2], "reject") != 0)
		end_connection(is_client, !strcmp(argv[2], "leave"));
	free_objects();
	printf("all is well\n");
	return 0;
}
