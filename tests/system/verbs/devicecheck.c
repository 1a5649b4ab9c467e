/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * devicecheck [mistake]: tests that a device has as many protection domains,
 * CQs, SRQs and AHs as its attributes say, no less and no more, and which flags
 * it has; also tests the limit of inline data, which no attribute says.  With
 * "mistake", runs only a case in which a program asks for far too much inline
 * data.  Prints a line per case, as verbcheck does.  One thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "endpoint.h"

static struct endpoint e;

/* Creates an object of a kind.  Returns NULL with errno if that fails. */
typedef void *make(void);
/* Destroys the object.  Returns 0 or an errno. */
typedef int unmake(void *object);

static void *make_pd(void)
{
	return ibv_alloc_pd(e.ctx);
}

static int unmake_pd(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *make_cq(void)
{
	return ibv_create_cq(e.ctx, 1, NULL, NULL, 0);
}

static int unmake_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};

	return ibv_create_srq(e.pd, &init);
}

static int unmake_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *make_ah(void)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};

	a.grh.sgid_index = ENDPOINT_GID_INDEX;
	ibv_query_gid(e.ctx, 1, ENDPOINT_GID_INDEX, &a.grh.dgid);
	return ibv_create_ah(e.pd, &a);
}

static int unmake_ah(void *ah)
{
	return ibv_destroy_ah(ah);
}

/* Expects that `most` objects of a kind can exist at once, of which `there`
 * exist already, that the creation of one more fails with ENOMEM, and that it
 * succeeds once an object has been destroyed. */
static void expect_limit(int most, int there, make *one, unmake *none)
{
	void **all = calloc((size_t)most, sizeof(*all));
	int n = 0;

	EXPECT(all);
	if (!all)
		return;
	while (n < most - there && (all[n] = one()))
		n++;
	EXPECT(n == most - there);
	errno = 0;
	EXPECT(!one() && errno == ENOMEM);
	EXPECT(n && none(all[--n]) == 0);
	EXPECT((all[n] = one()));
	n++;
	while (n)
		EXPECT(none(all[--n]) == 0);
	free(all);
}

static struct ibv_device_attr open_device(void)
{
	struct ibv_device_attr a = {0};

	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE, 0);
	EXPECT(ibv_query_device(e.ctx, &a) == 0);
	return a;
}

static void no_more_domains(void)
{
	expect_limit(open_device().max_pd, 1, make_pd, unmake_pd);
	endpoint_close(&e);
}

static void no_more_completion_queues(void)
{
	expect_limit(open_device().max_cq, 1, make_cq, unmake_cq);
	endpoint_close(&e);
}

static void no_more_shared_queues(void)
{
	expect_limit(open_device().max_srq, 0, make_srq, unmake_srq);
	endpoint_close(&e);
}

static void no_more_address_handles(void)
{
	expect_limit(open_device().max_ah, 0, make_ah, unmake_ah);
	endpoint_close(&e);
}

/* Most flags have other cases that test their meaning. */
static void the_flags_are_what_is_built(void)
{
	const unsigned int built =
		IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_CURR_QP_STATE_MOD |
		IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
		IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
		IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS |
		IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	struct ibv_device_attr a = open_device();
	struct ibv_ah_attr other = {.is_global = 1, .port_num = 2};

	EXPECT(a.device_cap_flags == built);
	EXPECT(!ibv_create_ah(e.pd, &other) && errno == EINVAL);
	endpoint_close(&e);
}

static struct ibv_qp *with_inline(uint32_t bytes)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq,
		.recv_cq = e.cq,
		.cap = {1, 1, 1, 1, bytes},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(e.pd, &init);
}

/* Searches for the limit as libfabric does: doubles the number of bytes until
 * that number is too large, then bisects. */
static void the_most_inline_data_can_be_found(void)
{
	uint32_t most = 2, least_too_many;
	struct ibv_qp *qp;

	open_device();
	while ((qp = with_inline(2 * most))) {
		EXPECT(ibv_destroy_qp(qp) == 0);
		most *= 2;
	}
	EXPECT(errno == EINVAL);
	least_too_many = 2 * most;
	while (least_too_many - most > 1) {
		uint32_t bytes = most + (least_too_many - most) / 2;

		qp = with_inline(bytes);
		*(qp ? &most : &least_too_many) = bytes;
		EXPECT(!qp || ibv_destroy_qp(qp) == 0);
	}
	EXPECT(most >= 64);
	endpoint_close(&e);
}

/* The first call with inline data asks for far too many bytes: this is a
 * mistake of the program, not a step of a search. */
static void too_much_inline_data_is_refused(void)
{
	open_device();
	EXPECT(ibv_destroy_qp(e.qp) == 0);
	e.qp = with_inline(0);
	EXPECT(!with_inline(1u << 20) && errno == EINVAL);
	endpoint_close(&e);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		check_run("too much inline data is refused",
			  too_much_inline_data_is_refused);
		return check_end();
	}
	check_run("the most inline data can be found",
		  the_most_inline_data_can_be_found);
	check_run("the device's flags name the built features",
		  the_flags_are_what_is_built);
	check_run("no more protection domains can be had than reported",
		  no_more_domains);
	check_run("no more completion queues can be had than reported",
		  no_more_completion_queues);
	check_run("no more shared receive queues can be had than reported",
		  no_more_shared_queues);
	check_run("no more address handles can be had than reported",
		  no_more_address_handles);
	return check_end();
}
