/* SPDX-License-Identifier: BSD-2-Clause */
#include "scenario/crash_point.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "util/step.h"

#define DEAD   100
#define LIVING 7

/* ---- steps ---- */

static const char *const steps[] = {
	"the access slot is set",
	"the access slot is cleared",
	"the responder is locked",
	"the responder is about to be unlocked",
	"the responder is unlocked",
	"the first request is heard",
	"notify bits are set",
	"a row's notify bit is set",
	"notify bits are pending",
	"memory is written",
	"a series has moved",
	"memory is read",
	"a receive is held",
	"a receive is filled",
	"a receive is about to complete",
	"a receive is complete",
	"a completion is left",
	"completions are about to be announced",
	"completions are announced",
	"a shared receive is about to be taken",
	"a shared receive is held",
	"a shared receive is taken",
	"a shared receive is its own",
	"a limit's event is raised",
	"a queue is found armed",
	"an event is raised",
	"a window's key is judged",
	"a window's key is gone",
	"an atomic is executed",
	"an atomic is described",
	"an atomic is asked for",
	"a note says why",
	"the responder has failed",
};

/* Steps of the owner of the queues.  No process is made to end at these steps.
 */
static const char *const owners_steps[] = {
	"completions are about to be collected",
	"the list is taken",
	"a queue pair is about to leave the list",
	"a queue pair is off the list",
	"a completion is about to be collected",
	"a completion is collected",
	"a completion queue is looked at",
};

/* A step of a peer that copies.  No process is made to end here, since the
 * owner waits for that peer. */
static const char copying_step[] = "a key's row is found";

/* Each lookup of a key comes to this step, even a lookup by the owner of the
 * memory.  No process is made to end here. */
static const char looking_step[] = "a key's range is judged";

struct crash_point_play crash_point_now;
static bool is_seen[TEST_COUNT(steps)];

static void end_target(struct two_hcas *d)
{
	two_hcas_end_process(d, 1);
	d->side[1].memory.size = 0;
	d->side[1].is_dead = true;
}

/* The target deregisters its region, and writes other bytes to its memory. */
static void take_region(struct two_hcas *d)
{
	struct two_hcas_side *t = &d->side[1];
	access_set keys = access_key(t->mr->lkey) | access_key(t->mr->rkey);

	assert_int_equal(mr_free(&t->hca, t->mr), 0);
	access_wait(&t->hca, keys);
	eager_settle(&t->hca);
	memset(t->memory.bytes + CRASH_POINT_AT, 0x77, CRASH_POINT_BYTES);
}

static void run_other_thread(void)
{
	void (*run)(void) = crash_point_now.other;

	if (!run || crash_point_now.other_left-- > 0)
		return;
	crash_point_now.other = NULL;
	run();
}

void step_at(const char *name)
{
	size_t i = 0;

	if (crash_point_now.look &&
	    !strcmp(name, "a completion queue is looked at") &&
	    !--crash_point_now.look)
		cq_collect(&crash_point_now.collects->hca,
			   crash_point_now.collects->cq, NULL);
	if (!strcmp(copying_step, name) || !strcmp(looking_step, name))
		return;
	for (size_t k = 0; k < TEST_COUNT(owners_steps); k++)
		if (!strcmp(owners_steps[k], name))
			return;
	while (i < TEST_COUNT(steps) && strcmp(steps[i], name) != 0)
		i++;
	if (i == TEST_COUNT(steps))
		fail_msg("a step that is not listed here: %s", name);
	if (!crash_point_now.is_first)
		return;
	run_other_thread();
	if (crash_point_now.victim == CRASH_POINT_NOBODY)
		return;
	is_seen[i] = true;
	if (crash_point_now.left-- > 0)
		return;
	if (crash_point_now.victim == CRASH_POINT_INITIATOR)
		longjmp(crash_point_now.death, 1);
	if (crash_point_now.victim == CRASH_POINT_TARGET)
		end_target(crash_point_now.d);
	else
		take_region(crash_point_now.d);
	crash_point_now.victim = CRASH_POINT_NOBODY;
}

const char *crash_point_unseen(void)
{
	for (size_t i = 0; i < TEST_COUNT(steps); i++)
		if (!is_seen[i])
			return steps[i];
	return NULL;
}

static bool is_dead(alock_owner owner)
{
	return owner == DEAD && !crash_point_now.is_stopped;
}

