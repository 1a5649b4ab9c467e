/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpmacheck: does what programs over librpma do, and checks every byte.  A
 * server and a client, each a process, make connections one after the other,
 * with every kind of completion queue that librpma has; some connections are
 * refused.  Exits with 0, or prints a message and exits with 1 or 2.
 *
 *	rpmacheck ADDRESS PORT             all connections, over IPv4 or IPv6
 *	rpmacheck ADDRESS PORT server      the server is killed during reads
 *	rpmacheck ADDRESS PORT client      the client is killed during reads
 */
#include <errno.h>
#include <librpma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SIZE = 1 << 20, /* bytes that the server registers */
	MESSAGE = 512,	/* bytes of the longest message */
	MESSAGES = 20,	/* messages of each side on a connection */
	CONNECTIONS = 14,
	AMID = 100, /* READs before a process is killed */
	DEPTH = 20, /* entries of a work queue; a CQ may have twice as many */
	EVENTS_MS = 20000,  /* time limit of librdmacm's resolving */
	HANG_SECONDS = 300, /* a process that takes longer hangs */
	UNTOUCHED = 0xEE,   /* fills bytes that nothing may write */
	WORD_AT = 64,	    /* the offset of the atomic write */
	WORD_SIZE = 8,
};

/* The context of an operation, which librpma puts into the wr_id of its
 * completion. */
enum { RECEIVED = 1, SENT = 2, FLUSHED = 4, READ = 8, WROTE = 16 };

/* The completion queues of a connection. */
enum kind {
	ONE_QUEUE,
	TWO_QUEUES,  /* one of the two queues is for receives only */
	ONE_CHANNEL, /* as TWO_QUEUES, but both queues share a channel */
	KINDS,
};

/* The private data that the server gives to a client that connects. */
struct hello {
	char greeting[32]; /* a fixed text */
	/* librpma's descriptors, and their sizes in bytes */
	uint8_t region_size, config_size;
	char region[64], config[16];
};

/* The objects of one process, which owns them. */
struct side {
	struct rpma_peer *peer;
	uint8_t *region;  /* the server's region, or the client's copy of it */
	uint8_t *message; /* a received message, then a message to send */
	struct rpma_mr_local *region_mr, *message_mr;
};

/* A connection of a process. */
struct talk {
	struct side *side; /* the objects of the process, borrowed */
	struct rpma_conn *conn;
	struct rpma_conn_cfg *cfg;
	struct rpma_cq *cq, *rcq; /* owned by conn; ONE_QUEUE: rcq is NULL */
	enum kind kind;		  /* of the queues at this side */
	unsigned done; /* contexts that completed before they were awaited */
	uint32_t received; /* bytes of the last message received */
};

static const char *who, *address, *port;
static int number; /* the index of the connection */

/* Prints a message, and ends the process by _exit, because it may be a forked
 * one.  The message names the process and the connection; that of check_die
 * (../../check.h) would name neither. */
static void end_failed(int line, const char *what, const char *why)
{
	fprintf(stderr, "%s: line %d: connection %d: %s: %s (errno %d)\n", who,
		line, number, what, why, errno);
	_exit(1);
}

