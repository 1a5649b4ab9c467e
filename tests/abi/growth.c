/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth: structures that later headers have made larger, used by programs
 * built with old and with new headers.  Nothing is written past the end of a
 * caller's smaller structure, and a larger structure has the newest members.
 * The layouts are those of rdma-core 65, whatever headers this file is built
 * with.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "../check.h"
#include "../system/lib/endpoint.h"
#include "../system/lib/newer_abi.h"

#define MUTEX sizeof(pthread_mutex_t)

static struct endpoint e[2];

/* ---- the tables of a context ---- */

/* Returns the word that is `bytes` bytes before the ibv_context.  The inline
 * functions of the headers find operations at such offsets. */
static void *word_before(const struct ibv_context *ctx, size_t bytes)
{
	void *word;

	memcpy(&word, (const char *)ctx - bytes, sizeof(word));
	return word;
}

static const struct newer_ops *newest_ops(const struct ibv_context *ctx)
{
	return (const void *)((const char *)ctx - 320 -
			      sizeof(struct newer_ops));
}

/* The table, struct verbs_context, has 656 bytes and a mutex in release 65. */
static void a_context_has_the_table_of_release_65(void)
{
	const void *compat;

	memcpy(&compat, (char *)e[0].ctx + 280 + MUTEX, sizeof(compat));
	EXPECT(compat == (void *)UINTPTR_MAX);
	EXPECT((size_t)word_before(e[0].ctx, 8) == 656 + MUTEX);
}

/* Some inline functions call an operation without a test for NULL. */
static void no_operation_is_missing(void)
{
	const struct newer_ops *ops = newest_ops(e[0].ctx);

	for (size_t bytes = 320 + sizeof(*ops); bytes >= 24; bytes -= 8)
		if (bytes != 112) /* the library's own data */
			check_expect(word_before(e[0].ctx, bytes),
				     "NULL %zu bytes before", bytes);
	for (size_t i = 0; i < 32; i++) {
		void *op;

		memcpy(&op, (char *)e[0].ctx + 8 + 8 * i, sizeof(op));
		check_expect(op, "NULL in row %zu of ibv_context_ops", i);
	}
}

static void the_newest_operations_are_where_they_belong(void)
{
	const struct newer_ops *ops = newest_ops(e[0].ctx);
	struct newer_mr_attr attr = {.length = 64,
				     .access = IBV_ACCESS_LOCAL_WRITE,
				     .comp_mask = NEWER_REG_MR_ADDR |
						  NEWER_REG_MR_BUF};
	struct newer_buf *buf = NULL;
	struct ibv_mr *mr;

	attr.addr = ops->alloc_buf(e[0].pd, 64, &buf);
	EXPECT(attr.addr && buf);
	attr.buf = buf;
	mr = ops->reg_mr_ex(e[0].pd, &attr);
	EXPECT(mr && mr->addr == attr.addr && !ibv_dereg_mr(mr));
	ops->free_buf(buf);
	EXPECT(!ops->alloc_dmah(e[0].ctx, NULL) && errno == EOPNOTSUPP);
	EXPECT(ops->dealloc_dmah(NULL) == EOPNOTSUPP);
	EXPECT(ops->dm_export_dmabuf_fd(NULL) == -1 && errno == EOPNOTSUPP);
}

/* ---- what is written into a caller's structure ---- */

enum { ROOM = 600, CANARY = 0xc7 };

/* Returns whether no byte behind the first `size` bytes was written. */
static bool is_within(const uint8_t room[ROOM], size_t size)
{
	for (size_t i = size; i < ROOM; i++)
		if (room[i] != CANARY)
			return false;
	return true;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	while (n && !bytes[n - 1])
		n--;
	return !n;
}

/* The sizes are those of a release before 2019, of release 44, of release 56
 * and later, and of a release to come. */
static void query_port_writes_what_fits_the_callers_structure(void)
{
	static const size_t sizes[] = {48, 52, 56, 80};
	int (*query)(struct ibv_context *, uint8_t, void *, size_t) =
		word_before(e[0].ctx, 320);
	uint32_t speed;

	for (size_t i = 0; i < 4; i++) {
		uint8_t room[ROOM];

		memset(room, CANARY, sizeof(room));
		EXPECT(!query(e[0].ctx, 1, room, sizes[i]));
		check_expect(is_within(room, sizes[i]), "past %zu bytes",
			     sizes[i]);
		memcpy(&speed, room + 52, 4);
		if (sizes[i] >= 56)
			EXPECT(speed == room[44] && speed == 32);
		EXPECT(sizes[i] <= 56 || is_zero(room + 56, sizes[i] - 56));
	}
}

/* Calls the exported function, and the operation in the table of the oldest
 * headers. */
static void an_old_caller_has_48_bytes_for_a_port(void)
{
	int (*query[2])(struct ibv_context *, uint8_t, void *);

	query[0] = dlvsym(RTLD_DEFAULT, "ibv_query_port", "IBVERBS_1.1");
	memcpy(&query[1], (char *)e[0].ctx + 8 + 8, sizeof(query[1]));
	for (int i = 0; i < 2; i++) {
		uint8_t room[ROOM];

		memset(room, CANARY, sizeof(room));
		EXPECT(query[i] && !query[i](e[0].ctx, 1, room));
		EXPECT(is_within(room, 48) && room[0] == IBV_PORT_ACTIVE);
	}
}

