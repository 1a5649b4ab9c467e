/* SPDX-License-Identifier: BSD-2-Clause */
/* The TCP connections of iWARP queue pairs: refused memory, descriptors that
 * the program closes, captures, cancellation and bursts.  The peer is the test.
 */
#include "scenario/wired.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "host/capture.h"

static bool is_refused; /* epoll_ctl adds no descriptor */

int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	if (!is_refused || op != EPOLL_CTL_ADD)
		return __real_epoll_ctl(epoll, op, fd, event);
	errno = ENOSPC;
	return -1;
}

static bool has_no_memory; /* mmap fails */

void *__real_mmap64(void *at, size_t bytes, int prot, int flags, int fd,
		    off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int prot, int flags, int fd,
		    off_t offset);

void *__wrap_mmap64(void *at, size_t bytes, int prot, int flags, int fd,
		    off_t offset)
{
	if (!has_no_memory)
		return __real_mmap64(at, bytes, prot, flags, fd, offset);
	errno = ENOMEM;
	return MAP_FAILED;
}

static uint32_t receives; /* calls of tcp_receive */

ssize_t __real_tcp_receive(int fd, void *bytes, size_t room);
ssize_t __wrap_tcp_receive(int fd, void *bytes, size_t room);

ssize_t __wrap_tcp_receive(int fd, void *bytes, size_t room)
{
	receives++;
	return __real_tcp_receive(fd, bytes, room);
}

/* The peers of two ended queue pairs, which do not close their sockets, send a
 * byte each. */
static void one_turn_reads_each_lingering_socket_once(void **state)
{
	struct wired w;
	struct two_hcas_side *second;
	struct host_stream stream;
	struct pollfd p[2];
	int peer;

	wire_up(&w);
	second = &w.j.d->side[1];
	stream = (struct host_stream){
		.config = &w.j.config[1], .news = count_end, .arg = &w};
	connect_pair(&stream.fd, &peer);
	assert_int_equal(stream_set_open(&w.set, second->engine, second->side,
					 &stream, w.j.d->now_ns),
			 0);
	end_queue_pair(&w);
	stream_set_drop(&w.set, second->engine, second->qp->qpn, w.j.d->now_ns);
	assert_int_equal(write(w.peer, "x", 1), 1);
	assert_int_equal(write(peer, "x", 1), 1);
	p[0] = (struct pollfd){w.stream.fd, POLLIN, 0};
	p[1] = (struct pollfd){stream.fd, POLLIN, 0};
	for (int i = 0; i < 2; i++)
		assert_int_equal(poll(&p[i], 1, TEST_WAIT_MS), 1);
	receives = 0;
	receive_turn(&w);
	assert_int_equal(receives, 2);
	close(peer);
	take_down(&w);
}

/* A socket that becomes full needs no memory that the connection has not
 * reserved, and its bytes arrive. */
static void a_full_socket_needs_no_further_memory(void **s)
{
	struct wired w;

	wire_up(&w);
	assert_int_equal(w.set.buffers.reserved, 1);
	assert_int_equal(w.set.buffers.block[0].taken, 0);
	has_no_memory = true;
	fill_socket(&w);
	assert_int_equal(w.set.buffers.block[0].taken, 1);
	end_queue_pair(&w);
	read_all(&w);
	has_no_memory = false;
	assert_int_equal(w.set.buffers.block[0].taken, 0);
	take_down(&w);
}

/* After stream_set_open the queue pair may fail to enter RTS.  A peer that had
 * the reply by then would take the connection for established. */
static void a_cancelled_connection_has_sent_no_reply(void **s)
{
	struct two_hcas_side *side;
	char got[8];
	struct wired w;

	wire_up(&w);
	side = &w.j.d->side[0];
	stream_set_cancel(&w.set, side->qp->qpn);
	w.stream.first = (const uint8_t *)"reply";
	w.stream.first_bytes = 5;
	assert_int_equal(stream_set_open(&w.set, side->engine, side->side,
					 &w.stream, w.j.d->now_ns),
			 0);
	stream_set_cancel(&w.set, side->qp->qpn);
	assert_int_equal(recv(w.peer, got, sizeof(got), MSG_DONTWAIT), -1);
	assert_int_equal(stream_set_open(&w.set, side->engine, side->side,
					 &w.stream, w.j.d->now_ns),
			 0);
	stream_set_begin(&w.set, side->engine, side->side, &w.stream,
			 w.j.d->now_ns);
	assert_int_equal(recv(w.peer, got, sizeof(got), 0), 5);
	assert_memory_equal(got, "reply", 5);
	take_down(&w);
}

