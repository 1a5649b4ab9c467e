/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/other_user: the classes of processes of other users, and the packets
 * that wait for these processes.  There is no broker. */
#include "brokers.h"

#include "broker/other_user.h"
#include "broker/reuseport_group.h"
#include "broker/user.h"
#include "wire/relay.h"

/* Returns a user other than this process's.  The user needs no process: the
 * test makes the group without a broker. */
static uid_t other_user(uint32_t i)
{
	return geteuid() + 1 + i;
}

static struct reuseport_group group;

static uint32_t take_class(struct reuseport_group *g, uid_t user, uint64_t ms)
{
	const char *why = "";
	uint32_t class = 0;
	int err = reuseport_group_take(g, user, 0, ms, &why, &class);

	if (err && err != -ENOSPC)
		fail_msg("%d: %s", err, why);
	if (err)
		assert_non_null(strstr(why, "port 4791"));
	return err ? 0 : class;
}

/* Takes classes for other_user(1) to other_user(31) until all are refused, and
 * fails if one of them gets `class`.  Returns how many classes were taken. */
static uint32_t take_everything_but(struct reuseport_group *g, uint32_t class,
				    uint64_t ms)
{
	uint32_t count = 0, got;

	for (uint32_t i = 1; i < 32; i++)
		while ((got = take_class(g, other_user(i), ms))) {
			assert_int_not_equal(got, class);
			count++;
		}
	return count;
}

static void a_freed_class_is_kept_from_other_users_for_a_time(void **state)
{
	const uint64_t freed = 1000;
	uint32_t class, late;

	if (raise_limit() < 6 * STEER_CLASS_MAX)
		SKIP_FOR(FEW_FILES);
	reuseport_group_init(&group, true);
	class = take_class(&group, other_user(0), 1);
	assert_int_not_equal(class, 0);
	reuseport_group_release(&group, class, freed);
	assert_int_equal(take_everything_but(&group, class, freed + 200),
			 STEER_CLASS_MAX - 1);
	/* the user that had the class gets the class again */
	assert_int_equal(take_class(&group, other_user(0), freed + 200), class);
	reuseport_group_release(&group, class, 2 * freed);
	late = 2 * freed + STEER_USER_REST_MS;
	assert_int_equal(take_class(&group, other_user(40), late - 1), 0);
	assert_int_equal(take_class(&group, other_user(40), late), class);
	reuseport_group_close(&group);
}

static void a_successor_knows_the_user_of_a_freed_class(void **state)
{
	static struct reuseport_group next;
	uint32_t mine, theirs;

	if (raise_limit() < 6 * STEER_CLASS_MAX)
		SKIP_FOR(FEW_FILES);
	reuseport_group_init(&group, true);
	reuseport_group_init(&next, true);
	mine = take_class(&group, geteuid(), 1);
	theirs = take_class(&group, other_user(0), 1);
	assert_true(mine && theirs);
	reuseport_group_release(&group, theirs, 1000);
	assert_int_equal(reuseport_group_adopt(&next, dup(group.fd_store.fd),
					       group.member[0].fd, 1100),
			 0);
	assert_true(reuseport_group_is_owned(&next, mine));
	take_everything_but(&next, theirs, 1000 + STEER_USER_REST_MS - 1);
	assert_int_equal(take_class(&next, other_user(0), 1200), theirs);
	reuseport_group_close(&next);
	reuseport_group_close(&group);
}

static int come_back(struct reuseport_group *g, uint32_t class, uint64_t token)
{
	return reuseport_group_recognise(g, class, other_user(0), 0, -1, token);
}

/* A process of another user comes back to a broker that has no descriptor for a
 * relay.  The class is still that of the process. */
