/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two adapters execute requests in each other's arena (src/direct) while words
 * of an arena change.  There are two kinds of runs.  In one, both adapters
 * work, and words change that a peer may write.  In the other, only side 0
 * works, and words of side 1's arena change, also words that only side 1 may
 * write.  The input chooses the kind, the requests, the words and their new
 * values.  If the bit BY_THREAD of the input's first byte is set, a thread also
 * changes words of side 1's arena all the time.  The process must not crash,
 * and no adapter may access memory that belongs to neither adapter.
 */
#include "fuzz.h"
#include "input.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "scenario/two_hcas.h"

#define DEPTH 16
#define STEPS 200
#define KINDS 7

/* Bits of the first byte of the input. */
enum {
	BY_THREAD = 1,	  /* a thread changes words, too */
	ANYWHERE = 2,	  /* words change that only side 1 may write */
	SHARED_QUEUE = 4, /* RC queue pairs have a shared receive queue */
	SERVICE = 24,	  /* the mask of the index in types[] */
};

/* The addresses of objects in an arena, and of its two parts, `whole` and
 * `shared`.  The addresses are taken before any word changes. */
struct places {
	uint8_t *qp_target, *slots, *cq, *srq, *qp, *root, *table, *whole,
		*shared;
	uint32_t slots_bytes;
	uint64_t whole_bytes, shared_bytes;
};

/* Copies of the two parts of an arena, made before any word changes; owned. */
struct kept {
	uint8_t *whole, *shared;
};

struct script {
	struct input_bytes in;
	struct two_hcas *two_hcas;
	struct places places[2];
	struct kept kept; /* of side 1's arena; used if ANYWHERE is set */
	uint8_t how;	  /* the first byte: BY_THREAD and others */
	/* Not 0: the thread ends.  No other data depends on this member, so
	 * the order of its accesses does not matter. */
	_Atomic int is_over;
};

/* p->whole is the part of the arena that only the owner writes, without the
 * header: a peer reads the header only once, and works with a copy. */
static void find_places(const struct two_hcas_side *s, struct places *p)
{
	const struct arena_hdr *a = (const void *)s->hca.arena.base;
	uint8_t *base = s->hca.arena.base;

	*p = (struct places){
		.qp_target = (uint8_t *)qp_target(s->qp),
		.slots = (uint8_t *)wq_at(&s->hca, &s->qp->rq, 0),
		.slots_bytes = s->qp->rq.size * s->qp->rq.stride,
		.cq = (uint8_t *)cq_shared(s->cq),
		.srq = s->srq ? (uint8_t *)srq_shared(s->srq) : NULL,
		.qp = (uint8_t *)s->qp,
		.root = (uint8_t *)s->hca.shared,
		.table = (uint8_t *)s->hca.peer_area,
		.whole = base + 4096,
		.whole_bytes = a->brk - 4096,
		.shared = base + s->hca.arena.shared,
		.shared_bytes = a->shared_brk - s->hca.arena.shared,
	};
}

static _Atomic uint32_t *one_of(void *from, uint64_t bytes, uint64_t random)
{
	return (_Atomic uint32_t *)from + random % (bytes / 4);
}

/* Chooses a word that a peer may write or, with `anywhere`, a word that a peer
 * or only the arena's owner may write. */
static _Atomic uint32_t *choose_word(const struct places *p, bool anywhere,
				     uint32_t kind, uint64_t random)
{
	switch (kind % KINDS) {
	case 0:
	case 1:
		return one_of(p->qp_target, sizeof(struct qp_target), random);
	case 2:
		return one_of(p->slots, p->slots_bytes, random);
	case 3:
		return one_of(p->cq, sizeof(struct cq_shared), random);
	case 4:
		if (anywhere)
			return one_of(p->qp, sizeof(struct qp), random);
		return p->srq ? one_of(p->srq, sizeof(struct srq_shared),
				       random)
			      : one_of(p->shared, p->shared_bytes, random);
	case 5:
		if (anywhere)
			return one_of(p->root, sizeof(struct hca_shared),
				      random);
		return one_of(p->table, 4096, random);
	default:
		return anywhere ? one_of(p->whole, p->whole_bytes, random)
				: one_of(p->shared, p->shared_bytes, random);
	}
}

