/* SPDX-License-Identifier: BSD-2-Clause */
#include "scenario/two_hcas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "encap/iblink.h"
#include "encap/rocev2.h"
#include "fabric/reach.h"
#include "hdr/aeth.h"
#include "ibt/ibt.h"
#include "util/bits.h"
#include "util/check.h"
#include "util/rng.h"

#define ARENA_BYTES (16u << 20)
/* Pages of arm64 have up to 64 KiB. */
#define PAGE 65536

/* is_direct: requests use no packets.  is_at_once: the post executes requests
 * by engine_post_direct.  is_apart: the post executes requests by
 * engine_post_apart where that is possible. */
static bool is_direct, is_at_once, is_apart;
/* is_by_lid: packets go through a subnet.  is_global: they have a GRH. */
static bool is_by_lid, is_global;
/* The mechanisms that each side switches off. */
static struct engine_without sides_without[2];

void two_hcas_without(int i, struct engine_without without)
{
	sides_without[i] = without;
}

void two_hcas_mode(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[argc - 1], "without"))
		for (int i = 0; i < 2; i++)
			two_hcas_without(
				i, (struct engine_without){true, true, true});
	is_direct = argc > 1 && !strcmp(argv[1], "direct");
	is_at_once = is_direct && argc > 2 && !strcmp(argv[2], "at-once");
	is_apart = is_direct && argc > 2 && !strcmp(argv[2], "apart");
	if (argc > 1 &&
	    (!strcmp(argv[1], "by-lid") || !strcmp(argv[1], "by-gid")))
		two_hcas_by_lid(!strcmp(argv[1], "by-gid"));
}

void two_hcas_by_lid(bool with_grh)
{
	is_by_lid = true;
	is_global = with_grh;
}

bool two_hcas_is_by_lid(void)
{
	return is_by_lid;
}

bool two_hcas_is_direct(void)
{
	return is_direct;
}

/* Returns the steering class of a QPN.  Without a subnet each side is a process
 * with a class of its own. */
static uint32_t class_of(uint32_t qpn)
{
	return qpn & 1;
}

/* Returns how many bytes the pages of a block have, without the pages beside
 * them. */
static size_t page_bytes(size_t bytes)
{
	return (size_t)bits_align_up(bytes, PAGE);
}

/*
 * Returns a block of zeroes, which the caller frees by free_zeroes.  An access
 * to the first byte after the block, or to the page before the block's first
 * page, raises SIGSEGV.
 *
 * The block is mapped, because calloc(3) may write to all of the block: if the
 * process has freed such a block before, or if MALLOC_PERTURB_ is set (Meson
 * sets it).  AddressSanitizer's calloc writes an eighth of the block's size.
 */
static void *new_zeroes(size_t bytes)
{
	size_t span = page_bytes(bytes);
	uint8_t *m = mmap(NULL, span + 2 * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED || mprotect(m + PAGE, span, PROT_READ | PROT_WRITE))
		abort();
	return m + PAGE + span - bytes;
}

/* Frees a block of new_zeroes with this size. */
static void free_zeroes(void *block, size_t bytes)
{
	size_t span = page_bytes(bytes);

	munmap((uint8_t *)block + bytes - span - PAGE, span + 2 * PAGE);
}

