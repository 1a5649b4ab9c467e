/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress loop of a process whose queue pair has a connection of iWARP. */
#include "test.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/progress.h"
#include "scenario/joined.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"

#define POLLS 64 /* more than from one full turn to the next */

static struct progress progress;

static void ignore_event(const struct engine_event *e)
{
}

static void ignore_news(void *arg, enum host_stream_news what)
{
}

/* Gives side 0's engine to the progress loop. */
static void begin_progress(struct joined *j)
{
	const struct host_sink sink = {.event = ignore_event};
	int fd = udp_bind(0);

	assert_true(fd >= 0);
	j->d->now_ns = monotonic_ns();
	assert_int_equal(progress_init(&progress, j->d->side[0].engine, fd,
				       &sink, (struct udp_offload){0}, false),
			 0);
	progress.wake.fd =
		fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

static void end_progress(struct joined *j)
{
	engine_qp_remove(j->d->side[0].engine, j->d->side[0].side);
	fd_identity_close(progress.wake.fd);
	progress_fini(&progress);
	j->d->side[0].is_dead = true;
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

static bool never_over(void *arg)
{
	return false;
}

/* Makes progress, as the thread does that is about to wait for work. */
static void rest_once(void)
{
	const struct host_sleep sleep = {.is_over = never_over};
	struct progress_rest r = {.sleep = &sleep};

	assert_true(progress_rest(&progress, &r));
	progress_rested(&progress);
}

static void polls_of_streams_alone_look_for_no_datagrams(void **state)
{
	struct joined j = {0};
	struct host_stream s = {.config = &j.config[0], .news = ignore_news};
	int fd[2];

	joined_plain(&j);
	begin_progress(&j);
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
	assert_true(is_read());
	progress_take(&progress);
	stream_set_cancel(&progress.streams, j.d->side[0].qp->qpn);
	progress_give(&progress);
	send_junk();
	poll_often();
	assert_true(is_read());
	close(fd[0]);
	close(fd[1]);
	end_progress(&j);
	joined_part(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_of_streams_alone_look_for_no_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
