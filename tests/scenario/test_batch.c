/* SPDX-License-Identifier: BSD-2-Clause */
/* Small requests, alone and in a row.  Without packets a row is executed as one
 * batch (src/direct/batch.c).  In test_peer_death.c processes die within a
 * batch. */
#include "test.h"

#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

/* A batch is checked as a single request is. */
static void a_row_of_reads_needs_resources_too(void **state)
{
	const struct hca_qp_attr no_resources = {.max_dest_rd_atomic = 0};
	struct two_hcas *d = two_hcas_new(1, 16);

	/* after the first request the initiator has a copy of the attributes */
	two_hcas_post_row(d, 1, HCA_WR_RDMA_WRITE, 0, 100000);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	qp_modify_store(d->side[1].qp, &no_resources,
			HCA_QP_MAX_DEST_RD_ATOMIC);
	two_hcas_fill(d, 1, 100000, 100);
	two_hcas_post_row(d, 3, HCA_WR_RDMA_READ, 100, 100000);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_REM_INV_REQ_ERR);
	assert_done(d, 0, HCA_WR_FLUSH_ERR);
	assert_done(d, 0, HCA_WR_FLUSH_ERR);
	assert_int_equal(d->side[0].memory.bytes[1], 0);
	two_hcas_free(d);
}

/* Eager messages and longer messages: no byte beside a message changes. */
static void messages_of_each_length_arrive(void **state)
{
	struct two_hcas *d = two_hcas_new(3, 16);

	for (uint32_t n = 1; n < 600; n++) {
		uint64_t at = 100000 + n % 7, from = n % 5;

		two_hcas_fill(d, 0, from, n);
		two_hcas_fill(d, 1, at - 8, n + 16);
		d->side[1].memory.bytes[at - 1] = 0xa5;
		d->side[1].memory.bytes[at + n] = 0x5a;
		two_hcas_recv(d, 1, at, n);
		two_hcas_send(d, 0, HCA_WR_SEND, from, n, 0);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + LONG);
		assert_done(d, 0, HCA_SUCCESS);
		assert_done(d, 1, HCA_SUCCESS);
		assert_memory_equal(d->side[1].memory.bytes + at,
				    d->side[0].memory.bytes + from, n);
		assert_int_equal(d->side[1].memory.bytes[at - 1], 0xa5);
		assert_int_equal(d->side[1].memory.bytes[at + n], 0x5a);
	}
	two_hcas_free(d);
}

#define ROW	  3  /* messages of a row */
#define ROW_BYTES 16 /* bytes of a message, in two SGEs */

/* Side 0, which deregisters its memory when row_left more bytes were read, and
 * the ops that read that memory. */
static struct two_hcas_side *row_owner;
static const struct space_ops *row_ops;
static uint64_t row_left;

static int read_and_deregister(struct space *s, const struct space_vec *from,
			       size_t n, void *dst)
{
	int err = row_ops->read(s, from, n, dst);

	for (size_t i = 0; i < n && row_left; i++) {
		row_left -= from[i].bytes;
		if (!row_left)
			assert_int_equal(
				mr_free(&row_owner->hca, row_owner->mr), 0);
	}
	return err;
}

/* Posts a message of two SGEs.  @rings: the adapter is told of the message. */
static void post_pieces(struct two_hcas *d, bool rings)
{
	struct wqe *w = two_hcas_send(d, 0, HCA_WR_SEND, 0, ROW_BYTES, 0);
	struct wq_sge *sges = wqe_sges(w);

	w->num_sge = 2;
	sges[0].bytes = ROW_BYTES / 2;
	sges[1] = sges[0];
	sges[1].va += ROW_BYTES / 2;
	if (rings)
		two_hcas_post(d, 0);
	else
		wq_commit(&d->side[0].qp->sq);
}

/* The program deregisters memory when all messages of a row were copied from
 * it, and none has completed.  All complete with success. */
static void a_row_that_was_copied_needs_its_memory_no_more(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);
	struct space_ops ops;

	row_owner = &d->side[0];
	row_ops = row_owner->memory.space.ops;
	ops = *row_ops;
	ops.read = read_and_deregister;
	/* a batch is executed only if the target has executed a request of the
	 * connection before */
	two_hcas_recv(d, 1, 100000, ROW_BYTES);
	post_pieces(d, true);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	row_left = ROW * ROW_BYTES;
	row_owner->memory.space.ops = &ops;
	for (int i = 0; i < ROW; i++)
		two_hcas_recv(d, 1, 100000 + ROW_BYTES * i, ROW_BYTES);
	for (int i = 1; i <= ROW; i++)
		post_pieces(d, i == ROW);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(row_left, 0);
	for (int i = 0; i < ROW; i++) {
		assert_done(d, 0, HCA_SUCCESS);
		assert_done(d, 1, HCA_SUCCESS);
	}
	row_owner->memory.space.ops = row_ops;
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_of_reads_needs_resources_too),
		cmocka_unit_test(messages_of_each_length_arrive),
		cmocka_unit_test(
			a_row_that_was_copied_needs_its_memory_no_more),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
