/* SPDX-License-Identifier: BSD-2-Clause */
/* host/link_groups: random calls and answers, against a model of the program
 * and of the fabric to which the questions go. */
#include "test.h"

#include <errno.h>

#include "fabric/proto.h"
#include "host/link_groups.h"
#include "util/rng.h"

#define GIDS  (3 * LINK_GROUPS_MAX)
#define STEPS 20000

struct model {
	struct link_groups groups;
	struct rng rng;
	/* the number of queue pairs attached to the group */
	uint32_t members[GIDS];
	bool fabric_has[GIDS]; /* the fabric has the port in the group */
	/* The fabric has refused FABRIC_PROTO_JOIN for the group.  No further
	 * queue pair has attached since, and at least one is still attached. */
	bool is_refused[GIDS];
	uint32_t kind;	 /* the kind of the open question; 0: none is open */
	uint8_t gid[16]; /* the group of the open question */
};

static void make_gid(uint8_t gid[16], uint32_t n)
{
	memset(gid, 0, 16);
	gid[0] = 0xff;
	gid[15] = (uint8_t)n;
}

static uint32_t count_groups(const struct model *m)
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < GIDS; n++)
		count += m->members[n] != 0;
	return count;
}

static void attach_group(struct model *m, uint32_t n)
{
	bool fits = m->members[n] || count_groups(m) < LINK_GROUPS_MAX;
	uint8_t gid[16];

	make_gid(gid, n);
	assert_int_equal(link_groups_attach(&m->groups, gid),
			 fits ? 0 : -ENOSPC);
	if (!fits)
		return;
	m->members[n]++;
	m->is_refused[n] = false;
}

static void detach_group(struct model *m, uint32_t n)
{
	uint8_t gid[16];

	make_gid(gid, n);
	assert_int_equal(link_groups_detach(&m->groups, gid),
			 m->members[n] ? 0 : -EINVAL);
	if (m->members[n] && !--m->members[n])
		m->is_refused[n] = false;
}

/* Fails if a fabric would refuse the open question, or if the question has no
 * purpose. */
static void judge_question(const struct model *m)
{
	uint32_t n = m->gid[15], count = 0;

	assert_true(n < GIDS);
	assert_false(m->is_refused[n]);
	if (m->kind == FABRIC_PROTO_LEAVE) {
		assert_true(m->fabric_has[n] && !m->members[n]);
		return;
	}
	assert_int_equal(m->kind, FABRIC_PROTO_JOIN);
	assert_true(!m->fabric_has[n] && m->members[n]);
	for (uint32_t i = 0; i < GIDS; i++)
		count += m->fabric_has[i];
	assert_true(count < LINK_GROUPS_MAX);
}

static bool ask_next(struct model *m)
{
	if (!link_groups_ask(&m->groups, &m->kind, m->gid))
		return false;
	judge_question(m);
	return true;
}

static void answer_question(struct model *m, bool refuses)
{
	uint32_t n = m->gid[15];
	bool is_refused = refuses && m->kind == FABRIC_PROTO_JOIN;

	link_groups_answered(&m->groups, m->gid, is_refused);
	m->fabric_has[n] = m->kind == FABRIC_PROTO_JOIN && !is_refused;
	m->is_refused[n] = is_refused && m->members[n];
	m->kind = 0;
}

static void change_something(struct model *m)
{
	uint32_t what = rng_below(&m->rng, 4), n = rng_below(&m->rng, GIDS);

	if (what == 0)
		attach_group(m, n);
	else if (what == 1)
		detach_group(m, n);
	else if (m->kind)
		answer_question(m, rng_below(&m->rng, 4) == 0);
	else
		ask_next(m);
}

/* Answers all questions.  Fails unless the fabric then has the groups of the
 * program, except those that the fabric has refused. */
static void settle_all(struct model *m)
{
	if (m->kind)
		answer_question(m, false);
	while (ask_next(m))
		answer_question(m, false);
	for (uint32_t n = 0; n < GIDS; n++)
		assert_int_equal(m->fabric_has[n],
				 m->members[n] && !m->is_refused[n]);
}

static void the_fabric_gets_what_the_program_wants(void **state)
{
	struct model m = {.kind = 0};

	rng_init(&m.rng, 1);
	for (uint32_t i = 0; i < STEPS; i++) {
		change_something(&m);
		if (rng_below(&m.rng, 64) == 0)
			settle_all(&m);
	}
	for (uint32_t n = 0; n < GIDS; n++)
		while (m.members[n])
			detach_group(&m, n);
	settle_all(&m);
	assert_int_equal(m.groups.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fabric_gets_what_the_program_wants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
