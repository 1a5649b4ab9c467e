/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/qp_modify: the transitions of IBTA Vol 1, 11.2.5.2. */
#include "test.h"

#include <errno.h>

#include "hca/hca.h"

#define NONE 0xffffffffu /* row.required: the transition does not exist */

/* The attributes that a transition requires, and its optional attributes. */
struct row {
	uint32_t type, from, to, required, optional;
};

#define INIT_CONNECTED (HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS)
#define INIT_UD	       (HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_QKEY)

static const struct row rows[] = {
	{HCA_QPT_UC, HCA_QP_RESET, HCA_QP_INIT, INIT_CONNECTED, 0},
	{HCA_QPT_UC, HCA_QP_INIT, HCA_QP_RTR,
	 HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN,
	 HCA_QP_ACCESS_FLAGS},
	{HCA_QPT_UC, HCA_QP_RTR, HCA_QP_RTS, HCA_QP_SQ_PSN,
	 HCA_QP_ACCESS_FLAGS},
	{HCA_QPT_UC, HCA_QP_SQE, HCA_QP_RTS, 0, HCA_QP_ACCESS_FLAGS},
	{HCA_QPT_UC, HCA_QP_RESET, HCA_QP_RTR, NONE, 0},
	{HCA_QPT_UC, HCA_QP_RTS, HCA_QP_SQE, NONE, 0},
	{HCA_QPT_UD, HCA_QP_RESET, HCA_QP_INIT, INIT_UD, 0},
	{HCA_QPT_UD, HCA_QP_INIT, HCA_QP_RTR, 0, HCA_QP_QKEY},
	{HCA_QPT_UD, HCA_QP_RTR, HCA_QP_RTS, HCA_QP_SQ_PSN, HCA_QP_QKEY},
	{HCA_QPT_UD, HCA_QP_RTS, HCA_QP_RTS, 0, HCA_QP_QKEY},
	{HCA_QPT_UD, HCA_QP_SQE, HCA_QP_RTS, 0, HCA_QP_QKEY},
	{HCA_QPT_UD, HCA_QP_INIT, HCA_QP_RTS, NONE, 0},
	{HCA_QPT_RC, HCA_QP_SQE, HCA_QP_RTS, NONE, 0},
};

static const char *said; /* why the last call was refused, or NULL */

static int check_modify(const struct row *r, uint32_t mask)
{
	struct hca h = {.active_mtu = 5};
	struct qp qp = {.type = r->type, .state = r->from};
	struct hca_qp_attr a = {.qp_state = r->to,
				.cur_qp_state = r->from,
				.port_num = 1,
				.path_mtu = 5,
				.ah = {.is_global = 1}};
	const char *why = NULL;
	int err = qp_modify_check(&h, &qp, &a, mask | HCA_QP_STATE, &why);

	assert_int_equal(err != 0, why != NULL);
	said = why;
	return err;
}

static void a_transition_needs_the_attributes_of_its_row(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];

		if (r->required == NONE) {
			assert_int_equal(check_modify(r, 0), -EINVAL);
			continue;
		}
		assert_int_equal(check_modify(r, r->required), 0);
		assert_int_equal(check_modify(r, r->required | r->optional), 0);
		for (uint32_t bit = 2; bit <= HCA_QP_DEST_QPN; bit <<= 1)
			if (r->required & bit)
				assert_int_equal(
					check_modify(r, r->required & ~bit),
					-EINVAL);
	}
}

static void an_attribute_of_another_service_is_refused(void **state)
{
	const struct row uc = rows[0], ud = rows[6];
	const struct row rtr = rows[1];

	assert_int_equal(check_modify(&uc, uc.required | HCA_QP_QKEY), -EINVAL);
	assert_int_equal(check_modify(&ud, ud.required | HCA_QP_ACCESS_FLAGS),
			 -EINVAL);
	assert_int_equal(
		check_modify(&rtr, rtr.required | HCA_QP_MIN_RNR_TIMER),
		-EINVAL);
}

static void a_refusal_names_the_attribute(void **state)
{
	const struct row uc = rows[0];

	check_modify(&uc, uc.required & ~(uint32_t)HCA_QP_PKEY_INDEX);
	assert_non_null(strstr(said, "lacks IBV_QP_PKEY_INDEX"));
	check_modify(&uc, uc.required | HCA_QP_QKEY);
	assert_non_null(strstr(said, "has IBV_QP_QKEY"));
	check_modify(&uc, uc.required | 1u << 30);
	assert_non_null(strstr(said, "has a bit that does not exist"));
}

