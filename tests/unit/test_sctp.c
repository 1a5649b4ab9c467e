/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/sctp: associations between a listener and callers of this process, over
 * UDP on loopback. */
#include "brought.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "util/crc.h"
#include "util/fd_identity.h"
#include "wire/sctp.h"
#include "wire/sctp_conn.h"

#define SERVICES     9899 /* the UDP port of all services, where there is one */
#define NO_NAMESPACE 77	  /* the exit status of a test without a namespace */

#define PPID	     0x10 /* of DDP segments; each message begins with its 4 bytes */

static struct sockaddr_in6 loopback_address(uint16_t port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6,
				  .sin6_port = htons(port)};

	inet_pton(AF_INET6, "::ffff:127.0.0.1", &at.sin6_addr);
	return at;
}

static pid_t first_process;

/* The test's clock.  ahead_ns: how far it is ahead of the kernel's.
 * stopped_ns: its time while it is stopped; 0: it runs.
 * looks: how often it was read. */
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

/* The random bytes that every call gets; 0: the kernel's. */
static uint8_t random_byte;

bool __real_random_fill(void *buf, size_t n, bool waits);
bool __wrap_random_fill(void *buf, size_t n, bool waits);

bool __wrap_random_fill(void *buf, size_t n, bool waits)
{
	if (!random_byte)
		return __real_random_fill(buf, n, waits);
	memset(buf, random_byte, n);
	return true;
}

/* LeakSanitizer calls this function at the end of a process.  A child of fork
 * unloads the library, and then nothing points to the memory of the library
 * that the child has inherited. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return getpid() != first_process;
}

/* Both ends of an association, and the listener. */
struct pair {
	int listener, caller, called;
	struct sockaddr_in6 at;
	struct sctp_news news[2];
};

#define TOLD 4096 /* packets that are kept */

/* The packets of which sctp_options.capture was told.  Both ends are in this
 * process, so each packet is sent first and received later. */
static atomic_uint told_sent, told_received;

/* Called under the lock of wire/sctp.c. */
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

static bool has_library(void)
{
	const struct sctp_options options = {.is_raw = false,
					     .capture = note_packet};
	const char *why;
	int err = sctp_start(&options, &why);

	if (err == -ELIBACC)
		return false;
	assert_int_equal(err, 0);
	return true;
}

#define NEEDS_LIBRARY()                                                        \
	do {                                                                   \
		if (!has_library())                                            \
			SKIP_FOR("libusrsctp2 is not installed");              \
	} while (0)

static void await_events(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	assert_int_equal(poll(&p, 1, 60000), 1);
}

static int call_address(const struct sockaddr_in6 *to)
{
	struct sockaddr_in6 from = loopback_address(0);
	int fd = sctp_bind(&from, false);

	assert_true(fd >= 0);
	return sctp_connect(fd, &from, to);
}

static void begin_pair(struct pair *p)
{
	int fd;

	p->at = loopback_address(0);
	fd = sctp_bind(&p->at, false);
	assert_true(fd >= 0);
	assert_true(p->at.sin6_port != 0);
	p->listener = sctp_listen(fd, &p->at, 8);
	assert_true(p->listener >= 0);
	p->caller = call_address(&p->at);
	assert_true(p->caller >= 0);
	await_events(p->caller, POLLIN);
	assert_int_equal(recv(p->caller, &p->news[0], sizeof(p->news[0]), 0),
			 sizeof(p->news[0]));
	await_events(p->listener, POLLIN);
	p->called = sctp_accept(p->listener, &p->news[1]);
	assert_true(p->called >= 0);
}

static void end_pair(struct pair *p)
{
	close(p->caller);
	close(p->called);
	close(p->listener);
}

static void fill_message(uint8_t *m, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		m[i] = (uint8_t)(seed + i * 7);
	memset(m, 0, 4);
	m[3] = PPID;
}

static ssize_t send_fully(int fd, const uint8_t *m, size_t bytes)
{
	ssize_t n;

	while ((n = send(fd, m, bytes, MSG_NOSIGNAL)) < 0 && errno == EAGAIN)
		await_events(fd, POLLOUT);
	return n;
}

/* Returns the lock that the library's own thread holds while it visits the
 * associations: the second member of a structure of release 0.9.5, after a
 * mutex.  NULL: the library does not show the structure. */
static pthread_mutex_t *lock_of_the_library(void)
{
	void *library = dlopen("libusrsctp.so.2", RTLD_NOW | RTLD_NOLOAD);
	pthread_mutex_t *locks = library ? dlsym(library, "sctp_it_ctl") : NULL;

	if (library)
		dlclose(library);
	return locks ? &locks[1] : NULL;
}