static void side_init(struct two_hcas *d, int i, uint32_t type, uint32_t depth,
		      bool shared)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
	struct two_hcas_side *s = &d->side[i];
	uint64_t seed[4] = {(uint64_t)i + 1, 2, 3, (uint64_t)i + 4};
	struct hca_qp_cap cap = {depth, depth, 4, 4, 64};
	struct engine_config config = {.hca = &s->hca,
				       .window = 64,
				       .patience_ns = 60000000000ull,
				       .class_of = class_of,
				       .direct = is_direct,
				       .piece = is_direct ? 1000 : 0,
				       .asks_sources = true,
				       .without = sides_without[i]};
	struct hca_port port;
	struct arena a;
	uint32_t pd;

	memcpy(s->ip, prefix, 12);
	memcpy(s->ip + 12, (uint8_t[]){10, 0, 0, (uint8_t)(i + 1)}, 4);
	s->arena = new_zeroes(ARENA_BYTES);
	arena_init(&a, s->arena, ARENA_BYTES);
	memory_init(&s->memory, s->bytes, TWO_HCAS_BASE, TWO_HCAS_MEMORY);
	CHECK(!hca_init(&s->hca, a, &s->memory.space, seed));
	s->peers_view = s->hca;
	s->peers_view.space = &s->elsewhere.space;
	memory_elsewhere(&s->elsewhere, &s->memory, false);
	s->access = access_claim(&s->peers_view);
	s->hca.shared->pulse.word = 1;
	s->engine = engine_new(&config, d->now_ns);
	pd = hca_pd_new(&s->hca);
	s->cq = cq_new(&s->hca, 1024, 77, false);
	if (shared)
		cap.srq = s->srq = srq_new(&s->hca, pd, depth, 4, 78);
	s->mr = mr_new(&s->hca, pd, TWO_HCAS_BASE, TWO_HCAS_MEMORY,
		       TWO_HCAS_BASE, 15 | HCA_MW_BIND);
	s->qp = qp_new(&s->hca,
		       d->subnet ? subnet_qpn(d->subnet, i, 0x1000)
				 : 0x1000u + (uint32_t)i,
		       type, pd, s->cq, s->cq, &cap, false);
	CHECK(s->qp && s->mr && s->cq);
	if (d->subnet) {
		s->qp->is_by_lid = 1;
		port = subnet_port(d->subnet, i);
		engine_port(s->engine, 0, 1, &port);
		port = subnet_second_port(d->subnet, i);
		engine_port(s->engine, 0, 2, &port);
		engine_subnet(s->engine, &d->changes);
	}
	s->side = engine_qp_add(s->engine, s->qp);
}

static void modify_qp(struct two_hcas *d, int i, struct hca_qp_attr *a,
		      uint32_t mask)
{
	struct two_hcas_side *s = &d->side[i];
	const char *why = "";

	CHECK(!engine_qp_modify(s->engine, s->side, a, mask | HCA_QP_STATE,
				s->ip, d->now_ns, &why));
}

/* The attributes of each service for the moves to INIT, RTR and RTS. */
static const struct {
	uint32_t init, rtr, rts;
} masks[] = {
	[HCA_QPT_RC] = {HCA_QP_ACCESS_FLAGS,
			HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
				HCA_QP_RQ_PSN | HCA_QP_MAX_DEST_RD_ATOMIC |
				HCA_QP_MIN_RNR_TIMER,
			HCA_QP_SQ_PSN | HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT |
				HCA_QP_RNR_RETRY | HCA_QP_MAX_QP_RD_ATOMIC},
	[HCA_QPT_UC] = {HCA_QP_ACCESS_FLAGS,
			HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
				HCA_QP_RQ_PSN,
			HCA_QP_SQ_PSN},
	[HCA_QPT_UD] = {HCA_QP_QKEY, 0, HCA_QP_SQ_PSN},
};

