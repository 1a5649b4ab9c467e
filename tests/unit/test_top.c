/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/top: rates and counts are what the counters of a queue pair have grown
 * by, and 0 for a counter that seems to decrease.  Users of whom not all queue
 * pairs are shown are named. */
#include "test.h"

#include <getopt.h>
#include <unistd.h>

#include "tools/top.h"
#include "tools/watch.h"

enum { PID = 7, QPN = 0x11 };

int __wrap_watch_take(struct watch *w);

/* The counters of the queue pair at the next two looks, 0.5 s apart. */
static struct qp_stats looks[2];
static int look;
static bool is_cut; /* the user 1000 has more queue pairs than were read */

/* Replaces watch_take: finds one process with one queue pair. */
int __wrap_watch_take(struct watch *w)
{
	struct watch_qp *qp = calloc(1, sizeof(*qp));
	struct watch_process *p = calloc(1, sizeof(*p));

	*qp = (struct watch_qp){
		.qpn = QPN, .state = HCA_QP_RTS, .stats = looks[look]};
	*p = (struct watch_process){
		.pid = PID, .name = "program", .qps = qp, .qp_count = 1};
	*w = (struct watch){.at_ns = 1000000000 + 500000000ull * look,
			    .processes = p,
			    .count = 1,
			    .by_process = calloc(1, sizeof(*w->by_process)),
			    .by_peer = calloc(1, sizeof(*w->by_peer)),
			    .qp_count = 1,
			    .users = calloc(1, sizeof(*w->users)),
			    .user_count = 1};
	w->users[0] = (struct watch_user){.id = 1000, .is_cut = is_cut};
	w->by_process[0] =
		(struct watch_entry){(uint64_t)PID << 32 | QPN, p, qp};
	look++;
	return 0;
}

/* Runs `adverb top --once` with one more word.  Returns what it prints, which
 * the next call overwrites. */
static const char *said_by_top(char *word)
{
	char *argv[] = {"top", "--once", "--interval", "0.001", word, NULL};
	static char said[8192];
	int out = dup(STDOUT_FILENO);
	FILE *f = tmpfile();
	size_t n;

	assert_non_null(f);
	fflush(stdout);
	assert_int_equal(dup2(fileno(f), STDOUT_FILENO), STDOUT_FILENO);
	look = 0;
	optind = 1;
	assert_int_equal(top_main(word ? 5 : 4, argv), 0);
	assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
	close(out);
	rewind(f);
	n = fread(said, 1, sizeof(said) - 1, f);
	said[n] = '\0';
	fclose(f);
	return said;
}

static void expect_said(const char *said, const char *text)
{
	if (!strstr(said, text))
		fail_msg("it lacks %s: %s", text, said);
}

static void rates_are_of_a_second_and_counts_of_the_interval(void **state)
{
	looks[0] = (struct qp_stats){100, 5000, 200, 3000, 4, 0, 1, 0, 0, 0};
	looks[1] = (struct qp_stats){110, 5500, 220, 3250, 7, 0, 3, 0, 0, 0};
	expect_said(said_by_top("--json"), "\"tx_bytes_per_s\": 1000, "
					   "\"rx_bytes_per_s\": 500, ");
	expect_said(said_by_top(NULL), "  1.0k   500     60       3     2  ");
}

/* The second of the two words that count a peer's requests may be read too
 * early, so that their sum decreases. */
static void a_counter_that_decreases_has_not_grown(void **state)
{
	looks[0] = (struct qp_stats){110, 5500, 220, 3250, 7, 0, 3, 0, 0, 0};
	looks[1] = (struct qp_stats){100, 5000, 200, 3000, 4, 0, 1, 0, 0, 0};
	expect_said(said_by_top("--json"),
		    "\"tx_bytes_per_s\": 0, \"rx_bytes_per_s\": 0, ");
	expect_said(said_by_top(NULL), "     -      -      -      0     0  ");
}

static void users_of_whom_queue_pairs_are_left_out_are_named(void **state)
{
	static const char sentence[] =
		"not all queue pairs of user 1000 are shown: ";

	is_cut = true;
	expect_said(said_by_top(NULL), sentence);
	expect_said(said_by_top("--json"), "\"cut_users\": [1000]");
	is_cut = false;
	assert_null(strstr(said_by_top(NULL), sentence));
	expect_said(said_by_top("--json"), "\"cut_users\": []");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			rates_are_of_a_second_and_counts_of_the_interval),
		cmocka_unit_test(a_counter_that_decreases_has_not_grown),
		cmocka_unit_test(
			users_of_whom_queue_pairs_are_left_out_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
