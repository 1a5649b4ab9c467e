/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Without packets the initiator works in the target's arena: here it dies, or
 * the target does, at each step (util/step.h) of each operation.
 *
 *	side[0] --- dies ------> side[1], which puts right what it left
 *	  a third process -----> the same queues, before that or after
 */
#include "test.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "direct/far.h"
#include "ibt/ibt.h"
#include "scenario/duo.h"
#include "util/step.h"

#define LONG	    (60ull * 1000000000)
#define DEAD	    100
#define LIVING	    7
#define BYTES	    2500 /* three pieces */
#define FEW_BYTES   40	 /* they stay with the receive at first */
#define AT	    66000
#define THIRD_AT    70000
#define THIRD_BYTES 16
#define RECEIVES    4
#define THIRD_QPN   0x2001u
#define PERIOD	    1000000
#define STEPS_MAX   400

/* ---- steps ---- */

static const char *const steps[] = {
	"the guest is inside",
	"the guest has left",
	"the responder is locked",
	"the responder is about to be unlocked",
	"the responder is unlocked",
	"the first request is heard",
	"a letter is written",
	"a letter is addressed",
	"a letter is there",
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
	"a limit's event is owed",
	"a queue is found armed",
	"an event is owed",
	"a window's key is gone",
	"an atomic is executed",
	"an atomic is described",
	"an atomic is asked for",
	"a note says why",
	"the responder has failed",
};

/* Of the owner, whose death ends what it does them for. */
static const char *const owners_steps[] = {
	"completions are about to be collected",
	"the list is taken",
	"a queue pair is about to leave the list",
	"a queue pair is off the list",
	"a completion is about to be collected",
	"a completion is collected",
	"a completion queue is looked at",
};

enum victim { NOBODY, INITIATOR, TARGET, REGION };

static struct {
	bool is_seen[TEST_COUNT(steps)];
	enum victim victim;
	uint32_t left; /* steps until it dies */
	uint32_t taken;
	jmp_buf death;
	struct duo *d;
	bool is_first;	 /* side 0 works */
	bool is_stopped; /* who died is stopped, and may go on */
	bool has_one;	 /* receive, the target */
	/* Another thread of the owner collects at this look, from 1, at the
	 * queue. */
	uint32_t look;
	struct duo_side *collects;
} now;

static void end_target(struct duo *d)
{
	d->side[1].hca.shared->pulse.word |= 0x40000000u;
	d->side[1].memory.size = 0;
	d->side[1].is_dead = true;
}

/* The target takes its region back, and fills it with something else. */
static void take_region(struct duo *d)
{
	struct duo_side *t = &d->side[1];
	guest_set keys = guest_key(t->mr->lkey) | guest_key(t->mr->rkey);

	assert_int_equal(mr_free(&t->hca, t->mr), 0);
	guest_wait(&t->hca, keys);
	carry_settle(&t->hca);
	memset(t->memory.bytes + AT, 0x77, BYTES);
}

void step_at(const char *name)
{
	size_t i = 0;

	if (now.look && !strcmp(name, "a completion queue is looked at") &&
	    !--now.look)
		cq_collect(&now.collects->hca, now.collects->cq, NULL);
	for (size_t k = 0; k < TEST_COUNT(owners_steps); k++)
		if (!strcmp(owners_steps[k], name))
			return;
	while (i < TEST_COUNT(steps) && strcmp(steps[i], name) != 0)
		i++;
	if (i == TEST_COUNT(steps))
		fail_msg("a step that is not listed here: %s", name);
	if (!now.is_first || now.victim == NOBODY)
		return;
	now.is_seen[i] = true;
	now.taken++;
	if (now.left-- > 0)
		return;
	if (now.victim == INITIATOR)
		longjmp(now.death, 1);
	if (now.victim == TARGET)
		end_target(now.d);
	else
		take_region(now.d);
	now.victim = NOBODY;
}

static bool is_dead(alock_owner owner)
{
	return owner == DEAD && !now.is_stopped;
}

static void is_slow(alock_owner owner)
{
	fail_msg("the dead are waited for");
}

/* Nobody else lives who could let go. */
static bool wait_for(alock_owner owner)
{
	if (!is_dead(owner))
		fail_msg("a lock was never given back");
	return true;
}

static const struct alock_judge judge = {is_dead, is_slow, NULL, wait_for};

static void turns(int side)
{
	now.is_first = side == 0;
	alock_open(side == 0 && now.victim == INITIATOR ? DEAD : LIVING,
		   &judge);
}

