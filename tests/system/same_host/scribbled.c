/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scribbled TIMES SEED
 *
 * Two processes of one host work in each other's memory.  The hostile process
 * writes random values into the shared part of the honest process's arena, or
 * into its own arena, in which the honest process executes requests.  All calls
 * of the honest process must return, it must be able to close all its objects,
 * no byte beside its region may change, and no signal may kill it.  The hostile
 * process must not be able to map the private part of the honest process's
 * arena for writing.  Exits with 0, or prints what is wrong.  TIMES 1 with the
 * seed of a round repeats that round.
 */
#include "step_timeout.h"
#include "argument.h"
#include "endpoint.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HONEST, HOSTILE };
enum {
	MAPS = 8,      /* most parts of arenas that are looked at */
	WORDS = 20000, /* words that scribble_words() looks at */
	PAGE = 4096,
	SECONDS = 300, /* SIGALRM ends an honest process that runs longer */
	WRITABLE = 3   /* exit status: a private part can be mapped */
};

/* Shared by both processes and their parent. */
static struct shared_steps {
	struct endpoint_address address[2]; /* one of each process */
	/* is_there: the process's address is in address[].  is_ready: the
	 * process is connected.  has_worked: the process has posted requests.
	 */
	int is_there[2], is_ready[2], has_worked[2];
	int is_over; /* the hostile process has ended */
} * shared_steps;

static struct endpoint me;
static uint64_t state;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* A part of an arena that is mapped in this process. */
struct area {
	uint8_t *at;
	size_t bytes;
};

static int find_areas(const char *name, struct area *area)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (f && n < MAPS && fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (strstr(line, name) &&
		    sscanf(line, "%lx-%lx", &from, &to) == 2)
			area[n++] = (struct area){(uint8_t *)from, to - from};
	}
	if (f)
		fclose(f);
	return n;
}

static struct area own; /* the shared part of this process's arena */

static void meet_peer(int who)
{
	struct area area[MAPS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	endpoint_open(&me, IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
	if (find_areas("adverb-shared", area) != 1)
		step_timeout_fail("not one shared part of an arena is mapped");
	own = area[0];
	endpoint_address_get(&me, &shared_steps->address[who]);
	step_timeout_say(&shared_steps->is_there[who], 1);
	step_timeout_await(&shared_steps->is_there[!who], 1);
	endpoint_to_rtr(&me, &shared_steps->address[!who]);
	endpoint_to_rts(&me, &shared_steps->address[who], 7);
	step_timeout_say(&shared_steps->is_ready[who], 1);
	step_timeout_await(&shared_steps->is_ready[!who], 1);
}

/* Posts a request to the other process.  Returns false if the send queue is
 * full or takes no more requests. */
static bool post_send(int who, enum ibv_wr_opcode op, uint32_t bytes)
{
	const struct endpoint_address *far = &shared_steps->address[!who];
	struct ibv_sge sge = {(uintptr_t)me.region, bytes, me.mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = op,
				       .send_flags = IBV_SEND_SIGNALED};

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = far->region;
		wr.wr.atomic.rkey = far->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = far->region + bytes;
		wr.wr.rdma.rkey = far->rkey;
	}
	return !ibv_post_send(me.qp, &wr, &bad);
}

static void post_receive(void)
{
	struct ibv_sge sge = {(uintptr_t)me.region, ENDPOINT_SIZE, me.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	ibv_post_recv(me.qp, &wr, &bad);
}

static void work_once(int who)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD};
	uint64_t random = next_random();
	struct ibv_wc wc[16];

	for (int i = 0; i < 4; i++)
		post_receive();
	for (int i = 0; i < 4; i++)
		post_send(who, ops[(random >> 8 * i) % 5],
			  (uint32_t)(random >> 40) % (ENDPOINT_SIZE / 2));
	ibv_poll_cq(me.cq, 16, wc);
	step_timeout_say(&shared_steps->has_worked[who], 1);
}

/* Works while the hostile process runs, and works on after it has ended.
 * Returns 0; after a failure ends this process. */
static int be_honest(void)
{
	alarm(SECONDS);
	meet_peer(HONEST);
	while (!step_timeout_look(&shared_steps->is_over))
		work_once(HONEST);
	for (int i = 0; i < 1000; i++)
		work_once(HONEST);
	if (!endpoint_guarded(&me))
		step_timeout_fail("a byte beside the region has changed");
	endpoint_close(&me);
	return 0;
}

/* Changes random words in those pages of an arena that exist: most of an arena
 * is holes. */