static void report_slow(alock_owner owner)
{
	fail_msg("a process waits for a dead process");
}

/* No other process lives that could release the lock. */
static bool wait_for(alock_owner owner)
{
	if (!is_dead(owner))
		fail_msg("a living process never released a lock");
	return true;
}

static const struct alock_judge judge = {is_dead, report_slow, NULL, wait_for};

void crash_point_turns(int side)
{
	crash_point_now.is_first = side == 0;
	alock_open(side == 0 && crash_point_now.victim == CRASH_POINT_INITIATOR
			   ? DEAD
			   : LIVING,
		   &judge);
}

/* ---- operations ---- */

const struct crash_point_operation
	crash_point_operations[CRASH_POINT_OPERATIONS] = {
		{HCA_WR_SEND, 0},
		{HCA_WR_SEND, CRASH_POINT_FEW},
		{HCA_WR_SEND, CRASH_POINT_SHARED},
		{HCA_WR_SEND, CRASH_POINT_SHARED | CRASH_POINT_FEW},
		{HCA_WR_SEND, CRASH_POINT_SHARED | CRASH_POINT_LIMITED},
		{HCA_WR_SEND, CRASH_POINT_SOLICITED},
		{HCA_WR_SEND, CRASH_POINT_SHARED | CRASH_POINT_SOLICITED},
		{HCA_WR_SEND, CRASH_POINT_MODERATED},
		{HCA_WR_SEND, CRASH_POINT_FULL},
		{HCA_WR_SEND, CRASH_POINT_FULL | CRASH_POINT_FEW},
		{HCA_WR_SEND, CRASH_POINT_TOO_LONG},
		{HCA_WR_SEND, CRASH_POINT_SHARED | CRASH_POINT_TOO_LONG},
		{HCA_WR_SEND_IMM, 0},
		{HCA_WR_SEND_INV, 0},
		{HCA_WR_SEND_INV, CRASH_POINT_SHARED},
		{HCA_WR_SEND_INV, CRASH_POINT_FEW},
		{HCA_WR_RDMA_WRITE, 0},
		{HCA_WR_RDMA_WRITE, CRASH_POINT_BAD_KEY},
		{HCA_WR_RDMA_WRITE_IMM, 0},
		{HCA_WR_RDMA_WRITE_IMM,
		 CRASH_POINT_SHARED | CRASH_POINT_SOLICITED},
		{HCA_WR_RDMA_READ, 0},
		{HCA_WR_RDMA_READ, CRASH_POINT_BAD_KEY},
		{HCA_WR_ATOMIC_FADD, 0},
		{HCA_WR_ATOMIC_FADD, CRASH_POINT_MAPPED},
		{HCA_WR_ATOMIC_WRITE, 0},
		{HCA_WR_SEND, CRASH_POINT_ROW | CRASH_POINT_FEW},
		{HCA_WR_SEND,
		 CRASH_POINT_ROW | CRASH_POINT_FEW | CRASH_POINT_SHARED},
		{HCA_WR_SEND,
		 CRASH_POINT_ROW | CRASH_POINT_FEW | CRASH_POINT_SOLICITED},
		{HCA_WR_SEND,
		 CRASH_POINT_ROW | CRASH_POINT_FEW | CRASH_POINT_MODERATED},
		{HCA_WR_SEND,
		 CRASH_POINT_ROW | CRASH_POINT_FEW | CRASH_POINT_FULL},
		{HCA_WR_RDMA_WRITE, CRASH_POINT_ROW | CRASH_POINT_FEW},
		{HCA_WR_RDMA_WRITE,
		 CRASH_POINT_ROW | CRASH_POINT_FEW | CRASH_POINT_BAD_KEY},
		{HCA_WR_RDMA_READ, CRASH_POINT_ROW | CRASH_POINT_FEW},
};

static void modify_third(struct crash_point *s, struct hca_qp_attr *a,
			 uint32_t mask)
{
	const char *why;

	assert_int_equal(engine_qp_modify(s->target->engine, s->third_side, a,
					  mask | HCA_QP_STATE, s->target->ip,
					  s->d->now_ns, &why),
			 0);
}