#define MUST(call)                                                             \
	do {                                                                   \
		int result_ = (call);                                          \
		if (result_)                                                   \
			end_failed(__LINE__, #call, rpma_err_2str(result_));   \
	} while (0)

#define NEED(good)                                                             \
	do {                                                                   \
		if (!(good))                                                   \
			end_failed(__LINE__, #good, "this is not true");       \
	} while (0)

static void *context_of(unsigned operation)
{
	return (void *)(uintptr_t)operation;
}

static void *new_memory(size_t bytes)
{
	void *p = aligned_alloc(4096, bytes);

	NEED(p);
	memset(p, 0, bytes);
	return p;
}

/* Fills p with bytes that differ by position, round and connection. */
static void fill_pattern(uint8_t *p, size_t bytes, int round)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(i * 31 + (i >> 8) + (size_t)round * 7 +
				 (size_t)number * 13);
}

/* Expects that the bytes at p are those that fill_pattern() writes. */
static void is_painted(const uint8_t *p, size_t bytes, int round)
{
	static uint8_t want[MESSAGE];

	fill_pattern(want, bytes, round);
	NEED(!memcmp(p, want, bytes));
}

static void is_untouched(const uint8_t *from, const uint8_t *to)
{
	while (from < to)
		NEED(*from++ == UNTOUCHED);
}

/* The sizes of a connection's WRITEs: the whole region, then parts at odd
 * offsets.  Bytes beside a part must not change. */
static const size_t write_sizes[] = {SIZE, 1,	 8,	100,
				     1024, 4096, 65536, 300001};
enum { WRITES = sizeof(write_sizes) / sizeof(write_sizes[0]) };

static size_t write_at(int round)
{
	return write_sizes[round] == SIZE ? 0 : 13 + 100 * (size_t)round;
}

static void word_of_connection(char word[WORD_SIZE])
{
	fill_pattern((uint8_t *)word, WORD_SIZE, WRITES);
}

static bool is_refused(void)
{
	return number % 7 == 3;
}

/* Returns the kind of queues for a connection, so that each kind at the server
 * meets each kind at the client. */
static enum kind kind_of(bool is_server)
{
	return (enum kind)((is_server ? number : number / KINDS) % KINDS);
}

static struct side side_open(const char *name,
			     enum rpma_util_ibv_context_type where, int usage)
{
	struct side s = {0};
	struct ibv_context *ctx;
	int is_on_demand;

	who = name;
	/* A process that hangs is killed, and the test fails. */
	alarm(HANG_SECONDS);
	MUST(rpma_utils_get_ibv_context(address, where, &ctx));
	MUST(rpma_utils_ibv_context_is_odp_capable(ctx, &is_on_demand));
	MUST(rpma_peer_new(ctx, &s.peer));
	s.region = new_memory(SIZE);
	s.message = new_memory(4096);
	MUST(rpma_mr_reg(s.peer, s.region, SIZE, usage, &s.region_mr));
	MUST(rpma_mr_reg(s.peer, s.message, 2 * MESSAGE,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
			 &s.message_mr));
	return s;
}

static void side_close(struct side *s)
{
	MUST(rpma_mr_dereg(&s->region_mr));
	MUST(rpma_mr_dereg(&s->message_mr));
	MUST(rpma_peer_delete(&s->peer));
	free(s->region);
	free(s->message);
}

static void talk_init(struct talk *t, struct side *s, enum kind kind)
{
	*t = (struct talk){.side = s, .kind = kind};
	MUST(rpma_conn_cfg_new(&t->cfg));
	MUST(rpma_conn_cfg_set_sq_size(t->cfg, DEPTH));
	MUST(rpma_conn_cfg_set_rq_size(t->cfg, DEPTH));
	MUST(rpma_conn_cfg_set_cq_size(t->cfg, 2 * DEPTH));
	MUST(rpma_conn_cfg_set_timeout(t->cfg, EVENTS_MS));
	if (kind != ONE_QUEUE)
		MUST(rpma_conn_cfg_set_rcq_size(t->cfg, DEPTH));
	MUST(rpma_conn_cfg_set_compl_channel(t->cfg, kind == ONE_CHANNEL));
}

static void event_is(const struct talk *t, enum rpma_conn_event want)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	MUST(rpma_conn_next_event(t->conn, &event));
	if (event != want)
		end_failed(__LINE__, rpma_utils_conn_event_2str(want),
			   rpma_utils_conn_event_2str(event));
}

static void talk_begin(struct talk *t)
{
	event_is(t, RPMA_CONN_ESTABLISHED);
	MUST(rpma_conn_get_cq(t->conn, &t->cq));
	MUST(rpma_conn_get_rcq(t->conn, &t->rcq));
	NEED(!!t->rcq == (t->kind != ONE_QUEUE));
}

static void talk_end(struct talk *t)
{
	MUST(rpma_conn_delete(&t->conn));
	MUST(rpma_conn_cfg_delete(&t->cfg));
}

static bool poll_once(struct rpma_cq *cq, struct ibv_wc *wc)
{
	int count = 0, result = rpma_cq_get_wc(cq, 1, wc, &count);

	if (result == RPMA_E_NO_COMPLETION)
		return false;
	MUST(result);
	NEED(count == 1);
	return true;
}

static void sleep_until_more(const struct talk *t, bool is_receive)
{
	struct rpma_cq *cq = t->rcq && is_receive ? t->rcq : t->cq;
	bool is_rcq;

	if (t->kind == ONE_CHANNEL) {
		MUST(rpma_conn_wait(t->conn, 0, &cq, &is_rcq));
		NEED(cq == (is_rcq ? t->rcq : t->cq));
	} else {
		MUST(rpma_cq_wait(cq));
	}
}