static void a_connection_without_a_buffer_is_not_opened(void **s)
{
	struct wired w;

	wire_up(&w);
	stream_set_cancel(&w.set, w.j.d->side[0].qp->qpn);
	stream_buffer_fini(&w.set.buffers);
	has_no_memory = true;
	assert_int_equal(stream_set_open(&w.set, w.j.d->side[0].engine,
					 w.j.d->side[0].side, &w.stream,
					 w.j.d->now_ns),
			 -ENOMEM);
	has_no_memory = false;
	assert_false(stream_set_is_open(&w.set));
	close(w.stream.fd);
	take_down(&w);
}

/* The deadlines of nudges double.  Deadlines within 5 ms are served by one look
 * at all connections. */
static void deadlines_that_are_close_are_served_together(void **s)
{
	const uint64_t ms = 1000000;
	uint64_t now, due;
	struct wired w;

	wire_up(&w);
	stream_set_cancel(&w.set, w.j.d->side[0].qp->qpn);
	joined_open(&w.j);
	w.stream.nudge_after_ns = ms;
	now = w.j.d->now_ns;
	assert_int_equal(stream_set_open(&w.set, w.j.d->side[0].engine,
					 w.j.d->side[0].side, &w.stream, now),
			 0);
	assert_int_equal(w.set.due_ns, now + ms);
	stream_set_tick(&w.set, w.j.d->side[0].engine, now + ms);
	due = w.set.due_ns;
	assert_true(due > now + 3 * ms && due <= now + 8 * ms);
	stream_set_tick(&w.set, w.j.d->side[0].engine, due);
	assert_true(w.set.due_ns > due);
	take_down(&w);
}

/* A child of fork that does not call exec has such a copy of the connection's
 * descriptor. */
static void a_copy_of_the_descriptor_wakes_no_thread(void **s)
{
	struct wired w;
	int copy;

	wire_up(&w);
	copy = dup(w.stream.fd);
	end_queue_pair(&w);
	shutdown(w.peer, SHUT_WR);
	while (stream_set_is_open(&w.set))
		receive_turn(&w);
	assert_false(is_due(&w));
	close(copy);
	take_down(&w);
}

/* The kernel refuses to add a connection to the epoll set.  Once there are many
 * connections, no thread would read a connection that is not in the set. */
static void a_connection_that_epoll_refuses_is_not_opened(void **s)
{
	struct wired w;
	int err;

	wire_up(&w);
	stream_set_cancel(&w.set, w.j.d->side[0].qp->qpn);
	is_refused = true;
	err = stream_set_open(&w.set, w.j.d->side[0].engine,
			      w.j.d->side[0].side, &w.stream, w.j.d->now_ns);
	is_refused = false;
	assert_int_equal(err, -ENOSPC);
	assert_false(stream_set_is_open(&w.set));
	close(w.stream.fd);
	take_down(&w);
}

/* The program has closed the epoll set, and a file has the set's descriptor. */
static void a_set_that_the_program_has_closed_is_not_used(void **s)
{
	struct wired w;
	int epoll, err, file = memfd_create("file", MFD_CLOEXEC);

	wire_up(&w);
	stream_set_cancel(&w.set, w.j.d->side[0].qp->qpn);
	epoll = (int)shared_load(&w.set.waits_on) - 1;
	assert_int_equal(dup2(file, epoll), epoll);
	err = stream_set_open(&w.set, w.j.d->side[0].engine,
			      w.j.d->side[0].side, &w.stream, w.j.d->now_ns);
	assert_int_equal(err, -EBADF);
	assert_false(stream_set_is_open(&w.set));
	close(w.stream.fd);
	take_down(&w);
	assert_int_equal(close(epoll), 0);
	close(file);
}

