/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/move: SMPs that go by directed route, or partly by directed route and
 * partly by LID (IBTA 14.2.2).  A program on A asks for NodeInfo. */
#include "data_world.h"

enum {
	MAD_AT = FABRIC_UMAD_BYTES,
	MESSAGE = MAD_AT + MAD_BYTES,
	NODE_INFO = 0x11,
	SM_INFO = 0x20, /* programs answer it */
	LID_S1 = 10,
	LID_S2 = 11,
	LID_S3 = 12,
	NO_LID = LID_PERMISSIVE,
};

/* A request.  The request goes by LID to dlid, unless dr_slid is NO_LID; then
 * by the route; and then by LID to dr_dlid, unless dr_dlid is NO_LID. */
struct way {
	uint16_t dlid, dr_slid, dr_dlid;
	uint8_t route[2], hops;
	const char *name; /* the node that answers; NULL: none */
};

/* Gives each switch a LID, and routes to the LIDs of the other switches. */
static void set_lids(const struct world *w)
{
	static const struct {
		const char *name;
		uint8_t lid, to_s1, to_s2, to_s3;
	} rows[] = {{"S1", LID_S1, 0, 2, 2},
		    {"S2", LID_S2, 1, 0, 2},
		    {"S3", LID_S3, 1, 1, 0}};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct node *s = fabric_find(w->f, rows[i].name);

		bytes_put16(s->switch_info + 6, LID_S3);
		s->lft[LID_S1] = rows[i].to_s1;
		s->lft[LID_S2] = rows[i].to_s2;
		s->lft[LID_S3] = rows[i].to_s3;
		bytes_put16(s->ports[0].info + AT_LID, rows[i].lid);
	}
}

static void write_request(uint8_t s[MESSAGE], int agent, const struct way *way)
{
	uint8_t *mad = s + MAD_AT;
	uint32_t timeout_ms = 1000;

	memset(s, 0, MESSAGE);
	memcpy(s, &agent, sizeof(agent));
	memcpy(s + 8, &timeout_ms, sizeof(timeout_ms));
	bytes_put16(s + 28, way->dlid);
	mad[0] = mad[2] = 1;
	mad[1] = CLASS_SUBN_DIRECTED;
	mad[3] = METHOD_GET;
	mad[7] = way->hops;
	bytes_put64(mad + 8, 0x1234);
	bytes_put16(mad + 16, NODE_INFO);
	bytes_put16(mad + 32, way->dr_slid);
	bytes_put16(mad + 34, way->dr_dlid);
	memcpy(mad + 128 + 1, way->route, way->hops);
}

static void expect_answer(struct world *w, struct end *end,
			  const struct way *way)
{
	const uint8_t *got;
	size_t bytes;

	fabric_turn(w->f, w->now_ms);
	got = fabric_fetch(end, &bytes);
	if (!way->name) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_int_equal(bytes, MESSAGE);
	got += MAD_AT;
	assert_int_equal(got[3], METHOD_GET | 0x80);
	assert_int_equal(bytes_get16(got + 4), STATUS_DIRECTION);
	assert_int_equal(got[6], 0); /* HopPointer */
	assert_true(bytes_get64(got + 64 + 12) ==
		    fabric_find(w->f, way->name)->guid);
	fabric_fetched(end);
	assert_null(fabric_fetch(end, &bytes));
}

static struct end *open_end(const struct world *w, const char *name,
			    const struct fabric_agent *asked, int *agent)
{
	struct end *end;
	int err;

	end = fabric_open(fabric_find(w->f, name), 1, NULL, &err);
	assert_non_null(end);
	*agent = fabric_register(end, asked);
	assert_true(*agent >= 0);
	return end;
}

