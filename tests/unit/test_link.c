/* SPDX-License-Identifier: BSD-2-Clause */
/* librdmacm's connection to brokers that die at chosen moments. */
#include "played_brokers.h"

#include "rdmacm/link_table.h"
#include "util/fd_identity.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Waits until the kernel shows that the thread sleeps, as the thread does while
 * it waits for an answer or for the end of another thread's call. */
static void await_sleep(pid_t thread)
{
	char path[64], state = 'R';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	while (state != 'S') {
		f = fopen(path, "re");
		assert_non_null(f);
		assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
	}
}

static int find_connection(void)
{
	int fd = connection_fd();

	assert_true(fd >= 0);
	return fd;
}

/* The thread that has called recv or recvmmsg last for a connection to a
 * broker; 0: it has returned from that call. */
static _Atomic pid_t receiver;

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
	static ssize_t (*real)(int, void *, size_t, int);
	pid_t self = gettid();
	ssize_t got;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "recv");
	if (!is_connection(fd))
		return real(fd, bytes, n, flags);
	receiver = self;
	got = real(fd, bytes, n, flags);
	atomic_compare_exchange_strong(&receiver, &self, 0);
	return got;
}

int recvmmsg(int fd, struct mmsghdr *of, unsigned int n, int flags,
	     struct timespec *limit)
{
	static int (*real)(int, struct mmsghdr *, unsigned int, int,
			   struct timespec *);
	pid_t self = gettid();
	int got;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "recvmmsg");
	if (is_connection(fd))
		receiver = self;
	got = real(fd, of, n, flags, limit);
	atomic_compare_exchange_strong(&receiver, &self, 0);
	return got;
}

/* Waits until a thread sleeps in recv or recvmmsg for a connection to a broker.
 */
static void await_receiver(void)
{
	pid_t thread;

	while (!(thread = receiver))
		sched_yield();
	await_sleep(thread);
}

static void (*_Atomic on_sent)(
	void); /* called after the next send to a broker */

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	static ssize_t (*real)(int, const void *, size_t, int);
	void (*now)(void) = on_sent;
	ssize_t sent;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "send");
	sent = real(fd, bytes, n, flags);
	if (now && is_connection(fd)) {
		on_sent = NULL;
		now();
	}
	return sent;
}

static int no_thread; /* pthread_create returns this error; 0: it works */

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*start)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *,
			   void *(*)(void *), void *);

	if (no_thread)
		return no_thread;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attr, start, arg);
}

static void an_answered_id_is_resumed_with_the_next_broker(void **state)
{
	struct r_id *id = id_new();

	gap_is_ours = true;
	gap = replace_broker;
	bind_to(id, PORT);
	assert_null(gap);
	expect_asked_once(id, 0);
	gap = replace_broker;
	assert_int_equal(rdma_listen(&id->base, 4), 0);
	assert_null(gap);
	expect_asked_once(id, 1);
	assert_int_equal(rdma_get_src_port(&id->base), htons(PORT));
	rdma_destroy_id(&id->base);
}

/* If librdmacm cannot make its thread, librdmacm closes its new connection to
 * the broker, and the program may open a file that gets the same descriptor
 * number.  This test is the first, because it needs a process without a
 * connection. */
static void a_closed_connection_leaves_no_mark(void **state)
{
	struct r_id *id = id_new();
	int files[16];

	no_thread = EAGAIN;
	assert_int_equal(r_do(id, CMPROTO_LISTEN), -EAGAIN);
	no_thread = 0;
	for (size_t i = 0; i < TEST_COUNT(files); i++) {
		files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fd_identity_holds(files[i]));
	}
	for (size_t i = 0; i < TEST_COUNT(files); i++)
		close(files[i]);
	rdma_destroy_id(&id->base);
}

/* The second broker refuses the port of `lost`, and dies when it gets the
 * CONNECT of `id` again.  The third broker must get this CONNECT, and no
 * CONNECT of `lost`. */
static void open_requests_of_a_lost_id_are_not_sent_again(void **state)
{
	struct r_id *id = id_new(), *lost = id_new();
	struct cmproto m = {0};
	struct broker *third;

	bind_to(id, PORT);
	bind_to(lost, OTHER_PORT);
	broker[brokers - 1].silent_at = CMPROTO_CONNECT;
	broker[brokers].refused = OTHER_PORT;
	broker[brokers].dies_at = CMPROTO_CONNECT;
	third = &broker[brokers + 1];
	assert_int_equal(r_request(id, &m, CMPROTO_CONNECT), 0);
	assert_int_equal(r_request(lost, &m, CMPROTO_CONNECT), 0);
	gap_is_ours = false;
	gap_skips = 1;
	gap = stop_in_gap;
	drain_semaphore(&came);
	kill_broker();
	await_semaphore(&at_gap);
	assert_int_equal(lost->handle, 0);
	rdma_destroy_id(&lost->base);
	sem_post(&may_go_on);
	await_semaphore(&came);
	await_semaphore(&came);
	await_revival();
	assert_int_equal(third->heard[CMPROTO_BIND], 1);
	assert_int_equal(third->heard[CMPROTO_CONNECT], 1);
	assert_false(has_event());
	rdma_destroy_id(&id->base);
}

