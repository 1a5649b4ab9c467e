/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management by the broker, as its clients see it: bare messages
 * of cmproto.h, so that each stands where the test puts it.
 */
#include "brokers.h"

#include "broker/cmproto.h"

#define CONNECTIONS 40
#define TIMEOUT	    20 /* 4.096 us * 2^20 */

static const uint8_t lo[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

/* Of this process or a child of it. */
static int dial(void)
{
	const char *why;
	int fd = -1;

	if (client_dial(&fd, &why))
		fail_msg("%s", why);
	return fd;
}

static void post(int fd, struct cmproto *m, enum cmproto_kind kind, uint32_t id)
{
	static uint32_t serial;

	m->magic = CMPROTO_MAGIC;
	m->version = CMPROTO_VERSION;
	m->kind = (uint16_t)kind;
	m->id = id;
	m->serial = ++serial;
	assert_int_equal(send(fd, m, sizeof(*m), MSG_NOSIGNAL), sizeof(*m));
}

static struct cmproto take(int fd)
{
	struct cmproto m;

	assert_int_equal(recv(fd, &m, sizeof(m), 0), sizeof(m));
	return m;
}

/* Nothing but its answer may come. */
static struct cmproto ask(int fd, struct cmproto m, enum cmproto_kind kind,
			  uint32_t id)
{
	post(fd, &m, kind, id);
	m = take(fd);
	assert_int_equal(m.kind, CMPROTO_DONE);
	assert_int_equal(m.error, 0);
	return m;
}

static struct cmproto event(int fd, enum cmproto_event event)
{
	struct cmproto m = take(fd);

	assert_int_equal(m.kind, CMPROTO_EVENT);
	assert_int_equal(m.event, event);
	return m;
}

static struct cmproto listen_at(int fd, uint16_t *port)
{
	struct cmproto at = {.space = 0x106}, bound;

	memcpy(at.local, lo, 16);
	bound = ask(fd, at, CMPROTO_BIND, 0);
	*port = bound.local_port;
	ask(fd, (struct cmproto){.backlog = CONNECTIONS}, CMPROTO_LISTEN,
	    bound.new_id);
	return bound;
}

/* The handle of a call that the other side has answered. */
static uint32_t call(int caller, int called, uint16_t port, uint32_t qpn)
{
	struct cmproto at = {.space = 0x106}, to = {.max_retries = 15}, m;
	uint32_t id;

	memcpy(at.local, lo, 16);
	id = ask(caller, at, CMPROTO_BIND, 0).new_id;
	memcpy(to.local, lo, 16);
	memcpy(to.peer, lo, 16);
	to.peer_port = port;
	to.timeout = TIMEOUT;
	to.qpn = qpn;
	ask(caller, to, CMPROTO_CONNECT, id);
	m = event(called, CMPROTO_REQUEST);
	ask(called, (struct cmproto){.qpn = qpn}, CMPROTO_ACCEPT, m.new_id);
	event(caller, CMPROTO_RESPONSE);
	return id;
}

static void what_a_client_has_said_counts_although_it_is_gone(void **state)
{
	struct client keeper;
	int called, caller;
	uint16_t port;
	uint32_t id;

	open_or_fail(&keeper);
	called = dial();
	caller = dial();
	listen_at(called, &port);
	id = call(caller, called, port, 7);
	/* so that it finds the message and the end at once */
	kill(broker_of(&keeper), SIGSTOP);
	post(caller, &(struct cmproto){0}, CMPROTO_ESTABLISH, id);
	close(caller);
	kill(broker_of(&keeper), SIGCONT);
	event(called, CMPROTO_ESTABLISHED);
	event(called, CMPROTO_DISCONNECTED);
	close(called);
	end_broker(broker_of(&keeper));
	client_close(&keeper);
}

static void answers_come_in_the_order_of_the_questions(void **state)
{
	struct cmproto at = {.space = 0x106}, m;
	struct client keeper;
	uint32_t first;
	int fd;

	open_or_fail(&keeper);
	fd = dial();
	memcpy(at.local, lo, 16);
	kill(broker_of(&keeper), SIGSTOP);
	post(fd, &at, CMPROTO_BIND, 0);
	first = at.serial;
	for (uint32_t i = 1; i < 8; i++)
		post(fd, &at, CMPROTO_BIND, 0);
	kill(broker_of(&keeper), SIGCONT);
	for (uint32_t i = 0; i < 8; i++) {
		m = take(fd);
		assert_int_equal(m.serial, first + i);
		assert_int_equal(m.error, 0);
	}
	close(fd);
	end_broker(broker_of(&keeper));
	client_close(&keeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			what_a_client_has_said_counts_although_it_is_gone),
		cmocka_unit_test(answers_come_in_the_order_of_the_questions),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