static void query_device_writes_what_fits_the_callers_structure(void)
{
	static const size_t sizes[] = {232, 304, 400, 512};
	int (*query)(struct ibv_context *, const void *, void *, size_t) =
		word_before(e[0].ctx, 104);

	for (size_t i = 0; i < 4; i++) {
		uint8_t room[ROOM];

		memset(room, CANARY, sizeof(room));
		EXPECT(!query(e[0].ctx, NULL, room, sizes[i]));
		check_expect(is_within(room, sizes[i]), "past %zu bytes",
			     sizes[i]);
		EXPECT(sizes[i] <= 400 || is_zero(room + 400, sizes[i] - 400));
	}
}

/* ---- flush, by ibv_wr_* and by ibv_post_send ---- */

static struct ibv_qp *extended_qp(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = e[0].cq,
		.recv_cq = e[0].cq,
		.cap = {16, 16, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e[0].pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	return ibv_create_qp_ex(e[0].ctx, &attr);
}

static void a_flush_is_refused_and_posts_nothing(void)
{
	struct ibv_qp_ex *qp;
	struct newer_qp_ex *newest;
	struct ibv_wc wc;

	endpoint_replace_qp(&e[0], extended_qp(), ENDPOINT_ALL_REMOTE);
	qp = ibv_qp_to_qp_ex(e[0].qp);
	newest = (struct newer_qp_ex *)(void *)qp;
	endpoint_connect(&e[0], &e[1]);
	EXPECT(newest->wr_flush);
	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, e[1].mr->rkey, (uintptr_t)e[1].region);
	ibv_wr_set_sge(qp, e[0].mr->lkey, (uintptr_t)e[0].region, 8);
	newest->wr_flush(qp, e[1].mr->rkey, (uintptr_t)e[1].region, 8, 1, 0);
	EXPECT(ibv_wr_complete(qp) == EOPNOTSUPP);
	EXPECT(!ibv_poll_cq(e[0].cq, 1, &wc));
	/* the next request is executed */
	ibv_wr_start(qp);
	qp->wr_id = 2;
	ibv_wr_rdma_write(qp, e[1].mr->rkey, (uintptr_t)e[1].region);
	ibv_wr_set_sge(qp, e[0].mr->lkey, (uintptr_t)e[0].region, 8);
	EXPECT(!ibv_wr_complete(qp));
	EXPECT(endpoint_wait(&e[0], &wc) && !wc.status && wc.wr_id == 2);
}

/* A QP with flush operations, a work request for a flush and a region with a
 * flush access flag are refused. */
static void a_flush_cannot_be_requested(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = e[0].cq,
		.recv_cq = e[0].cq,
		.cap = {16, 16, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e[0].pd,
		.send_ops_flags = 1 << 11, /* IBV_QP_EX_WITH_FLUSH */
	};
	struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)14}, *bad = NULL;
	enum { FLUSH_GLOBAL = 1 << 8, FLUSH_PERSISTENT = 1 << 9 };

	EXPECT(!ibv_create_qp_ex(e[0].ctx, &attr) && errno == EOPNOTSUPP);
	EXPECT(ibv_post_send(e[1].qp, &wr, &bad) && bad == &wr);
	EXPECT(!ibv_reg_mr_iova2(e[0].pd, e[0].region, 64,
				 (uintptr_t)e[0].region,
				 IBV_ACCESS_LOCAL_WRITE | FLUSH_GLOBAL) &&
	       errno == EOPNOTSUPP);
	EXPECT(!ibv_reg_mr_iova2(e[0].pd, e[0].region, 64,
				 (uintptr_t)e[0].region,
				 IBV_ACCESS_LOCAL_WRITE | FLUSH_PERSISTENT) &&
	       errno == EOPNOTSUPP);
}

int main(void)
{
	newer_find();
	endpoint_open_pair(e);
	check_run("a context has the table of release 65",
		  a_context_has_the_table_of_release_65);
	check_run("no operation is missing", no_operation_is_missing);
	check_run("the newest operations are where they belong",
		  the_newest_operations_are_where_they_belong);
	check_run("query port writes what fits the callers structure",
		  query_port_writes_what_fits_the_callers_structure);
	check_run("an old caller has 48 bytes for a port",
		  an_old_caller_has_48_bytes_for_a_port);
	check_run("query device writes what fits the callers structure",
		  query_device_writes_what_fits_the_callers_structure);
	check_run("a flush cannot be requested", a_flush_cannot_be_requested);
	endpoint_close_pair(e);
	endpoint_open(&e[0], IBV_ACCESS_LOCAL_WRITE, 0);
	endpoint_open(&e[1], IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
	check_run("a flush is refused and posts nothing",
		  a_flush_is_refused_and_posts_nothing);
	endpoint_close_pair(e);
	return check_end();
}
