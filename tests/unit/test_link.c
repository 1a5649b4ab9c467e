/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm's connection to brokers that die at chosen moments.  A thread of
 * the test plays each broker: it has the broker's address, accepts each
 * connection and answers.
 */
#include "brokers.h"

#include "broker/cmproto.h"
#include "rdmacm/iw.h"
#include "rdmacm/object.h"
#include "util/fd_identity.h"
#include "wire/sctp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>

enum { PORT = 7100, OTHER_PORT, BROKERS = 48, WAIT_S = 30 };

/* How one broker answers, and which messages it got.  refused: a port. */
static struct broker {
	int fd;
	enum cmproto_kind silent_at, dies_at; /* 0: never */
	uint16_t refused;
	bool lies;		       /* by send_rejections(), after CONNECT */
	bool garbles;		       /* no answer has the magic number */
	enum cmproto_kind denied;      /* answered with -denial */
	int denial;		       /* an errno; 0: EDQUOT */
	unsigned heard[CMPROTO_EVENT]; /* by kind */
	unsigned order[CMPROTO_EVENT]; /* rank of the first of a kind */
	sem_t was_bound;	       /* CMPROTO_BIND came */
} broker[BROKERS];
static unsigned brokers; /* how many have begun; the last one serves */
/* came: a broker has begun.  was_told: a broker has got CMPROTO_LISTEN.
 * was_confirmed: a broker has got CMPROTO_ESTABLISH. */
static sem_t came, was_told, was_confirmed;
static unsigned heard_so_far;

/* The handle of a port at the last broker. */
static uint32_t handle_of(uint16_t port)
{
	return brokers << 16 | port;
}

/* Sends a rejection that claims too many bytes of private data, and a valid
 * one. */
static void send_rejections(const struct broker *b, uint32_t handle)
{
	struct cmproto m = {.magic = CMPROTO_MAGIC,
			    .version = CMPROTO_VERSION,
			    .kind = CMPROTO_EVENT,
			    .id = handle,
			    .event = CMPROTO_REJECTED,
			    .status = 28,
			    .private_bytes = CMPROTO_PRIVATE + 1};

	send(b->fd, &m, sizeof(m), MSG_NOSIGNAL);
	m.private_bytes = CMPROTO_PRIVATE;
	send(b->fd, &m, sizeof(m), MSG_NOSIGNAL);
}

static void answer_request(const struct broker *b, const struct cmproto *to)
{
	struct cmproto m = {.magic = b->garbles ? 0 : CMPROTO_MAGIC,
			    .version = CMPROTO_VERSION,
			    .kind = CMPROTO_DONE,
			    .serial = to->serial,
			    .at.local_port = to->at.local_port};

	if (to->kind == b->silent_at || to->kind == CMPROTO_RELEASE)
		return;
	if (to->kind == CMPROTO_BIND && to->at.local_port == b->refused)
		m.err = -EADDRINUSE;
	else if (to->kind == b->denied)
		m.err = b->denial ? -b->denial : -EDQUOT;
	else if (to->kind == CMPROTO_BIND)
		m.new_id = handle_of(to->at.local_port);
	send(b->fd, &m, sizeof(m), MSG_NOSIGNAL);
	if (to->kind == CMPROTO_CONNECT && b->lies)
		send_rejections(b, to->id);
}

/* Answers the first question of each client, PROTO_WHO. */
static void introduce_broker(int fd)
{
	struct proto m = {0};
	int fds[PROTO_FDS];
	struct pollfd p = {fd, POLLIN, 0};

	poll(&p, 1, -1);
	if (proto_receive(fd, &m, fds) || m.kind != PROTO_WHO)
		return;
	m = (struct proto){.kind = PROTO_WHO_IS};
	proto_introduce(&m, 0);
	proto_send(fd, &m, NULL);
}

/* The thread that plays one broker after the other, each until its connection
 * is shut down. */
static void *serve_clients(void *arg)
{
	struct pollfd p = {.fd = *(int *)arg, .events = POLLIN};

	while (brokers < BROKERS && poll(&p, 1, -1) == 1) {
		struct broker *b = &broker[brokers];
		struct cmproto m;

		b->fd = accept(p.fd, NULL, NULL);
		/* a connection by which a client looks which process listens */
		if (recv(b->fd, &m, 1, MSG_PEEK) != 1) {
			close(b->fd);
			continue;
		}
		brokers++;
		introduce_broker(b->fd);
		sem_post(&came);
		while (recv(b->fd, &m, sizeof(m), 0) == sizeof(m) &&
		       m.kind != b->dies_at) {
			if (!b->heard[m.kind]++)
				b->order[m.kind] = ++heard_so_far;
			if (m.kind == CMPROTO_ESTABLISH)
				sem_post(&was_confirmed);
			if (m.kind == CMPROTO_LISTEN)
				sem_post(&was_told);
			if (m.kind == CMPROTO_BIND)
				sem_post(&b->was_bound);
			answer_request(b, &m);
		}
		close(b->fd);
	}
	return NULL;
}

