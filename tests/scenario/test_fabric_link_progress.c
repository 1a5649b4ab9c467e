/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress loop over the link of a process to an emulated subnet.  The test
 * acts as the fabric in all cases but the last. */
#include "fabric_link_packets.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "fabric/net.h"
#include "scenario/side_progress.h"
#include "tools/fabric_server.h"

#define HOUR_NS 3600000000000u

static uint32_t fatals;

static void count_fatal(void)
{
	fatals++;
}

static void begin_counted(struct world *w)
{
	fatals = 0;
	begin_progress(w->d, count_fatal);
}

static void send_by_progress(struct world *w, uint32_t count)
{
	progress_take(&progress);
	while (count--)
		post_send(w, 0, 0);
	progress_give(&progress);
}

static void progress_sends_and_receives(void **state)
{
	struct waitset in = {.fd = -1};
	struct world w;
	size_t got = 0;

	fabric_peer_start(&w, HCA_QPT_UC, 4096);
	begin_counted(&w);
	waitset_open(&in, &progress);
	two_hcas_fill(w.d, 1, 0, BYTES);
	for (int i = 0; i < 4; i++) {
		two_hcas_recv(w.d, 0, 0, BYTES);
		/* takes the doorbell, so that the second poll makes a full turn
		 * only because the link has a packet */
		poll_once();
		post_send(&w, 1, 0);
		send_back(&w, 1);
		poll_once();
		assert_received(&w, 0, 0, 0);
	}
	/* the thread waits for room, and sends what is left */
	for (int i = 0; i < 100; i++)
		two_hcas_recv(w.d, 1, 0, BYTES);
	send_by_progress(&w, 100);
	assert_int_equal(progress.tx.full_fd, fabric_link_full_fd());
	while (got < 100) {
		short events = rest_once();

		assert_int_equal(!!(events & POLLOUT),
				 progress.tx.full_fd >= 0);
		got += move_packets(&w);
		if (events & POLLOUT)
			wait_once(&in, events);
	}
	assert_int_equal(progress.tx.full_fd, -1);
	for (int i = 0; i < 100; i++)
		assert_received(&w, 1, 0, 0);
	/* a packet ends a wait */
	two_hcas_recv(w.d, 0, BYTES, BYTES);
	assert_int_equal(rest_once(), POLLIN);
	post_send(&w, 1, 0);
	send_back(&w, 1);
	wait_once(&in, POLLIN);
	rest_once();
	assert_received(&w, 0, BYTES, 0);
	waitset_close(&in);
	end_progress(w.d);
	fabric_peer_end(&w);
}

/* Until the program posts receives, the engine takes no packets, and no packet
 * ends the leader's wait.  The receives wake the leader. */
static void receives_wake_a_leader_that_does_not_listen(void **state)
{
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	begin_counted(&w);
	/* The first packet waits for an hour, and the others wait behind it.
	 * Otherwise the engine would drop the packets if this machine needed
	 * longer than RX_PENDING_PATIENCE_NS for the loop. */
	post_send(&w, 1, 0);
	send_back(&w, 1);
	assert_true(fabric_peer_turn(&w));
	engine_was_asleep(w.engine, HOUR_NS, w.d->now_ns);
	while (!engine_is_choked(w.engine)) {
		post_send(&w, 1, 0);
		send_back(&w, 1);
		poll_once();
	}
	while (progress_is_behind(&progress))
		poll_once();
	assert_int_equal(rest_once(), 0);
	assert_false(fabric_peer_is_readable(progress.wake.fd));
	progress_take(&progress);
	for (int i = 0; i < 1000; i++)
		two_hcas_recv(w.d, 0, 0, BYTES);
	progress_give(&progress);
	assert_false(engine_is_choked(w.engine));
	assert_true(fabric_peer_is_readable(progress.wake.fd));
	progress_rested(&progress);
	end_progress(w.d);
	fabric_peer_end(&w);
}

static void progress_reports_the_end(void **state)
{
	struct waitset in = {.fd = -1};
	struct world w;

	fabric_peer_start(&w, HCA_QPT_UC, 0);
	begin_counted(&w);
	waitset_open(&in, &progress);
	fabric_peer_hang_up(&w);
	w.control = w.data[0] = w.data[1] = -1;
	wait_once(&in, POLLIN);
	poll_once();
	assert_true(fabric_link_has_ended());
	assert_int_equal(fatals, 1);
	send_by_progress(&w, 3);
	poll_once();
	assert_int_equal(fatals, 1);
	/* the wait does not end again */
	assert_int_equal(
		waitset_wait(&in, &progress, monotonic_ns() + 1, POLLIN), 0);
	assert_true(in.has_timed_out);
	waitset_close(&in);
	end_progress(w.d);
	fabric_peer_end(&w);
}

