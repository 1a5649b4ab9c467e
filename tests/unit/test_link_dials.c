/* SPDX-License-Identifier: BSD-2-Clause */
/* librdmacm's connection to a broker, while two threads look for one. */
#include "played_brokers.h"

/* dials_now: stop_dialling has stopped the thread.  may_dial: the thread may go
 * on. */
static sem_t dials_now, may_dial;
/* How many releases of r_lock stop_seeking still lets pass without stopping the
 * thread.  Releases while there is a connection do not count. */
static atomic_uint seeks_after;

/* For `gap`: stops the thread that has closed its connection and is about to
 * dial. */
static void stop_dialling(void)
{
	if (connection_fd() >= 0) {
		gap = stop_dialling;
		return;
	}
	sem_post(&dials_now);
	sem_wait(&may_dial);
}

/* For `gap`: stops the thread that has closed its connection, has dialled in
 * vain, and has then seen that there is no broker. */
static void stop_seeking(void)
{
	bool is_connected = connection_fd() >= 0;

	if (is_connected || seeks_after) {
		seeks_after -= !is_connected;
		gap = stop_seeking;
		return;
	}
	stop_in_gap();
}

/* Fails unless the broker with this index has got no request. */
static void expect_asked_nothing(unsigned index)
{
	assert_int_equal(broker[index].heard[CMPROTO_BIND], 0);
	assert_int_equal(broker[index].heard[CMPROTO_RESUME], 0);
}

/* The thread that reads the connection looks for a broker.  Meanwhile a call
 * connects, and the new connection's thread loses its broker and dials.  The
 * first thread then finds a broker.  The first thread must send that broker no
 * requests, since the second thread repeats the requests of all IDs at the
 * broker that it dials: otherwise two brokers would get each request. */
static void two_threads_that_dial_revive_the_ids_once(void **state)
{
	struct r_id *id = id_new(), *other = id_new();
	struct rlimit was;
	unsigned found;

	sem_init(&dials_now, 0, 0);
	sem_init(&may_dial, 0, 0);
	bind_to(id, PORT);
	forbid_descriptors(&was);
	gap_is_ours = false;
	seeks_after = 2;
	gap = stop_seeking;
	kill_broker();
	await_semaphore(&at_gap);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	bind_to(other, OTHER_PORT);
	gap = stop_dialling;
	kill_broker();
	await_semaphore(&dials_now);
	found = brokers;
	gap = stop_in_gap;
	sem_post(&may_go_on);
	await_semaphore(&at_gap);
	assert_int_equal(brokers, found + 1);
	expect_asked_nothing(found);
	drain_semaphore(&came);
	sem_post(&may_go_on);
	sem_post(&may_dial);
	await_semaphore(&came);
	await_semaphore(&broker[brokers - 1].was_bound);
	await_revival();
	assert_int_equal(broker[brokers - 1].heard[CMPROTO_BIND], 2);
	expect_asked_nothing(found);
	rdma_destroy_id(&id->base);
	rdma_destroy_id(&other->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_threads_that_dial_revive_the_ids_once),
	};

	return cmocka_run_group_tests(tests, setup_broker, NULL);
}
