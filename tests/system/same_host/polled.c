/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polled [-n ROUNDS] [-l LEAST] [-t SECONDS] [-s BYTES] [-m] [-x]: tests, by
 * public verbs alone, that a process which polls the last byte of an RDMA WRITE
 * never sees that byte before the other bytes.
 *
 *	writer: slot r % SLOTS := v	reader: waits until the last byte is v
 *	        at most SLOTS ahead	        checks that each other byte is v
 *
 * r is the number of a round, and v is the value of that round (value_of).
 * The reader takes no completion, and mostly polls before the WRITE begins.
 * When the reader has seen the last byte, it checks a random byte, then the
 * bytes just before the last byte, and then the other bytes.  WRITEs are in
 * turn inline, of one SGE and of two; they begin anywhere in a cache line.  The
 * sizes are all powers of two from 1 byte to 64 KiB, one byte less and more
 * than these, but no more than 64 KiB, and a few others.  Each size has ROUNDS
 * rounds.
 *
 * -t: ends after SECONDS, but not before LEAST rounds of each size.  -m: writes
 * into memory that both processes have mapped.  -s: tests one size.  -x: writes
 * the last byte first, so that the reader must find stale bytes.  Prints a line
 * per size, and the sums.  Exits with 1 if any byte was stale or a call failed,
 * with 2 if an argument is wrong.
 */
#include "step_timeout.h"
#include "endpoint.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum {
	MAX = 65536,	      /* bytes of the longest WRITE */
	SLOTS = 16,	      /* by so many rounds the writer may be ahead */
	SLOT = MAX + 8192,    /* bytes */
	SIGNALED = SLOTS / 4, /* one WRITE in so many is signaled */
	INLINE = 64,	      /* bytes of the longest inline WRITE */
	SPINS = 2000,	      /* looks before a process yields its core */
	LOOKS = 128,	      /* bytes looked at one by one */
	SIZES = 80,	      /* room for sizes */
	A_WHILE = 256,	      /* rounds between looks at the clock */
};

enum { WRITER, READER };

struct place {
	uint32_t at, bytes; /* in the region */
};

/* Shared by writer and reader.  The fields that the writer changes in each
 * round, asked and place, share no cache line with those that the reader
 * changes in each round, seen and stale. */
static struct shared_steps {
	struct endpoint_address address[2];
	int is_there[2], is_ready[2];
	int size; /* the index, plus 1, of the size that is written */
	/* the value of `size` for which the reader has cleared its memory */
	int wiped;
	_Alignas(64) int asked; /* rounds whose places are known */
	struct place place[SLOTS];
	_Alignas(64) int seen; /* rounds that have been looked at */
	unsigned long long stale;
} * shared_steps;

static struct endpoint me;
static uint8_t *memory; /* this end's SLOTS slots of SLOT bytes */
static struct ibv_mr *mr;
static bool is_mapped; /* -m */
static bool is_wrong;  /* -x */

static void yield_at_times(unsigned *tries)
{
	if (++*tries % SPINS == 0)
		sched_yield();
}

static uint8_t value_of(int round)
{
	return (uint8_t)(round % 251 + 1);
}

static void meet_peer(int who)
{
	struct endpoint_address *a = &shared_steps->address[who];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (who == WRITER || !is_mapped)
		memory = endpoint_memory((size_t)SLOTS * SLOT);
	endpoint_open(&me, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE);
	endpoint_replace_qp(
		&me,
		ibv_create_qp(me.pd,
			      &(struct ibv_qp_init_attr){
				      .send_cq = me.cq,
				      .recv_cq = me.cq,
				      .qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 2 * SLOTS,
					      .max_recv_wr = 1,
					      .max_send_sge = 2,
					      .max_recv_sge = 1,
					      .max_inline_data = INLINE}}),
		IBV_ACCESS_REMOTE_WRITE);
	mr = ibv_reg_mr(me.pd, memory, (size_t)SLOTS * SLOT,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		step_timeout_die("reg_mr");
	endpoint_address_get(&me, a);
	a->region = (uintptr_t)memory;
	a->rkey = mr->rkey;
	step_timeout_say(&shared_steps->is_there[who], 1);
	step_timeout_await(&shared_steps->is_there[!who], 1);
	endpoint_to_rtr(&me, &shared_steps->address[!who]);
	endpoint_to_rts(&me, a, 7);
	step_timeout_say(&shared_steps->is_ready[who], 1);
	step_timeout_await(&shared_steps->is_ready[!who], 1);
}

