/* SPDX-License-Identifier: BSD-2-Clause */
#include "traffic.h"

#include "step_timeout.h"

#include <stdlib.h>

enum {
	PAGE = 4096,
	SLOTS = 64, /* so many that a slot is checked before it is reused */
	FIXED = 65536,
	LONG = 65536,
	/* Offsets of the parts of an area; guard pages separate the parts. */
	AT_NUMBERED = 0,
	AT_FIXED = AT_NUMBERED + SLOTS * TRAFFIC_BYTES + PAGE,
	AT_WORD = AT_FIXED + FIXED + PAGE,
	AT_LONG = AT_WORD + 8 + PAGE - 8,
	AT_RECEIVED = AT_LONG + LONG + PAGE,
	AT_OUT = AT_RECEIVED + TRAFFIC_RECEIVES * TRAFFIC_BYTES + PAGE,
	AT_READ = AT_OUT + TRAFFIC_WINDOW * TRAFFIC_BYTES + PAGE,
	AREA = AT_READ + TRAFFIC_WINDOW * TRAFFIC_BYTES,
	POOL = TRAFFIC_POOL * TRAFFIC_BYTES,
	RECEIVE = 1 << 30, /* in the wr_id of a receive */
};

/* Kinds of requests; the first three are numbered messages. */
enum { SEND, SEND_IMM, WRITE_IMM, WRITE, READ, ADD, OPS };

_Static_assert((int)AREA == (int)TRAFFIC_SPAN, "the parts fill an area");