/* ---- operations ---- */

enum { SHARED = 1, SOLICITED = 2, MODERATED = 4, LIMITED = 8, FULL = 16 };
enum { BAD_KEY = 32, TOO_LONG = 64, FAILS = BAD_KEY | TOO_LONG, FEW = 128 };
enum { ROW = 256, ROW_LENGTH = 3 }; /* so many at once */
enum { MAPPED = 512 };		    /* by both */

static const struct operation {
	enum hca_wr op;
	uint32_t how;
} operations[] = {
	{HCA_WR_SEND, 0},
	{HCA_WR_SEND, FEW},
	{HCA_WR_SEND, SHARED},
	{HCA_WR_SEND, SHARED | FEW},
	{HCA_WR_SEND, SHARED | LIMITED},
	{HCA_WR_SEND, SOLICITED},
	{HCA_WR_SEND, SHARED | SOLICITED},
	{HCA_WR_SEND, MODERATED},
	{HCA_WR_SEND, FULL},
	{HCA_WR_SEND, FULL | FEW},
	{HCA_WR_SEND, TOO_LONG},
	{HCA_WR_SEND, SHARED | TOO_LONG},
	{HCA_WR_SEND_IMM, 0},
	{HCA_WR_SEND_INV, 0},
	{HCA_WR_SEND_INV, SHARED},
	{HCA_WR_SEND_INV, FEW},
	{HCA_WR_RDMA_WRITE, 0},
	{HCA_WR_RDMA_WRITE, BAD_KEY},
	{HCA_WR_RDMA_WRITE_IMM, 0},
	{HCA_WR_RDMA_WRITE_IMM, SHARED | SOLICITED},
	{HCA_WR_RDMA_READ, 0},
	{HCA_WR_RDMA_READ, BAD_KEY},
	{HCA_WR_ATOMIC_FADD, 0},
	{HCA_WR_ATOMIC_FADD, MAPPED},
	{HCA_WR_ATOMIC_WRITE, 0},
	{HCA_WR_SEND, ROW | FEW},
	{HCA_WR_SEND, ROW | FEW | SHARED},
	{HCA_WR_SEND, ROW | FEW | SOLICITED},
	{HCA_WR_SEND, ROW | FEW | MODERATED},
	{HCA_WR_SEND, ROW | FEW | FULL},
	{HCA_WR_RDMA_WRITE, ROW | FEW},
	{HCA_WR_RDMA_WRITE, ROW | FEW | BAD_KEY},
	{HCA_WR_RDMA_READ, ROW | FEW},
};

/* A world in which one operation is about to go. */
struct scene {
	const struct operation *o;
	struct duo *d;
	struct duo_side *target;
	struct mr *window;
	struct qp *third; /* the target's, to which another process sends */
	struct ibt_qp *third_side;
	struct hca view; /* that process's */
	struct far_link link;
};

static void modify_third(struct scene *s, struct hca_qp_attr *a, uint32_t mask)
{
	const char *why;

	assert_int_equal(engine_qp_modify(s->target->engine, s->third_side, a,
					  mask | HCA_QP_STATE, s->target->ip,
					  s->d->now_ns, &why),
			 0);
}

static void connect_third(struct scene *s)
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

static void make_third(struct scene *s)
{
	struct duo_side *t = s->target;
	struct hca_qp_cap cap = {1, 1, 1, 1, 0, t->srq};
	struct wqe *w;

	s->third = qp_new(&t->hca, THIRD_QPN, HCA_QPT_RC, t->qp->pd, t->cq,
			  t->cq, &cap, false);
	assert_non_null(s->third);
	s->third_side = engine_qp_add(t->engine, s->third);
	connect_third(s);
	if (!t->srq) {
		w = wq_reserve(&t->hca, &s->third->rq);
		memset(w, 0, sizeof *w);
		w->num_sge = 1;
		*wqe_sges(w) = (struct wq_sge){DUO_BASE + THIRD_AT, BYTES,
					       t->mr->lkey};
		wq_commit(&s->third->rq);
	}
	s->view = t->far;
	s->link = (struct far_link){.hca = &s->view,
				    .guest = guest_take(&s->view),
				    .type = HCA_QPT_RC,
				    .qpn = THIRD_QPN,
				    .our_qpn = 0x3001,
				    .our_psn = 77};
	assert_non_null(s->link.guest);
	memcpy(s->link.our_ip, s->d->side[0].ip, 16);
	list_init(&s->link.kick);
}

