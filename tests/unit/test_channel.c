/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/channel: each event has a token in the channel's descriptor when
 * r_lock is released, also if a thread posts several events at once. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rdmacm/object.h"
#include "util/fd_identity.h"

static bool has_no_memory; /* calloc fails */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

/* The linker directs the tested code's calls of calloc to this function. */
void *__wrap_calloc(size_t count, size_t size)
{
	if (!has_no_memory)
		return __real_calloc(count, size);
	errno = ENOMEM;
	return NULL;
}

static struct r_channel channels[2];

static void open_channels(void)
{
	for (int i = 0; i < 2; i++) {
		list_init(&channels[i].events);
		channels[i].base.fd =
			eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
		assert_true(channels[i].base.fd >= 0);
	}
}

static struct r_id *id_at(int channel)
{
	struct r_id *id = r_id_new(&channels[channel].base, NULL, RDMA_PS_TCP,
				   IBV_QPT_RC);

	assert_non_null(id);
	return id;
}

static void post_to(struct r_id *id)
{
	struct r_event *e = r_event_new(id, RDMA_CM_EVENT_ESTABLISHED, 0);

	assert_non_null(e);
	r_post(e);
}

/* Takes all tokens of a channel and returns their number. */
static int count_tokens(int channel)
{
	uint64_t token;
	int n = 0;

	while (read(channels[channel].base.fd, &token, sizeof(token)) > 0)
		n++;
	return n;
}

static void close_channels(struct r_id *first, struct r_id *second)
{
	rdma_destroy_id(&first->base);
	rdma_destroy_id(&second->base);
	close(channels[0].base.fd);
	close(channels[1].base.fd);
}

static void tokens_that_were_held_are_put_at_the_end(void **state)
{
	struct r_id *one, *two;

	open_channels();
	one = id_at(0);
	two = id_at(1);
	r_take();
	r_hold_tokens();
	post_to(one);
	post_to(one);
	assert_int_equal(count_tokens(0), 0);
	post_to(two);
	post_to(one);
	r_put_tokens();
	post_to(two);
	r_give();
	assert_int_equal(count_tokens(0), 3);
	assert_int_equal(count_tokens(1), 2);
	close_channels(one, two);
}

/* Without memory, an id can have only one event that the program has not
 * acknowledged: r_id.kept. */
static void an_event_without_memory_is_not_lost(void **state)
{
	struct r_id *one, *two;

	open_channels();
	one = id_at(0);
	two = id_at(0);
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *e;

		has_no_memory = true;
		r_take();
		r_post_lost(one);
		r_post_lost(one);
		r_give();
		has_no_memory = false;
		assert_int_equal(rdma_get_cm_event(&channels[0].base, &e), 0);
		assert_ptr_equal(e->id, &one->base);
		assert_int_equal(e->event, RDMA_CM_EVENT_UNREACHABLE);
		assert_int_equal(e->status, -ECONNRESET);
		assert_int_equal(count_tokens(0), 0);
		assert_int_equal(rdma_ack_cm_event(e), 0);
	}
	/* The first event is r_id.kept, which the program does not take; the
	 * memory of the second comes from calloc. */
	has_no_memory = true;
	r_take();
	r_post_lost(one);
	has_no_memory = false;
	r_post_lost(one);
	r_give();
	assert_int_equal(count_tokens(0), 2);
	close_channels(one, two);
}

