/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/sport: datagrams to different processes have different source ports, and
 * sockets are closed when they are unused. */
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "own_network.h"
#include "util/rng.h"
#include "util/step.h"
#include "wire/port.h"
#include "wire/sender.h"
#include "wire/sport.h"
#include "wire/udp.h"

#define PAIRS  200
#define STEPS  20000
#define PORTS  0x4000 /* the number of the dynamic ports, RFC 6335, 6 */
#define TRIES  512    /* the ports that are tried for one pair */
#define LATER  (SPORT_IDLE_NS + 1)
#define SECOND 1000000000u

static struct sports s;
static uint16_t port[PAIRS];

static int set_up(void **state)
{
	memset(port, 0, sizeof(port));
	return sport_init(&s, 4791, false);
}

static int tear_down(void **state)
{
	sport_fini(&s);
	return 0;
}

/* The address of peer i; odd peers have IPv4 addresses. */
static const uint8_t *peer_ip(uint32_t i)
{
	static uint8_t a[16];

	memset(a, 0, sizeof(a));
	if (i % 2)
		memset(a + 10, 0xff, 2);
	a[13] = (uint8_t)(i / 64);
	a[15] = 1;
	return a;
}

static bool is_open(uint16_t p)
{
	const struct sender *sender = sport_sender(&s, p);

	return sender && fcntl(sender->fd, F_GETFD) >= 0;
}

static uint16_t take_port(uint32_t i, uint64_t now)
{
	return sport_take(&s, peer_ip(i), i % 64, now);
}

static uint16_t find_port(uint32_t i)
{
	return sport_find(&s, peer_ip(i), i % 64);
}

static void two_hundred_processes_have_a_port_each(void **state)
{
	for (uint32_t i = 0; i < PAIRS; i++) {
		assert_int_equal(find_port(i), 0);
		port[i] = take_port(i, 1);
		assert_true(port[i] >= 0xc000 && is_open(port[i]));
		for (uint32_t k = 0; k < i; k++)
			assert_int_not_equal(port[i], port[k]);
	}
	for (uint32_t i = 0; i < PAIRS; i++)
		assert_int_equal(find_port(i), port[i]);
	assert_int_equal(s.count, PAIRS);
}

static void an_unused_socket_is_closed_when_another_is_opened(void **state)
{
	for (uint32_t i = 0; i < 3; i++)
		port[i] = take_port(i, 0);
	assert_int_equal(take_port(1, 0), port[1]);
	sport_give(&s, port[0]);
	sport_give(&s, port[1]);
	/* The first sweep closes no socket, since all are fresh
	 * (sweep_ports). */
	take_port(3, LATER);
	assert_true(is_open(port[0]));
	take_port(4, 2 * LATER);
	assert_null(sport_sender(&s, port[0]));
	assert_int_equal(find_port(0), 0);
	/* one of the two users still has the port */
	assert_int_equal(find_port(1), port[1]);
	assert_int_equal(find_port(2), port[2]);
	assert_int_equal(s.count, 4);
}

static void a_socket_for_datagrams_stays(void **state)
{
	port[0] = sport_open(&s, peer_ip(0), 0, 0);
	for (uint32_t i = 1; i < 5; i++) {
		assert_int_equal(find_port(0), port[0]);
		sport_open(&s, peer_ip(i), i % 64, i * LATER);
	}
	assert_true(is_open(port[0]));
	assert_true(s.count <= 3);
}

static void giving_a_port_that_was_not_taken_changes_nothing(void **state)
{
	port[0] = take_port(0, 0);
	port[1] = sport_open(&s, peer_ip(1), 1, 0);
	sport_give(&s, 0);
	sport_give(&s, 4791);
	sport_give(&s, 0xffff);
	sport_give(&s, port[1]);
	assert_null(sport_sender(&s, 4791));
	assert_null(sport_sender(&s, 0xffff));
	assert_int_equal(s.count, 2);
	take_port(2, LATER); /* the first sweep finds all sockets fresh */
	take_port(3, 2 * LATER);
	assert_true(is_open(port[0]));
	assert_null(sport_sender(&s, port[1])); /* port[1] has no user */
}

/* Makes a TCP connection of two sockets. */
static void connect_pair(int pair[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)(void *)&at, size),
			 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(
		getsockname(listener, (struct sockaddr *)(void *)&at, &size),
		0);
	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(pair[0], (struct sockaddr *)(void *)&at, size),
			 0);
	pair[1] = accept(listener, NULL, NULL);
	assert_true(pair[1] >= 0);
	close(listener);
}

