/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that map each other's arenas, in a network namespace of their own
 * with a broker.  open_me gives each process an arena, a class and a thread, as
 * host/host.c does; the thread does not run the progress loop.
 */
#ifndef TESTS_UNIT_LOCAL_PEERS_H
#define TESTS_UNIT_LOCAL_PEERS_H

#include "brokers.h"

#include "hca/event.h"
#include "host/broker_link.h"
#include "host/local_peer.h"
#include "log/log.h"
#include "memory/arena_map.h"
#include "memory/space_self.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#define CROWD 16

/* The facts that a process gives about itself, in memory that all share. */
struct card {
	/* 1: the facts are set; 9: the process may end; others: see each test
	 */
	_Atomic int stage;
	/* a QPN of the process's class */
	uint32_t qpn;
	/* the address of `memory` in the process */
	uint64_t va;
};

static struct card *cards;

/* the state of this process */
static struct {
	struct arena_map map;
	struct space_self space;
	struct hca hca;
	pthread_t thread;
	/* is_up: the thread has begun; is_ending: the thread is to end */
	_Atomic int is_up, is_ending;
	int fd; /* the socket of the broker link */
} me;

static uint8_t memory[8192];
static char said[256]; /* the latest message to the user */

/* Replaces log_say of src/log: stores the message in `said`, prints nothing. */
void log_say(enum log_cause cause, uint64_t detail, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(said, sizeof(said), fmt, args);
	va_end(args);
}

static inline void *keep_alive(void *arg)
{
	assert_int_equal(local_peer_begin(), 0);
	me.is_up = 1;
	while (!me.is_ending)
		usleep(1000);
	local_peer_end();
	return NULL;
}

/* Gives this process an arena, a class and a thread, as host.c does. */
static inline void open_me(void)
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

static inline void close_me(void)
{
	me.is_ending = 1;
	pthread_join(me.thread, NULL);
	local_peer_close();
	broker_link_close();
	close(me.fd);
	space_self_fini(&me.space);
	arena_map_free(&me.map);
}

static inline void wait_for(struct card *c, int stage)
{
	while (c->stage != stage)
		usleep(200);
}

/* Fills the card, and waits until the card's stage is 9. */
static inline void show_card(struct card *c)
{
	c->qpn = broker_link_qpn(77);
	c->va = (uintptr_t)memory;
	c->stage = 1;
	wait_for(c, 9);
}

/* The processes that the running test has started. */
static pid_t started[CROWD];
static size_t started_count;

/* Starts a process that calls open_me, `what` (unless NULL) and show_card, and
 * ends after stage 9.  Returns its pid when the card is filled.  The test fails
 * if the process ends earlier. */
static inline pid_t begin_process(struct card *c, void (*what)(struct card *c))
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

static inline void end_process(pid_t pid, int sig)
{
	kill(pid, sig);
	waitpid(pid, NULL, 0);
}

/* Asks the broker for the arena of the process that has this QPN, and waits for
 * the answer.  Stores the peer in *n. */
static inline enum local_peer_is get_peer(uint32_t qpn, struct local_peer **n)
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

static inline int set_up(void **state)
{
	/* host/local_peer.c calls log_say for a peer that it refuses only if
	 * ADVERB_DIRECT is set */
	setenv("ADVERB_DIRECT", "1", 1);
	*said = 0;
	memset(cards, 0, CROWD * sizeof(*cards));
	open_me();
	return 0;
}

/* Ends the processes that a failed test has left. */
static inline int tear_down(void **state)
{
	while (started_count) {
		pid_t pid = started[--started_count];

		if (!waitpid(pid, NULL, WNOHANG))
			end_process(pid, SIGKILL);
	}
	close_me();
	return 0;
}

/* Returns how many arenas this process has mapped, its own included. */
static inline int count_mapped(void)
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

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* The setup of a group of tests: makes the cards, and enters a network
 * namespace. */
static inline int setup_cards(void **state)
{
	cards = mmap(NULL, CROWD * sizeof(*cards), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setenv("ADVERB_EXPLAIN", "0", 1);
	return enter_namespace(state);
}

#endif