/* The program's file has bytes, or there is no file. */
static void a_file_of_the_program_is_not_read(void **state)
{
	struct rdma_cm_event *e;
	struct r_id *one, *two;
	int ends[2], bytes = 0, fd;

	open_channels();
	one = id_at(0);
	two = id_at(1);
	fd = fd_identity_note_shown(channels[0].base.fd);
	channels[0].base.fd = fd;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	assert_int_equal(write(ends[1], "of the program..", 16), 16);
	assert_int_equal(dup2(ends[0], fd), fd);
	assert_int_equal(rdma_get_cm_event(&channels[0].base, &e), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(ioctl(fd, FIONREAD, &bytes), 0);
	assert_int_equal(bytes, 16);
	close(fd);
	r_take();
	post_to(one);
	r_give();
	assert_int_equal(rdma_get_cm_event(&channels[0].base, &e), 0);
	assert_ptr_equal(e->id, &one->base);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	fd_identity_forget(fd);
	close_channels(one, two);
	close(ends[0]);
	close(ends[1]);
}

/* An event that moves to another channel leaves no token behind. */
static void a_held_token_is_taken_back(void **state)
{
	struct r_id *one, *two;

	NEEDS_KERNEL(); /* RWF_NOWAIT */
	open_channels();
	one = id_at(0);
	two = id_at(0);
	r_take();
	post_to(two);
	r_hold_tokens();
	post_to(one);
	r_channel_move(one, &channels[1]);
	r_channel_move(two, &channels[1]);
	r_put_tokens();
	r_give();
	assert_int_equal(count_tokens(0), 0);
	assert_int_equal(count_tokens(1), 2);
	close_channels(one, two);
}

/* A child of fork forgets the tokens that are held back: in a program, the
 * thread that holds them back does not exist in the child. */
static void a_child_of_fork_puts_its_tokens(void **state)
{
	struct r_id *one, *two;
	int status;
	pid_t child;

	open_channels();
	one = id_at(0);
	two = id_at(0);
	r_hold_tokens();
	post_to(one);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		r_take();
		post_to(two);
		r_give();
		_exit(count_tokens(0) != 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	r_put_tokens();
	assert_int_equal(count_tokens(0), 1);
	close_channels(one, two);
}

/* ---- the wait for acknowledgements ---- */

/* the event that ack_event acknowledges */
static struct rdma_cm_event *unacked;
static bool acks_in_time; /* before the wait ends */
static time_t wait_s;	  /* the limit of the wait for acknowledgements */

static void *ack_event(void *unused)
{
	rdma_ack_cm_event(unacked);
	return NULL;
}

static pthread_t acknowledge_apart(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ack_event, NULL), 0);
	return thread;
}

/* Replaces libc's function.  No time passes: another thread acknowledges the
 * event while the caller waits (acks_in_time), or the wait times out at once
 * and the acknowledgement comes later. */
int pthread_cond_clockwait(pthread_cond_t *changed, pthread_mutex_t *lock,
			   clockid_t clock, const struct timespec *until)
{
	struct timespec now;

	clock_gettime(clock, &now);
	wait_s = until->tv_sec - now.tv_sec;
	pthread_detach(acknowledge_apart());
	if (!acks_in_time)
		return ETIMEDOUT;
	return pthread_cond_wait(changed, lock);
}

static struct r_id *id_with_peer(void)
{
	struct r_id *id = id_at(0);
	struct sockaddr_in *to = &id->base.route.addr.dst_sin;

	to->sin_family = AF_INET;
	to->sin_port = htons(7471);
	to->sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
	return id;
}

/* Destroys an id of which the program has taken an event.  The program
 * acknowledges the event in time, or after the time of the wait.  Returns the
 * text that rdma_destroy_id prints. */
static const char *said_by_destroy(bool in_time)
{
	static char text[512];
	int fds[2], old = dup(STDERR_FILENO);
	struct r_id *id;
	ssize_t n;

	open_channels();
	id = id_with_peer();
	r_take();
	post_to(id);
	r_give();
	assert_int_equal(rdma_get_cm_event(&channels[0].base, &unacked), 0);
	acks_in_time = in_time;
	wait_s = 0;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	dup2(fds[1], STDERR_FILENO);
	rdma_destroy_id(&id->base);
	dup2(old, STDERR_FILENO);
	n = read(fds[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(old);
	close(fds[0]);
	close(fds[1]);
	close(channels[0].base.fd);
	close(channels[1].base.fd);
	return text;
}

static void an_acknowledgement_in_time_is_silent(void **state)
{
	assert_string_equal(said_by_destroy(true), "");
	assert_true(wait_s == 4 || wait_s == 5);
}

static void a_missing_acknowledgement_is_named(void **state)
{
	const char *said = said_by_destroy(false);

	assert_non_null(strstr(said, "rdma_destroy_id has waited for 5 s"));
	assert_non_null(strstr(said, "RDMA_CM_EVENT_ESTABLISHED of the id"));
	assert_non_null(strstr(said, "with the peer 192.0.2.1 port 7471"));
	assert_non_null(strstr(said, "call rdma_ack_cm_event"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_that_were_held_are_put_at_the_end),
		cmocka_unit_test(an_event_without_memory_is_not_lost),
		cmocka_unit_test(a_file_of_the_program_is_not_read),
		cmocka_unit_test(a_held_token_is_taken_back),
		cmocka_unit_test(a_child_of_fork_puts_its_tokens),
		cmocka_unit_test(an_acknowledgement_in_time_is_silent),
		cmocka_unit_test(a_missing_acknowledgement_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
