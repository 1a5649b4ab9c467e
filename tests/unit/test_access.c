/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner of an arena waits for the processes that work there, but not for
 * those that have died, or whose access the owner has revoked. */
#include "test.h"

#include "hca/access.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA_BYTES (64u << 20)
#define ROUNDS	    2000

static struct hca own;
static struct space nothing;
static uint64_t *word; /* in shared memory, as the memory of a key */
static _Atomic int *stage;

static bool is_dead(alock_owner owner)
{
	return kill((pid_t)owner, 0) && errno == ESRCH;
}

static void report_slow(alock_owner owner)
{
}

/* the answer of halt_of */
static enum alock_halt halted;
static pid_t copier; /* the thread that copies */

static enum alock_halt halt_of(uint32_t thread)
{
	assert_int_equal(thread, copier);
	return halted;
}

static const struct alock_judge judge = {is_dead, report_slow, halt_of, NULL};

static void *map_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static int set_up(void **state)
{
	uint64_t seed[4] = {1, 2, 3, 4};
	struct arena a;

	arena_init(&a, map_shared(ARENA_BYTES), ARENA_BYTES);
	alock_open((alock_owner)getpid(), &judge);
	copier = gettid();
	word = map_shared(4096);
	stage = (_Atomic int *)(void *)(word + 1);
	return hca_init(&own, a, &nothing, seed);
}

static int tear_down(void **state)
{
	munmap(word, 4096);
	return munmap(own.arena.base, ARENA_BYTES);
}

static pid_t begin_peer(void (*what)(struct access *g))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct access *g;

		alock_open((alock_owner)getpid(), &judge);
		g = access_claim(&own);
		if (g)
			what(g);
		_exit(g ? 0 : 1);
	}
	return pid;
}

/* Writes until word[0] is 0, as a peer writes until a key is withdrawn. */
static void write_on(struct access *g)
{
	*stage = 1;
	for (;;) {
		access_enter(g, ACCESS_ALL);
		if (!__atomic_load_n(&word[0], __ATOMIC_RELAXED))
			break;
		word[8] = 1;
		sched_yield();
		word[8] = 0;
		access_leave(g);
	}
	access_leave(g);
}

static void after_the_wait_no_peer_is_inside(void **state)
{
	for (int i = 0; i < 20; i++) {
		pid_t pid;

		__atomic_store_n(&word[0], 1, __ATOMIC_RELAXED);
		*stage = 0;
		pid = begin_peer(write_on);
		while (!*stage)
			sched_yield();
		for (int k = 0; k < 100; k++) {
			access_wait(&own, ACCESS_ALL);
			sched_yield();
		}
		/* This store comes before the loads of the slots in
		 * access_wait, whose fence orders the two.  Otherwise a peer
		 * that access_wait did not see could still read 1. */
		__atomic_store_n(&word[0], 0, __ATOMIC_SEQ_CST);
		access_wait(&own, ACCESS_ALL);
		assert_int_equal(word[8], 0);
		waitpid(pid, NULL, 0);
	}
}

static void stay_inside(struct access *g)
{
	access_enter(g, ACCESS_ALL);
	*stage = 1;
	for (;;)
		pause();
}

static void the_dead_are_not_waited_for(void **state)
{
	pid_t pid = begin_peer(stay_inside);

	while (!*stage)
		sched_yield();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	access_wait(&own, ACCESS_ALL);
}

enum { QPN = 5, KEY = 0x100, OTHER_KEY = 0x200 };

static void stay_at_one_key(struct access *g)
{
	access_enter(g, access_qp(QPN));
	access_copy(g, access_qp(QPN) | access_key(KEY));
	*stage = 1;
	for (;;)
		pause();
}

static bool is_left(access_set what)
{
	struct access_scan l;

	access_scan_begin(&l, what);
	return access_scan_done(&own, &l);
}