void two_hcas_connect(struct two_hcas *d, int i, uint32_t mtu)
{
	uint32_t type = d->side[i].qp->type;
	struct hca_qp_attr a = {.qp_state = HCA_QP_INIT,
				.port_num = 1,
				.access_flags = 15,
				.qkey = TWO_HCAS_QKEY};

	modify_qp(d, i, &a, HCA_QP_PKEY_INDEX | HCA_QP_PORT | masks[type].init);
	a = (struct hca_qp_attr){.qp_state = HCA_QP_RTR,
				 .path_mtu = mtu,
				 .dest_qpn = d->side[!i].qp->qpn,
				 .rq_psn = i ? 0xfffff0 : 0x123456,
				 .max_dest_rd_atomic = 4,
				 .min_rnr_timer = 12};
	a.ah.is_global = !d->subnet || is_global;
	a.ah.local = is_direct && !d->subnet;
	memcpy(a.ah.dgid, d->side[!i].ip, 16);
	if (d->subnet) {
		a.ah.dlid = subnet_lid(!i);
		a.ah.sl = 2;
		subnet_gid(d->subnet, !i, a.ah.dgid);
		subnet_gid(d->subnet, i, a.ah.sgid);
	}
	modify_qp(d, i, &a, masks[type].rtr);
	/* the upper 8 bits of a PSN have no meaning */
	a = (struct hca_qp_attr){.qp_state = HCA_QP_RTS,
				 .sq_psn = i ? 0x123456 : 0x5afffff0,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 4};
	modify_qp(d, i, &a, masks[type].rts);
}

static struct two_hcas *make_sides(uint32_t type, uint32_t mtu, uint32_t depth,
				   bool shared)
{
	struct two_hcas *d = new_zeroes(sizeof(*d));

	d->now_ns = 1000000000;
	d->subnet = is_by_lid ? subnet_new() : NULL;
	d->liveness = ENGINE_PEER_ALIVE;
	for (int i = 0; i < 2; i++)
		side_init(d, i, type, depth, shared);
	for (int i = 0; i < 2; i++)
		two_hcas_connect(d, i, mtu);
	return d;
}

struct two_hcas *two_hcas_new(uint32_t mtu, uint32_t depth)
{
	return make_sides(HCA_QPT_RC, mtu, depth, false);
}

struct two_hcas *two_hcas_new_shared(uint32_t mtu, uint32_t depth)
{
	return make_sides(HCA_QPT_RC, mtu, depth, true);
}

struct two_hcas *two_hcas_new_of(uint32_t type, uint32_t mtu, uint32_t depth)
{
	return make_sides(type, mtu, depth, false);
}

void two_hcas_free(struct two_hcas *d)
{
	for (int i = 0; i < 2; i++) {
		struct two_hcas_side *s = &d->side[i];

		/* an engine that stopped in the middle of its work cannot be
		 * freed */
		if (!s->is_dead) {
			engine_qp_remove(s->engine, s->side);
			CHECK(engine_is_idle(s->engine));
			engine_free(s->engine);
		}
		free_zeroes(s->arena, ARENA_BYTES);
	}
	if (d->subnet)
		subnet_free(d->subnet);
	free_zeroes(d, sizeof(*d));
}

void two_hcas_end_process(struct two_hcas *d, int i)
{
	d->side[i].hca.shared->pulse.word |= 0x40000000u; /* FUTEX_OWNER_DIED */
}

static void address_by_lid(const struct two_hcas *d, int i, struct wq_to *to)
{
	to->lid =
		(struct wq_lid){.dlid = subnet_lid(!i), .sl = 2, .port_num = 1};
	to->has_grh = is_global;
	subnet_gid(d->subnet, i, to->from);
	subnet_gid(d->subnet, !i, to->to);
}

struct wqe *two_hcas_send(struct two_hcas *d, int i, enum hca_wr op,
			  uint64_t local, uint32_t bytes, uint64_t remote)
{
	struct two_hcas_side *s = &d->side[i];
	struct wqe *w = wq_reserve(&s->hca, &s->qp->sq);

	CHECK(w);
	memset(w, 0, sizeof(*w));
	w->wr_id = shared_own(&s->qp->sq.head);
	w->opcode = (uint8_t)op;
	w->flags = HCA_SEND_SIGNALED;
	w->num_sge = 1;
	w->bytes = bytes;
	w->rkey = d->side[!i].mr->rkey;
	w->va = TWO_HCAS_BASE + remote;
	*wqe_sges(w) =
		(struct wq_sge){TWO_HCAS_BASE + local, bytes, s->mr->lkey};
	if (s->qp->type == HCA_QPT_UD) {
		struct wq_to *to = wq_to(&s->qp->sq, w);

		*to = (struct wq_to){.qpn = d->side[!i].qp->qpn,
				     .qkey = TWO_HCAS_QKEY,
				     .local = is_direct && !d->subnet};
		memcpy(to->from, s->ip, 16);
		memcpy(to->to, d->side[!i].ip, 16);
		if (d->subnet)
			address_by_lid(d, i, to);
	}
	return w;
}