static void a_listener_listens_again_with_the_next_broker(void **state)
{
	struct r_id *id = id_new();
	struct rlimit was;

	bind_to(id, PORT);
	assert_int_equal(rdma_listen(&id->base, 4), 0);
	forbid_descriptors(&was);
	gap_is_ours = false;
	gap_skips = 1;
	gap = stop_in_gap;
	drain_semaphore(&was_told);
	kill_broker();
	await_semaphore(&at_gap);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	sem_post(&may_go_on);
	await_semaphore(&was_told);
	await_lock();
	expect_asked_once(id, 1);
	rdma_destroy_id(&id->base);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Each of these brokers accepts the connection, and ends at the first request.
 */
static void brokers_that_end_at_once_are_called_after_pauses(void **state)
{
	enum { SUDDEN = 6, PAUSES_MS = 1 + 3 + 7 + 15 + 31 + 63 };
	struct r_id *id = id_new();
	uint64_t began;

	bind_to(id, PORT);
	for (unsigned i = 0; i < SUDDEN; i++)
		broker[brokers + i].dies_at = CMPROTO_BIND;
	drain_semaphore(&came);
	kill_broker();
	began = now_ms();
	for (int i = 0; i <= SUDDEN; i++)
		await_semaphore(&came);
	await_revival();
	assert_true(now_ms() - began >= PAUSES_MS);
	expect_asked_once(id, 0);
	rdma_destroy_id(&id->base);
}

/* A call that needs no broker does not wait for one. */
static void a_search_for_a_broker_holds_up_no_other_thread(void **state)
{
	struct r_id *id = id_new(), *other = id_new();
	struct cmproto m = {0};
	struct r_event *e;

	bind_to(id, PORT);
	pthread_mutex_lock(&r_lock);
	e = r_event_new(other, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	list_push_tail(&other->taken, &e->link);
	pthread_mutex_unlock(&r_lock);
	gap_is_ours = false;
	gap = stop_in_gap;
	drain_semaphore(&came);
	kill_broker();
	await_semaphore(&at_gap);
	/* r_request does not look for a broker either */
	assert_int_equal(r_request(id, &m, CMPROTO_LISTEN), 0);
	rdma_ack_cm_event(&e->base);
	rdma_destroy_id(&other->base);
	assert_int_equal(sem_trywait(&came), -1);
	sem_post(&may_go_on);
	await_semaphore(&came);
	await_revival();
	assert_int_equal(broker[brokers - 1].heard[CMPROTO_BIND], 1);
	assert_int_equal(broker[brokers - 1].heard[CMPROTO_LISTEN], 1);
	rdma_destroy_id(&id->base);
}

struct call {
	struct r_id *id;
	uint16_t kind;
	pid_t thread;
	sem_t began;
	int err;
};

static void *call_broker(void *arg)
{
	struct call *c = arg;

	c->thread = gettid();
	sem_post(&c->began);
	c->err = r_do(c->id, c->kind);
	return NULL;
}

static pthread_t begin_call(struct call *c, struct r_id *id, uint16_t kind)
{
	pthread_t thread;

	*c = (struct call){.id = id, .kind = kind};
	sem_init(&c->began, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, call_broker, c), 0);
	await_semaphore(&c->began);
	return thread;
}

/* A disconnect before the confirmation would have no effect. */
static void calls_of_two_threads_reach_the_next_broker_in_order(void **state)
{
	for (int round = 0; round < 5; round++) {
		struct r_id *id = id_new();
		struct call confirm, end;
		pthread_t threads[2];
		struct broker *next;

		bind_to(id, PORT);
		drain_semaphore(&was_confirmed);
		broker[brokers - 1].silent_at = CMPROTO_ESTABLISH;
		next = &broker[brokers];
		threads[0] = begin_call(&confirm, id, CMPROTO_ESTABLISH);
		await_semaphore(&was_confirmed);
		threads[1] = begin_call(&end, id, CMPROTO_DISCONNECT);
		await_sleep(end.thread);
		kill_broker();
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(confirm.err, 0);
		assert_int_equal(end.err, 0);
		assert_int_not_equal(next->order[CMPROTO_ESTABLISH], 0);
		assert_true(next->order[CMPROTO_ESTABLISH] <
			    next->order[CMPROTO_DISCONNECT]);
		rdma_destroy_id(&id->base);
	}
}

/* A program that closes descriptors, as daemons do, ends no call of another
 * thread: the request of the call goes to the next broker again. */
static void a_call_goes_on_after_the_program_closes_the_connection(void **state)
{
	struct r_id *id = id_new(), *other = id_new();
	struct call call, next;
	pthread_t threads[2];

	bind_to(id, PORT);
	bind_to(other, PORT + 1);
	drain_semaphore(&was_confirmed);
	broker[brokers - 1].silent_at = CMPROTO_ESTABLISH;
	threads[0] = begin_call(&call, id, CMPROTO_ESTABLISH);
	await_semaphore(&was_confirmed);
	await_receiver();
	close(find_connection());
	threads[1] = begin_call(&next, other, CMPROTO_DISCONNECT);
	/* The thread in recvmmsg keeps the connection open, and the played
	 * broker serves one connection at a time, so the second call waits
	 * until the thread has found the descriptor closed. */
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(call.err, 0);
	assert_int_equal(next.err, 0);
	rdma_destroy_id(&other->base);
	rdma_destroy_id(&id->base);
}

struct end {
	struct r_id *id;
	pid_t thread;
	sem_t began;
	atomic_bool is_over;
};

static void *destroy_id(void *arg)
{
	struct end *e = arg;

	e->thread = gettid();
	sem_post(&e->began);
	rdma_destroy_id(&e->id->base);
	atomic_store(&e->is_over, true);
	return NULL;
}

static void an_id_in_a_call_is_destroyed_after_the_call(void **state)
{
	struct r_id *id = id_new();
	struct end end = {.id = id};
	struct call call;
	pthread_t caller, destroyer;

	bind_to(id, PORT);
	drain_semaphore(&was_confirmed);
	broker[brokers - 1].silent_at = CMPROTO_ESTABLISH;
	caller = begin_call(&call, id, CMPROTO_ESTABLISH);
	await_semaphore(&was_confirmed);
	sem_init(&end.began, 0, 0);
	assert_int_equal(pthread_create(&destroyer, NULL, destroy_id, &end), 0);
	await_semaphore(&end.began);
	await_sleep(end.thread);
	assert_false(atomic_load(&end.is_over));
	kill_broker();
	pthread_join(caller, NULL);
	assert_int_equal(call.err, 0);
	pthread_join(destroyer, NULL);
}

/* The second broker dies before it has answered the RESUME of a connection. */
static void a_conversation_outlives_a_successor_that_dies(void **state)
{
	struct r_id *id = id_new();
	struct broker *third = &broker[brokers + 1];

	bind_to(id, PORT);
	memset(id->note, 1, sizeof(id->note));
	id->state.is_up = true;
	broker[brokers].dies_at = CMPROTO_RESUME;
	drain_semaphore(&came);
	kill_broker();
	await_semaphore(&came);
	await_semaphore(&came);
	await_revival();
	assert_false(has_event());
	assert_int_equal(third->heard[CMPROTO_RESUME], 1);
	assert_int_equal(id->handle, handle_of(PORT));
	rdma_destroy_id(&id->base);
}

/* A pair of sockets of the program.  own[0] also gets the number of librdmacm's
 * connection. */
static int own[2];
static int taken_fd; /* the number of librdmacm's connection */

static void take_number(void)
{
	taken_fd = find_connection();
	assert_int_equal(dup2(own[0], taken_fd), taken_fd);
}

/* Fails unless the socket at taken_fd is open, has no time limit, and librdmacm
 * has neither written to it nor read from it.  Closes the sockets. */
static void expect_left_alone(void)
{
	struct timeval limit;
	socklen_t size = sizeof(limit);
	char bytes[2];

	assert_int_equal(recv(own[1], bytes, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(recv(taken_fd, bytes, 2, MSG_DONTWAIT), 1);
	assert_int_equal(
		getsockopt(own[0], SOL_SOCKET, SO_RCVTIMEO, &limit, &size), 0);
	assert_true(!limit.tv_sec && !limit.tv_usec);
	close(taken_fd);
	close(own[0]);
	close(own[1]);
}

/* Returns an ID that listens at PORT.  Makes the sockets of `own`; one byte
 * waits at own[0]. */
static struct r_id *begin_own(void)
{
	struct r_id *id = id_new();

	bind_to(id, PORT);
	assert_int_equal(rdma_listen(&id->base, 4), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, own), 0);
	assert_int_equal(send(own[1], "x", 1, 0), 1);
	return id;
}

static void
a_file_that_has_the_number_of_the_connection_is_left_alone(void **state)
{
	struct r_id *id = begin_own();

	take_number();
	replace_broker();
	expect_left_alone();
	expect_asked_once(id, 1);
	rdma_destroy_id(&id->base);
}

static void take_number_of_sleeper(void)
{
	await_receiver();
	take_number();
}

/* In the first round, a socket of the program takes the number while the thread
 * waits for the successor's answer; in the second round, before the thread
 * waits. */
static void
a_file_that_gets_the_number_during_a_revival_is_left_alone(void **state)
{
	for (int early = 0; early < 2; early++) {
		struct r_id *id = begin_own();

		receiver = 0;
		if (early)
			on_sent = take_number;
		else
			broker[brokers].on_bind = take_number_of_sleeper;
		drain_semaphore(&came);
		kill_broker();
		await_semaphore(&came);
		await_semaphore(&came);
		await_revival();
		expect_left_alone();
		expect_asked_once(id, 1);
		rdma_destroy_id(&id->base);
	}
}

/* The successor refuses the port, or refuses only to listen there. */
static void a_listener_whose_port_is_lost_is_removed(void **state)
{
	for (unsigned has_port = 0; has_port < 2; has_port++) {
		struct r_id *id = id_new(), *other = id_new();
		struct broker *b = &broker[brokers];
		struct rdma_cm_event *e;

		bind_to(id, PORT);
		assert_int_equal(rdma_listen(&id->base, 4), 0);
		b->refused = has_port ? 0 : PORT;
		b->denied = has_port ? CMPROTO_LISTEN : 0;
		kill_broker();
		assert_int_equal(rdma_get_cm_event(&channel.base, &e), 0);
		assert_int_equal(e->event, RDMA_CM_EVENT_DEVICE_REMOVAL);
		assert_int_equal(rdma_ack_cm_event(e), 0);
		b->refused = 0;
		b->denied = 0;
		/* the broker reads in order: a RELEASE before this BIND */
		bind_to(other, OTHER_PORT);
		assert_int_equal(b->heard[CMPROTO_RELEASE], has_port);
		rdma_destroy_id(&id->base);
		rdma_destroy_id(&other->base);
	}
}

/* the serial that the second request had at the first of the two brokers */
static uint32_t other_serial;

/* Sends, from the second of the two brokers, an answer with other_serial. */
static void answer_other(void)
{
	struct broker *b = &broker[brokers - 1];
	struct cmproto m = {.magic = CMPROTO_MAGIC,
			    .version = CMPROTO_VERSION,
			    .kind = CMPROTO_DONE,
			    .serial = other_serial};

	b->on_connect = NULL;
	send(b->fd, &m, sizeof(m), MSG_NOSIGNAL);
}

/* Two requests are open when the first broker ends.  When its successor has got
 * the first request again, the successor sends an answer with the serial that
 * the second request had at the first broker.  librdmacm must not take this
 * answer for the answer to the second request, and must send the second request
 * again, too. */
static void an_answer_for_the_last_broker_ends_no_request(void **state)
{
	struct r_id *one = id_new(), *two = id_new();
	struct cmproto m = {0};

	bind_to(one, PORT);
	bind_to(two, OTHER_PORT);
	broker[brokers - 1].silent_at = CMPROTO_CONNECT;
	broker[brokers].on_connect = answer_other;
	assert_int_equal(r_request(one, &m, CMPROTO_CONNECT), 0);
	assert_int_equal(r_request(two, &m, CMPROTO_CONNECT), 0);
	r_take();
	other_serial = ((struct r_pending *)(void *)r_table_pending()->prev)
			       ->request.serial;
	r_give();
	replace_broker();
	assert_int_equal(broker[brokers - 1].heard[CMPROTO_CONNECT], 2);
	assert_true(list_is_empty(r_table_pending()));
	rdma_destroy_id(&two->base);
	rdma_destroy_id(&one->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closed_connection_leaves_no_mark),
		cmocka_unit_test(
			an_answered_id_is_resumed_with_the_next_broker),
		cmocka_unit_test(open_requests_of_a_lost_id_are_not_sent_again),
		cmocka_unit_test(a_listener_listens_again_with_the_next_broker),
		cmocka_unit_test(
			a_search_for_a_broker_holds_up_no_other_thread),
		cmocka_unit_test(
			brokers_that_end_at_once_are_called_after_pauses),
		cmocka_unit_test(
			calls_of_two_threads_reach_the_next_broker_in_order),
		cmocka_unit_test(a_conversation_outlives_a_successor_that_dies),
		cmocka_unit_test(
			a_file_that_has_the_number_of_the_connection_is_left_alone),
		cmocka_unit_test(
			a_file_that_gets_the_number_during_a_revival_is_left_alone),
		cmocka_unit_test(a_listener_whose_port_is_lost_is_removed),
		cmocka_unit_test(
			a_call_goes_on_after_the_program_closes_the_connection),
		cmocka_unit_test(an_id_in_a_call_is_destroyed_after_the_call),
		cmocka_unit_test(an_answer_for_the_last_broker_ends_no_request),
	};

	return cmocka_run_group_tests(tests, setup_broker, NULL);
}
