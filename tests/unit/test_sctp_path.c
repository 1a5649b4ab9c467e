/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/sctp_path: over raw sockets, associations of one process may have
 * different addresses.  The test runs in a network namespace of its own, where
 * it may open raw sockets. */
#include "own_network.h"
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/sctp.h"
#include "wire/sctp_path.h"

static bool is_alone; /* in a network namespace of its own */

static struct sockaddr_in6 address_of(const char *ip)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6};

	assert_int_equal(inet_pton(AF_INET6, ip, &at.sin6_addr), 1);
	return at;
}

/* Starts wire/sctp.  Returns false if libusrsctp is not installed. */
static bool has_library(void)
{
	const struct sctp_options options = {.is_raw = true};
	const char *why;
	int err = sctp_start(&options, &why);

	if (err == -ELIBACC && strstr(why, "libusrsctp2"))
		return false;
	if (err)
		fprintf(stderr, "sctp_start: %s\n", why);
	assert_int_equal(err, 0);
	return true;
}

#define NEEDS_LIBRARY()                                                        \
	do {                                                                   \
		if (!is_alone)                                                 \
			SKIP_FOR("no network namespace can be made");          \
		if (!has_library())                                            \
			SKIP_FOR("libusrsctp2 is not installed");              \
	} while (0)

static void await_input(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
}

/* A listener, and both ends of an association with it. */
struct pair {
	int listener, caller, called;
	struct sctp_news news[2]; /* of the caller, and of the called side */
};

static struct sockaddr_in6 listen_at(struct pair *p, const char *ip)
{
	struct sockaddr_in6 at = address_of(ip);
	int fd = sctp_bind(&at, false);

	assert_true(fd >= 0);
	p->listener = sctp_listen(fd, &at, 8);
	assert_true(p->listener >= 0);
	return at;
}

/* Calls the port of `at` at the address `to` from the address `from`. */
static void begin_pair(struct pair *p, const struct sockaddr_in6 *at,
		       const char *from, const char *to)
{
	struct sockaddr_in6 own = address_of(from), peer = address_of(to);
	int fd = sctp_bind(&own, false);

	assert_true(fd >= 0);
	peer.sin6_port = at->sin6_port;
	p->caller = sctp_connect(fd, &own, &peer);
	assert_true(p->caller >= 0);
	await_input(p->caller);
	assert_int_equal(recv(p->caller, &p->news[0], sizeof(p->news[0]), 0),
			 sizeof(p->news[0]));
	assert_int_equal(p->news[0].err, 0);
	await_input(p->listener);
	p->called = sctp_accept(p->listener, &p->news[1]);
	assert_true(p->called >= 0);
}

static void end_pair(struct pair *p)
{
	close(p->caller);
	close(p->called);
	close(p->listener);
}

static void assert_address(const struct sockaddr_in6 *is, const char *ip)
{
	struct sockaddr_in6 want = address_of(ip);

	assert_memory_equal(&is->sin6_addr, &want.sin6_addr, 16);
}

static void assert_paths(const struct pair *p, const char *from, const char *to)
{
	assert_address(&p->news[0].local, from);
	assert_address(&p->news[0].remote, to);
	assert_address(&p->news[1].local, to);
	assert_address(&p->news[1].remote, from);
}

static void assert_delivers(int from, int to)
{
	uint8_t sent[1000] = {[3] = 0x10}, got[1000];

	memset(sent + 4, 7, sizeof(sent) - 4);
	assert_int_equal(send(from, sent, sizeof(sent), 0), sizeof(sent));
	await_input(to);
	assert_int_equal(recv(to, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(sent, got, sizeof(got));
}

static void a_socket_tells_its_address(void **state)
{
	struct sockaddr_in6 at = address_of("::ffff:127.0.0.2"), found;
	int fd;

	if (!is_alone)
		SKIP_FOR("no network namespace can be made");
	for (int is_raw = 0; is_raw < 2; is_raw++) {
		at.sin6_port = 0;
		fd = sctp_path_open(&at, false, is_raw);
		assert_true(fd >= 0);
		assert_true(sctp_path_address(fd, &found));
		close(fd);
		assert_memory_equal(&found.sin6_addr, &at.sin6_addr, 16);
		assert_int_equal(found.sin6_port, at.sin6_port);
		assert_int_equal(!at.sin6_port, is_raw);
	}
	assert_false(sctp_path_address(fd, &found));
}

/* The process's first address does not become the address of its later
 * associations. */
static void each_address_has_a_socket(void **state)
{
	struct sockaddr_in6 at;
	struct pair a, b;

	NEEDS_LIBRARY();
	at = listen_at(&a, "::ffff:127.0.0.1");
	begin_pair(&a, &at, "::ffff:127.0.0.1", "::ffff:127.0.0.1");
	at = listen_at(&b, "::ffff:127.0.0.2");
	begin_pair(&b, &at, "::ffff:127.0.0.3", "::ffff:127.0.0.2");
	assert_paths(&a, "::ffff:127.0.0.1", "::ffff:127.0.0.1");
	assert_paths(&b, "::ffff:127.0.0.3", "::ffff:127.0.0.2");
	assert_delivers(a.caller, a.called);
	assert_delivers(b.called, b.caller);
	end_pair(&a);
	end_pair(&b);
}

/* Answers come from the address that was called.  Packets of associations on
 * another raw socket are left to that socket. */
static void a_listener_at_all_addresses_answers_from_each(void **state)
{
	struct sockaddr_in6 at;
	struct pair a, b;

	NEEDS_LIBRARY();
	at = listen_at(&a, "::ffff:0.0.0.0");
	begin_pair(&a, &at, "::ffff:127.0.0.5", "::ffff:127.0.0.4");
	at = listen_at(&b, "::ffff:127.0.0.6");
	begin_pair(&b, &at, "::ffff:127.0.0.5", "::ffff:127.0.0.6");
	assert_paths(&a, "::ffff:127.0.0.5", "::ffff:127.0.0.4");
	assert_paths(&b, "::ffff:127.0.0.5", "::ffff:127.0.0.6");
	assert_delivers(a.called, a.caller);
	assert_delivers(b.caller, b.called);
	end_pair(&a);
	end_pair(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_socket_tells_its_address),
		cmocka_unit_test(each_address_has_a_socket),
		cmocka_unit_test(a_listener_at_all_addresses_answers_from_each),
	};

	is_alone = own_network_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
