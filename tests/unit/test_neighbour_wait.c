/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/neighbour_wait: ids that wait for a neighbour.  This test plays the
 * kernel's table of neighbours. */
#include "test.h"

#include "rdmacm/neighbour.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { HOPS = 5, HIDDEN = 3, SILENT = 4, LONG_MS = 100000 };

/* The neighbours, by the last byte of their addresses. */
static struct {
	sem_t was_asked;
	atomic_bool is_known;
} hop[HOPS];

int __wrap_neighbour_look(uint32_t ifindex, const uint8_t ip[16],
			  uint8_t mac[NEIGHBOUR_MAC_BYTES]);
int __wrap_neighbour_look(uint32_t ifindex, const uint8_t ip[16],
			  uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	memset(mac, ip[15], NEIGHBOUR_MAC_BYTES);
	if (ip[15] == HIDDEN)
		return -ENOENT;
	return hop[ip[15]].is_known ? 0 : -EAGAIN;
}

void __wrap_neighbour_ask(uint32_t ifindex, const uint8_t ip[16]);
void __wrap_neighbour_ask(uint32_t ifindex, const uint8_t ip[16])
{
	sem_post(&hop[ip[15]].was_asked);
}

int __real_poll(struct pollfd *fds, nfds_t count, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int ms);
/* The thread's poll has no time limit, unless the limit has passed. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int ms)
{
	return __real_poll(fds, count, ms ? -1 : 0);
}

static sem_t has_finished;
static _Atomic uint8_t found; /* the last byte of the MAC */
static _Atomic int end_err;   /* the error of the last end */

static void note_end(struct r_id *id, int err, const uint8_t mac[6])
{
	found = err ? 0 : mac[5];
	end_err = err;
	sem_post(&has_finished);
}

static bool post_comes(sem_t *s)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TEST_WAIT_S;
	return !sem_timedwait(s, &until);
}

static void begin_wait(struct r_id *id, uint8_t x)
{
	const struct neighbour_hop next = {.ifindex = 1,
					   .ip = {0xfd, [15] = x}};

	assert_int_equal(r_neighbour_await(id, &next, NULL, LONG_MS, note_end),
			 0);
}

static void end_wait(const struct r_id *id)
{
	r_take();
	r_neighbour_stop(id);
	r_give();
}

/* The first neighbour never answers, and the thread's poll has no time limit.
 * So r_neighbour_await itself has to ask for the second neighbour, and has to
 * wake the thread for the third wait. */
static void a_second_wait_does_not_wait_for_the_first(void **state)
{
	struct r_id one = {0}, two = {0}, three = {0};

	begin_wait(&one, 1);
	assert_true(post_comes(&hop[1].was_asked));
	begin_wait(&two, 2);
	assert_true(post_comes(&hop[2].was_asked));
	hop[2].is_known = true;
	begin_wait(&three, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(post_comes(&has_finished));
		assert_int_equal(found, 2);
	}
	end_wait(&one);
	end_wait(&two);
	end_wait(&three);
}

/* A kernel that asks for a neighbour has an entry of it.  A sandbox that shows
 * no entries does not say whether the neighbour is silent. */
static void a_silent_neighbour_differs_from_one_that_is_not_shown(void **state)
{
	const struct neighbour_hop hidden = {.ifindex = 1,
					     .ip = {0xfd, [15] = HIDDEN}};
	const struct neighbour_hop silent = {.ifindex = 1,
					     .ip = {0xfd, [15] = SILENT}};
	struct r_id id = {0};

	assert_int_equal(r_neighbour_await(&id, &hidden, NULL, 0, note_end), 0);
	assert_true(post_comes(&has_finished));
	assert_int_equal(end_err, -ENOENT);
	assert_int_equal(r_neighbour_await(&id, &silent, NULL, -1, note_end),
			 0);
	assert_true(post_comes(&has_finished));
	assert_int_equal(end_err, -ETIMEDOUT);
	end_wait(&id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: the other test leaves the thread in its poll */
		cmocka_unit_test(
			a_silent_neighbour_differs_from_one_that_is_not_shown),
		cmocka_unit_test(a_second_wait_does_not_wait_for_the_first),
	};

	for (int i = 0; i < HOPS; i++)
		sem_init(&hop[i].was_asked, 0, 0);
	sem_init(&has_finished, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
