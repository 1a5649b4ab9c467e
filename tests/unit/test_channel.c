/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/channel: each event has a token in the channel's descriptor when
 * r_lock is released, also if a thread posts several events at once. */
#include "test.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdmacm/object.h"

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

/* An event that is removed again gets no token. */
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

/* The thread that holds tokens back does not exist in the child. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_that_were_held_are_put_at_the_end),
		cmocka_unit_test(a_held_token_is_taken_back),
		cmocka_unit_test(a_child_of_fork_puts_its_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
