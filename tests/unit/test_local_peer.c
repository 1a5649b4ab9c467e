/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that map each other's arena, in a network namespace of their own
 * with a broker.  Each process is set up as host.c does it, without the
 * progress engine.
 */
#include "brokers.h"

#include "hca/event.h"
#include "memory/arena_map.h"
#include "host/local_peer.h"
#include "log/log.h"
#include "host/broker_link.h"
#include "memory/space_self.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CROWD 16

/* The facts that a process gives about itself, in memory that all share. */
struct card {
	_Atomic int stage; /* 1: the facts are set; others: see each test */
	uint32_t qpn;
	uint64_t va;
};

static struct card *cards;

static struct {
	struct arena_map map;
	struct space_self space;
	struct hca hca;
	pthread_t thread;
	_Atomic int is_up, is_ending;
	int fd;
} me;

static uint8_t memory[8192];
static char said[256]; /* the latest message to the user */

/* Replaces log_say of src/log, which prints a message about an object once. */
void log_say(enum log_cause cause, uint64_t detail, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(said, sizeof(said), fmt, args);
	va_end(args);
}

static void *keep_alive(void *arg)
{
	assert_int_equal(local_peer_begin(), 0);
	me.is_up = 1;
	while (!me.is_ending)
		usleep(1000);
	local_peer_end();
	return NULL;
}

/* Gives this process an arena, a class and a thread, as host.c does. */
static void open_me(void)
{
	uint64_t seed[4] = {1, 2, 3, 4};

	assert_int_equal(arena_map_new(&me.map), 0);
	space_self_init(&me.space);
	assert_int_equal(hca_init(&me.hca, me.map.arena, &me.space.space, seed),
			 0);
	local_peer_open(&me.hca, true);
	me.fd = broker_link_socket(local_peer_is_open() ? me.map.fd : -1,
				   local_peer_wake_fd(), 60000000000u);
	assert_true(me.fd >= 0);
	me.is_up = me.is_ending = 0;
	assert_int_equal(pthread_create(&me.thread, NULL, keep_alive, NULL), 0);
	while (!me.is_up)
		usleep(100);
}

static void close_me(void)
{
	me.is_ending = 1;
	pthread_join(me.thread, NULL);
	local_peer_close();
	broker_link_close();
	close(me.fd);
	space_self_fini(&me.space);
	arena_map_free(&me.map);
}

static void wait_for(struct card *c, int stage)
{
	while (c->stage != stage)
		usleep(200);
}

/* Fills the card, and waits to be killed or for stage 9. */
static void show_card(struct card *c)
{
	c->qpn = broker_link_qpn(77);
	c->va = (uintptr_t)memory;
	c->stage = 1;
	wait_for(c, 9);
}

/* The processes that the running test has started. */
static pid_t started[CROWD];
static size_t started_count;

/* Starts a process that calls open_me, `what` and show_card.  The test fails if
 * the process ends before it has filled its card. */
static pid_t begin_process(struct card *c, void (*what)(struct card *c))
{
	pid_t parent = getpid(), pid;

	assert_true(started_count < TEST_COUNT(started));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		test_begin_child(parent);
		local_peer_forget();
		broker_link_close();
		open_me();
		if (what)
			what(c);
		show_card(c);
		close_me();
		_exit(0);
	}
	started[started_count++] = pid;
	while (c->stage != 1) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		usleep(200);
	}
	return pid;
}

static void end_process(pid_t pid, int sig)
{
	kill(pid, sig);
	waitpid(pid, NULL, 0);
}

static enum local_peer_is get_peer(uint32_t qpn, struct local_peer **n)
{
	enum local_peer_is is;

	while ((is = local_peer_get(broker_link_class(qpn), 0, n)) ==
	       LOCAL_PEER_ASKED) {
		struct pollfd p = {broker_link_fd(), POLLIN, 0};

		poll(&p, 1, 5);
		broker_link_woken();
		broker_link_turn(NULL, UINT64_MAX / 2);
	}
	return is;
}

static int set_up(void **state)
{
	setenv("ADVERB_DIRECT", "1", 1); /* refusals are printed */
	*said = 0;
	memset(cards, 0, CROWD * sizeof(*cards));
	open_me();
	return 0;
}

/* Ends the processes that a failed test has left. */
static int tear_down(void **state)
{
	while (started_count) {
		pid_t pid = started[--started_count];

		if (!waitpid(pid, NULL, WNOHANG))
			end_process(pid, SIGKILL);
	}
	close_me();
	return 0;
}