static const enum ibv_wr_opcode wr_of[OPS] = {
	[SEND] = IBV_WR_SEND,
	[SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[WRITE] = IBV_WR_RDMA_WRITE,
	[READ] = IBV_WR_RDMA_READ,
	[ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
};

static const enum ibv_wc_opcode wc_of[OPS] = {
	[SEND] = IBV_WC_SEND,
	[SEND_IMM] = IBV_WC_SEND,
	[WRITE_IMM] = IBV_WC_RDMA_WRITE,
	[WRITE] = IBV_WC_RDMA_WRITE,
	[READ] = IBV_WC_RDMA_READ,
	[ADD] = IBV_WC_FETCH_ADD,
};

static void end_failed(const struct traffic_link *l, const char *what,
		       unsigned long long value)
{
	printf("process %d, link %u: %s (%llu)\n", (int)getpid(), l ? l->id : 0,
	       what, value);
	fflush(stdout);
	_exit(1);
}

/* ---- the contents of messages and memory, which both ends compute ---- */

static uint32_t mix_words(uint32_t a, uint32_t b)
{
	uint32_t x = a * 2654435761u ^ b * 2246822519u;

	x ^= x >> 15;
	x *= 2654435761u;
	return x ^ x >> 13;
}

static int kind_of(uint32_t id, uint32_t message)
{
	return (int)(mix_words(id, message) % 3);
}

static uint32_t bytes_of(uint32_t id, uint32_t message)
{
	uint32_t x = mix_words(id + 7, message);

	return x % 4 ? x / 4 % 64 : x / 4 % (TRAFFIC_BYTES + 1);
}

static uint8_t byte_of(uint32_t id, uint32_t message, uint32_t i)
{
	return (uint8_t)(id * 37 + message * 11 + i * 7 + i / 256);
}

static uint8_t fixed_byte(uint32_t id, uint32_t i)
{
	return (uint8_t)(id * 5 + i * 3 + i / 256);
}

/* ---- memory ---- */

static void area_open(struct traffic_area *a, struct ibv_pd *pd, size_t bytes)
{
	uint8_t *map = endpoint_memory(bytes + 2 * PAGE);

	memset(map, ENDPOINT_GUARD, bytes + 2 * PAGE);
	a->bytes = map + PAGE;
	a->mr = ibv_reg_mr(pd, a->bytes, bytes,
			   IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE);
	if (!a->mr)
		step_timeout_die("reg_mr");
}

static void check_guard(const struct traffic_link *l, const uint8_t *guard,
			uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (guard[i] != ENDPOINT_GUARD)
			end_failed(l, "a byte of a guard page was written", i);
}

static void area_check(const struct traffic_link *l)
{
	const uint8_t *b = l->area.bytes;

	check_guard(l, b - PAGE, PAGE);
	check_guard(l, b + AT_FIXED - PAGE, PAGE);
	check_guard(l, b + AT_WORD - PAGE, PAGE);
	check_guard(l, b + AT_WORD + 8, PAGE - 8);
	check_guard(l, b + AT_RECEIVED - PAGE, PAGE);
	check_guard(l, b + AT_OUT - PAGE, PAGE);
	check_guard(l, b + AT_READ - PAGE, PAGE);
	check_guard(l, b + AREA, PAGE);
	for (uint32_t i = 0; i < FIXED; i++)
		if (b[AT_FIXED + i] != fixed_byte(l->id, i))
			end_failed(l, "a byte that peers only read has changed",
				   i);
}

static void area_close(struct traffic_area *a, size_t bytes)
{
	if ((errno = ibv_dereg_mr(a->mr)))
		step_timeout_die("dereg_mr");
	endpoint_memory_free(a->bytes - PAGE, bytes + 2 * PAGE);
}

/* ---- receives ---- */

static void post_receive(struct traffic_link *l, uint32_t slot)
{
	struct traffic_area *a = l->is_shared ? &l->line->pool : &l->area;
	uint64_t at = l->is_shared ? 0 : AT_RECEIVED;
	struct ibv_sge sge = {(uintptr_t)a->bytes + at + slot * TRAFFIC_BYTES,
			      TRAFFIC_BYTES, a->mr->lkey};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = RECEIVE | slot, .sg_list = &sge, .num_sge = 1};

	errno = l->is_shared ? ibv_post_srq_recv(l->line->srq, &wr, &bad)
			     : ibv_post_recv(l->e.qp, &wr, &bad);
	if (errno)
		step_timeout_die("post_recv");
}

static void judge_message(struct traffic_link *l, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id & (RECEIVE - 1), n = l->heard++;
	uint32_t bytes = bytes_of(l->id, n);
	int kind = kind_of(l->id, n);
	const uint8_t *m = l->is_shared ? l->line->pool.bytes
					: l->area.bytes + AT_RECEIVED;

	m += slot * TRAFFIC_BYTES;
	if (kind == WRITE_IMM)
		m = l->area.bytes + AT_NUMBERED + n % SLOTS * TRAFFIC_BYTES;
	if (wc->opcode !=
	    (kind == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		end_failed(l, "a message of the wrong kind", n);
	if (wc->byte_len != bytes)
		end_failed(l, "a message of the wrong length", wc->byte_len);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) != (kind == SEND) ||
	    (kind != SEND && wc->imm_data != n))
		end_failed(l, "a message with the wrong immediate data", n);
	for (uint32_t i = 0; i < bytes; i++)
		if (m[i] != byte_of(l->id, n, i))
			end_failed(l, "a message differs from what was sent",
				   n);
}

/* Checks a flushed receive.  The SRQ loses at most one receive per link: the
 * receive that the peer had taken from the SRQ when the peer was killed. */
static void judge_flush(struct traffic_link *l, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		end_failed(l, ibv_wc_status_str(wc->status), wc->wr_id);
	if (!l->is_in_error && !l->has_failed)
		end_failed(l, "a receive is flushed", wc->wr_id);
	if (l->is_shared && (!l->doom || l->flushed++))
		end_failed(l, "a receive of the shared queue is flushed",
			   wc->wr_id);
}

static void judge_receive(struct traffic_link *l, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		judge_message(l, wc);
	else
		judge_flush(l, wc);
	l->receives--;
	if ((wc->status && !l->is_shared) || l->line->keeps)
		return;
	post_receive(l, (uint32_t)wc->wr_id & (RECEIVE - 1));
	l->receives++;
}

/* ---- requests ---- */

/* Returns the length of the next request, and writes the bytes of a numbered
 * message to @out. */
static uint32_t prepare_request(struct traffic_link *l, int op, uint8_t *out)
{
	uint32_t n = l->spoken, bytes;

	if (op > WRITE_IMM)
		return op == ADD ? 8
		       : op == WRITE
			       ? mix_words(l->id, l->posted) % LONG
			       : mix_words(l->id, l->posted) % TRAFFIC_BYTES;
	bytes = bytes_of(l->id, n);
	for (uint32_t i = 0; i < bytes; i++)
		out[i] = byte_of(l->id, n, i);
	l->spoken++;
	return bytes;
}

/* Sets the remote address and the rkey of *wr. */
static void set_remote(const struct traffic_link *l, int op, uint32_t message,
		       struct ibv_send_wr *wr)
{
	uint64_t to = l->peer.region;

	wr->wr.rdma.rkey = l->peer.rkey;
	if (op == WRITE_IMM)
		to += AT_NUMBERED + message % SLOTS * TRAFFIC_BYTES;
	else if (op == WRITE)
		to += AT_LONG;
	else if (op == READ)
		to += AT_FIXED + l->posted * 64 % (FIXED - TRAFFIC_BYTES);
	wr->wr.rdma.remote_addr = to;
	if (op == ADD) {
		wr->wr.atomic.remote_addr = l->peer.region + AT_WORD;
		wr->wr.atomic.compare_add = 1;
		wr->wr.atomic.rkey = l->peer.rkey;
	}
}

static void post_one(struct traffic_link *l, int op)
{
	uint32_t slot = l->posted % TRAFFIC_WINDOW, n = l->spoken;
	uint64_t at = op == READ || op == ADD ? AT_READ : AT_OUT;
	uint8_t *near = l->area.bytes + at + slot * TRAFFIC_BYTES;
	uint32_t bytes = prepare_request(l, op, near);
	struct ibv_sge sge = {(uintptr_t)near, bytes, l->area.mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = l->posted,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = wr_of[op],
				       .imm_data = n};

	if (op == WRITE)
		sge.addr = (uintptr_t)l->area.bytes + AT_LONG;
	set_remote(l, op, n, &wr);
	l->asked[slot] = (struct traffic_asked){op, bytes};
	/* The atomic is counted before the post: the atomic may be executed at
	 * once, and the executed atomics must not outnumber the counted ones.
	 * Relaxed: the reader loads the counts only after it has seen, by
	 * step_timeout_look, that this process has ended or has executed
	 * another program. */
	if (op == ADD && l->added_posted)
		__atomic_fetch_add(l->added_posted, 1, __ATOMIC_RELAXED);
	if ((errno = ibv_post_send(l->e.qp, &wr, &bad)))
		step_timeout_die("post_send");
	l->posted++;
}

static void post_any(struct traffic_link *l)
{
	static const int others[] = {ADD, READ, WRITE, WRITE};
	uint32_t choice = mix_words(l->id + 3, l->posted) % 8;

	post_one(l,
		 choice < 4 ? kind_of(l->id, l->spoken) : others[choice - 4]);
}

static void judge_answer(struct traffic_link *l, uint32_t slot)
{
	const struct traffic_asked *a = &l->asked[slot];
	const uint8_t *near = l->area.bytes + AT_READ + slot * TRAFFIC_BYTES;
	uint32_t from = l->ended * 64 % (FIXED - TRAFFIC_BYTES);
	uint64_t found;

	if (a->op == READ)
		for (uint32_t i = 0; i < a->bytes; i++)
			if (near[i] != fixed_byte(l->id, from + i))
				end_failed(l, "a READ gives wrong bytes", i);
	if (a->op != ADD)
		return;
	memcpy(&found, near, sizeof(found));
	if (found != l->last_found)
		end_failed(l, "a FETCH_ADD returns a wrong value", found);
	l->last_found++;
	/* Relaxed, for the same reason as added_posted in post_one. */
	if (l->added_done)
		__atomic_fetch_add(l->added_done, 1, __ATOMIC_RELAXED);
}

static void judge_request(struct traffic_link *l, const struct ibv_wc *wc)
{
	uint32_t slot = l->ended % TRAFFIC_WINDOW;
	enum ibv_wc_status bad = l->has_failed || l->is_in_error
					 ? IBV_WC_WR_FLUSH_ERR
					 : IBV_WC_RETRY_EXC_ERR;

	if (wc->wr_id != l->ended)
		end_failed(l, "a completion is out of order", wc->wr_id);
	if (wc->status == IBV_WC_SUCCESS) {
		if (l->has_failed || (l->is_gone && l->ended >= l->gone_from))
			end_failed(l, "a request to a dead peer succeeds",
				   wc->wr_id);
		if (wc->opcode != wc_of[l->asked[slot].op])
			end_failed(l, "a completion of the wrong opcode",
				   wc->opcode);
		judge_answer(l, slot);
	} else if (!l->doom || !step_timeout_look(l->doom)) {
		end_failed(l, ibv_wc_status_str(wc->status), wc->wr_id);
	} else if (wc->status != bad) {
		end_failed(l, ibv_wc_status_str(wc->status), wc->vendor_err);
	}
	l->has_failed |= wc->status != IBV_WC_SUCCESS;
	l->ended++;
}

/* ---- lines and links ---- */

static void judge_completion(struct traffic_line *line, const struct ibv_wc *wc)
{
	struct traffic_link *l = NULL;

	for (int i = 0; i < TRAFFIC_LINKS && !l; i++)
		if (line->link[i] && line->link[i]->e.qp->qp_num == wc->qp_num)
			l = line->link[i];
	if (!l)
		end_failed(NULL, "a completion of no link's queue pair",
			   wc->qp_num);
	else if (wc->wr_id & RECEIVE)
		judge_receive(l, wc);
	else
		judge_request(l, wc);
}

int traffic_turn(struct traffic_line *line)
{
	struct ibv_wc wc[8];
	int n = ibv_poll_cq(line->e.cq, 8, wc);

	if (n < 0)
		step_timeout_die("poll_cq");
	line->done += (unsigned)n;
	for (int i = 0; i < n; i++)
		judge_completion(line, &wc[i]);
	for (int i = 0; i < TRAFFIC_LINKS; i++) {
		struct traffic_link *l = line->link[i];

		if (l && l->initiates && !l->has_failed &&
		    l->posted - l->ended < TRAFFIC_WINDOW)
			post_any(l);
	}
	return n;
}

void traffic_say(struct traffic_link *l, int count)
{
	for (; count > 0; count--) {
		while (l->posted - l->ended == TRAFFIC_WINDOW)
			traffic_turn(l->line);
		post_one(l, kind_of(l->id, l->spoken));
	}
}

void traffic_bereave(struct traffic_link *l)
{
	l->initiates = false;
	while (l->posted - l->ended == TRAFFIC_WINDOW)
		traffic_turn(l->line);
	l->is_gone = true;
	l->gone_from = l->posted;
	post_any(l);
}

bool traffic_is_idle(const struct traffic_link *l)
{
	return l->posted == l->ended;
}

void traffic_open(struct traffic_line *line, bool shared)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = TRAFFIC_POOL, .max_sge = 1}};

	memset(line, 0, sizeof(*line));
	endpoint_open(&line->e, IBV_ACCESS_LOCAL_WRITE, 0);
	if (!shared)
		return;
	area_open(&line->pool, line->e.pd, POOL);
	line->srq = ibv_create_srq(line->e.pd, &init);
	if (!line->srq)
		step_timeout_die("create_srq");
	for (uint32_t i = 0; i < TRAFFIC_POOL; i++)
		post_receive(
			&(struct traffic_link){.line = line, .is_shared = true},
			i);
}

