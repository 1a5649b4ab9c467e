/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/iw_link: if the program closes a descriptor of the thread adverb-iw,
 * the next r_iw_new opens it again.  If the thread finds its epoll set closed,
 * the connections that only the thread could continue fail with an event.
 * Files of the program are left alone.  A deadline wakes the thread.  A request
 * is sent as soon as the connection is made.  After a request has come, some
 * time passes before the thread waits for the end of that connection.  A
 * listener that the kernel refuses to watch tries again. */
#include "test.h"

#include "rdmacm/iw_inside.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/monotonic.h"
#include "verbs/iwarp.h"

int __real_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size);
int __real_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags);
ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
uint64_t __real_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void);

/* The kernel mostly makes a connection within this host before connect(2)
 * returns, but not on a busy machine.  Here the connection is made, or has
 * failed, whenever connect(2) returns. */
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	struct pollfd made = {.fd = fd, .events = POLLOUT};
	int result = __real_connect(fd, to, size), err = errno;

	if (result && err == EINPROGRESS)
		poll(&made, 1, TEST_WAIT_MS);
	errno = err;
	return result;
}

/* So many calls of accept4 fail with EPERM.  refused_ns: when the last of them
 * failed; accepted_ns: when accept4 was called last after that. */
static _Atomic int refusals;
static _Atomic uint64_t refused_ns, accepted_ns;

/* The peers of this test send their request as soon as they are connected.
 * Here accept4 returns only when the request has come. */
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
	struct pollfd come = {.events = POLLIN};
	int taken, err;

	if (refusals) {
		refusals--;
		refused_ns = __real_monotonic_ns();
		errno = EPERM;
		return -1;
	}
	accepted_ns = __real_monotonic_ns();
	come.fd = taken = __real_accept4(fd, from, size, flags);
	err = errno;
	if (taken >= 0)
		poll(&come, 1, TEST_WAIT_MS);
	errno = err;
	return taken;
}

/* The next call of epoll_ctl that adds a socket fails with this error; 0: no
 * call fails. */
static _Atomic int add_error;

int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	int err = op == EPOLL_CTL_ADD ? atomic_exchange(&add_error, 0) : 0;

	if (!err)
		return __real_epoll_ctl(epoll, op, fd, event);
	errno = err;
	return -1;
}

/* This thread has sent something. */
static _Thread_local bool has_sent;

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	has_sent = true;
	return __real_send(fd, bytes, n, flags);
}

/* The time at which the test has stopped the clock; 0: the clock runs. */
static _Atomic uint64_t stopped_ns;

uint64_t __wrap_monotonic_ns(void)
{
	uint64_t at = stopped_ns;

	return at ? at : __real_monotonic_ns();
}

/* Returns how many descriptors the process has; *fd becomes the last one whose
 * file has `kind` in its name, if there is one.  Holds r_lock meanwhile:
 * opendir may get the number of a descriptor of the thread adverb-iw that the
 * test has closed, and that thread checks the number under r_lock. */
static int count_fds(const char *kind, int *fd)
{
	char path[300], target[64];
	struct dirent *one;
	ssize_t n;
	int count = 0;
	DIR *all;

	r_take();
	all = opendir("/proc/self/fd");
	assert_non_null(all);
	while ((one = readdir(all))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", one->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue; /* the entries . and .. */
		target[n] = '\0';
		count++;
		if (strstr(target, kind))
			*fd = atoi(one->d_name);
	}
	closedir(all);
	r_give();
	return count;
}

static int fd_of(const char *kind)
{
	int fd = -1;

	count_fds(kind, &fd);
	assert_true(fd >= 0);
	return fd;
}

/* Closes a descriptor of adverb, as a program may at any time, also while a
 * thread of adverb uses the descriptor.  ThreadSanitizer would report close(2)
 * of libc, and does not see the bare system call. */
static void close_of_adverb(const char *kind)
{
	assert_int_equal(syscall(SYS_close, fd_of(kind)), 0);
}

/* Puts the program's file `own` in the place of adverb's file at fd, by a bare
 * system call as in close_of_adverb. */
static void put_in_place(int own, int fd)
{
	assert_int_equal(syscall(SYS_dup3, own, fd, 0), fd);
}

/* The names of the files of the two descriptors of the thread adverb-iw. */
#define EPOLL "[eventpoll]"
#define WAKE  "[eventfd]"

static struct r_iw *new_object(void)
{
	struct r_iw *iw;

	r_take();
	iw = r_iw_new(NULL);
	r_give();
	assert_non_null(iw);
	return iw;
}

