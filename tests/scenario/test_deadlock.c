/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/deadlock: four switches in a ring, with a host at each.  Port 1 of a
 * switch leads to the next one, port 2 to the one before, port 3 to the host.
 */
#include "scenario/lane_world.h"

#include "fabric/umad_header.h"

enum { HOSTS = 4, NEXT = 1, BEFORE = 2, HOST = 3, ALL = 1 << 20 };

static const char *const switches[HOSTS] = {"S0", "S1", "S2", "S3"};

static const char ring[] =
	"Switch 3 \"S0\"\n[1] \"S1\"[2]\n[2] \"S3\"[1]\n[3] \"H0\"[1]\n\n"
	"Switch 3 \"S1\"\n[1] \"S2\"[2]\n[2] \"S0\"[1]\n[3] \"H1\"[1]\n\n"
	"Switch 3 \"S2\"\n[1] \"S3\"[2]\n[2] \"S1\"[1]\n[3] \"H2\"[1]\n\n"
	"Switch 3 \"S3\"\n[1] \"S0\"[2]\n[2] \"S2\"[1]\n[3] \"H3\"[1]\n\n"
	"Hca 1 \"H0\"\n[1] \"S0\"[3]\n\n"
	"Hca 1 \"H1\"\n[1] \"S1\"[3]\n\n"
	"Hca 1 \"H2\"\n[1] \"S2\"[3]\n\n"
	"Hca 1 \"H3\"\n[1] \"S3\"[3]\n";

/* All packets go forward in the ring. */
static int set_up(void **state)
{
	static struct lane_world w;

	lane_world_init(&w, ring);
	for (uint32_t at = 0; at < HOSTS; at++)
		for (uint32_t to = 0; to < HOSTS; to++)
			lane_world_route(&w, switches[at], to,
					 to == at ? HOST : NEXT);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	lane_world_fini(*state);
	return 0;
}

/* Each host sends up to 4 packets half way around the ring.  After a turn, each
 * host fetches all packets that have come.  Returns how many came. */
static int run_round(struct lane_world *w, uint8_t sl)
{
	struct lrh lrh;
	int came = 0;

	for (uint32_t i = 0; i < HOSTS; i++)
		for (int n = 0; n < 4 && data_may_send(w->ends[i]); n++)
			lane_world_send(w, i, (i + 2) % HOSTS, sl);
	lane_world_turn(w, 1);
	for (uint32_t i = 0; i < HOSTS; i++)
		while (lane_world_fetch(w, i, &lrh) >= 0)
			came++;
	return came;
}

static int run_rounds(struct lane_world *w, int rounds, uint8_t sl)
{
	int came = 0;

	while (rounds--)
		came = run_round(w, sl);
	return came;
}

static uint64_t lost_in_ring(const struct lane_world *w)
{
	uint64_t lost = 0;

	for (int i = 0; i < HOSTS; i++)
		lost += lane_world_port(w, switches[i], NEXT)
				->counters.tx_discards;
	return lost;
}

static void set_life(const struct lane_world *w, uint8_t life)
{
	for (int i = 0; i < HOSTS; i++)
		lane_world_port(w, switches[i], NEXT)->info[LANE_WORLD_HOQ] =
			life;
}

/* The links carry less than the hosts send. */
static void run_into_deadlock(struct lane_world *w, uint8_t sl)
{
	w->f->data.turn_blocks = 4;
	assert_true(run_rounds(w, 1, sl) > 0);
	assert_int_equal(run_rounds(w, 1000, sl), 0);
}

static void packets_that_go_around_a_ring_deadlock(void **state)
{
	struct lane_world *w = *state;
	const char *said;

	run_into_deadlock(w, 0);
	lane_world_turn(w, 3600 * 1000);
	assert_int_equal(run_rounds(w, 100, 0), 0);
	assert_int_equal(lost_in_ring(w), 0);
	said = deadlock_news(w->f);
	assert_non_null(said);
	for (uint32_t i = 0; i < HOSTS; i++) {
		char link[40];

		snprintf(link, sizeof(link), "S%u[1] to S%u[2] on VL 0", i,
			 (i + 1) % HOSTS);
		assert_non_null(strstr(said, link));
	}
	assert_null(deadlock_news(w->f));
	assert_string_equal(deadlock_text(w->f), said);
	/* the fabric searches again even if no program sends anything */
	assert_true(fabric_deadline(w->f) <= w->now_ms + DEADLOCK_MS);
}

/* Makes a ring whose switch number `brief` has a name of `bytes` bytes; the
 * other names have 32 bytes, the most that deadlock_text shows. */
static void make_long_ring(struct lane_world *w, uint32_t brief, int bytes)
{
	char name[HOSTS][33], text[2048];
	int used = 0;

	for (uint32_t i = 0; i < HOSTS; i++) {
		size_t length = i == brief ? (size_t)bytes : 32;

		memset(name[i], '-', length);
		name[i][0] = "ABCD"[i];
		name[i][length] = '\0';
	}
	for (uint32_t i = 0; i < HOSTS; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 "Switch 3 \"%s\"\n[1] \"%s\"[2]\n"
				 "[2] \"%s\"[1]\n[3] \"H%u\"[1]\n\n",
				 name[i], name[(i + 1) % HOSTS],
				 name[(i + HOSTS - 1) % HOSTS], i);
	for (uint32_t i = 0; i < HOSTS; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 "Hca 1 \"H%u\"\n[1] \"%s\"[3]\n\n", i,
				 name[i]);
	lane_world_init(w, text);
	for (uint32_t at = 0; at < HOSTS; at++)
		for (uint32_t to = 0; to < HOSTS; to++)
			lane_world_route(w, name[at], to,
					 to == at ? HOST : NEXT);
}