/* Flips a bit of the word, or sets the word to 0, all ones, a value near its
 * own or a random value.  The QPN of the queue pair stays, because two_hcas
 * depends on it. */
static void change_word(const struct places *p, _Atomic uint32_t *word,
			uint32_t random)
{
	if ((uint8_t *)word == p->qp + offsetof(struct qp, qpn))
		return;
	switch (random >> 29) {
	case 0:
	case 1:
		*word ^= 1u << random % 32;
		break;
	case 2:
		*word = 0;
		break;
	case 3:
		*word = UINT32_MAX;
		break;
	case 4:
		*word += random % 256 - 128;
		break;
	default:
		*word = random * 2654435761u;
		break;
	}
}

static void scribble_word(struct script *s)
{
	bool anywhere = s->how & ANYWHERE;
	const struct places *p =
		&s->places[anywhere ? 1 : input_u8(&s->in) % 2];
	uint32_t kind = input_u8(&s->in);
	uint64_t random = (uint64_t)input_u16(&s->in) << 16 | input_u16(&s->in);

	change_word(p, choose_word(p, anywhere, kind, random),
		    input_u16(&s->in) << 16 | input_u16(&s->in));
}

static void *scribble_on(void *arg)
{
	struct script *s = arg;
	uint64_t random = 88172645463325252ull + s->how;
	const struct timespec nap = {0, 1000};

	while (!s->is_over) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		change_word(&s->places[1],
			    choose_word(&s->places[1], s->how & ANYWHERE,
					(uint32_t)random >> 24, random >> 32),
			    (uint32_t)random);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

static bool is_full(const struct two_hcas_side *s)
{
	const struct wq *q = s->srq ? &s->srq->wq : &s->qp->rq;
	uint32_t tail = s->srq ? srq_next(s->srq) : shared_load(&q->tail);

	return shared_own(&q->head) - tail >= q->depth ||
	       shared_own(&q->head) - shared_load(&q->tail) >= q->depth;
}

static void post_send(struct script *s, int i)
{
	static const uint8_t any[] = {HCA_WR_RDMA_WRITE, HCA_WR_RDMA_WRITE_IMM,
				      HCA_WR_SEND,	 HCA_WR_SEND,
				      HCA_WR_RDMA_READ,	 HCA_WR_ATOMIC_CAS,
				      HCA_WR_ATOMIC_FADD};
	struct two_hcas_side *side = &s->two_hcas->side[i];
	uint32_t op = any[input_u8(&s->in) % sizeof(any)],
		 bytes = input_u16(&s->in) % 4000;

	if (side->qp->type == HCA_QPT_UC && op > HCA_WR_SEND_IMM)
		op = HCA_WR_SEND;
	if (side->qp->type == HCA_QPT_UD)
		op = HCA_WR_SEND;
	if (side->qp->state != HCA_QP_RTS ||
	    shared_own(&side->qp->sq.head) - shared_load(&side->qp->sq.tail) >=
		    side->qp->sq.depth)
		return;
	two_hcas_send(s->two_hcas, i, (enum hca_wr)op, input_u16(&s->in),
		      bytes % 8 ? 8 : bytes, input_u16(&s->in) & ~7u);
	two_hcas_post(s->two_hcas, i);
}

static void run_step(struct script *s)
{
	bool is_alone = s->how & ANYWHERE;
	uint8_t what = input_u8(&s->in);
	int i = is_alone ? 0 : what >> 7;
	struct cqe c;

	switch (what % 8) {
	case 0:
	case 1:
		scribble_word(s);
		break;
	case 2:
		if (!is_alone && !is_full(&s->two_hcas->side[i]) &&
		    s->two_hcas->side[i].qp->state != HCA_QP_RESET)
			two_hcas_recv(s->two_hcas, i, input_u16(&s->in),
				      64 + input_u8(&s->in));
		break;
	case 3:
	case 4:
	case 5:
		post_send(s, i);
		break;
	case 6:
		while (two_hcas_poll(s->two_hcas, i, &c))
			;
		break;
	default:
		two_hcas_run(s->two_hcas, s->two_hcas->now_ns + 2000000);
		break;
	}
}

/* Drops every frame, so that the idle side receives none. */
static int drop_frame(void *context, int from, const struct engine_frame *f)
{
	return 0;
}

static struct two_hcas *make_hcas(const struct script *s)
{
	static const uint32_t types[] = {HCA_QPT_RC, HCA_QPT_RC, HCA_QPT_UC,
					 HCA_QPT_UD};
	static char *direct[] = {"", "direct"};
	uint32_t type = types[(s->how & SERVICE) / 8];
	struct two_hcas *d;

	two_hcas_mode(2, direct);
	d = type == HCA_QPT_RC && s->how & SHARED_QUEUE
		    ? two_hcas_new_shared(3, DEPTH)
		    : two_hcas_new_of(type, 3, DEPTH);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < DEPTH / 2; k++)
			two_hcas_recv(d, i, 4096u * (uint32_t)k, 4096);
	two_hcas_run(d, d->now_ns + 1000000);
	d->side[1].is_stopped = s->how & ANYWHERE;
	if (s->how & ANYWHERE)
		d->fate = drop_frame;
	return d;
}