/* Returns the next completion, successful or not.  If each of two queues has a
 * channel, sleeps on the channel of rcq if is_receive, else on that of cq. */
static struct ibv_wc next_completion(const struct talk *t, bool is_receive)
{
	struct ibv_wc wc;

	for (;;) {
		if (poll_once(t->cq, &wc)) {
			NEED(!t->rcq || wc.wr_id != RECEIVED);
			return wc;
		}
		if (t->rcq && poll_once(t->rcq, &wc)) {
			NEED(wc.wr_id == RECEIVED);
			return wc;
		}
		sleep_until_more(t, is_receive);
	}
}

/* Waits until each context of `want` has completed once, with success. */
static void await_contexts(struct talk *t, unsigned want)
{
	struct ibv_wc wc;

	while (want & ~t->done) {
		wc = next_completion(t,
				     !(want & ~t->done & ~(unsigned)RECEIVED));
		if (wc.status)
			end_failed(__LINE__, "a completion",
				   ibv_wc_status_str(wc.status));
		NEED(wc.wr_id <= WROTE && !(t->done & wc.wr_id));
		t->done |= (unsigned)wc.wr_id;
		if (wc.wr_id == RECEIVED)
			t->received = wc.byte_len;
	}
	t->done &= ~want;
}

/* Expects that the receive which is always posted is flushed. */
static void receive_goes(const struct talk *t)
{
	struct ibv_wc wc = next_completion(t, true);

	NEED(wc.wr_id == RECEIVED && wc.status == IBV_WC_WR_FLUSH_ERR);
}

static void post_receive(const struct talk *t)
{
	memset(t->side->message, UNTOUCHED, MESSAGE);
	MUST(rpma_recv(t->conn, t->side->message_mr, 0, MESSAGE,
		       context_of(RECEIVED)));
}

static size_t message_bytes(int round)
{
	return (size_t)(round * 37 % MESSAGE + 1);
}

static void send_message(const struct talk *t, int round)
{
	size_t bytes = message_bytes(round);

	fill_pattern(t->side->message + MESSAGE, bytes, round);
	MUST(rpma_send(t->conn, t->side->message_mr, MESSAGE, bytes,
		       RPMA_F_COMPLETION_ALWAYS, context_of(SENT)));
}

static void message_is(const struct talk *t, int round)
{
	const uint8_t *message = t->side->message;
	size_t bytes = message_bytes(round);

	NEED(t->received == bytes);
	is_painted(message, bytes, round);
	is_untouched(message + bytes, message + MESSAGE);
}

/* Ends the connection, and expects that the posted receive is flushed.
 * is_first: this side disconnects first, else the peer does. */
static void end_connection(const struct talk *t, bool is_first)
{
	if (!is_first)
		event_is(t, RPMA_CONN_CLOSED);
	MUST(rpma_conn_disconnect(t->conn));
	if (is_first)
		event_is(t, RPMA_CONN_CLOSED);
	receive_goes(t);
}

/* ---- the server ---- */

static struct hello hello_of(const struct side *s)
{
	struct hello h = {.greeting = "here is what I lend"};
	struct rpma_peer_cfg *config;
	size_t size;

	MUST(rpma_mr_get_descriptor_size(s->region_mr, &size));
	NEED(size <= sizeof(h.region));
	h.region_size = (uint8_t)size;
	MUST(rpma_mr_get_descriptor(s->region_mr, h.region));
	MUST(rpma_peer_cfg_new(&config));
	MUST(rpma_peer_cfg_set_direct_write_to_pmem(config, true));
	MUST(rpma_peer_cfg_get_descriptor_size(config, &size));
	NEED(size <= sizeof(h.config));
	h.config_size = (uint8_t)size;
	MUST(rpma_peer_cfg_get_descriptor(config, h.config));
	MUST(rpma_peer_cfg_delete(&config));
	return h;
}

static void greeting_write(char greeting[32])
{
	memset(greeting, 0, 32);
	snprintf(greeting, 32, "this is call %d", number);
}

/* Accepts the next connection, or refuses the connection if is_refused().
 * Returns whether the server has accepted the connection. */
