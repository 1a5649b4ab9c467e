/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mapped KIND: an initiator writes and reads memory of a target.  Unless KIND
 * is dm, the initiator also sends a message that the target receives in this
 * memory.  Unless KIND is remapped or cut, a seccomp filter kills the initiator
 * if the initiator copies by a system call after its first WRITE.  KIND selects
 * the target's memory and the expected result:
 *	memfd	a memfd that the target has open: no system call copies
 *	shm	a file of /dev/shm that the target has closed: no system call
 *		copies
 *	dm	device memory: no system call copies
 *	private	a private mapping of a memfd: a system call copies, the filter
 *		kills the initiator, exit status 3
 *	lost	a memfd that the target has closed: as with a private mapping,
 *		exit status 3
 *	remapped
 *		a half of the memory becomes private and is registered again,
 *		while the other half stays: WRITEs to the new half must not go
 *		to the file
 *	cut	the file becomes shorter: a WRITE past its end fails with an
 *		error
 *
 *	target: opens the memory	initiator: one WRITE, then the filter,
 *		checks the bytes		many sizes, compares the bytes
 * Exits with 0; with 2 if KIND is another word; with 3 if the filter killed a
 * process; or else prints what is wrong and exits with 1.
 */
#include "step_timeout.h"
#include "argument.h"
#include "endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BYTES = 256 << 10,	/* bytes of the memory at each end */
	PART = BYTES / 2,	/* a half of the memory */
	SEND_AT = BYTES - 8192, /* where the receive is */
	MANY = 512		/* pieces of device memory */
};

#define RIGHTS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                    \
	 IBV_ACCESS_REMOTE_READ)

/* Shared by both processes and their parent. */
static struct shared_steps {
	struct endpoint_address address[2]; /* one of each process */
	/* is_there: the process's address is in address[].  is_ready: the
	 * process is connected.  step: 1, the initiator's requests have ended;
	 * 2, the target has checked its memory; 3, a half is remapped; 4, the
	 * WRITEs after that have ended; 5, the initiator has destroyed its
	 * queue pair. */
	int is_there[2], is_ready[2], step;
	/* the target's memory; more_: the half that is not remapped */
	uint64_t va, more_va;
	uint32_t rkey, more_rkey;
} * shared_steps;

enum { TARGET, INITIATOR };

static struct endpoint me;
static const char *kind;
static uint8_t *memory; /* the target's, or the initiator's */
static struct ibv_mr *mr;
static struct ibv_dm *dm;
static int file = -1;

static void end_failed(const char *what, unsigned at)
{
	printf("%s: %s, at %u\n", kind, what, at);
	fflush(stdout);
	_exit(1);
}

static bool is_kind(const char *name)
{
	return !strcmp(kind, name);
}

static void meet_peer(int who)
{
	step_timeout_say(&shared_steps->is_there[who], 1);
	step_timeout_await(&shared_steps->is_there[!who], 1);
	endpoint_to_rtr(&me, &shared_steps->address[!who]);
	endpoint_to_rts(&me, &shared_steps->address[who], 7);
	step_timeout_say(&shared_steps->is_ready[who], 1);
	step_timeout_await(&shared_steps->is_ready[!who], 1);
}

/* ---- the target ---- */

static char path[64]; /* the file of kind shm */