static void a_copy_of_other_keys_is_not_waited_for(void **state)
{
	pid_t pid;

	*stage = 0;
	pid = copier = begin_peer(stay_at_one_key);
	while (!*stage)
		sched_yield();
	access_wait(&own, access_qp(QPN + 1));
	access_wait(&own, access_key(OTHER_KEY));
	access_wait(&own, ACCESS_SAY);
	assert_false(is_left(ACCESS_ALL));
	assert_false(is_left(access_qp(QPN)));
	assert_false(is_left(access_key(KEY + 7)));
	assert_false(is_left(access_qp(QPN + 1) | access_key(KEY)));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(is_left(ACCESS_ALL));
}

/* Claims an access slot in the name of the parent process, which is alive. */
static struct access *take_as_another(void)
{
	struct access *g;

	alock_open((alock_owner)getppid(), &judge);
	g = access_claim(&own);
	alock_open((alock_owner)getpid(), &judge);
	return g;
}

static void access_of_a_copier_that_stopped_is_revoked(void **state)
{
	struct access *g = take_as_another();
	access_set what = access_qp(QPN) | access_key(KEY);

	access_enter(g, access_qp(QPN));
	halted = ALOCK_STOPPED_AFTER_COPY; /* but the peer does not copy */
	assert_false(is_left(access_qp(QPN)));
	assert_true(is_left(access_qp(QPN + 1)));
	assert_true(is_left(access_key(KEY)));
	halted = ALOCK_RUNS;
	access_copy(g, what);
	assert_false(is_left(access_qp(QPN)));
	assert_false(access_is_revoked(g));
	halted = ALOCK_STOPPED_AFTER_COPY;
	assert_true(is_left(access_key(OTHER_KEY)));
	assert_false(access_is_revoked(g));
	assert_true(access_revoke(&own, alock_holder(&g->process)));
	assert_true(is_left(access_qp(QPN)));
	/* the peer continues: a scan that begins now ends when the peer has
	 * left */
	halted = ALOCK_RUNS;
	assert_true(access_is_revoked(g));
	assert_false(is_left(access_qp(QPN)));
	assert_false(access_copied(g, what, access_qp(QPN)));
	access_leave(g);
	assert_true(is_left(access_qp(QPN)));
	access_enter(g, ACCESS_ALL);
	access_copy(g, what);
	assert_true(access_copied(g, what, access_qp(QPN)));
	access_leave(g);
	access_release(g);
}

/* A peer that copies by rseq is revoked wherever it stops, not only at the end
 * of a system call. */
static void access_by_rseq_is_revoked_at_any_step(void **state)
{
	struct access *g = take_as_another();
	access_set what = access_qp(QPN) | access_key(KEY);

	access_enter(g, access_qp(QPN));
	access_copy(g, what);
	halted = ALOCK_STOPPED;
	assert_false(is_left(access_key(KEY)));
	assert_false(access_is_revoked(g));
	access_copy_by(g, ACCESS_BY_RSEQ);
	halted = ALOCK_RUNS;
	assert_false(is_left(access_key(KEY)));
	halted = ALOCK_STOPPED;
	assert_true(is_left(access_key(KEY)));
	assert_true(access_is_revoked(g));
	access_copy_by(g, ACCESS_BY_CALLS);
	halted = ALOCK_RUNS;
	assert_false(access_copied(g, what, access_qp(QPN)));
	access_leave(g);
	access_release(g);
}

static void leave_later(struct access *g)
{
	access_enter(g, ACCESS_ALL);
	*stage = 1;
	usleep(20000);
	*stage = 2;
	access_leave(g);
}

static void the_living_are_waited_for(void **state)
{
	pid_t pid = begin_peer(leave_later);

	while (*stage < 1)
		sched_yield();
	access_wait(&own, ACCESS_ALL);
	assert_int_equal(*stage, 2);
	waitpid(pid, NULL, 0);
}

static void an_arena_without_access_slots_in_use_is_not_waited_for(void **state)
{
	for (int i = 0; i < ROUNDS; i++)
		access_wait(&own, ACCESS_ALL);
}

static void each_claim_gets_a_slot_that_no_other_claim_has(void **state)
{
	struct access *a = access_claim(&own), *b = access_claim(&own);

	assert_non_null(a);
	assert_ptr_equal(b, a + 1);
	access_release(a);
	assert_ptr_equal(access_claim(&own), a);
	access_enter(b, ACCESS_ALL);
	access_leave(b);
	access_release(b);
	access_wait(&own, ACCESS_ALL);
}

