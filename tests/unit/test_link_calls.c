/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of librdmacm whose requests a broker refuses or does not answer, or
 * whose events come before the call returns. */
#include "played_brokers.h"

#include "rdmacm/ib.h"
#include "rdmacm/iw.h"
#include "wire/sctp.h"

#include <stdlib.h>

/* each wait for an answer, or for the end of another thread's call, times out
 * at once */
static bool is_time_over;
/* the time limit, in s, of the latest wait that timed out at once */
static time_t waited_s;

int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m,
			   clockid_t clock, const struct timespec *until)
{
	static int (*real)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
			   const struct timespec *);

	if (is_time_over) {
		struct timespec now;

		clock_gettime(clock, &now);
		waited_s = until->tv_sec - now.tv_sec;
		return ETIMEDOUT;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	return real(c, m, clock, until);
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
 * rdma_connect has returned.  If rdma_connect used the id after that,
 * AddressSanitizer would report it. */
static void rdma_connect_does_not_use_an_id_whose_event_was_taken(void **state)
{
	struct r_device device = {.max_responder = 1, .max_initiator = 1};
	struct r_id *id = id_new();

	bind_to(id, PORT);
	id->device = &device;
	id->state.has_destination = id->state.has_route = true;
	id->base.route.addr.dst_addr.sa_family = AF_INET;
	broker[brokers - 1].lies = true;
	gap_is_ours = true;
	gap_skips = 2; /* two releases of r_lock come before the request */
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

/* The call that would have used the port has failed. */
static void a_port_that_is_bound_too_late_is_released(void **state)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
				       .sin_port = htons(PORT)};
	struct r_id *id = id_new(), *others[3];
	struct broker *b = &broker[brokers - 1];
	unsigned released;

	/* The broker reads in order, so when it answers this bind, it has
	 * counted the releases of earlier tests. */
	others[0] = id_new();
	bind_to(others[0], OTHER_PORT);
	released = b->heard[CMPROTO_RELEASE];
	is_time_over = true;
	assert_int_equal(r_bind(id, (const struct sockaddr *)&at), -1);
	assert_int_equal(errno, ETIMEDOUT);
	is_time_over = false;
	/* The late answer comes before the answer to the first of these two
	 * requests.  So librdmacm sends the release before the second request,
	 * and the broker has read the release when it answers the second
	 * request. */
	for (int i = 1; i < 3; i++) {
		others[i] = id_new();
		bind_to(others[i], (uint16_t)(OTHER_PORT + i));
	}
	assert_int_equal(b->heard[CMPROTO_RELEASE], released + 1);
	rdma_destroy_id(&id->base);
	for (int i = 0; i < 3; i++)
		rdma_destroy_id(&others[i]->base);
}

/* Asks for an IPoIB interface.  Returns how long, in s, the question may wait.
 */
static time_t wait_for_interface(struct r_id *id)
{
	static const uint8_t mac[6];
	struct cmproto m;

	is_time_over = true;
	assert_int_equal(r_ib_interface(id, mac, &m), -ETIMEDOUT);
	is_time_over = false;
	return waited_s;
}

/* A fabric that is stopped must not hold up rdma_resolve_addr for longer than
 * the program has allowed. */
static void a_question_waits_no_longer_than_the_program_allows(void **state)
{
	struct r_id *id = id_new();

	bind_to(id, PORT);
	assert_true(wait_for_interface(id) >= 29);
	r_ib_limit_asking(id, 4000);
	assert_true(wait_for_interface(id) >= 3 && waited_s <= 4);
	r_ib_limit_asking(id, 0);
	assert_true(wait_for_interface(id) <= 1);
	r_ib_limit_asking(id, INT32_MAX);
	assert_true(wait_for_interface(id) <= 30);
	rdma_destroy_id(&id->base);
}

/* Calls `call` with the id.  The call must fail with ETIMEDOUT.  Stores in text
 * what the call prints on stderr. */
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
	id->caller = getpid();
	for (size_t i = 0; i < TEST_COUNT(calls); i++) {
		id->state.is_passive = calls[i] != rdma_establish;
		time_out(calls[i], id, text, sizeof(text));
		assert_non_null(strstr(text, "the broker cannot be asked"));
		assert_non_null(strstr(text, strerror(ETIMEDOUT)));
	}
	id->caller = 0;
	rdma_destroy_id(&id->base);
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
	b->denied = 0;
	b->denial = 0;
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

