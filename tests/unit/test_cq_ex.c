/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/cq_ex: ibv_create_cq_ex names the attribute that is wrong. */
#include "test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/object.h"
#include "verbs/ops.h"

/* Calls v_create_cq_ex, which must fail with EINVAL, and stores in `text` what
 * the call prints on stderr.  adverb prints each sentence only once in a
 * process, so a second call with the same fault stores "". */
static void refuse_cq(struct ibv_cq_init_attr_ex attr, char *text, size_t size)
{
	static struct v_context context; /* of no device */
	int was = dup(STDERR_FILENO), said = memfd_create("stderr", 0), err;
	ssize_t n;

	context.process = v_process();
	context.verbs.context.num_comp_vectors = 1;
	unsetenv("ADVERB_EXPLAIN");
	dup2(said, STDERR_FILENO);
	errno = 0;
	err = v_create_cq_ex(&context.verbs.context, &attr) ? 0 : errno;
	dup2(was, STDERR_FILENO);
	n = pread(said, text, size - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(said);
	close(was);
	assert_int_equal(err, EINVAL);
}

static void the_wrong_attribute_is_named(void **state)
{
	const struct ibv_cq_init_attr_ex
		far = {.cqe = 1, .comp_vector = 1u << 31},
		large = {.cqe = UINT32_MAX}, none = {.cqe = 0},
		stray = {.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};
	char text[1024];

	refuse_cq(far, text, sizeof(text));
	assert_non_null(strstr(text, "comp_vector"));
	refuse_cq(large, text, sizeof(text));
	assert_non_null(strstr(text, "the size of a completion queue exceeds"));
	refuse_cq(none, text, sizeof(text));
	assert_non_null(strstr(text, "cqe, must be at least 1"));
	refuse_cq(stray, text, sizeof(text));
	assert_non_null(strstr(text, "parent_domain is NULL"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wrong_attribute_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