/* r_iw_new opens the descriptors again that the program has closed, and no
 * others. */
static void a_descriptor_that_the_program_closes_is_replaced(void **state)
{
	static const char *const closed[][2] = {{EPOLL}, {WAKE}, {EPOLL, WAKE}};
	struct r_iw *iw[1 + TEST_COUNT(closed)] = {new_object()};
	int none, before = count_fds("", &none);

	for (size_t i = 0; i < TEST_COUNT(closed); i++) {
		for (int k = 0; k < 2 && closed[i][k]; k++)
			close_of_adverb(closed[i][k]);
		iw[i + 1] = new_object();
		assert_int_equal(count_fds("", &none), before);
	}
	r_take();
	for (size_t i = 0; i < TEST_COUNT(iw); i++)
		r_iw_free(iw[i]);
	r_give();
}

static struct r_channel channel;

/* Returns an id whose destination is this port of loopback. */
static struct r_id *id_to(uint16_t port)
{
	const uint8_t any[16] = {[10] = 0xff, 0xff},
		      loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	struct r_id *id =
		r_id_new(&channel.base, NULL, RDMA_PS_TCP, IBV_QPT_RC);

	assert_non_null(id);
	r_addr_make(&id->base.route.addr.src_addr, any, 0);
	r_addr_make(&id->base.route.addr.dst_addr, loopback, port);
	memcpy(id->path.peer, loopback, 16);
	assert_int_equal(r_iw_make(id), 0);
	return id;
}

/* Binds a socket to a free port, and returns the port. */
static uint16_t take_port(int *fd)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(*fd, (struct sockaddr *)&at, size), 0);
	assert_int_equal(getsockname(*fd, (struct sockaddr *)&at, &size), 0);
	return ntohs(at.sin_port);
}