/* Makes an id that is bound to PORT at the broker and with TCP, like an id for
 * devices of both kinds. */
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
	b->denied = CMPROTO_LISTEN; /* a refusal does not end a listener */
	assert_int_equal(rdma_listen(&id->base, 4), -1);
	assert_int_equal(connect_tcp(), 0);
	b->denied = 0;
	rdma_destroy_id(&id->base);
}

/* The descriptor of an SCTP listener is a socket of a socketpair.  When this
 * listener ends, the UDP socket that is bound to the port must stay open. */
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
	assert_int_equal(poll(&(struct pollfd){fd, POLLIN, 0}, 1, TEST_WAIT_MS),
			 1);
	assert_int_equal(recv(fd, &news, sizeof(news), 0), sizeof(news));
	assert_int_equal(news.err, 0);
	close(fd);
	rdma_destroy_id(&id->base);
}

static struct r_id *id_of_sctp(const char *ip)
{
	struct r_id *id = id_new();
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(OTHER_PORT)};

	inet_pton(AF_INET, ip, &at.sin_addr);
	memcpy(&id->base.route.addr.src_addr, &at, sizeof(at));
	setenv("ADVERB_SCTP", "udp", 1);
	if (r_iw_make(id) || r_iw_bind(id, (struct sockaddr *)&at)) {
		rdma_destroy_id(&id->base);
		id = NULL;
	}
	unsetenv("ADVERB_SCTP");
	return id;
}

static void a_port_of_sctp_is_one_for_all_addresses(void **state)
{
	struct r_id *one = id_of_sctp("127.0.0.1"), *two;

	if (!one)
		SKIP_FOR("libusrsctp2 is not installed");
	two = id_of_sctp("127.0.0.2");
	assert_non_null(two);
	assert_int_equal(r_iw_listen(one, 4), 0);
	begin_hearing();
	assert_int_equal(r_iw_listen(two, 4), -1);
	assert_int_equal(errno, EADDRINUSE);
	expect_heard("127.0.0.2 port 7101: another id of this program has this "
		     "port of SCTP, and a program can listen at a port of "
		     "SCTP only once");
	rdma_destroy_id(&two->base);
	rdma_destroy_id(&one->base);
}

/* The successor of the broker does not resume the conversation.  The event says
 * so, and the program then disconnects. */
static void a_lost_conversation_is_reported_once(void **state)
{
	struct r_id *id = id_new(), *other = id_new();
	uint64_t event;
	struct broker *next;

	bind_to(id, PORT);
	memset(id->note, 1, sizeof(id->note));
	id->state.is_up = id->state.is_decided = true;
	next = &broker[brokers];
	next->denied = CMPROTO_RESUME;
	replace_broker();
	assert_true(has_event());
	next->denial = ENOENT;
	next->denied = CMPROTO_DISCONNECT;
	begin_hearing();
	assert_int_equal(rdma_disconnect(&id->base), 0);
	/* The broker answers in order, so this call returns after the answer to
	 * DISCONNECT has come. */
	bind_to(other, OTHER_PORT);
	assert_int_equal(lseek(heard, 0, SEEK_END), 0);
	expect_heard("");
	assert_int_equal(read(channel.base.fd, &event, sizeof(event)),
			 sizeof(event));
	assert_false(has_event());
	rdma_destroy_id(&id->base);
	rdma_destroy_id(&other->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_message_that_claims_too_much_data_is_dropped),
		cmocka_unit_test(a_failed_listen_tells_the_user_what_to_do),
		cmocka_unit_test(
			a_failed_disconnect_tells_the_user_when_to_disconnect),
		cmocka_unit_test(
			an_id_listens_at_the_broker_and_with_tcp_or_not_at_all),
		cmocka_unit_test(
			an_id_that_failed_to_listen_with_sctp_keeps_its_port),
		cmocka_unit_test(a_port_of_sctp_is_one_for_all_addresses),
		cmocka_unit_test(a_silent_broker_is_no_missing_connection),
		cmocka_unit_test(a_call_behind_a_long_call_times_out),
		cmocka_unit_test(a_port_that_is_bound_too_late_is_released),
		cmocka_unit_test(
			a_question_waits_no_longer_than_the_program_allows),
		cmocka_unit_test(
			rdma_connect_does_not_use_an_id_whose_event_was_taken),
		cmocka_unit_test(a_lost_conversation_is_reported_once),
	};

	return cmocka_run_group_tests(tests, setup_broker, NULL);
}