/* An iWARP adapter uses no address vector, so it does not check one. */
static void iwarp_ignores_the_address_vector(void **state)
{
	struct hca h = {.active_mtu = 5};
	struct qp qp = {
		.type = HCA_QPT_RC, .state = HCA_QP_INIT, .is_iwarp = 1};
	struct hca_qp_attr a = {.qp_state = HCA_QP_RTR};
	const char *why = NULL;

	assert_int_equal(
		qp_modify_check(&h, &qp, &a, HCA_QP_STATE | HCA_QP_AV, &why),
		0);
	qp.is_iwarp = 0;
	assert_int_equal(
		qp_modify_check(&h, &qp, &a, HCA_QP_STATE | HCA_QP_AV, &why),
		-EINVAL);
}

static void every_state_goes_to_reset_and_error(void **state)
{
	for (uint32_t type = HCA_QPT_RC; type <= HCA_QPT_UD; type++) {
		for (uint32_t from = 0; from <= HCA_QP_ERR; from++) {
			struct row r = {type, from, HCA_QP_RESET, 0, 0};

			assert_int_equal(check_modify(&r, 0), 0);
			r.to = HCA_QP_ERR;
			assert_int_equal(check_modify(&r, 0), 0);
		}
	}
}

/* Checks a call that changes the alternate path or the migration state of a QP.
 * The QP is in RTS, has its path by LID, and has the attributes *old.  Returns
 * 0 or -EINVAL. */
static int check_path(const struct hca_qp_attr *old,
		      const struct hca_qp_attr *a, uint32_t mask)
{
	struct hca h = {.active_mtu = 5};
	struct qp qp = {.type = HCA_QPT_RC,
			.state = HCA_QP_RTS,
			.is_by_lid = 1,
			.attr = *old};
	const char *why = NULL;
	int err = qp_modify_check(&h, &qp, a, mask, &why);

	assert_int_equal(err != 0, why != NULL);
	said = why;
	return err;
}

static void
attributes_without_a_transition_are_refused_with_that_reason(void **state)
{
	static const uint32_t states[] = {HCA_QP_RESET, HCA_QP_RTR, HCA_QP_SQE,
					  HCA_QP_ERR};
	const struct hca_qp_attr a = {.min_rnr_timer = 1};
	struct hca h = {.active_mtu = 5};

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		struct qp qp = {.type = HCA_QPT_RC, .state = states[i]};
		const char *why = NULL;

		assert_int_equal(qp_modify_check(&h, &qp, &a,
						 HCA_QP_MIN_RNR_TIMER, &why),
				 -EINVAL);
		assert_non_null(strstr(why, "attr_mask has no IBV_QP_STATE"));
	}
}

/* An alternate path, as the program gives it. */
struct path {
	uint16_t dlid, pkey_index;
	uint8_t sl, port_num, ah_port_num, timeout;
};

static int check_alternate(const struct path *p)
{
	static const struct hca_qp_attr none;
	const struct hca_qp_attr a = {.alt_ah = {.dlid = p->dlid,
						 .sl = p->sl,
						 .port_num = p->ah_port_num},
				      .alt_port_num = p->port_num,
				      .alt_timeout = p->timeout,
				      .alt_pkey_index = p->pkey_index};

	return check_path(&none, &a, HCA_QP_ALT_PATH);
}

