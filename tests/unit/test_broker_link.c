/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions of a process to the broker about other processes. */
#include "brokers.h"

#include "host/host.h"
#include "host/broker_link.h"

#define PATIENCE_NS 60000000000u

/* While the broker is stopped, its socket is full and a question cannot be
 * sent; the question is sent when the broker reads again. */
static void a_question_without_room_is_asked_later(void **state)
{
	struct engine_event e = {.qpn = 7, .peer.ip = {[15] = 1}};
	const struct device *device;
	int fd = broker_link_socket(-1, -1, PATIENCE_NS);
	struct pollfd p = {broker_link_fd(), POLLIN, 0};
	struct client other, both[2] = {0}; /* introduces the broker */
	pid_t broker;
	uint32_t nobody;

	assert_true(fd >= 0);
	open_or_fail(&other);
	both[0] = other;
	both[1].class = broker_link_class(broker_link_qpn(5));
	nobody = steer_qpn(unowned_class(both, 2), 5);
	e.dest_qpn = nobody;
	broker = broker_of(&other);
	assert_int_equal(device_list(&device), 1);
	stop_broker(broker);
	while (broker_link_ask_arena(steer_class(nobody)))
		;
	broker_link_ask(NULL, &e, 0);
	kill(broker, SIGCONT);
	while (!broker_link_has_dead()) {
		assert_int_equal(poll(&p, 1, 30000), 1);
		broker_link_turn(NULL, 0);
	}
	client_close(&other);
	broker_link_close();
	close(fd);
	end_broker(broker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_without_room_is_asked_later),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