static void expect_event(const struct r_id *id, enum rdma_cm_event_type type)
{
	struct pollfd p = {.fd = channel.base.fd, .events = POLLIN};
	struct rdma_cm_event *e;

	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	assert_int_equal(rdma_get_cm_event(&channel.base, &e), 0);
	assert_ptr_equal(e->id, &id->base);
	assert_int_equal(e->event, type);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void open_channel(void)
{
	list_init(&channel.events);
	channel.base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
}

/* The peer's kernel accepts the connections, and no program answers. */
static void connections_fail_without_the_epoll_set(void **state)
{
	int silent, closed;
	uint16_t at = take_port(&silent), nowhere = take_port(&closed);
	struct r_id *first = id_to(at), *second = id_to(at),
		    *later = id_to(nowhere);

	assert_int_equal(listen(silent, 2), 0);
	open_channel();
	assert_int_equal(r_iw_connect(first, NULL), 0);
	assert_int_equal(r_iw_connect(second, NULL), 0);
	close_of_adverb(EPOLL);
	r_iw_add_news(first->iw, 0); /* the thread finds EPOLL closed */
	expect_event(first, RDMA_CM_EVENT_CONNECT_ERROR);
	expect_event(second, RDMA_CM_EVENT_CONNECT_ERROR);
	assert_int_equal(r_iw_connect(later, NULL), 0);
	expect_event(later, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(&first->base);
	rdma_destroy_id(&second->base);
	rdma_destroy_id(&later->base);
	close(silent);
	close(closed);
	close(channel.base.fd);
}

/* The program has put its socket in place of the socket of a bound id. */
static void a_socket_of_the_program_is_left_alone(void **state)
{
	int peer, own = socket(AF_INET, SOCK_STREAM, 0), fd;
	uint16_t at = take_port(&peer);
	struct r_id *id = id_to(at);
	struct sockaddr_in6 other;
	socklen_t size = sizeof(other);

	assert_int_equal(listen(peer, 1), 0);
	open_channel();
	assert_int_equal(r_iw_bind(id, &id->base.route.addr.src_addr), 0);
	fd = id->iw->fd;
	assert_int_equal(dup2(own, fd), fd);
	assert_int_equal(r_iw_listen(id, 1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(r_iw_connect(id, NULL), 0);
	expect_event(id, RDMA_CM_EVENT_CONNECT_ERROR);
	assert_int_equal(getpeername(own, (struct sockaddr *)&other, &size),
			 -1);
	rdma_destroy_id(&id->base);
	assert_int_equal(close(fd), 0);
	close(own);
	close(peer);
	close(channel.base.fd);
}

/* Adds fd to an epoll set of the program.  Returns false if the set has fd. */
static bool add_to(int epoll, int fd)
{
	struct epoll_event e = {.events = 0};

	return !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

/* After a call of adverb has checked the descriptors of the thread and of an
 * object, the program puts its own epoll set and its own socket in their place.
 * The next call adds no descriptor to the program's epoll set, and removes
 * none. */
static void an_epoll_set_of_the_program_is_left_alone(void **state)
{
	struct r_iw *iw = new_object(), *late = new_object();
	int epoll = fd_of(EPOLL), fds[2], own = epoll_create1(0),
	    of_program = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	r_take();
	assert_int_equal(r_iw_start_thread(), 0);
	r_iw_keep_fd(iw, fds[0]);
	r_iw_keep_fd(late, fds[1]);
	r_iw_watch(iw, EPOLLIN);
	put_in_place(own, epoll);
	r_iw_watch(late, EPOLLIN);
	assert_true(add_to(own, fds[1]));
	put_in_place(of_program, fds[0]);
	assert_true(add_to(own, fds[0]));
	r_iw_watch(iw, 0);
	assert_false(add_to(own, fds[0]));
	r_iw_free(iw);
	r_iw_free(late);
	assert_int_equal(close(epoll), 0);
	assert_int_equal(close(fds[0]), 0);
	r_give();
	close(own);
	close(of_program);
}

/* ---- deadlines ---- */

#define MS 1000000ull

/* The objects whose deadline has come, in the order of the calls of
 * note_served.  Lock: r_lock. */
static const struct r_iw *served[4];
static unsigned served_count;

static void note_served(struct r_iw *iw, bool is_due)
{
	assert_true(is_due);
	served[served_count++] = iw;
	pthread_cond_broadcast(&r_changed);
}

static const struct r_iw_role timed_role = {.serve = note_served};

/* Under r_lock: waits until `count` objects were served. */
static void await_served(unsigned count)
{
	while (served_count < count)
		pthread_cond_wait(&r_changed, &r_lock);
}

/* The thread sleeps until the earliest deadline, which at first is an hour
 * away.  An earlier deadline that is set later wakes the thread.  No object is
 * served before its deadline, or after its deadline was taken back. */
static void an_earlier_deadline_wakes_the_thread(void **state)
{
	static const unsigned after_ms[] = {3600000, 10, 20, 5};
	struct r_iw *iw[TEST_COUNT(after_ms)];
	uint64_t now;

	for (size_t i = 0; i < TEST_COUNT(iw); i++) {
		iw[i] = new_object();
		r_iw_enter(iw[i], R_IW_IDLE, &timed_role);
	}
	r_take();
	now = monotonic_ns();
	for (size_t i = 0; i < TEST_COUNT(iw); i++)
		r_iw_set_timer(iw[i], now + after_ms[i] * MS);
	r_iw_set_timer(iw[3], UINT64_MAX);
	await_served(1);
	assert_true(monotonic_ns() >= now + 10 * MS);
	await_served(2);
	assert_true(monotonic_ns() >= now + 20 * MS);
	/* a thread that did not run for 10 ms serves both in any order */
	assert_true((served[0] == iw[1] && served[1] == iw[2]) ||
		    (served[0] == iw[2] && served[1] == iw[1]));
	for (size_t i = 0; i < TEST_COUNT(iw); i++)
		r_iw_free(iw[i]);
	assert_int_equal(served_count, 2);
	r_give();
}

/* ---- requests ---- */

/* The thread that calls rdma_connect sends the request, not the thread
 * adverb-iw. */
static void a_request_is_sent_before_rdma_connect_returns(void **state)
{
	uint8_t frame[MPA_FRAME_MAX];
	int listener, peer;
	uint16_t at = take_port(&listener);
	struct r_id *id = id_to(at);

	assert_int_equal(listen(listener, 1), 0);
	open_channel();
	has_sent = false;
	assert_int_equal(r_iw_connect(id, NULL), 0);
	assert_true(has_sent);
	peer = accept(listener, NULL, NULL);
	assert_true(peer >= 0);
	assert_true(recv(peer, frame, sizeof(frame), 0) > 0);
	close(peer); /* as a peer without MPA revision 2 does: adverb connects
		      * again */
	peer = accept(listener, NULL, NULL);
	close(listener);
	close(peer);
	expect_event(id, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(&id->base);
	close(channel.base.fd);
}

/* Listens, and connects a peer whose request comes before accept4 returns the
 * connection.  Returns the id of the request, whose event the program has
 * taken. */
static struct r_id *take_request(struct r_id *listener, int *peer)
{
	const struct mpa_frame request = {
		.kind = MPA_REQUEST, .revision = 1, .wants_crc = true};
	uint8_t bytes[MPA_FRAME_MAX];
	struct sockaddr_storage at;
	struct r_event *e;
	struct r_id *id;
	int n = mpa_write(bytes, &request);

	assert_int_equal(
		r_iw_bind(listener, &listener->base.route.addr.src_addr), 0);
	assert_int_equal(r_iw_listen(listener, 4), 0);
	*peer = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(r_iw_local(listener->iw, &at), 0);
	assert_int_equal(connect(*peer, (struct sockaddr *)&at,
				 sizeof(struct sockaddr_in)),
			 0);
	assert_int_equal(send(*peer, bytes, (size_t)n, 0), n);
	r_iw_serve(listener);
	assert_int_equal(poll(&(struct pollfd){channel.base.fd, POLLIN, 0}, 1,
			      TEST_WAIT_MS),
			 1);
	r_take();
	e = r_event_of(list_pop_head(&channel.events));
	r_give();
	assert_int_equal(e->base.event, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = r_id(e->base.id);
	free(e);
	r_iw_taken(id);
	return id;
}

/* No event tells when the kernel adds sockets to the epoll set again. */
static void a_listener_that_the_kernel_does_not_watch_tries_again(void **state)
{
	static const int errors[] = {ENOSPC, ENOMEM};

	for (size_t i = 0; i < TEST_COUNT(errors); i++) {
		struct r_id *listener = id_to(0), *id;
		int peer;

		open_channel();
		add_error = errors[i];
		id = take_request(listener, &peer);
		assert_int_equal(add_error, 0);
		rdma_destroy_id(&id->base);
		rdma_destroy_id(&listener->base);
		close(peer);
		close(channel.base.fd);
	}
}

/* A sandbox that refuses accept4 leaves the connection in the kernel's queue,
 * so that epoll reports it again and again.  16 calls are the tries of a turn.
 */
static void a_listener_that_may_not_accept_pauses(void **state)
{
	struct r_id *listener = id_to(0), *id;
	int peer;

	open_channel();
	refusals = 16;
	id = take_request(listener, &peer);
	assert_int_equal(refusals, 0);
	assert_true(accepted_ns - refused_ns >= 10 * MS);
	rdma_destroy_id(&id->base);
	rdma_destroy_id(&listener->base);
	close(peer);
	close(channel.base.fd);
}

/* Without the epoll set no thread would see the peer's answer. */
static void a_call_that_the_kernel_does_not_watch_fails(void **state)
{
	int listener;
	uint16_t at = take_port(&listener);
	struct r_id *id = id_to(at);

	assert_int_equal(listen(listener, 1), 0);
	open_channel();
	add_error = ENOSPC;
	assert_int_equal(r_iw_connect(id, NULL), 0);
	expect_event(id, RDMA_CM_EVENT_CONNECT_ERROR);
	rdma_destroy_id(&id->base);
	close(channel.base.fd);
	close(listener);
}

static uint32_t watched_of(const struct r_id *id)
{
	uint32_t watched;

	r_take();
	watched = id->iw->watched;
	r_give();
	return watched;
}

static bool is_withdrawn(const struct r_id *id)
{
	bool is;

	r_take();
	is = id->state.is_withdrawn;
	r_give();
	return is;
}

static void await_true(bool (*is)(const struct r_id *id), const struct r_id *id)
{
	uint64_t end = monotonic_ns() + TEST_WAIT_MS * MS;

	while (!is(id)) {
		assert_true(monotonic_ns() < end);
		usleep(1000);
	}
}

static bool is_watched(const struct r_id *id)
{
	return watched_of(id);
}

/* The thread waits for the end of the connection only after some time. */
static void a_request_that_is_left_alone_is_withdrawn_in_the_end(void **state)
{
	struct r_id *listener = id_to(0), *id;
	int peer;

	open_channel();
	id = take_request(listener, &peer);
	await_true(is_watched, id);
	assert_false(is_withdrawn(id));
	close(peer);
	await_true(is_withdrawn, id);
	assert_int_equal(r_iw_accept(id, NULL), -1);
	rdma_destroy_id(&id->base);
	rdma_destroy_id(&listener->base);
	close(channel.base.fd);
}

/* The peer closes the connection while the clock stands still, and thus before
 * the thread waits for the end of the connection.  rdma_accept must find the
 * end itself. */
static void rdma_accept_finds_the_end_of_an_unwatched_connection(void **state)
{
	struct r_id *listener = id_to(0), *id;
	struct pollfd end = {.events = POLLIN};
	int peer;

	open_channel();
	stopped_ns = monotonic_ns();
	id = take_request(listener, &peer);
	end.fd = id->iw->fd;
	close(peer);
	assert_int_equal(poll(&end, 1, TEST_WAIT_MS), 1);
	assert_int_equal(watched_of(id), 0);
	assert_false(is_withdrawn(id));
	assert_int_equal(r_iw_accept(id, NULL), -1);
	assert_true(is_withdrawn(id));
	stopped_ns = 0;
	rdma_destroy_id(&id->base);
	rdma_destroy_id(&listener->base);
	close(channel.base.fd);
}

/* ---- files of the program in the place of adverb's sockets ---- */

static int opened_fd; /* the socket that note_open got; -1: none */

/* Replaces the call `open` of libibverbs, which gives a connection to a queue
 * pair.  Notes the socket, and fails. */
static int note_open(struct ibv_context *context, uint32_t qpn,
		     const struct host_stream *s)
{
	opened_fd = s->fd;
	return -EIO;
}

/* While the program has yet to accept a request, it puts a file of its own in
 * the place of the connection's socket.  No queue pair gets that file, and
 * adverb does not close it. */
static void a_file_of_the_program_is_no_connection(void **state)
{
	static const struct verbs_iwarp calls = {.open = note_open};
	struct r_device device = {.iwarp = &calls, .max_responder = 1};
	struct r_id *listener = id_to(0), *id;
	int peer, fd, own[2];

	open_channel();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, own), 0);
	id = take_request(listener, &peer);
	id->device = &device;
	opened_fd = -1;
	fd = id->iw->fd;
	put_in_place(own[0], fd);
	assert_int_equal(r_iw_accept(id, NULL), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(opened_fd, -1);
	assert_int_equal(write(own[1], "x", 1), 1);
	assert_int_equal(close(fd), 0);
	rdma_destroy_id(&id->base);
	rdma_destroy_id(&listener->base);
	close(own[0]);
	close(own[1]);
	close(peer);
	close(channel.base.fd);
}

/* The program puts a listener of its own, for which a connection waits, in the
 * place of adverb's listener.  The thread adverb-iw takes no connection from
 * the program's listener. */
static void a_listener_of_the_program_is_left_alone(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct r_id *listener = id_to(0);
	int peer = socket(AF_INET, SOCK_STREAM, 0), own, fd;
	struct pollfd waits = {.events = POLLIN};

	open_channel();
	to.sin_port = htons(take_port(&own));
	assert_int_equal(listen(own, 1), 0);
	assert_int_equal(connect(peer, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(write(peer, "x", 1), 1); /* __wrap_accept4 waits for a
						   * byte */
	assert_int_equal(
		r_iw_bind(listener, &listener->base.route.addr.src_addr), 0);
	assert_int_equal(r_iw_listen(listener, 1), 0);
	r_iw_serve(listener);
	r_take();
	fd = listener->iw->fd;
	put_in_place(own, fd);
	fcntl(fd, F_SETFL, O_NONBLOCK); /* accept4 would wait otherwise */
	listener->iw->role->serve(listener->iw, false);
	r_give();
	waits.fd = own;
	assert_int_equal(poll(&waits, 1, 0), 1);
	rdma_destroy_id(&listener->base);
	assert_int_equal(close(fd), 0);
	close(own);
	close(peer);
	close(channel.base.fd);
}

/* The program rejects a request.  While adverb waits until the peer closes the
 * connection, the program puts a socket of its own in the place of the
 * connection's socket.  Adverb reads no bytes from the program's socket. */
static void a_rejected_connection_takes_no_bytes_of_the_program(void **state)
{
	struct r_id *listener = id_to(0), *id;
	struct r_iw *iw;
	int peer, fd, own[2];
	char byte;

	open_channel();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, own), 0);
	assert_int_equal(write(own[1], "x", 1), 1);
	id = take_request(listener, &peer);
	iw = id->iw;
	assert_int_equal(r_iw_reject(id, NULL, 0), 0);
	r_take();
	fd = iw->fd;
	put_in_place(own[0], fd);
	iw->role->serve(iw, false);
	r_give();
	assert_int_equal(recv(own[0], &byte, 1, MSG_DONTWAIT), 1);
	assert_int_equal(close(fd), 0);
	rdma_destroy_id(&id->base);
	rdma_destroy_id(&listener->base);
	close(own[0]);
	close(own[1]);
	close(peer);
	close(channel.base.fd);
}

/* Returns a socket of UDP whose error is ECONNREFUSED. */
static int refused_socket(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(to);
	int fd = socket(AF_INET, SOCK_DGRAM, 0),
	    gone = socket(AF_INET, SOCK_DGRAM, 0);
	struct pollfd refused = {.fd = fd};

	assert_int_equal(bind(gone, (struct sockaddr *)&to, size), 0);
	assert_int_equal(getsockname(gone, (struct sockaddr *)&to, &size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, size), 0);
	close(gone);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(poll(&refused, 1, TEST_WAIT_MS), 1);
	return fd;
}

/* While adverb waits until a connection is made, the program puts a socket of
 * its own in the place of the connection's.  Adverb does not take that socket's
 * error (SO_ERROR), which a read of the option would clear. */
static void a_call_takes_no_error_of_the_program(void **state)
{
	int silent, own = refused_socket(), fd, err = 0;
	struct r_id *id = id_to(take_port(&silent));
	socklen_t size = sizeof(err);

	assert_int_equal(listen(silent, 1), 0);
	open_channel();
	assert_int_equal(r_iw_connect(id, NULL), 0);
	r_take();
	r_iw_enter(id->iw, R_IW_CALLING, id->iw->role);
	fd = id->iw->fd;
	put_in_place(own, fd);
	id->iw->role->serve(id->iw, false);
	r_give();
	assert_int_equal(getsockopt(own, SOL_SOCKET, SO_ERROR, &err, &size), 0);
	assert_int_equal(err, ECONNREFUSED);
	expect_event(id, RDMA_CM_EVENT_CONNECT_ERROR);
	rdma_destroy_id(&id->base);
	assert_int_equal(close(fd), 0);
	close(own);
	close(silent);
	close(channel.base.fd);
}

/* ---- options ---- */

/* An iWARP connection has no path.  If the program gives one nevertheless, the
 * id keeps its type of service, as in the kernel, and does not take the traffic
 * class of the path. */
static void a_given_path_leaves_the_type_of_service_of_iwarp(void **state)
{
	static const struct verbs_iwarp calls;
	struct ibv_path_data path = {.flags = IBV_PATH_FLAG_GMP |
					      IBV_PATH_FLAG_PRIMARY |
					      IBV_PATH_FLAG_BIDIRECTIONAL,
				     .path.tclass = 4};
	struct r_device device = {.iwarp = &calls};
	struct r_id *id;
	uint8_t tos = 32;

	open_channel();
	id = id_to(0);
	id->device = &device;
	id->state.wants_route = true;
	assert_int_equal(rdma_set_option(&id->base, RDMA_OPTION_ID,
					 RDMA_OPTION_ID_TOS, &tos, sizeof(tos)),
			 0);
	assert_int_equal(rdma_set_option(&id->base, RDMA_OPTION_IB,
					 RDMA_OPTION_IB_PATH, &path,
					 sizeof(path)),
			 0);
	assert_int_equal(id->options.tos, tos);
	expect_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_destroy_id(&id->base);
	close(channel.base.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_descriptor_that_the_program_closes_is_replaced),
		cmocka_unit_test(connections_fail_without_the_epoll_set),
		cmocka_unit_test(a_socket_of_the_program_is_left_alone),
		cmocka_unit_test(an_epoll_set_of_the_program_is_left_alone),
		cmocka_unit_test(an_earlier_deadline_wakes_the_thread),
		cmocka_unit_test(a_request_is_sent_before_rdma_connect_returns),
		cmocka_unit_test(
			a_listener_that_the_kernel_does_not_watch_tries_again),
		cmocka_unit_test(a_listener_that_may_not_accept_pauses),
		cmocka_unit_test(a_call_that_the_kernel_does_not_watch_fails),
		cmocka_unit_test(
			a_request_that_is_left_alone_is_withdrawn_in_the_end),
		cmocka_unit_test(
			rdma_accept_finds_the_end_of_an_unwatched_connection),
		cmocka_unit_test(a_file_of_the_program_is_no_connection),
		cmocka_unit_test(a_listener_of_the_program_is_left_alone),
		cmocka_unit_test(
			a_rejected_connection_takes_no_bytes_of_the_program),
		cmocka_unit_test(a_call_takes_no_error_of_the_program),
		cmocka_unit_test(
			a_given_path_leaves_the_type_of_service_of_iwarp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
