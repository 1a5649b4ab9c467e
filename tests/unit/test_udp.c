/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/udp: the datagrams that a socket receives and sends. */
#include "brought.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#include "wire/relay.h"
#include "wire/udp.h"

/* Adapters in hardware and rxe send UDP checksum 0 over IPv6.  Without
 * UDP_NO_CHECK6_RX the kernel drops such datagrams. */
static void no_checksum_over_ipv6_is_no_error(void **state)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6,
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in6 bound;
	socklen_t len = sizeof(bound);
	struct udp_dgram got[UDP_BATCH];
	int fd = udp_bind(0), one = 1;
	int sender = socket(AF_INET6, SOCK_DGRAM, 0);
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	struct udp_socket u;
	(void)state;

	assert_true(fd >= 0);
	getsockname(fd, (struct sockaddr *)(void *)&bound, &len);
	assert_return_code(udp_init(&u, fd, (struct udp_offload){0}, true), 0);
	to.sin6_port = bound.sin6_port;
	if (sender < 0 ||
	    setsockopt(sender, SOL_UDP, UDP_NO_CHECK6_TX, &one, sizeof(one)) ||
	    sendto(sender, "roce", 4, 0, (struct sockaddr *)(void *)&to,
		   sizeof(to)) != 4)
		SKIP_FOR("the host lacks IPv6");
	assert_int_equal(poll(&readable, 1, TEST_WAIT_MS), 1);
	assert_int_equal(udp_receive(&u, got), 1);
	assert_int_equal(got[0].len, 4);
	assert_memory_equal(got[0].bytes, "roce", 4);
	close(sender);
	udp_fini(&u);
}

/* If nobody listens at a datagram's port, the kernel returns ECONNREFUSED when
 * the next datagram is sent.  That datagram must be sent all the same. */
static void a_refusal_costs_no_other_datagram(void **state)
{
	struct udp_dgram d = {.bytes = (const uint8_t *)"roce",
			      .len = 4,
			      .segment = 4,
			      .to = {.port = 4791}};
	struct pollfd told = {0};
	struct udp_socket u;
	(void)state;

	d.to.ip[15] = 1; /* ::1 */
	memcpy(d.from.ip, d.to.ip, 16);
	assert_return_code(
		udp_init(&u, udp_bind(0), (struct udp_offload){0}, false), 0);
	d.from.port = sport_take(&u.sports, d.to.ip, 1, 0);
	told.fd = sport_sender(&u.sports, d.from.port)->fd;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(udp_send(&u, &d, 1), 1);
		if (poll(&told, 1, i ? 0 : 1000) < 1 && !i) {
			udp_fini(&u);
			SKIP_FOR(
				"another process has RoCEv2's port, or the host lacks IPv6");
		}
	}
	assert_int_equal(u.refused, 0);
	udp_fini(&u);
}

/* Returns a datagram from 127.0.0.1 to a socket of this test.  udp_send sends
 * it from the socket that is bound to `port`; 0: from the main socket. */
static struct udp_dgram dgram_to(const struct udp_socket *to, uint16_t port)
{
	struct udp_dgram d = {
		.bytes = (const uint8_t *)"roce", .len = 4, .segment = 4};
	struct in_addr lo = {htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 bound = {0};
	socklen_t len = sizeof(bound);

