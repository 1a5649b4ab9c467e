/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomic_mix ROUNDS INITIATORS: tests that a remote atomic operation is atomic
 * with respect to those of other initiators, and to the atomic instructions of
 * the target.
 *
 *	initiator ... FETCH_ADD, CMP_SWAP --> words <-- __atomic_* target
 *
 * Each atomic that succeeds adds 1 to one of a few words; the value that the
 * word had before is the atomic's ticket.  No ticket may be given twice or be
 * left out, and the sums must be exact.  Each initiator does at least ROUNDS
 * atomics: 4 of each 20 are CMP_SWAP, which may fail because of another atomic.
 * The target does at most 16 atomics for each atomic of an initiator, and AHEAD
 * times 16 more.  Exits with 0, or prints what is wrong.
 */
#include "step_timeout.h"
#include "endpoint.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	WORDS = 4,
	MOST = 4,   /* initiators at most */
	DEPTH = 16, /* FETCH_ADDs outstanding */
	ROUND = DEPTH + WORDS,
	MINE = 16, /* the target's atomics for each atomic of an initiator */
	/* the number of initiators' atomics by which the target may be ahead */
	AHEAD = 4096,
};

/* Two words in one cache line, and two at the ends of a page. */
static const uint32_t word_at[WORDS] = {64, 72, 0, 4088};

/* Shared by all processes. */
static struct shared_steps {
	/* the addresses of the two ends of each connection */
	struct endpoint_address initiator[MOST], target[MOST];
	/* is_there: the initiator's address is known.  is_target: the target's
	 * addresses are known.  is_ready: 1, the target is connected to all
	 * initiators; 2, the initiators have ended.  is_done: how many
	 * initiators have ended their rounds. */
	int is_there[MOST], is_target, is_ready, is_done;
	int rounds, initiators;		    /* the arguments */
	_Alignas(64) uint64_t progress;	    /* initiators' atomics that ended */
	_Alignas(64) uint64_t taken[WORDS]; /* tickets given by each word */
	uint64_t won, lost; /* CMP_SWAPs that succeeded, and that failed */
	uint64_t tickets;   /* the most tickets that a word can give */
} * shared_steps;

static uint64_t *ticket; /* a bit for each ticket, word after word */

static void end_failed(const char *what, int word, uint64_t value)
{
	printf("%s: word %d, %llu\n", what, word, (unsigned long long)value);
	fflush(stdout);
	_exit(1);
}

/* load_count() and add_one() access counts that several processes use at once.
 * The order of these accesses matters to no other data: the final checks begin
 * after the initiators have ended, which step_timeout_await(is_ready) orders.
 */
static uint64_t load_count(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

static void add_one(uint64_t *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL);
}

/* Marks ticket `value` of word w as given: an atomic found this value there. */
static void take_ticket(int w, uint64_t value)
{
	uint64_t *words = ticket + (uint64_t)w * shared_steps->tickets / 64;
	uint64_t bit = 1ull << value % 64;

	if (value >= shared_steps->tickets)
		end_failed("no atomic can have made this value", w, value);
	/* Relaxed: the parent reads the bits when all processes have ended. */
	if (__atomic_fetch_or(&words[value / 64], bit, __ATOMIC_RELAXED) & bit)
		end_failed("two atomics found this value", w, value);
	add_one(&shared_steps->taken[w]);
}

/* ---- an initiator ---- */

struct initiator {
	struct endpoint e;
	const struct endpoint_address *target;
	uint64_t *cell;	      /* the answers to outstanding atomics */
	uint64_t last[WORDS]; /* a lower bound of each word's value */
};