static void die_amid_a_copy(struct access *g)
{
	access_enter(g, ACCESS_ALL);
	access_copy_by(g, ACCESS_BY_RSEQ);
}

/* Another process has taken this process for dead, and now has this process's
 * slot. */
static void a_slot_that_another_process_has_inherited_is_not_released(void **s)
{
	struct access *g = access_claim(&own);

	alock_open((alock_owner)getppid(), &judge);
	assert_true(alock_inherit(&g->process, (alock_owner)getpid()));
	alock_open((alock_owner)getpid(), &judge);
	access_release(g);
	assert_int_equal(alock_holder(&g->process), getppid());
}

/* An epoch of 0 marks the end of the slots that were ever claimed. */
static void the_epoch_of_a_slot_in_use_does_not_become_0(void **state)
{
	struct access *first = access_claim(&own), *second = take_as_another();

	access_enter(second, ACCESS_ALL);
	shared_store(&first->epoch, UINT32_MAX - 1);
	access_enter(first, ACCESS_ALL);
	access_leave(first);
	assert_int_equal(shared_own(&first->epoch), 2);
	access_release(first);
	assert_false(is_left(ACCESS_ALL));
}

static void slots_of_the_dead_are_reused_when_none_is_free(void **state)
{
	struct access *slot = NULL, *last;
	int taken = 0;

	waitpid(begin_peer(die_amid_a_copy), NULL, 0);
	while ((last = access_claim(&own))) {
		slot = last;
		taken++;
	}
	assert_int_equal(taken, ACCESS_MAX);
	/* the dead process died in a copy and had the slot that is claimed last
	 */
	assert_int_equal(shared_own(&slot->epoch) % 2, 0);
	assert_int_equal(shared_own(&slot->by), ACCESS_BY_CALLS);
	access_wait(&own, ACCESS_ALL);
}

static void slots_outside_the_arena_are_not_claimed(void **state)
{
	const aoff wrong[] = {0, 1, ARENA_BYTES - 64, ~63ull, 4096 + 8};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		own.shared->accesses = wrong[i];
		assert_null(access_claim(&own));
	}
}

static void a_process_is_alive_while_its_pulse_word_says_so(void **state)
{
	assert_false(hca_is_alive(&own));
	shared_store(&own.shared->pulse.word, 1234);
	assert_true(hca_is_alive(&own));
	shared_store(&own.shared->pulse.word, 1234 | 0x40000000);
	assert_false(hca_is_alive(&own));
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Other processes can write any value to the owner of an access slot. */
static void an_impossible_access_is_not_waited_for(void **s)
{
	const alock_owner nobody[] = {(alock_owner)getpid(), ALOCK_NAMELESS};
	struct access *g = arena_at(&own.arena, own.shared->accesses);
	struct access_scan look;

	for (size_t i = 0; i < sizeof(nobody) / sizeof(*nobody); i++) {
		atomic_store(&g[0].process.owner, nobody[i]);
		shared_store(&g[0].epoch, 1);
		access_scan_begin(&look, ACCESS_ALL);
		assert_true(access_scan_done(&own, &look));
		access_wait(&own, ACCESS_ALL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(after_the_wait_no_peer_is_inside),
		EACH(the_dead_are_not_waited_for),
		EACH(a_copy_of_other_keys_is_not_waited_for),
		EACH(access_of_a_copier_that_stopped_is_revoked),
		EACH(access_by_rseq_is_revoked_at_any_step),
		EACH(the_living_are_waited_for),
		EACH(an_arena_without_access_slots_in_use_is_not_waited_for),
		EACH(each_claim_gets_a_slot_that_no_other_claim_has),
		EACH(a_slot_that_another_process_has_inherited_is_not_released),
		EACH(the_epoch_of_a_slot_in_use_does_not_become_0),
		EACH(slots_of_the_dead_are_reused_when_none_is_free),
		EACH(slots_outside_the_arena_are_not_claimed),
		EACH(a_process_is_alive_while_its_pulse_word_says_so),
		EACH(an_impossible_access_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
