/* SPDX-License-Identifier: BSD-2-Clause */
/* A fault of a guarded copy makes the copy fail; any other fault reaches the
 * program. */
#include "test.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/copy_nofault.h"
#include "util/crc.h"
#include "util/crctier.h"
#include "util/instrument.h"
#include "util/monotonic.h"

#define PAGE   4096
#define COPIES 50000 /* the most copies to compare */

/* Returns a time late enough for copy_nofault_turn to check the handlers again.
 */
static uint64_t later_ns(void)
{
	static uint64_t now;

	return now += 1000000;
}

static sigjmp_buf back; /* from program_handler */
static int caught;	/* the signal that program_handler got */

static void program_handler(int sig)
{
	caught = sig;
	siglongjmp(back, 1);
}

static void set_handler(int sig, void (*handler)(int))
{
	struct sigaction a = {.sa_handler = handler};

	assert_int_equal(sigaction(sig, &a, NULL), 0);
}

static uint8_t *map_gone(void)
{
	uint8_t *p =
		mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

#define IS_OFF "guarded copies are off: no x86-64, valgrind or ADVERB_GUARD=0"

/* Returns whether this process can make guarded copies.  Expects that
 * copy_nofault_is_on returns the same. */
static bool can_guard(void)
{
#if defined(__x86_64__)
	const char *value = getenv("ADVERB_GUARD");
	bool can = !instrument_by_valgrind() &&
		   (!value || strcmp(value, "0") != 0);
#else
	bool can = false;
#endif

	copy_nofault_open();
	copy_nofault_turn(later_ns());
	assert_int_equal(copy_nofault_is_on(), can);
	copy_nofault_close();
	return can;
}

static void copies_of_memory_that_is_not_there_fail(void **state)
{
	uint8_t *p = map_gone(), buf[64] = {0};

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	copy_nofault_open();
	copy_nofault_turn(later_ns());
	assert_true(copy_nofault_is_on());
	assert_false(copy_nofault(buf, p, 64));
	assert_false(copy_nofault(p, buf, 64));
	for (size_t n = 1; n <= 8; n *= 2)
		assert_false(copy_nofault_store(p, buf, n));
	assert_true(copy_nofault(buf, "as before", 10));
	assert_string_equal((char *)buf, "as before");
	copy_nofault_close();
	munmap(p, PAGE);
}

static void rep_movsb_and_vector_copies_copy_and_fail(void **state)
{
	uint8_t *p = map_gone(), from[300], to[300];

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + 1);
	copy_nofault_open();
	for (int fast = 0; fast < 2; fast++) {
		copy_nofault_choose(fast);
		for (size_t n = 0; n < sizeof(from) - 1; n++) {
			memset(to, 0, sizeof(to));
			assert_true(copy_nofault(to + 1, from + 1, n));
			assert_memory_equal(to + 1, from + 1, n);
			assert_int_equal(to[0] | to[n + 1], 0);
		}
		assert_false(copy_nofault(to, p, 300));
		assert_false(copy_nofault(p, to, 300));
		assert_false(copy_nofault(to, p, 3));
	}
	copy_nofault_close();
	munmap(p, PAGE);
}

static uint64_t copy_ns(uint8_t *to, const uint8_t *from)
{
	uint64_t began = monotonic_ns();

	assert_true(copy_nofault(to, from, PAGE));
	return monotonic_ns() - began;
}

/* Some processors are slow at `rep movsb` if the addresses' last 12 bits differ
 * by a few bytes.  The least times of many copies are compared, because other
 * programs only make a copy slower.  All of 200 copies, which take 40 us, may
 * be slower for such a reason, but not all of COPIES. */
static void a_copy_takes_as_long_at_each_distance(void **state)
{
	static uint8_t from[2 * PAGE], to[3 * PAGE];
	uint8_t *same = to + ((uintptr_t)from - (uintptr_t)to) % PAGE;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	copy_nofault_open();
	for (uint32_t d = 1; d < 64; d++) {
		uint64_t least = UINT64_MAX, near = UINT64_MAX;

		memset(from, (int)d, PAGE);
		for (int i = 0;
		     i < 200 || (i < COPIES && near > 6 * least + 50); i++) {
			uint64_t ns = copy_ns(same, from);

			least = ns < least ? ns : least;
			ns = copy_ns(same + d, from);
			near = ns < near ? ns : near;
		}
		assert_memory_equal(same + d, from, PAGE);
		assert_true(near <= 6 * least + 50);
	}
	copy_nofault_close();
}