void two_hcas_fill(struct two_hcas *d, int i, uint64_t at, uint32_t bytes)
{
	struct rng r;

	rng_init(&r, at + bytes);
	for (uint32_t k = 0; k < bytes; k++)
		d->side[i].memory.bytes[at + k] = (uint8_t)rng_u64(&r);
}

/* Does what the process of a fabric does: shows the subnet's number of changes
 * to the programs. */
static void show_changes(struct two_hcas *d)
{
	if (d->subnet)
		shared_store(&d->changes,
			     reach_changes(subnet_fabric(d->subnet)));
}

void two_hcas_post(struct two_hcas *d, int i)
{
	struct two_hcas_side *s = &d->side[i];

	show_changes(d);
	wq_commit(&s->qp->sq);
	if (is_apart && engine_qp_posts_apart(s->side)) {
		void *to_wake;
		bool done = engine_post_apart(s->engine, s->side, d->now_ns,
					      &to_wake);

		d->side[!i].woken += to_wake != NULL;
		if (done)
			return;
	}
	if (!is_at_once || !engine_post_direct(s->engine, s->side, d->now_ns))
		engine_doorbell(s->engine, s->side, d->now_ns);
}

void two_hcas_post_row(struct two_hcas *d, uint32_t count, enum hca_wr op,
		       uint32_t bytes, uint64_t remote)
{
	while (count--) {
		two_hcas_send(d, 0, op, 0, bytes, remote);
		two_hcas_post(d, 0);
	}
}

void two_hcas_recv(struct two_hcas *d, int i, uint64_t local, uint32_t bytes)
{
	struct two_hcas_side *s = &d->side[i];
	struct wq *rq = s->srq ? &s->srq->wq : &s->qp->rq;
	struct wqe *w =
		s->srq ? srq_reserve(&s->hca, s->srq) : wq_reserve(&s->hca, rq);

	CHECK(w);
	memset(w, 0, sizeof(*w));
	w->wr_id = 0x8000 + shared_own(&rq->head);
	w->num_sge = 1;
	w->bytes = bytes;
	*wqe_sges(w) =
		(struct wq_sge){TWO_HCAS_BASE + local, bytes, s->mr->lkey};
	wq_commit_recv(&s->hca, rq, w->wr_id);
	engine_doorbell(s->engine, s->side, d->now_ns);
}

/* Asks the subnet whether it delivers the packets of a QP of side i.  Only if
 * so, the QP may work without packets.  Returns the answer. */
static bool ask_subnet(struct two_hcas *d, int i,
		       const struct engine_want *want)
{
	struct engine *e = d->side[i].engine;
	struct hca_way way;

	if (!subnet_reaches(d->subnet, i, want->by_lid, &way)) {
		engine_set_path(e, want->qpn, NULL, NULL, NULL, false);
		return false;
	}
	way.changes -= d->is_restless;
	engine_set_way(e, want->qpn, &way);
	return true;
}

/* Does for side i what src/host does: gives QPs their paths, wakes the peer and
 * serves notify bits.  Both sides are processes of one user of one host. */
