/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memorycheck: tests what the verbs for memory regions and memory windows
 * promise to a program, between two queue pairs of one process, which has one
 * thread.  Prints a line per case, as verbcheck does.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "endpoint.h"

enum {
	WINDOW_BYTES = 64,
	MR_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
};

static struct endpoint e[2];

static struct ibv_wc next_completion(struct endpoint *end)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	EXPECT(endpoint_wait(end, &wc));
	return wc;
}

static enum ibv_wc_status post_and_wait(struct endpoint *end,
					struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags = IBV_SEND_SIGNALED;
	EXPECT(ibv_post_send(end->qp, wr, &bad) == 0);
	return next_completion(end).status;
}

/* Executes a WRITE from e[0] to the beginning of e[1]'s region with this rkey.
 * Returns the status of the completion. */
static enum ibv_wc_status write_by(uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)e[0].region, WINDOW_BYTES,
			      e[0].mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .wr.rdma = {(uintptr_t)e[1].region, rkey}};

	return post_and_wait(&e[0], &wr);
}

/* A memory window of e[1], and a region to which the window can be bound. */
struct window {
	struct ibv_mr *mr;
	struct ibv_mw *mw;
};

static struct window window_open(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct window w = {
		ibv_reg_mr(pd, e[1].region, ENDPOINT_SIZE, MR_RIGHTS),
		ibv_alloc_mw(pd, type)};

	EXPECT(w.mr && w.mw);
	return w;
}

static void window_close(struct window *w)
{
	EXPECT(ibv_dealloc_mw(w->mw) == 0);
	EXPECT(ibv_dereg_mr(w->mr) == 0);
}

static struct ibv_mw_bind_info info_of(const struct window *w, size_t bytes)
{
	return (struct ibv_mw_bind_info){w->mr, (uintptr_t)e[1].region, bytes,
					 IBV_ACCESS_REMOTE_WRITE};
}

static enum ibv_wc_status bind_window(struct window *w, uint32_t rkey,
				      size_t bytes)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
				 .bind_mw = {w->mw, rkey, info_of(w, bytes)}};

	return post_and_wait(&e[1], &wr);
}

static enum ibv_wc_status invalidate_key(uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV,
				 .invalidate_rkey = rkey};

	return post_and_wait(&e[1], &wr);
}

static void a_region_has_one_key(void)
{
	endpoint_open_pair(e);
	EXPECT(e[0].mr->lkey == e[0].mr->rkey);
	EXPECT(write_by(e[1].mr->lkey) == IBV_WC_SUCCESS);
	endpoint_close_pair(e);
}

/* Calls ibv_rereg_mr for e[1]'s region with arguments that are refused, and
 * expects that the call sets errno to want_errno and does not change the
 * region.  Returns the value that the call returned. */
static int refused_rereg(int flags, struct ibv_pd *pd, size_t length,
			 int access, int want_errno)
{
	struct ibv_mr before = *e[1].mr;
	int answer;

	errno = 0;
	answer = ibv_rereg_mr(e[1].mr, flags, pd, e[1].region, length, access);
	EXPECT(errno == want_errno);
	EXPECT(!memcmp(&before, e[1].mr, sizeof(before)));
	return answer;
}

static void a_rereg_that_the_library_refuses(void)
{
	endpoint_open_pair(e);
	EXPECT(refused_rereg(IBV_REREG_MR_CHANGE_TRANSLATION, NULL, 0, 0,
			     EINVAL) == IBV_REREG_MR_ERR_INPUT);
	EXPECT(refused_rereg(IBV_REREG_MR_CHANGE_PD, NULL, 0, 0, EINVAL) ==
	       IBV_REREG_MR_ERR_INPUT);
	EXPECT(refused_rereg(IBV_REREG_MR_CHANGE_PD, e[1].pd, 0,
			     IBV_ACCESS_LOCAL_WRITE,
			     EINVAL) == IBV_REREG_MR_ERR_INPUT);
	EXPECT(refused_rereg(1 << 20, NULL, 0, 0, EINVAL) ==
	       IBV_REREG_MR_ERR_INPUT);
	EXPECT(write_by(e[1].mr->rkey) == IBV_WC_SUCCESS);
	endpoint_close_pair(e);
}

static struct ibv_mr *reg_page(uint8_t *page, int access)
{
	errno = 0;
	return ibv_reg_mr(e[1].pd, page, 1, access);
}

