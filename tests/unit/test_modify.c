/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/modify: ibv_modify_qp while a peer works at the queue pair. */
#include "test.h"

#include <errno.h>

#include "host/host.h"
#include "verbs/object.h"

static uint32_t masks[2]; /* the masks with which host_qp_modify was called */
static int calls;

int __wrap_host_qp_modify(struct host *h, const struct device *dev,
			  struct ibt_qp *side, const struct hca_qp_attr *attr,
			  uint32_t mask, const char **why);
void __wrap_host_qp_wait(struct ibt_qp *side, struct alock_wait *wait);

/* A peer works at the queue pair during the first call. */
int __wrap_host_qp_modify(struct host *h, const struct device *dev,
			  struct ibt_qp *side, const struct hca_qp_attr *attr,
			  uint32_t mask, const char **why)
{
	masks[calls] = mask;
	return calls++ ? 0 : -EBUSY;
}

void __wrap_host_qp_wait(struct ibt_qp *side, struct alock_wait *wait)
{
}

static void expect_masks(enum ibv_qp_state to, uint32_t first, uint32_t second)
{
	/* no initializer: the first member is empty if libibverbs' headers are
	 * as new as adverb's ABI */
	static struct v_context c;
	struct v_qp q = {.process = v_process()};
	struct ibv_qp_attr a = {.qp_state = to, .cur_qp_state = IBV_QPS_RTS};

	q.base.qp_base.context = &c.verbs.context;
	calls = 0;
	assert_int_equal(ibv_modify_qp(&q.base.qp_base, &a, (int)first), 0);
	assert_int_equal(calls, 2);
	assert_int_equal(masks[0], first);
	assert_int_equal(masks[1], second);
}

/* The first call for RESET may end the stream of an iWARP queue pair, which
 * moves the queue pair to ERR.  Then the second call must not compare the state
 * with RTS, which the program gave as the current state.  If the new state is
 * another one than RESET, both calls compare the current state. */
static void a_reset_compares_the_current_state_once(void **state)
{
	const uint32_t both = IBV_QP_STATE | IBV_QP_CUR_STATE;

	expect_masks(IBV_QPS_RESET, both, IBV_QP_STATE);
	expect_masks(IBV_QPS_SQD, both, both);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reset_compares_the_current_state_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