static void a_successor_without_descriptors_says_so(void **state)
{
	static struct reuseport_group next;
	struct rlimit files, none;
	uint32_t theirs;
	uint64_t token;

	reuseport_group_init(&group, true);
	reuseport_group_init(&next, true);
	assert_true(take_class(&group, geteuid(), 1));
	theirs = take_class(&group, other_user(0), 1);
	token = reuseport_group_at(&group, theirs)->token;
	assert_int_equal(reuseport_group_adopt(&next, dup(group.fd_store.fd),
					       group.member[0].fd, 1100),
			 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){0, files.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(come_back(&next, theirs, token), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(come_back(&next, theirs, token + 1), -ESTALE);
	assert_int_equal(come_back(&next, theirs, token), 0);
	assert_int_equal(come_back(&next, theirs, token), -ESTALE);
	reuseport_group_close(&next);
	reuseport_group_close(&group);
}

/* USER_NONE stands for several users, so two processes that take a class as
 * USER_NONE may belong to two users. */
static void a_class_of_nobody_goes_to_nobody_else(void **state)
{
	const uint64_t freed = 1000;
	uint32_t first, count = 0, got;

	if (raise_limit() < 6 * STEER_CLASS_MAX)
		SKIP_FOR(FEW_FILES);
	reuseport_group_init(&group, true);
	first = take_class(&group, USER_NONE, 1);
	assert_int_not_equal(first, 0);
	reuseport_group_release(&group, first, freed);
	while ((got = take_class(&group, USER_NONE, freed + 200))) {
		assert_int_not_equal(got, first);
		count++;
	}
	assert_true(count > 0);
	reuseport_group_close(&group);
}

static void other_users_get_random_indexes(void **state)
{
	uint32_t outside = 0;

	reuseport_group_init(&group, true);
	for (int i = 0; i < 8; i++) {
		uint32_t class = take_class(&group, other_user(0), 1);
		uint32_t at = steer_index(&group.key, class);

		assert_uint_in_range(at, 512, STEER_CLASS_MAX);
		outside += at <= STEER_CLASS_MAX - 8;
	}
	assert_int_not_equal(outside, 0);
	reuseport_group_close(&group);
}

#define HOARD 300 /* processes that never read */

static const struct reuseport_group_member *member_of(uint32_t class)
{
	return reuseport_group_at(&group, class);
}

/* Takes a class for other_user(0), and enlarges the send buffer of its relay,
 * so that the buffer does not limit how many bytes wait there. */
static uint32_t take_and_widen(uint64_t ms)
{
	uint32_t class = take_class(&group, other_user(0), ms);
	int most = 4 << 20;

	setsockopt(member_of(class)->relay_fd, SOL_SOCKET, SO_SNDBUF, &most,
		   sizeof(most));
	return class;
}

/* Relays seven datagrams of 60000 bytes to a class; 0: to all classes. */
static void relay_seven(uint32_t class)
{
	static uint8_t bytes[60000];
	const struct udp_dgram d = {.bytes = bytes, .len = sizeof(bytes)};

	for (int i = 0; i < 7; i++)
		reuseport_group_relay(&group, class, &d);
}

/* Returns the bytes that wait in the relays of n classes. */
static uint64_t waiting_for(const uint32_t *class, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += relay_waiting(member_of(class[i])->relay_fd);
	return sum;
}

static void bytes_for_a_user_that_never_reads_are_limited(void **state)
{
	uint32_t class[HOARD];

	if (raise_limit() < 6 * STEER_CLASS_MAX)
		SKIP_FOR(FEW_FILES);
	reuseport_group_init(&group, true);
	for (uint32_t i = 0; i < HOARD; i++)
		class[i] = take_and_widen(1);
	relay_seven(0);
	assert_uint_in_range(waiting_for(class, HOARD), OTHER_USER_BYTES / 2,
			     OTHER_USER_BYTES / 4 * 5);
	/* with fewer processes each may have more bytes */
	for (uint32_t i = 1; i < HOARD; i++)
		reuseport_group_release(&group, class[i], 2);
	relay_seven(class[0]);
	assert_true(waiting_for(class, 1) > OTHER_USER_BYTES / HOARD * 5 / 4);
	reuseport_group_close(&group);
}

/* A relay with unread messages outlives its process, and takes a part of the
 * user's bytes until it closes.  `left` is the descriptor that a child of that
 * process may have; when `left` is closed, the kernel drops the messages. */
static void a_relay_that_closes_leaves_its_bytes_to_the_others(void **state)
{
	uint32_t class, rest;
	uint64_t before;
	int left;

	reuseport_group_init(&group, true);
	class = take_class(&group, other_user(0), 1);
	rest = take_class(&group, other_user(0), 1);
	left = dup(member_of(class)->fd);
	relay_seven(class);
	reuseport_group_release(&group, class, 2);
	before = member_of(rest)->relay_most;
	assert_uint_in_range(before, OTHER_USER_BYTES / 4,
			     OTHER_USER_BYTES / 2);
	close(left);
	reuseport_group_tick(&group, 3);
	assert_int_equal(member_of(rest)->relay_most, OTHER_USER_BYTES);
	reuseport_group_close(&group);
}

/* Processes get a class one after another, and end.  The copies in left[] stand
 * for a child of each process, which keeps the receiving end open and reads
 * nothing.  By the copies in fd[], the sending ends, the test counts the bytes
 * that wait. */
static void unread_messages_count_for_their_user(void **state)
{
	uint64_t sum = 0, ms = 1, before;
	int left[HOARD], fd[HOARD];

	if (raise_limit() < 6 * STEER_CLASS_MAX)
		SKIP_FOR(FEW_FILES);
	reuseport_group_init(&group, true);
	for (uint32_t i = 0; i < HOARD; i++, ms += 200) {
		uint32_t class = take_and_widen(ms);

		left[i] = dup(member_of(class)->fd);
		fd[i] = dup(member_of(class)->relay_fd);
		relay_seven(class);
		sum += relay_waiting(fd[i]);
		reuseport_group_release(&group, class, ms);
	}
	assert_uint_in_range(sum, OTHER_USER_BYTES / 2,
			     OTHER_USER_BYTES / 4 * 5);
	for (int i = 0; i < HOARD; i++) {
		close(left[i]);
		close(fd[i]);
	}
	/* the messages count until no process has the socket */
	reuseport_group_tick(&group, ms);
	before = group.relayed;
	relay_seven(take_class(&group, other_user(0), ms));
	assert_int_equal(group.relayed - before, 7);
	reuseport_group_close(&group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_freed_class_is_kept_from_other_users_for_a_time),
		cmocka_unit_test(a_successor_knows_the_user_of_a_freed_class),
		cmocka_unit_test(a_successor_without_descriptors_says_so),
		cmocka_unit_test(a_class_of_nobody_goes_to_nobody_else),
		cmocka_unit_test(other_users_get_random_indexes),
		cmocka_unit_test(bytes_for_a_user_that_never_reads_are_limited),
		cmocka_unit_test(
			a_relay_that_closes_leaves_its_bytes_to_the_others),
		cmocka_unit_test(unread_messages_count_for_their_user),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
