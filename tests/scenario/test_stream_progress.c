/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress loop of a process whose queue pair has a connection of iWARP. */
#include "test.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/stream_socket.h"
#include "scenario/joined.h"
#include "scenario/side_progress.h"

/* So many polls make several full turns: one poll in eight is a full turn. */
#define POLLS 64

static void ignore_news(void *arg, enum host_stream_news what)
{
}

/* Sends a datagram that is no packet to the socket of the progress loop. */
static void send_junk(void)
{
	struct sockaddr_in6 to;
	socklen_t size = sizeof(to);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(
		getsockname(progress.wire.fd, (struct sockaddr *)&to, &size),
		0);
	assert_int_equal(to.sin6_family, AF_INET6);
	to.sin6_addr = in6addr_loopback;
	assert_int_equal(sendto(fd, "junk", 4, 0, (struct sockaddr *)&to, size),
			 4);
	close(fd);
}

/* Returns whether no datagram is left in the socket of the progress loop. */
static bool is_read(void)
{
	char byte;

	return recv(progress.wire.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

static void poll_often(void)
{
	static shared_u32 skipped;

	for (int i = 0; i < POLLS; i++)
		progress_poll(&progress, &skipped);
}

/* Opens a connection of iWARP with one end of the socket pair fd. */
static void open_stream(struct joined *j, struct host_stream *s, int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	s->config = &j->config[0];
	s->news = ignore_news;
	s->fd = fd[0];
	progress_take(&progress);
	assert_int_equal(stream_set_open(&progress.streams, progress.engine,
					 j->d->side[0].side, s,
					 progress.now_ns),
			 0);
	progress_give(&progress);
}

static void cancel_stream(struct joined *j)
{
	progress_take(&progress);
	stream_set_cancel(&progress.streams, j->d->side[0].qp->qpn);
	progress_give(&progress);
}

static void end_stream(struct joined *j, const int fd[2])
{
	close(fd[0]);
	close(fd[1]);
	end_progress(j->d);
	joined_part(j);
}

static void polls_of_streams_alone_look_for_no_datagrams(void **state)
{
	struct joined j = {0};
	struct host_stream s = {0};
	int fd[2];

	joined_plain(&j);
	begin_progress(j.d, ignore_fatal);
	send_junk();
	poll_often();
	assert_true(is_read());
	open_stream(&j, &s, fd);
	send_junk();
	poll_often();
	assert_false(is_read());
	rest_once();
	progress_rested(&progress);
	assert_true(is_read());
	cancel_stream(&j);
	send_junk();
	poll_often();
	assert_true(is_read());
	end_stream(&j, fd);
}

/* Polls while another thread has a post lock. */
static void poll_in_vain(void)
{
	for (int i = 0; i < POLLS; i++) {
		progress.posts.vain_since_ns = 0; /* no poll insists */
		poll_once();
	}
}

/* A poll may take bytes out of the socket and then find a post lock taken.  The
 * leader, which waits for the socket, must not go on waiting. */
static void
bytes_that_a_poll_leaves_end_the_leaders_wait(void **state) NO_LOCK_ANALYSIS
{
	struct joined j = {0};
	struct host_stream s = {0};
	eventfd_t token;
	int fd[2];

	joined_plain(&j);
	begin_progress(j.d, ignore_fatal);
	open_stream(&j, &s, fd);
	progress_take(&progress);
	post_lock_add(&progress.posts, 0);
	progress_give(&progress);
	rest_once();
	assert_true(lock_try(&progress.posts.of[0].lock));
	poll_in_vain();
	assert_true(shared_load(&progress.wake.is_resting));
	assert_int_equal(write(fd[1], "M", 1), 1);
	poll_in_vain();
	assert_non_null(progress.streams.got);
	assert_false(shared_load(&progress.wake.is_resting));
	assert_int_equal(eventfd_read(progress.wake.fd, &token), 0);
	lock_give(&progress.posts.of[0].lock);
	progress_rested(&progress);
	cancel_stream(&j);
	end_stream(&j, fd);
}

/* The deadline of the last connection must not end each later wait at once. */
static void a_connection_that_has_ended_leaves_no_deadline(void **state)
{
	struct joined j = {0};
	struct host_stream s = {.nudge_after_ns = 1, .ready_within_ns = 1};
	uint64_t due_ns;
	int fd[2];

	joined_plain(&j);
	begin_progress(j.d, ignore_fatal);
	open_stream(&j, &s, fd);
	due_ns = progress.streams.due_ns;
	assert_true(due_ns < UINT64_MAX);
	cancel_stream(&j);
	while (monotonic_ns() <= due_ns)
		continue;
	rest_once();
	assert_int_equal(progress.streams.due_ns, UINT64_MAX);
	assert_true(progress.wake.at_ns > due_ns);
	progress_rested(&progress);
	end_stream(&j, fd);
}

/* The process was stopped until the deadline of its connection's close had
 * passed.  Meanwhile the peer's last SEND and FIN have come. */
static void bytes_that_came_in_time_are_read_after_a_stop(void **state)
{
	struct joined j = {0};
	struct host_stream s = {0};
	const uint8_t *bytes;
	size_t count;
	int fd[2];

	joined_plain(&j);
	begin_progress(j.d, ignore_fatal);
	open_stream(&j, &s, fd);
	two_hcas_recv(j.d, 0, 0, 64);
	engine_stream_begin(j.d->side[1].engine, j.d->side[1].side);
	two_hcas_send(j.d, 1, HCA_WR_SEND, 0, 64, 0);
	two_hcas_post(j.d, 1);
	assert_true(joined_fill(&j, 1));
	bytes = j.pipe[1].bytes + j.pipe[1].tail;
	count = j.pipe[1].head - j.pipe[1].tail;
	assert_int_equal(write(fd[1], bytes, count), count);
	shutdown(fd[1], SHUT_WR);
	progress_take(&progress);
	stream_set_close(&progress.streams, progress.engine,
			 j.d->side[0].qp->qpn, NULL, progress.now_ns);
	stream_socket_set_deadline(
		&progress.streams,
		map_find(&progress.streams.by_qpn, j.d->side[0].qp->qpn), 1);
	progress_give(&progress);
	rest_once();
	progress_rested(&progress);
	joined_done(&j, 0, HCA_SUCCESS);
	assert_false(stream_set_is_open(&progress.streams));
	end_stream(&j, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_of_streams_alone_look_for_no_datagrams),
		cmocka_unit_test(
			a_connection_that_has_ended_leaves_no_deadline),
		cmocka_unit_test(bytes_that_a_poll_leaves_end_the_leaders_wait),
		cmocka_unit_test(bytes_that_came_in_time_are_read_after_a_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
