/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of the TCP connection of an iWARP queue pair: the bytes of completed
 * requests reach a peer that reads, the bytes of a peer that has gone are
 * received, and the program gets the news of each end.  The peer is the test.
 */
#include <pthread.h>

#include "scenario/outcome.h"
#include "scenario/wired.h"

/* Waits until FIN has come, and handles it. */
static void take_fin(struct wired *w)
{
	struct pollfd p = {w->stream.fd, POLLRDHUP, 0};

	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	receive_turn(w);
	/* the kernel may still move bytes between its buffers */
	for (int i = 0; i < 1000 && is_due(w); i++)
		receive_turn(w);
}

/* The peer sends FIN, and reads only later. */
static void the_bytes_of_a_completed_request_reach_a_peer_that_reads(void **s)
{
	for (int lingers = 0; lingers <= 1; lingers++) {
		struct wired w;

		wire_up(&w);
		fill_socket(&w);
		if (lingers)
			end_queue_pair(&w);
		shutdown(w.peer, SHUT_WR);
		take_fin(&w);
		assert_int_equal(w.ends, 1);
		assert_int_equal(joined_state(&w.j, 0), HCA_QP_ERR);
		assert_false(is_due(&w)); /* FIN wakes no thread again */
		read_all(&w);
		assert_int_equal(w.ends, 1);
		assert_false(stream_set_is_open(&w.set));
		take_down(&w);
	}
}

static void *read_to_end(void *arg)
{
	const struct wired *w = arg;
	uint8_t bytes[4096];

	while (recv(w->peer, bytes, sizeof(bytes), 0) > 0)
		;
	return NULL;
}

/* The process ends.  Of its two connections with full sockets the one to the
 * peer that never reads is first in the set. */
static void a_peer_that_does_not_read_holds_up_no_other(void **state)
{
	struct wired w, stuck;
	struct engine_frame f;
	struct engine *e;
	pthread_t reader;

	wire_up(&w);
	fill_socket(&w);
	end_queue_pair(&w);
	memset(&stuck, 0, sizeof(stuck));
	joined_plain(&stuck.j);
	stuck.stream = w.stream;
	stuck.stream.config = &stuck.j.config[0];
	stuck.stream.arg = &stuck;
	connect_pair(&stuck.stream.fd, &stuck.peer);
	e = stuck.j.d->side[0].engine;
	assert_int_equal(stream_set_open(&w.set, e, stuck.j.d->side[0].side,
					 &stuck.stream, w.j.d->now_ns),
			 0);
	joined_post(&stuck.j, HCA_WR_RDMA_WRITE, 0, BYTES, 0);
	assert_int_equal(engine_tx(e, &f, 1, w.j.d->now_ns), 0);
	assert_true(stream_set_send(&w.set, e, w.j.d->now_ns));
	assert_int_equal(w.set.full, 2);
	assert_int_equal(pthread_create(&reader, NULL, read_to_end, &w), 0);
	stream_set_drain(&w.set);
	assert_int_equal(w.set.full, 1);
	stream_set_fini(&w.set);
	pthread_join(reader, NULL);
	close(w.peer);
	close(stuck.peer);
	joined_part(&w.j);
	joined_part(&stuck.j);
}

/* The program ends the connection before its request has completed. */
static void the_end_by_the_program_itself_is_not_explained(void **s)
{
	struct engine_event e;
	struct wired w;

	wire_up(&w);
	joined_post(&w.j, HCA_WR_RDMA_READ, 0, 100, 0);
	end_queue_pair(&w);
	assert_int_equal(joined_state(&w.j, 0), HCA_QP_ERR);
	assert_int_equal(engine_events(w.j.d->side[0].engine, &e, 1), 0);
	take_down(&w);
}

