/* SPDX-License-Identifier: BSD-2-Clause */
/* host/link_reach: the questions of a process to a fabric about direct
 * requests. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/shared_page.h"
#include "host/link_reach.h"
#include "host/local_peer.h"

static struct link_reach_about about_of(uint32_t qpn)
{
	return (struct link_reach_about){
		.qpn = qpn,
		.port = 1 + qpn % 2,
		.packets = {.dest_qpn = qpn + 7, .dlid = 3, .pkey_index = 2}};
}

static enum link_reach_is get_answer(struct link_reach *r, uint32_t qpn,
				     struct fabric_reached *reached)
{
	const struct link_reach_about about = about_of(qpn);

	return link_reach_get(r, &about, reached);
}

static void an_answer_is_that_to_its_question(void **state)
{
	static struct link_reach r;
	struct fabric_reached reached = {.program = 5, .peer.slid = 1};
	struct fabric_proto m = {0};

	assert_false(link_reach_ask(&r, &m));
	assert_int_equal(get_answer(&r, 1, &reached), LINK_REACH_ASKED);
	assert_int_equal(get_answer(&r, 2, &reached), LINK_REACH_ASKED);
	assert_int_equal(get_answer(&r, 1, &reached), LINK_REACH_ASKED);
	assert_true(link_reach_ask(&r, &m));
	assert_int_equal(m.kind, FABRIC_PROTO_REACH);
	assert_int_equal(m.number, 2);
	assert_int_equal(m.reach.dest_qpn, 8);
	link_reach_answered(&r, &reached);
	assert_true(link_reach_ask(&r, &m));
	assert_int_equal(m.reach.dest_qpn, 9);
	link_reach_answered(&r, NULL);
	assert_false(link_reach_ask(&r, &m));
	memset(&reached, 0, sizeof(reached));
	assert_int_equal(get_answer(&r, 1, &reached), LINK_REACH_YES);
	assert_int_equal(reached.program, 5);
	assert_int_equal(get_answer(&r, 2, &reached), LINK_REACH_NO);
	/* an answer is used once, since the subnet changes */
	assert_int_equal(get_answer(&r, 1, &reached), LINK_REACH_ASKED);
}

/* If there is news, direct_select_look looks at once, and not only after a
 * millisecond. */
static void an_answer_is_news(void **state)
{
	static struct link_reach r;
	struct fabric_reached reached;
	struct fabric_proto m;

	assert_int_equal(get_answer(&r, 1, &reached), LINK_REACH_ASKED);
	assert_true(link_reach_ask(&r, &m));
	local_peer_has_news(); /* takes the news of earlier answers */
	assert_false(local_peer_has_news());
	link_reach_answered(&r, NULL);
	assert_true(local_peer_has_news());
	assert_false(local_peer_has_news());
	/* an answer to no question */
	link_reach_answered(&r, NULL);
	assert_false(local_peer_has_news());
}

static void a_queue_pair_with_another_path_asks_again(void **state)
{
	static struct link_reach r;
	struct link_reach_about about = about_of(1);
	struct fabric_reached reached;
	struct fabric_proto m;

	assert_int_equal(link_reach_get(&r, &about, &reached),
			 LINK_REACH_ASKED);
	assert_true(link_reach_ask(&r, &m));
	link_reach_answered(&r, NULL);
	about.packets.pkey_index = 1;
	assert_int_equal(link_reach_get(&r, &about, &reached),
			 LINK_REACH_ASKED);
	assert_true(link_reach_ask(&r, &m));
	assert_int_equal(m.reach.pkey_index, 1);
}

/* A queue pair is destroyed before its answer comes, and a new queue pair gets
 * the QPN.  By the old answer, a NO, the new queue pair would send packets for
 * good. */
static void an_answer_of_an_earlier_wait_is_not_used(void **state)
{
	static struct link_reach r;
	struct link_reach_about about = about_of(1);
	struct fabric_reached reached;
	struct fabric_proto m;

	assert_int_equal(link_reach_get(&r, &about, &reached),
			 LINK_REACH_ASKED);
	assert_true(link_reach_ask(&r, &m));
	link_reach_answered(&r, NULL);
	about.since_ns += 1000;
	assert_int_equal(link_reach_get(&r, &about, &reached),
			 LINK_REACH_ASKED);
	assert_true(link_reach_ask(&r, &m));
	link_reach_answered(&r, &(struct fabric_reached){.program = 5});
	assert_int_equal(link_reach_get(&r, &about, &reached), LINK_REACH_YES);
	assert_int_equal(reached.program, 5);
}