/* How many arenas this process has mapped. */
static int count_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "adverb-arena") != NULL;
	if (f)
		fclose(f);
	return n;
}

static void wait_to_be_woken(struct card *c)
{
	struct pollfd p = {local_peer_wake_fd(), POLLIN, 0};

	c->qpn = broker_link_qpn(77);
	c->va = (uintptr_t)memory;
	c->stage = 1;
	if (poll(&p, 1, 20000) == 1)
		c->stage = 2;
	wait_for(c, 9);
	close_me();
	_exit(memory[4096] == 5 ? 0 : 1);
}

static void the_memory_of_a_peer_is_reached_and_the_peer_is_woken(void **state)
{
	pid_t pid = begin_process(&cards[0], wait_to_be_woken);
	struct local_peer *n = NULL;
	struct space_vec to = {cards[0].va + 4096, 16};
	struct space_vec from = {(uintptr_t)memory, 16};
	struct space_move m = {&to, &from, 1, 1};
	size_t done;
	int status;

	memset(memory, 5, 16);
	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_HERE);
	assert_int_equal(n->pid, pid);
	assert_non_null(n->access);
	assert_true(hca_is_alive(n->hca));
	assert_int_equal(
		space_put(n->hca->space, &me.space.space, &m, 1, &done), 0);
	local_peer_wake(n);
	wait_for(&cards[0], 2);
	local_peer_put(n);
	cards[0].stage = 9;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void a_process_is_its_own_local_peer(void **state)
{
	struct local_peer *n = NULL;

	assert_int_equal(get_peer(broker_link_qpn(1), &n), LOCAL_PEER_HERE);
	assert_ptr_equal(n->hca, &me.hca);
	assert_null(n->access);
	local_peer_wake(n);
	local_peer_put(n);
}

static void a_peer_that_is_asked_for_twice_is_mapped_once(void **state)
{
	pid_t pid = begin_process(&cards[0], NULL);
	struct local_peer *a = NULL, *b = NULL;

	assert_int_equal(get_peer(cards[0].qpn, &a), LOCAL_PEER_HERE);
	assert_int_equal(get_peer(cards[0].qpn, &b), LOCAL_PEER_HERE);
	assert_ptr_equal(a, b);
	assert_int_equal(count_mapped(), 2);
	local_peer_put(a);
	local_peer_put(b);
	assert_int_equal(count_mapped(), 2);
	end_process(pid, SIGKILL);
}

static void dead_peers_are_known_at_once_and_unmapped_when_unused(void **state)
{
	pid_t pid = begin_process(&cards[0], NULL);
	struct local_peer *n = NULL, *other = NULL;

	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_HERE);
	end_process(pid, SIGKILL);
	assert_false(hca_is_alive(n->hca));
	assert_int_equal(get_peer(cards[0].qpn, &other), LOCAL_PEER_NEVER);
	assert_int_equal(count_mapped(), 2);
	local_peer_put(n);
	assert_int_equal(count_mapped(), 1);
}

static void execute_another(struct card *c)
{
	c->qpn = broker_link_qpn(77);
	c->stage = 1;
	wait_for(c, 2);
	execl("/bin/sleep", "sleep", "100", NULL);
	_exit(1);
}

static void a_peer_that_executes_another_program_is_gone(void **state)
{
	pid_t pid = begin_process(&cards[0], execute_another);
	struct local_peer *n = NULL;

	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_HERE);
	assert_true(hca_is_alive(n->hca));
	cards[0].stage = 2;
	while (hca_is_alive(n->hca))
		usleep(1000);
	assert_int_equal(kill(pid, 0), 0);
	local_peer_put(n);
	end_process(pid, SIGKILL);
}

static void a_peer_that_closes_is_gone(void **state)
{
	pid_t pid = begin_process(&cards[0], NULL);
	struct local_peer *n = NULL;

	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_HERE);
	cards[0].stage = 9;
	waitpid(pid, NULL, 0);
	assert_false(hca_is_alive(n->hca));
	local_peer_put(n);
	assert_int_equal(count_mapped(), 1);
}

static void close_share(struct card *c)
{
	/* opens again as a program that shares no arena */
	close_me();
	setenv("ADVERB_DIRECT", "0", 1);
	open_me();
}

static void another_build(struct card *c)
{
	me.hca.shared->shape++;
}

static void another_layout(struct card *c)
{
	((struct arena_hdr *)(void *)me.map.arena.base)->layout++;
}

