/* SPDX-License-Identifier: BSD-2-Clause */
/* host/local_peer: processes that map each other's arenas, wake each other and
 * end. */
#include "local_peers.h"

#include <sys/resource.h>

static void wait_to_be_woken(struct card *c)
{
	struct pollfd p = {local_peer_wake_fd(), POLLIN, 0};

	c->qpn = broker_link_qpn(77);
	c->va = (uintptr_t)memory;
	c->stage = 1;
	if (poll(&p, 1, TEST_WAIT_MS) == 1)
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

static void processes_map_each_other_while_some_die(void **state)
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

/* Asks the broker for the process that has the QPN, and takes the answer. */
static void ask_ahead(uint32_t qpn)
{
	local_peer_expect(qpn);
	assert_true(local_peer_is_asking());
	while (local_peer_is_asking()) {
		struct pollfd p = {broker_link_fd(), POLLIN, 0};

		poll(&p, 1, 5);
		broker_link_woken();
		broker_link_turn(NULL, UINT64_MAX / 2);
	}
}

/* Keeps the arena, but ends the thread by which peers find the process alive.
 */
static void be_about_to_end(struct card *c)
{
	me.is_ending = 1;
	pthread_join(me.thread, NULL);
	c->qpn = broker_link_qpn(77);
	c->stage = 1;
	wait_for(c, 9);
	_exit(0);
}

/* If such a process were news, direct_select would ask again in each turn of
 * progress, without a pause, until the process is ready or has ended. */
static void a_process_that_is_not_ready_is_no_news(void **state)
{
	pid_t pid = begin_process(&cards[0], be_about_to_end);

	ask_ahead(cards[0].qpn);
	assert_false(local_peer_has_news());
	assert_string_equal(said, "");
	assert_int_equal(count_mapped(), 1);
	end_process(pid, SIGKILL);
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

	ask_ahead(cards[0].qpn);
	assert_int_equal(count_mapped(), 1);
	cards[0].stage = 2;
	wait_for(&cards[0], 3);
	local_peer_expect(cards[0].qpn);
	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_HERE);
	local_peer_put(n);
	end_process(pid, SIGKILL);
}

#define SECOND 1000000000u

/* The repairs end when a repair has succeeded, or when 1 s has passed since the
 * first repair.  Frequent calls of local_peer_note_death do not lengthen this
 * time. */
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
		/* the lists are not looked at again yet */
		assert_true(local_peer_note_death(SECOND + SECOND / 2 + 1));
		assert_int_equal(local_peer_note_death(SECOND + 3 * SECOND / 4),
				 is_held);
		assert_false(local_peer_note_death(2 * SECOND));
		if (is_held)
			alock_give(&qp_target(qp)->lock);
	}
}

/* Calls local_peer_begin while no descriptor is free, so that no file of /proc
 * can be opened, and stores the result in *arg.  Calls local_peer_end after a
 * success. */
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

static bool ask_nobody(uint32_t class)
{
	return false;
}

/* With neither a broker nor a fabric a process has no local peers, and so needs
 * no name as an owner of shared locks, which lock_owner_open makes from a file
 * of /proc.  Without the name, peers would take a process that has peers for
 * one that is about to begin. */
static void a_process_without_peers_needs_no_proc(void **state)
{
	static const struct {
		bool has_broker, has_fabric;
	} kinds[] = {{false, false}, {true, false}, {false, true}};
	uint64_t seed[4] = {1, 2, 3, 4};
	pthread_t thread;
	int err = 1;

	for (size_t i = 0; i < TEST_COUNT(kinds); i++) {
		bool has_broker = kinds[i].has_broker;

		assert_int_equal(arena_map_new(&me.map), 0);
		space_self_init(&me.space);
		assert_int_equal(
			hca_init(&me.hca, me.map.arena, &me.space.space, seed),
			0);
		local_peer_open(&me.hca, true);
		if (kinds[i].has_fabric)
			local_peer_use(1, ask_nobody);
		me.fd = has_broker ? broker_link_socket(me.map.fd,
							local_peer_wake_fd(),
							60000000000u)
				   : -1;
		pthread_create(&thread, NULL, begin_without_files, &err);
		pthread_join(thread, NULL);
		assert_int_equal(
			err, has_broker || kinds[i].has_fabric ? -EMFILE : 0);
		local_peer_close();
		broker_link_close();
		close(me.fd);
		space_self_fini(&me.space);
		arena_map_free(&me.map);
	}
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
		EACH(with_direct_off_or_a_capture_nothing_is_shared),
		EACH(processes_map_each_other_while_some_die),
		EACH(an_answer_that_a_dead_process_left_is_no_local_peer),
		EACH(a_refusal_that_was_not_taken_is_forgotten),
		EACH(a_process_that_is_not_ready_is_no_news),
		EACH(the_lists_are_repaired_for_a_second_after_a_death),
		cmocka_unit_test(a_process_without_peers_needs_no_proc),
	};

	return cmocka_run_group_tests(tests, setup_cards, NULL);
}
