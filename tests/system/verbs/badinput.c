/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * badinput: tests, by the public verbs, requests with a wrong key, range or
 * access right, memory that is unmapped, and peers that die.  Each case checks
 * the completion's status, the state of a queue pair, and the message on
 * stderr; most cases also check the bytes that a failed request must leave
 * unchanged.
 *
 *	adverb run -- badinput
 */
#include "check.h"
#include "endpoint.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int stderr_fd; /* the memfd to which stderr is redirected */

/* Returns the text that was printed on stderr since the last call. */
static const char *take_stderr(void)
{
	static char text[16384];
	ssize_t n = pread(stderr_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	if (ftruncate(stderr_fd, 0) < 0 || lseek(stderr_fd, 0, SEEK_SET) < 0)
		text[0] = '\0';
	return text;
}

static void expect_sentence(const char *word)
{
	const char *text = take_stderr();

	check_expect(strstr(text, "adverb: ") && strstr(text, word),
		     "no message about \"%s\", but: %.200s", word, text);
}

/* A request that must be refused. */
struct bad {
	const char *name; /* the name of the case */
	enum ibv_wr_opcode opcode;
	int access; /* rights of the responder's region */
	/* bits that are inverted in the rkey and in the lkey */
	uint32_t rkey_xor, lkey_xor;
	/* offsets of the addresses from the beginning of their regions */
	int64_t remote_offset, local_offset;
	uint32_t size;		     /* length in bytes */
	enum ibv_wc_status status;   /* the expected status */
	enum ibv_qp_state responder; /* expected state of the responder's QP */
	const char *word; /* a word of the expected message on stderr */
	int qp_lacks;	  /* rights that the responder's queue pair lacks */
};

enum {
	W = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	R = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	A = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

/* clang-format off */
static const struct bad bads[] = {
	{"WRITE with a wrong rkey", IBV_WR_RDMA_WRITE, W, 0x5A00, 0, 0, 0, 64,
	 IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, "key"},
	{"WRITE one byte past the region", IBV_WR_RDMA_WRITE, W, 0, 0,
	 ENDPOINT_SIZE - 63, 0, 64, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, ""},
	{"WRITE one byte before the region", IBV_WR_RDMA_WRITE, W, 0, 0, -1, 0,
	 64, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, ""},
	{"WRITE of many packets past the region", IBV_WR_RDMA_WRITE, W, 0, 0,
	 4096, 0, 8000, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, ""},
	{"WRITE to a region without remote write", IBV_WR_RDMA_WRITE, R, 0, 0,
	 0, 0, 64, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, ""},
	{"READ with a wrong rkey", IBV_WR_RDMA_READ, R, 0x5A00, 0, 0, 0, 64,
	 IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, "key"},
	{"READ past the region", IBV_WR_RDMA_READ, R, 0, 0, 4096, 0, 8000,
	 IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, ""},
	{"READ of a region without remote read", IBV_WR_RDMA_READ, W, 0, 0, 0,
	 0, 64, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, ""},
	{"atomic with a wrong rkey", IBV_WR_ATOMIC_FETCH_AND_ADD, A, 0x5A00, 0,
	 0, 0, 8, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, "key"},
	{"atomic past the region", IBV_WR_ATOMIC_CMP_AND_SWP, A, 0, 0,
	 ENDPOINT_SIZE, 0, 8, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, ""},
	{"atomic on a region without remote atomic",
	 IBV_WR_ATOMIC_FETCH_AND_ADD, W, 0, 0, 0, 0, 8, IBV_WC_REM_ACCESS_ERR,
	 IBV_QPS_ERR, ""},
	{"atomic on an odd address", IBV_WR_ATOMIC_FETCH_AND_ADD, A, 0, 0, 4,
	 0, 8, IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, ""},
	{"WRITE to a queue pair without remote write", IBV_WR_RDMA_WRITE, W, 0,
	 0, 0, 0, 64, IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, "",
	 IBV_ACCESS_REMOTE_WRITE},
	{"READ from a queue pair without remote read", IBV_WR_RDMA_READ, R, 0,
	 0, 0, 0, 64, IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, "",
	 IBV_ACCESS_REMOTE_READ},
	{"atomic on a queue pair without remote atomic",
	 IBV_WR_ATOMIC_FETCH_AND_ADD, A, 0, 0, 0, 0, 8, IBV_WC_REM_INV_REQ_ERR,
	 IBV_QPS_ERR, "", IBV_ACCESS_REMOTE_ATOMIC},
	{"WRITE from a wrong lkey", IBV_WR_RDMA_WRITE, W, 0, 0x5A00, 0, 0, 64,
	 IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS, "key"},
	{"WRITE from before the region", IBV_WR_RDMA_WRITE, W, 0, 0, 0, -8, 64,
	 IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS, ""},
	{"READ to past the region", IBV_WR_RDMA_READ, R, 0, 0, 0, 4096, 8000,
	 IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS, ""},
};
/* clang-format on */

static void post_bad(struct endpoint *a, const struct endpoint *b,
		     const struct bad *bad)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)a->region + (uint64_t)bad->local_offset,
		.length = bad->size,
		.lkey = a->mr->lkey ^ bad->lkey_xor,
	};
	struct ibv_send_wr wr = {
		.wr_id = 77,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = bad->opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *which;
	uint64_t remote = (uintptr_t)b->region + (uint64_t)bad->remote_offset;
	uint32_t rkey = b->mr->rkey ^ bad->rkey_xor;
	int err;

	if (bad->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    bad->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	err = ibv_post_send(a->qp, &wr, &which);
	check_expect(err == 0, "ibv_post_send: %s", strerror(err));
}

static void post_recv(struct endpoint *e, uint32_t size, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)e->region, size, lkey};
	struct ibv_recv_wr wr = {.wr_id = 88, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *which;
	int err = ibv_post_recv(e->qp, &wr, &which);

	check_expect(err == 0, "ibv_post_recv: %s", strerror(err));
}

