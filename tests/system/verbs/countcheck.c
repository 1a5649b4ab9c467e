/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * countcheck: tests completion counters (ibv_create_comp_cntr) of queue pairs
 * that are connected within one process, and of a queue pair whose peer is
 * another process.  Prints a line per case, as verbcheck does.  Each process
 * has one thread besides those of the library.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "endpoint.h"
#include "newer_abi.h"

enum {
	OPS = 5,
	ALL_OPS = NEWER_SEND | NEWER_RECV | NEWER_READ | NEWER_WRITE |
		  NEWER_REMOTE_WRITE,
	BYTES = 100,
};

/* How many WRITEs, READs and SENDs one call of post_mixture() posts, and how
 * many receives of the peer these requests complete. */
enum { WRITES = 7, READS = 4, SENDS = 3, RECEIVES = 5 };

/*
 * The operations that are counted.
 * from: by how much post_mixture() increases the initiator's counter for `op`
 * to: by how much post_mixture() increases the target's counter for `op`
 */
static const struct {
	uint32_t op;
	uint64_t from, to;
} op[OPS] = {
	{NEWER_SEND, SENDS, 0},		 {NEWER_RECV, 0, RECEIVES},
	{NEWER_READ, READS, 0},		 {NEWER_WRITE, WRITES, 0},
	{NEWER_REMOTE_WRITE, 0, WRITES},
};

static struct endpoint e[2];

static const int ALL = IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE;

/* ---- counters ---- */

static struct newer_counter *new_counter(uint32_t type)
{
	struct newer_counter_attr attr = {.type = type};
	struct newer_counter *c = later.create_comp_cntr(e[0].ctx, &attr);

	EXPECT(c && c->context == e[0].ctx);
	return c;
}

static int attach_counter(struct ibv_qp *qp, struct newer_counter *c,
			  uint32_t ops)
{
	struct newer_attach_attr attr = {.op_mask = ops};

	return later.qp_attach_comp_cntr(qp, c, &attr);
}

static uint64_t read_value(struct newer_counter *c)
{
	uint64_t v = 0;

	EXPECT(!later.read_comp_cntr(c, &v));
	return v;
}

static uint64_t read_errors(struct newer_counter *c)
{
	uint64_t v = 0;

	EXPECT(!later.read_err_comp_cntr(c, &v));
	return v;
}

/* Returns this thread's processor time in seconds: time in which this process
 * is stopped, or has no core, does not count as waiting. */
static double thread_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Reads the counter, and calls no other verb, until its value is at least
 * `want`, for at most ENDPOINT_WAIT_MS of processor time.  Returns whether the
 * value is then `want`. */
static bool reaches_value(struct newer_counter *c, uint64_t want)
{
	double end = thread_s() + (int)ENDPOINT_WAIT_MS / 1000.0;

	while (read_value(c) < want && thread_s() < end)
		;
	return read_value(c) == want;
}

static bool errors_reach(struct newer_counter *c, uint64_t want)
{
	double end = thread_s() + (int)ENDPOINT_WAIT_MS / 1000.0;

	while (read_errors(c) < want && thread_s() < end)
		;
	return read_errors(c) == want;
}

/* Destroys the queue pair of e[of] and then n counters, which may have been
 * attached to that queue pair, and closes e[of]. */
static void close_end(int of, int n, struct newer_counter *const *counters)
{
	EXPECT(!ibv_destroy_qp(e[of].qp));
	for (int i = 0; i < n; i++)
		EXPECT(!later.destroy_comp_cntr(counters[i]));
	e[of].qp = endpoint_beside(&e[of], NULL, 0).qp;
	endpoint_close(&e[of]);
}

/* ---- requests ---- */

/* Posts a request of BYTES bytes. */
static void post_request(const struct endpoint *from,
			 const struct endpoint_address *to,
			 enum ibv_wr_opcode opcode, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)from->region + 1000, BYTES,
			      from->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = flags},
			   *bad;

	wr.wr.rdma.remote_addr = to->region + 2000;
	wr.wr.rdma.rkey = to->rkey;
	EXPECT(!ibv_post_send(from->qp, &wr, &bad));
}