/* The kernel pins the pages of a region for writing if a right to write or to
 * bind windows is asked for; read-only pages cannot be pinned for writing. */
static void read_only_memory_is_registered_for_reading(void)
{
	long size = sysconf(_SC_PAGESIZE);
	uint8_t *page = endpoint_memory((size_t)size);
	struct ibv_mr *mr;

	endpoint_open_pair(e);
	page[1] = 7;
	mr = reg_page(page, IBV_ACCESS_LOCAL_WRITE);
	EXPECT(mr && page[1] == 7);
	EXPECT(!mr || !ibv_dereg_mr(mr));
	EXPECT(!mprotect(page, (size_t)size, PROT_READ));
	EXPECT(!reg_page(page, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
	EXPECT(!reg_page(page, IBV_ACCESS_MW_BIND) && errno == EFAULT);
	mr = reg_page(page, IBV_ACCESS_REMOTE_READ);
	EXPECT(mr);
	EXPECT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_LOCAL_WRITE) == IBV_REREG_MR_ERR_CMD);
	EXPECT(errno == EFAULT);
	EXPECT(!ibv_dereg_mr(mr));
	endpoint_memory_free(page, (size_t)size);
	endpoint_close_pair(e);
}

/* With a device of the kernel, the kernel would refuse these calls, so they
 * return IBV_REREG_MR_ERR_CMD.  The region must stay as it was. */
static void a_rereg_that_the_kernel_refuses(void)
{
	struct ibv_pd *pd;
	struct window w;

	endpoint_open_pair(e);
	pd = ibv_alloc_pd(e[1].ctx);
	EXPECT(refused_rereg(0, NULL, 0, 0, EINVAL) == IBV_REREG_MR_ERR_CMD);
	EXPECT(refused_rereg(IBV_REREG_MR_CHANGE_ACCESS, NULL, 0,
			     IBV_ACCESS_REMOTE_WRITE,
			     EINVAL) == IBV_REREG_MR_ERR_CMD);
	EXPECT(refused_rereg(IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			     SIZE_MAX / 2, 0, EFAULT) == IBV_REREG_MR_ERR_CMD);
	EXPECT(write_by(e[1].mr->rkey) == IBV_WC_SUCCESS);
	w = window_open(e[1].pd, IBV_MW_TYPE_2);
	EXPECT(bind_window(&w, 1, WINDOW_BYTES) == IBV_WC_SUCCESS);
	EXPECT(ibv_rereg_mr(w.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) ==
	       IBV_REREG_MR_ERR_CMD);
	EXPECT(errno == EBUSY && w.mr->pd == e[1].pd);
	EXPECT(write_by(w.mw->rkey) == IBV_WC_SUCCESS);
	window_close(&w);
	EXPECT(ibv_dealloc_pd(pd) == 0);
	endpoint_close_pair(e);
}

static void a_rereg_changes_the_length(void)
{
	uint32_t first;

	endpoint_open_pair(e);
	first = e[1].mr->rkey;
	EXPECT(ibv_rereg_mr(e[1].mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			    e[1].region, WINDOW_BYTES, 0) == 0);
	EXPECT(e[1].mr->length == WINDOW_BYTES);
	EXPECT(e[1].mr->lkey == e[1].mr->rkey && e[1].mr->rkey != first);
	EXPECT(write_by(e[1].mr->rkey) == IBV_WC_SUCCESS);
	EXPECT(write_by(first) == IBV_WC_REM_ACCESS_ERR);
	endpoint_close_pair(e);
}

static void a_new_key_has_the_lower_8_bits_given(void)
{
	struct window w;
	uint32_t upper;

	endpoint_open_pair(e);
	w = window_open(e[1].pd, IBV_MW_TYPE_2);
	upper = w.mw->rkey >> 8;
	for (uint32_t given = 1024; given < 1027; given++) {
		EXPECT(bind_window(&w, given, WINDOW_BYTES) == IBV_WC_SUCCESS);
		EXPECT(w.mw->rkey == (upper << 8 | (given & 0xff)));
		EXPECT(write_by(w.mw->rkey) == IBV_WC_SUCCESS);
		EXPECT(invalidate_key(w.mw->rkey) == IBV_WC_SUCCESS);
	}
	EXPECT(write_by(w.mw->rkey) == IBV_WC_REM_ACCESS_ERR);
	window_close(&w);
	endpoint_close_pair(e);
}

