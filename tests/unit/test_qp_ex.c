/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/qp: ibv_create_qp_ex fails differently for a missing attribute and for
 * one that is not supported. */
#include "said_by.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/ops.h"

/* Ends the process if v_create_qp_ex does not fail with this errno. */
static void refuse_qp(uint32_t comp_mask, int err)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
					   .comp_mask = comp_mask};

	errno = 0;
	if (v_create_qp_ex(NULL, &attr) || errno != err)
		_exit(1);
}

static void create_without_domain(void)
{
	refuse_qp(0, EINVAL);
}

static void create_with_xrcd(void)
{
	refuse_qp(IBV_QP_INIT_ATTR_XRCD, EOPNOTSUPP);
}

static void a_missing_domain_is_an_invalid_argument(void **state)
{
	char text[1024];

	unsetenv("ADVERB_EXPLAIN");
	said_by(create_without_domain, text, sizeof(text));
	assert_non_null(strstr(text, "needs a protection domain"));
	said_by(create_with_xrcd, text, sizeof(text));
	assert_non_null(strstr(text, "not supported"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_domain_is_an_invalid_argument),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