/* Copies from p with a CRC.  A copy within the memory must succeed, and one
 * beyond its end must fail.  p: two pages of memory, and then a page that
 * cannot be read or written. */
static void sum_until_it_stops(uint8_t *p, enum crc_kind kind)
{
	static uint8_t buf[3 * PAGE];

	for (size_t at = 0; at < 2 * PAGE; at += 127) {
		uint32_t crc = 77, want = crc_update(kind, 77, p, at);

		assert_true(copy_nofault_crc(buf, p, at, kind, &crc));
		assert_int_equal(crc, want);
		assert_memory_equal(buf, p, at);
		assert_int_equal(
			copy_nofault_crc(buf, p + at, 2 * PAGE, kind, &crc),
			at == 0);
	}
}

/* Copies to p with a CRC.  A copy within the memory at p must succeed, and one
 * beyond its end must fail.  p: as for sum_until_it_stops. */
static void sum_to_where_it_stops(uint8_t *p, enum crc_kind kind)
{
	static uint8_t buf[2 * PAGE];

	for (size_t at = 0; at < 2 * PAGE; at += 127) {
		uint32_t crc = 78, want;

		for (size_t i = 0; i < at; i++)
			buf[i] = (uint8_t)(i * 11 + at);
		want = crc_update(kind, 78, buf, at);
		assert_true(copy_nofault_crc_to(p, buf, at, kind, &crc));
		assert_int_equal(crc, want);
		assert_memory_equal(p, buf, at);
		assert_int_equal(
			copy_nofault_crc_to(p + at, buf, 2 * PAGE, kind, &crc),
			at == 0);
	}
}

static void a_copy_with_a_crc_fails_where_the_memory_ends(void **state)
{
	uint8_t *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct crctier before = crctier_chosen;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 5, 2 * PAGE);
	mprotect(p + 2 * PAGE, PAGE, PROT_NONE);
	for (size_t i = 0; i < crctier_count; i++) {
		if (!crctier_all[i].is_here())
			continue;
		crctier_choose(&crctier_all[i]);
		copy_nofault_open();
		copy_nofault_turn(later_ns());
		sum_until_it_stops(p, CRC_32);
		sum_until_it_stops(p, CRC_32C);
		sum_to_where_it_stops(p, CRC_32);
		sum_to_where_it_stops(p, CRC_32C);
		copy_nofault_close();
	}
	crctier_choose(&before);
	munmap(p, 3 * PAGE);
}

static void a_store_writes_its_bytes_and_no_others(void **state)
{
	for (size_t n = 1; n <= 8; n *= 2) {
		uint8_t to[16] = {0}, from[8] = {1, 2, 3, 4, 5, 6, 7, 8};

		assert_true(copy_nofault_store(to + 8, from, n));
		assert_memory_equal(to + 8, from, n);
		assert_int_equal(to[7], 0);
		assert_int_equal(n < 8 ? to[8 + n] : 0, 0);
	}
}

static void a_fault_of_the_program_reaches_its_own_handler(void **state)
{
	volatile uint8_t *p = map_gone();

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	set_handler(SIGSEGV, program_handler);
	copy_nofault_open();
	caught = 0;
	if (!sigsetjmp(back, 1))
		*p = 1;
	assert_int_equal(caught, SIGSEGV);
	copy_nofault_close();
	set_handler(SIGSEGV, SIG_DFL);
	munmap((void *)(uintptr_t)p, PAGE);
}