static void serve_engine(struct two_hcas *d, int i)
{
	struct two_hcas_side *s = &d->side[i];
	struct engine_want want;

	while (engine_wants_path(s->engine, &want)) {
		d->asked_path++;
		CHECK(class_of(want.peer_qpn) == class_of(d->side[!i].qp->qpn));
		if (d->subnet && !ask_subnet(d, i, &want))
			continue;
		engine_set_path(s->engine, want.qpn, &d->side[!i].peers_view,
				d->side[!i].access, d, true);
	}
	while (engine_wants_wake(s->engine))
		d->side[!i].woken++;
	if (!s->is_stopped)
		engine_serve_notify(s->engine);
}

/* Answers the engine's questions about source ports of this host. */
static void answer_sources(struct two_hcas *d, int i)
{
	struct engine_source s;

	while (!d->is_silent && engine_wants_source(d->side[i].engine, &s)) {
		d->asked++;
		engine_source(d->side[i].engine, &s,
			      s.from.port == d->side[!i].side->self.port,
			      d->now_ns);
	}
}

/* Gives side `to` a packet, as if the peer's port had sent it.  The n bytes at
 * p are those from the packet's BTH to its pad. */
static void forge_by_lid(struct two_hcas *d, int to, uint8_t *p, size_t n)
{
	struct iblink h = {.lrh = {.lnh = LRH_NEXT_LOCAL,
				   .slid = subnet_lid(!to),
				   .dlid = subnet_lid(to)}};
	uint8_t buf[LRH_FRAME_MAX];
	size_t head = iblink_write(buf, &h, n);
	struct engine_packet packet = {.bytes = buf, .port = 1};

	packet.len = head + iblink_seal(buf, head, p, n);
	memcpy(buf + head, p, packet.len - head);
	engine_rx_link(d->side[to].engine, &packet, d->now_ns);
}

void two_hcas_forge_from(struct two_hcas *d, int to, struct pkt *p,
			 uint16_t port)
{
	uint8_t buf[PKT_MAX_HEADER_BYTES + IBT_MAX_MTU + 8];
	struct two_hcas_side *s = &d->side[to];
	struct engine_dgram g = {.bytes = buf, .local = port != 0};
	size_t n;

	p->bth.pkey = BTH_DEFAULT_PKEY;
	p->bth.dest_qpn = s->qp->qpn;
	n = pkt_write_headers(buf, p);
	memset(buf + n, 0x77, p->payload_len + 4);
	n += p->payload_len + pkt_pad(p->payload_len);
	if (d->subnet) {
		forge_by_lid(d, to, buf, n);
		return;
	}
	memcpy(g.from.ip, d->side[!to].ip, 16);
	memcpy(g.to.ip, s->ip, 16);
	g.from.port = port;
	g.to.port = ROCEV2_PORT;
	g.len = g.segment = rocev2_seal(NULL, &g.from, &g.to, buf, n, 0);
	engine_rx(s->engine, &g, d->now_ns);
	answer_sources(d, to);
}

void two_hcas_forge(struct two_hcas *d, int to, struct pkt *p)
{
	two_hcas_forge_from(d, to, p, 0);
}

static void begin_turn(const struct two_hcas *d, int i)
{
	if (d->turns)
		d->turns(i);
}

static void take_events(struct two_hcas *d, int i)
{
	struct two_hcas_side *s = &d->side[i];
	struct engine_event e;

	if (s->is_dead)
		return;
	begin_turn(d, i);
	serve_engine(d, i);

	while (engine_events(s->engine, &e, 1)) {
		s->events[e.type]++;
		if (e.type == ENGINE_EXPLAIN)
			s->explained = e.explain;
		if (e.type == ENGINE_ASK_PEER && !d->is_broker_mute)
			engine_peer_state(s->engine, e.qpn, e.connection,
					  d->liveness, d->now_ns);
	}
}

static void receive_by_port(struct two_hcas *d, int i, uint32_t number)
{
	uint8_t buf[LRH_FRAME_MAX];
	struct engine_packet p = {.bytes = buf, .port = number};

	while ((p.len = subnet_fetch(d->subnet, i, number, buf)))
		engine_rx_link(d->side[i].engine, &p, d->now_ns);
}