/* Opens and connects both ends, and sets *w to a window of type 2 that is not
 * bound.  Returns the queue pair of e[1], on which ibv_wr_bind_mw can bind *w.
 */
static struct ibv_qp_ex *binder_open(struct window *w)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = {4, 4, 1, 1, 0},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_BIND_MW,
	};
	struct ibv_qp *qp;

	for (int i = 0; i < 2; i++)
		endpoint_open(&e[i], IBV_ACCESS_LOCAL_WRITE,
			      ENDPOINT_ALL_REMOTE);
	*w = window_open(e[1].pd, IBV_MW_TYPE_2);
	init.send_cq = init.recv_cq = e[1].cq;
	init.pd = e[1].pd;
	qp = ibv_create_qp_ex(e[1].ctx, &init);
	EXPECT(qp);
	endpoint_replace_qp(&e[1], qp, ENDPOINT_ALL_REMOTE);
	endpoint_connect(&e[0], &e[1]);
	return ibv_qp_to_qp_ex(qp);
}

/* ibv_wr_bind_mw binds a type 2 window, whose new rkey has the low byte of the
 * given key. */
static void a_key_is_given_by_ibv_wr_bind_mw(void)
{
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *ex;
	struct window w;

	ex = binder_open(&w);
	info = info_of(&w, WINDOW_BYTES);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, w.mw, 0x12345a, &info);
	EXPECT(ibv_wr_complete(ex) == 0);
	EXPECT(next_completion(&e[1]).status == IBV_WC_SUCCESS);
	EXPECT((w.mw->rkey & 0xff) == 0x5a);
	EXPECT(write_by(w.mw->rkey) == IBV_WC_SUCCESS);
	window_close(&w);
	endpoint_close_pair(e);
}

/* A window keeps its key if the work requests between ibv_wr_start and
 * ibv_wr_complete are not posted: they are aborted, or are too many. */
static void a_key_is_not_given_by_a_series_that_is_not_posted(void)
{
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *ex;
	struct window w;
	uint32_t key;

	ex = binder_open(&w);
	info = info_of(&w, WINDOW_BYTES);
	key = w.mw->rkey;
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, w.mw, key + 1, &info);
	ibv_wr_abort(ex);
	EXPECT(w.mw->rkey == key);
	ibv_wr_start(ex);
	for (uint32_t i = 1; i <= 5; i++) /* the queue holds four */
		ibv_wr_bind_mw(ex, w.mw, key + i, &info);
	EXPECT(ibv_wr_complete(ex) == ENOMEM);
	EXPECT(w.mw->rkey == key);
	window_close(&w);
	endpoint_close_pair(e);
}

/* IBTA o10-37.2.40: a binding of a type 2 window to zero bytes fails. */
static void type_2_is_never_bound_to_nothing(void)
{
	struct window w;

	endpoint_open_pair(e);
	w = window_open(e[1].pd, IBV_MW_TYPE_2);
	EXPECT(bind_window(&w, 1, 0) == IBV_WC_MW_BIND_ERR);
	EXPECT(endpoint_state(&e[1]) == IBV_QPS_ERR);
	window_close(&w);
	endpoint_close_pair(e);
}

static void type_1_is_never_zero_based(void)
{
	struct ibv_mw_bind of_1 = {0};
	struct window w;

	endpoint_open_pair(e);
	w = window_open(e[1].pd, IBV_MW_TYPE_1);
	of_1.bind_info = info_of(&w, WINDOW_BYTES);
	of_1.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	EXPECT(ibv_bind_mw(e[1].qp, w.mw, &of_1) == EINVAL);
	window_close(&w);
	endpoint_close_pair(e);
}

/* Calls ibv_rereg_mr with these flags for a region without a change of its
 * memory.  The rights lack IBV_ACCESS_ZERO_BASED. */
static int rereg_in_place(struct ibv_mr *mr, int flags)
{
	bool has_rights = flags & IBV_REREG_MR_CHANGE_ACCESS;

	return ibv_rereg_mr(mr, flags, e[1].pd, NULL, 0,
			    has_rights ? MR_RIGHTS : 0);
}

