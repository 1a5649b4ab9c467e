/* SPDX-License-Identifier: BSD-2-Clause */
/* librdmacm leaves a broker that does not answer, sends something else than an
 * answer, or reads no messages, and turns to the next broker. */
#include "played_brokers.h"

/* the next SO_RCVTIMEO of 1 s or more becomes 100 ms */
static atomic_bool is_hasty;
/* the next SO_SNDTIMEO of 1 s or more becomes 100 ms */
static atomic_bool sends_hastily;
/* While this many brokers have begun, each recv from a broker fails with EINTR,
 * as if a signal had interrupted it, until limit_ms is full.  Each such recv
 * takes INTERRUPTED_MS of the test's clock.  0: never. */
static atomic_uint interrupted_at;
/* how many recvs were interrupted */
static atomic_uint interruptions;
/* SO_RCVTIMEO, in ms, at each interruption */
static _Atomic uint64_t limit_ms[8];

/* limited_at: recv stores SO_RCVTIMEO, in ms, in limit_at_end_ms while this
 * many brokers have begun; 0: never.  The value of the last recv stays. */
static atomic_uint limited_at;
static _Atomic uint64_t limit_at_end_ms;

enum { INTERRUPTED_MS = 12000 };

static ssize_t interrupt_recv(int fd)
{
	struct timeval limit;
	socklen_t size = sizeof(limit);

	getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &size);
	limit_ms[interruptions++] =
		(uint64_t)limit.tv_sec * 1000 + (uint64_t)limit.tv_usec / 1000;
	skipped_ms += INTERRUPTED_MS;
	errno = EINTR;
	return -1;
}

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
	static ssize_t (*real)(int, void *, size_t, int);
	struct timeval limit;
	socklen_t size = sizeof(limit);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "recv");
	if (!is_connection(fd))
		return real(fd, bytes, n, flags);
	if (limited_at == brokers &&
	    !getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &size))
		limit_at_end_ms = (uint64_t)limit.tv_sec * 1000 +
				  (uint64_t)limit.tv_usec / 1000;
	if (interrupted_at && interrupted_at == brokers &&
	    interruptions < TEST_COUNT(limit_ms))
		return interrupt_recv(fd);
	return real(fd, bytes, n, flags);
}

int setsockopt(int fd, int level, int option, const void *value,
	       socklen_t bytes)
{
	static int (*real)(int, int, int, const void *, socklen_t);
	const struct timeval soon = {.tv_usec = 100000};

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "setsockopt");
	if (level == SOL_SOCKET &&
	    (option == SO_RCVTIMEO || option == SO_SNDTIMEO) &&
	    ((const struct timeval *)value)->tv_sec &&
	    atomic_exchange(option == SO_RCVTIMEO ? &is_hasty : &sends_hastily,
			    false))
		value = &soon;
	return real(fd, level, option, value, bytes);
}

/* Fails unless the client reports the fault of the next broker by this
 * sentence, and turns to the broker after that one.  Destroys the id. */
static void expect_another(struct r_id *id, const char *sentence)
{
	drain_semaphore(&came);
	begin_hearing();
	kill_broker();
	await_semaphore(&came);
	await_semaphore(&came);
	await_revival();
	expect_heard(sentence);
	expect_asked_once(id, 0);
	rdma_destroy_id(&id->base);
}

static void a_successor_that_does_not_answer_is_left(void **state)
{
	struct r_id *id = id_new();

	bind_to(id, PORT);
	broker[brokers].silent_at = CMPROTO_BIND;
	atomic_store(&is_hasty, true);
	expect_another(id, "the broker does not answer (is it stopped?)");
}

/* Sends a message that is no answer, 30 seconds after the request came. */
static void send_late_news(void)
{
	const struct cmproto m = {.magic = CMPROTO_MAGIC,
				  .version = CMPROTO_VERSION,
				  .kind = CMPROTO_EVENT,
				  .event = CMPROTO_ESTABLISHED};
	struct broker *b = &broker[brokers - 1];

	b->on_bind = NULL;
	skipped_ms += 30000;
	send(b->fd, &m, sizeof(m), MSG_NOSIGNAL);
}

static void a_successor_that_sends_all_but_an_answer_is_left(void **state)
{
	struct r_id *id = id_new();

	bind_to(id, PORT);
	broker[brokers].silent_at = CMPROTO_BIND;
	broker[brokers].on_bind = send_late_news;
	limited_at = brokers + 1;
	drain_semaphore(&came);
	kill_broker();
	await_semaphore(&came);
	await_semaphore(&came);
	await_revival();
	assert_uint_in_range(limit_at_end_ms, 1, 100);
	expect_asked_once(id, 0);
	rdma_destroy_id(&id->base);
}

static void a_successor_with_malformed_answers_is_left(void **state)
{
	struct r_id *id = id_new();

	bind_to(id, PORT);
	broker[brokers].garbles = true;
	expect_another(id, "the broker sends malformed messages");
}

/* After each signal the wait goes on for the rest of its 30 seconds. */
static void signals_do_not_lengthen_the_wait_for_a_successor(void **state)
{
	struct r_id *id = id_new();

	bind_to(id, PORT);
	broker[brokers].silent_at = CMPROTO_BIND;
	interrupted_at = brokers + 1;
	drain_semaphore(&came);
	kill_broker();
	await_semaphore(&came);
	await_semaphore(&came);
	await_revival();
	/* the time in which this process gets no processor counts, too */
	assert_uint_in_range(interruptions, 1, 3);
	for (uint32_t i = 0; i < interruptions; i++)
		assert_uint_in_range(limit_ms[i], 1,
				     30000 - i * INTERRUPTED_MS);
	expect_asked_once(id, 0);
	rdma_destroy_id(&id->base);
}

static void hold_broker(void)
{
	sem_post(&at_gap);
	sem_wait(&may_go_on);
}

/* The program's calls hold r_lock while they send.  If they waited for ever,
 * SIGALRM would end the test. */
static void a_broker_that_reads_no_messages_is_left(void **state)
{
	struct cmproto m = {.at.space = RDMA_PS_TCP,
			    .at.local_port = OTHER_PORT};
	struct r_id *id = id_new(), *other = id_new();

	bind_to(id, PORT);
	other->base.route.addr.src_addr.sa_family = AF_INET;
	broker[brokers - 1].on_bind = hold_broker;
	assert_int_equal(r_request(other, &m, CMPROTO_BIND), 0);
	await_semaphore(&at_gap);
	drain_semaphore(&came);
	begin_hearing();
	atomic_store(&sends_hastily, true);
	alarm(TEST_WAIT_S * 2);
	r_take();
	for (int i = 0; i < 10000; i++)
		r_tell(CMPROTO_RELEASE, UINT32_MAX);
	r_give();
	alarm(0);
	expect_heard("the broker reads no messages (is it stopped?)");
	sem_post(&may_go_on);
	await_semaphore(&came);
	await_revival();
	rdma_destroy_id(&other->base);
	rdma_destroy_id(&id->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_successor_that_does_not_answer_is_left),
		cmocka_unit_test(
			a_successor_that_sends_all_but_an_answer_is_left),
		cmocka_unit_test(a_successor_with_malformed_answers_is_left),
		cmocka_unit_test(
			signals_do_not_lengthen_the_wait_for_a_successor),
		cmocka_unit_test(a_broker_that_reads_no_messages_is_left),
	};

	return cmocka_run_group_tests(tests, setup_broker, NULL);
}