/* A window of the target's, bound so that the initiator may invalidate it. */
static void bind(struct scene *s)
{
	struct duo_side *t = s->target;
	struct mw_bind b = {.bytes = 4096,
			    .va = DUO_BASE,
			    .region = t->mr->lkey,
			    .access = HCA_REMOTE_WRITE};

	s->window = mw_new(&t->hca, t->qp->pd, 2);
	assert_non_null(s->window);
	b.window = s->window->lkey;
	b.rkey = b.window ^ 9;
	assert_int_equal(mw_bind(&t->hca, t->qp, &b), MR_OK);
}

static uint32_t bytes_of(const struct operation *o)
{
	if (o->op == HCA_WR_ATOMIC_FADD || o->op == HCA_WR_ATOMIC_WRITE)
		return 8;
	return o->how & FEW ? FEW_BYTES : BYTES;
}

static uint32_t count_of(const struct operation *o)
{
	return o->how & ROW ? ROW_LENGTH : 1;
}

static void post(struct scene *s)
{
	const struct operation *o = s->o;

	for (uint32_t i = 0; i < count_of(o); i++) {
		struct wqe *w = duo_send(s->d, 0, o->op, 0, bytes_of(o), AT);

		if (o->how & SOLICITED)
			w->flags |= HCA_SEND_SOLICITED;
		if (o->how & BAD_KEY)
			w->rkey ^= 0x100;
		if (o->op == HCA_WR_SEND_INV)
			w->imm_be = s->window->rkey;
		duo_post(s->d, 0);
	}
}

/* Who has been heard may send more at once. */
static void be_heard(struct scene *s)
{
	struct cqe c;

	duo_send(s->d, 0, HCA_WR_RDMA_WRITE, 0, 0, AT);
	duo_post(s->d, 0);
	duo_run(s->d, s->d->now_ns);
	turns(1);
	assert_true(duo_poll(s->d, 0, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
}

static void begin(struct scene *s, const struct operation *o)
{
	struct duo *d =
		o->how & SHARED ? duo_new_shared(1, 16) : duo_new(1, 16);
	struct duo_side *t = &d->side[1];
	uint32_t room = o->how & TOO_LONG ? 100 : BYTES;

	*s = (struct scene){.o = o, .d = d, .target = t};
	now.d = d;
	d->turns = turns;
	atomic_store(&t->guest->process.owner, DEAD); /* the initiator's slot */
	turns(1);
	memset(d->side[0].memory.bytes, 0x55, BYTES);
	make_third(s);
	bind(s);
	for (uint32_t i = 0; i < (now.has_one ? 1 : RECEIVES); i++)
		duo_recv(d, 1, AT, room);
	if (o->how & ROW)
		be_heard(s);
	if (o->how & LIMITED)
		assert_false(srq_arm(&t->hca, t->srq, RECEIVES));
	if (o->how & MODERATED)
		cq_moderate(&t->hca, t->cq, 100, PERIOD);
	if (o->how & FULL)
		t->cq->cqe = 0;
	t->elsewhere.is_mapped = o->how & MAPPED;
	cq_arm(t->cq, o->how & SOLICITED);
	post(s);
}

/* ---- what must be so afterwards ---- */

static void assert_unlocked(const struct scene *s)
{
	const struct duo_side *t = s->target;

	assert_int_equal(alock_holder(&t->qp->far.lock), 0);
	assert_int_equal(alock_holder(&t->cq->lock), 0);
	assert_int_equal(alock_holder(&t->hca.shared->mr_lock), 0);
}

static bool is_written(const struct scene *s)
{
	switch (s->o->op) {
	case HCA_WR_RDMA_READ:
	case HCA_WR_ATOMIC_CAS:
	case HCA_WR_ATOMIC_FADD:
		return false;
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
	case HCA_WR_SEND_INV:
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_IMM:
	case HCA_WR_ATOMIC_WRITE:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
		break;
	}
	return !(s->o->how & FAILS);
}

/* Nothing but what the operation may write. */
static void assert_memory(const struct scene *s)
{
	const uint8_t *b = s->target->memory.bytes;
	uint32_t bytes = is_written(s) ? bytes_of(s->o) : 0;

	uint32_t foreign = 0;

	for (uint32_t i = 0; i < THIRD_AT; i++) {
		bool ours = i >= AT && i < AT + bytes;
		bool thirds = i >= AT && i < AT + THIRD_BYTES;

		foreign += b[i] && !(b[i] == 0x55 && ours) &&
			   !(b[i] == 0x66 && thirds);
	}
	assert_int_equal(foreign, 0);
}

/* Another process sends to the same queues. */
static void send_third(struct scene *s)
{
	uint8_t data[THIRD_BYTES];
	struct far_request r = {.opcode = HCA_WR_SEND,
				.total = sizeof data,
				.bytes = sizeof data,
				.data = data};

	memset(data, 0x66, sizeof data);
	turns(1);
	assert_int_equal(far_run(&s->link, &r), FAR_DONE);
}

static uint32_t completions_of(const struct scene *s, uint32_t qpn)
{
	const struct cq *cq = s->target->cq;
	const struct cqe *ring = arena_at(&s->target->hca.arena, cq->ring);
	uint32_t n = 0;

	cq_collect(&s->target->hca, s->target->cq, NULL);

	for (uint32_t i = cq->tail; i != cq->head; i++)
		n += ring[i & (cq->size - 1)].qpn == qpn;
	return n;
}

/* The owner hears of it. */
static void mourn(struct scene *s)
{
	struct duo_side *t = s->target;

	turns(1);
	assert_true(mourn_dead(&t->hca));
	duo_run(s->d, s->d->now_ns + 2 * PERIOD);
	assert_unlocked(s);
}

static void assert_events(const struct scene *s, bool third)
{
	const struct duo_side *t = s->target;
	uint32_t by_us = completions_of(s, t->qp->qpn);
	bool fires = by_us || (third && !(s->o->how & SOLICITED));

	if (s->o->how & FULL)
		assert_true(t->events[ENGINE_CQ_ERR] == !!t->cq->overrun);
	else
		assert_int_equal(t->events[ENGINE_CQ_EVENT], fires);
	if (s->o->how & LIMITED)
		assert_int_equal(t->events[ENGINE_SRQ_LIMIT],
				 ring_own(&t->srq->wq.tail) > 0);
	assert_int_equal(t->qp->state == HCA_QP_ERR,
			 t->qp->far.has_failed || t->cq->overrun);
}

static void fail_target(struct scene *s)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_ERR};
	const char *why;

	turns(1);
	if (s->target->qp->state != HCA_QP_ERR)
		assert_int_equal(engine_qp_modify(s->target->engine,
						  s->target->side, &a,
						  HCA_QP_STATE, s->target->ip,
						  s->d->now_ns, &why),
				 0);
	duo_run(s->d, s->d->now_ns);
}