/* Linux also ends a process that ignores the signal of its fault. */
static void a_fault_whose_signal_is_ignored_ends_the_program(void **state)
{
	static const struct rlimit no_core = {0, 0};
	volatile uint8_t *p = map_gone();
	int status = 0;
	pid_t pid;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	pid = fork();
	if (!pid) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_IGN);
		copy_nofault_open();
		raise(SIGSEGV); /* is ignored */
		alarm(TEST_WAIT_S);
		*p = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	munmap((void *)(uintptr_t)p, PAGE);
}

/* Returns the wait status of a process that sets this action for SIGBUS, with
 * SA_SIGINFO, and then gets the signal without a fault.  Exit status 3: the
 * process has survived the signal. */
static int send_sigbus(void (*action)(int))
{
	static const struct rlimit no_core = {0, 0};
	struct sigaction a = {.sa_handler = action, .sa_flags = SA_SIGINFO};
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		setrlimit(RLIMIT_CORE, &no_core);
		sigaction(SIGBUS, &a, NULL);
		copy_nofault_open();
		raise(SIGBUS);
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Even with SA_SIGINFO, Linux does not call SIG_DFL or SIG_IGN as a handler. */
static void an_action_without_a_handler_is_not_called(void **state)
{
	int status;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	status = send_sigbus(SIG_IGN);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	status = send_sigbus(SIG_DFL);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
}

/* Shared with child processes: how often a handler of the program was called.
 */
static _Atomic int *calls;

static void set_flags(int sig, void (*handler)(int), int flags)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags};

	assert_int_equal(sigaction(sig, &a, NULL), 0);
}

static void return_once(int sig)
{
	if ((*calls)++)
		_exit(4);
}

/* Exits in the first call, unless the signal that it raises ends the process.
 */
static void raise_again(int sig)
{
	if ((*calls)++)
		return;
	raise(sig);
	_exit(5);
}

/* Returns the wait status of a process whose handler of SIGSEGV has these
 * flags, and which then faults. */
static int fault_with(void (*handler)(int), int flags)
{
	static const struct rlimit no_core = {0, 0};
	volatile uint8_t *p = map_gone();
	int status = 0;
	pid_t pid;

	*calls = 0;
	pid = fork();
	if (!pid) {
		setrlimit(RLIMIT_CORE, &no_core);
		set_flags(SIGSEGV, handler, flags);
		copy_nofault_open();
		alarm(TEST_WAIT_S);
		*p = 1;
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	munmap((void *)(uintptr_t)p, PAGE);
	return status;
}

static void map_calls(void)
{
	calls = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(calls, MAP_FAILED);
}

/* A handler with SA_RESETHAND gets one signal.  After the handler has returned,
 * the instruction faults again, and the process ends. */
static void a_handler_for_one_signal_gets_one(void **state)
{
	static const int flags[] = {SA_RESETHAND, SA_RESETHAND | SA_NODEFER,
				    SA_RESETHAND | SA_SIGINFO};
	int status;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	map_calls();
	for (size_t i = 0; i < TEST_COUNT(flags); i++) {
		status = fault_with(return_once, flags[i]);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSEGV);
		assert_int_equal(*calls, 1);
	}
	munmap(calls, PAGE);
}

/* A signal that the handler itself raises reaches the handler, or the default
 * action, at once. */
static void a_handler_with_nodefer_gets_its_own_signal(void **state)
{
	int status;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	map_calls();
	status = fault_with(raise_again, SA_NODEFER | SA_RESETHAND);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	assert_int_equal(*calls, 1);
	status = fault_with(raise_again, SA_NODEFER);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5);
	assert_int_equal(*calls, 2);
	munmap(calls, PAGE);
}

static void guarded_copies_survive_a_handler_for_one_signal(void **state)
{
	uint8_t *p = map_gone(), buf[8];
	struct sigaction now;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	map_calls();
	set_flags(SIGSEGV, return_once, SA_RESETHAND);
	copy_nofault_open();
	raise(SIGSEGV);
	assert_int_equal(*calls, 1);
	copy_nofault_turn(later_ns());
	assert_true(copy_nofault_is_on());
	assert_false(copy_nofault(buf, p, 8));
	copy_nofault_close();
	/* the program sees that its handler is used up */
	assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
	munmap(calls, PAGE);
	munmap(p, PAGE);
}

