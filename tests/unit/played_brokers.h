/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brokers for the tests of librdmacm's connection to a broker.  One thread of
 * the test plays all brokers, one after the other: the thread listens at the
 * broker's address, accepts each connection and answers.
 */
#ifndef TESTS_UNIT_PLAYED_BROKERS_H
#define TESTS_UNIT_PLAYED_BROKERS_H

#include "brokers.h"

#include "broker/cmproto.h"
#include "rdmacm/object.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

enum { PORT = 7100, OTHER_PORT, BROKERS = 48 };

/* How one broker answers, and which messages the broker got.  The test writes
 * some members while the broker serves. */
static struct broker {
	atomic_int fd; /* the connection of the client */
	_Atomic enum cmproto_kind silent_at, dies_at; /* 0: never */
	_Atomic uint16_t refused; /* the port in use; 0: none */
	/* send_rejections() follows the answer to CMPROTO_CONNECT */
	atomic_bool lies;
	atomic_bool garbles;		  /* no answer has the magic number */
	_Atomic enum cmproto_kind denied; /* answered with -denial */
	atomic_int denial;		  /* an errno; 0: EDQUOT */
	atomic_uint heard[CMPROTO_EVENT]; /* by kind */
	/* by kind: when this broker got its first message of the kind.  The
	 * first messages of all kinds at all brokers are numbered from 1, in
	 * the order in which they came; 0: no message of the kind has come. */
	atomic_uint order[CMPROTO_EVENT];
	sem_t was_bound; /* CMPROTO_BIND or _RESUME came */
	/* on_bind: called before CMPROTO_BIND is answered.  on_connect: called
	 * before CMPROTO_CONNECT is answered. */
	void (*_Atomic on_bind)(void), (*_Atomic on_connect)(void);
} broker[BROKERS];
static atomic_uint brokers;   /* how many have begun; the last one serves */
static sem_t came;	      /* a broker has begun */
static sem_t was_told;	      /* a broker has got CMPROTO_LISTEN */
static sem_t was_confirmed;   /* a broker has got CMPROTO_ESTABLISH */
static unsigned heard_so_far; /* the last number in `order` */

/* The handle of a port at the last broker. */
static inline uint32_t handle_of(uint16_t port)
{
	return brokers << 16 | port;
}

/* Sends a rejection that claims too many bytes of private data, and a valid
 * one. */
static inline void send_rejections(const struct broker *b, uint32_t handle)
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

/* Answers a request as the members of b tell. */
static inline void answer_request(const struct broker *b,
				  const struct cmproto *to)
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
	else if (to->kind == CMPROTO_BIND || to->kind == CMPROTO_RESUME)
		m.new_id = handle_of(to->at.local_port);
	send(b->fd, &m, sizeof(m), MSG_NOSIGNAL);
	if (to->kind == CMPROTO_CONNECT && b->lies)
		send_rejections(b, to->id);
}

/* Answers the first message of a client, PROTO_WHO. */
static inline void introduce_broker(int fd)
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
 * is shut down or brings the message dies_at. */
static inline void *serve_clients(void *arg)
{
	struct pollfd p = {.fd = *(int *)arg, .events = POLLIN};

	while (brokers < BROKERS && poll(&p, 1, -1) == 1) {
		struct broker *b = &broker[brokers];
		struct cmproto m;

		b->fd = accept(p.fd, NULL, NULL);
		/* a client that only finds out which process listens sends
		 * nothing */
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
			if (m.kind == CMPROTO_BIND && b->on_bind)
				b->on_bind();
			if (m.kind == CMPROTO_CONNECT && b->on_connect)
				b->on_connect();
			if (m.kind == CMPROTO_BIND || m.kind == CMPROTO_RESUME)
				sem_post(&b->was_bound);
			answer_request(b, &m);
		}
		close(b->fd);
	}
	return NULL;
}

/* Called once, right after a release of r_lock.  gap_skips: how many releases
 * come before that one. */
static void (*_Atomic gap)(void);
static atomic_uint gap_skips;
/* If set, only releases by the test's thread count, else only releases by other
 * threads. */
static atomic_bool gap_is_ours;
static pthread_t ours; /* the test's thread */

/* Replaces libc's function, and calls `gap` after the release that was chosen.
 */
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

