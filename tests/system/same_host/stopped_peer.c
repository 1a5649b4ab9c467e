/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stopped_peer ROUNDS HOW
 *
 * In each of ROUNDS rounds the writer is stopped during long transfers into the
 * memory of another process of this host, the target, which must be able to
 * continue:
 *
 *	writer -- WRITEs of 16 MiB, stopped --> target <-- SENDs -- sender
 *
 * The target serves the sender, moves its queue pair with the writer to ERR,
 * gets the receives back, destroys that queue pair and deregisters the memory,
 * which no process may change from then on.  Then the writer is continued, and
 * its WRITE must fail.
 *
 * With HOW direct the writer is stopped while it copies, with HOW packets at
 * any moment.  If the writer were stopped while it changes the target's tables,
 * the target might have to wait; this program does not test that.
 *
 * Exits with 0, with 2 if the arguments are not as above, or prints a message
 * and exits with 1.
 */
#include "step_timeout.h"
#include "argument.h"
#include "endpoint.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LONG = 16 << 20, /* bytes of a WRITE */
	UNDER_WAY = 4,	 /* WRITEs under way */
	SENDS = 1000,	 /* messages of the sender */
	WAIT_S = 300,	 /* a step of the target that takes longer hangs */
	RECEIVES = 8,	 /* receives posted to the queue pair with the writer */
	MINE = 0x5e,	 /* the byte that fills the deregistered memory */
	A_WHILE_NS = 200000, /* how long the writer runs between two stops */
};

enum who { WRITER, SENDER, TARGET, WHO /* the number of processes */ };

/* The target asks its parent for STOP or CONTINUE; the parent answers
 * IS_STOPPED. */
enum order { GO, STOP, IS_STOPPED, CONTINUE };

/* Shared by all processes. */
static struct shared_steps {
	/* the addresses of the ends of the target's connections with the writer
	 * and with the sender: [0] of the end of the writer or sender, [1] of
	 * the end of the target */
	struct endpoint_address writer[2], sender[2];
	/* is_there: the process's addresses are known.  is_ready: the process
	 * is connected. */
	int is_there[WHO], is_ready[WHO];
	int order;   /* enum order */
	int is_over; /* a WRITE of the writer has failed */
} * shared_steps;

/* Returns a new region of LONG bytes, for an end of the long transfers. */
static struct ibv_mr *open_long(struct endpoint *e)
{
	uint8_t *bytes = endpoint_memory(LONG);
	struct ibv_mr *mr;

	memset(bytes, 1, LONG);
	mr = ibv_reg_mr(e->pd, bytes, LONG,
			IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE);
	if (!mr)
		step_timeout_die("reg_mr");
	return mr;
}

static void open_end(struct endpoint *e)
{
	endpoint_open(e, IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
}

/* Connects e, whose address is *self, to the queue pair at *peer. */
static void connect_peer(struct endpoint *e,
			 const struct endpoint_address *self,
			 const struct endpoint_address *peer)
{
	endpoint_to_rtr(e, peer);
	endpoint_to_rts(e, self, 7);
}

static void meet_all(enum who who)
{
	step_timeout_say(&shared_steps->is_ready[who], 1);
	for (int i = 0; i < WHO; i++)
		step_timeout_await(&shared_steps->is_ready[i], 1);
}

static void post_write(struct endpoint *e, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, LONG, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE};

	wr.wr.rdma.remote_addr = shared_steps->writer[1].region;
	wr.wr.rdma.rkey = shared_steps->writer[1].rkey;
	if ((errno = ibv_post_send(e->qp, &wr, &bad)))
		step_timeout_die("post_send");
}

static void be_writer(void)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	struct ibv_mr *mr;
	struct endpoint e;

	open_end(&e);
	mr = open_long(&e);
	endpoint_address_get(&e, &shared_steps->writer[0]);
	step_timeout_say(&shared_steps->is_there[WRITER], 1);
	step_timeout_await(&shared_steps->is_there[TARGET], 1);
	connect_peer(&e, &shared_steps->writer[0], &shared_steps->writer[1]);
	meet_all(WRITER);
	for (int i = 0; i < UNDER_WAY; i++)
		post_write(&e, mr);
	for (;;) {
		if (!endpoint_wait(&e, &wc))
			step_timeout_fail("a WRITE never ends");
		if (wc.status)
			break;
		post_write(&e, mr);
	}
	if (wc.status != IBV_WC_RETRY_EXC_ERR &&
	    wc.status != IBV_WC_REM_ACCESS_ERR)
		step_timeout_fail(ibv_wc_status_str(wc.status));
	step_timeout_say(&shared_steps->is_over, 1);
}