static void expect_wc(struct endpoint *e, uint64_t wr_id,
		      enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!endpoint_wait(e, &wc)) {
		check_expect(false, "no completion");
		return;
	}
	check_expect(wc.status == status, "status \"%s\" instead of \"%s\"",
		     ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	check_expect(wc.wr_id == wr_id, "wr_id %llu",
		     (unsigned long long)wc.wr_id);
	check_expect(wc.qp_num == e->qp->qp_num, "qp_num %u", wc.qp_num);
}

static void expect_state(const struct endpoint *e, enum ibv_qp_state state,
			 const char *who)
{
	check_expect(endpoint_state(e) == state,
		     "the %s is in state %d, not %d", who, endpoint_state(e),
		     state);
}

static void expect_memory(const struct endpoint *a, const struct endpoint *b)
{
	check_expect(endpoint_guarded(a) && endpoint_guarded(b),
		     "a byte outside a region changed");
	check_expect(endpoint_untouched(a) && endpoint_untouched(b),
		     "a refused request changed a region");
}

static void try_bad(const struct bad *bad)
{
	struct endpoint a, b;

	if (!check_is_chosen(bad->name))
		return;
	check_begin(bad->name);
	endpoint_open(&a, IBV_ACCESS_LOCAL_WRITE, ENDPOINT_ALL_REMOTE);
	endpoint_open(&b, bad->access, ENDPOINT_ALL_REMOTE & ~bad->qp_lacks);
	endpoint_connect(&a, &b);
	take_stderr();
	post_bad(&a, &b, bad);
	expect_wc(&a, 77, bad->status);
	expect_state(&a, IBV_QPS_ERR, "requester");
	expect_state(&b, bad->responder, "responder");
	expect_memory(&a, &b);
	expect_sentence(bad->word);
	endpoint_close(&a);
	endpoint_close(&b);
	check_done();
}

/* Tests a SEND of 4000 bytes into a receive of @room bytes, or, if @room is 0,
 * without a receive. */