/* Each receive came back once, or waits for another. */
static void assert_receives(struct scene *s)
{
	struct duo_side *t = s->target;
	uint32_t seen[RECEIVES] = {0};
	struct cqe c;

	while (duo_poll(s->d, 1, &c)) {
		if (c.qpn == THIRD_QPN && !t->srq)
			continue;
		assert_in_range(c.wr_id, 0x8000, 0x8000 + RECEIVES - 1);
		seen[c.wr_id - 0x8000]++;
	}
	for (uint32_t i = t->srq ? t->srq->wq.tail : RECEIVES; i < RECEIVES;
	     i++)
		seen[i]++;
	for (uint32_t i = 0; i < RECEIVES; i++)
		assert_int_equal(seen[i], 1);
}

static void assert_windows(struct scene *s)
{
	struct duo_side *t = s->target;

	mr_enter(&t->hca);
	mw_settle(&t->hca);
	mr_leave(&t->hca);
	assert_int_equal(t->mr->bound, s->window->rkey != 0);
	mw_free(&t->hca, s->window);
	assert_int_equal(t->mr->bound, 0);
}

/* ---- deaths ---- */

/* Engines of the dead are left as they stand. */
static struct engine *left[20000];
static uint32_t left_count;

static void end(struct scene *s)
{
	turns(1);
	engine_qp_remove(s->target->engine, s->third_side);
	for (int i = 0; i < 2; i++)
		if (s->d->side[i].is_dead) {
			assert_true(left_count < TEST_COUNT(left));
			left[left_count++] = s->d->side[i].engine;
		}
	duo_free(s->d);
	now.is_first = false;
}

/* True: the initiator of o got as far as step k, and no further. */
static bool begin_until(struct scene *s, const struct operation *o, uint32_t k)
{
	volatile bool ended = true;

	begin(s, o);
	now.victim = INITIATOR;
	now.left = k;
	if (!setjmp(now.death)) {
		duo_run(s->d, s->d->now_ns);
		ended = false;
	}
	now.victim = NOBODY;
	return ended;
}