static void post_atomic(struct initiator *me, int i, bool swaps)
{
	int w = i % WORDS;
	struct ibv_sge sge = {(uintptr_t)&me->cell[i], 8, me->e.mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = (uint64_t)i,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.opcode =
		swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = me->target->region + word_at[w];
	wr.wr.atomic.rkey = me->target->rkey;
	wr.wr.atomic.compare_add = swaps ? me->last[w] : 1;
	wr.wr.atomic.swap = me->last[w] + 1;
	if ((errno = ibv_post_send(me->e.qp, &wr, &bad)))
		step_timeout_die("post_send");
}

/* Waits for the next atomic.  Returns the value that it found, and the word in
 * *w. */
static uint64_t collect_atomic(struct initiator *me, int *w)
{
	struct ibv_wc wc;
	uint64_t found;

	if (!endpoint_wait(&me->e, &wc))
		step_timeout_fail("an atomic has not completed");
	if (wc.status)
		step_timeout_fail(ibv_wc_status_str(wc.status));
	*w = (int)wc.wr_id % WORDS;
	found = me->cell[wc.wr_id];
	if (found < me->last[*w])
		end_failed("an atomic found a greater value before", *w, found);
	return found;
}

static void fetch_add(struct initiator *me)
{
	for (int i = 0; i < DEPTH; i++)
		post_atomic(me, i, false);
	for (int i = 0, w; i < DEPTH; i++) {
		uint64_t found = collect_atomic(me, &w);

		take_ticket(w, found);
		me->last[w] = found + 1;
		add_one(&shared_steps->progress);
	}
}

/* Posts a CMP_SWAP to each word.  Returns how many succeeded. */
static int cmp_swap(struct initiator *me)
{
	int won = 0;

	for (int i = 0; i < WORDS; i++)
		post_atomic(me, i, true);
	for (int i = 0, w; i < WORDS; i++) {
		uint64_t found = collect_atomic(me, &w);
		bool wins = found == me->last[w];

		if (wins)
			take_ticket(w, found);
		me->last[w] = found + wins;
		won += wins;
		add_one(wins ? &shared_steps->won : &shared_steps->lost);
		add_one(&shared_steps->progress);
	}
	return won;
}

static void be_initiator(int me)
{
	struct initiator i = {.target = &shared_steps->target[me]};
	int won = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	endpoint_open(&i.e, IBV_ACCESS_LOCAL_WRITE, 0);
	i.cell = (uint64_t *)(void *)i.e.region;
	endpoint_address_get(&i.e, &shared_steps->initiator[me]);
	step_timeout_say(&shared_steps->is_there[me], 1);
	step_timeout_await(&shared_steps->is_target, 1);
	endpoint_to_rtr(&i.e, i.target);
	endpoint_to_rts(&i.e, &shared_steps->initiator[me], 7);
	step_timeout_await(&shared_steps->is_ready, 1);
	for (int n = 0; n < shared_steps->rounds; n += ROUND) {
		fetch_add(&i);
		won += cmp_swap(&i);
	}
	/* No other access depends on the order of this addition: count_up()
	 * reads is_done alone. */
	__atomic_fetch_add(&shared_steps->is_done, 1, __ATOMIC_ACQ_REL);
	/* When no other process does atomics any more, a CMP_SWAP must succeed.
	 */
	while (!won)
		won = cmp_swap(&i);
	endpoint_close(&i.e);
}

/* ---- the target ---- */

static void count_one(uint64_t *word, int w, uint64_t n)
{
	/* Relaxed: only a first guess, which the compare-exchange checks.  No
	 * access to another word depends on the order of the two atomics. */
	uint64_t found = __atomic_load_n(word, __ATOMIC_RELAXED);

	if (n % 3 == 0)
		found = __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	else if (!__atomic_compare_exchange_n(word, &found, found + 1, false,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST))
		return;
	take_ticket(w, found);
}

static void count_up(uint8_t *region)
{
	uint64_t mine = 0;

	while (step_timeout_look(&shared_steps->is_done) <
	       shared_steps->initiators) {
		int w = (int)(mine % WORDS);

		if (mine < MINE * (load_count(&shared_steps->progress) + AHEAD))
			count_one((uint64_t *)(void *)(region + word_at[w]), w,
				  mine++);
		else
			sched_yield();
	}
}

static void be_target(void)
{
	struct endpoint e[MOST];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	endpoint_open(&e[0], IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
	memset(e[0].region, 0, ENDPOINT_SIZE);
	for (int i = 0; i < shared_steps->initiators; i++) {
		if (i)
			e[i] = endpoint_beside(&e[0], NULL,
					       ENDPOINT_ALL_REMOTE);
		endpoint_address_get(&e[i], &shared_steps->target[i]);
		step_timeout_await(&shared_steps->is_there[i], 1);
		endpoint_to_rtr(&e[i], &shared_steps->initiator[i]);
		endpoint_to_rts(&e[i], &shared_steps->target[i], 7);
	}
	step_timeout_say(&shared_steps->is_target, 1);
	step_timeout_say(&shared_steps->is_ready, 1);
	count_up(e[0].region);
	step_timeout_await(&shared_steps->is_ready,
			   2); /* the initiators have ended */
	for (int w = 0; w < WORDS; w++)
		if (*(uint64_t *)(void *)(e[0].region + word_at[w]) !=
		    shared_steps->taken[w])
			end_failed("the word is not the number of its tickets",
				   w, shared_steps->taken[w]);
	if (!endpoint_guarded(&e[0]))
		step_timeout_fail("a byte beside the region has changed");
}

/* Returns whether each word has given each ticket from 0 up to its sum. */
static bool all_taken(void)
{
	for (int w = 0; w < WORDS; w++)
		for (uint64_t k = 0; k < shared_steps->taken[w]; k++)
			if (!(ticket[((uint64_t)w * shared_steps->tickets + k) /
				     64] >>
				      k % 64 &
			      1)) {
				printf("no atomic found %llu in word %d\n",
				       (unsigned long long)k, w);
				return false;
			}
	return true;
}

static pid_t start_child(int who)
{
	pid_t pid = step_timeout_fork();

	if (pid)
		return pid;
	if (who < shared_steps->initiators)
		be_initiator(who);
	else
		be_target();
	_exit(0);
}

static int await_child(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	pid_t pid[MOST + 1], target;
	int initiators, bad = 0;

	shared_steps = step_timeout_share(sizeof(*shared_steps));
	shared_steps->rounds = argc > 2 ? atoi(argv[1]) : 0;
	initiators = argc > 2 ? atoi(argv[2]) : 0;
	if (initiators < 1 || initiators > MOST) {
		fprintf(stderr,
			"usage: atomic_mix ROUNDS INITIATORS: at most %d "
			"initiators\n",
			MOST);
		return 2;
	}
	shared_steps->initiators = initiators;
	shared_steps->tickets =
		((uint64_t)shared_steps->rounds * (uint64_t)initiators +
		 AHEAD) *
		(MINE + 2);
	shared_steps->tickets -= shared_steps->tickets % 64;
	ticket = step_timeout_share(WORDS * shared_steps->tickets / 8);
	for (int i = 0; i <= initiators; i++)
		pid[i] = start_child(i);
	target = pid[initiators];
	for (int i = 0; i < initiators; i++)
		bad |= await_child(pid[i]);
	step_timeout_say(&shared_steps->is_ready, 2);
	if (bad)
		kill(target, SIGKILL);
	bad |= await_child(target);
	printf("%llu remote atomics, %llu of them swaps that succeeded, %llu swaps "
	       "that failed; ",
	       (unsigned long long)shared_steps->progress,
	       (unsigned long long)shared_steps->won,
	       (unsigned long long)shared_steps->lost);
	printf("sums of the words with the target's atomics: %llu, %llu, %llu, "
	       "%llu\n",
	       (unsigned long long)shared_steps->taken[0],
	       (unsigned long long)shared_steps->taken[1],
	       (unsigned long long)shared_steps->taken[2],
	       (unsigned long long)shared_steps->taken[3]);
	return bad || !all_taken();
}