/* Puts a connection of the program at the number of w->stream.fd, as a program
 * does that closes descriptors which it does not know.  Returns the other end
 * of that connection. */
static int take_number(const struct wired *w)
{
	int own, other;

	connect_pair(&own, &other);
	assert_int_equal(dup2(own, w->stream.fd), w->stream.fd);
	close(own);
	return other;
}

/* Ends the set, and checks that the program's connection is whole: nothing has
 * come over it, and the program still has it. */
static void take_down_beside(struct wired *w, int other)
{
	uint8_t byte;

	assert_int_equal(recv(other, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	take_down(w);
	assert_int_equal(recv(other, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(close(w->stream.fd), 0);
	close(other);
}

static void a_connection_of_the_program_is_not_shut_down(void **s)
{
	struct wired w;
	int other;

	wire_up(&w);
	other = take_number(&w);
	end_queue_pair(&w);
	assert_int_equal(w.ends, 1);
	take_down_beside(&w, other);
}

/* A child of fork has a copy of the descriptor, so the epoll set still tells of
 * the queue pair's connection. */
static void the_bytes_of_a_full_socket_do_not_go_to_the_program(void **s)
{
	uint8_t bytes[4096];
	struct wired w;
	int copy, other;

	wire_up(&w);
	fill_socket(&w);
	copy = dup(w.stream.fd);
	other = take_number(&w);
	/* after this time receive_turn checks the descriptor again */
	w.j.d->now_ns += 2000000;
	while (!w.ends) {
		recv(w.peer, bytes, sizeof(bytes), MSG_DONTWAIT);
		receive_turn(&w);
	}
	close(copy);
	take_down_beside(&w, other);
}

/* A capture, as read_capture has read it. */
static struct {
	char path[32];
	uint8_t file[4 * BYTES];
	size_t bytes; /* of `file` */
	/* The bytes that each side has sent.  Side 0 sends by wired.set. */
	uint8_t sent[2][2 * BYTES];
	size_t sent_bytes[2];
	uint8_t flags[2]; /* the flags of TCP in all segments of a side */
} seen;

static void open_capture(void)
{
	int fd;

	memset(&seen, 0, sizeof(seen));
	strcpy(seen.path, "/tmp/adverb-stream-XXXXXX");
	fd = mkstemp(seen.path);
	assert_true(fd >= 0);
	close(fd);
	setenv("ADVERB_PCAP", seen.path, 1);
	capture_open(false);
	unsetenv("ADVERB_PCAP");
	assert_true(capture_is_open());
}

/* Adds the segment in a frame over IPv4 to `seen`.  port: of side 0. */
static void take_frame(const uint8_t *frame, uint32_t bytes, uint16_t port)
{
	const uint8_t *tcp = frame + 14 + 20;
	uint32_t head = 14 + 20 + (uint32_t)(tcp[12] >> 4) * 4;
	int side = (tcp[0] << 8 | tcp[1]) != port;

	assert_true(head <= bytes);
	memcpy(seen.sent[side] + seen.sent_bytes[side], frame + head,
	       bytes - head);
	seen.sent_bytes[side] += bytes - head;
	seen.flags[side] |= tcp[13];
}

/* Closes and reads the capture of a connection whose near end had this port. */
static void read_capture(uint16_t port)
{
	size_t at = 60; /* after the blocks of section and interface */
	uint32_t length, bytes;
	int fd;

	capture_close();
	fd = open(seen.path, O_RDONLY | O_CLOEXEC);
	seen.bytes = (size_t)read(fd, seen.file, sizeof(seen.file));
	close(fd);
	assert_int_equal(unlink(seen.path), 0);
	for (; at < seen.bytes; at += length) {
		memcpy(&length, seen.file + at + 4, 4);
		memcpy(&bytes, seen.file + at + 20, 4);
		take_frame(seen.file + at + 28, bytes, port);
	}
	assert_int_equal(at, seen.bytes);
}

static uint16_t port_of(const struct wired *w)
{
	struct sockaddr_in at;
	socklen_t size = sizeof(at);

	assert_int_equal(
		getsockname(w->stream.fd, (struct sockaddr *)&at, &size), 0);
	return ntohs(at.sin_port);
}

/* The socket takes the bytes in many parts. */
static void a_capture_has_the_bytes_of_both_directions(void **s)
{
	struct wired w;
	uint16_t port;

	open_capture();
	wire_up(&w);
	port = port_of(&w);
	fill_socket(&w);
	end_queue_pair(&w);
	assert_int_equal(send(w.peer, "0123456", 7, 0), 7);
	read_all(&w);
	shutdown(w.peer, SHUT_WR);
	while (stream_set_is_open(&w.set))
		receive_turn(&w);
	take_down(&w);
	read_capture(port);
	assert_int_equal(seen.sent_bytes[0], taken_bytes);
	assert_memory_equal(seen.sent[0], taken, taken_bytes);
	assert_int_equal(seen.sent_bytes[1], 7);
	assert_memory_equal(seen.sent[1], "0123456", 7);
	for (int i = 0; i < 2; i++)
		assert_int_equal(seen.flags[i], 0x1b); /* FIN SYN PSH ACK */
}

/* The peer closes while bytes of side 0 are unread in the peer's socket. */
static void a_capture_has_the_reset_of_the_peer(void **s)
{
	struct wired w;
	uint16_t port;

	open_capture();
	wire_up(&w);
	port = port_of(&w);
	fill_socket(&w);
	close(w.peer);
	while (stream_set_is_open(&w.set))
		receive_turn(&w);
	take_down(&w);
	read_capture(port);
	assert_int_equal(seen.flags[1] & 4, 4);
	assert_int_equal(seen.flags[0] & 5, 0);
}

/* The capture ends, as it does when the disk is full, and the connection does
 * not. */
static void a_capture_that_ends_harms_no_connection(void **s)
{
	struct wired w;

	setenv("ADVERB_EXPLAIN", "0", 1);
	open_capture();
	wire_up(&w);
	fill_socket(&w);
	capture_close();
	end_queue_pair(&w);
	read_all(&w);
	take_down(&w);
	unsetenv("ADVERB_EXPLAIN");
	assert_int_equal(unlink(seen.path), 0);
}

static void *look_when_cancelled(void *arg)
{
	struct wired *w = arg;

	pthread_cancel(pthread_self());
	stream_set_has_news(&w->set, w->j.d->now_ns);
	return w;
}

/* A poll looks at the connections under the progress lock.  If the look were
 * cancelled, the other threads would wait for this lock for ever. */
static void a_look_is_no_cancellation_point(void **s)
{
	pthread_t thread;
	struct wired w;
	void *result;

	wire_up(&w);
	assert_int_equal(pthread_create(&thread, NULL, look_when_cancelled, &w),
			 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &w);
	take_down(&w);
}

/* The look finds bytes, which are captured. */
static void a_captured_look_is_no_cancellation_point(void **s)
{
	struct pollfd p;
	pthread_t thread;
	struct wired w;
	void *result;

	open_capture();
	wire_up(&w);
	p = (struct pollfd){w.stream.fd, POLLIN, 0};
	assert_int_equal(send(w.peer, "\0", 1, 0), 1);
	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	assert_int_equal(pthread_create(&thread, NULL, look_when_cancelled, &w),
			 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &w);
	take_down(&w);
	capture_close();
	assert_int_equal(unlink(seen.path), 0);
}

/* While the calls of a stream are full, each call may send more bytes than the
 * last one.  After a pause the next call sends few bytes again. */
static void a_burst_grows_while_calls_are_full(void **state)
{
	struct stream_burst b = {0};
	uint64_t now = 7 * STREAM_BURST_PAUSE_NS;
	uint32_t room = STREAM_BUFFER_BYTES;

	assert_int_equal(stream_burst_room(&b, now), room);
	stream_burst_sent(&b, room / 2 - 1, room, now);
	assert_int_equal(stream_burst_room(&b, now), room);
	stream_burst_sent(&b, room, room, now);
	assert_int_equal(stream_burst_room(&b, now), 2 * room);
	for (int i = 0; i < 3; i++) {
		room = stream_burst_room(&b, now);
		stream_burst_sent(&b, room, room, now);
	}
	assert_int_equal(stream_burst_room(&b, now), STREAM_BURST_BYTES);
	/* no pause: the calls of the last turn have sent more than
	 * STREAM_BURST_BYTES, and a call may take 1 ns for each byte */
	now += STREAM_BURST_PAUSE_NS + STREAM_BURST_BYTES;
	assert_int_equal(stream_burst_room(&b, now), STREAM_BURST_BYTES);
	/* the rest of a message */
	stream_burst_sent(&b, 9, STREAM_BURST_BYTES, now);
	now += STREAM_BURST_PAUSE_NS + 9;
	assert_int_equal(stream_burst_room(&b, now), STREAM_BURST_BYTES);
	assert_int_equal(stream_burst_room(&b, now + 1), STREAM_BUFFER_BYTES);
	stream_burst_sent(&b, 9, STREAM_BUFFER_BYTES, now + 1);
	assert_int_equal(stream_burst_room(&b, now + 1), STREAM_BUFFER_BYTES);
}

/* The buffers of full sockets are too small for the rest of a burst. */
static void a_full_socket_keeps_the_rest_of_a_burst(void **state)
{
	struct stream_socket *s;
	struct engine_frame f;
	struct engine *e;
	struct wired w;
	uint8_t *tx;
	int other;

	wire_up(&w);
	e = w.j.d->side[0].engine;
	tx = w.set.tx;
	s = map_find(&w.set.by_qpn, w.j.d->side[0].qp->qpn);
	s->burst.room = STREAM_BURST_BYTES;
	s->burst.sent_ns = w.j.d->now_ns;
	two_hcas_fill(w.j.d, 0, 0, BYTES);
	for (int i = 0; i < 3; i++)
		joined_post(&w.j, HCA_WR_RDMA_WRITE, 0, BYTES, 0);
	assert_int_equal(engine_tx(e, &f, 1, w.j.d->now_ns), 0);
	assert_true(stream_set_send(&w.set, e, w.j.d->now_ns));
	for (int i = 0; i < 3; i++)
		joined_done(&w.j, 0, HCA_SUCCESS);
	assert_true(s->left_bytes > STREAM_BUFFER_BYTES);
	assert_ptr_equal(s->left, tx);
	assert_int_equal(w.set.spare_count, 0);
	assert_int_equal(w.set.buffers.block[0].taken, 0);
	end_queue_pair(&w);
	/* a second connection has a spare buffer, too, although the first
	 * connection keeps tx */
	connect_pair(&w.stream.fd, &other);
	assert_int_equal(stream_set_open(&w.set, e, w.j.d->side[0].side,
					 &w.stream, w.j.d->now_ns),
			 0);
	assert_int_equal(w.set.spare_count, 1);
	stream_set_cancel(&w.set, w.j.d->side[0].qp->qpn);
	close(w.stream.fd);
	close(other);
	read_all(&w);
	assert_true(taken_bytes > 3 * BYTES);
	assert_int_equal(w.set.spare_count, 2);
	assert_ptr_equal(w.set.spares[1], tx);
	take_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_turn_reads_each_lingering_socket_once),
		cmocka_unit_test(a_burst_grows_while_calls_are_full),
		cmocka_unit_test(a_full_socket_keeps_the_rest_of_a_burst),
		cmocka_unit_test(a_full_socket_needs_no_further_memory),
		cmocka_unit_test(a_cancelled_connection_has_sent_no_reply),
		cmocka_unit_test(a_connection_without_a_buffer_is_not_opened),
		cmocka_unit_test(deadlines_that_are_close_are_served_together),
		cmocka_unit_test(a_copy_of_the_descriptor_wakes_no_thread),
		cmocka_unit_test(a_connection_that_epoll_refuses_is_not_opened),
		cmocka_unit_test(a_set_that_the_program_has_closed_is_not_used),
		cmocka_unit_test(a_connection_of_the_program_is_not_shut_down),
		cmocka_unit_test(
			the_bytes_of_a_full_socket_do_not_go_to_the_program),
		cmocka_unit_test(a_look_is_no_cancellation_point),
		cmocka_unit_test(a_captured_look_is_no_cancellation_point),
		cmocka_unit_test(a_capture_has_the_bytes_of_both_directions),
		cmocka_unit_test(a_capture_has_the_reset_of_the_peer),
		cmocka_unit_test(a_capture_that_ends_harms_no_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