/* The names of the links are so long that deadlock_text has no room for all
 * links. */
static void the_remedy_is_told_whatever_the_names(void **state)
{
	static const char last[] = " (head_of_queue_lifetime of OpenSM)";
	static struct lane_world w;
	const char *said;

	for (uint32_t brief = 0; brief < HOSTS; brief++)
		for (int bytes = 1; bytes <= 8; bytes++) {
			make_long_ring(&w, brief, bytes);
			run_into_deadlock(&w, 0);
			lane_world_turn(&w, DEADLOCK_MS);
			said = deadlock_text(w.f);
			assert_non_null(said);
			assert_non_null(strstr(said, " more; choose routes"));
			assert_non_null(strstr(said, last));
			lane_world_fini(&w);
		}
}

/* The packets of another VL, and management datagrams, go on. */
static void a_deadlock_stops_one_vl(void **state)
{
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES] = {0};
	struct fabric_agent asked = {.mgmt_class = 1, .class_version = 1};
	struct umad to = {.timeout_ms = 1000, .lid = 3};
	struct lane_world *w = *state;
	struct end *end;
	size_t bytes;
	int err;

	run_into_deadlock(w, 0);
	w->f->data.turn_blocks = LANE_TURN;
	lane_world_send(w, 0, 2, 1);
	lane_world_turn(w, 0);
	assert_int_equal(lane_world_drain(w, 2, ALL), 1);
	end = fabric_open(fabric_find(w->f, "H0"), 1, NULL, &err);
	assert_non_null(end);
	to.agent = (uint32_t)fabric_register(end, &asked);
	umad_header_write(&to, MAD_BYTES, m);
	mad_write(m + FABRIC_UMAD_BYTES, &(struct mad){.base_version = 1,
						       .mgmt_class = 1,
						       .class_version = 1,
						       .method = METHOD_GET});
	bytes_put16(m + FABRIC_UMAD_BYTES + 16, 0x11); /* NodeInfo */
	assert_int_equal(fabric_send(end, m, sizeof(m)), 0);
	lane_world_turn(w, 0);
	assert_non_null(fabric_fetch(end, &bytes));
}

/* HOQLife is 268 ms. */
static void a_finite_hoqlife_ends_a_deadlock(void **state)
{
	struct lane_world *w = *state;

	run_into_deadlock(w, 0);
	lane_world_turn(w, DEADLOCK_MS);
	assert_non_null(deadlock_text(w->f));
	set_life(w, 16);
	lane_world_turn(w, 0);
	assert_true(lost_in_ring(w) > 0);
	assert_true(run_rounds(w, 1, 0) > 0);
	set_life(w, LANE_WORLD_ENDLESS);
	/* the routes change: no packet goes from S3 to S0 */
	lane_world_route(w, "S2", 0, BEFORE);
	lane_world_route(w, "S3", 1, BEFORE);
	lane_world_route(w, "S2", 1, BEFORE);
	lane_world_route(w, "S1", 0, BEFORE);
	for (int i = 0; i < HOSTS; i++)
		lane_flush(lane_world_port(w, switches[i], NEXT));
	assert_true(run_rounds(w, 3000, 0) > 0);
	assert_null(deadlock_text(w->f));
}

/* HOQLife is 2147 ms: nothing moves, but packets will be discarded. */
static void a_ring_with_a_finite_hoqlife_is_no_deadlock(void **state)
{
	struct lane_world *w = *state;

	set_life(w, 19);
	run_into_deadlock(w, 0);
	lane_world_turn(w, DEADLOCK_MS);
	assert_int_equal(lost_in_ring(w), 0);
	assert_null(deadlock_text(w->f));
}

/* A host that does not fetch stops its senders, but waits for no packet. */
static void a_receiver_that_has_stopped_is_no_deadlock(void **state)
{
	struct lane_world *w = *state;

	for (uint32_t i = 0; i < 3; i++)
		lane_world_fill(w, i, 3, 0, ALL);
	lane_world_turn(w, DEADLOCK_MS);
	lane_world_turn(w, DEADLOCK_MS);
	assert_null(deadlock_text(w->f));
	/* the packets of H3 wait at S0 for those of H0, which fill the buffers
	 * of the links up to S3 and wait until H3 fetches */
	for (uint32_t i = 0; i < HOSTS; i++)
		lane_world_fill(w, i, (i + 2) % HOSTS, 0, ALL);
	lane_world_turn(w, DEADLOCK_MS);
	assert_null(deadlock_text(w->f));
}

/* A packet that goes from S3 to S0 is on VL 1 on this link, and on the link
 * from S0 to S1, too.  So no cycle is closed. */
static void a_second_vl_breaks_the_cycle(void **state)
{
	struct lane_world *w = *state;

	for (int row = 0; row <= 3; row++)
		lane_world_port(w, "S3", NEXT)->slvl[row][0] = 0x11;
	lane_world_port(w, "S0", NEXT)->slvl[BEFORE][0] = 0x11;
	w->f->data.turn_blocks = 4;
	assert_true(run_rounds(w, 3000, 0) > 0);
	assert_null(deadlock_text(w->f));
	assert_true(
		lane_world_port(w, "S1", BEFORE)->lanes->lane[1].rx_packets >
		0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets_that_go_around_a_ring_deadlock),
		cmocka_unit_test(the_remedy_is_told_whatever_the_names),
		TEST(a_deadlock_stops_one_vl),
		TEST(a_finite_hoqlife_ends_a_deadlock),
		TEST(a_ring_with_a_finite_hoqlife_is_no_deadlock),
		TEST(a_receiver_that_has_stopped_is_no_deadlock),
		TEST(a_second_vl_breaks_the_cycle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