void traffic_close(struct traffic_line *line)
{
	if (line->srq && (errno = ibv_destroy_srq(line->srq)))
		step_timeout_die("destroy_srq");
	if (line->srq)
		area_close(&line->pool, POOL);
	endpoint_close(&line->e);
}

void traffic_add(struct traffic_line *line, struct traffic_link *l, uint32_t id)
{
	int i = 0;

	l->line = line;
	l->id = id;
	while (line->link[i])
		i++;
	line->link[i] = l;
	l->e = endpoint_beside(&line->e, l->is_shared ? line->srq : NULL,
			       ENDPOINT_ALL_REMOTE);
	area_open(&l->area, line->e.pd, AREA);
	memset(l->area.bytes + AT_WORD, 0, 8);
	for (uint32_t k = 0; k < FIXED; k++)
		l->area.bytes[AT_FIXED + k] = fixed_byte(id, k);
	for (; !l->is_shared && l->receives < TRAFFIC_RECEIVES; l->receives++)
		post_receive(l, (uint32_t)l->receives);
	endpoint_address_get(&l->e, &l->self);
	l->self.region = (uintptr_t)l->area.bytes;
	l->self.rkey = l->area.mr->rkey;
}

/* Sets a timeout so short that adverb asks the broker about a silent peer after
 * about 2 ms. */