/* Gives both engines the packets that have arrived for them. */
static void receive_packets(struct two_hcas *d)
{
	for (int i = 0; i < 2; i++)
		for (uint32_t number = 1; number <= SUBNET_PORTS; number++)
			receive_by_port(d, i, number);
}

/* Delivers one frame of side i. */
static void deliver_frame(struct two_hcas *d, int i,
			  const struct engine_frame *f)
{
	struct engine_dgram g = {.from = f->from,
				 .to = f->to,
				 .bytes = f->bytes,
				 .len = f->len,
				 .segment = f->segment,
				 .local = d->side[i].qp->attr.ah.local};

	CHECK(!d->subnet == !f->head_bytes);
	if (d->subnet) {
		int err =
			subnet_send(d->subnet, i, f->port, f->head,
				    f->head_bytes, f->bytes, f->len, d->now_ns);

		/* a test may take the port down */
		CHECK(!err || err == -ENETDOWN || d->has_old_gids);
		receive_packets(d);
		return;
	}
	engine_rx(d->side[!i].engine, &g, d->now_ns);
	answer_sources(d, !i);
}

/* Delivers the frames of side i to the peer; returns their number. */
static size_t deliver_frames(struct two_hcas *d, int i)
{
	struct engine_frame f[8];
	size_t n;

	if (d->side[i].is_stopped || d->side[i].is_dead)
		return 0;
	begin_turn(d, i);
	n = engine_tx(d->side[i].engine, f, 8, d->now_ns);

	for (size_t k = 0; k < n; k++) {
		int copies = d->fate ? d->fate(d->context, i, &f[k]) : 1;

		while (copies-- > 0)
			deliver_frame(d, i, &f[k]);
	}
	engine_tx_done(d->side[i].engine, n);
	return n;
}

/* Returns whether side i runs and has something to send. */
static bool has_tx(const struct two_hcas *d, int i)
{
	const struct two_hcas_side *s = &d->side[i];

	return !s->is_stopped && !s->is_dead && engine_has_tx(s->engine);
}

static uint64_t next_deadline(const struct two_hcas *d)
{
	uint64_t first = UINT64_MAX;

	for (int i = 0; i < 2; i++) {
		const struct two_hcas_side *s = &d->side[i];
		uint64_t next = s->is_stopped || s->is_dead
					? UINT64_MAX
					: engine_deadline(s->engine);

		if (next < first)
			first = next;
	}
	return first;
}

uint64_t two_hcas_tries_ns(const struct two_hcas *d, int i)
{
	const struct hca_qp_attr *a = &d->side[i].qp->attr;

	return (a->retry_cnt + 1ull) * aeth_ack_timeout_ns(a->timeout);
}

void two_hcas_run(struct two_hcas *d, uint64_t until_ns)
{
	for (;;) {
		uint64_t next;

		show_changes(d);
		while (deliver_frames(d, 0) + deliver_frames(d, 1))
			d->now_ns += 1000;
		take_events(d, 0);
		take_events(d, 1);
		take_events(d, 0); /* side 1 may have set notify bits */
		if (has_tx(d, 0) || has_tx(d, 1))
			continue;
		next = next_deadline(d);
		if (next == UINT64_MAX || next > until_ns)
			return;
		if (next > d->now_ns)
			d->now_ns = next;
		else
			d->now_ns += 1000;
		for (int i = 0; i < 2; i++) {
			if (d->side[i].is_stopped || d->side[i].is_dead)
				continue;
			begin_turn(d, i);
			engine_tick(d->side[i].engine, d->now_ns);
		}
	}
}

bool two_hcas_poll(struct two_hcas *d, int i, struct cqe *c)
{
	return cq_poll(&d->side[i].hca, d->side[i].cq, c, 1) == 1;
}