static void progress_notices_closed_descriptors(void **state)
{
	struct world w;
	int fd;

	fabric_peer_start(&w, HCA_QPT_UC, 4096);
	fd = data_descriptor(&w);
	begin_counted(&w);
	assert_true(progress_has_files(&progress));
	close(fd);
	assert_false(progress_has_files(&progress));
	progress.checked_ns = 0;
	send_by_progress(&w, 1);
	assert_int_equal(fatals, 1);
	end_progress(w.d);
	fabric_peer_end(&w);
}

static _Noreturn void serve_fabric(int listener)
{
	static const char text[] = "Switch 8 \"S\"\n[1] \"H\"[1]\n"
				   "[2] \"H\"[2]\n\n"
				   "Hca 2 \"H\"\n[1] \"S\"[1]\n[2] \"S\"[2]\n";
	struct fabric_capture capture = {0};
	struct net_error error;
	struct fabric *f;
	struct net net;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (net_parse(text, sizeof(text) - 1, &net, &error))
		_exit(3);
	f = fabric_new(&net);
	_exit(fabric_server_run(f, listener, fabric_peer_path, &capture, false,
				NULL)
		      ? 4
		      : 0);
}

/* The process asks its second question when the fabric has answered the first.
 * Each fabric_link_turn with `rounds` 1 takes one answer. */
static void join_and_leave(struct world *w)
{
	static const uint8_t group[16] = {0xff, 0x12, [15] = 1};
	const char *why;

	assert_int_equal(fabric_link_attach(w->engine, 2, group, 1, &why), 0);
	assert_int_equal(fabric_link_detach(w->engine, 2, group, 1, &why), 0);
	for (int i = 0; i < 2; i++) {
		struct pollfd p = {fabric_link_fd(), POLLIN, 0};

		assert_int_equal(poll(&p, 1, -1), 1);
		fabric_link_turn(w->engine, 1, true, w->d->now_ns);
		assert_false(fabric_link_has_ended());
	}
}

static void a_fabric_lets_a_host_attach(void **state)
{
	struct fabric_port port;
	struct pollfd p;
	struct world w;
	pid_t child;

	fabric_peer_init(&w, HCA_QPT_UC, 4);
	w.listener = fabric_peer_listen();
	child = fork();
	assert_true(child >= 0);
	if (!child)
		serve_fabric(w.listener);
	assert_int_equal(fabric_link_open(w.engine, 0, FABRIC_PEER_PATIENCE_MS),
			 0);
	assert_int_equal(fabric_link_ports(), 2);
	assert_int_equal(fabric_link_qpn(5), 1 << DATA_REST_BITS | 5);
	for (uint32_t n = 1; n <= 2; n++) {
		assert_true(fabric_link_port(n, &port));
		assert_int_equal(port.state, 2); /* INIT: there is no SM */
		assert_int_equal(port.lid, 0);
		assert_int_equal(port.max_mtu, 5);
		assert_int_equal(port.pkeys[0], 0xffff);
		assert_true(port.guids[0]);
	}
	fabric_link_turn(w.engine, 4, true, w.d->now_ns);
	assert_false(fabric_link_has_ended());
	join_and_leave(&w);
	kill(child, SIGTERM);
	p = (struct pollfd){fabric_link_fd(), POLLIN, 0};
	assert_int_equal(poll(&p, 1, -1), 1);
	while (!fabric_link_has_ended()) {
		poll(&p, 1, -1);
		fabric_link_turn(w.engine, 4, true, w.d->now_ns);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	fabric_link_close();
	close(w.listener);
	two_hcas_free(w.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_sends_and_receives),
		cmocka_unit_test(receives_wake_a_leader_that_does_not_listen),
		cmocka_unit_test(progress_reports_the_end),
		cmocka_unit_test(progress_notices_closed_descriptors),
		cmocka_unit_test(a_fabric_lets_a_host_attach),
	};

	return cmocka_run_group_tests(tests, fabric_peer_make_folder,
				      fabric_peer_remove_folder);
}