/* Is fd librdmacm's end of a connection to a broker? */
static inline bool is_connection(int fd)
{
	struct sockaddr_un broker_at, peer;
	socklen_t want = proto_address(&broker_at), found = sizeof(peer);

	return !getpeername(fd, (struct sockaddr *)&peer, &found) &&
	       found == want && !memcmp(&peer, &broker_at, want);
}

/* Returns librdmacm's end of a connection to a broker; -1: there is none. */
static inline int connection_fd(void)
{
	for (int fd = 0; fd < 1024; fd++)
		if (is_connection(fd))
			return fd;
	return -1;
}

/* Lets this process open no descriptor, so that no broker can be reached or
 * started.  Stores in *was the limit, which the caller restores. */
static inline void forbid_descriptors(struct rlimit *was)
{
	struct rlimit few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, was), 0);
	few = (struct rlimit){3, was->rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static struct r_channel channel;

static inline struct r_id *id_new(void)
{
	struct r_id *id =
		r_id_new(&channel.base, NULL, RDMA_PS_TCP, IBV_QPT_RC);

	assert_non_null(id);
	return id;
}

static inline void bind_to(struct r_id *id, uint16_t port)
{
	struct sockaddr_in any = {.sin_family = AF_INET,
				  .sin_port = htons(port)};

	assert_int_equal(r_bind(id, (struct sockaddr *)&any), 0);
}

/* at_gap: posted by a function that `gap` or on_bind points to, before the
 * function waits for may_go_on; may_go_on: posted by the test */
static sem_t at_gap, may_go_on;

/* For `gap`: stops the calling thread until the test posts may_go_on. */
static inline void stop_in_gap(void)
{
	sem_post(&at_gap);
	sem_wait(&may_go_on);
}

static inline bool has_event(void)
{
	struct pollfd p = {.fd = channel.base.fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Ends the connection of the last broker, which has then lived so long that
 * librdmacm connects to the next broker without a pause. */
static inline void kill_broker(void)
{
	skipped_ms += LIFE_MS;
	shutdown(broker[brokers - 1].fd, SHUT_RDWR);
}

static inline void await_semaphore(sem_t *s)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TEST_WAIT_S;
	assert_int_equal(sem_timedwait(s, &until), 0);
}

static inline void drain_semaphore(sem_t *s)
{
	while (!sem_trywait(s))
		;
}

/* Waits until the thread that has r_lock has released it. */
static inline void await_lock(void)
{
	pthread_mutex_lock(&r_lock);
	pthread_mutex_unlock(&r_lock);
}

/* Waits until librdmacm has repeated all its requests at the last broker. */
static inline void await_revival(void)
{
	await_semaphore(&broker[brokers - 1].was_bound);
	await_lock();
}

/* Kills the broker, and waits until another broker serves. */
static inline void replace_broker(void)
{
	drain_semaphore(&came);
	kill_broker();
	await_semaphore(&came);
	await_revival();
}

/* The file that begin_hearing puts in the place of standard error. */
static int heard = -1;
static int standard_error; /* a copy of the descriptor */

/* Keeps the messages to the user, until expect_heard. */
static inline void begin_hearing(void)
{
	heard = memfd_create("heard", MFD_CLOEXEC);
	standard_error = dup(STDERR_FILENO);
	assert_true(dup2(heard, STDERR_FILENO) >= 0);
}

/* Restores standard error, and fails unless the user was told this sentence
 * since begin_hearing. */
static inline void expect_heard(const char *sentence)
{
	char text[2048] = "";

	assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
	close(standard_error);
	assert_true(pread(heard, text, sizeof(text) - 1, 0) >= 0);
	close(heard);
	if (!strstr(text, sentence))
		fail_msg("not said: %s\nbut: %s", sentence, text);
}

/* Fails unless the last broker got one BIND and this many LISTENs, and the ID
 * has a handle of that broker. */
static inline void expect_asked_once(const struct r_id *id, unsigned listens)
{
	assert_int_equal(id->handle, handle_of(PORT));
	assert_int_equal(broker[brokers - 1].heard[CMPROTO_BIND], 1);
	assert_int_equal(broker[brokers - 1].heard[CMPROTO_LISTEN], listens);
}

/* The setup of a group of tests: enters a network namespace, and begins the
 * thread of serve_clients there. */
static inline int setup_broker(void **state)
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

#endif