static void a_root_outside(struct card *c)
{
	((struct arena_hdr *)(void *)me.map.arena.base)->root =
		me.map.arena.size - 8;
}

static void keys_outside(struct card *c)
{
	me.hca.shared->mrs = me.map.arena.size - 4096;
}

static void another_nonce(struct card *c)
{
	me.hca.shared->nonce.va = (uintptr_t)memory;
}

static void a_nonce_nowhere(struct card *c)
{
	me.hca.shared->nonce.va = 8;
}

static void no_such_process(struct card *c)
{
	me.hca.shared->pid = 0;
}

/* The arena was told to others before the process found that it may not share
 * it. */
static void withdraw_arena(struct card *c)
{
	me.is_ending = 1;
	pthread_join(me.thread, NULL);
	local_peer_withdraw();
}

static void a_peer_without_a_usable_arena_is_reached_by_packets(void **state)
{
	void (*const what[])(struct card *) = {
		close_share,	 another_build,	  another_layout,
		a_root_outside,	 keys_outside,	  another_nonce,
		a_nonce_nowhere, no_such_process, withdraw_arena,
	};

	for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++) {
		pid_t pid = begin_process(&cards[i], what[i]);
		struct local_peer *n = NULL;

		*said = 0;
		assert_int_equal(get_peer(cards[i].qpn, &n), LOCAL_PEER_NEVER);
		assert_true(*said);
		assert_int_equal(count_mapped(), 1);
		end_process(pid, SIGKILL);
	}
}

static void become_undumpable(struct card *c)
{
	prctl(PR_SET_DUMPABLE, 0);
}

static int terminal = -1;

static void show_a_terminal(struct card *c)
{
	dup2(terminal, me.map.fd);
}

/* A terminal that the leader of a session opens becomes the leader's
 * controlling terminal.  This process checks that it has no controlling
 * terminal after it has looked at the arena. */
static void look_at_a_terminal(struct card *c)
{
	struct local_peer *n;

	if (setsid() > 0 && get_peer(cards[0].qpn, &n) == LOCAL_PEER_NEVER &&
	    open("/dev/tty", O_RDWR | O_CLOEXEC) < 0)
		cards[2].stage = 1;
}

static void a_file_that_is_no_memory_is_not_opened(void **state)
{
	int other = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	pid_t shows, looks;

	if (other < 0 || grantpt(other) || unlockpt(other))
		SKIP_FOR("this user gets no pseudoterminal");
	terminal = open(ptsname(other), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal >= 0);
	shows = begin_process(&cards[0], show_a_terminal);
	looks = begin_process(&cards[1], look_at_a_terminal);
	assert_int_equal(cards[2].stage, 1);
	end_process(looks, SIGKILL);
	end_process(shows, SIGKILL);
	close(terminal);
	close(other);
}

static char fifo[] = "/tmp/adverb-fifo-XXXXXX";

static void show_a_fifo(struct card *c)
{
	dup2(open(fifo, O_PATH), me.map.fd);
}

static void look_at_a_fifo(struct card *c)
{
	struct local_peer *n;

	if (get_peer(cards[0].qpn, &n) == LOCAL_PEER_NEVER)
		cards[2].stage = 1;
}

/* Opening a FIFO would wake processes that wait for a reader. */
static void a_fifo_is_not_opened(void **state)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct inotify_event event;
	pid_t shows, looks;

	close(mkstemp(fifo));
	unlink(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(inotify_add_watch(watch, fifo, IN_OPEN) >= 0);
	cards[2].stage = 0;
	shows = begin_process(&cards[0], show_a_fifo);
	looks = begin_process(&cards[1], look_at_a_fifo);
	assert_int_equal(cards[2].stage, 1);
	assert_true(read(watch, &event, sizeof(event)) < 0);
	end_process(looks, SIGKILL);
	end_process(shows, SIGKILL);
	unlink(fifo);
	close(watch);
}

/* The attacker knows one word of the memory of the process that it names. */
static void point_at_another(struct card *c)
{
	me.hca.shared->nonce.value = 0;
	me.hca.shared->nonce.va = (uintptr_t)memory;
	me.hca.shared->pid = (uint32_t)c->va;
}