/* ---- the reader ---- */

/* Returns whether any of the bytes at m is not k: looks at byte chance % bytes
 * first, then at the last LOOKS bytes, then at the others. */
static bool is_stale(const volatile uint8_t *m, uint32_t bytes, uint32_t chance,
		     uint8_t k)
{
	const uint8_t *all = (const uint8_t *)(uintptr_t)m;
	uint32_t left = bytes;

	if (bytes && m[chance % bytes] != k)
		return true;
	for (; left && bytes - left < LOOKS; left--)
		if (m[left - 1] != k)
			return true;
	/* The fence orders the single loads before the loads of memcmp.  If the
	 * compiler moved memcmp forward, the single loads would come later,
	 * when bytes that were stale may have arrived. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return left && (all[0] != k || memcmp(all, all + 1, left - 1) != 0);
}

/* Clears the memory before the rounds of a size, so that no byte of another
 * size's rounds is taken for a new byte. */
static void clear_memory(int size)
{
	if (shared_steps->wiped == size)
		return;
	memset(memory, 0, (size_t)SLOTS * SLOT);
	step_timeout_say(&shared_steps->wiped, size);
}

static void read_on(void)
{
	uint32_t chance = 1;

	meet_peer(READER);
	for (int round = 1;; round++) {
		const struct place *p = &shared_steps->place[round % SLOTS];
		const uint8_t *m;
		unsigned tries = 0;

		chance = chance * 1664525 + 1013904223;
		while (step_timeout_look(&shared_steps->asked) < round) {
			clear_memory(step_timeout_look(&shared_steps->size));
			yield_at_times(&tries);
		}
		m = memory + p->at;
		/* Acquire: the loads of the other bytes come after the load
		 * that sees the last byte; else this program itself could read
		 * a stale byte. */
		while (__atomic_load_n(&m[p->bytes - 1], __ATOMIC_ACQUIRE) !=
		       value_of(round))
			yield_at_times(&tries);
		if (is_stale(m, p->bytes - 1, chance >> 8, value_of(round)))
			shared_steps->stale++;
		step_timeout_say(&shared_steps->seen, round);
	}
}

/* ---- the writer ---- */

static int posted, signaled; /* rounds; completions outstanding */

static void await_completion(void)
{
	struct ibv_wc wc;

	if (!endpoint_wait(&me, &wc))
		step_timeout_fail("a WRITE has not completed");
	if (wc.status)
		step_timeout_fail(ibv_wc_status_str(wc.status));
	signaled--;
}

static void post_write(const struct place *p)
{
	uint32_t first = p->bytes > 2 && posted % 3 == 2 ? p->bytes / 3 : 0;
	uint64_t from = (uintptr_t)memory + p->at;
	struct ibv_sge sge[2] = {{from, first, mr->lkey},
				 {from + first, p->bytes - first, mr->lkey}};
	struct ibv_send_wr *bad, wr = {.sg_list = first ? sge : sge + 1,
				       .num_sge = first ? 2 : 1,
				       .opcode = IBV_WR_RDMA_WRITE};

	if (p->bytes <= INLINE && posted % 3 == 1)
		wr.send_flags |= IBV_SEND_INLINE;
	if (posted % SIGNALED == 0) {
		wr.send_flags |= IBV_SEND_SIGNALED;
		signaled++;
	}
	wr.wr.rdma.remote_addr = shared_steps->address[READER].region + p->at;
	wr.wr.rdma.rkey = shared_steps->address[READER].rkey;
	if ((errno = ibv_post_send(me.qp, &wr, &bad)))
		step_timeout_die("post_send");
}

static void write_one(uint32_t bytes)
{
	int round = ++posted;
	unsigned tries = 0;
	uint32_t slot = (uint32_t)round % SLOTS;
	/* Each slot has 8 places, so the last byte of a place is written again
	 * after 128 rounds, with another value: values repeat after 251. */
	struct place last,
		p = {slot * SLOT + 4096 - 64 + (uint32_t)round * 7 % 128,
		     bytes};

	while (step_timeout_look(&shared_steps->seen) < round - SLOTS)
		yield_at_times(&tries);
	while (signaled > SLOTS / SIGNALED - 1)
		await_completion();
	memset(memory + p.at, value_of(round), bytes);
	shared_steps->place[slot] = p;
	step_timeout_say(&shared_steps->asked, round);
	last = (struct place){p.at + bytes - 1, 1};
	if (is_wrong)
		post_write(&last);
	while (is_wrong && step_timeout_look(&shared_steps->seen) < round)
		yield_at_times(&tries);
	post_write(&p);
}

/* Waits until all WRITEs have completed and the reader has seen them. */
static void await_all(void)
{
	unsigned tries = 0;

	while (signaled)
		await_completion();
	while (step_timeout_look(&shared_steps->seen) < posted)
		yield_at_times(&tries);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* When the rounds of a size end. */
struct bounds {
	int rounds, least; /* how many rounds at most, and at least */
	/* 0: no time limit.  Before write_all: the time limit of all sizes, in
	 * seconds.  In write_all: the time of CLOCK_MONOTONIC, in seconds, at
	 * which this limit ends. */
	double end_s;
};

/* Runs the rounds of a size; `left` sizes share the time that is left.  Returns
 * how many rounds there were. */
static int run_rounds(uint32_t bytes, const struct bounds *b, int left)
{
	double began = now_s(), share = (b->end_s - began) / left;
	int round = 0;

	for (; round < b->rounds; round++) {
		if (b->end_s > 0 && round >= b->least && round % A_WHILE == 0 &&
		    now_s() - began >= share)
			break;
		write_one(bytes);
	}
	await_all();
	return round;
}

static int list_sizes(uint32_t only, uint32_t size[SIZES])
{
	static const uint32_t odd[] = {11, 100, 1000, 1500, 5003, 10007, 50021};
	int n = 0;

	if (only) {
		size[0] = only;
		return 1;
	}
	for (uint32_t s = 1; s <= MAX; s *= 2) {
		if (s > 4)
			size[n++] = s - 1;
		size[n++] = s;
		if (s > 1 && s < MAX)
			size[n++] = s + 1;
	}
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		size[n++] = odd[i];
	return n;
}

static int write_all(uint32_t only, struct bounds *b)
{
	unsigned long long rounds = 0, bytes = 0;
	uint32_t size[SIZES];
	int n = list_sizes(only, size), at_once = 0;

	meet_peer(WRITER);
	if (b->end_s > 0)
		b->end_s += now_s();
	for (int i = 0; i < n; i++) {
		unsigned long long before = shared_steps->stale;
		int done;

		step_timeout_say(&shared_steps->size, i + 1);
		step_timeout_await(&shared_steps->wiped, i + 1);
		done = run_rounds(size[i], b, n - i);
		printf("%u bytes: %llu of %d stale\n", size[i],
		       shared_steps->stale - before, done);
		fflush(stdout);
		rounds += (unsigned)done;
		bytes += (unsigned long long)size[i] * (unsigned)done;
		at_once += done == b->rounds;
	}
	printf("%d sizes, %d of them with all %d rounds: %llu rounds, %llu MB, "
	       "%llu stale\n",
	       n, at_once, b->rounds, rounds, bytes / 1000000,
	       shared_steps->stale);
	return shared_steps->stale != 0;
}

/* The writer would wait for an ended reader for ever. */
static void fail_without_reader(int number)
{
	static const char why[] = "the reader has ended\n";

	_exit(write(1, why, sizeof(why) - 1) < 0 ? 2 : 1);
}

int main(int argc, char **argv)
{
	struct bounds b = {100000, 1000, 0};
	uint32_t only = 0;
	int option, status;
	bool is_right = true;
	pid_t reader;

	while ((option = getopt(argc, argv, "n:l:t:s:mx")) != -1) {
		if (option == 'n')
			b.rounds = atoi(optarg);
		else if (option == 'l')
			b.least = atoi(optarg);
		else if (option == 't')
			b.end_s = atof(optarg);
		else if (option == 's')
			only = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'm')
			is_mapped = true;
		else if (option == 'x')
			is_wrong = true;
		else
			is_right = false;
	}
	if (!is_right || only > MAX) {
		fprintf(stderr,
			"usage: polled [-n ROUNDS] [-l LEAST] [-t SECONDS] "
			"[-s BYTES] [-m] [-x]: at most %d bytes\n",
			MAX);
		return 2;
	}
	shared_steps = step_timeout_share(sizeof(*shared_steps));
	if (is_mapped)
		memory = step_timeout_share((size_t)SLOTS * SLOT);
	signal(SIGCHLD, fail_without_reader);
	reader = step_timeout_fork();
	if (!reader)
		read_on();
	status = write_all(only, &b);
	signal(SIGCHLD, SIG_DFL);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	return status;
}
