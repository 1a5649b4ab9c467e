/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/sctp: the messages of associations between a listener and callers of
 * this process, over UDP on loopback. */
#include "sctp_pairs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "util/crc.h"

/* The test's clock.  ahead_ns: how far that clock is ahead of the kernel's.
 * stopped_ns: the time at which that clock is stopped; 0: the clock runs.
 * looks: how often the clock was read. */
static atomic_llong ahead_ns, stopped_ns;
static atomic_uint looks;

static long long kernel_ns(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Replaces libc's clock_gettime for all code that is linked into the test. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	long long ns = atomic_load(&stopped_ns);

	if (id != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, id, t);
	if (!ns)
		ns = kernel_ns() + atomic_load(&ahead_ns);
	atomic_fetch_add(&looks, 1);
	*t = (struct timespec){ns / 1000000000, ns % 1000000000};
	return 0;
}

static void stop_clock(void)
{
	atomic_store(&stopped_ns, kernel_ns() + atomic_load(&ahead_ns));
}

static void go_on_clock(void)
{
	atomic_store(&ahead_ns, atomic_load(&stopped_ns) - kernel_ns());
	atomic_store(&stopped_ns, 0);
}

/* How often send still fails because memory is short. */
static atomic_int short_sends;

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	if (atomic_load(&short_sends) <= 0)
		return __real_send(fd, bytes, n, flags);
	atomic_fetch_sub(&short_sends, 1);
	errno = ENOBUFS;
	return -1;
}

static atomic_bool has_no_ipv6; /* the kernel refuses sockets of IPv6 */

/* Replaces libc's socket for all code that is linked into the test. */
int socket(int family, int type, int protocol)
{
	if (family != AF_INET6 || !atomic_load(&has_no_ipv6))
		return (int)syscall(SYS_socket, family, type, protocol);
	errno = EAFNOSUPPORT;
	return -1;
}

#define TOLD 4096 /* how many packets note_packet knows at once */

/* How many packets note_packet was told of as sent, and how many as received.
 * Both ends are in this process, so each packet is sent first and received
 * later. */
static atomic_uint told_sent, told_received;

/* wire/sctp.c calls this function under its lock.  The second call for a packet
 * is that of its receiver. */
static void note_packet(const struct sockaddr_in6 *from,
			const struct sockaddr_in6 *to, const void *packet,
			size_t n)
{
	static uint32_t sums[TOLD]; /* of packets that were not received yet */
	uint32_t sum = crc32c_update(CRC_INIT, packet, n);

	sum = crc32c_update(sum, &from->sin6_port, sizeof(from->sin6_port));
	sum = crc32c_update(sum, &to->sin6_port, sizeof(to->sin6_port));
	for (uint32_t i = 0; i < TOLD; i++)
		if (sums[i] == sum) {
			sums[i] = 0;
			told_received++;
			return;
		}
	sums[told_sent++ % TOLD] = sum;
}

static void both_ends_learn_the_addresses(void **state)
{
	struct pair p;

	NEEDS_LIBRARY();
	begin_pair(&p);
	assert_int_equal(p.news[0].err, 0);
	for (int i = 0; i < 2; i++) {
		assert_true(p.news[i].segment_bytes > 1000);
		assert_memory_equal(&p.news[i].local.sin6_addr, &p.at.sin6_addr,
				    16);
		assert_memory_equal(&p.news[i].remote.sin6_addr,
				    &p.at.sin6_addr, 16);
	}
	assert_int_equal(p.news[0].remote.sin6_port, p.at.sin6_port);
	assert_int_equal(p.news[1].local.sin6_port, p.at.sin6_port);
	assert_int_equal(p.news[0].local.sin6_port, p.news[1].remote.sin6_port);
	end_pair(&p);
}

static void each_message_arrives_once_and_whole(void **state)
{
	static const uint32_t sizes[] = {5, 6, 100, 1000, 8000, 60000};
	static uint8_t sent[SCTP_MESSAGE_MAX], got[SCTP_MESSAGE_MAX];
	struct pair p;

	NEEDS_LIBRARY();
	begin_pair(&p);
	for (uint32_t i = 0; i < TEST_COUNT(sizes); i++)
		for (int way = 0; way < 2; way++) {
			int from = way ? p.called : p.caller;
			int to = way ? p.caller : p.called;

			fill_message(sent, sizes[i], i);
			assert_int_equal(send_fully(from, sent, sizes[i]),
					 sizes[i]);
			await_events(to, POLLIN);
			assert_int_equal(recv(to, got, sizeof(got), 0),
					 sizes[i]);
			assert_memory_equal(sent, got, sizes[i]);
		}
	end_pair(&p);
}