/* The library's thread may hold its lock during a fork, and the child lacks the
 * thread.  This test is the first: the end of an association of an earlier test
 * would need the lock, too. */
static void a_child_does_not_wait_for_the_librarys_thread(void **state)
{
	int status = -1, ends[2];
	pthread_mutex_t *held;
	struct pair p, q;
	pid_t child;

	NEEDS_LIBRARY();
	held = lock_of_the_library();
	if (!held)
		SKIP_FOR("libusrsctp2 does not show its lock");
	begin_pair(&p);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pthread_mutex_lock(held);
	child = fork();
	if (!child) {
		if (!has_library())
			_exit(1);
		begin_pair(&q);
		_exit(0);
	}
	pthread_mutex_unlock(held);
	close(ends[1]);
	if (poll(&(struct pollfd){.fd = ends[0]}, 1, 60000) != 1)
		kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	end_pair(&p);
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

/* The sender waits for a peer that does not receive, and no message is lost:
 * each comes once, in any order. */
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

static void a_port_without_a_listener_refuses(void **state)
{
	struct sctp_news news;
	struct sockaddr_in6 to;
	int fd, caller;

	NEEDS_LIBRARY();
	to = loopback_address(0);
	fd = sctp_bind(&to, false);
	close(fd); /* nobody has the port now */
	caller = call_address(&to);
	await_events(caller, POLLIN);
	assert_int_equal(recv(caller, &news, sizeof(news), 0), sizeof(news));
	assert_int_equal(news.err, ECONNREFUSED);
	await_events(caller, POLLIN);
	assert_int_equal(recv(caller, &news, sizeof(news), 0), 0);
	close(caller);
}

static void a_port_in_use_is_refused(void **state)
{
	struct sockaddr_in6 at;
	struct pair p;
	int fd;

	NEEDS_LIBRARY();
	begin_pair(&p);
	at = p.at;
	assert_int_equal(sctp_bind(&at, false), -EADDRINUSE);
	/* the connection of a listener that has gone leaves the port free */
	close(p.listener);
	do
		fd = sctp_bind(&at, false);
	while (fd == -EADDRINUSE); /* until adverb-sctp has seen the end */
	assert_true(fd >= 0);
	p.listener = sctp_listen(fd, &at, 8);
	assert_true(p.listener >= 0);
	end_pair(&p);
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
		memset(m + 4, 0, 4); /* the tag of a packet with an INIT */
	m[14] = (uint8_t)((bytes - 12) >> 8);
	m[15] = (uint8_t)(bytes - 12);
	memset(m + 8, 0, 4);
	sum = htole32(~crc32c_update(CRC_INIT, m, bytes));
	memcpy(m + 8, &sum, 4);
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

/* The child has none of the associations, and may make its own. */
static void a_child_of_fork_leaves_the_parents_alone(void **state)
{
	uint8_t m[100], got[100];
	struct pair p, q;
	int status = -1;
	pid_t child;

	NEEDS_LIBRARY();
	begin_pair(&p);
	child = fork();
	if (!child) {
		close(p.caller);
		close(p.called);
		close(p.listener);
		if (!has_library())
			_exit(1);
		begin_pair(&q);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	fill_message(m, sizeof(m), 1);
	assert_int_equal(send_fully(p.called, m, sizeof(m)), sizeof(m));
	await_events(p.caller, POLLIN);
	assert_int_equal(recv(p.caller, got, sizeof(got), 0), sizeof(got));
	end_pair(&p);
}

/* Messages of a process arrive although the process ends at once. */
static void the_end_of_a_process_loses_nothing(void **state)
{
	uint8_t m[2000], got[2000];
	struct sctp_news news;
	int status = -1, called;
	struct pair p;
	pid_t child;

	NEEDS_LIBRARY();
	begin_pair(&p);
	child = fork();
	if (!child) {
		int fd;

		if (!has_library())
			_exit(1);
		fd = call_address(&p.at);
		await_events(fd, POLLIN);
		recv(fd, &news, sizeof(news), 0);
		for (uint32_t i = 0; i < 50; i++) {
			fill_message(m, sizeof(m), i);
			send_fully(fd, m, sizeof(m));
		}
		exit(0);
	}
	await_events(p.listener, POLLIN);
	called = sctp_accept(p.listener, &news);
	assert_true(called >= 0);
	for (uint32_t i = 0; i < 50; i++) {
		await_events(called, POLLIN);
		assert_int_equal(recv(called, got, sizeof(got), 0),
				 sizeof(got));
	}
	await_events(called, POLLIN);
	assert_int_equal(recv(called, got, sizeof(got), 0), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(called);
	end_pair(&p);
}

/* A message that announces no connection leaves no descriptor; a connection
 * brings one. */
static void a_message_without_a_connection_leaves_no_descriptor(void **state)
{
	struct sctp_news news = {0}, got;

	for (size_t size = 0; size <= sizeof(news); size++) {
		struct brought b = brought_new();
		int pair[2], fd;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair),
				 0);
		brought_send(&b, pair[0], &news, size, 2);
		fd = sctp_accept(pair[1], &got);
		if (size == sizeof(news)) {
			assert_true(fd >= 0);
			close(fd);
		} else {
			assert_int_equal(fd, -ECONNABORTED);
		}
		assert_true(brought_are_closed(&b));
		brought_free(&b);
		close(pair[0]);
		close(pair[1]);
	}
}

/* Is a file with this inode number in an epoll set of this process? */
static bool is_watched(ino_t number)
{
	char path[64], line[256];
	bool found = false;
	const char *ino;

	for (int fd = 0; fd < 256; fd++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f)) {
			ino = strncmp(line, "tfd:", 4) ? NULL
						       : strstr(line, "ino:");
			found |= ino && strtoul(ino + 4, NULL, 16) == number;
		}
		if (f)
			fclose(f);
	}
	return found;
}