static bool is_taken(struct talk *t, struct rpma_ep *ep, struct hello *hello)
{
	struct rpma_conn_private_data mine = {hello, sizeof(*hello)}, got;
	struct rpma_conn_req *request;
	char greeting[32];

	MUST(rpma_ep_next_conn_req(ep, t->cfg, &request));
	MUST(rpma_conn_req_get_private_data(request, &got));
	greeting_write(greeting);
	NEED(got.ptr && got.len >= sizeof(greeting));
	NEED(!memcmp(got.ptr, greeting, sizeof(greeting)));
	if (is_refused()) {
		MUST(rpma_conn_req_delete(&request));
		MUST(rpma_conn_cfg_delete(&t->cfg));
		return false;
	}
	memset(t->side->message, UNTOUCHED, MESSAGE);
	MUST(rpma_conn_req_recv(request, t->side->message_mr, 0, MESSAGE,
				context_of(RECEIVED)));
	MUST(rpma_conn_req_connect(&request, &mine, &t->conn));
	talk_begin(t);
	return true;
}

/* Checks the region when the first message has come, which the client sends
 * after all its WRITEs.  @want: the contents of the region before these WRITEs;
 * becomes the contents after them. */
static void all_is_written(const struct talk *t, uint8_t *want)
{
	char word[WORD_SIZE];

	for (int i = 0; i < WRITES; i++)
		fill_pattern(want + write_at(i), write_sizes[i], i);
	word_of_connection(word);
	memcpy(want + WORD_AT, word, sizeof(word));
	NEED(!memcmp(t->side->region, want, SIZE));
}

static void answer_all(struct talk *t, uint8_t *want)
{
	for (int i = 0; i < MESSAGES; i++) {
		await_contexts(t, RECEIVED);
		message_is(t, i);
		if (i == 0)
			all_is_written(t, want);
		post_receive(t);
		send_message(t, i);
		await_contexts(t, SENT);
	}
}

static struct rpma_ep *listen_and_tell(const struct side *s, int told)
{
	struct rpma_ep *ep;

	MUST(rpma_ep_listen(s->peer, address, port, &ep));
	NEED(write(told, "l", 1) == 1);
	return ep;
}

static struct side server_open(void)
{
	return side_open("server", RPMA_UTIL_IBV_CONTEXT_LOCAL,
			 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
				 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
				 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
}

static void serve_clients(int told)
{
	struct side s = server_open();
	struct rpma_ep *ep = listen_and_tell(&s, told);
	struct hello hello = hello_of(&s);
	uint8_t *want = new_memory(SIZE);
	struct talk t;

	for (number = 0; number < CONNECTIONS; number++) {
		talk_init(&t, &s, kind_of(true));
		if (!is_taken(&t, ep, &hello))
			continue;
		answer_all(&t, want);
		end_connection(&t, number % 2);
		talk_end(&t);
	}
	MUST(rpma_ep_shutdown(&ep));
	side_close(&s);
	free(want);
}

/* ---- the client ---- */

/* Connects to the server.  Returns false if the server refused the connection
 * as expected. */
static bool is_called(struct talk *t)
{
	struct rpma_conn_req *request;
	char greeting[32];
	struct rpma_conn_private_data mine = {greeting, sizeof(greeting)};

	greeting_write(greeting);
	MUST(rpma_conn_req_new(t->side->peer, address, port, t->cfg, &request));
	memset(t->side->message, UNTOUCHED, MESSAGE);
	MUST(rpma_conn_req_recv(request, t->side->message_mr, 0, MESSAGE,
				context_of(RECEIVED)));
	MUST(rpma_conn_req_connect(&request, &mine, &t->conn));
	if (is_refused()) {
		event_is(t, RPMA_CONN_REJECTED);
		talk_end(t);
		return false;
	}
	talk_begin(t);
	return true;
}

/* Returns the server's region, which the caller deletes, and applies the
 * server's configuration to the connection. */
static struct rpma_mr_remote *what_is_lent(const struct talk *t)
{
	struct rpma_conn_private_data got;
	struct rpma_peer_cfg *config;
	struct rpma_mr_remote *lent;
	struct hello hello;
	size_t size;

	MUST(rpma_conn_get_private_data(t->conn, &got));
	NEED(got.ptr && got.len >= sizeof(hello));
	memcpy(&hello, got.ptr, sizeof(hello));
	NEED(!strcmp(hello.greeting, "here is what I lend"));
	MUST(rpma_mr_remote_from_descriptor(hello.region, hello.region_size,
					    &lent));
	MUST(rpma_mr_remote_get_size(lent, &size));
	NEED(size == SIZE);
	MUST(rpma_peer_cfg_from_descriptor(hello.config, hello.config_size,
					   &config));
	MUST(rpma_conn_apply_remote_peer_cfg(t->conn, config));
	MUST(rpma_peer_cfg_delete(&config));
	return lent;
}

/* The memory into which READs place bytes. */
struct copy {
	uint8_t *at;
	struct rpma_mr_local *mr;
};

static struct copy copy_new(const struct side *s)
{
	struct copy c = {.at = new_memory(SIZE)};