static void kill_broker(void)
{
	shutdown(broker[brokers - 1].fd, SHUT_RDWR);
}

static void await_semaphore(sem_t *s)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	assert_int_equal(sem_timedwait(s, &until), 0);
}

static void drain_semaphore(sem_t *s)
{
	while (!sem_trywait(s))
		;
}

/* Waits until the thread that has r_lock has released it. */
static void await_lock(void)
{
	pthread_mutex_lock(&r_lock);
	pthread_mutex_unlock(&r_lock);
}

/* Waits until the last broker has got all requests to resume. */
static void await_revival(void)
{
	await_semaphore(&broker[brokers - 1].was_bound);
	await_lock();
}

/* Called once, right after r_lock is released for the first time, or gap_skips
 * times later.  If gap_is_ours, releases by the test's thread count, else
 * releases by other threads. */
static void (*gap)(void);
static unsigned gap_skips;
static bool gap_is_ours;
static pthread_t ours;

int pthread_mutex_unlock(pthread_mutex_t *m)
{
	static int (*real)(pthread_mutex_t *);
	void (*now)(void) = NULL;
	int err;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	if (m == &r_lock && gap &&
	    gap_is_ours == !!pthread_equal(pthread_self(), ours) &&
	    !gap_skips--) {
		now = gap;
		gap = NULL;
		gap_skips = 0;
	}
	err = real(m);
	if (now)
		now();
	return err;
}

static bool is_time_over; /* of each wait for an answer or a call */

int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m,
			   clockid_t clock, const struct timespec *until)
{
	static int (*real)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
			   const struct timespec *);

	if (is_time_over)
		return ETIMEDOUT;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	return real(c, m, clock, until);
}

static atomic_bool is_hasty; /* the next limit of a recv is 100 ms */

int setsockopt(int fd, int level, int option, const void *value,
	       socklen_t bytes)
{
	static int (*real)(int, int, int, const void *, socklen_t);
	const struct timeval soon = {.tv_usec = 100000};

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "setsockopt");
	if (level == SOL_SOCKET && option == SO_RCVTIMEO &&
	    ((const struct timeval *)value)->tv_sec &&
	    atomic_exchange(&is_hasty, false))
		value = &soon;
	return real(fd, level, option, value, bytes);
}

static int no_thread; /* pthread_create returns this error */

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

static struct r_channel channel;

static struct r_id *id_new(void)
{
	struct r_id *id =
		r_id_new(&channel.base, NULL, RDMA_PS_TCP, IBV_QPT_RC);

	assert_non_null(id);
	return id;
}

static void bind_to(struct r_id *id, uint16_t port)
{
	struct sockaddr_in any = {.sin_family = AF_INET,
				  .sin_port = htons(port)};

	assert_int_equal(r_bind(id, (struct sockaddr *)&any), 0);
}

/* Kills the broker, and waits until another broker serves. */
static void replace_broker(void)
{
	drain_semaphore(&came);
	kill_broker();
	await_semaphore(&came);
	await_revival();
}