/* True: the initiator of o died at step k. */
static bool initiator_dies(const struct operation *o, uint32_t k,
			   bool third_first)
{
	struct scene s;
	bool died = begin_until(&s, o, k);

	s.d->side[0].is_dead = died;
	turns(1);
	guest_wait(&s.target->hca, GUEST_ALL);
	if (third_first && !(o->how & FULL))
		send_third(&s);
	mourn(&s);
	assert_events(&s, third_first);
	if (!third_first && !(o->how & FULL))
		send_third(&s);
	duo_run(s.d, s.d->now_ns + 2 * PERIOD);
	assert_events(&s, true);
	assert_memory(&s);
	fail_target(&s);
	if (!(o->how & FULL))
		assert_receives(&s);
	assert_windows(&s);
	assert_unlocked(&s);
	end(&s);
	return died;
}

static void who_dies_inside_leaves_nothing_half_done(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(operations); i++)
		for (int third_first = 0; third_first < 2; third_first++) {
			uint32_t k = 0;

			while (initiator_dies(&operations[i], k, third_first))
				assert_true(++k < STEPS_MAX);
			assert_true(k >= 6);
		}
	for (size_t i = 0; i < TEST_COUNT(steps); i++)
		if (!now.is_seen[i])
			fail_msg("nobody died where %s", steps[i]);
}

/*
 * The same, but the program has its queue pair fail before its adapter hears of
 * the death.  It waits for an event, by the completion or by the flush: true.
 */
static bool initiator_dies_unheard(const struct operation *o, uint32_t k)
{
	struct scene s;
	bool died;

	now.has_one = true;
	died = begin_until(&s, o, k);
	now.has_one = false;
	s.d->side[0].is_dead = died;
	turns(1);
	guest_wait(&s.target->hca, GUEST_ALL);
	fail_target(&s);
	mourn(&s);
	if (s.target->events[ENGINE_CQ_EVENT] != 1)
		fail_msg("operation %d, dead at step %u: %u events", (int)o->op,
			 k, s.target->events[ENGINE_CQ_EVENT]);
	end(&s);
	return died;
}

static void who_fails_before_it_hears_of_a_death_is_told(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(operations); i++) {
		uint32_t k = 0;

		while (!operations[i].how &&
		       initiator_dies_unheard(&operations[i], k))
			assert_true(++k < STEPS_MAX);
	}
}

/* ---- stops ---- */

/* Another's message arrives, and so does what the target completes itself. */
static void assert_goes_on(struct scene *s)
{
	struct duo_side *t = s->target;
	const struct cqe own = {.qpn = t->qp->qpn, .wr_id = 0x9000};
	struct cqe c;
	int others = 0;

	send_third(s);
	cq_push(&t->hca, t->cq, &own, false);
	while (duo_poll(s->d, 1, &c))
		others += c.qpn == THIRD_QPN || c.wr_id == own.wr_id;
	assert_int_equal(others, 2);
}

/* True: the initiator of o was stopped at step k. */
static bool initiator_stops(const struct operation *o, uint32_t k)
{
	struct scene s;
	bool stopped = begin_until(&s, o, k);

	now.is_stopped = true;
	turns(1);
	/* it is told of no key that goes, nor of another's queue pair */
	guest_wait(&s.target->hca, guest_key(s.target->mr->lkey) |
					   guest_key(s.target->mr->rkey));
	guest_wait(&s.target->hca, guest_qp(THIRD_QPN));
	assert_goes_on(&s);
	now.is_stopped = false;
	s.d->side[0].is_dead = stopped;
	guest_wait(&s.target->hca, GUEST_ALL);
	mourn(&s);
	mw_free(&s.target->hca, s.window);
	end(&s);
	return stopped;
}

/* What has locks that its peers share. */
static bool is_shared(const struct operation *o)
{
	return o->how & FULL;
}

static void who_stops_inside_keeps_no_other_out(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(operations); i++) {
		uint32_t k = 0;

		while (!is_shared(&operations[i]) &&
		       initiator_stops(&operations[i], k))
			assert_true(++k < STEPS_MAX);
	}
}

/* ---- memory that goes away ---- */