static void an_alternate_path_is_checked(void **state)
{
	static const struct path good[] = {{1, 0, 0, 1, 1, 0},
					   {0xbfff, 63, 15, 2, 2, 31}};
	static const struct {
		struct path path;
		const char *why;
	} bad[] = {
		{{0, 0, 0, 1, 1, 0}, "alt_ah_attr.dlid"},
		{{0xc000, 0, 0, 1, 1, 0}, "alt_ah_attr.dlid"},
		{{1, 64, 0, 1, 1, 0}, "alt_pkey_index"},
		{{1, 0, 16, 1, 1, 0}, "alt_ah_attr.sl"},
		{{1, 0, 0, 0, 0, 0}, "alt_port_num"},
		{{1, 0, 0, 255, 255, 0}, "alt_port_num"},
		{{1, 0, 0, 1, 2, 0}, "alt_port_num"},
		{{1, 0, 0, 1, 1, 32}, "alt_timeout"},
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(check_alternate(&good[i]), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(check_alternate(&bad[i].path), -EINVAL);
		assert_non_null(strstr(said, bad[i].why));
	}
}

/* RoCE has no alternate paths. */
static void an_alternate_path_on_roce_is_refused(void **state)
{
	const struct row rts = {HCA_QPT_RC, HCA_QP_RTS, HCA_QP_RTS, 0, 0};

	assert_int_equal(check_modify(&rts, HCA_QP_ALT_PATH), -EINVAL);
	assert_non_null(strstr(said, "RoCE"));
	assert_int_equal(check_modify(&rts, HCA_QP_PATH_MIG_STATE), 0);
}

/* iWARP ignores the paths.  No QP enters ARMED at the request of its program.
 */
static void an_iwarp_queue_pair_is_never_armed(void **state)
{
	struct hca h = {.active_mtu = 5};
	struct qp qp = {.type = HCA_QPT_RC, .state = HCA_QP_RTS, .is_iwarp = 1};
	struct hca_qp_attr a = {.path_mig_state = HCA_MIG_REARM};
	uint32_t mask = HCA_QP_ALT_PATH | HCA_QP_PATH_MIG_STATE;
	const char *why = NULL;

	assert_int_equal(qp_modify_check(&h, &qp, &a, mask, &why), 0);
	a.path_mig_state = HCA_MIG_ARMED;
	assert_int_equal(qp_modify_check(&h, &qp, &a, mask, &why), -EINVAL);
}

/* IBTA 17.2.8 */
static void a_program_enters_two_states_of_path_migration(void **state)
{
	static const struct {
		uint32_t old, asked;
		bool has_path;
		int err;
	} steps[] = {
		{HCA_MIG_MIGRATED, HCA_MIG_MIGRATED, false, 0},
		{HCA_MIG_MIGRATED, HCA_MIG_REARM, false, -EINVAL},
		{HCA_MIG_MIGRATED, HCA_MIG_REARM, true, 0},
		{HCA_MIG_MIGRATED, HCA_MIG_ARMED, true, -EINVAL},
		{HCA_MIG_REARM, HCA_MIG_MIGRATED, true, -EINVAL},
		{HCA_MIG_REARM, HCA_MIG_REARM, true, 0},
		{HCA_MIG_ARMED, HCA_MIG_MIGRATED, true, 0},
		{HCA_MIG_ARMED, HCA_MIG_REARM, true, 0},
		{HCA_MIG_ARMED, 3, true, -EINVAL},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct hca_qp_attr old = {.path_mig_state = steps[i].old};
		struct hca_qp_attr a = {.path_mig_state = steps[i].asked};

		old.alt_ah.dlid = steps[i].has_path ? 7 : 0;
		assert_int_equal(check_path(&old, &a, HCA_QP_PATH_MIG_STATE),
				 steps[i].err);
	}
}

static void a_refused_transition_names_the_state_before(void **state)
{
	static const struct {
		struct row row;
		const char *why;
	} wrong[] = {
		{{HCA_QPT_RC, HCA_QP_RTS, HCA_QP_INIT, 0, 0}, "to RESET first"},
		{{HCA_QPT_RC, HCA_QP_RESET, HCA_QP_RTR, 0, 0}, "to INIT first"},
		{{HCA_QPT_UD, HCA_QP_INIT, HCA_QP_RTS, 0, 0}, "to RTR first"},
		{{HCA_QPT_UC, HCA_QP_RTR, HCA_QP_SQD, 0, 0}, "to RTS first"},
		{{HCA_QPT_RC, HCA_QP_RTS, HCA_QP_SQE, 0, 0}, "qp_state is not"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(check_modify(&wrong[i].row, 0), -EINVAL);
		assert_non_null(strstr(said, wrong[i].why));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transition_needs_the_attributes_of_its_row),
		cmocka_unit_test(an_attribute_of_another_service_is_refused),
		cmocka_unit_test(a_refusal_names_the_attribute),
		cmocka_unit_test(a_refused_transition_names_the_state_before),
		cmocka_unit_test(iwarp_ignores_the_address_vector),
		cmocka_unit_test(
			attributes_without_a_transition_are_refused_with_that_reason),
		cmocka_unit_test(an_alternate_path_is_checked),
		cmocka_unit_test(an_alternate_path_on_roce_is_refused),
		cmocka_unit_test(a_program_enters_two_states_of_path_migration),
		cmocka_unit_test(an_iwarp_queue_pair_is_never_armed),
		cmocka_unit_test(every_state_goes_to_reset_and_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