static void post_receives(int at, int n)
{
	struct ibv_sge sge = {(uintptr_t)e[at].region, 4 * BYTES,
			      e[at].mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	while (n--)
		EXPECT(!ibv_post_recv(e[at].qp, &wr, &bad));
}

static struct endpoint_address address_of(int at)
{
	struct endpoint_address a;

	endpoint_address_get(&e[at], &a);
	return a;
}

/* Opens both ends, in INIT, so that counters can be attached. */
static void both_open(void)
{
	endpoint_open(&e[0], ALL, ENDPOINT_ALL_REMOTE);
	endpoint_open(&e[1], ALL, ENDPOINT_ALL_REMOTE);
}

/* Posts five WRITEs, four READs, three SENDs and two WRITEs with immediate
 * data.  IBV_SEND_SIGNALED changes nothing: the queue pairs of endpoint.h
 * signal all requests. */
static void post_mixture(const struct endpoint *from,
			 const struct endpoint_address *to)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		int count;
	} all[] = {
		{IBV_WR_RDMA_WRITE, 5},
		{IBV_WR_RDMA_READ, 4},
		{IBV_WR_SEND, 3},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 2},
	};

	for (int k = 0; k < 4; k++)
		for (int i = 0; i < all[k].count; i++)
			post_request(from, to, all[k].opcode,
				     i ? 0 : IBV_SEND_SIGNALED);
}

/* ---- cases ---- */

static void a_device_says_what_it_counts(void)
{
	struct newer_counter_caps caps, part;

	both_open();
	memset(&caps, 0xee, sizeof(caps));
	EXPECT(!later.query_comp_cntr_caps(e[0].ctx, &caps, sizeof(caps)));
	EXPECT(caps.max_value == UINT64_MAX && caps.max_counters >= 1024 &&
	       caps.supported_qp_attach_ops == ALL_OPS);
	memset(&part, 0xee, sizeof(part));
	EXPECT(!later.query_comp_cntr_caps(e[0].ctx, &part, 8));
	EXPECT(part.max_value == UINT64_MAX && part.max_counters == 0xeeeeeeee);
	endpoint_close(&e[1]);
	endpoint_close(&e[0]);
}

static void a_counter_is_set_and_added_to(void)
{
	struct newer_counter_attr attr = {.type = 2};
	struct newer_counter *c;

	both_open();
	EXPECT(!later.create_comp_cntr(e[0].ctx, &attr) && errno == EOPNOTSUPP);
	attr = (struct newer_counter_attr){.flags = 1};
	EXPECT(!later.create_comp_cntr(e[0].ctx, &attr) && errno == EINVAL);
	attr = (struct newer_counter_attr){.comp_mask = 1};
	EXPECT(!later.create_comp_cntr(e[0].ctx, &attr) && errno == EINVAL);
	c = new_counter(NEWER_WRS);
	EXPECT(read_value(c) == 0 && read_errors(c) == 0);
	EXPECT(!later.set_comp_cntr(c, 41) && !later.inc_comp_cntr(c, 1));
	EXPECT(!later.set_err_comp_cntr(c, 5) &&
	       !later.inc_err_comp_cntr(c, 2));
	EXPECT(read_value(c) == 42 && read_errors(c) == 7);
	EXPECT(!later.set_comp_cntr(c, UINT64_MAX) &&
	       !later.inc_comp_cntr(c, 1));
	EXPECT(read_value(c) == 0 && read_errors(c) == 7);
	endpoint_close(&e[1]);
	close_end(0, 1, &c);
}

static void a_child_destroys_no_counter_of_its_parent(void)
{
	struct newer_counter *c;
	int status = -1;
	pid_t child;

	both_open();
	c = new_counter(NEWER_WRS);
	child = fork();
	NEED(child >= 0);
	if (!child)
		_exit(later.destroy_comp_cntr(c) != EPERM);
	EXPECT(waitpid(child, &status, 0) == child && !status);
	endpoint_close(&e[1]);
	close_end(0, 1, &c);
}