static void connect_third(struct crash_point *s)
{
	struct hca_qp_attr a = {
		.qp_state = HCA_QP_INIT, .port_num = 1, .access_flags = 15};

	modify_third(s, &a,
		     HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS);
	a = (struct hca_qp_attr){.qp_state = HCA_QP_RTR,
				 .path_mtu = 1,
				 .dest_qpn = 0x3001,
				 .rq_psn = 77,
				 .max_dest_rd_atomic = 4};
	a.ah.is_global = a.ah.local = 1;
	memcpy(a.ah.dgid, s->d->side[0].ip, 16);
	modify_third(s, &a,
		     HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
			     HCA_QP_RQ_PSN | HCA_QP_MAX_DEST_RD_ATOMIC |
			     HCA_QP_MIN_RNR_TIMER);
}

static void make_third(struct crash_point *s)
{
	struct two_hcas_side *t = s->target;
	struct hca_qp_cap cap = {1, 1, 1, 1, 0, t->srq};
	struct wqe *w;

	s->third = qp_new(&t->hca, CRASH_POINT_THIRD_QPN, HCA_QPT_RC, t->qp->pd,
			  t->cq, t->cq, &cap, false);
	assert_non_null(s->third);
	s->third_side = engine_qp_add(t->engine, s->third);
	connect_third(s);
	if (!t->srq) {
		w = wq_reserve(&t->hca, &s->third->rq);
		memset(w, 0, sizeof(*w));
		w->num_sge = 1;
		*wqe_sges(w) =
			(struct wq_sge){TWO_HCAS_BASE + CRASH_POINT_THIRD_AT,
					CRASH_POINT_BYTES, t->mr->lkey};
		wq_commit_recv(&t->hca, &s->third->rq, w->wr_id);
	}
	s->view = t->peers_view;
	s->link = (struct target_ref){.hca = &s->view,
				      .access = access_claim(&s->view),
				      .type = HCA_QPT_RC,
				      .qpn = CRASH_POINT_THIRD_QPN,
				      .src_qpn = 0x3001,
				      .src_psn = 77};
	assert_non_null(s->link.access);
	memcpy(s->link.src_ip, s->d->side[0].ip, 16);
	list_init(&s->link.to_wake);
}

/* Binds a window of the target, so that the initiator may invalidate it. */
static void bind_window(struct crash_point *s)
{
	struct two_hcas_side *t = s->target;
	struct mw_bind b = {.bytes = 4096,
			    .va = TWO_HCAS_BASE,
			    .region = t->mr->lkey,
			    .access = HCA_REMOTE_WRITE};

	s->window = mw_new(&t->hca, t->qp->pd, 2);
	assert_non_null(s->window);
	b.window = s->window->lkey;
	b.rkey = b.window ^ 9;
	assert_int_equal(mw_bind(&t->hca, t->qp, &b), MR_OK);
}

uint32_t crash_point_bytes(const struct crash_point_operation *o)
{
	if (o->op == HCA_WR_ATOMIC_FADD || o->op == HCA_WR_ATOMIC_WRITE)
		return 8;
	return o->how & CRASH_POINT_FEW ? CRASH_POINT_FEW_BYTES
					: CRASH_POINT_BYTES;
}

uint32_t crash_point_count(const struct crash_point_operation *o)
{
	return o->how & CRASH_POINT_ROW ? CRASH_POINT_ROW_LENGTH : 1;
}

void crash_point_post(struct crash_point *s)
{
	const struct crash_point_operation *o = s->o;

	for (uint32_t i = 0; i < crash_point_count(o); i++) {
		struct wqe *w =
			two_hcas_send(s->d, 0, o->op, 0, crash_point_bytes(o),
				      CRASH_POINT_AT);

		if (o->how & CRASH_POINT_SOLICITED)
			w->flags |= HCA_SEND_SOLICITED;
		if (o->how & CRASH_POINT_BAD_KEY)
			w->rkey ^= 0x100;
		if (o->op == HCA_WR_SEND_INV)
			w->imm_be = s->window->rkey;
		two_hcas_post(s->d, 0);
	}
}

/* Executes a WRITE of 0 bytes, which sets is_heard of the target.  Then the
 * initiator may execute several requests in one batch. */