/* True: the region of o's target went at step k. */
static bool region_goes(const struct operation *o, uint32_t k)
{
	struct scene s;
	uint32_t foreign = 0;
	struct cqe c;
	bool went;

	begin(&s, o);
	mw_free(&s.target->hca, s.window);
	now.victim = REGION;
	now.left = k;
	duo_run(s.d, s.d->now_ns);
	went = now.victim == NOBODY;
	now.victim = NOBODY;
	/* what lies with its receive is placed by who polls */
	turns(1);
	while (duo_poll(s.d, 1, &c))
		;
	for (uint32_t i = AT; went && i < AT + BYTES; i++)
		foreign += s.target->memory.bytes[i] != 0x77;
	assert_int_equal(foreign, 0);
	/* how it goes on is told elsewhere */
	s.d->side[0].is_dead = s.d->side[1].is_dead = true;
	end(&s);
	return went;
}

/* Its owner does not wait for who has looked at the key and not yet copied. */
static void who_finds_its_key_gone_touches_nothing(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(operations); i++) {
		uint32_t k = 0;

		while (operations[i].op != HCA_WR_SEND_INV &&
		       region_goes(&operations[i], k))
			assert_true(++k < STEPS_MAX);
	}
}

static uint32_t status_of(const struct operation *o)
{
	return o->how & BAD_KEY	   ? HCA_REM_ACCESS_ERR
	       : o->how & TOO_LONG ? HCA_REM_INV_REQ_ERR
				   : HCA_SUCCESS;
}

/* Those before its death, and as many after: one of them fails, of all that
 * follow it the same is said. */
static void assert_ends(struct scene *s)
{
	uint32_t first = count_of(s->o);
	bool failed = false;
	struct cqe c;

	for (uint32_t i = 0; i < 2 * first; i++) {
		assert_true(duo_poll(s->d, 0, &c));
		if (failed)
			assert_int_equal(c.status, HCA_WR_FLUSH_ERR);
		else
			assert_true(c.status == HCA_RETRY_EXC_ERR ||
				    (i < first && c.status == status_of(s->o)));
		failed |= c.status != HCA_SUCCESS;
	}
	assert_true(failed);
	assert_false(duo_poll(s->d, 0, &c));
}

/* True: the target of o died at step k. */
static bool target_dies(const struct operation *o, uint32_t k)
{
	struct scene s;
	bool died;

	begin(&s, o);
	now.victim = TARGET;
	now.left = k;
	duo_run(s.d, s.d->now_ns + 2 * PERIOD);
	died = now.victim == NOBODY;
	now.victim = NOBODY;
	if (died) {
		engine_gone(s.d->side[0].engine, s.d);
		post(&s);
		duo_run(s.d, s.d->now_ns + LONG);
		assert_true(engine_is_idle(s.d->side[0].engine));
		assert_ends(&s);
		assert_unlocked(&s);
	}
	end(&s);
	return died;
}

static void whose_target_dies_sees_its_work_end(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(operations); i++)
		for (uint32_t k = 0; target_dies(&operations[i], k); k++)
			assert_true(k < STEPS_MAX);
}

/* ---- two threads of the owner ---- */

static void a_poll_misses_nothing_that_is_collected_meanwhile(void **state)
{
	static const struct operation o = {HCA_WR_SEND, FEW};
	struct scene s;

	begin(&s, &o);
	for (uint32_t look = 1; look <= 4; look++) {
		struct cqe c;

		now.victim = NOBODY;
		if (look > 1)
			post(&s);
		duo_run(s.d, s.d->now_ns);
		turns(1);
		now.collects = s.target;
		now.look = look;
		assert_true(cq_has(&s.target->hca, s.target->cq));
		assert_int_equal(now.look, 0);
		assert_true(cq_has(&s.target->hca, s.target->cq));
		assert_true(duo_poll(s.d, 1, &c));
		assert_false(cq_has(&s.target->hca, s.target->cq));
	}
	mw_free(&s.target->hca, s.window);
	s.d->side[0].is_dead = s.d->side[1].is_dead = true;
	end(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_poll_misses_nothing_that_is_collected_meanwhile),
		cmocka_unit_test(who_dies_inside_leaves_nothing_half_done),
		cmocka_unit_test(who_fails_before_it_hears_of_a_death_is_told),
		cmocka_unit_test(who_stops_inside_keeps_no_other_out),
		cmocka_unit_test(who_finds_its_key_gone_touches_nothing),
		cmocka_unit_test(whose_target_dies_sees_its_work_end),
	};

	/* arenas are large and mostly untouched: fresh ones need no zeroing */
	mallopt(M_MMAP_THRESHOLD, 1 << 19);
	duo_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
