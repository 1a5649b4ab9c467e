/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management by the broker, without a broker process: what share
 * each user may have. */
#include "cmserver_alone.h"

#include "broker/cm_doubts.h"
#include "broker/cmserver.h"
#include "broker/gsi.h"
#include "broker/user.h"
#include "cm/conv.h"

#include <stdlib.h>

/* If a listen at a port that may be shared fails because all listeners are in
 * use, another listener can have that port later. */
static void a_failed_listener_leaves_the_port_to_others(void **state)
{
	struct cmproto any = {.at.space = 0x106, .any_v4 = 1, .may_share = 1};
	struct cmproto shared = any;
	uint32_t first = 0, full;
	struct alone a;

	begin_alone(&a);
	do {
		send_request(&a, any, CMPROTO_BIND, 0);
		assert_int_equal(a.sent.err, 0);
		full = a.sent.new_id;
		shared.at.local_port = a.sent.at.local_port;
		first = first ? first : full;
		send_request(&a, (struct cmproto){0}, CMPROTO_LISTEN, full);
	} while (!a.sent.err);
	assert_int_equal(a.sent.err, -ENOMEM);
	send_request(&a, (struct cmproto){0}, CMPROTO_RELEASE, full);

	shared.at.local_port = 500;
	send_request(&a, shared, CMPROTO_BIND, 0);
	full = a.sent.new_id;
	send_request(&a, (struct cmproto){0}, CMPROTO_LISTEN, full);
	assert_int_equal(a.sent.err, -ENOMEM);
	send_request(&a, (struct cmproto){0}, CMPROTO_RELEASE, first);
	send_request(&a, shared, CMPROTO_BIND, 0);
	send_request(&a, (struct cmproto){0}, CMPROTO_LISTEN, a.sent.new_id);
	assert_int_equal(a.sent.err, 0);
	end_alone(&a);
}

#define SERVICES 1000

/* Makes and ends a listener of a service.  Until until_ns the service is
 * expected to get a listener again. */
static void end_listener(struct cm *cm, struct cm_owner *owner,
			 uint64_t service_id, uint64_t until_ns)
{
	const struct cm_where any = {.any_v4 = true};
	uint32_t listener;

	assert_int_equal(
		cm_listen(cm, owner, 0, service_id, &any, 1, &listener), 0);
	cm_unlisten(cm, listener, until_ns);
}

static uint64_t expected_until(const struct cm *cm, uint64_t service_id)
{
	const struct cmmsg m = {.kind = CMMSG_REQ, .service_id = service_id};

	return listener_expected_until(cm, &m, lo);
}

/* Returns how many of the SERVICES services from `first` on are expected to get
 * a listener again. */
static uint32_t count_expected(const struct cm *cm, uint64_t first)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < SERVICES; i++)
		count += expected_until(cm, first + i) > 0;
	return count;
}

static void no_user_makes_the_broker_forget_listeners_of_others(void **state)
{
	const struct cm_config config = {.conversations = 16, .half_open = 4};
	struct cm *cm = cm_new(&config, 0);
	struct cm_owner quiet = {.number = 1}, busy[3] = {
						       {.number = 2},
						       {.number = 3},
						       {.number = 4},
					       };
	uint64_t now_ns = 1;

	assert_non_null(cm);
	for (uint32_t i = 0; i < 8; i++)
		end_listener(cm, &quiet, i, now_ns++);
	for (uint32_t i = 0; i < SERVICES; i++)
		end_listener(cm, &busy[0], 10000 + i, now_ns++);
	assert_int_equal(count_expected(cm, 0), 8);
	assert_int_equal(count_expected(cm, 10000), CONV_RECENT - 8);
	for (uint32_t i = 0; i < SERVICES; i++)
		end_listener(cm, &busy[1 + i % 2], 20000 + i, now_ns++);
	assert_int_equal(count_expected(cm, 0), 8);
	assert_uint_in_range(count_expected(cm, 10000), CONV_RECENT / 4,
			     CONV_RECENT / 3);
	/* the latest services of each user are left */
	assert_int_not_equal(expected_until(cm, 20000 + SERVICES - 1), 0);
	assert_int_not_equal(expected_until(cm, 10000 + SERVICES - 1), 0);
	for (uint32_t i = 0; i < SERVICES; i++)
		end_listener(cm, &quiet, 30000 + i, now_ns++);
	assert_uint_in_range(count_expected(cm, 30000), CONV_RECENT / 4,
			     CONV_RECENT / 3);
	cm_free(cm);
}

/* A listener is expected again for its own service ID alone, not for another
 * service ID with the same last 16 bits.  If the service ID names a port, the
 * listener is expected for that port in each port space. */