static int open_file(void)
{
	if (!is_kind("shm"))
		return memfd_create("mapped", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/dev/shm/adverb-mapped.%d", getpid());
	return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static void *map_private(void *at)
{
	return mmap(at, PART, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void open_memory(void)
{
	int flags = MAP_SHARED;

	file = open_file();
	if (file < 0 || ftruncate(file, BYTES))
		step_timeout_die("a file");
	if (is_kind("private"))
		flags = MAP_PRIVATE;
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, file, 0);
	if (memory == MAP_FAILED)
		step_timeout_die("mmap");
	if (is_kind("lost") || is_kind("shm"))
		close(file);
	mr = ibv_reg_mr(me.pd, memory, BYTES, RIGHTS);
	if (is_kind("shm"))
		unlink(path);
	if (!mr)
		step_timeout_die("reg_mr");
	shared_steps->va = (uintptr_t)memory;
	shared_steps->rkey = mr->rkey;
}

/* Allocates more pieces of device memory, each a memfd, than the process may
 * have descriptors. */
static void go_through_many(void)
{
	struct rlimit few = {MANY / 2, MANY / 2}, before;
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_dm *all[MANY];

	getrlimit(RLIMIT_NOFILE, &before);
	few.rlim_max = before.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &few))
		step_timeout_die("setrlimit");
	for (unsigned i = 0; i < MANY; i++) {
		all[i] = ibv_alloc_dm(me.ctx, &attr);
		if (!all[i])
			end_failed("ibv_alloc_dm fails", i);
	}
	for (unsigned i = 0; i < MANY; i++)
		ibv_free_dm(all[i]);
	setrlimit(RLIMIT_NOFILE, &before);
}

static void open_dm(void)
{
	struct ibv_alloc_dm_attr attr = {.length = BYTES};

	go_through_many();
	dm = ibv_alloc_dm(me.ctx, &attr);
	mr = dm ? ibv_reg_dm_mr(me.pd, dm, 0, BYTES,
				RIGHTS | IBV_ACCESS_ZERO_BASED)
		: NULL;
	if (!mr)
		step_timeout_die("device memory");
	memory = malloc(BYTES);
	shared_steps->va = 0;
	shared_steps->rkey = mr->rkey;
}

/* Expects that each byte before those of the receive has `value`, which was
 * written last. */
static void check_memory(uint8_t value)
{
	if (dm && ibv_memcpy_from_dm(memory, dm, 0, BYTES))
		step_timeout_die("memcpy_from_dm");
	for (unsigned i = 0; i < SEND_AT; i++)
		if (memory[i] != value)
			end_failed("the memory lacks the last WRITE", i);
}

/* Registers each half of the memory, then maps private memory in the place of
 * the second half and registers the private memory.  Waits for the WRITEs, and
 * checks both halves and the file. */
static void remap_memory(void)
{
	struct ibv_mr *more = ibv_reg_mr(me.pd, memory, PART, RIGHTS);
	const uint8_t *before;

	ibv_dereg_mr(mr);
	mr = ibv_reg_mr(me.pd, memory + PART, PART, RIGHTS);
	if (!more || !mr || ibv_dereg_mr(mr) ||
	    map_private(memory + PART) == MAP_FAILED)
		step_timeout_die("other memory");
	mr = ibv_reg_mr(me.pd, memory + PART, PART, RIGHTS);
	if (!mr)
		step_timeout_die("reg_mr again");
	shared_steps->va = (uintptr_t)memory + PART;
	shared_steps->rkey = mr->rkey;
	shared_steps->more_va = (uintptr_t)memory;
	shared_steps->more_rkey = more->rkey;
	step_timeout_say(&shared_steps->step, 3);
	step_timeout_await(&shared_steps->step, 4);
	before = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
	for (unsigned i = 0; i < PART; i++)
		if (memory[i] != 5 || memory[PART + i] != 6 || before[i] != 5 ||
		    before[PART + i] == 6)
			end_failed("a WRITE is missing, or is in the old file",
				   i);
}

static void post_receive(void)
{
	struct ibv_sge sge = {(uintptr_t)memory + SEND_AT, 8192, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if ((errno = ibv_post_recv(me.qp, &wr, &bad)))
		step_timeout_die("post_recv");
}

static void be_target(void)
{
	struct ibv_wc wc;

	endpoint_open(&me, IBV_ACCESS_LOCAL_WRITE, ENDPOINT_ALL_REMOTE);
	if (is_kind("dm"))
		open_dm();
	else
		open_memory();
	if (!dm)
		post_receive();
	endpoint_address_get(&me, &shared_steps->address[TARGET]);
	meet_peer(TARGET);
	step_timeout_await(&shared_steps->step, 1);
	check_memory(4);
	if (!dm && (!endpoint_wait(&me, &wc) || wc.status ||
		    memory[SEND_AT + 4000] != 9))
		end_failed("the receive failed or has other bytes", SEND_AT);
	if (is_kind("cut") && ftruncate(file, 4096))
		step_timeout_die("ftruncate");
	if (is_kind("remapped"))
		remap_memory();
	step_timeout_say(&shared_steps->step, 2);
	step_timeout_await(&shared_steps->step, 5);
}

/* ---- the initiator ---- */

static enum ibv_wc_status run_request(enum ibv_wr_opcode opcode, uint64_t at,
				      uint32_t rkey, uint32_t from,
				      uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)memory + from, bytes, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = opcode,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = at;
	wr.wr.rdma.rkey = rkey;
	if ((errno = ibv_post_send(me.qp, &wr, &bad)))
		step_timeout_die("post_send");
	if (!endpoint_wait(&me, &wc))
		end_failed("no completion", bytes);
	return wc.status;
}

static void must_succeed(enum ibv_wr_opcode opcode, uint64_t at, uint32_t from,
			 uint32_t bytes)
{
	if (run_request(opcode, shared_steps->va + at, shared_steps->rkey, from,
			bytes))
		end_failed("a request failed", bytes);
}

/* From now on a system call that copies to or from another process kills this
 * process, whichever thread makes the call. */
static void forbid_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1,
			 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]),
				     filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_TSYNC, &program))
		step_timeout_die("seccomp");
}