/* Side 1 posts a request of `bytes` bytes, and sends its FPDUs to side 0. */
static void send_by_peer(struct wired *w, enum hca_wr op, uint32_t bytes)
{
	struct joined *j = &w->j;
	uint32_t count;

	engine_stream_begin(j->d->side[1].engine, j->d->side[1].side);
	two_hcas_send(j->d, 1, op, 0, bytes, 0);
	two_hcas_post(j->d, 1);
	assert_true(joined_fill(j, 1));
	count = j->pipe[1].head - j->pipe[1].tail;
	assert_int_equal(
		send(w->peer, j->pipe[1].bytes + j->pipe[1].tail, count, 0),
		count);
	j->pipe[1].tail += count;
}

static void send_turn(struct wired *w)
{
	struct engine *e = w->j.d->side[0].engine;
	struct engine_frame f;

	assert_int_equal(engine_tx(e, &f, 1, w->j.d->now_ns), 0);
	stream_set_send(&w->set, e, w->j.d->now_ns);
}

/* The connection has a deadline, at which the program gets the news of the end.
 */
static void assert_limited(struct wired *w)
{
	assert_int_equal(w->ends, 0);
	assert_true(w->set.due_ns < STREAM_SOCKET_NEVER);
	stream_set_tick(&w->set, w->j.d->side[0].engine, w->set.due_ns);
	assert_int_equal(w->ends, 1);
	assert_false(stream_set_is_open(&w->set));
}

/* The peer sends its last request, and ends while bytes of side 0 are unread in
 * its socket: its kernel sends a reset. */
static void the_last_request_of_a_peer_that_resets_is_executed(void **state)
{
	for (int by_post = 0; by_post <= 1; by_post++) {
		struct pollfd p;
		struct wired w;

		wire_up(&w);
		p = (struct pollfd){w.stream.fd, POLLRDHUP, 0};
		two_hcas_recv(w.j.d, 0, 0, 64);
		if (!by_post)
			fill_socket(&w);
		else
			assert_int_equal(send(w.stream.fd, "x", 1, 0), 1);
		send_by_peer(&w, HCA_WR_SEND, 64);
		close(w.peer);
		assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
		if (by_post) { /* the bytes of a post meet the reset first */
			joined_post(&w.j, HCA_WR_RDMA_WRITE, 0, 64, 0);
			send_turn(&w);
			joined_done(&w.j, 0, HCA_SUCCESS);
		}
		while (!w.ends)
			receive_turn(&w);
		joined_done(&w.j, 0, HCA_SUCCESS);
		joined_idle(&w.j, 0);
		assert_int_equal(joined_state(&w.j, 0), HCA_QP_ERR);
		w.peer = -1;
		take_down(&w);
	}
}

/* The queue pair fails while its socket is full: by an FPDU whose CRC is wrong,
 * or because the program moves the queue pair to ERR.  The peer never reads. */
static void a_failed_queue_pair_with_a_full_socket_ends(void **state)
{
	for (int is_moved = 0; is_moved <= 1; is_moved++) {
		struct wired w;

		wire_up(&w);
		fill_socket(&w);
		if (is_moved)
			enter_state(w.j.d, 0, HCA_QP_ERR);
		else
			assert_int_equal(send(w.peer, "\0\0bad CRC", 9, 0), 9);
		while (joined_state(&w.j, 0) != HCA_QP_ERR)
			receive_turn(&w);
		send_turn(&w);
		assert_limited(&w);
		take_down(&w);
	}
}

/* The responses to a READ and the Terminate fill the socket together. */
static void a_terminate_that_fills_the_socket_ends_the_connection(void **state)
{
	struct wired w;

	wire_up(&w);
	send_by_peer(&w, HCA_WR_RDMA_READ, BYTES);
	assert_int_equal(send(w.peer, "\0\0bad CRC", 9, 0), 9);
	while (joined_state(&w.j, 0) != HCA_QP_ERR)
		receive_turn(&w);
	send_turn(&w);
	assert_int_equal(w.set.full, 1);
	send_turn(&w);
	assert_limited(&w);
	take_down(&w);
}

/* A responder has begun to send although its peer was silent.  The peer's first
 * bytes come after the queue pair has failed. */