static void a_listener_is_expected_for_its_own_service(void **state)
{
	const struct cm_config config = {.conversations = 16, .half_open = 4};
	const uint64_t whole = 0x1000000000000001, port = 0x01060009;
	struct cm *cm = cm_new(&config, 0);
	struct cm_owner owner = {.number = 1};

	assert_non_null(cm);
	end_listener(cm, &owner, whole, 7);
	end_listener(cm, &owner, port, 7);
	assert_int_equal(expected_until(cm, whole), 7);
	assert_int_equal(expected_until(cm, whole + 0x10000), 0);
	assert_int_equal(expected_until(cm, 0x01060001), 0);
	assert_int_equal(expected_until(cm, port), 7);
	assert_int_equal(expected_until(cm, 0x01110009), 7);
	assert_int_equal(expected_until(cm, 0x2000000000000009), 0);
	cm_free(cm);
}

/* Binds ports, each with a listener if `listens`, until the client is refused
 * with *err.  Returns how many ports the client got. */
static uint32_t count_until_refused(struct alone *a, bool listens, int *err)
{
	const struct cmproto any = {.at.space = 0x106, .any_v4 = 1};

	for (uint32_t count = 0;; count++) {
		send_request(a, any, CMPROTO_BIND, 0);
		if (!a->sent.err && listens)
			send_request(a, (struct cmproto){0}, CMPROTO_LISTEN,
				     a->sent.new_id);
		*err = a->sent.err;
		if (*err)
			return count;
	}
}

/* Checks that the first user gets no more by a second connection, and that
 * other users still get their share of the broker's `most` ports or listeners.
 */
static void no_user_takes_all(bool listens, uint32_t most)
{
	struct alone a, first, again, second;
	uint32_t has, other;
	int err;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	again = join_alone(&a, FIRST_USER);
	second = join_alone(&a, SECOND_USER);
	has = count_until_refused(&first, listens, &err);
	assert_int_equal(err, -EDQUOT);
	assert_uint_in_range(has, 1000, most / 2);
	assert_int_equal(count_until_refused(&again, listens, &err), 0);
	assert_int_equal(err, -EDQUOT);
	other = count_until_refused(&second, listens, &err);
	assert_int_equal(err, -EDQUOT);
	assert_uint_in_range(other, most / 8, most / 4);
	/* the broker's own user gets the rest */
	assert_uint_in_range(count_until_refused(&a, listens, &err), most / 8,
			     most);
	assert_int_not_equal(err, -EDQUOT);
	/* the ports of a client that leaves are free for its user again */
	leave_alone(&first);
	assert_uint_in_range(count_until_refused(&again, listens, &err), 1,
			     has);
	leave_alone(&again);
	leave_alone(&second);
	end_alone(&a);
}

static void no_user_takes_all_ports(void **state)
{
	no_user_takes_all(false, 32768);
}

static void no_user_takes_all_listeners(void **state)
{
	no_user_takes_all(true, 4096);
}

/* Each conversation waits for an answer to its DREQ, and nobody answers. */
static void no_user_takes_all_conversations(void **state)
{
	struct cmproto call = {.max_retries = 15, .timeout = TIMEOUT};
	struct alone a, first, second;
	uint32_t has = 0;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	second = join_alone(&a, SECOND_USER);
	for (;; has++) {
		send_request(&first, resume_live(has + 1), CMPROTO_RESUME, 0);
		if (first.sent.err)
			break;
		send_request(&first, (struct cmproto){0}, CMPROTO_RELEASE,
			     first.sent.new_id);
		gsi_flush(a.gsi);
	}
	assert_int_equal(first.sent.err, -EDQUOT);
	assert_uint_in_range(has, 1000, 16384);
	/* a second connection gets no more while the conversations last */
	leave_alone(&first);
	first = join_alone(&a, FIRST_USER);
	send_request(&first, resume_live(has + 1), CMPROTO_RESUME, 0);
	assert_int_equal(first.sent.err, -EDQUOT);
	for (uint32_t i = 0; i < 1000; i++) {
		send_request(&second,
			     (struct cmproto){.at.space = 0x106, .any_v4 = 1},
			     CMPROTO_BIND, 0);
		send_request(&second, call, CMPROTO_CONNECT,
			     second.sent.new_id);
		assert_int_equal(second.sent.err, 0);
		gsi_flush(a.gsi);
	}
	leave_alone(&first);
	leave_alone(&second);
	end_alone(&a);
}