static void an_arena_that_names_another_process_is_refused(void **state)
{
	struct local_peer *n;
	pid_t victim, pid;

	memset(memory, 0, sizeof(memory));
	victim = begin_process(&cards[0], NULL);
	cards[1].va = (uint64_t)victim;
	pid = begin_process(&cards[1], point_at_another);
	assert_int_equal(get_peer(cards[1].qpn, &n), LOCAL_PEER_NEVER);
	assert_non_null(strstr(said, "its arena says that it is another "
				     "process's"));
	end_process(pid, SIGKILL);
	end_process(victim, SIGKILL);
}

/* A process with privileges could read the memory all the same. */
static void
a_peer_whose_memory_the_kernel_refuses_is_reached_by_packets(void **state)
{
	struct local_peer *n = NULL;
	pid_t pid;

	if (!geteuid())
		SKIP_FOR("root may read the memory of any process");
	pid = begin_process(&cards[0], become_undumpable);
	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_NEVER);
	assert_non_null(strstr(said, "kernel"));
	end_process(pid, SIGKILL);
}

static void with_direct_off_or_a_capture_nothing_is_shared(void **state)
{
	struct local_peer *n = NULL;
	pid_t pid = begin_process(&cards[0], NULL);

	close_me();
	setenv("ADVERB_DIRECT", "0", 1);
	open_me();
	assert_false(local_peer_is_open());
	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_NEVER);
	close_me();
	unsetenv("ADVERB_DIRECT");
	setenv("ADVERB_PCAP", "/nowhere/file", 1);
	open_me();
	assert_false(local_peer_is_open());
	unsetenv("ADVERB_PCAP");
	end_process(pid, SIGKILL);
}

/* Each process maps all others, and some die meanwhile. */
static void meet_all(struct card *c)
{
	uint32_t i = (uint32_t)(c - cards);

	c->qpn = broker_link_qpn(77);
	c->stage = 1;
	wait_for(c, 2);
	for (uint32_t k = 0; k < CROWD; k++) {
		struct local_peer *n = NULL;

		if (get_peer(cards[k].qpn, &n) == LOCAL_PEER_HERE)
			c->va += !!hca_is_alive(n->hca);
		if (k == CROWD / 2 && i % 4 == 3)
			raise(SIGKILL);
	}
	c->stage = 3;
	wait_for(c, 9);
	close_me();
	_exit(c->va >= CROWD - CROWD / 4 ? 0 : 1);
}

static void a_crowd_maps_itself_while_some_die(void **state)
{
	pid_t pid[CROWD];
	int status;

	for (int i = 0; i < CROWD; i++)
		pid[i] = begin_process(&cards[i], meet_all);
	for (int i = 0; i < CROWD; i++)
		cards[i].stage = 2;
	for (int i = 0; i < CROWD; i++) {
		if (i % 4 == 3)
			waitpid(pid[i], NULL, 0);
		else
			wait_for(&cards[i], 3);
	}
	for (int i = 0; i < CROWD; i++) {
		if (i % 4 == 3)
			continue;
		cards[i].stage = 9;
		waitpid(pid[i], &status, 0);
		assert_int_equal(status, 0);
	}
}

static void an_answer_that_a_dead_process_left_is_no_local_peer(void **state)
{
	struct local_peer *n = NULL;

	for (int i = 0; i < 5; i++) {
		pid_t pid = begin_process(&cards[i], NULL);

		local_peer_get(
			broker_link_class(cards[i].qpn), 0,
			&n); /* the answer is under way when the process dies */
		end_process(pid, SIGKILL);
		assert_int_equal(get_peer(cards[i].qpn, &n), LOCAL_PEER_NEVER);
	}
}

/* Acts as a process of another build until stage 2, then as one of this build.
 */
static void be_another_first(struct card *c)
{
	me.hca.shared->shape++;
	c->qpn = broker_link_qpn(77);
	c->stage = 1;
	wait_for(c, 2);
	me.hca.shared->shape--;
	c->stage = 3;
	wait_for(c, 9);
}

/* The refusal was about a process that may have ended since, and another
 * process may have the class now. */
static void a_refusal_that_was_not_taken_is_forgotten(void **state)
{
	pid_t pid = begin_process(&cards[0], be_another_first);
	struct local_peer *n = NULL;

	local_peer_expect(cards[0].qpn);
	assert_true(local_peer_is_asking());
	while (local_peer_is_asking()) {
		struct pollfd p = {broker_link_fd(), POLLIN, 0};

		poll(&p, 1, 5);
		broker_link_woken();
		broker_link_turn(NULL, UINT64_MAX / 2);
	}
	assert_int_equal(count_mapped(), 1);
	cards[0].stage = 2;
	wait_for(&cards[0], 3);
	local_peer_expect(cards[0].qpn);
	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_HERE);
	local_peer_put(n);
	end_process(pid, SIGKILL);
}

