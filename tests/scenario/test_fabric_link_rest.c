/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that ends while its link to a subnet is full.  The process has one
 * of two adapters, side 0 of two_hcas.h, and the test plays the fabric.
 */
#include "test.h"

#include <pthread.h>
#include <sys/socket.h>

#include "hdr/lrh.h"
#include "host/fabric_link.h"
#include "scenario/fabric_peer.h"
#include "scenario/side_progress.h"

enum { COUNT = 100, BYTES = 1000, SOCKET_BYTES = 4096 };

/* Posts messages of an unreliable QP, whose requests complete when their frames
 * are made.  The socket has no room for all frames. */
static void post_many(struct world *w)
{
	progress_take(&progress);
	for (int i = 0; i < COUNT; i++) {
		two_hcas_send(w->d, 0, HCA_WR_SEND, 0, BYTES, 0);
		two_hcas_post(w->d, 0);
	}
	progress_give(&progress);
	assert_true(progress.tx.full_fd >= 0);
}

static void begin_world(struct world *w)
{
	fabric_peer_start(w, HCA_QPT_UC, SOCKET_BYTES);
	begin_progress(w->d, ignore_fatal);
	post_many(w);
}

static void end_world(struct world *w)
{
	end_progress(w->d);
	fabric_peer_end(w);
}

/* Reads the packets of a data end, until there are COUNT or the socket is at
 * its end.  Returns their number. */
static void *read_packets(void *fd)
{
	static uint8_t bytes[FABRIC_PROTO_BURST_BYTES];
	intptr_t count = 0;
	ssize_t n = 1;

	while (count < COUNT && n > 0) {
		n = recv((int)(intptr_t)fd, bytes, sizeof(bytes), 0);
		count += fabric_peer_count(bytes, n);
	}
	return (void *)count;
}

/* The process ends, or closes its last device. */
static void packets_that_a_full_link_left_are_sent_at_the_end(void **state)
{
	for (int is_exit = 0; is_exit < 2; is_exit++) {
		struct world w;
		pthread_t thread;
		void *count;

		begin_world(&w);
		assert_int_equal(pthread_create(&thread, NULL, read_packets,
						(void *)(intptr_t)w.data[0]),
				 0);
		if (is_exit)
			progress_quit(&progress);
		else
			progress_send_rest(&progress);
		assert_int_equal(progress.tx.full_fd, -1);
		assert_int_equal(pthread_join(thread, &count), 0);
		assert_int_equal((intptr_t)count, COUNT);
		end_world(&w);
	}
}

/* A fabric that does not read holds the process up for about a second. */
static void a_link_that_stays_full_does_not_keep_the_process(void **state)
{
	struct world w;

	begin_world(&w);
	progress_quit(&progress);
	assert_true(progress.tx.full_fd >= 0);
	fabric_peer_hang_up(&w);
	w.control = w.data[0] = w.data[1] = -1;
	progress_send_rest(&progress);
	assert_int_equal(progress.tx.full_fd, -1);
	end_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			packets_that_a_full_link_left_are_sent_at_the_end),
		cmocka_unit_test(
			a_link_that_stays_full_does_not_keep_the_process),
	};

	return cmocka_run_group_tests(tests, fabric_peer_make_folder,
				      fabric_peer_remove_folder);
}