static void processes_beyond_a_quarter_of_the_descriptors_share(void **state)
{
	struct rlimit old, few = {64, 64};
	uint32_t others = 0;

	getrlimit(RLIMIT_NOFILE, &old);
	few.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	sport_fini(&s);
	sport_init(&s, 4791, false);
	setrlimit(RLIMIT_NOFILE, &old);
	for (uint32_t i = 0; i < PAIRS; i++) {
		port[i] = take_port(i, 1);
		assert_true(is_open(port[i]));
		others += i && port[i] != port[0];
	}
	assert_int_equal(s.count, 16);
	assert_true(others > PAIRS / 2);
	for (uint32_t i = 0; i < PAIRS; i++)
		sport_give(&s, port[i]);
	/* The first sweep finds all sockets fresh, and closes none.  So this
	 * pair shares a socket. */
	take_port(PAIRS, LATER);
	take_port(PAIRS + 1, 2 * LATER);
	assert_true(s.count <= 2);
}

/* A receiver of this host refuses the packets of a connection whose source port
 * no user owns at every address. */
static void a_port_that_pairs_share_is_owned_at_every_address(void **state)
{
	struct inaddr here = {.ip = {[15] = 1}, .port = 4791}, from = here;
	struct sockaddr_in6 name = {.sin6_family = AF_INET6,
				    .sin6_port = htons(here.port),
				    .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sender *sender;
	uid_t user;

	s.most = 1;
	from.port = sport_take(&s, here.ip, 0, 1);
	sender = sport_sender(&s, from.port);
	if (!sender || sender->is_v4)
		SKIP_FOR("there is no IPv6 here");
	/* as a socket is connected whose pair is another host's */
	assert_int_equal(connect(sender->fd, (struct sockaddr *)(void *)&name,
				 sizeof(name)),
			 0);
	sender->is_connected = true;
	assert_int_equal(port_owner(&from, &here, &user), PORT_NOBODY);
	assert_int_equal(sport_take(&s, here.ip, 1, 1), from.port);
	assert_false(sender->is_connected);
	assert_int_equal(port_owner(&from, &here, &user), PORT_USER);
	assert_int_equal(user, geteuid());
}

/* The program has closed all descriptors, and connects a socket of its own. */
static void a_connection_of_the_program_stays_connected(void **state)
{
	struct inaddr here = {.ip = {[15] = 1}, .port = 4791};
	struct sender *sender;
	int pair[2];
	struct sockaddr_storage name;
	socklen_t size = sizeof(name);
	uint16_t first;

	s.most = 1;
	first = sport_take(&s, here.ip, 0, 1);
	sender = sport_sender(&s, first);
	if (!sender || sender->is_v4)
		SKIP_FOR("there is no IPv6 here");
	sender->is_connected = true;
	connect_pair(pair);
	assert_int_equal(dup2(pair[0], sender->fd), sender->fd);
	close(pair[0]);
	sport_take(&s, here.ip, 1, 1);
	assert_int_equal(
		getpeername(sender->fd, (struct sockaddr *)&name, &size), 0);
	close(pair[1]);
}

/* Does one of the next checks find a socket that is not the wire's any more? */
static bool finds_a_lost_socket(void)
{
	bool holds = true;

	for (int i = 0; i < 16; i++)
		holds &= sport_check_next(&s);
	return !holds;
}

static void a_socket_that_the_program_has_closed_is_found(void **state)
{
	int fd = -1;

	assert_false(finds_a_lost_socket());
	for (uint32_t i = 0; i < 50; i++) {
		port[i] = sport_take(&s, peer_ip(i), i, 0);
		assert_true(port[i]);
	}
	assert_false(finds_a_lost_socket());
	fd = sport_sender(&s, port[7])->fd;
	close(fd);
	assert_true(finds_a_lost_socket());
	assert_int_equal(open("/dev/null", O_RDONLY), fd);
	assert_true(finds_a_lost_socket());
	assert_true(finds_a_lost_socket());
	sport_fini(&s);
	assert_int_equal(close(fd), 0); /* not closed by sport_fini */
	assert_int_equal(sport_init(&s, 4791, false), 0);
}

/* A port is found from sport_take until sport_give, whatever sockets are opened
 * and closed in the meantime. */
static void a_socket_in_use_is_found(void **state)
{
	struct rng r;
	uint64_t now = 1;

	rng_init(&r, 7);
	for (int step = 0; step < STEPS; step++) {
		uint32_t i = rng_below(&r, PAIRS);

		now += SPORT_IDLE_NS / 50;
		if (port[i]) {
			assert_int_equal(find_port(i), port[i]);
			assert_true(is_open(port[i]));
			sport_give(&s, port[i]);
			port[i] = 0;
		} else {
			port[i] = take_port(i, now);
			for (uint32_t k = 0; k < PAIRS; k++)
				assert_true(k == i || port[k] != port[i]);
		}
	}
}

/* The number from which the first slot of a look-up and the first port to try
 * are computed. */
static uint32_t hash_of(const uint8_t ip[16], uint32_t class)
{
	uint32_t h = 2166136261u ^ class;

	for (int i = 0; i < 16; i++)
		h = (h ^ ip[i]) * 16777619u;
	h = (h ^ class) * 16777619u;
	return h ^ h >> 16;
}

/* Occupies all ports that sport tries for the pair of ip and class. */
static void occupy_ports(const uint8_t ip[16], uint32_t class, int fd[TRIES])
{
	for (uint32_t k = 0; k < TRIES; k++)
		fd[k] = udp_bind(
			(uint16_t)(0xc000 + (hash_of(ip, class) + k) % PORTS));
}

static void free_ports(const int fd[TRIES])
{
	for (uint32_t k = 0; k < TRIES; k++)
		if (fd[k] >= 0)
			close(fd[k]);
}

/* Another user may occupy the ports of a pair for as long as that user wants.
 * Each datagram to this pair calls sport_open. */
static void ports_in_use_are_tried_once_in_a_second(void **state)
{
	int fd[TRIES];

	/* elsewhere other programs use these ports, too */
	if (!own_network_enter())
		SKIP_FOR("this user may make no network namespace");
	port[0] = sport_open(&s, peer_ip(0), 0, 1);
	occupy_ports(peer_ip(2), 2, fd);
	assert_int_equal(sport_open(&s, peer_ip(2), 2, 1), port[0]);
	free_ports(fd);
	assert_int_equal(sport_open(&s, peer_ip(2), 2, SECOND), port[0]);
	assert_int_equal(s.count, 1);
	/* the first port of this pair is far from those in use */
	assert_true(is_open(sport_open(&s, peer_ip(4), 4, SECOND)));
	assert_int_equal(s.count, 2);
	port[2] = sport_open(&s, peer_ip(2), 2, SECOND + 1);
	assert_int_equal(find_port(2), port[2]);
	assert_int_equal(s.count, 3);
}

/* The action of another thread at the next step; NULL: none. */
static void (*meanwhile)(void);

void step_at(const char *name)
{
	void (*now)(void) = meanwhile;

	meanwhile = NULL;
	if (now)
		now();
}

/* Closes the socket of the first pair, whose slot a second pair then gets. */
static void reuse_slot(void)
{
	uint32_t hash = hash_of(peer_ip(1), 1), class = 2, other;

	do
		other = hash_of(peer_ip(1), ++class);
	while ((other - hash) % SPORT_SLOTS || !((other - hash) % PORTS));
	/* After the sweep of this call the first pair's socket is not fresh, so
	 * the sweep of the next call closes it. */
	sport_open(&s, peer_ip(3), 3, LATER);
	port[1] = sport_open(&s, peer_ip(1), class, 2 * LATER);
	assert_int_equal(s.count, 2);
}

static void a_port_that_is_reused_meanwhile_is_not_taken(void **state)
{
	port[0] = sport_open(&s, peer_ip(1), 1, 0);
	assert_true(is_open(port[0]));
	meanwhile = reuse_slot;
	assert_int_equal(sport_find(&s, peer_ip(1), 1), 0);
	assert_true(is_open(port[1]));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(two_hundred_processes_have_a_port_each),
		T(an_unused_socket_is_closed_when_another_is_opened),
		T(a_socket_for_datagrams_stays),
		T(giving_a_port_that_was_not_taken_changes_nothing),
		T(processes_beyond_a_quarter_of_the_descriptors_share),
		T(a_connection_of_the_program_stays_connected),
		T(a_port_that_pairs_share_is_owned_at_every_address),
		T(a_socket_that_the_program_has_closed_is_found),
		T(a_socket_in_use_is_found),
		T(a_port_that_is_reused_meanwhile_is_not_taken),
		T(ports_in_use_are_tried_once_in_a_second),
	};

	return cmocka_run_group_tests_name("sport", tests, NULL, NULL);
}