static void smps_go_by_lid_and_by_route(void **state)
{
	static const struct way rows[] = {
		/* by route alone */
		{NO_LID, NO_LID, NO_LID, {1, 2}, 2, "S2"},
		/* by LID, then by route */
		{LID_S1, LID_A, NO_LID, {3}, 1, "C"},
		{LID_S3, LID_A, NO_LID, {2}, 1, "B"},
		/* by route, then by LID */
		{NO_LID, NO_LID, LID_B, {1}, 1, "B"},
		{NO_LID, NO_LID, LID_C, {1, 2}, 2, "C"},
		{NO_LID, NO_LID, LID_S3, {1}, 1, "S3"},
		{NO_LID, NO_LID, LID_S1, {1}, 1, "S1"},
		/* by LID, by route and by LID */
		{LID_S1, LID_A, LID_B, {2}, 1, "B"},
		{LID_S3, LID_A, LID_C, {1}, 1, "C"},
		/* no node has the LID; an adapter forwards nothing */
		{NO_LID, NO_LID, 9, {1}, 1, NULL},
		{LID_S1, LID_A, LID_B, {3}, 1, NULL},
		{NO_LID, NO_LID, LID_B, {0}, 0, NULL},
	};
	const struct fabric_agent asked = {.mgmt_class = CLASS_SUBN_DIRECTED,
					   .class_version = 1};
	struct world *w = *state;
	uint8_t s[MESSAGE];
	struct end *end;
	int agent;

	set_lids(w);
	end = open_end(w, "A", &asked, &agent);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		write_request(s, agent, &rows[i]);
		assert_int_equal(fabric_send(end, s, MESSAGE), 0);
		expect_answer(w, end, &rows[i]);
	}
	fabric_close(end);
}

/* Turns the request that a program has received into the program's response. */
static void send_response(struct end *end)
{
	uint8_t s[MESSAGE];
	const uint8_t *got;
	size_t bytes;

	got = fabric_fetch(end, &bytes);
	assert_non_null(got);
	assert_int_equal(bytes, MESSAGE);
	memcpy(s, got, MESSAGE);
	fabric_fetched(end);
	memset(s + 8, 0, 4); /* no timeout */
	s[MAD_AT + 3] |= 0x80;
	bytes_put16(s + MAD_AT + 4, STATUS_DIRECTION);
	assert_int_equal(fabric_send(end, s, MESSAGE), 0);
}

static void responses_of_programs_go_back_the_way_of_the_request(void **state)
{
	static const struct way rows[] = {
		{LID_S3, LID_A, NO_LID, {2}, 1, "B"},
		{NO_LID, NO_LID, LID_B, {1}, 1, "B"},
		{LID_S1, LID_A, LID_B, {2}, 1, "B"},
	};
	const struct fabric_agent asks = {.mgmt_class = CLASS_SUBN_DIRECTED,
					  .class_version = 1},
				  answers = {.mgmt_class = CLASS_SUBN_DIRECTED,
					     .class_version = 1,
					     .methods = {1 << METHOD_GET}};
	struct world *w = *state;
	struct end *a, *b;
	uint8_t s[MESSAGE];
	const uint8_t *got;
	size_t bytes;
	int from, to;

	set_lids(w);
	a = open_end(w, "A", &asks, &from);
	b = open_end(w, "B", &answers, &to);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		write_request(s, from, &rows[i]);
		bytes_put16(s + MAD_AT + 16, SM_INFO);
		assert_int_equal(fabric_send(a, s, MESSAGE), 0);
		fabric_turn(w->f, w->now_ms);
		send_response(b);
		fabric_turn(w->f, w->now_ms);
		got = fabric_fetch(a, &bytes);
		assert_non_null(got);
		assert_int_equal(bytes, MESSAGE);
		assert_int_equal(got[MAD_AT + 3], METHOD_GET | 0x80);
		fabric_fetched(a);
	}
	fabric_close(a);
	fabric_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(smps_go_by_lid_and_by_route,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			responses_of_programs_go_back_the_way_of_the_request,
			set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