static sigset_t inside; /* the signals that are blocked in note_mask */

static void note_mask(int sig)
{
	pthread_sigmask(SIG_BLOCK, NULL, &inside);
}

/* A handler runs with the signals blocked that sigaction(2) says. */
static void a_handler_gets_its_signal_mask(void **state)
{
	static const struct {
		int flags, masked;
		bool is_blocked;
	} rows[] = {{0, SIGUSR1, true},
		    {SA_NODEFER, SIGUSR1, false},
		    {SA_NODEFER, SIGBUS, true}};
	sigset_t after;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct sigaction a = {.sa_handler = note_mask,
				      .sa_flags = rows[i].flags};

		sigaddset(&a.sa_mask, rows[i].masked);
		assert_int_equal(sigaction(SIGBUS, &a, NULL), 0);
		copy_nofault_open();
		raise(SIGBUS);
		assert_true(sigismember(&inside, rows[i].masked));
		assert_int_equal(sigismember(&inside, SIGBUS),
				 rows[i].is_blocked);
		pthread_sigmask(SIG_BLOCK, NULL, &after);
		assert_false(sigismember(&after, rows[i].masked));
		assert_false(sigismember(&after, SIGBUS));
		copy_nofault_close();
	}
	set_handler(SIGBUS, SIG_DFL);
}

enum { ENOUGH = 100, LARGE = 1 << 20 };

static _Atomic int seen; /* signals that the program's handler has got */
static _Atomic bool is_over;

static void count_signal(int sig)
{
	seen++;
}

static void *send_signals(void *to)
{
	while (!is_over) {
		pthread_kill(*(pthread_t *)to, SIGSEGV);
		usleep(200);
	}
	return NULL;
}

/* A signal that a thread sends is no fault of the copy that the signal
 * interrupts. */
static void a_signal_without_a_fault_does_not_end_a_copy(void **state)
{
	static uint8_t from[LARGE], to[LARGE];
	pthread_t self = pthread_self(), thread;
	bool is_whole = true;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	set_handler(SIGSEGV, count_signal);
	copy_nofault_open();
	assert_int_equal(pthread_create(&thread, NULL, send_signals, &self), 0);
	while (is_whole && seen < ENOUGH)
		is_whole = copy_nofault(to, from, LARGE);
	is_over = true;
	pthread_join(thread, NULL);
	copy_nofault_close();
	set_handler(SIGSEGV, SIG_DFL);
	assert_true(is_whole);
}

static void
a_program_that_takes_the_handler_turns_guarded_copies_off(void **state)
{
	struct sigaction now;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	copy_nofault_open();
	set_handler(SIGSEGV, program_handler);
	copy_nofault_turn(later_ns());
	assert_false(copy_nofault_is_on());
	copy_nofault_close();
	/* the program keeps the handler that it has set */
	assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, program_handler);
	set_handler(SIGSEGV, SIG_DFL);
}

static void
a_thread_that_blocks_the_signal_turns_guarded_copies_off(void **state)
{
	sigset_t s;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	copy_nofault_open();
	sigemptyset(&s);
	sigaddset(&s, SIGBUS);
	sigprocmask(SIG_BLOCK, &s, NULL);
	copy_nofault_turn(later_ns());
	assert_false(copy_nofault_is_on());
	sigprocmask(SIG_UNBLOCK, &s, NULL);
	copy_nofault_turn(later_ns());
	assert_true(copy_nofault_is_on());
	copy_nofault_close();
}

static void *look_with_the_signal_blocked(void *on)
{
	sigset_t fault;

	sigemptyset(&fault);
	sigaddset(&fault, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &fault, NULL);
	*(bool *)on = copy_nofault_is_on();
	return NULL;
}

/* A thread copies small messages without the progress lock when it polls, so
 * the mask of that thread counts. */