void traffic_connect(struct traffic_link *l)
{
	struct ibv_qp_attr hasty = {.qp_state = IBV_QPS_RTS,
				    .timeout = 8,
				    .retry_cnt = 1,
				    .rnr_retry = 7,
				    .sq_psn = l->self.psn,
				    .max_rd_atomic = 4};

	endpoint_to_rtr(&l->e, &l->peer);
	errno = ibv_modify_qp(l->e.qp, &hasty,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		step_timeout_die("modify to RTS");
}

uint64_t traffic_remove(struct traffic_line *line, struct traffic_link *l)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	uint64_t added;

	l->initiates = false;
	l->is_in_error = true;
	if ((errno = ibv_modify_qp(l->e.qp, &err, IBV_QP_STATE)))
		step_timeout_die("modify to ERR");
	while (!traffic_is_idle(l) || (!l->is_shared && l->receives))
		traffic_turn(line);
	/* ibv_destroy_qp drops the completions that were not polled, among them
	 * those of receives that the queue pair has taken from the SRQ.  So all
	 * completions are polled before. */
	while (l->is_shared && traffic_turn(line))
		;
	for (int i = 0; i < TRAFFIC_LINKS; i++)
		if (line->link[i] == l)
			line->link[i] = NULL;
	if ((errno = ibv_destroy_qp(l->e.qp)))
		step_timeout_die("destroy_qp");
	area_check(l);
	memcpy(&added, l->area.bytes + AT_WORD, sizeof(added));
	area_close(&l->area, AREA);
	return added;
}
