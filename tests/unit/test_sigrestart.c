/* SPDX-License-Identifier: BSD-2-Clause */
/* host/sigrestart: the program's handlers say whether a signal ends a wait. */
#include "test.h"

#include "host/sigrestart.h"

static void handle_signal(int sig)
{
	(void)sig;
}

static void handle_by(int sig, void (*handler)(int), int flags)
{
	const struct sigaction a = {.sa_handler = handler, .sa_flags = flags};

	assert_int_equal(sigaction(sig, &a, NULL), 0);
}

static int forget_handlers(void **unused)
{
	(void)unused;
	handle_by(SIGUSR1, SIG_DFL, 0);
	handle_by(SIGUSR2, SIG_DFL, 0);
	return 0;
}

static void a_wait_goes_on_without_handlers(void **unused)
{
	struct sigrestart h = {0};

	(void)unused;
	assert_false(sigrestart_differ(&h));
	assert_false(sigrestart_end(&h));
}

static void a_wait_goes_on_after_a_handler_with_sa_restart(void **unused)
{
	struct sigrestart h = {0};

	(void)unused;
	handle_by(SIGUSR1, handle_signal, SA_RESTART);
	assert_false(sigrestart_differ(&h));
	assert_false(sigrestart_end(&h));
}

static void a_wait_ends_after_a_handler_set_since_the_last_read(void **unused)
{
	struct sigrestart h = {0};

	(void)unused;
	assert_false(sigrestart_differ(&h));
	handle_by(SIGUSR1, handle_signal, 0);
	assert_true(sigrestart_end(&h));
}

static void a_wait_ends_after_a_handler_that_removed_itself(void **unused)
{
	struct sigrestart h = {0};

	(void)unused;
	handle_by(SIGUSR1, handle_signal, SA_RESETHAND);
	assert_false(sigrestart_differ(&h));
	raise(SIGUSR1);
	assert_true(sigrestart_end(&h));
	assert_false(sigrestart_end(&h)); /* the next wait goes on */
}

static void a_wait_goes_on_after_a_handler_that_got_sa_restart(void **unused)
{
	struct sigrestart h = {0};

	(void)unused;
	handle_by(SIGUSR1, handle_signal, 0);
	assert_false(sigrestart_differ(&h));
	handle_by(SIGUSR1, handle_signal, SA_RESTART);
	assert_false(sigrestart_end(&h));
}

static void handlers_of_both_kinds_differ(void **unused)
{
	struct sigrestart h = {0};

	(void)unused;
	handle_by(SIGUSR1, handle_signal, SA_RESTART);
	handle_by(SIGUSR2, handle_signal, 0);
	assert_true(sigrestart_differ(&h));
}

static void a_blocked_signal_is_pending(void **unused)
{
	struct sigrestart h = {0};
	sigset_t before;

	(void)unused;
	handle_by(SIGUSR1, handle_signal, 0);
	assert_false(sigrestart_differ(&h));
	assert_true(sigrestart_block(&h, &before));
	assert_false(sigrestart_is_pending(&h, &before));
	raise(SIGUSR1);
	assert_true(sigrestart_is_pending(&h, &before));
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	assert_false(sigrestart_is_pending(&h, &before));
}

#define CASE(name) cmocka_unit_test_setup(name, forget_handlers)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_wait_goes_on_without_handlers),
		CASE(a_wait_goes_on_after_a_handler_with_sa_restart),
		CASE(a_wait_ends_after_a_handler_set_since_the_last_read),
		CASE(a_wait_ends_after_a_handler_that_removed_itself),
		CASE(a_wait_goes_on_after_a_handler_that_got_sa_restart),
		CASE(handlers_of_both_kinds_differ),
		CASE(a_blocked_signal_is_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