static void no_user_takes_all_doubts(void **state)
{
	struct cmproto at = {.at.space = 0x106, .any_v4 = 1};
	struct alone a, first, second;
	struct live_peer about;
	uint32_t has, other;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	second = join_alone(&a, SECOND_USER);
	send_request(&a, at, CMPROTO_BIND, 0);
	at.at.local_port = a.sent.at.local_port;
	send_request(&a, (struct cmproto){.backlog = 1}, CMPROTO_LISTEN,
		     a.sent.new_id);
	connect_to_far(&first, 1000, 2 * CM_DOUBTS_MAX, true);
	connect_to_far(&second, 2000, CM_DOUBTS_MAX, true);
	/* doubts count until they are settled, whether they are taken or not */
	claim_from_far(&a, at.at.local_port, 1000, 2);
	assert_int_equal(count_doubts(&a, 1000, &about), 2);
	claim_from_far(&a, at.at.local_port, 1002, 2 * CM_DOUBTS_MAX - 2);
	has = count_doubts(&a, 1000, &about);
	assert_int_equal(has, CM_DOUBTS_MAX / 2 - 2);
	claim_from_far(&a, at.at.local_port, 2000, 1);
	assert_int_equal(count_doubts(&a, 2000, &about), 1);
	/* a queue pair whose doubt is settled can be doubted again */
	cmserver_settle(a.s, &about);
	cmserver_settle(a.s, &about);
	claim_from_far(&a, at.at.local_port, 2001, CM_DOUBTS_MAX - 1);
	other = count_doubts(&a, 2000, &about);
	assert_int_equal(other, CM_DOUBTS_MAX / 4);
	/* the user's last client closes before the answer comes */
	leave_alone(&second);
	cmserver_settle(a.s, &about);
	leave_alone(&first);
	end_alone(&a);
}

/* Reads the client's messages until no more come, and adds their number to
 * *count.  Stores in *stays whether the server keeps the client.  Returns the
 * last message. */
static struct cmproto read_all(struct alone *a, uint32_t *count, bool *stays)
{
	struct cmproto last = {0};

	do {
		*stays = cmserver_output(a->c);
		while (recv(a->fd[1], &last, sizeof(last), MSG_DONTWAIT) > 0)
			++*count;
	} while (*stays && cmserver_has_output(a->c));
	return last;
}

/* Clients that read lose no message, not even clients of the same user. */
static void
a_client_that_does_not_read_gets_an_event_and_is_dropped(void **state)
{
	enum { SILENT = 8, MANY = 8000, SOME = 100 };
	struct cmproto m = {.version = CMPROTO_VERSION, .kind = CMPROTO_LISTEN};
	struct alone a, reads, other, silent[SILENT];
	uint32_t count = 0, dropped = 0, heard = 0;
	struct cmproto last;
	bool stays;

	begin_alone(&a);
	reads = join_alone(&a, FIRST_USER);
	other = join_alone(&a, SECOND_USER);
	for (int i = 0; i < SILENT; i++) {
		silent[i] = join_alone(&a, FIRST_USER);
		assert_false(cmserver_has_output(silent[i].c));
	}
	for (int i = 0; i < SILENT * MANY; i++) {
		assert_true(cmserver_handle(a.s, silent[i % SILENT].c, &m,
					    sizeof(m), 0));
		/* the broker answers although silent clients have taken the
		 * memory for messages */
		send_request(&reads, m, CMPROTO_LISTEN, 0);
		assert_int_equal(reads.sent.kind, CMPROTO_DONE);
		if (i % SOME)
			continue;
		send_request(&other, m, CMPROTO_LISTEN, 0);
		assert_int_equal(other.sent.kind, CMPROTO_DONE);
	}
	for (int i = 0; i < SILENT; i++) {
		last = read_all(&silent[i], &count, &stays);
		dropped += !stays;
		if (stays)
			continue;
		assert_int_equal(last.kind, CMPROTO_EVENT);
		assert_int_equal(last.event, CMPROTO_DROPPED);
		/* true, so that the broker's loop calls cmserver_output for
		 * this client again */
		assert_true(cmserver_has_output(silent[i].c));
		assert_false(
			cmserver_handle(a.s, silent[i].c, &m, sizeof(m), 0));
	}
	assert_uint_in_range(dropped, 1, SILENT);
	assert_uint_in_range(count, MANY, (16 << 20) / sizeof(m));
	read_all(&reads, &heard, &stays);
	assert_true(stays);
	read_all(&other, &heard, &stays);
	assert_true(stays);
	assert_int_equal(heard, 0); /* each answer came with its request */
	for (int i = 0; i < SILENT; i++)
		leave_alone(&silent[i]);
	leave_alone(&reads);
	leave_alone(&other);
	end_alone(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_listener_leaves_the_port_to_others),
		cmocka_unit_test(no_user_takes_all_ports),
		cmocka_unit_test(no_user_takes_all_listeners),
		cmocka_unit_test(no_user_takes_all_conversations),
		cmocka_unit_test(no_user_takes_all_doubts),
		cmocka_unit_test(a_listener_is_expected_for_its_own_service),
		cmocka_unit_test(
			no_user_makes_the_broker_forget_listeners_of_others),
		cmocka_unit_test(
			a_client_that_does_not_read_gets_an_event_and_is_dropped),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