static void be_sender(void)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};
	struct ibv_wc wc;
	struct endpoint e;

	open_end(&e);
	endpoint_address_get(&e, &shared_steps->sender[0]);
	step_timeout_say(&shared_steps->is_there[SENDER], 1);
	step_timeout_await(&shared_steps->is_there[TARGET], 1);
	connect_peer(&e, &shared_steps->sender[0], &shared_steps->sender[1]);
	meet_all(SENDER);
	step_timeout_await(&shared_steps->order, IS_STOPPED);
	for (int i = 0; i < SENDS; i++) {
		if ((errno = ibv_post_send(e.qp, &wr, &bad)))
			step_timeout_die("post_send");
		if (!endpoint_wait(&e, &wc) || wc.status)
			step_timeout_fail(
				"a SEND beside the stopped writer fails");
	}
	endpoint_close(&e);
}

static void post_receive(struct endpoint *e)
{
	struct ibv_sge sge = {(uintptr_t)e->region, 64, e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if ((errno = ibv_post_recv(e->qp, &wr, &bad)))
		step_timeout_die("post_recv");
}

static void must_complete(struct endpoint *e, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!endpoint_wait(e, &wc))
		step_timeout_fail("the target gets no completion");
	if (wc.status != status)
		step_timeout_fail(ibv_wc_status_str(wc.status));
}

static void serve_sender(struct endpoint *e)
{
	for (int i = 0; i < SENDS; i++) {
		step_timeout_step("the sender's queue pair", WAIT_S);
		post_receive(e);
		must_complete(e, IBV_WC_SUCCESS);
	}
}

static void part_from(struct endpoint *e, struct ibv_mr *mr)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	step_timeout_step("modify to ERR", WAIT_S);
	if ((errno = ibv_modify_qp(e->qp, &err, IBV_QP_STATE)))
		step_timeout_die("modify to ERR");
	step_timeout_step("the flush of the receives", WAIT_S);
	for (int i = 0; i < RECEIVES; i++)
		must_complete(e, IBV_WC_WR_FLUSH_ERR);
	step_timeout_step("destroy_qp", WAIT_S);
	if ((errno = ibv_destroy_qp(e->qp)))
		step_timeout_die("destroy_qp");
	e->qp = NULL;
	step_timeout_step("dereg_mr", WAIT_S);
	if ((errno = ibv_dereg_mr(mr)))
		step_timeout_die("dereg_mr");
}

/* Has the parent continue the writer, and expects that the writer changes no
 * byte of the deregistered memory. */
static void check_kept(uint8_t *bytes)
{
	memset(bytes, MINE, LONG);
	step_timeout_say(&shared_steps->order, CONTINUE);
	step_timeout_step("the writer's failure", WAIT_S);
	while (!step_timeout_look(&shared_steps->is_over))
		usleep(100);
	for (int i = 0; i < LONG; i++)
		if (bytes[i] != MINE) {
			printf("byte %d was written after dereg_mr\n", i);
			fflush(stdout);
			_exit(1);
		}
}

static void be_target(int round)
{
	uint8_t *bytes;
	struct endpoint e, beside;
	struct ibv_mr *mr;

	open_end(&e);
	open_end(&beside);
	mr = open_long(&e);
	endpoint_address_get(&e, &shared_steps->writer[1]);
	shared_steps->writer[1].region = (uintptr_t)mr->addr;
	shared_steps->writer[1].rkey = mr->rkey;
	endpoint_address_get(&beside, &shared_steps->sender[1]);
	for (int i = 0; i < TARGET; i++)
		step_timeout_await(&shared_steps->is_there[i], 1);
	bytes = mr->addr;
	*bytes = 0;
	for (int i = 0; i < RECEIVES; i++)
		post_receive(&e);
	step_timeout_say(&shared_steps->is_there[TARGET], 1);
	connect_peer(&e, &shared_steps->writer[1], &shared_steps->writer[0]);
	connect_peer(&beside, &shared_steps->sender[1],
		     &shared_steps->sender[0]);
	meet_all(TARGET);
	/* An atomic load reads the byte again at each turn; no other load
	 * depends on its order. */
	while (!__atomic_load_n(bytes, __ATOMIC_ACQUIRE))
		usleep(100);
	usleep((useconds_t)(round * 7919 % 3000));
	step_timeout_say(&shared_steps->order, STOP);
	step_timeout_await(&shared_steps->order, IS_STOPPED);
	step_timeout_watch("the target waits for the stopped writer");
	serve_sender(&beside);
	part_from(&e, mr);
	check_kept(bytes);
	alarm(0);
	endpoint_close(&beside);
}

