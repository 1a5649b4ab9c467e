/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * newercheck: tests calls that releases of rdma-core after 44 have added:
 * buffers, registration by attributes, the speed of a port.  countcheck tests
 * the counters.  Prints a line per case, as verbcheck does.  One thread.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "endpoint.h"
#include "newer_abi.h"

static struct endpoint e[2];

/* Expects that bytes which the peer writes to the address @va of the region
 * with @rkey come to @memory. */
static void peer_writes(uint64_t va, uint32_t rkey, const uint8_t *memory)
{
	struct ibv_sge sge = {(uintptr_t)e[1].region, 64, e[1].mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	for (int i = 0; i < 64; i++)
		e[1].region[i] = (uint8_t)(i * 3 + 1);
	wr.wr.rdma.remote_addr = va;
	wr.wr.rdma.rkey = rkey;
	EXPECT(!ibv_post_send(e[1].qp, &wr, &bad));
	EXPECT(endpoint_wait(&e[1], &wc) && !wc.status);
	EXPECT(!memcmp(memory, e[1].region, 64));
}

static const int ALL = IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE;

static void a_buffer_is_memory_like_any(void)
{
	struct newer_buf *buf = NULL;
	struct ibv_mr *whole, *part;
	uint8_t *at;

	endpoint_open_pair(e);
	at = later.alloc_buf(e[0].pd, 10000, &buf);
	EXPECT(at && buf);
	EXPECT((uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE) == 0);
	memset(at, 0, 10000);
	whole = later.reg_buf_mr(e[0].pd, buf, at, 10000, ALL);
	part = later.reg_buf_mr(e[0].pd, buf, at + 9000, 1000, ALL);
	EXPECT(whole && whole->addr == at && whole->length == 10000);
	EXPECT(part && part->addr == at + 9000 && part->length == 1000);
	if (whole && part) {
		peer_writes((uintptr_t)at, whole->rkey, at);
		peer_writes((uintptr_t)at + 9900, part->rkey, at + 9900);
		EXPECT(!ibv_dereg_mr(part) && !ibv_dereg_mr(whole));
	}
	errno = 0;
	EXPECT(later.export_buf_dmabuf_fd(buf) == -1 && errno == ENODATA);
	later.free_buf(buf);
	endpoint_close_pair(e);
}

static void a_range_outside_its_buffer_is_refused(void)
{
	struct newer_buf *buf = NULL;
	char *at;

	endpoint_open_pair(e);
	at = later.alloc_buf(e[0].pd, 4096, &buf);
	EXPECT(at);
	EXPECT(!later.reg_buf_mr(e[0].pd, buf, at, 4097, ALL) &&
	       errno == EINVAL);
	EXPECT(!later.reg_buf_mr(e[0].pd, buf, at + 4000, 97, ALL) &&
	       errno == EINVAL);
	EXPECT(!later.reg_buf_mr(e[0].pd, buf, at - 1, 10, ALL) &&
	       errno == EINVAL);
	EXPECT(!later.reg_buf_mr(e[0].pd, buf, at + 1, SIZE_MAX, ALL) &&
	       errno == EINVAL);
	EXPECT(!later.reg_buf_mr(e[1].pd, buf, at, 4096, ALL) &&
	       errno == EINVAL);
	EXPECT(!later.reg_buf_mr(e[0].pd, buf, at, 4096,
				 IBV_ACCESS_REMOTE_WRITE) &&
	       errno == EINVAL);
	later.free_buf(buf);
	EXPECT(!later.alloc_buf(e[0].pd, SIZE_MAX / 2, &buf) &&
	       errno == ENOMEM);
	endpoint_close_pair(e);
}

/* The protection domain with which a buffer was allocated may be destroyed
 * before the buffer, since the domain does not own the memory. */
static void a_buffer_outlives_its_domain(void)
{
	struct newer_buf *buf = NULL;
	struct ibv_pd *pd;
	char *at;

	endpoint_open_pair(e);
	pd = ibv_alloc_pd(e[0].ctx);
	at = later.alloc_buf(pd, 100, &buf);
	EXPECT(!ibv_dealloc_pd(pd));
	memset(at, 1, 100);
	later.free_buf(buf);
	endpoint_close_pair(e);
}

static void a_parent_domain_may_share_unprotected_memory(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.comp_mask = NEWER_PARENT_DOMAIN_UNPROTECTED};
	struct newer_buf *buf = NULL;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char *at;

	endpoint_open_pair(e);
	attr.pd = e[0].pd;
	pd = ibv_alloc_parent_domain(e[0].ctx, &attr);
	EXPECT(pd);
	if (pd) {
		at = later.alloc_buf(pd, 100, &buf);
		mr = later.reg_buf_mr(pd, buf, at, 100, ALL);
		EXPECT(mr && !ibv_dereg_mr(mr));
		EXPECT(!later.reg_buf_mr(e[0].pd, buf, at, 100, ALL) &&
		       errno == EINVAL);
		later.free_buf(buf);
		EXPECT(!ibv_dealloc_pd(pd));
	}
	attr.comp_mask = 1 << 3;
	EXPECT(!ibv_alloc_parent_domain(e[0].ctx, &attr) && errno == EINVAL);
	endpoint_close_pair(e);
}