static void what_cannot_be_attached_is_refused(void)
{
	struct newer_counter *both[2], *c, *other;
	struct newer_attach_attr attr = {.comp_mask = 1, .op_mask = NEWER_SEND};
	struct endpoint far;

	both_open();
	both[0] = c = new_counter(NEWER_WRS);
	both[1] = other = new_counter(NEWER_WRS);
	EXPECT(attach_counter(e[0].qp, c, 0) == EINVAL);
	EXPECT(attach_counter(e[0].qp, c, 64) == EOPNOTSUPP);
	EXPECT(attach_counter(e[0].qp, c, NEWER_REMOTE_READ) == EOPNOTSUPP);
	EXPECT(later.qp_attach_comp_cntr(e[0].qp, c, &attr) == EINVAL);
	/* The counter belongs to another device context than this queue pair.
	 */
	EXPECT(attach_counter(e[1].qp, c, NEWER_SEND) == EINVAL);
	EXPECT(!attach_counter(e[0].qp, c, NEWER_SEND | NEWER_READ));
	EXPECT(attach_counter(e[0].qp, other, NEWER_READ) == EBUSY);
	EXPECT(attach_counter(e[0].qp, c, NEWER_READ) == EBUSY);
	EXPECT(!attach_counter(e[0].qp, other, NEWER_WRITE));
	EXPECT(later.destroy_comp_cntr(c) == EBUSY);
	endpoint_connect(&e[0], &e[1]);
	EXPECT(attach_counter(e[0].qp, other, NEWER_RECV) == EINVAL);
	far = endpoint_beside(&e[0], NULL, ENDPOINT_ALL_REMOTE);
	EXPECT(!attach_counter(far.qp, c, NEWER_RECV));
	EXPECT(!ibv_destroy_qp(far.qp));
	EXPECT(later.destroy_comp_cntr(c) == EBUSY);
	endpoint_close(&e[1]);
	close_end(0, 2, both);
}

static void attach_one_for_each(struct newer_counter *mine[OPS])
{
	for (int i = 0; i < OPS; i++) {
		mine[i] = new_counter(NEWER_WRS);
		EXPECT(!attach_counter(e[0].qp, mine[i], op[i].op));
	}
}

static void each_operation_is_counted_once(void)
{
	struct newer_counter *mine[OPS];
	struct endpoint_address to;

	both_open();
	attach_one_for_each(mine);
	endpoint_connect(&e[0], &e[1]);
	to = address_of(1);
	post_receives(1, RECEIVES);
	post_mixture(&e[0], &to);
	for (int i = 0; i < OPS; i++) {
		EXPECT(reaches_value(mine[i], op[i].from) &&
		       !read_errors(mine[i]));
		EXPECT(!later.set_comp_cntr(mine[i], 0));
	}
	/* Now e[1] is the initiator. */
	to = address_of(0);
	post_receives(0, RECEIVES);
	post_mixture(&e[1], &to);
	for (int i = 0; i < OPS; i++)
		EXPECT(reaches_value(mine[i], op[i].to) &&
		       !read_errors(mine[i]));
	/* The counters keep their values when the queue pair is destroyed. */
	EXPECT(!ibv_destroy_qp(e[0].qp));
	for (int i = 0; i < OPS; i++)
		EXPECT(read_value(mine[i]) == op[i].to);
	e[0].qp = endpoint_beside(&e[0], NULL, 0).qp;
	endpoint_close(&e[1]);
	close_end(0, OPS, mine);
}