/* Between two calls of sctp_listen, no other process can take the port, and
 * packets do not wake the thread. */
static void a_listener_that_ends_may_keep_its_port(void **state)
{
	struct sctp_news news;
	struct stat socket;
	struct pair p;
	int fd;

	NEEDS_LIBRARY();
	p.at = loopback_address(0);
	fd = sctp_bind(&p.at, false);
	assert_int_equal(fstat(fd, &socket), 0);
	for (int i = 0; i < 2; i++) {
		p.listener = sctp_listen(fd, &p.at, 8);
		assert_true(p.listener >= 0);
		assert_true(is_watched(socket.st_ino));
		fd = sctp_unlisten(p.listener);
		assert_true(fd >= 0);
		assert_false(is_watched(socket.st_ino));
		assert_int_equal(sctp_bind(&p.at, false), -EADDRINUSE);
	}
	p.listener = sctp_listen(fd, &p.at, 8);
	assert_true(p.listener >= 0);
	p.caller = call_address(&p.at);
	await_events(p.caller, POLLIN);
	assert_int_equal(recv(p.caller, &news, sizeof(news), 0), sizeof(news));
	assert_int_equal(news.err, 0);
	await_events(p.listener, POLLIN);
	p.called = sctp_accept(p.listener, &news);
	assert_true(p.called >= 0);
	assert_int_equal(sctp_unlisten(dup(p.called)), -EBADF);
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

/* Does a socket have the UDP port of this address? */
static bool is_in_use(const struct sockaddr_in6 *at)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_free = !bind(fd, (const struct sockaddr *)at, sizeof(*at));

	close(fd);
	return !is_free;
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
	struct pollfd room;
	struct pair p;
	unsigned before;

	NEEDS_LIBRARY();
	begin_pair(&p);
	fill_message(m, sizeof(m), 1);
	room = (struct pollfd){.fd = p.caller, .events = POLLOUT};
	while (poll(&room, 1, 1000) == 1)
		send(p.caller, m, sizeof(m), MSG_NOSIGNAL);
	stop_clock();
	close(p.caller);
	/* The thread reads the clock in each turn, and few times in a turn. */
	before = atomic_load(&looks);
	while (atomic_load(&looks) - before < 100)
		nanosleep(&step, NULL);
	assert_true(is_in_use(&p.news[0].local));
	atomic_fetch_add(&stopped_ns, 11000000000);
	for (int i = 0; i < 6000 && is_in_use(&p.news[0].local); i++)
		nanosleep(&step, NULL);
	assert_false(is_in_use(&p.news[0].local));
	go_on_clock();
	close(p.called);
	close(p.listener);
}

/* Enters a network namespace, in which all UDP ports are free. */
static bool enter_namespace(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;
	bool is_up;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	is_up = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	return is_up;
}

/* Binds and calls services in a child of fork, where one UDP port is that of
 * all services.  Returns the number of the first failed step, or 0; or
 * NO_NAMESPACE. */
