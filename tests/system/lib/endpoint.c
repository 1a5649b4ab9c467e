/* SPDX-License-Identifier: BSD-2-Clause */
#include "endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Unless @good, prints a message on stdout and ends the program; stderr is for
 * adverb's messages.  Unlike check_need, this function prints a line for a case
 * named `set-up`, which has failed, and a line with the numbers of cases, so
 * that a Suite reports the failure. */
static void need_good(bool good, const char *what)
{
	if (good)
		return;
	printf("FAIL set-up: %s: %s\n0 passed, 1 failed, 0 skipped\n", what,
	       strerror(errno));
	exit(1);
}

/* The memfds of endpoint_memory.  They stay open while their memory is mapped,
 * so that peers can open them through /proc. */
static struct {
	void *at;
	int fd;
} files[64];

static void keep_file(void *at, int fd)
{
	int i = 0;

	while (i < 63 && files[i].at)
		i++;
	need_good(!files[i].at, "too much memory of memfds");
	files[i].at = at;
	files[i].fd = fd;
}

void *endpoint_memory(size_t bytes)
{
	const char *value = getenv("ENDS_SHARED");
	int fd = -1;
	void *p;

	if (value && !strcmp(value, "1")) {
		fd = memfd_create("ends", MFD_CLOEXEC);
		need_good(fd >= 0, "memfd_create");
		need_good(!ftruncate(fd, (off_t)bytes), "ftruncate");
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	need_good(p != MAP_FAILED, "mmap");
	if (fd >= 0)
		keep_file(p, fd);
	return p;
}

void endpoint_memory_free(void *p, size_t bytes)
{
	munmap(p, bytes);
	for (int i = 0; i < 64; i++)
		if (files[i].at == p) {
			files[i].at = NULL;
			close(files[i].fd);
		}
}

static void open_region(struct endpoint *e, int access)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	e->map_size = ENDPOINT_SIZE + 2 * page;
	e->map = endpoint_memory(e->map_size);
	e->region = e->map + page;
	memset(e->map, ENDPOINT_GUARD, e->map_size);
	memset(e->region, ENDPOINT_FILL, ENDPOINT_SIZE);
	e->mr = ibv_reg_mr(e->pd, e->region, ENDPOINT_SIZE, access);
	need_good(e->mr, "ibv_reg_mr");
}

static void to_init(struct endpoint *e, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = (unsigned)access,
	};

	errno = ibv_modify_qp(e->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS);
	need_good(errno == 0, "ibv_modify_qp to INIT");
}

static void open_qp(struct endpoint *e, struct ibv_srq *srq, int access)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = ENDPOINT_DEPTH,
			.max_recv_wr = ENDPOINT_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	e->qp = ibv_create_qp(e->pd, &init);
	need_good(e->qp, "ibv_create_qp");
	to_init(e, access);
}

void endpoint_replace_qp(struct endpoint *e, struct ibv_qp *qp, int qp_access)
{
	errno = ibv_destroy_qp(e->qp);
	need_good(errno == 0, "ibv_destroy_qp");
	need_good(qp, "another queue pair");
	e->qp = qp;
	to_init(e, qp_access);
}

void endpoint_open(struct endpoint *e, int access, int qp_access)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(e, 0, sizeof(*e));
	e->timeout = 14;
	need_good(list && list[0], "ibv_get_device_list");
	e->ctx = ibv_open_device(list[0]);
	need_good(e->ctx, "ibv_open_device");
	ibv_free_device_list(list);
	e->pd = ibv_alloc_pd(e->ctx);
	need_good(e->pd, "ibv_alloc_pd");
	e->channel = ibv_create_comp_channel(e->ctx);
	need_good(e->channel, "ibv_create_comp_channel");
	e->cq = ibv_create_cq(e->ctx, 4 * ENDPOINT_DEPTH, NULL, e->channel, 0);
	need_good(e->cq, "ibv_create_cq");
	open_region(e, access);
	open_qp(e, NULL, qp_access);
}

struct endpoint endpoint_beside(const struct endpoint *e, struct ibv_srq *srq,
				int qp_access)
{
	struct endpoint other = *e;

	open_qp(&other, srq, qp_access);
	return other;
}