/* A region that was registered as zero-based begins at the address 0, and IBTA
 * 10.6.7.2.2 lets no window be bound to the region.  Expects that a binding
 * also fails after ibv_rereg_mr has changed the region: by a call with the
 * flags `first`, and, unless `then` is 0, by a second call with the flags
 * `then`. */
static void stays_zero_based(int first, int then)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
	struct window w;

	endpoint_open_pair(e);
	w.mr = ibv_reg_mr(e[1].pd, e[1].region, ENDPOINT_SIZE,
			  MR_RIGHTS | IBV_ACCESS_ZERO_BASED);
	w.mw = ibv_alloc_mw(e[1].pd, IBV_MW_TYPE_2);
	EXPECT(w.mr && w.mw);
	EXPECT(rereg_in_place(w.mr, first) == 0);
	EXPECT(!then || rereg_in_place(w.mr, then) == 0);
	wr.bind_mw.mw = w.mw;
	wr.bind_mw.rkey = 1;
	wr.bind_mw.bind_info = info_of(&w, WINDOW_BYTES);
	wr.bind_mw.bind_info.addr = 0;
	EXPECT(post_and_wait(&e[1], &wr) == IBV_WC_MW_BIND_ERR);
	window_close(&w);
	endpoint_close_pair(e);
}

static void a_rereg_keeps_a_region_zero_based(void)
{
	const int access = IBV_REREG_MR_CHANGE_ACCESS,
		  pd = IBV_REREG_MR_CHANGE_PD;

	stays_zero_based(pd, 0);
	stays_zero_based(access, 0);
	stays_zero_based(access, pd);
	stays_zero_based(access | pd, 0);
}

/* Expects that a binding fails if the queue pair is of another protection
 * domain than the window and the region.  For type 1 also expects that a region
 * of the queue pair's domain is refused. */
static void a_binding_across_domains(enum ibv_mw_type type)
{
	struct ibv_mw_bind of_1 = {.send_flags = IBV_SEND_SIGNALED};
	struct ibv_pd *pd;
	struct window w;

	endpoint_open_pair(e);
	pd = ibv_alloc_pd(e[1].ctx);
	w = window_open(pd, type);
	of_1.bind_info = info_of(&w, WINDOW_BYTES);
	if (type == IBV_MW_TYPE_1) {
		of_1.bind_info.mr = e[1].mr;
		EXPECT(ibv_bind_mw(e[1].qp, w.mw, &of_1) == EPERM);
		of_1.bind_info.mr = w.mr;
		EXPECT(ibv_bind_mw(e[1].qp, w.mw, &of_1) == 0);
		EXPECT(next_completion(&e[1]).status == IBV_WC_MW_BIND_ERR);
	} else {
		EXPECT(bind_window(&w, 1, WINDOW_BYTES) == IBV_WC_MW_BIND_ERR);
	}
	window_close(&w);
	EXPECT(ibv_dealloc_pd(pd) == 0);
	endpoint_close_pair(e);
}

static void bindings_across_domains_complete_in_error(void)
{
	a_binding_across_domains(IBV_MW_TYPE_1);
	a_binding_across_domains(IBV_MW_TYPE_2);
}

int main(void)
{
	check_run("a region has one key for both sides", a_region_has_one_key);
	check_run("read-only memory is registered for reading only",
		  read_only_memory_is_registered_for_reading);
	check_run("a rereg that the library refuses is an input error",
		  a_rereg_that_the_library_refuses);
	check_run("a rereg that the kernel refuses is a command error",
		  a_rereg_that_the_kernel_refuses);
	check_run("a rereg changes a region's length and key",
		  a_rereg_changes_the_length);
	check_run("a rereg without a new address keeps a region zero-based",
		  a_rereg_keeps_a_region_zero_based);
	check_run("a new key has the lower 8 bits given",
		  a_new_key_has_the_lower_8_bits_given);
	check_run("ibv_wr_bind_mw gives a window a new key",
		  a_key_is_given_by_ibv_wr_bind_mw);
	check_run("a key is not given by a series that is not posted",
		  a_key_is_not_given_by_a_series_that_is_not_posted);
	check_run("a window of type 2 is never bound to zero bytes",
		  type_2_is_never_bound_to_nothing);
	check_run("a window of type 1 is never zero-based",
		  type_1_is_never_zero_based);
	check_run("bindings across domains complete in error",
		  bindings_across_domains_complete_in_error);
	return check_end();
}