/* Answers that nobody fetches keep no slot. */
static void more_questions_than_slots_wait(void **state)
{
	static struct link_reach r;
	struct fabric_reached reached;
	struct fabric_proto m;

	for (uint32_t i = 0; i < LINK_REACH_MAX; i++)
		assert_int_equal(get_answer(&r, i, &reached), LINK_REACH_ASKED);
	assert_int_equal(get_answer(&r, 99, &reached), LINK_REACH_ASKED);
	for (uint32_t i = 0; i < LINK_REACH_MAX; i++) {
		assert_true(link_reach_ask(&r, &m));
		assert_int_equal(m.reach.dest_qpn, i + 7);
		link_reach_answered(&r, NULL);
	}
	assert_false(link_reach_ask(&r, &m));
	assert_int_equal(get_answer(&r, 99, &reached), LINK_REACH_ASKED);
	assert_true(link_reach_ask(&r, &m));
	assert_int_equal(m.reach.dest_qpn, 99 + 7);
}

static void arenas_are_asked_for_in_order(void **state)
{
	static struct link_reach r;
	struct fabric_proto m;

	for (uint32_t i = 1; i <= LINK_REACH_ARENAS; i++)
		assert_true(link_reach_want_arena(&r, i));
	assert_false(link_reach_want_arena(&r, 99));
	for (uint32_t i = 1; i <= LINK_REACH_ARENAS; i++) {
		assert_true(link_reach_ask(&r, &m));
		assert_int_equal(m.kind, FABRIC_PROTO_ARENA);
		assert_int_equal(m.number, i);
	}
	assert_false(link_reach_ask(&r, &m));
}

/* This process writes to the descriptor.  A write to another kind of file could
 * block. */
static void only_an_eventfd_wakes_a_peer(void **state)
{
	const struct fabric_proto m = {.arena = {.pid = 7}}, none = {0};
	int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int file = memfd_create("file", MFD_CLOEXEC);

	assert_int_equal(link_reach_judge_arena(&m, 0, wake),
			 CLIENT_ARENA_HERE);
	assert_int_equal(link_reach_judge_arena(&m, 0, file),
			 CLIENT_ARENA_NONE);
	assert_int_equal(link_reach_judge_arena(&none, 0, wake),
			 CLIENT_ARENA_NONE);
	close(wake);
	close(file);
}

static void only_a_program_that_has_ended_is_gone(void **state)
{
	const struct fabric_proto m = {.arena = {.pid = 7}};

	assert_int_equal(link_reach_judge_arena(&m, -ESRCH, -1),
			 CLIENT_ARENA_GONE);
	assert_int_equal(link_reach_judge_arena(&m, -EMFILE, -1),
			 CLIENT_ARENA_LATER);
	assert_int_equal(link_reach_judge_arena(&m, 0, -1), CLIENT_ARENA_LATER);
}

/* If a fabric made mapped memory shorter, the next load would end this process
 * by SIGBUS. */
static void only_memory_that_stays_is_mapped(void **state)
{
	int fd = memfd_create("changes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const shared_u32 *changes;
	uint32_t value = 77;

	assert_null(link_reach_map(-1));
	assert_null(link_reach_map(fd)); /* the file is empty */
	assert_int_equal(write(fd, &value, sizeof(value)), sizeof(value));
	assert_null(link_reach_map(fd)); /* the file may become shorter */
	assert_int_equal(ftruncate(fd, SHARED_PAGE_BYTES), 0);
	assert_null(link_reach_map(fd));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW),
			 0);
	changes = link_reach_map(fd);
	assert_non_null(changes);
	assert_int_equal(shared_load(changes), 77);
	shared_page_unmap(changes);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_that_to_its_question),
		cmocka_unit_test(an_answer_is_news),
		cmocka_unit_test(a_queue_pair_with_another_path_asks_again),
		cmocka_unit_test(an_answer_of_an_earlier_wait_is_not_used),
		cmocka_unit_test(more_questions_than_slots_wait),
		cmocka_unit_test(arenas_are_asked_for_in_order),
		cmocka_unit_test(only_an_eventfd_wakes_a_peer),
		cmocka_unit_test(only_a_program_that_has_ended_is_gone),
		cmocka_unit_test(only_memory_that_stays_is_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