static pid_t start_child(enum who who, int round)
{
	pid_t pid = step_timeout_fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	switch (who) {
	case WRITER:
		be_writer();
		break;
	case SENDER:
		be_sender();
		break;
	case TARGET:
		be_target(round);
		break;
	case WHO:
		break;
	}
	_exit(0);
}

static int await_child(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

static bool is_over(pid_t pid)
{
	siginfo_t info = {0};

	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	return info.si_pid == pid;
}

/* Waits until the target has given this order, or has ended. */
static void await_target(int order, pid_t target)
{
	while (step_timeout_look(&shared_steps->order) != order &&
	       !is_over(target))
		usleep(100);
}

static void stop_child(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		step_timeout_fail("the writer does not stop");
}

/*
 * Returns whether pc is in a copy to mapped memory: at the copying instruction,
 * or at the abort handler of a restartable sequence, before which the kernel
 * expects a signature.
 */
static bool is_in_mapped_copy(pid_t pid, uint64_t pc)
{
	static const uint8_t copy[] = {0xf3, 0xa4};
	static const uint8_t mark[] = {0x0f, 0xb9, 0x3d, 0x53,
				       0x30, 0x05, 0x53};
	uint8_t code[sizeof(mark) + sizeof(copy)];
	struct iovec to = {code, sizeof(code)};
	struct iovec from = {(void *)(uintptr_t)(pc - sizeof(mark)),
			     sizeof(code)};

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof(code) &&
	       (!memcmp(code, mark, sizeof(mark)) ||
		!memcmp(code + sizeof(mark), copy, sizeof(copy)));
}

/* Returns whether a thread of a process is in a copy to mapped memory, or in
 * process_vm_writev. */
static bool is_copying(pid_t pid)
{
	char pattern[64];
	bool copies = false;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/syscall", (int)pid);
	if (glob(pattern, 0, NULL, &found))
		return false;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *f = fopen(found.gl_pathv[i], "r");
		uint64_t pc;
		int call = -1;

		if (f && fscanf(f, "%d %*x %" SCNx64, &call, &pc) == 2)
			copies |= call == -1 && is_in_mapped_copy(pid, pc);
		copies |= call == SYS_process_vm_writev;
		if (f)
			fclose(f);
	}
	globfree(&found);
	return copies;
}

/* Returns how many nanoseconds of processor time the threads of a process have
 * used. */
static uint64_t run_time_of(pid_t pid)
{
	unsigned long long sum = 0;
	char pattern[64];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/schedstat",
		 (int)pid);
	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *f = fopen(found.gl_pathv[i], "r");
		unsigned long long ns = 0;

		if (f && fscanf(f, "%llu", &ns) == 1)
			sum += ns;
		if (f)
			fclose(f);
	}
	globfree(&found);
	return sum;
}

/* Continues a stopped process until the process has used A_WHILE_NS of
 * processor time, or has ended. */
static void let_run(pid_t pid)
{
	uint64_t began = run_time_of(pid);

	kill(pid, SIGCONT);
	while (run_time_of(pid) - began < A_WHILE_NS && !is_over(pid))
		usleep(100);
}

/* Runs one round.  Returns 0 if all three processes succeeded. */
static int stop_one_writer(int round, bool is_direct)
{
	pid_t pid[WHO];
	int bad;

	memset(shared_steps, 0, sizeof(*shared_steps));
	for (int i = 0; i < WHO; i++)
		pid[i] = start_child((enum who)i, round);
	await_target(STOP, pid[TARGET]);
	stop_child(pid[WRITER]);
	while (is_direct && !is_copying(pid[WRITER])) {
		let_run(pid[WRITER]);
		stop_child(pid[WRITER]);
	}
	step_timeout_say(&shared_steps->order, IS_STOPPED);
	await_target(CONTINUE, pid[TARGET]);
	kill(pid[WRITER], SIGCONT);
	bad = await_child(pid[TARGET]);
	for (int i = 0; bad && i < TARGET; i++)
		kill(pid[i], SIGKILL);
	bad |= await_child(pid[SENDER]);
	return await_child(pid[WRITER]) || bad;
}

int main(int argc, char **argv)
{
	static const char *const ways[] = {"direct", "packets", NULL};
	int n, bad = 0;

	if (argc != 3 || !argument_number(argv[1], 1, &n) ||
	    !argument_is(argv[2], ways)) {
		fprintf(stderr, "usage: stopped_peer ROUNDS direct|packets\n");
		return 2;
	}
	shared_steps = step_timeout_share(sizeof(*shared_steps));
	for (int i = 0; i < n && !bad; i++)
		bad = stop_one_writer(i, !strcmp(argv[2], "direct"));
	return bad != 0;
}