/* A request whose success gives no completion is counted as well. */
static void unsignaled_requests_are_counted(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {ENDPOINT_DEPTH, ENDPOINT_DEPTH, 1, 1, 0},
	};
	struct newer_counter *writes;
	struct endpoint_address to;
	struct ibv_wc wc;

	both_open();
	init.send_cq = init.recv_cq = e[0].cq;
	endpoint_replace_qp(&e[0], ibv_create_qp(e[0].pd, &init), 0);
	writes = new_counter(NEWER_WRS);
	EXPECT(!attach_counter(e[0].qp, writes, NEWER_WRITE));
	endpoint_connect(&e[0], &e[1]);
	to = address_of(1);
	for (int i = 0; i < 3; i++)
		post_request(&e[0], &to, IBV_WR_RDMA_WRITE, 0);
	EXPECT(reaches_value(writes, 3) && !read_errors(writes));
	EXPECT(!ibv_poll_cq(e[0].cq, 1, &wc));
	post_request(&e[0], &to, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED);
	EXPECT(reaches_value(writes, 4) && !read_errors(writes));
	EXPECT(endpoint_wait(&e[0], &wc) && !wc.status);
	endpoint_close(&e[1]);
	close_end(0, 1, &writes);
}

static void bytes_are_counted(void)
{
	struct newer_counter *sent, *got;
	struct endpoint_address to;

	both_open();
	sent = new_counter(NEWER_BYTES);
	EXPECT(!attach_counter(e[0].qp, sent, ALL_OPS));
	got = later.create_comp_cntr(
		e[1].ctx, &(struct newer_counter_attr){.type = NEWER_BYTES});
	EXPECT(got && !attach_counter(e[1].qp, got, ALL_OPS));
	endpoint_connect(&e[0], &e[1]);
	to = address_of(1);
	post_receives(1, RECEIVES);
	post_mixture(&e[0], &to);
	EXPECT(reaches_value(sent, BYTES * (WRITES + READS + SENDS)));
	/* A WRITE with immediate data counts as a WRITE and as a receive. */
	EXPECT(reaches_value(got, BYTES * (WRITES + RECEIVES)));
	EXPECT(!read_errors(sent) && !read_errors(got));
	close_end(1, 1, &got);
	close_end(0, 1, &sent);
}

/* Requests that follow the failed request are flushed, and so are the receives.
 */
static void failures_are_counted_apart(void)
{
	struct newer_counter *all[3], *writes, *sends, *receives;
	struct endpoint_address to;

	both_open();
	all[0] = writes = new_counter(NEWER_WRS);
	all[1] = sends = new_counter(NEWER_BYTES);
	all[2] = receives = new_counter(NEWER_WRS);
	EXPECT(!attach_counter(e[0].qp, writes, NEWER_WRITE));
	EXPECT(!attach_counter(e[0].qp, sends, NEWER_SEND));
	EXPECT(!attach_counter(e[0].qp, receives, NEWER_RECV));
	post_receives(0, 9);
	endpoint_connect(&e[0], &e[1]);
	to = address_of(1);
	post_request(&e[0], &to, IBV_WR_RDMA_WRITE, 0);
	EXPECT(reaches_value(writes, 1));
	to.rkey ^= 0x5555;
	post_request(&e[0], &to, IBV_WR_RDMA_WRITE, 0);
	post_request(&e[0], &to, IBV_WR_SEND, 0);
	post_request(&e[0], &to, IBV_WR_SEND, IBV_SEND_SIGNALED);
	EXPECT(errors_reach(writes, 1) && read_value(writes) == 1);
	EXPECT(errors_reach(sends, 2) && read_value(sends) == 0);
	EXPECT(errors_reach(receives, 9) && read_value(receives) == 0);
	endpoint_close(&e[1]);
	close_end(0, 3, all);
}

/* Sends a message, so that e[0] has a completed receive that no poll has taken.
 */
static void complete_unseen(const struct endpoint_address *to)
{
	struct ibv_wc wc;

	post_request(&e[1], to, IBV_WR_SEND, IBV_SEND_SIGNALED);
	EXPECT(endpoint_wait(&e[1], &wc) && !wc.status);
}