static void keep_arena(struct script *s)
{
	const struct places *p = &s->places[1];

	s->kept.whole = malloc(p->whole_bytes);
	s->kept.shared = malloc(p->shared_bytes);
	FUZZ_REQUIRE(s->kept.whole && s->kept.shared);
	memcpy(s->kept.whole, p->whole, p->whole_bytes);
	memcpy(s->kept.shared, p->shared, p->shared_bytes);
}

static void put_back(struct script *s)
{
	const struct places *p = &s->places[1];

	memcpy(p->whole, s->kept.whole, p->whole_bytes);
	memcpy(p->shared, s->kept.shared, p->shared_bytes);
	free(s->kept.whole);
	free(s->kept.shared);
}

/* Destroys side 0's objects, then side 1's.  With ANYWHERE, restores side 1's
 * arena in between. */
static void destroy_hcas(struct script *s)
{
	for (int i = 0; i < 2; i++) {
		struct two_hcas_side *side = &s->two_hcas->side[i];

		if (i && s->how & ANYWHERE)
			put_back(s);
		engine_qp_remove(side->engine, side->side);
		qp_withdraw(&side->hca, side->qp);
		qp_free(&side->hca, side->qp);
		side->is_dead = true;
		engine_free(side->engine);
	}
	s->two_hcas->side[0].is_dead = s->two_hcas->side[1].is_dead = true;
	two_hcas_free(s->two_hcas);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.in = {data, data + size}};
	pthread_t thread = 0;

	if (!size)
		return 0;
	s.how = input_u8(&s.in);
	s.two_hcas = make_hcas(&s);
	for (int i = 0; i < 2; i++)
		find_places(&s.two_hcas->side[i], &s.places[i]);
	if (s.how & ANYWHERE)
		keep_arena(&s);
	if (s.how & BY_THREAD)
		FUZZ_REQUIRE(!pthread_create(&thread, NULL, scribble_on, &s));
	for (int i = 0; i < STEPS && s.in.at < s.in.end; i++)
		run_step(&s);
	if (s.how & BY_THREAD) {
		s.is_over = 1;
		pthread_join(thread, NULL);
	}
	destroy_hcas(&s);
	return 0;
}