static void a_blocked_signal_counts_for_its_own_thread(void **state)
{
	pthread_t thread;
	bool on = true;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	copy_nofault_open();
	copy_nofault_turn(later_ns());
	assert_true(copy_nofault_is_on());
	assert_int_equal(pthread_create(&thread, NULL,
					look_with_the_signal_blocked, &on),
			 0);
	pthread_join(thread, NULL);
	assert_false(on);
	assert_true(copy_nofault_is_on());
	copy_nofault_close();
}

static void closing_restores_the_previous_handler(void **state)
{
	static const int signals[] = {SIGSEGV, SIGBUS};
	struct sigaction now;

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	for (size_t i = 0; i < TEST_COUNT(signals); i++) {
		set_handler(signals[i], program_handler);
		copy_nofault_open();
		assert_int_equal(sigaction(signals[i], NULL, &now), 0);
		assert_ptr_not_equal(now.sa_handler, program_handler);
		copy_nofault_close();
		assert_int_equal(sigaction(signals[i], NULL, &now), 0);
		assert_ptr_equal(now.sa_handler, program_handler);
		set_handler(signals[i], SIG_DFL);
	}
}

static struct sigaction replaced; /* the action that chain_handler passes to */
static int chained;		  /* calls of chain_handler */

static void chain_handler(int sig, siginfo_t *info, void *context)
{
	chained++;
	replaced.sa_sigaction(sig, info, context);
}

/* The program has a handler, replaces the guard's handler for a while, and
 * meanwhile closes the device, and perhaps opens it again, or opens it twice.
 * A fault then reaches the program's first handler. */
static void a_handler_survives_a_close_under_another_handler(void **state)
{
	const struct sigaction chain = {.sa_sigaction = chain_handler,
					.sa_flags = SA_SIGINFO};

	if (!can_guard())
		SKIP_FOR(IS_OFF);
	for (int opens = 0; opens <= 2; opens++) {
		bool stays = opens > 0;
		volatile uint8_t *gone = map_gone();

		set_handler(SIGSEGV, program_handler);
		copy_nofault_open();
		assert_int_equal(sigaction(SIGSEGV, &chain, &replaced), 0);
		copy_nofault_close();
		if (!stays)
			assert_int_equal(sigaction(SIGSEGV, &replaced, NULL),
					 0);
		copy_nofault_open();
		if (opens == 2) {
			copy_nofault_close();
			copy_nofault_open();
		}
		assert_true(copy_nofault_is_on());
		caught = chained = 0;
		if (!sigsetjmp(back, 1))
			*gone = 1;
		assert_int_equal(caught, SIGSEGV);
		assert_int_equal(chained, stays);
		set_handler(SIGSEGV, SIG_DFL);
		copy_nofault_close();
		set_handler(SIGSEGV, SIG_DFL);
		munmap((void *)gone, PAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_of_memory_that_is_not_there_fail),
		cmocka_unit_test(rep_movsb_and_vector_copies_copy_and_fail),
		cmocka_unit_test(a_copy_takes_as_long_at_each_distance),
		cmocka_unit_test(a_copy_with_a_crc_fails_where_the_memory_ends),
		cmocka_unit_test(a_store_writes_its_bytes_and_no_others),
		cmocka_unit_test(
			a_fault_of_the_program_reaches_its_own_handler),
		cmocka_unit_test(
			a_program_that_takes_the_handler_turns_guarded_copies_off),
		cmocka_unit_test(
			a_thread_that_blocks_the_signal_turns_guarded_copies_off),
		cmocka_unit_test(
			a_fault_whose_signal_is_ignored_ends_the_program),
		cmocka_unit_test(an_action_without_a_handler_is_not_called),
		cmocka_unit_test(a_handler_for_one_signal_gets_one),
		cmocka_unit_test(a_handler_with_nodefer_gets_its_own_signal),
		cmocka_unit_test(
			guarded_copies_survive_a_handler_for_one_signal),
		cmocka_unit_test(a_handler_gets_its_signal_mask),
		cmocka_unit_test(a_signal_without_a_fault_does_not_end_a_copy),
		cmocka_unit_test(a_blocked_signal_counts_for_its_own_thread),
		cmocka_unit_test(closing_restores_the_previous_handler),
		cmocka_unit_test(
			a_handler_survives_a_close_under_another_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