static void registration_by_attributes_names_its_memory(void)
{
	struct newer_mr_attr attr = {
		.length = 4096, .access = ALL, .comp_mask = NEWER_REG_MR_ADDR};
	struct ibv_mr *mr;
	uint8_t *memory;

	endpoint_open_pair(e);
	memory = endpoint_memory(4096);
	attr.addr = memory;
	attr.iova = 0x123000; /* comp_mask does not name iova */
	mr = later.reg_mr_ex(e[0].pd, &attr);
	EXPECT(mr && mr->addr == memory && mr->length == 4096);
	if (mr) {
		peer_writes((uintptr_t)memory + 100, mr->rkey, memory + 100);
		EXPECT(!ibv_dereg_mr(mr));
	}
	attr.comp_mask |= NEWER_REG_MR_IOVA;
	mr = later.reg_mr_ex(e[0].pd, &attr);
	EXPECT(mr && mr->addr == memory);
	if (mr) {
		peer_writes(0x123000 + 700, mr->rkey, memory + 700);
		EXPECT(!ibv_dereg_mr(mr));
	}
	attr.access = ALL | IBV_ACCESS_ZERO_BASED;
	attr.comp_mask = NEWER_REG_MR_ADDR;
	mr = later.reg_mr_ex(e[0].pd, &attr);
	EXPECT(mr);
	if (mr) {
		peer_writes(5, mr->rkey, memory + 5);
		EXPECT(!ibv_dereg_mr(mr));
	}
	endpoint_memory_free(memory, 4096);
	endpoint_close_pair(e);
}

static int refusal_of(uint64_t mask, int access, struct newer_buf *buf)
{
	struct newer_mr_attr attr = {.length = 16,
				     .access = access,
				     .comp_mask = mask,
				     .addr = e[0].region,
				     .buf = buf};

	errno = 0;
	return later.reg_mr_ex(e[0].pd, &attr) ? 0 : errno;
}

static void registration_by_attributes_refuses_what_is_not_built(void)
{
	struct newer_buf *buf = NULL;

	endpoint_open_pair(e);
	EXPECT(later.alloc_buf(e[0].pd, 100, &buf));
	EXPECT(refusal_of(0, ALL, NULL) == EINVAL);
	EXPECT(refusal_of(NEWER_REG_MR_IOVA, ALL, NULL) == EINVAL);
	EXPECT(refusal_of(NEWER_REG_MR_FD | NEWER_REG_MR_FD_OFFSET |
				  NEWER_REG_MR_IOVA,
			  ALL, NULL) == EOPNOTSUPP);
	EXPECT(refusal_of(NEWER_REG_MR_ADDR | NEWER_REG_MR_DMAH, ALL, NULL) ==
	       EOPNOTSUPP);
	EXPECT(refusal_of(NEWER_REG_MR_ADDR | 1 << 6, ALL, NULL) == EOPNOTSUPP);
	EXPECT(refusal_of(NEWER_REG_MR_ADDR | NEWER_REG_MR_BUF |
				  NEWER_REG_MR_FD,
			  ALL, buf) == EINVAL);
	EXPECT(refusal_of(NEWER_REG_MR_BUF, ALL, buf) == EINVAL);
	EXPECT(refusal_of(NEWER_REG_MR_ADDR | NEWER_REG_MR_BUF, ALL, buf) ==
	       EINVAL); /* the region is not in the buffer */
	EXPECT(refusal_of(NEWER_REG_MR_ADDR, ALL | IBV_ACCESS_ON_DEMAND,
			  NULL) == EOPNOTSUPP);
	EXPECT(refusal_of(NEWER_REG_MR_ADDR, IBV_ACCESS_REMOTE_WRITE, NULL) ==
	       EINVAL);
	later.free_buf(buf);
	endpoint_close_pair(e);
}

static void a_port_tells_its_speed(void)
{
	uint64_t speed = 0;

	endpoint_open_pair(e);
	EXPECT(!later.query_port_speed(e[0].ctx, 1, &speed));
	EXPECT(speed == 1000); /* 4 lanes of 25 Gb/s, in units of 100 Mb/s */
	speed = 7;
	EXPECT(later.query_port_speed(e[0].ctx, 0, &speed) == EINVAL);
	EXPECT(later.query_port_speed(e[0].ctx, 2, &speed) == EINVAL);
	EXPECT(speed == 7);
	endpoint_close_pair(e);
}

static void what_is_not_built_is_eopnotsupp(void)
{
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct newer_dmah_attr dmah = {.comp_mask = 1};
	struct ibv_dm *memory;

	endpoint_open_pair(e);
	EXPECT(!later.alloc_dmah(e[0].ctx, &dmah) && errno == EOPNOTSUPP);
	EXPECT(later.dealloc_dmah(NULL) == EOPNOTSUPP);
	memory = ibv_alloc_dm(e[0].ctx, &dm);
	EXPECT(memory);
	errno = 0;
	EXPECT(later.dm_export_dmabuf_fd(memory) == -1 && errno == EOPNOTSUPP);
	EXPECT(!ibv_free_dm(memory));
	endpoint_close_pair(e);
}

int main(void)
{
	newer_find();
	check_run("a buffer of ibv_alloc_buf is memory like any",
		  a_buffer_is_memory_like_any);
	check_run("a range outside its buffer is refused",
		  a_range_outside_its_buffer_is_refused);
	check_run("a buffer outlives its protection domain",
		  a_buffer_outlives_its_domain);
	check_run("a parent domain may share unprotected memory",
		  a_parent_domain_may_share_unprotected_memory);
	check_run("registration by attributes registers the named memory",
		  registration_by_attributes_names_its_memory);
	check_run("registration by attributes refuses unknown attributes",
		  registration_by_attributes_refuses_what_is_not_built);
	check_run("a port tells its speed", a_port_tells_its_speed);
	check_run("a call of later releases that is not built is EOPNOTSUPP",
		  what_is_not_built_is_eopnotsupp);
	return check_end();
}
