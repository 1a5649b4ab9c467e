/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress loop of a process whose queue pair has a connection of iWARP. */
#include "test.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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

static void polls_of_streams_alone_look_for_no_datagrams(void **state)
{
	struct joined j = {0};
	struct host_stream s = {.config = &j.config[0], .news = ignore_news};
	int fd[2];

	joined_plain(&j);
	begin_progress(j.d, ignore_fatal);
	send_junk();
	poll_often();
	assert_true(is_read());
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	s.fd = fd[0];
	progress_take(&progress);
	assert_int_equal(stream_set_open(&progress.streams, progress.engine,
					 j.d->side[0].side, &s,
					 progress.now_ns),
			 0);
	progress_give(&progress);
	send_junk();
	poll_often();
	assert_false(is_read());
	rest_once();
	progress_rested(&progress);
	assert_true(is_read());
	progress_take(&progress);
	stream_set_cancel(&progress.streams, j.d->side[0].qp->qpn);
	progress_give(&progress);
	send_junk();
	poll_often();
	assert_true(is_read());
	close(fd[0]);
	close(fd[1]);
	end_progress(j.d);
	joined_part(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_of_streams_alone_look_for_no_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