static void be_heard(struct crash_point *s)
{
	struct cqe c;

	two_hcas_send(s->d, 0, HCA_WR_RDMA_WRITE, 0, 0, CRASH_POINT_AT);
	two_hcas_post(s->d, 0);
	two_hcas_run(s->d, s->d->now_ns);
	crash_point_turns(1);
	assert_true(two_hcas_poll(s->d, 0, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
}

void crash_point_prepare(struct crash_point *s,
			 const struct crash_point_operation *o)
{
	struct two_hcas *d = o->how & CRASH_POINT_SHARED
				     ? two_hcas_new_shared(1, 16)
				     : two_hcas_new(1, 16);
	struct two_hcas_side *t = &d->side[1];
	uint32_t room = o->how & CRASH_POINT_TOO_LONG ? 100 : CRASH_POINT_BYTES;

	*s = (struct crash_point){.o = o, .d = d, .target = t};
	crash_point_now.d = d;
	d->turns = crash_point_turns;
	atomic_store(&t->access->process.owner,
		     DEAD); /* the initiator's slot */
	crash_point_turns(1);
	memset(d->side[0].memory.bytes, 0x55, CRASH_POINT_BYTES);
	make_third(s);
	bind_window(s);
	for (uint32_t i = 0;
	     i < (crash_point_now.has_one ? 1 : CRASH_POINT_RECEIVES); i++)
		two_hcas_recv(d, 1, CRASH_POINT_AT, room);
	if (o->how & (CRASH_POINT_ROW | CRASH_POINT_HEARD))
		be_heard(s);
	if (o->how & CRASH_POINT_LIMITED)
		assert_false(srq_arm(&t->hca, t->srq, CRASH_POINT_RECEIVES));
	if (o->how & CRASH_POINT_MODERATED)
		cq_moderate(&t->hca, t->cq, 100, CRASH_POINT_PERIOD);
	if (o->how & CRASH_POINT_FULL)
		t->cq->cqe = 0;
	t->elsewhere.is_mapped = o->how & CRASH_POINT_MAPPED;
	cq_arm(t->cq, o->how & CRASH_POINT_SOLICITED);
}

void crash_point_begin(struct crash_point *s,
		       const struct crash_point_operation *o)
{
	crash_point_prepare(s, o);
	crash_point_post(s);
}

void crash_point_assert_unlocked(const struct crash_point *s)
{
	const struct two_hcas_side *t = s->target;

	assert_int_equal(alock_holder(&qp_target(t->qp)->lock), 0);
	assert_int_equal(alock_holder(&t->cq->lock), 0);
	assert_int_equal(alock_holder(&t->hca.shared->mr_lock), 0);
}

/* Another process sends to the same queues. */
void crash_point_send_third(struct crash_point *s)
{
	uint8_t data[CRASH_POINT_THIRD_BYTES];
	struct direct_request r = {.opcode = HCA_WR_SEND,
				   .total = sizeof(data),
				   .bytes = sizeof(data),
				   .data = data};

	memset(data, 0x66, sizeof(data));
	crash_point_turns(1);
	assert_int_equal(target_run(&s->link, &r), DIRECT_DONE);
}

/* The target learns of the initiator's death. */
void crash_point_repair(struct crash_point *s)
{
	struct two_hcas_side *t = s->target;

	crash_point_turns(1);
	assert_true(peer_death_repair(&t->hca));
	two_hcas_run(s->d, s->d->now_ns + 2 * CRASH_POINT_PERIOD);
	crash_point_assert_unlocked(s);
}

/* Engines of dead processes.  Nothing frees them, as after a real death; these
 * pointers keep the leak checker from reporting them. */
static struct engine *left[20000];
static uint32_t left_count;

void crash_point_end(struct crash_point *s)
{
	crash_point_turns(1);
	engine_qp_remove(s->target->engine, s->third_side);
	for (int i = 0; i < 2; i++)
		if (s->d->side[i].is_dead) {
			assert_true(left_count < TEST_COUNT(left));
			left[left_count++] = s->d->side[i].engine;
		}
	two_hcas_free(s->d);
	crash_point_now.is_first = false;
}

/* Returns whether the initiator of o died at step k. */
bool crash_point_begin_until(struct crash_point *s,
			     const struct crash_point_operation *o, uint32_t k)
{
	volatile bool ended = true;

	crash_point_begin(s, o);
	crash_point_now.victim = CRASH_POINT_INITIATOR;
	crash_point_now.left = k;
	if (!setjmp(crash_point_now.death)) {
		two_hcas_run(s->d, s->d->now_ns);
		ended = false;
	}
	crash_point_now.victim = CRASH_POINT_NOBODY;
	return ended;
}
