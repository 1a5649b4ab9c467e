/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management in the turns of a broker that this process runs.  The
 * test decides what a turn finds in the broker's sockets, and what time the
 * broker's clock has.
 */
#include "cmtalk.h"

#include "broker/inside.h"
#include "broker/server.h"

#define RETRY_WAIT_MS 300 /* longer than the first wait of a request */

/* Calls server_turn until fd has a message, and takes the message. */
static struct cmproto hear_message(struct server *s, int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	while (poll(&p, 1, 0) == 0)
		server_turn(s);
	return take_message(fd);
}

static struct cmproto ask_server(struct server *s, int fd, struct cmproto m,
				 enum cmproto_kind kind, uint32_t id)
{
	post_message(fd, &m, kind, id);
	m = hear_message(s, fd);
	assert_int_equal(m.kind, CMPROTO_DONE);
	assert_int_equal(m.err, 0);
	return m;
}

static struct cmproto at_lo(void)
{
	struct cmproto m = {.at.space = 0x106};

	memcpy(m.at.local, lo, 16);
	memcpy(m.at.peer, lo, 16);
	return m;
}

/* Returns how many datagrams this network namespace has sent. */
static unsigned long count_sent(void)
{
	unsigned long in, no_port, errors, out = 0;
	FILE *f = fopen("/proc/net/snmp", "re");
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Udp: %lu %lu %lu %lu", &in, &no_port, &errors,
			   &out) == 4)
			break;
	fclose(f);
	return out;
}

/* The retry timer of the REQ is due in the turn in which the broker receives
 * CMPROTO_ACCEPT, and that of the REP in the turn of CMPROTO_ESTABLISH.  The
 * broker sends the REP or the RTU only at the end of the turn, and must not
 * send the REQ or the REP again before. */
static void an_answer_and_a_timer_in_one_turn_repeat_nothing(void **state)
{
	const struct server_config config = {.idle_ms = SERVER_NEVER};
	struct server *s = server_new(listen_there(), &config);
	int called = proto_connect(PROTO_VERSION),
	    caller = proto_connect(PROTO_VERSION);
	struct cmproto to = at_lo(), m;
	unsigned long before;
	uint32_t id;

	assert_non_null(s);
	m = ask_server(s, called, at_lo(), CMPROTO_BIND, 0);
	to.at.peer_port = m.at.local_port;
	ask_server(s, called, (struct cmproto){.backlog = 1}, CMPROTO_LISTEN,
		   m.new_id);
	id = ask_server(s, caller, at_lo(), CMPROTO_BIND, 0).new_id;
	before = count_sent();
	to.max_retries = 15;
	to.timeout = TIMEOUT;
	to.qp.qpn = 7;
	ask_server(s, caller, to, CMPROTO_CONNECT, id);
	m = hear_message(s, called);
	assert_int_equal(m.event, CMPROTO_REQUEST);

	skipped_ms += RETRY_WAIT_MS;
	ask_server(s, called, (struct cmproto){.qp.qpn = 8}, CMPROTO_ACCEPT,
		   m.new_id);
	assert_int_equal(hear_message(s, caller).event, CMPROTO_RESPONSE);
	skipped_ms += RETRY_WAIT_MS;
	ask_server(s, caller, (struct cmproto){0}, CMPROTO_ESTABLISH, id);
	assert_int_equal(hear_message(s, called).event, CMPROTO_ESTABLISHED);
	/* REQ, REP, RTU */
	assert_int_equal(count_sent() - before, 3);
	close(called);
	close(caller);
	server_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_answer_and_a_timer_in_one_turn_repeat_nothing),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