void endpoint_close(struct endpoint *e)
{
	errno = ibv_destroy_qp(e->qp);
	need_good(errno == 0, "ibv_destroy_qp");
	errno = e->mr ? ibv_dereg_mr(e->mr) : 0;
	need_good(errno == 0, "ibv_dereg_mr");
	errno = ibv_destroy_cq(e->cq);
	need_good(errno == 0, "ibv_destroy_cq");
	errno = ibv_destroy_comp_channel(e->channel);
	need_good(errno == 0, "ibv_destroy_comp_channel");
	errno = ibv_dealloc_pd(e->pd);
	need_good(errno == 0, "ibv_dealloc_pd");
	need_good(ibv_close_device(e->ctx) == 0, "ibv_close_device");
	endpoint_memory_free(e->map, e->map_size);
}

void endpoint_address_get(const struct endpoint *e,
			  struct endpoint_address *address)
{
	memset(address, 0, sizeof(*address));
	need_good(ibv_query_gid(e->ctx, 1, ENDPOINT_GID_INDEX, &address->gid) ==
			  0,
		  "ibv_query_gid");
	address->region = (uintptr_t)e->region;
	address->qpn = e->qp->qp_num;
	address->psn = (e->qp->qp_num * 2654435761u) & 0xFFFFFF;
	address->rkey = e->mr->rkey;
}

void endpoint_to_rtr(struct endpoint *e, const struct endpoint_address *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = ENDPOINT_GID_INDEX,
				    .hop_limit = 64}},
	};

	errno = ibv_modify_qp(e->qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
	need_good(errno == 0, "ibv_modify_qp to RTR");
}

void endpoint_to_rts(struct endpoint *e, const struct endpoint_address *self,
		     uint8_t rnr_retry)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = e->timeout,
		.retry_cnt = 3,
		.rnr_retry = rnr_retry,
		.sq_psn = self->psn,
		.max_rd_atomic = 4,
	};

	errno = ibv_modify_qp(e->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	need_good(errno == 0, "ibv_modify_qp to RTS");
}

void endpoint_connect(struct endpoint *a, struct endpoint *b)
{
	struct endpoint_address at_a, at_b;

	endpoint_address_get(a, &at_a);
	endpoint_address_get(b, &at_b);
	endpoint_to_rtr(a, &at_b);
	endpoint_to_rtr(b, &at_a);
	endpoint_to_rts(a, &at_a, 0);
	endpoint_to_rts(b, &at_b, 0);
}

void endpoint_open_pair(struct endpoint e[2])
{
	for (int i = 0; i < 2; i++)
		endpoint_open(&e[i],
			      IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
			      ENDPOINT_ALL_REMOTE);
	endpoint_connect(&e[0], &e[1]);
}

void endpoint_close_pair(struct endpoint e[2])
{
	endpoint_close(&e[0]);
	endpoint_close(&e[1]);
}

bool endpoint_wait(struct endpoint *e, struct ibv_wc *wc)
{
	struct timespec now;
	long long end_ms = 0, now_ms;
	int n;

	do {
		n = ibv_poll_cq(e->cq, 1, wc);
		need_good(n >= 0, "ibv_poll_cq");
		/* The limit is processor time: time in which the thread does
		 * not run does not count. */
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
		now_ms = (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
		if (end_ms == 0)
			end_ms = now_ms + ENDPOINT_WAIT_MS;
	} while (n == 0 && now_ms < end_ms);
	return n == 1;
}

enum ibv_qp_state endpoint_state(const struct endpoint *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	errno = ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init);
	need_good(errno == 0, "ibv_query_qp");
	return attr.qp_state;
}

static bool is_filled(const uint8_t *from, const uint8_t *to, uint8_t byte)
{
	for (; from < to; from++) {
		if (*from != byte)
			return false;
	}
	return true;
}

bool endpoint_guarded(const struct endpoint *e)
{
	return is_filled(e->map, e->region, ENDPOINT_GUARD) &&
	       is_filled(e->region + ENDPOINT_SIZE, e->map + e->map_size,
			 ENDPOINT_GUARD);
}

bool endpoint_untouched(const struct endpoint *e)
{
	return is_filled(e->region, e->region + ENDPOINT_SIZE, ENDPOINT_FILL);
}