static void late_bytes_do_not_prolong_a_failed_connection(void **state)
{
	struct stream_config late = joined_config;
	struct wired w;

	late.is_responder = true;
	wire_up(&w);
	stream_set_cancel(&w.set, w.j.d->side[0].qp->qpn);
	w.stream.config = &late;
	w.stream.begin_after_ns = 1;
	assert_int_equal(stream_set_open(&w.set, w.j.d->side[0].engine,
					 w.j.d->side[0].side, &w.stream,
					 w.j.d->now_ns),
			 0);
	w.j.d->now_ns += 10000000;
	stream_set_tick(&w.set, w.j.d->side[0].engine, w.j.d->now_ns);
	fill_socket(&w);
	enter_state(w.j.d, 0, HCA_QP_ERR);
	send_turn(&w);
	send_by_peer(&w, HCA_WR_RDMA_WRITE, 64);
	while (receive_turn(&w), is_due(&w))
		;
	assert_limited(&w);
	take_down(&w);
}

/* This side has nudged its silent peer, and waits for a time before the next
 * nudge.  The peer's first bytes fail the queue pair. */
static void a_failed_connection_does_not_end_with_a_nudge(void **state)
{
	struct wired w;

	wire_up(&w);
	stream_set_cancel(&w.set, w.j.d->side[0].qp->qpn);
	joined_open(&w.j);
	w.stream.nudge_after_ns = 1000000;
	assert_int_equal(stream_set_open(&w.set, w.j.d->side[0].engine,
					 w.j.d->side[0].side, &w.stream,
					 w.j.d->now_ns),
			 0);
	fill_socket(&w);
	assert_int_equal(send(w.peer, "\0\0bad CRC", 9, 0), 9);
	while (joined_state(&w.j, 0) != HCA_QP_ERR)
		receive_turn(&w);
	stream_set_tick(&w.set, w.j.d->side[0].engine,
			w.j.d->now_ns + 1000000000);
	send_turn(&w);
	assert_limited(&w);
	take_down(&w);
}

/* The program ends the connection and then posts a request, and the peer posts
 * a READ before it has seen FIN. */
static void nothing_is_sent_after_fin(void **state)
{
	struct pollfd p;
	struct wired w;
	uint8_t byte;

	wire_up(&w);
	stream_set_close(&w.set, w.j.d->side[0].engine, w.j.d->side[0].qp->qpn,
			 &w, w.j.d->now_ns);
	send_turn(&w);
	assert_int_equal(recv(w.peer, &byte, 1, 0), 0);
	joined_post(&w.j, HCA_WR_SEND, 0, 64, 0);
	send_turn(&w);
	joined_idle(&w.j, 0);
	send_by_peer(&w, HCA_WR_RDMA_READ, 64);
	p = (struct pollfd){w.stream.fd, POLLIN, 0};
	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	receive_turn(&w);
	send_turn(&w);
	assert_int_equal(w.ends, 0);
	assert_int_equal(recv(w.peer, &byte, 1, 0), 0); /* no reset */
	shutdown(w.peer, SHUT_WR);
	take_fin(&w);
	assert_int_equal(w.ends, 1);
	joined_done(&w.j, 0, HCA_WR_FLUSH_ERR);
	take_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_bytes_of_a_completed_request_reach_a_peer_that_reads),
		cmocka_unit_test(a_peer_that_does_not_read_holds_up_no_other),
		cmocka_unit_test(
			the_end_by_the_program_itself_is_not_explained),
		cmocka_unit_test(
			the_last_request_of_a_peer_that_resets_is_executed),
		cmocka_unit_test(a_failed_queue_pair_with_a_full_socket_ends),
		cmocka_unit_test(
			a_terminate_that_fills_the_socket_ends_the_connection),
		cmocka_unit_test(late_bytes_do_not_prolong_a_failed_connection),
		cmocka_unit_test(a_failed_connection_does_not_end_with_a_nudge),
		cmocka_unit_test(nothing_is_sent_after_fin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