static void a_capture_is_told_of_each_packet_of_both_ends(void **state)
{
	uint32_t sent = told_sent, received = told_received;
	uint8_t m[100];
	struct pair p;

	NEEDS_LIBRARY();
	begin_pair(&p);
	fill_message(m, sizeof(m), 1);
	assert_int_equal(send_fully(p.caller, m, sizeof(m)), sizeof(m));
	await_events(p.called, POLLIN);
	assert_int_equal(recv(p.called, m, sizeof(m), 0), sizeof(m));
	end_pair(&p);
	/* INIT, INIT ACK, COOKIE ECHO, COOKIE ACK, DATA */
	assert_true(told_sent - sent >= 5);
	assert_true(told_received - received >= 5);
}

/* The socket at which send_many sends, and how many messages. */
struct flood {
	int fd;
	uint32_t count;
};

static void *send_many(void *arg)
{
	const struct flood *f = arg;
	uint8_t m[4000];

	for (uint32_t i = 0; i < f->count; i++) {
		fill_message(m, sizeof(m), i);
		memcpy(m + 4, &i, sizeof(i));
		if (send_fully(f->fd, m, sizeof(m)) != sizeof(m))
			return arg;
	}
	return NULL;
}

/* The sender sends as fast as the socket takes messages, and no message is
 * lost: each comes once, in any order. */
static void a_slow_peer_stops_the_sender(void **state)
{
	static uint8_t seen[3000], got[SCTP_MESSAGE_MAX];
	struct flood f = {.count = sizeof(seen)};
	pthread_t thread;
	struct pair p;
	void *failed;

	NEEDS_LIBRARY();
	begin_pair(&p);
	memset(seen, 0, sizeof(seen));
	f.fd = p.caller;
	assert_int_equal(pthread_create(&thread, NULL, send_many, &f), 0);
	for (uint32_t i = 0; i < f.count; i++) {
		uint32_t which;

		await_events(p.called, POLLIN);
		assert_int_equal(recv(p.called, got, sizeof(got), 0), 4000);
		memcpy(&which, got + 4, sizeof(which));
		assert_true(which < f.count && !seen[which]);
		seen[which] = 1;
	}
	pthread_join(thread, &failed);
	assert_null(failed);
	end_pair(&p);
}

/* All that was sent arrives before the end. */
static void a_close_ends_the_association_in_order(void **state)
{
	uint8_t m[2000], got[2000];
	struct pair p;

	NEEDS_LIBRARY();
	for (int way = 0; way < 2; way++) {
		int from, to;

		begin_pair(&p);
		from = way ? p.called : p.caller;
		to = way ? p.caller : p.called;
		for (uint32_t i = 0; i < 20; i++) {
			fill_message(m, sizeof(m), i);
			assert_int_equal(send_fully(from, m, sizeof(m)),
					 sizeof(m));
		}
		shutdown(from, SHUT_WR);
		for (uint32_t i = 0; i < 20; i++) {
			await_events(to, POLLIN);
			assert_int_equal(recv(to, got, sizeof(got), 0),
					 sizeof(got));
		}
		await_events(to, POLLIN);
		assert_int_equal(recv(to, got, sizeof(got), 0), 0);
		await_events(from, POLLIN);
		assert_int_equal(recv(from, got, sizeof(got), 0), 0);
		end_pair(&p);
	}
}

/* Makes a packet from the caller's SCTP port with a chunk of type i % 16.  In
 * half of the packets of at least 16 bytes the checksum and the length of the
 * chunk are right, so that the chunk is parsed. */
static void make_strange(uint8_t *m, uint32_t bytes, uint32_t i,
			 const struct pair *p)
{
	uint32_t sum;

	memcpy(m, &p->news[0].local.sin6_port, 2);
	memcpy(m + 2, &p->at.sin6_port, 2);
	m[12] = (uint8_t)(i % 16);
	if (i % 32 < 16 || bytes < 16)
		return;
	if (m[12] == 1)
		memset(m + 4, 0, 4); /* an INIT needs tag 0 (RFC 9260, 8.5.1) */
	m[14] = (uint8_t)((bytes - 12) >> 8);
	m[15] = (uint8_t)(bytes - 12);
	memset(m + 8, 0, 4);
	sum = htole32(~crc32c_update(CRC_INIT, m, bytes));
	memcpy(m + 8, &sum, 4);
}

static void a_connection_waits_for_a_free_descriptor(void **state)
{
	struct rlimit limit, full;
	int caller, called;
	struct sctp_news news;
	struct pair p;

	NEEDS_LIBRARY();
	begin_pair(&p);
	caller = call_address(&p.at);
	assert_true(caller >= 0);
	await_events(p.listener, POLLIN);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	full = limit;
	full.rlim_cur = STDIN_FILENO + 1; /* STDIN_FILENO is open */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	called = sctp_accept(p.listener, &news);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(called, -EMFILE);
	called = sctp_accept(p.listener, &news);
	assert_true(called >= 0);
	close(called);
	close(caller);
	end_pair(&p);
}

/* Datagrams of a stranger, with the association's SCTP ports, neither disturb
 * the association nor end it.  The answers show that chunks are parsed. */