	MUST(rpma_mr_reg(s->peer, c.at, SIZE, RPMA_MR_USAGE_READ_DST, &c.mr));
	return c;
}

static void copy_free(struct copy *c)
{
	MUST(rpma_mr_dereg(&c->mr));
	free(c->at);
}

/* Reads bytes of the server's region into the copy, and expects that they are
 * right, and that no other byte of the copy has changed. */
static void read_back(struct talk *t, const struct rpma_mr_remote *lent,
		      const struct copy *c, size_t at, size_t bytes)
{
	memset(c->at, UNTOUCHED, SIZE);
	MUST(rpma_read(t->conn, c->mr, at, lent, at, bytes,
		       RPMA_F_COMPLETION_ALWAYS, context_of(READ)));
	await_contexts(t, READ);
	NEED(!memcmp(c->at + at, t->side->region + at, bytes));
	is_untouched(c->at, c->at + at);
	is_untouched(c->at + at + bytes, c->at + SIZE);
}

static void write_and_flush(struct talk *t, struct rpma_mr_remote *lent,
			    int round)
{
	size_t at = write_at(round), bytes = write_sizes[round];

	fill_pattern(t->side->region + at, bytes, round);
	MUST(rpma_write(t->conn, lent, at, t->side->region_mr, at, bytes,
			RPMA_F_COMPLETION_ON_ERROR, context_of(WROTE)));
	MUST(rpma_flush(t->conn, lent, at, bytes,
			round % 2 ? RPMA_FLUSH_TYPE_PERSISTENT
				  : RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, context_of(FLUSHED)));
	await_contexts(t, FLUSHED);
}

static void write_word(struct talk *t, struct rpma_mr_remote *lent)
{
	char word[WORD_SIZE];

	word_of_connection(word);
	memcpy(t->side->region + WORD_AT, word, sizeof(word));
	MUST(rpma_atomic_write(t->conn, lent, WORD_AT, word,
			       RPMA_F_COMPLETION_ALWAYS, context_of(WROTE)));
	await_contexts(t, WROTE);
}

static void write_all(struct talk *t, struct rpma_mr_remote *lent,
		      const struct copy *c)
{
	for (int i = 0; i < WRITES; i++) {
		write_and_flush(t, lent, i);
		read_back(t, lent, c, write_at(i), write_sizes[i]);
	}
	write_word(t, lent);
	read_back(t, lent, c, WORD_AT, WORD_SIZE);
	/* Nothing in the region beside the written bytes has changed. */
	read_back(t, lent, c, 0, SIZE);
}

static void ask_all(struct talk *t)
{
	for (int i = 0; i < MESSAGES; i++) {
		send_message(t, i);
		await_contexts(t, SENT | RECEIVED);
		message_is(t, i);
		post_receive(t);
	}
}

static struct side client_open(void)
{
	return side_open("client", RPMA_UTIL_IBV_CONTEXT_REMOTE,
			 RPMA_MR_USAGE_WRITE_SRC);
}

static void call_all(int told)
{
	struct side s = client_open();
	struct copy c = copy_new(&s);
	struct rpma_mr_remote *lent;
	struct talk t;

	for (number = 0; number < CONNECTIONS; number++) {
		talk_init(&t, &s, kind_of(false));
		if (!is_called(&t))
			continue;
		lent = what_is_lent(&t);
		write_all(&t, lent, &c);
		ask_all(&t);
		end_connection(&t, !(number % 2));
		MUST(rpma_mr_remote_delete(&lent));
		talk_end(&t);
	}
	copy_free(&c);
	side_close(&s);
}

/* ---- the process that survives when its peer is killed ---- */

static void is_over(const struct talk *t)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	MUST(rpma_conn_next_event(t->conn, &event));
	NEED(event == RPMA_CONN_CLOSED || event == RPMA_CONN_LOST);
	MUST(rpma_conn_disconnect(t->conn));
}

/* Runs the server, which posts one receive and nothing else: only an event
 * tells the server that the client has ended. */