static void try_send(const char *name, uint32_t room, int access,
		     enum ibv_wc_status sender, enum ibv_wc_status receiver)
{
	static const struct bad send = {.opcode = IBV_WR_SEND, .size = 4000};
	struct endpoint a, b;

	if (!check_is_chosen(name))
		return;
	check_begin(name);
	endpoint_open(&a, IBV_ACCESS_LOCAL_WRITE, ENDPOINT_ALL_REMOTE);
	endpoint_open(&b, access, ENDPOINT_ALL_REMOTE);
	endpoint_connect(&a, &b);
	take_stderr();
	if (room)
		post_recv(&b, room, b.mr->lkey);
	post_bad(&a, &b, &send);
	expect_wc(&a, 77, sender);
	if (room)
		expect_wc(&b, 88, receiver);
	expect_state(&a, IBV_QPS_ERR, "sender");
	expect_state(&b, room ? IBV_QPS_ERR : IBV_QPS_RTS, "receiver");
	check_expect(endpoint_guarded(&a) && endpoint_guarded(&b),
		     "a byte outside a region changed");
	check_expect(b.region[room] == ENDPOINT_FILL,
		     "a byte past the receive changed");
	expect_sentence("");
	endpoint_close(&a);
	endpoint_close(&b);
	check_done();
}

static const struct bad plain_write = {
	.name = "WRITE", .opcode = IBV_WR_RDMA_WRITE, .size = 4096};
static const struct bad plain_read = {
	.name = "READ", .opcode = IBV_WR_RDMA_READ, .size = 4096};

/* Removes all access to the region, as munmap does, but keeps the addresses, so
 * that no other mapping can be placed there. */
static void remove_access(void *region)
{
	check_expect(mmap(region, ENDPOINT_SIZE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			  0) == region,
		     "mmap");
}

/* Tests a request to or from a region that is still registered, but whose
 * memory is unmapped. */