static void strangers_change_nothing(void **state)
{
	uint8_t m[1500], got[1500];
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	struct pair p;

	NEEDS_LIBRARY();
	begin_pair(&p);
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t bytes = i % sizeof(m);

		fill_message(m, sizeof(m), i);
		make_strange(m, bytes, i, &p);
		sendto(fd, m, bytes, 0, (struct sockaddr *)&p.at, sizeof(p.at));
	}
	await_events(fd, POLLIN);
	assert_true(recv(fd, got, sizeof(got), 0) > 12);
	close(fd);
	fill_message(m, sizeof(m), 1);
	assert_int_equal(send_fully(p.caller, m, sizeof(m)), sizeof(m));
	await_events(p.called, POLLIN);
	assert_int_equal(recv(p.called, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(m, got, sizeof(m));
	end_pair(&p);
}

/* The kernel has no memory for a message to the owner, whose socketpair is
 * empty: no event will say that there is room. */
static void a_lack_of_memory_delays_a_message(void **state)
{
	uint8_t m[100], got[100];
	struct pair p;

	NEEDS_LIBRARY();
	begin_pair(&p);
	atomic_store(&short_sends, 2);
	fill_message(m, sizeof(m), 1);
	assert_int_equal(write(p.caller, m, sizeof(m)), sizeof(m));
	await_events(p.called, POLLIN);
	assert_int_equal(atomic_load(&short_sends), 0);
	assert_int_equal(recv(p.called, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(m, got, sizeof(m));
	end_pair(&p);
}

/* Calls a port that no socket has. */
static void expect_refusal(void)
{
	struct sockaddr_in6 to = loopback_address(0);
	struct sctp_news news;
	int caller;

	close(sctp_bind(&to, false));
	caller = call_address(&to);
	await_events(caller, POLLIN);
	assert_int_equal(recv(caller, &news, sizeof(news), 0), sizeof(news));
	assert_int_equal(news.err, ECONNREFUSED);
	close(caller);
}

static void ipv4_alone_carries_associations(void **state)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	NEEDS_LIBRARY();
	atomic_store(&has_no_ipv6, true);
	both_ends_learn_the_addresses(state);
	each_message_arrives_once_and_whole(state);
	a_capture_is_told_of_each_packet_of_both_ends(state);
	expect_refusal();
	assert_int_equal(sctp_bind(&six, false), -EAFNOSUPPORT);
	atomic_store(&has_no_ipv6, false);
}

/* Does a socket have the UDP port of this address? */
static bool is_in_use(const struct sockaddr_in6 *at)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_free = !bind(fd, (const struct sockaddr *)at, sizeof(*at));

	close(fd);
	return !is_free;
}

/* Waits for some turns of the library's thread, which reads the clock a few
 * times in each turn.  False: within a minute the clock was read fewer than 100
 * times. */
static bool await_turns(void)
{
	const struct timespec step = {.tv_nsec = 10000000};
	unsigned before = atomic_load(&looks);

	for (int i = 0; i < 6000 && atomic_load(&looks) - before < 100; i++)
		nanosleep(&step, NULL);
	return atomic_load(&looks) - before >= 100;
}

static bool has_room(int fd)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	return poll(&room, 1, 0) == 1;
}

/*
 * The peer lives, but does not receive.  A message of the owner waits for room
 * in the library when the owner closes its descriptor.  While the clock is
 * stopped, the library notes no loss, which would end the association as well.
 */
static void a_peer_that_does_not_receive_keeps_no_association(void **state)
{
	const struct timespec step = {.tv_nsec = 10000000};
	static uint8_t m[60000];
	struct pair p;

	NEEDS_LIBRARY();
	begin_pair(&p);
	fill_message(m, sizeof(m), 1);
	while (has_room(p.caller) || (await_turns() && has_room(p.caller)))
		send(p.caller, m, sizeof(m), MSG_NOSIGNAL);
	stop_clock();
	close(p.caller);
	assert_true(await_turns());
	assert_true(is_in_use(&p.news[0].local));
	atomic_fetch_add(&stopped_ns, 11000000000);
	for (int i = 0; i < 6000 && is_in_use(&p.news[0].local); i++)
		nanosleep(&step, NULL);
	assert_false(is_in_use(&p.news[0].local));
	go_on_clock();
	close(p.called);
	close(p.listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_learn_the_addresses),
		cmocka_unit_test(each_message_arrives_once_and_whole),
		cmocka_unit_test(a_capture_is_told_of_each_packet_of_both_ends),
		cmocka_unit_test(a_slow_peer_stops_the_sender),
		cmocka_unit_test(a_close_ends_the_association_in_order),
		cmocka_unit_test(a_connection_waits_for_a_free_descriptor),
		cmocka_unit_test(strangers_change_nothing),
		cmocka_unit_test(a_lack_of_memory_delays_a_message),
		cmocka_unit_test(ipv4_alone_carries_associations),
		cmocka_unit_test(
			a_peer_that_does_not_receive_keeps_no_association),
	};

	first_process = getpid();
	start_options.capture = note_packet;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