static void be_read(int told)
{
	struct side s = server_open();
	struct rpma_ep *ep = listen_and_tell(&s, told);
	struct hello hello = hello_of(&s);
	struct talk t;

	talk_init(&t, &s, ONE_QUEUE);
	NEED(is_taken(&t, ep, &hello));
	is_over(&t);
	receive_goes(&t);
	talk_end(&t);
	MUST(rpma_ep_shutdown(&ep));
	side_close(&s);
}

/* Runs the client, which reads until a request fails because the server has
 * ended. */
static void read_on(int told)
{
	struct side s = client_open();
	struct copy c = copy_new(&s);
	struct rpma_mr_remote *lent;
	struct ibv_wc wc;
	struct talk t;

	talk_init(&t, &s, ONE_QUEUE);
	NEED(is_called(&t));
	lent = what_is_lent(&t);
	for (int i = 0;; i++) {
		MUST(rpma_read(t.conn, c.mr, 0, lent, 0, SIZE,
			       RPMA_F_COMPLETION_ALWAYS, context_of(READ)));
		wc = next_completion(&t, false);
		if (wc.status)
			break;
		if (i == AMID)
			NEED(write(told, "r", 1) == 1);
	}
	is_over(&t);
	MUST(rpma_mr_remote_delete(&lent));
	talk_end(&t);
	copy_free(&c);
	side_close(&s);
}

/* ---- the parent of both processes ---- */

/* A process, and a pipe by which it reports that it listens or reads. */
struct end {
	pid_t pid;
	int says;
};

static struct end start_process(void (*body)(int told))
{
	struct end e;
	int way[2];

	NEED(!pipe(way));
	e.pid = fork();
	NEED(e.pid >= 0);
	if (e.pid == 0) {
		close(way[0]);
		body(way[1]);
		_exit(0);
	}
	close(way[1]);
	e.says = way[0];
	return e;
}

/* Waits until the process writes to its pipe.  Returns false if it ends before.
 */
static bool has_said(const struct end *e)
{
	char byte;

	return read(e->says, &byte, 1) == 1;
}

/* Waits until the process ends.  Returns whether its exit status is 0. */
static bool is_well(struct end *e)
{
	int status = -1;

	waitpid(e->pid, &status, 0);
	close(e->says);
	if (WIFSIGNALED(status))
		fprintf(stderr, "a process was killed: %s\n",
			strsignal(WTERMSIG(status)));
	return status == 0;
}

/* Waits until a child has ended, without reaping it.  Returns its pid. */
static pid_t wait_first(void)
{
	siginfo_t info;

	NEED(!waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
	return info.si_pid;
}

static void end_kill(struct end *e)
{
	kill(e->pid, SIGKILL);
	waitpid(e->pid, NULL, 0);
	close(e->says);
}

/* Runs the client beside the server.  If the first to end fails, kills the
 * other process before its SIGALRM.  Returns whether both have succeeded. */
static bool all_calls(struct end *server)
{
	struct end client = start_process(call_all);
	struct end *first, *second;
	pid_t pid = wait_first();

	first = pid == client.pid ? &client : server;
	second = pid == client.pid ? server : &client;
	if (is_well(first))
		return is_well(second);
	end_kill(second);
	return false;
}

/* Runs the client beside the server, and kills one of the two while the client
 * reads.  Returns whether the survivor succeeded. */
static bool one_dies(struct end *server, bool is_server)
{
	struct end client = start_process(read_on);
	struct end *doomed = is_server ? server : &client;
	struct end *other = is_server ? &client : server;
	bool is_amid = has_said(&client);

	end_kill(doomed);
	return is_well(other) && is_amid;
}

int main(int argc, char **argv)
{
	const char *doomed = argc > 3 ? argv[3] : NULL;
	struct end server;
	bool good;

	who = "rpmacheck";
	if (argc < 3 || (doomed && strcmp(doomed, "server") != 0 &&
			 strcmp(doomed, "client") != 0)) {
		fprintf(stderr, "rpmacheck ADDRESS PORT [server|client]\n");
		return 2;
	}
	address = argv[1];
	port = argv[2];
	server = start_process(doomed ? be_read : serve_clients);
	if (!has_said(&server)) {
		is_well(&server);
		return 1;
	}
	good = doomed ? one_dies(&server, !strcmp(doomed, "server"))
		      : all_calls(&server);
	if (good)
		printf("all right\n");
	return good ? 0 : 1;
}
