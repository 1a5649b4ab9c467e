/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/semantics: which memory the SGEs of a work request name. */
#include "test.h"

#include "hca/hca.h"
#include "hca/semantics.h"

#define ARENA_BYTES (16u << 20)

enum { PD = 1, VA = 0x5000 };

struct world {
	void *memory;
	struct hca h;
	struct mr *mr;
	struct {
		struct wqe wqe;
		struct wq_sge sge[2];
	} request;
};

/* Makes a world with a request of two SGEs, with 4 bytes each. */
static void begin_world(struct world *w)
{
	uint64_t seed[4] = {1, 2, 3, 4};
	struct wq_sge *s;
	struct arena a;

	*w = (struct world){.memory = aligned_alloc(4096, ARENA_BYTES)};
	memset(w->memory, 0, ARENA_BYTES);
	arena_init(&a, w->memory, ARENA_BYTES);
	assert_int_equal(hca_init(&w->h, a, NULL, seed), 0);
	w->mr = mr_new(&w->h, PD, VA, 0x1000, VA, 0);
	assert_non_null(w->mr);
	w->request.wqe = (struct wqe){.num_sge = 2, .bytes = 8};
	s = wqe_sges(&w->request.wqe);
	s[0] = (struct wq_sge){VA, 4, w->mr->lkey};
	s[1] = (struct wq_sge){VA + 0x100, 4, w->mr->lkey};
}

static enum hca_status locate_at(struct world *w, uint32_t offset,
				 uint32_t bytes, struct space_vec *vec,
				 size_t *n, struct explain *x)
{
	*x = (struct explain){.cause = EXPLAIN_NONE};
	return sem_locate_any(&w->h, PD, &w->request.wqe, offset, bytes, 0, vec,
			      n, x);
}

static void a_range_may_span_sges(void **state)
{
	struct space_vec vec[SPACE_VEC_MAX];
	struct explain x;
	struct world w;
	size_t n;

	begin_world(&w);
	assert_int_equal(locate_at(&w, 2, 5, vec, &n, &x), HCA_SUCCESS);
	assert_int_equal(n, 2);
	assert_int_equal(vec[0].va, VA + 2);
	assert_int_equal(vec[0].bytes, 2);
	assert_int_equal(vec[1].va, VA + 0x100);
	assert_int_equal(vec[1].bytes, 3);
	free(w.memory);
}

/* The message gives the end of the range, offset + bytes, not the length of the
 * part beyond the SGEs, and does not mention a receive buffer. */
static void a_range_behind_the_sges_is_refused_with_its_length(void **state)
{
	struct space_vec vec[SPACE_VEC_MAX];
	struct explain x;
	struct world w;
	char text[256];
	size_t n;

	begin_world(&w);
	assert_int_equal(locate_at(&w, 0, 12, vec, &n, &x), HCA_LOC_LEN_ERR);
	assert_int_equal(x.bytes, 12);
	assert_int_equal(x.region_bytes, 8);
	assert_int_equal(locate_at(&w, 6, 10, vec, &n, &x), HCA_LOC_LEN_ERR);
	assert_int_equal(x.bytes, 16);
	x.opcode = HCA_WR_SEND;
	explain_text(&x, text, sizeof(text));
	assert_non_null(strstr(text, "needs at least 16 bytes"));
	assert_non_null(strstr(text, "8 bytes in all"));
	assert_null(strstr(text, "receive buffer"));
	free(w.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_may_span_sges),
		cmocka_unit_test(
			a_range_behind_the_sges_is_refused_with_its_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