static void a_value_includes_what_no_poll_has_seen(void)
{
	struct endpoint_address to;
	struct newer_counter *c;

	both_open();
	c = new_counter(NEWER_WRS);
	EXPECT(!attach_counter(e[0].qp, c, NEWER_RECV));
	endpoint_connect(&e[0], &e[1]);
	post_receives(0, 2);
	to = address_of(0);
	complete_unseen(&to);
	EXPECT(!later.set_comp_cntr(c, 0));
	EXPECT(read_value(c) == 0);
	complete_unseen(&to);
	EXPECT(!ibv_destroy_qp(e[0].qp));
	EXPECT(read_value(c) == 1);
	e[0].qp = endpoint_beside(&e[0], NULL, 0).qp;
	endpoint_close(&e[1]);
	close_end(0, 1, &c);
}

static void one_counter_is_of_many_queue_pairs(void)
{
	struct ibv_srq_init_attr attr = {.attr = {ENDPOINT_DEPTH, 1, 0}};
	struct ibv_recv_wr wr = {0}, *bad;
	struct endpoint_address to;
	struct endpoint peer, more;
	struct newer_counter *c;
	struct ibv_srq *srq;

	both_open();
	c = new_counter(NEWER_WRS);
	srq = ibv_create_srq(e[0].pd, &attr);
	EXPECT(srq);
	more = endpoint_beside(&e[0], srq, ENDPOINT_ALL_REMOTE);
	peer = endpoint_beside(&e[1], NULL, ENDPOINT_ALL_REMOTE);
	EXPECT(!attach_counter(e[0].qp, c, NEWER_RECV | NEWER_REMOTE_WRITE));
	EXPECT(!attach_counter(more.qp, c, NEWER_RECV | NEWER_REMOTE_WRITE));
	endpoint_connect(&e[0], &e[1]);
	endpoint_connect(&more, &peer);
	post_receives(0, RECEIVES);
	for (int i = 0; i < RECEIVES; i++)
		EXPECT(!ibv_post_srq_recv(srq, &wr, &bad));
	to = address_of(0);
	post_mixture(&e[1], &to);
	endpoint_address_get(&more, &to);
	for (int i = 0; i < 5; i++)
		post_request(&peer, &to, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED);
	/* WRITEs with immediate data take receives, which have no memory, from
	 * the SRQ. */
	for (int i = 0; i < 2; i++)
		post_request(&peer, &to, IBV_WR_RDMA_WRITE_WITH_IMM,
			     IBV_SEND_SIGNALED);
	EXPECT(reaches_value(c, RECEIVES + WRITES + 2 + 7));
	EXPECT(!read_errors(c));
	/* The value still includes the requests of a destroyed queue pair, and
	 * can be set. */
	EXPECT(!ibv_destroy_qp(more.qp));
	EXPECT(read_value(c) == RECEIVES + WRITES + 2 + 7);
	EXPECT(!later.set_comp_cntr(c, 3));
	EXPECT(read_value(c) == 3);
	EXPECT(!ibv_destroy_srq(srq) && !ibv_destroy_qp(peer.qp));
	endpoint_close(&e[1]);
	close_end(0, 1, &c);
}

/* Exchanges addresses with the other process.  Ends the program if the other
 * process has ended: without its address no connection can be made. */
static void swap_addresses(int socket, const struct endpoint_address *mine,
			   struct endpoint_address *theirs)
{
	NEED(send(socket, mine, sizeof(*mine), MSG_NOSIGNAL) == sizeof(*mine));
	NEED(read(socket, theirs, sizeof(*theirs)) == sizeof(*theirs));
}

/* Runs the peer process: posts requests when a byte has come from the socket,
 * and ends after another byte, or with its parent. */
static void be_the_peer(int socket)
{
	struct endpoint_address mine, theirs;
	struct ibv_wc wc;
	char end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	endpoint_open(&e[1], ALL, ENDPOINT_ALL_REMOTE);
	mine = address_of(1);
	swap_addresses(socket, &mine, &theirs);
	endpoint_to_rtr(&e[1], &theirs);
	endpoint_to_rts(&e[1], &mine, 7);
	EXPECT(read(socket, &end, 1) == 1);
	for (int i = 0; i < 3; i++)
		post_mixture(&e[1], &theirs);
	for (int i = 0; i < 3 * (WRITES + READS + SENDS); i++)
		EXPECT(endpoint_wait(&e[1], &wc) && !wc.status);
	EXPECT(read(socket, &end, 1) == 1);
	_exit(check_is_wrong());
}