static void try_unmapped(const char *name, const struct bad *request,
			 bool remote, enum ibv_wc_status status)
{
	struct endpoint a, b;
	struct endpoint *gone = remote ? &b : &a;

	if (!check_is_chosen(name))
		return;
	check_begin(name);
	endpoint_open(&a, IBV_ACCESS_LOCAL_WRITE, ENDPOINT_ALL_REMOTE);
	endpoint_open(&b, IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
	endpoint_connect(&a, &b);
	take_stderr();
	remove_access(gone->region);
	post_bad(&a, &b, request);
	expect_wc(&a, 77, status);
	expect_state(&a, IBV_QPS_ERR, "requester");
	expect_sentence("");
	endpoint_close(&a);
	endpoint_close(&b);
	check_done();
}

static void try_stale_rkey(void)
{
	static const char name[] =
		"WRITE with the rkey of a region that was deregistered";
	struct endpoint a, b;
	struct ibv_mr old;

	if (!check_is_chosen(name))
		return;
	check_begin(name);
	endpoint_open(&a, IBV_ACCESS_LOCAL_WRITE, ENDPOINT_ALL_REMOTE);
	endpoint_open(&b, W, ENDPOINT_ALL_REMOTE);
	endpoint_connect(&a, &b);
	take_stderr();
	old = *b.mr;
	check_expect(ibv_dereg_mr(b.mr) == 0, "ibv_dereg_mr");
	b.mr = &old;
	post_bad(&a, &b, &plain_write);
	b.mr = NULL;
	expect_wc(&a, 77, IBV_WC_REM_ACCESS_ERR);
	expect_state(&b, IBV_QPS_ERR, "responder");
	expect_memory(&a, &b);
	expect_sentence("key");
	endpoint_close(&a);
	endpoint_close(&b);
	check_done();
}

static void try_foreign_rkey(void)
{
	static const char name[] =
		"WRITE with the rkey of another protection domain";
	struct endpoint a, b, c;

	if (!check_is_chosen(name))
		return;
	check_begin(name);
	endpoint_open(&a, IBV_ACCESS_LOCAL_WRITE, ENDPOINT_ALL_REMOTE);
	endpoint_open(&b, W, ENDPOINT_ALL_REMOTE);
	endpoint_open(&c, W, ENDPOINT_ALL_REMOTE);
	endpoint_connect(&a, &b);
	take_stderr();
	post_bad(&a, &c, &plain_write);
	expect_wc(&a, 77, IBV_WC_REM_ACCESS_ERR);
	expect_state(&b, IBV_QPS_ERR, "responder");
	expect_memory(&a, &c);
	expect_sentence("");
	endpoint_close(&a);
	endpoint_close(&b);
	endpoint_close(&c);
	check_done();
}

/* The state that the peer's queue pair has reached when the peer dies. */
enum step { STEP_INIT, STEP_RTR, STEP_RTS, STEP_COUNT };

static const char *const step_names[STEP_COUNT] = {"INIT", "RTR", "RTS"};

/* Runs the peer, a process that has executed this program again: brings its
 * queue pair into the state @step, sends the peer's address through the socket
 * @fd, and waits until the process is killed.  Returns 1 if @fd fails. */
static int peer_main(int fd, enum step step)
{
	struct endpoint e;
	struct endpoint_address self, other;

	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
	endpoint_address_get(&e, &self);
	if (read(fd, &other, sizeof(other)) != sizeof(other))
		return 1;
	if (step >= STEP_RTR)
		endpoint_to_rtr(&e, &other);
	if (step >= STEP_RTS)
		endpoint_to_rts(&e, &self, 7);
	if (write(fd, &self, sizeof(self)) != sizeof(self))
		return 1;
	for (;;)
		pause();
}

static pid_t start_peer(enum step step, int *fd)
{
	static char self[] = "/proc/self/exe", role[] = "--peer";
	char text[2][16];
	char *argv[] = {self, role, text[0], text[1], NULL};
	int endpoint[2];
	pid_t pid;

	check_need(!socketpair(AF_UNIX, SOCK_STREAM, 0, endpoint),
		   "socketpair");
	snprintf(text[0], sizeof(text[0]), "%d", endpoint[1]);
	snprintf(text[1], sizeof(text[1]), "%d", step);
	pid = fork();
	/* With the PID -1, end_peer would kill every process of the user. */
	check_need(pid >= 0, "fork");
	if (pid == 0) {
		close(endpoint[0]);
		execv(self, argv);
		perror("badinput: execv of itself");
		_exit(127);
	}
	close(endpoint[1]);
	*fd = endpoint[0];
	return pid;
}

static void end_peer(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct death {
	enum step step;		   /* the state of the peer's queue pair */
	const struct bad *request; /* the request that is posted repeatedly */
	int served;		   /* requests done before the peer is killed */
	pid_t pid;		   /* the peer */
	int fd;			   /* a socket to the peer */
};

/* Exchanges addresses with the peer, whose address comes in *peer, and moves
 * the queue pair of a to RTS.  Returns whether the peer has answered. */
static bool connect_to_peer(struct endpoint *a, int fd,
			    struct endpoint_address *peer)
{
	struct endpoint_address self;

	endpoint_address_get(a, &self);
	if (write(fd, &self, sizeof(self)) != sizeof(self) ||
	    read(fd, peer, sizeof(*peer)) != sizeof(*peer))
		return false;
	endpoint_to_rtr(a, peer);
	endpoint_to_rts(a, &self, 7);
	return true;
}

/*
 * Takes all completions, and kills the peer after d->served of them; if
 * d->served is 0, the caller has killed the peer.  Requests that are
 * outstanding when the peer is killed may still succeed; after these, one
 * request must fail and all later requests must be flushed.  Returns how many
 * have succeeded.
 */
static int take_all(struct endpoint *a, const struct death *d)
{
	int served = d->served;
	struct ibv_wc wc;

	for (int i = 0; i < ENDPOINT_DEPTH / 2; i++) {
		if (i == d->served && i > 0)
			end_peer(d->pid);
		if (!endpoint_wait(a, &wc)) {
			check_expect(false, "no completion for request %d", i);
			if (i < d->served)
				end_peer(d->pid);
			break;
		}
		if (wc.status == IBV_WC_SUCCESS && d->served > 0 &&
		    i <= served) {
			served = i + 1;
			continue;
		}
		check_expect(i >= d->served &&
				     wc.status ==
					     (i == served
						      ? IBV_WC_RETRY_EXC_ERR
						      : IBV_WC_WR_FLUSH_ERR),
			     "request %d: %s", i, ibv_wc_status_str(wc.status));
	}
	return served;
}

static void kill_peer(struct endpoint *a, struct death *d)
{
	struct endpoint_address peer;
	struct ibv_mr mr = {0};
	struct endpoint b = {.mr = &mr};

	if (!connect_to_peer(a, d->fd, &peer)) {
		check_expect(false, "the peer did not start");
		end_peer(d->pid);
		return;
	}
	take_stderr();
	mr.rkey = peer.rkey;
	b.region = (uint8_t *)(uintptr_t)peer.region;
	if (d->served == 0)
		end_peer(d->pid);
	for (int i = 0; i < ENDPOINT_DEPTH / 2; i++)
		post_bad(a, &b, d->request);
	if (take_all(a, d) == ENDPOINT_DEPTH / 2) {
		/* All requests were executed before the peer was killed. */
		post_bad(a, &b, d->request);
		expect_wc(a, 77, IBV_WC_RETRY_EXC_ERR);
	}
	expect_state(a, IBV_QPS_ERR, "requester");
	expect_sentence("");
	check_expect(endpoint_guarded(a), "a byte outside the region changed");
}

static void try_death(enum step step, const struct bad *request, int served)
{
	struct death d = {step, request, served, 0, -1};
	char name[96];
	struct endpoint a;

	snprintf(name, sizeof(name),
		 "%s to a peer killed in %s after %d requests", request->name,
		 step_names[step], served);
	if (!check_is_chosen(name))
		return;
	check_begin(name);
	d.pid = start_peer(step, &d.fd);
	endpoint_open(&a, IBV_ACCESS_LOCAL_WRITE, ENDPOINT_ALL_REMOTE);
	kill_peer(&a, &d);
	close(d.fd);
	endpoint_close(&a);
	check_done();
}

static void try_deaths(void)
{
	static const struct bad send = {
		.name = "SEND", .opcode = IBV_WR_SEND, .size = 4096};

	for (enum step step = STEP_INIT; step < STEP_COUNT; step++) {
		try_death(step, &plain_write, 0);
		try_death(step, &plain_read, 0);
		try_death(step, &send, 0);
	}
	try_death(STEP_RTS, &plain_write, 1);
	try_death(STEP_RTS, &plain_read, 1);
	try_death(STEP_RTR, &plain_read, 5);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--peer") == 0)
		return peer_main(atoi(argv[2]), (enum step)atoi(argv[3]));
	stderr_fd = memfd_create("stderr", 0);
	if (stderr_fd < 0 || dup2(stderr_fd, STDERR_FILENO) < 0)
		return 1;
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++)
		try_bad(&bads[i]);
	try_send("SEND longer than the receive", 1000, IBV_ACCESS_LOCAL_WRITE,
		 IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR);
	try_send("SEND into a region without local write", 4096, 0,
		 IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
	try_send("SEND without a receive and rnr_retry 0", 0,
		 IBV_ACCESS_LOCAL_WRITE, IBV_WC_RNR_RETRY_EXC_ERR, 0);
	try_unmapped("WRITE from unmapped memory", &plain_write, false,
		     IBV_WC_LOC_PROT_ERR);
	try_unmapped("READ into unmapped memory", &plain_read, false,
		     IBV_WC_LOC_PROT_ERR);
	try_unmapped("WRITE to unmapped memory", &plain_write, true,
		     IBV_WC_REM_OP_ERR);
	try_unmapped("READ from unmapped memory", &plain_read, true,
		     IBV_WC_REM_OP_ERR);
	try_stale_rkey();
	try_foreign_rkey();
	try_deaths();
	return check_end();
}