static int bind_two_services(void)
{
	struct sockaddr_in6 at[2], again;
	struct sctp_options o = {.udp_port = SERVICES};
	int fd[2], caller;
	const char *why;

	if (!enter_namespace())
		return NO_NAMESPACE;
	if (sctp_start(&o, &why))
		return 1;
	for (int i = 0; i < 2; i++) {
		at[i] = loopback_address((uint16_t)(7000 + i));
		fd[i] = sctp_bind(&at[i], false);
		if (fd[i] < 0)
			return 2;
	}
	again = at[1];
	if (sctp_bind(&again, false) != -EADDRINUSE)
		return 3;
	close(fd[1]);
	fd[1] = sctp_bind(&again, false);
	for (int i = 0; i < 2; i++) {
		fd[i] = sctp_listen(fd[i], &at[i], 8);
		if (fd[i] < 0)
			return 4;
	}
	for (int i = 0; i < 2; i++) {
		struct sctp_news news;

		caller = call_address(&at[i]);
		await_events(caller, POLLIN);
		if (recv(caller, &news, sizeof(news), 0) != sizeof(news) ||
		    news.err)
			return 5;
		await_events(fd[i], POLLIN);
	}
	fd[0] = sctp_unlisten(fd[0]);
	again = at[0];
	if (fd[0] < 0 || sctp_bind(&again, false) != -EADDRINUSE)
		return 6;
	return 0;
}

/* Listens in a child of fork directly over IP, where adverb chooses the ports.
 * Returns the number of the first failed step, or 0; or NO_NAMESPACE. */
static int listen_at_chosen_ports(void)
{
	struct sctp_options o = {.is_raw = true};
	struct sockaddr_in6 at[2];
	const char *why;

	if (!enter_namespace())
		return NO_NAMESPACE;
	if (sctp_start(&o, &why))
		return 1;
	random_byte = 0xff; /* the last port */
	for (int i = 0; i < 2; i++) {
		int fd;

		at[i] = loopback_address(0);
		fd = sctp_bind(&at[i], false);
		if (fd < 0)
			return 2;
		if (sctp_listen(fd, &at[i], 8) < 0)
			return 3;
	}
	if (ntohs(at[0].sin6_port) != 0xffff)
		return 4;
	return ntohs(at[1].sin6_port) == 0xc000 ? 0 : 5;
}

static void expect_in_child(int (*calls)(void))
{
	int status = -1;
	pid_t child;

	child = fork();
	if (!child)
		_exit(calls());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_NAMESPACE)
		SKIP_FOR("no network namespace of our own");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void two_services_may_be_bound_before_one_listens(void **state)
{
	NEEDS_LIBRARY();
	expect_in_child(bind_two_services);
}

static void a_chosen_port_over_ip_is_free(void **state)
{
	NEEDS_LIBRARY();
	expect_in_child(listen_at_chosen_ports);
}

/* The program may reuse the number of a descriptor.  A failed check is not
 * remembered as a successful one. */
static void a_file_of_the_program_is_no_connection(void **state)
{
	int fd = fd_identity_note(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	uint64_t checked = 0;
	int null;

	assert_true(sctp_conn_is_ours(fd, &checked));
	/* takes the number at once: the thread opens and closes files, too */
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(dup3(null, fd, O_CLOEXEC), fd);
	close(null);
	checked = 0;
	for (int i = 0; i < 3; i++)
		assert_false(sctp_conn_is_ours(fd, &checked));
	fd_identity_close(fd);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_does_not_wait_for_the_librarys_thread),
		cmocka_unit_test(both_ends_learn_the_addresses),
		cmocka_unit_test(each_message_arrives_once_and_whole),
		cmocka_unit_test(a_capture_is_told_of_each_packet_of_both_ends),
		cmocka_unit_test(a_slow_peer_stops_the_sender),
		cmocka_unit_test(a_close_ends_the_association_in_order),
		cmocka_unit_test(a_port_without_a_listener_refuses),
		cmocka_unit_test(a_port_in_use_is_refused),
		cmocka_unit_test(strangers_change_nothing),
		cmocka_unit_test(a_child_of_fork_leaves_the_parents_alone),
		cmocka_unit_test(the_end_of_a_process_loses_nothing),
		cmocka_unit_test(a_listener_that_ends_may_keep_its_port),
		cmocka_unit_test(
			a_message_without_a_connection_leaves_no_descriptor),
		cmocka_unit_test(a_file_of_the_program_is_no_connection),
		cmocka_unit_test(a_lack_of_memory_delays_a_message),
		cmocka_unit_test(
			a_peer_that_does_not_receive_keeps_no_association),
		cmocka_unit_test(two_services_may_be_bound_before_one_listens),
		cmocka_unit_test(a_chosen_port_over_ip_is_free),
	};

	first_process = getpid();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