static void a_peer_of_another_process_is_counted(void)
{
	struct newer_counter *all[2], *receives, *writes;
	struct endpoint_address mine, theirs;
	int sockets[2], status;
	pid_t child;

	EXPECT(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	NEED(child >= 0);
	/* Each process closes the socket of the other process, so that a read
	 * does not wait for a process that has ended. */
	close(sockets[!!child]);
	if (!child)
		be_the_peer(sockets[1]);
	endpoint_open(&e[0], ALL, ENDPOINT_ALL_REMOTE);
	all[0] = receives = new_counter(NEWER_WRS);
	all[1] = writes = new_counter(NEWER_BYTES);
	EXPECT(!attach_counter(e[0].qp, receives, NEWER_RECV));
	EXPECT(!attach_counter(e[0].qp, writes, NEWER_REMOTE_WRITE));
	mine = address_of(0);
	swap_addresses(sockets[0], &mine, &theirs);
	post_receives(0, 3 * RECEIVES);
	endpoint_to_rtr(&e[0], &theirs);
	endpoint_to_rts(&e[0], &mine, 7);
	EXPECT(send(sockets[0], "", 1, MSG_NOSIGNAL) == 1);
	EXPECT(reaches_value(receives, 3 * RECEIVES));
	EXPECT(reaches_value(writes, 3 * WRITES * BYTES));
	EXPECT(!read_errors(receives) && !read_errors(writes));
	EXPECT(send(sockets[0], "", 1, MSG_NOSIGNAL) == 1);
	EXPECT(waitpid(child, &status, 0) == child && !status);
	close(sockets[0]);
	close_end(0, 2, all);
}

/* A thread that has read a value which counts a WRITE also sees the bytes of
 * that WRITE.  The case looks at the last byte. */
static void what_is_counted_is_there(void)
{
	enum { ROUNDS = 300 };
	volatile uint8_t *last;
	struct endpoint_address to;
	struct newer_counter *c;
	bool good = true;
	struct ibv_wc wc;

	both_open();
	c = new_counter(NEWER_WRS);
	EXPECT(!attach_counter(e[0].qp, c, NEWER_REMOTE_WRITE));
	endpoint_connect(&e[0], &e[1]);
	to = address_of(0);
	last = e[0].region + 2000 + BYTES - 1;
	for (int i = 1; i <= ROUNDS && good; i++) {
		memset(e[1].region, i, ENDPOINT_SIZE);
		post_request(&e[1], &to, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED);
		good = reaches_value(c, (uint64_t)i) && *last == (uint8_t)i &&
		       endpoint_wait(&e[1], &wc) && !wc.status;
	}
	EXPECT(good);
	endpoint_close(&e[1]);
	close_end(0, 1, &c);
}

int main(void)
{
	newer_find();
	/* This case is first, so that it forks before this process has opened a
	 * device. */
	check_run("a peer of another process is counted",
		  a_peer_of_another_process_is_counted);
	check_run("a device reports which operations it can count",
		  a_device_says_what_it_counts);
	check_run("a counter is set and added to",
		  a_counter_is_set_and_added_to);
	check_run("the child of a fork destroys no counter of its parent",
		  a_child_destroys_no_counter_of_its_parent);
	check_run("an attachment that is not possible is refused",
		  what_cannot_be_attached_is_refused);
	check_run("each operation is counted once",
		  each_operation_is_counted_once);
	check_run("unsignaled requests are counted",
		  unsignaled_requests_are_counted);
	check_run("bytes are counted", bytes_are_counted);
	check_run("a value includes completions that no poll has taken",
		  a_value_includes_what_no_poll_has_seen);
	check_run("failures are counted apart", failures_are_counted_apart);
	check_run("data that is counted has arrived", what_is_counted_is_there);
	check_run("one counter counts for many queue pairs",
		  one_counter_is_of_many_queue_pairs);
	return check_end();
}