static void expect_asked_once(const struct r_id *id, unsigned listens)
{
	assert_int_equal(id->handle, handle_of(PORT));
	assert_int_equal(broker[brokers - 1].heard[CMPROTO_BIND], 1);
	assert_int_equal(broker[brokers - 1].heard[CMPROTO_LISTEN], listens);
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

/* Without a thread the connection to the broker is closed again, and the
 * program may open a file of the same number.  This test is the first, because
 * it needs a process without a connection. */
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

static sem_t at_gap, may_go_on;

static void stop_in_gap(void)
{
	sem_post(&at_gap);
	sem_wait(&may_go_on);
}

static bool has_event(void)
{
	struct pollfd p = {.fd = channel.base.fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* The second broker refuses the port of `lost`, and dies at the CONNECT that
 * was open. */
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

/* Without a free descriptor no broker can be reached or started. */
static void a_listener_listens_again_with_the_next_broker(void **state)
{
	struct r_id *id = id_new();
	struct rlimit was, few;

	bind_to(id, PORT);
	assert_int_equal(rdma_listen(&id->base, 4), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){3, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
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
	uint64_t began = now_ms();
	struct r_id *id = id_new();

	bind_to(id, PORT);
	for (unsigned i = 0; i < SUDDEN; i++)
		broker[brokers + i].dies_at = CMPROTO_BIND;
	drain_semaphore(&came);
	kill_broker();
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
	other->unacked++;
	pthread_mutex_unlock(&r_lock);
	gap_is_ours = false;
	gap = stop_in_gap;
	drain_semaphore(&came);
	kill_broker();
	await_semaphore(&at_gap);
	/* the call does not look for a broker itself either */
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

/* The program gets no more private data than a message has room for. */
static void a_message_that_claims_too_much_data_is_dropped(void **state)
{
	struct r_id *id = id_new();
	struct rdma_cm_event *e;
	struct cmproto m = {0};

	bind_to(id, PORT);
	broker[brokers - 1].lies = true;
	assert_int_equal(r_request(id, &m, CMPROTO_CONNECT), 0);
	assert_int_equal(rdma_get_cm_event(&channel.base, &e), 0);
	assert_int_equal(e->event, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(e->param.conn.private_data_len, CMPROTO_PRIVATE);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	rdma_destroy_id(&id->base);
	broker[brokers - 1].lies = false;
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

/* Waits until the thread sleeps, for an answer or for the other thread's call.
 */
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

static void take_refusal_and_destroy(void)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_get_cm_event(&channel.base, &e), 0);
	assert_int_equal(e->event, RDMA_CM_EVENT_REJECTED);
	id = e->id;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* A program may destroy the id in the thread that takes the event, before
 * rdma_connect has returned.  AddressSanitizer sees a later access. */
static void rdma_connect_does_not_use_an_id_whose_event_was_taken(void **state)
{
	struct r_device device = {.max_responder = 1, .max_initiator = 1};
	struct r_id *id = id_new();

	bind_to(id, PORT);
	id->device = &device;
	id->state.has_destination = true;
	id->base.route.addr.dst_addr.sa_family = AF_INET;
	broker[brokers - 1].lies = true;
	gap_is_ours = true;
	gap_skips = 1; /* the first is before the request */
	gap = take_refusal_and_destroy;
	assert_int_equal(rdma_connect(&id->base, NULL), 0);
	assert_null(gap);
	assert_false(has_event());
	broker[brokers - 1].lies = false;
}

/* The broker lives, so the program must not be told that the connection has
 * ended with the broker. */
static void a_call_behind_a_long_call_times_out(void **state)
{
	struct r_id *id = id_new();

	bind_to(id, PORT);
	id->caller = getpid();
	is_time_over = true;
	assert_int_equal(r_do(id, CMPROTO_DISCONNECT), -ETIMEDOUT);
	id->state.is_decided = true;
	assert_int_equal(rdma_disconnect(&id->base), -1);
	assert_int_equal(errno, ETIMEDOUT);
	is_time_over = false;
	id->caller = 0;
	assert_false(has_event());
	rdma_destroy_id(&id->base);
}

/* Calls `call` with the id, which must fail with ETIMEDOUT, and stores what
 * this prints on stderr. */
static void time_out(int (*call)(struct rdma_cm_id *), struct r_id *id,
		     char *text, size_t size)
{
	int was = dup(STDERR_FILENO), said = memfd_create("stderr", 0), err;
	ssize_t n;

	dup2(said, STDERR_FILENO);
	is_time_over = true;
	errno = 0;
	err = call(&id->base) == -1 ? errno : 0;
	is_time_over = false;
	dup2(was, STDERR_FILENO);
	n = pread(said, text, size - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(said);
	close(was);
	assert_int_equal(err, ETIMEDOUT);
}

static int accept_id(struct rdma_cm_id *id)
{
	return rdma_accept(id, NULL);
}

static int reject_id(struct rdma_cm_id *id)
{
	return rdma_reject(id, NULL, 0);
}

static int notify_id(struct rdma_cm_id *id)
{
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

/* If the message named a missing connection, users would look for a fault in
 * the program. */
static void a_silent_broker_is_no_missing_connection(void **state)
{
	static int (*const calls[])(struct rdma_cm_id *) = {
		accept_id, reject_id, notify_id, rdma_establish,
		rdma_disconnect};
	struct r_id *id = id_new();
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	bind_to(id, PORT);
	id->base.qp_type = IBV_QPT_UD;
	id->state.is_passive = true;
	id->caller = getpid();
	for (size_t i = 0; i < TEST_COUNT(calls); i++) {
		time_out(calls[i], id, text, sizeof(text));
		assert_non_null(strstr(text, "the broker cannot be asked"));
		assert_non_null(strstr(text, strerror(ETIMEDOUT)));
	}
	id->caller = 0;
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

/* The file in place of standard error, and standard error. */
static int heard = -1, standard_error;

/* From now on keeps what is said to the user. */
static void begin_hearing(void)
{
	heard = memfd_create("heard", MFD_CLOEXEC);
	standard_error = dup(STDERR_FILENO);
	assert_true(dup2(heard, STDERR_FILENO) >= 0);
}

/* Fails unless the user was told this sentence since begin_hearing. */
static void expect_heard(const char *sentence)
{
	char text[2048] = "";

	assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
	close(standard_error);
	assert_true(pread(heard, text, sizeof(text) - 1, 0) >= 0);
	close(heard);
	if (!strstr(text, sentence))
		fail_msg("not said: %s\nbut: %s", sentence, text);
}

/* The next broker does wrong, and the client takes the one after it. */
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

static void a_successor_with_malformed_answers_is_left(void **state)
{
	struct r_id *id = id_new();

	bind_to(id, PORT);
	broker[brokers].garbles = true;
	expect_another(id, "the broker sends malformed messages");
}

/* The successor refuses the port; or only the listener. */
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
		b->refused = b->denied = 0;
		bind_to(other, OTHER_PORT); /* the broker reads in order */
		assert_int_equal(b->heard[CMPROTO_RELEASE], has_port);
		rdma_destroy_id(&id->base);
		rdma_destroy_id(&other->base);
	}
}

static void a_failed_listen_tells_the_user_what_to_do(void **state)
{
	static const struct {
		int err;
		const char *sentence;
	} cases[] = {
		{EADDRINUSE, "another id already listens at 0.0.0.0 port 7100; "
			     "choose another port\n"},
		{EDQUOT, "the id cannot listen at 0.0.0.0 port 7100: one user"},
		{EINVAL, "the id cannot listen at 0.0.0.0 port 7100: Invalid "
			 "argument; bind a new id to this address, and call "
			 "rdma_listen with it\n"},
	};
	struct r_id *id = id_new();
	struct broker *b;

	bind_to(id, PORT);
	b = &broker[brokers - 1];
	b->denied = CMPROTO_LISTEN;
	for (size_t i = 0; i < TEST_COUNT(cases); i++) {
		b->denial = cases[i].err;
		begin_hearing();
		assert_int_equal(rdma_listen(&id->base, 4), -1);
		assert_int_equal(errno, cases[i].err);
		expect_heard(cases[i].sentence);
	}
	b->denied = 0, b->denial = 0;
	rdma_destroy_id(&id->base);
}

static void a_failed_disconnect_tells_the_user_when_to_disconnect(void **state)
{
	struct r_id *id = id_new();
	struct broker *b;

	bind_to(id, PORT);
	b = &broker[brokers - 1];
	begin_hearing();
	assert_int_equal(rdma_disconnect(&id->base), -1);
	assert_int_equal(errno, EINVAL);
	expect_heard("the id was never connected; call rdma_disconnect only "
		     "after ESTABLISHED\n");
	id->state.is_decided = true;
	b->denied = CMPROTO_DISCONNECT;
	b->denial = EINVAL;
	begin_hearing();
	assert_int_equal(rdma_disconnect(&id->base), -1);
	assert_int_equal(errno, EINVAL);
	expect_heard("the id has no connection; call rdma_disconnect only "
		     "after ESTABLISHED\n");
	b->denied = 0;
	b->denial = 0;
	rdma_destroy_id(&id->base);
}

/* Makes a socket that is bound to PORT. */
static int open_tcp(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(PORT)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static int connect_tcp(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(PORT),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int err = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? errno : 0;

	close(fd);
	return err;
}

/* Makes an id that is bound to PORT at the broker and with TCP, as an id is
 * that is bound for devices of both kinds. */
static struct r_id *id_of_both(void)
{
	struct r_id *id = id_new();

	id->options.may_share = true;
	bind_to(id, PORT);
	assert_int_equal(r_iw_bind(id, &id->base.route.addr.src_addr), 0);
	return id;
}

static void an_id_listens_at_the_broker_and_with_tcp_or_not_at_all(void **state)
{
	struct r_id *id = id_of_both();
	struct broker *b = &broker[brokers - 1];
	unsigned before = b->heard[CMPROTO_LISTEN];
	int other = open_tcp();

	assert_int_equal(listen(other, 1), 0);
	assert_int_equal(rdma_listen(&id->base, 4), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(b->heard[CMPROTO_LISTEN], before);
	close(other);
	b->denied = CMPROTO_LISTEN;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rdma_listen(&id->base, 4), -1);
		assert_int_equal(errno, EDQUOT);
		assert_int_equal(connect_tcp(), ECONNREFUSED);
	}
	b->denied = 0;
	assert_int_equal(rdma_listen(&id->base, 4), 0);
	assert_int_equal(connect_tcp(), 0);
	b->denied = CMPROTO_LISTEN; /* does not end the listener */
	assert_int_equal(rdma_listen(&id->base, 4), -1);
	assert_int_equal(connect_tcp(), 0);
	b->denied = 0;
	rdma_destroy_id(&id->base);
}

/* The descriptor of an SCTP listener is one end of a socketpair.  The end of
 * this listener must leave open the socket that is bound to the port. */
static void an_id_that_failed_to_listen_with_sctp_keeps_its_port(void **state)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6,
				  .sin6_port = htons(PORT)},
			    from = at;
	struct sctp_news news = {.err = -1};
	struct broker *b;
	struct r_id *id;
	int fd, err;

	setenv("ADVERB_SCTP", "udp", 1);
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &at.sin6_addr);
	from.sin6_addr = at.sin6_addr;
	from.sin6_port = 0;
	id = id_new();
	bind_to(id, PORT);
	b = &broker[brokers - 1];
	err = r_iw_bind(id, &id->base.route.addr.src_addr);
	unsetenv("ADVERB_SCTP");
	if (err == -ELIBACC) {
		rdma_destroy_id(&id->base);
		SKIP_FOR("libusrsctp2 is not installed");
	}
	assert_int_equal(err, 0);
	b->denied = CMPROTO_LISTEN;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rdma_listen(&id->base, 4), -1);
		assert_int_equal(errno, EDQUOT);
		assert_int_equal(sctp_bind(&at, false), -EADDRINUSE);
	}
	b->denied = 0;
	assert_int_equal(rdma_listen(&id->base, 4), 0);
	fd = sctp_connect(sctp_bind(&from, false), &from, &at);
	assert_true(fd >= 0);
	assert_int_equal(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 60000), 1);
	assert_int_equal(recv(fd, &news, sizeof(news), 0), sizeof(news));
	assert_int_equal(news.err, 0);
	close(fd);
	rdma_destroy_id(&id->base);
}

static int setup_broker(void **state)
{
	static int listener;
	struct sockaddr_un a;
	socklen_t length;
	pthread_t thread;

	enter_namespace(state);
	length = proto_address(&a);
	ours = pthread_self();
	list_init(&channel.events);
	channel.base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, length), 0);
	assert_int_equal(listen(listener, BROKERS), 0);
	for (int i = 0; i < BROKERS; i++)
		sem_init(&broker[i].was_bound, 0, 0);
	sem_init(&came, 0, 0);
	sem_init(&was_told, 0, 0);
	sem_init(&was_confirmed, 0, 0);
	sem_init(&at_gap, 0, 0);
	sem_init(&may_go_on, 0, 0);
	return pthread_create(&thread, NULL, serve_clients, &listener);
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
			a_message_that_claims_too_much_data_is_dropped),
		cmocka_unit_test(
			calls_of_two_threads_reach_the_next_broker_in_order),
		cmocka_unit_test(a_successor_that_does_not_answer_is_left),
		cmocka_unit_test(a_successor_with_malformed_answers_is_left),
		cmocka_unit_test(a_listener_whose_port_is_lost_is_removed),
		cmocka_unit_test(a_failed_listen_tells_the_user_what_to_do),
		cmocka_unit_test(
			a_failed_disconnect_tells_the_user_when_to_disconnect),
		cmocka_unit_test(
			an_id_listens_at_the_broker_and_with_tcp_or_not_at_all),
		cmocka_unit_test(
			an_id_that_failed_to_listen_with_sctp_keeps_its_port),
		cmocka_unit_test(a_silent_broker_is_no_missing_connection),
		cmocka_unit_test(a_call_behind_a_long_call_times_out),
		cmocka_unit_test(an_id_in_a_call_is_destroyed_after_the_call),
		cmocka_unit_test(
			rdma_connect_does_not_use_an_id_whose_event_was_taken),
	};

	return cmocka_run_group_tests(tests, setup_broker, NULL);
}