#define SECOND 1000000000u

/* The time does not become longer when local_peer_note_death is called often.
 */
static void
the_lists_are_repaired_for_a_second_after_a_death(void **state) NO_LOCK_ANALYSIS
{
	const struct hca_qp_cap cap = {1, 1, 1, 1, 0, NULL};
	struct cq *cq = cq_new(&me.hca, 1, 0, false);
	struct qp *qp = qp_new(&me.hca, 7, HCA_QPT_RC, 1, cq, cq, &cap, false);

	assert_non_null(qp);
	assert_false(local_peer_note_death(SECOND));
	for (int is_held = 0; is_held < 2; is_held++) {
		local_peer_died();
		alock_take(
			&qp_target(qp)->lock); /* as if a dead thread held it */
		for (int i = 0; i < 5000; i++)
			assert_true(local_peer_note_death(SECOND));
		assert_true(local_peer_note_death(SECOND + SECOND / 2));
		if (!is_held)
			alock_give(&qp_target(qp)->lock);
		/* the lists were looked at just before */
		assert_true(local_peer_note_death(SECOND + SECOND / 2 + 1));
		assert_int_equal(local_peer_note_death(SECOND + 3 * SECOND / 4),
				 is_held);
		assert_false(local_peer_note_death(2 * SECOND));
		if (is_held)
			alock_give(&qp_target(qp)->lock);
	}
}

/* Begins and ends without descriptors, so without a file of /proc.  Returns the
 * result of local_peer_begin. */
static void *begin_without_files(void *arg)
{
	struct rlimit files, none;
	int *err = arg;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){0, files.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	*err = local_peer_begin();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	if (!*err)
		local_peer_end();
	return NULL;
}

/* A process without a broker has no peers that must find it alive. */
static void without_a_broker_a_process_needs_no_proc(void **state)
{
	static const bool has_broker[] = {false, true};
	uint64_t seed[4] = {1, 2, 3, 4};
	pthread_t thread;
	int err = 1;

	for (size_t i = 0; i < TEST_COUNT(has_broker); i++) {
		assert_int_equal(arena_map_new(&me.map), 0);
		space_self_init(&me.space);
		assert_int_equal(
			hca_init(&me.hca, me.map.arena, &me.space.space, seed),
			0);
		local_peer_open(&me.hca, true);
		me.fd = has_broker[i] ? broker_link_socket(me.map.fd,
							   local_peer_wake_fd(),
							   60000000000u)
				      : -1;
		pthread_create(&thread, NULL, begin_without_files, &err);
		pthread_join(thread, NULL);
		assert_int_equal(err, has_broker[i] ? -EMFILE : 0);
		local_peer_close();
		broker_link_close();
		close(me.fd);
		space_self_fini(&me.space);
		arena_map_free(&me.map);
	}
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static int setup_cards(void **state)
{
	cards = mmap(NULL, CROWD * sizeof(*cards), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setenv("ADVERB_EXPLAIN", "0", 1);
	return enter_namespace(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(the_memory_of_a_peer_is_reached_and_the_peer_is_woken),
		EACH(a_process_is_its_own_local_peer),
		EACH(a_peer_that_is_asked_for_twice_is_mapped_once),
		EACH(dead_peers_are_known_at_once_and_unmapped_when_unused),
		EACH(a_peer_that_executes_another_program_is_gone),
		EACH(a_peer_that_closes_is_gone),
		EACH(a_peer_without_a_usable_arena_is_reached_by_packets),
		EACH(a_file_that_is_no_memory_is_not_opened),
		EACH(a_fifo_is_not_opened),
		EACH(an_arena_that_names_another_process_is_refused),
		EACH(a_peer_whose_memory_the_kernel_refuses_is_reached_by_packets),
		EACH(with_direct_off_or_a_capture_nothing_is_shared),
		EACH(a_crowd_maps_itself_while_some_die),
		EACH(an_answer_that_a_dead_process_left_is_no_local_peer),
		EACH(a_refusal_that_was_not_taken_is_forgotten),
		EACH(the_lists_are_repaired_for_a_second_after_a_death),
		cmocka_unit_test(without_a_broker_a_process_needs_no_proc),
	};

	return cmocka_run_group_tests(tests, setup_cards, NULL);
}