	getsockname(to->fd, (struct sockaddr *)(void *)&bound, &len);
	inaddr_map_v4(d.to.ip, &lo);
	inaddr_map_v4(d.from.ip, &lo);
	d.to.port = ntohs(bound.sin6_port);
	d.from.port = port;
	return d;
}

/* A struct sender may make the ToS of a datagram the default of its socket, for
 * all datagrams of one system call.  So udp_send sends datagrams with another
 * ToS by another call. */
static void each_datagram_of_a_batch_has_its_own_class(void **state)
{
	static const uint8_t tos[] = {0, 0x68, 0x68, 0, 8};
	static struct udp_dgram got[UDP_BATCH];
	struct udp_dgram d[TEST_COUNT(tos)];
	struct pollfd readable = {.events = POLLIN};
	struct udp_socket u;
	uint16_t port;
	(void)state;

	assert_return_code(
		udp_init(&u, udp_bind(0), (struct udp_offload){0}, false), 0);
	port = sport_take(&u.sports, dgram_to(&u, 0).to.ip, 1, 0);
	assert_non_null(sport_sender(&u.sports, port));
	for (size_t i = 0; i < TEST_COUNT(tos); i++) {
		d[i] = dgram_to(&u, port);
		d[i].tos = tos[i];
	}
	assert_int_equal(udp_send(&u, d, TEST_COUNT(tos)), TEST_COUNT(tos));
	readable.fd = u.fd;
	for (size_t i = 0, k; i < TEST_COUNT(tos);) {
		assert_int_equal(poll(&readable, 1, TEST_WAIT_MS), 1);
		k = udp_receive(&u, got);
		for (size_t n = 0; n < k; n++)
			assert_int_equal(got[n].tos, tos[i++]);
	}
	udp_fini(&u);
}

/* The kernel sends nothing from a loopback address to another host. */
static void a_refused_datagram_is_told_from_those_that_were_sent(void **state)
{
	static const uint8_t elsewhere[] = {192, 0, 2, 1};
	struct udp_dgram d[3];
	struct udp_socket u;
	(void)state;

	assert_return_code(
		udp_init(&u, udp_bind(0), (struct udp_offload){0}, true), 0);
	for (int i = 0; i < 3; i++)
		d[i] = dgram_to(&u, 0);
	memcpy(d[1].to.ip + 12, elsewhere, 4);
	assert_int_equal(udp_send(&u, d, 3), 3);
	assert_int_equal(d[0].err, 0);
	assert_true(d[1].err == EINVAL || d[1].err == ENETUNREACH);
	assert_int_equal(d[2].err, 0);
	assert_int_equal(u.refused, 1);
	udp_fini(&u);
}

#define PIECES	    1000 /* more than UDP_MAX_SEGMENTS of any kernel */
#define PIECE_BYTES 8

/* The u.seal of the test below: marks each segment that udp_send seals. */
static void mark_segment(const struct inaddr *from, const struct inaddr *to,
			 uint8_t *bytes, size_t len)
{
	assert_int_equal(len, PIECE_BYTES);
	assert_true(inaddr_is_v4(to->ip));
	bytes[len - 1] = 'x';
}

/* The ICRC covers the IPv4 id, which depends on a segment's place in a datagram
 * that the kernel splits.  If udp_send sends the segments one by one instead,
 * it first calls u.seal for each, which changes the ICRC. */
static void segments_of_a_datagram_that_is_not_split_are_sealed(void **state)
{
	static uint8_t bytes[PIECES * PIECE_BYTES];
	static struct udp_dgram got[UDP_BATCH];
	struct udp_dgram d = {
		.bytes = bytes, .len = sizeof(bytes), .segment = PIECE_BYTES};
	struct in_addr lo = {htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 bound;
	socklen_t len = sizeof(bound);
	struct pollfd readable = {.events = POLLIN};
	struct udp_socket u;
	int n = 0;
	size_t k;
	(void)state;

	assert_return_code(udp_init(&u, udp_bind(0),
				    (struct udp_offload){.gso = true}, true),
			   0);
	u.seal = mark_segment;
	getsockname(u.fd, (struct sockaddr *)(void *)&bound, &len);
	inaddr_map_v4(d.to.ip, &lo);
	inaddr_map_v4(d.from.ip, &lo);
	d.to.port = ntohs(bound.sin6_port);
	if (!u.has.gso) {
		udp_fini(&u);
		SKIP_FOR("this kernel has no GSO of UDP");
	}
	assert_int_equal(udp_send(&u, &d, 1), 1);
	assert_int_equal(u.refused, 0);
	readable.fd = u.fd;
	assert_int_equal(poll(&readable, 1, TEST_WAIT_MS), 1);
	while ((k = udp_receive(&u, got)))
		for (size_t i = 0; i < k; i++, n++) {
			assert_int_equal(got[i].len, PIECE_BYTES);
			assert_int_equal(got[i].bytes[PIECE_BYTES - 1], 'x');
		}
	assert_true(n > 0);
	udp_fini(&u);
}

/* The broker, which sends by the relay, may be another user's.  So udp_receive
 * leaves no descriptor open that a message of the relay brings. */
static void a_relay_brings_no_descriptor(void **state)
{
	static const uint8_t bytes[sizeof(struct relay_head) + 64];
	static struct udp_dgram got[UDP_BATCH];
	struct udp_socket u;
	int ends[2];
	(void)state;

	assert_int_equal(relay_pair(ends), 0);
	assert_return_code(udp_init(&u, ends[1], (struct udp_offload){0}, true),
			   0);
	for (size_t size = sizeof(bytes); size; size /= 2) {
		struct brought b = brought_new();

		brought_send(&b, ends[0], bytes, size, 2);
		assert_int_equal(udp_receive(&u, got), 0);
		assert_true(brought_are_closed(&b));
		brought_free(&b);
	}
	close(ends[0]);
	udp_fini(&u);
}

static void *receive_when_cancelled(void *u)
{
	static struct udp_dgram got[UDP_BATCH];

	pthread_cancel(pthread_self());
	assert_int_equal(udp_receive(u, got), 0);
	return u;
}

/* A thread holds the progress lock while it receives.  If the thread ended
 * there, the other threads would wait for the lock for ever. */
static void the_end_of_a_relay_is_no_cancellation_point(void **state)
{
	pthread_t thread;
	struct udp_socket u;
	void *result;
	int ends[2];
	(void)state;

	assert_int_equal(relay_pair(ends), 0);
	assert_return_code(udp_init(&u, ends[1], (struct udp_offload){0}, true),
			   0);
	close(ends[0]);
	assert_int_equal(
		pthread_create(&thread, NULL, receive_when_cancelled, &u), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &u);
	assert_int_equal(shared_own(&u.hang_ups), 1);
	udp_fini(&u);
}

#define MOST_FILES 64

static int filled[MOST_FILES], filled_count;
static struct rlimit limit_before;

/* Leaves this process no free descriptor. */
static void fill_files(void)
{
	struct rlimit now;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit_before), 0);
	now = (struct rlimit){.rlim_cur = MOST_FILES,
			      .rlim_max = limit_before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	while ((fd = fcntl(STDERR_FILENO, F_DUPFD, 0)) >= 0)
		filled[filled_count++] = fd;
}

static void empty_files(void)
{
	while (filled_count)
		close(filled[--filled_count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit_before), 0);
}

/* If the relay stayed open at its number, poll would report its end at once,
 * and a thread that waits for packets would take all of a core. */
static void the_end_of_a_relay_needs_no_free_descriptor(void **state)
{
	static struct udp_dgram got[UDP_BATCH];
	struct pollfd p = {.events = POLLIN};
	struct udp_socket u;
	int ends[2];
	(void)state;

	assert_int_equal(relay_pair(ends), 0);
	assert_return_code(udp_init(&u, ends[1], (struct udp_offload){0}, true),
			   0);
	fill_files();
	/* closes the broker's end, and takes its number */
	dup2(STDERR_FILENO, ends[0]);
	assert_int_equal(udp_receive(&u, got), 0);
	p.fd = u.fd;
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_true(udp_is_ours(&u));
	empty_files();
	close(ends[0]);
	udp_fini(&u);
}

static void a_relay_above_the_limit_of_files_is_lost(void **state)
{
	static struct udp_dgram got[UDP_BATCH];
	struct rlimit was, none;
	struct udp_socket u;
	int ends[2];
	(void)state;

	assert_int_equal(relay_pair(ends), 0);
	assert_return_code(udp_init(&u, ends[1], (struct udp_offload){0}, true),
			   0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max};
	close(ends[0]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(udp_receive(&u, got), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_false(udp_is_ours(&u));
	udp_fini(&u);
}

/* udp_init moves the file from the number of a standard descriptor to another
 * number, and only then finds that the file is no socket. */
static void a_file_that_cannot_be_used_is_closed(void **state)
{
	int ends[2], own = fcntl(STDIN_FILENO, F_DUPFD, 3);
	struct pollfd p = {.events = POLLIN};
	struct udp_socket u;
	(void)state;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDIN_FILENO), STDIN_FILENO);
	close(ends[1]);
	assert_int_equal(
		udp_init(&u, STDIN_FILENO, (struct udp_offload){0}, true),
		-ENOTSOCK);
	p.fd = ends[0];
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLHUP);
	close(ends[0]);
	if (own >= 0) {
		dup2(own, STDIN_FILENO);
		close(own);
	}
}

