/* SPDX-License-Identifier: BSD-2-Clause */
/* engine/source_check: the answers about the users that own source ports.  The
 * test takes the place of the engine's caller: the test answers the engine's
 * questions, and gives the time. */
#include "test.h"

#include "engine/inside.h"

#define QPS   1000
#define PEER  7 /* classes */
#define OTHER 8

static struct engine engine;

/* Takes the place of the host's function: the class is the upper part of the
 * QPN. */
static uint32_t class_of(uint32_t qpn)
{
	return qpn >> 16;
}

static uint32_t qpn_of(uint32_t class, uint32_t i)
{
	return class << 16 | i;
}

static int setup_sources(void **state)
{
	(void)state;
	memset(&engine, 0, sizeof(engine));
	return engine_sources_init(&engine.sources, true, class_of);
}

static int teardown_sources(void **state)
{
	(void)state;
	engine_sources_fini(&engine.sources);
	return 0;
}

static enum source_word look_from(uint16_t port, uint32_t qpn, uint64_t now_ns)
{
	const struct engine_dgram d = {
		.from = {.ip = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1},
			 .port = port},
		.local = true};

	return engine_sources_look(&engine.sources, &d, qpn, now_ns).word;
}

/* Answers each question: the source port is the peer's, or not.  Returns the
 * number of questions. */
static int answer_all(bool is_peers, uint64_t now_ns)
{
	struct engine_source s;
	int n = 0;

	for (; engine_wants_source(&engine, &s); n++)
		engine_source(&engine, &s, is_peers, now_ns);
	return n;
}

static void one_answer_serves_for_all_queue_pairs_of_a_process(void **state)
{
	(void)state;
	assert_int_equal(look_from(4791, qpn_of(PEER, 1), 1), SOURCE_IS_OPEN);
	assert_int_equal(look_from(4791, qpn_of(PEER, 2), 1), SOURCE_IS_OPEN);
	assert_int_equal(answer_all(true, 1), 1);
	for (uint32_t i = 0; i < QPS; i++)
		assert_int_equal(look_from(4791, qpn_of(PEER, i), 2),
				 SOURCE_IS_PEERS);
	assert_int_equal(answer_all(true, 2), 0);
	/* the answer is old: one new question is asked, and no packet waits for
	 * the new answer */
	for (uint32_t i = 0; i < QPS; i++)
		assert_int_equal(
			look_from(4791, qpn_of(PEER, i), 1 + SOURCE_NS),
			SOURCE_IS_PEERS);
	assert_int_equal(answer_all(true, 1 + SOURCE_NS), 1);
}

static void an_answer_is_for_one_process_and_port(void **state)
{
	(void)state;
	look_from(4791, qpn_of(PEER, 1), 1);
	answer_all(true, 1);
	assert_int_equal(look_from(4791, qpn_of(OTHER, 1), 2), SOURCE_IS_OPEN);
	assert_int_equal(look_from(4792, qpn_of(PEER, 1), 2), SOURCE_IS_OPEN);
	assert_int_equal(answer_all(false, 2), 2);
	assert_int_equal(look_from(4791, qpn_of(OTHER, 2), 3),
			 SOURCE_IS_OTHERS);
	assert_int_equal(look_from(4792, qpn_of(PEER, 2), 3), SOURCE_IS_OTHERS);
	assert_int_equal(look_from(4791, qpn_of(PEER, 2), 3), SOURCE_IS_PEERS);
}

/* No packet has come for so long that the answer does not count any more. */
static void a_port_whose_answer_is_too_old_is_asked_about_once(void **state)
{
	(void)state;
	look_from(4791, qpn_of(PEER, 1), 1);
	answer_all(true, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			look_from(4791, qpn_of(PEER, 1), 1 + 2ull * SOURCE_NS),
			SOURCE_IS_OPEN);
	assert_int_equal(answer_all(true, 1 + 2ull * SOURCE_NS), 1);
	assert_int_equal(look_from(4791, qpn_of(PEER, 1), 2 + 2ull * SOURCE_NS),
			 SOURCE_IS_PEERS);
}

/* The port is asked about again just before its old answer expires. */
static void a_port_is_asked_about_once_when_its_answer_ends(void **state)
{
	const uint64_t end = 1 + 2ull * SOURCE_NS;

	(void)state;
	look_from(4791, qpn_of(PEER, 1), 1);
	answer_all(true, 1);
	assert_int_equal(look_from(4791, qpn_of(PEER, 1), end - 1),
			 SOURCE_IS_PEERS);
	assert_int_equal(look_from(4791, qpn_of(PEER, 1), end), SOURCE_IS_OPEN);
	assert_int_equal(look_from(4791, qpn_of(PEER, 1), end + 1),
			 SOURCE_IS_OPEN);
	assert_int_equal(answer_all(true, end + 1), 1);
	assert_int_equal(look_from(4791, qpn_of(PEER, 1), end + 2),
			 SOURCE_IS_PEERS);
	/* the question that this packet causes gets no answer */
	assert_int_equal(look_from(4791, qpn_of(PEER, 1), end + SOURCE_NS + 2),
			 SOURCE_IS_PEERS);
	look_from(4791, qpn_of(PEER, 1), end + 2ull * SOURCE_NS + 2);
	assert_int_equal(answer_all(true, end + 2ull * SOURCE_NS + 2), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			one_answer_serves_for_all_queue_pairs_of_a_process,
			setup_sources, teardown_sources),
		cmocka_unit_test_setup_teardown(
			an_answer_is_for_one_process_and_port, setup_sources,
			teardown_sources),
		cmocka_unit_test_setup_teardown(
			a_port_whose_answer_is_too_old_is_asked_about_once,
			setup_sources, teardown_sources),
		cmocka_unit_test_setup_teardown(
			a_port_is_asked_about_once_when_its_answer_ends,
			setup_sources, teardown_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