static bool has_value(const uint8_t *m, uint8_t value, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (m[i] != value)
			return false;
	return true;
}

static void write_and_read(uint32_t bytes, uint8_t value)
{
	memset(memory, value, bytes);
	must_succeed(IBV_WR_RDMA_WRITE, 1, 0, bytes);
	memset(memory + PART, 0, bytes + 2);
	must_succeed(IBV_WR_RDMA_READ, 0, PART, bytes + 2);
	if (!has_value(memory + PART + 1, value, bytes) ||
	    memory[PART] == value || memory[PART + bytes + 1] == value)
		end_failed("a READ gives other bytes than were written", bytes);
}

static void go_through_sizes(void)
{
	for (uint32_t n = 1; n < 70; n++)
		write_and_read(n, (uint8_t)(n % 3 + 1));
	for (uint32_t n = 128; n < PART - 2; n = n * 3 + 1)
		write_and_read(n, (uint8_t)(n % 3 + 1));
}

static void go_on(void)
{
	if (is_kind("remapped")) {
		step_timeout_await(&shared_steps->step, 3);
		memset(memory, 6, PART);
		must_succeed(IBV_WR_RDMA_WRITE, 0, 0, PART);
		memset(memory, 5, PART);
		if (run_request(IBV_WR_RDMA_WRITE, shared_steps->more_va,
				shared_steps->more_rkey, 0, PART))
			end_failed("a WRITE to the half that stayed failed", 0);
		step_timeout_say(&shared_steps->step, 4);
	}
	step_timeout_await(&shared_steps->step, 2);
	if (!is_kind("cut"))
		return;
	must_succeed(IBV_WR_RDMA_WRITE, 0, 0, 4096);
	if (run_request(IBV_WR_RDMA_WRITE, shared_steps->va, shared_steps->rkey,
			0, 8192) != IBV_WC_REM_OP_ERR)
		end_failed("a WRITE past the end of the file succeeds", 4096);
}

/* When the last QP between both processes is destroyed, the target's memory
 * must not be mapped any more. */
static void look_at_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4400];

	if (!f)
		step_timeout_die("/proc/self/maps");
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "memfd:mapped") ||
		    strstr(line, "memfd:adverb-dm") ||
		    strstr(line, "/dev/shm/adverb-mapped"))
			end_failed("the memory is still mapped", 0);
	fclose(f);
}

static void be_initiator(void)
{
	bool is_free = is_kind("remapped") || is_kind("cut");

	endpoint_open(&me, IBV_ACCESS_LOCAL_WRITE, 0);
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = ibv_reg_mr(me.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		step_timeout_die("reg_mr");
	endpoint_address_get(&me, &shared_steps->address[INITIATOR]);
	meet_peer(INITIATOR);
	must_succeed(IBV_WR_RDMA_WRITE, 0, 0, 8);
	if (!is_free)
		forbid_calls();
	go_through_sizes();
	memset(memory, 4, SEND_AT);
	must_succeed(IBV_WR_RDMA_WRITE, 0, 0, SEND_AT);
	memset(memory, 9, 8192);
	if (!is_kind("dm"))
		must_succeed(IBV_WR_SEND, 0, 0, 8192);
	step_timeout_say(&shared_steps->step, 1);
	go_on();
	if (ibv_destroy_qp(me.qp))
		step_timeout_die("destroy_qp");
	look_at_maps();
	step_timeout_say(&shared_steps->step, 5);
}

static pid_t start_child(void (*what)(void))
{
	pid_t pid = step_timeout_fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		what();
		_exit(0);
	}
	return pid;
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"memfd",   "shm",  "dm",
					    "private", "lost", "remapped",
					    "cut",     NULL};
	int status, bad = 0;
	pid_t pid[2];

	if (argc != 2 || !argument_is(argv[1], kinds)) {
		fprintf(stderr, "usage: mapped memfd|shm|dm|private|lost|"
				"remapped|cut\n");
		return 2;
	}
	shared_steps = step_timeout_share(sizeof(*shared_steps));
	kind = argv[1];
	pid[TARGET] = start_child(be_target);
	pid[INITIATOR] = start_child(be_initiator);
	for (int n = 0; n < 2; n++) {
		pid_t first = waitpid(-1, &status, 0);

		if (bad || !status)
			continue;
		bad = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? 3 : 1;
		/* The other process would wait for the failed process. */
		if (!n)
			kill(pid[first == pid[TARGET]], SIGKILL);
	}
	return bad;
}