/* udp_leave asks for the interfaces by if_nameindex, which fails because it
 * needs a descriptor for a socket. */
static void a_leave_without_a_free_descriptor_does_not_crash(void **state)
{
	struct in_addr group = {htonl(INADDR_ALLHOSTS_GROUP)};
	struct rlimit was, none;
	struct udp_socket u;
	uint8_t ip[16];
	(void)state;

	inaddr_map_v4(ip, &group);
	assert_return_code(
		udp_init(&u, udp_bind(0), (struct udp_offload){0}, true), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	udp_leave(&u, ip);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	udp_fini(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_checksum_over_ipv6_is_no_error),
		cmocka_unit_test(a_refusal_costs_no_other_datagram),
		cmocka_unit_test(each_datagram_of_a_batch_has_its_own_class),
		cmocka_unit_test(
			a_refused_datagram_is_told_from_those_that_were_sent),
		cmocka_unit_test(
			segments_of_a_datagram_that_is_not_split_are_sealed),
		cmocka_unit_test(a_relay_brings_no_descriptor),
		cmocka_unit_test(the_end_of_a_relay_is_no_cancellation_point),
		cmocka_unit_test(the_end_of_a_relay_needs_no_free_descriptor),
		cmocka_unit_test(a_relay_above_the_limit_of_files_is_lost),
		cmocka_unit_test(a_file_that_cannot_be_used_is_closed),
		cmocka_unit_test(
			a_leave_without_a_free_descriptor_does_not_crash),
	};

	return cmocka_run_group_tests_name("udp", tests, NULL, NULL);
}