static void scribble_words(const struct area *a)
{
	size_t pages = a->bytes / PAGE, count = 0;
	unsigned char *is_there = malloc(pages);
	uint32_t *used = malloc(pages * sizeof(*used));

	if (!is_there || !used || mincore(a->at, a->bytes, is_there))
		step_timeout_die("mincore");
	for (size_t i = 0; i < pages; i++)
		if (is_there[i] & 1)
			used[count++] = (uint32_t)i;
	for (int i = 0; count && i < WORDS; i++) {
		uint64_t random = next_random();
		_Atomic uint32_t *word =
			(_Atomic uint32_t *)(a->at +
					     (size_t)PAGE *
						     used[random % count]) +
			(random >> 32) % (PAGE / 4);

		/* Change few of the words that are 0. */
		if (!*word && random >> 60)
			continue;
		switch (random >> 52 & 3) {
		case 0:
			*word ^= 1u << (random >> 44 & 31);
			break;
		case 1:
			*word = (uint32_t)random;
			break;
		case 2:
			*word += (uint32_t)(random >> 44 & 7) - 4;
			break;
		default:
			*word = random >> 50 & 1 ? UINT32_MAX : 0;
			break;
		}
	}
	free(is_there);
	free(used);
}

/* Tries to map the private part of a process's arena for writing, by that
 * process's descriptors in /proc.  If that succeeds, ends this process with the
 * status WRITABLE. */
static void try_to_map(pid_t pid)
{
	char folder[32], path[64], target[64];
	struct dirent *e;
	DIR *d;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	d = opendir(folder);
	while (d && (e = readdir(d))) {
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "%s/%.16s", folder, e->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		fd = strstr(target, "adverb-arena") ? open(path, O_RDWR) : -1;
		if (fd >= 0 && mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				    MAP_SHARED, fd, 0) != MAP_FAILED)
			_exit(WRITABLE);
	}
}

/* Runs the hostile process, which writes random values into the arena of
 * process `other`, or, if `into_own`, into its own arena.  In the second case a
 * signal may kill the hostile process. */
static void be_hostile(bool into_own, pid_t other)
{
	struct area area[MAPS];
	int n;

	meet_peer(HOSTILE);
	do
		work_once(HOSTILE);
	while ((n = find_areas("adverb-shared", area)) < 2 ||
	       !step_timeout_look(&shared_steps->has_worked[HONEST]));
	try_to_map(other);
	for (int i = 0; i < n; i++)
		if ((area[i].at == own.at) == into_own)
			scribble_words(&area[i]);
	n = into_own ? find_areas("adverb-arena", area) : 0;
	for (int i = 0; i < n; i++)
		if (area[i].at + area[i].bytes == own.at)
			scribble_words(&area[i]);
}

/* Waits until one of the two processes has ended.  The honest process ends
 * first only if it fails.  The hostile process could then wait for it for ever,
 * so the hostile process is killed. */
static void await_first_end(pid_t honest, pid_t hostile)
{
	siginfo_t info = {0};

	if (!waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) &&
	    info.si_pid == honest)
		kill(hostile, SIGKILL);
}

static int end_of(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return status;
}

static int run_round(int seed)
{
	pid_t honest, hostile;
	int of_hostile, bad;

	memset(shared_steps, 0, sizeof(*shared_steps));
	state = 88172645463325252ull + (uint64_t)seed * 7919;
	honest = step_timeout_fork();
	if (!honest)
		_exit(be_honest());
	hostile = step_timeout_fork();
	if (!hostile) {
		be_hostile(seed & 1, honest);
		_exit(0);
	}
	await_first_end(honest, hostile);
	of_hostile = end_of(hostile);
	step_timeout_say(&shared_steps->is_over, 1);
	if (WIFEXITED(of_hostile) && WEXITSTATUS(of_hostile)) {
		printf("seed %d: %s\n", seed,
		       WEXITSTATUS(of_hostile) == WRITABLE
			       ? "the private part of an arena can be mapped for writing"
			       : "the hostile process failed before it wrote");
		/* The honest process may wait for the hostile one. */
		kill(honest, SIGKILL);
		end_of(honest);
		return 1;
	}
	bad = end_of(honest);
	if (bad)
		printf("seed %d: the honest process ended by signal %d, code %d\n",
		       seed, WTERMSIG(bad), WEXITSTATUS(bad));
	return bad;
}

int main(int argc, char **argv)
{
	int times, seed, bad = 0;

	if (argc != 3 || !argument_number(argv[1], 1, &times) ||
	    !argument_number(argv[2], 0, &seed)) {
		fprintf(stderr, "usage: scribbled TIMES SEED\n");
		return 2;
	}
	shared_steps = step_timeout_share(sizeof(*shared_steps));
	setenv("ADVERB_EXPLAIN", "0", 1); /* many calls fail */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < times; i++)
		bad += run_round(seed + i) != 0;
	return bad != 0;
}
