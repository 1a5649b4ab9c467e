/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic path migration of queue pairs by LID (IBTA 17.2.8).  Each side's
 * path goes from port 1 to the peer's port 1, over three switches.  Its
 * alternate path goes from port 2 to the peer's port 2, over a fourth switch.
 */
#include "test.h"

#include <string.h>

#include "encap/iblink.h"
#include "fabric/fabric.h"
#include "fabric/inside.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

#define AT 500000u

static bool has_grh; /* packets of the alternate path have a GRH */

static int modify_qp(struct two_hcas *d, int i, const struct hca_qp_attr *a,
		     uint32_t mask)
{
	struct two_hcas_side *s = &d->side[i];
	const char *why = "";

	return engine_qp_modify(s->engine, s->side, a, mask, s->ip, d->now_ns,
				&why);
}

/* Asks side i for a state of path migration.  Returns the result of
 * engine_qp_modify. */
static int ask_state(struct two_hcas *d, int i, enum hca_mig state)
{
	struct hca_qp_attr a = {.path_mig_state = state};

	return modify_qp(d, i, &a, HCA_QP_PATH_MIG_STATE);
}

static void give_alternate(struct two_hcas *d, int i)
{
	struct hca_qp_attr a = {.path_mig_state = HCA_MIG_REARM,
				.alt_port_num = 2,
				.alt_timeout = 13,
				.alt_ah = {.dlid = subnet_second_lid(!i),
					   .sl = 1,
					   .port_num = 2}};

	a.alt_ah.is_global = has_grh;
	subnet_second_gid(d->subnet, i, a.alt_ah.sgid);
	subnet_second_gid(d->subnet, !i, a.alt_ah.dgid);
	assert_int_equal(
		modify_qp(d, i, &a, HCA_QP_ALT_PATH | HCA_QP_PATH_MIG_STATE),
		0);
}

static struct hca_qp_attr attr_of(const struct two_hcas *d, int i)
{
	struct hca_qp_attr a;

	engine_qp_query(d->side[i].engine, d->side[i].side, &a);
	return a;
}

static void expect_state(const struct two_hcas *d, int i, enum hca_mig state)
{
	assert_int_equal(attr_of(d, i).path_mig_state, state);
}

/* Expects that side i has migrated once, to the path from its port `number`. */
static void expect_migrated(const struct two_hcas *d, int i, uint32_t number)
{
	struct hca_qp_attr a = attr_of(d, i);

	expect_state(d, i, HCA_MIG_MIGRATED);
	assert_int_equal(a.port_num, number);
	assert_int_equal(a.alt_port_num, 3 - number);
	assert_int_equal(a.ah.dlid,
			 number == 2 ? subnet_second_lid(!i) : subnet_lid(!i));
	assert_int_equal(d->side[i].events[ENGINE_PATH_MIG], 1);
	assert_int_equal(d->side[i].events[ENGINE_PATH_MIG_ERR], 0);
}

/* Transfers 8 bytes by a WRITE of side i. */
static void write_once(struct two_hcas *d, int i)
{
	two_hcas_send(d, i, HCA_WR_RDMA_WRITE, 0, 8, AT);
	two_hcas_post(d, i);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, i, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
}

/* Returns two sides that are armed. */
static struct two_hcas *armed_pair(uint32_t depth)
{
	struct two_hcas *d = two_hcas_new(5, depth);

	for (int i = 0; i < 2; i++)
		give_alternate(d, i);
	write_once(d, 0);
	for (int i = 0; i < 2; i++)
		expect_state(d, i, HCA_MIG_ARMED);
	return d;
}

/* Cuts the path of ports 1 (`is_first`) or of ports 2: a switch drops its
 * packets. */
static void cut_path(struct two_hcas *d, bool is_first)
{
	struct node *s =
		fabric_find(subnet_fabric(d->subnet), is_first ? "S2" : "S4");

	memset(s->lft, 0xff, 64);
}

/* A packet with MigReq 0 arms a side in REARM, and no side in MIGRATED. */
static void both_sides_are_armed_by_a_request_and_its_ack(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	give_alternate(d, 0);
	expect_state(d, 0, HCA_MIG_REARM);
	write_once(d, 0);
	/* side 1 is in MIGRATED, so its ACK had MigReq 1 */
	expect_state(d, 0, HCA_MIG_REARM);
	expect_state(d, 1, HCA_MIG_MIGRATED);
	give_alternate(d, 1);
	write_once(d, 1);
	expect_state(d, 0, HCA_MIG_ARMED);
	expect_state(d, 1, HCA_MIG_ARMED);
	two_hcas_free(d);
}

static int count_migreq(void *context, int from, const struct engine_frame *f)
{
	uint32_t(*seen)[2] = context;
	struct pkt p;

	assert_true(pkt_parse(f->bytes, f->len - IBLINK_TAIL_BYTES, &p));
	seen[from][p.bth.migreq]++;
	return 1;
}

static void the_bit_migreq_tells_the_state(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	uint32_t seen[2][2] = {0};

	d->fate = count_migreq;
	d->context = seen;
	two_hcas_post_row(d, 3, HCA_WR_RDMA_WRITE, 30000, AT);
	two_hcas_run(d, d->now_ns + LONG);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(seen[i][0], 0);
		assert_true(seen[i][1]);
		give_alternate(d, i);
	}
	memset(seen, 0, sizeof(seen));
	two_hcas_post_row(d, 3, HCA_WR_RDMA_READ, 30000, AT);
	two_hcas_post_row(d, 3, HCA_WR_RDMA_WRITE, 30000, AT);
	two_hcas_run(d, d->now_ns + LONG);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(seen[i][1], 0);
		assert_true(seen[i][0]);
	}
	two_hcas_free(d);
}

struct cut {
	struct two_hcas *d;
	uint32_t frames; /* until the path of ports 1 is cut */
};

static int cut_after_frames(void *context, int from,
			    const struct engine_frame *f)
{
	struct cut *c = context;

	if (c->frames && !--c->frames)
		cut_path(c->d, true);
	return 1;
}

/* Posts a WRITE and a READ of side 0, and a SEND and a READ of side 1.  They
 * copy side 0's first 60000 bytes to side 1, and side 1's first 30000 bytes to
 * two places of side 0. */
static void post_load(struct two_hcas *d)
{
	two_hcas_fill(d, 0, 0, 60000);
	two_hcas_fill(d, 1, 0, 30000);
	two_hcas_recv(d, 0, 2 * AT - 30000, 30000);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 30000, AT);
	two_hcas_post(d, 0);
	two_hcas_send(d, 1, HCA_WR_SEND, 0, 30000, 0);
	two_hcas_post(d, 1);
	two_hcas_send(d, 1, HCA_WR_RDMA_READ, AT + 30000, 30000, 30000);
	two_hcas_post(d, 1);
	two_hcas_send(d, 0, HCA_WR_RDMA_READ, AT, 30000, 0);
	two_hcas_post(d, 0);
}

static void expect_load(struct two_hcas *d)
{
	const uint8_t *zero = d->side[0].memory.bytes;
	const uint8_t *one = d->side[1].memory.bytes;
	struct cqe c;

	for (int i = 0; i < 2; i++)
		for (int n = 0; n < 3 - i; n++)
			assert_done(d, i, HCA_SUCCESS);
	for (int i = 0; i < 2; i++)
		assert_false(two_hcas_poll(d, i, &c));
	assert_memory_equal(one + AT, zero, 60000);
	assert_memory_equal(zero + AT, one, 30000);
	assert_memory_equal(zero + 2 * AT - 30000, one, 30000);
}

/* The path is cut after various numbers of frames of a load on both sides. */
static void nothing_is_lost_if_the_path_is_cut(void **state)
{
	for (uint32_t frames = 1; frames < 70; frames += 3) {
		struct two_hcas *d = armed_pair(16);
		struct cut c = {.d = d, .frames = frames};

		d->fate = cut_after_frames;
		d->context = &c;
		d->liveness = ENGINE_PEER_UNKNOWN;
		post_load(d);
		two_hcas_run(d, d->now_ns + LONG);
		expect_load(d);
		if (!c.frames)
			for (int i = 0; i < 2; i++)
				expect_migrated(d, i, 2);
		d->fate = NULL;
		two_hcas_free(d);
	}
}

/* The program of side 0 asks for the migration during a load.  The old path
 * still works. */
static void nothing_is_lost_if_the_program_migrates(void **state)
{
	struct two_hcas *d = armed_pair(16);

	post_load(d);
	assert_int_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	two_hcas_run(d, d->now_ns + LONG);
	expect_load(d);
	for (int i = 0; i < 2; i++) {
		expect_migrated(d, i, 2);
		assert_int_equal(attr_of(d, i).timeout, 13);
		assert_int_equal(attr_of(d, i).alt_timeout, 14);
	}
	two_hcas_free(d);
}

static int drop_of_port_1(void *context, int from, const struct engine_frame *f)
{
	return f->port != 1;
}

/* Requests without an ACK are sent again at once, and not only when their timer
 * expires. */
static void a_migration_waits_for_no_timer(void **state)
{
	struct two_hcas *d = armed_pair(16);
	uint64_t before_ns = d->now_ns;

	d->fate = drop_of_port_1;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, AT);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_int_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	two_hcas_run(d, d->now_ns);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	assert_true(d->now_ns - before_ns < 1000000);
	expect_migrated(d, 0, 2);
	expect_migrated(d, 1, 2);
	two_hcas_free(d);
}

static void a_queue_pair_that_is_armed_again_migrates_back(void **state)
{
	struct two_hcas *d = armed_pair(16);

	assert_int_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	write_once(d, 0);
	for (int i = 0; i < 2; i++) {
		expect_migrated(d, i, 2);
		d->side[i].events[ENGINE_PATH_MIG] = 0;
		assert_int_equal(ask_state(d, i, HCA_MIG_REARM), 0);
	}
	write_once(d, 1);
	cut_path(d, false);
	write_once(d, 1);
	for (int i = 0; i < 2; i++)
		expect_migrated(d, i, 1);
	two_hcas_free(d);
}

/* The port of side `i` goes down, and side 0 is the only requester. */
static void a_port_that_goes_down_is_survived(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct two_hcas *d = armed_pair(16);
		struct node *host =
			fabric_find(subnet_fabric(d->subnet), i ? "H1" : "H0");

		d->liveness = ENGINE_PEER_UNKNOWN;
		host->ports[1].state = STATE_DOWN;
		write_once(d, 0);
		for (int k = 0; k < 2; k++)
			expect_migrated(d, k, 2);
		two_hcas_free(d);
	}
}

/* A queue pair migrates once: the next failure ends the connection. */
static void a_second_cut_ends_the_connection(void **state)
{
	struct two_hcas *d = armed_pair(16);

	d->liveness = ENGINE_PEER_UNKNOWN;
	cut_path(d, true);
	cut_path(d, false);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, AT);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, HCA_WC_RDMA_WRITE);
	assert_int_equal(d->side[0].events[ENGINE_PATH_MIG], 1);
	two_hcas_free(d);
}

static int drop_of_side_0(void *context, int from, const struct engine_frame *f)
{
	return from || f->port == 2;
}

/* Side 0 is armed by a packet of side 1.  Its own packets with MigReq 0 are
 * lost, so side 1 stays in REARM, and still takes side 0's request to migrate.
 */
static void a_peer_that_is_not_armed_yet_follows(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	for (int i = 0; i < 2; i++)
		give_alternate(d, i);
	d->fate = drop_of_side_0;
	two_hcas_send(d, 1, HCA_WR_RDMA_WRITE, 0, 8, AT);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns + 1000000);
	expect_state(d, 0, HCA_MIG_ARMED);
	expect_state(d, 1, HCA_MIG_REARM);
	assert_int_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	write_once(d, 0);
	outcome_assert_done(d, 1, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	for (int i = 0; i < 2; i++)
		expect_migrated(d, i, 2);
	two_hcas_free(d);
}

static int drop_all_of_side_0(void *context, int from,
			      const struct engine_frame *f)
{
	return from;
}

/* Side 0 is armed by a request of side 1, and migrates before side 1 gets an
 * ACK.  The first ACK by the new path is lost, too.  Side 1, in REARM, repeats
 * its request on the old path. */
static void a_requester_that_is_not_armed_yet_follows(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	for (int i = 0; i < 2; i++)
		give_alternate(d, i);
	d->fate = drop_all_of_side_0;
	two_hcas_send(d, 1, HCA_WR_RDMA_WRITE, 0, 8, AT);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns + 1000000);
	assert_int_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	two_hcas_run(d, d->now_ns + 1000000);
	expect_state(d, 1, HCA_MIG_REARM);
	d->fate = NULL;
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 1, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	for (int i = 0; i < 2; i++)
		expect_migrated(d, i, 2);
	two_hcas_free(d);
}

/* Side 0's peer is silent for nearly as long as it may be.  Then side 0
 * migrates, and the peer may be silent as long again. */
static void the_silence_of_the_old_path_does_not_count(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	for (int i = 0; i < 2; i++)
		give_alternate(d, i);
	d->liveness = ENGINE_PEER_ALIVE;
	d->fate = drop_all_of_side_0;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, AT);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG / 6 * 5);
	two_hcas_send(d, 1, HCA_WR_RDMA_WRITE, 0, 8, AT);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns + 1000000);
	assert_int_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	two_hcas_run(d, d->now_ns + LONG / 3);
	d->fate = NULL;
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	outcome_assert_done(d, 1, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	two_hcas_free(d);
}

static void a_uc_queue_pair_migrates_with_its_peer(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UC, 5, 16);

	for (int i = 0; i < 2; i++)
		give_alternate(d, i);
	for (int i = 0; i < 2; i++)
		write_once(d, i);
	assert_int_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	for (int i = 0; i < 2; i++)
		write_once(d, i);
	for (int i = 0; i < 2; i++)
		expect_migrated(d, i, 2);
	two_hcas_free(d);
}

/* Gives side 1's port `number` a WRITE of side 0 without payload, with these
 * SLID, PSN and MigReq.  If has_grh, the packet has a GRH, in which both GIDs
 * are side 1's. */
static void give_write_with(struct two_hcas *d, uint16_t slid, uint32_t number,
			    uint32_t psn, bool migreq)
{
	struct pkt p = {.bth = {.opcode = OPCODE_RC_WRITE_ONLY,
				.pkey = BTH_DEFAULT_PKEY,
				.migreq = migreq,
				.dest_qpn = d->side[1].qp->qpn,
				.psn = psn}};
	struct iblink h = {.lrh = {.lnh = LRH_NEXT_LOCAL,
				   .slid = slid,
				   .dlid = number == 1 ? subnet_lid(1)
						       : subnet_second_lid(1)}};
	uint8_t buf[LRH_FRAME_MAX], bth[256];
	size_t n = pkt_write_headers(bth, &p), head;
	struct engine_packet packet = {.bytes = buf, .port = number};

	if (has_grh) {
		h.lrh.lnh = LRH_NEXT_GLOBAL;
		subnet_second_gid(d->subnet, 1, h.grh.sgid);
		subnet_second_gid(d->subnet, 1, h.grh.dgid);
	}
	head = iblink_write(buf, &h, n);
	memcpy(buf + head, bth, n);
	packet.len = head + iblink_seal(buf, head, buf + head, n);
	engine_rx_link(d->side[1].engine, &packet, d->now_ns);
	two_hcas_run(d, d->now_ns);
}

static void give_write(struct two_hcas *d, uint16_t slid, uint32_t number,
		       uint32_t psn)
{
	give_write_with(d, slid, number, psn, true);
}

static uint64_t wrong_peers(const struct two_hcas *d)
{
	return engine_counters(d->side[1].engine, 0)->refused.wrong_peer;
}

static void a_request_to_migrate_by_another_path_is_refused_once(void **state)
{
	struct two_hcas *d = armed_pair(16);
	uint32_t psn = attr_of(d, 1).rq_psn;
	char text[1024];

	give_write(d, subnet_lid(0), 1, psn);	     /* by the path */
	give_write(d, subnet_second_lid(0), 1, psn); /* by no path */
	expect_state(d, 1, HCA_MIG_ARMED);
	assert_int_equal(attr_of(d, 1).rq_psn, psn);
	assert_int_equal(d->side[1].events[ENGINE_PATH_MIG_ERR], 1);
	explain_text(&d->side[1].explained, text, sizeof(text));
	assert_non_null(strstr(text, "to a path that is not the alternate"));
	assert_int_equal(wrong_peers(d), 1);
	assert_int_equal(ask_state(d, 1, HCA_MIG_REARM), 0);
	write_once(d, 0);
	give_write(d, subnet_lid(0), 1, psn + 1);
	assert_int_equal(d->side[1].events[ENGINE_PATH_MIG_ERR], 2);
	two_hcas_free(d);
}

static void strangers_cause_no_migration_and_no_event(void **state)
{
	struct two_hcas *d = armed_pair(16);
	uint32_t psn = attr_of(d, 1).rq_psn;

	give_write(d, subnet_second_lid(0), 2, psn + 100000); /* a wrong PSN */
	give_write(d, subnet_lid(0), 1, psn + 100000);
	give_write(d, 77, 2, psn); /* a wrong LID */
	give_write(d, 77, 1, psn);
	expect_state(d, 1, HCA_MIG_ARMED);
	assert_int_equal(engine_counters(d->side[1].engine, 0)->rx_wrong_psn,
			 2);
	assert_int_equal(d->side[1].events[ENGINE_PATH_MIG], 0);
	assert_int_equal(d->side[1].events[ENGINE_PATH_MIG_ERR], 0);
	give_write(d, subnet_second_lid(0), 2, psn);
	expect_migrated(d, 1, 2);
	two_hcas_free(d);
}

static void only_a_psn_of_the_peer_arms(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	uint32_t psn = attr_of(d, 1).rq_psn;

	give_alternate(d, 1);
	give_write_with(d, subnet_lid(0), 1, psn + 100000, false);
	expect_state(d, 1, HCA_MIG_REARM);
	give_write_with(d, subnet_lid(0), 1, psn, false);
	expect_state(d, 1, HCA_MIG_ARMED);
	two_hcas_free(d);
}

/* Late packets of the old path are dropped, but do not count as packets of a
 * sender that guesses. */
static void packets_of_the_old_path_are_no_sign_of_forgery(void **state)
{
	struct two_hcas *d = armed_pair(16);
	struct engine_suspect row;
	uint32_t psn;

	assert_int_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	write_once(d, 0);
	psn = attr_of(d, 1).rq_psn;
	for (int i = 0; i < 1000; i++)
		give_write(d, subnet_lid(0), 1, psn);
	assert_int_equal(attr_of(d, 1).rq_psn, psn);
	assert_int_equal(wrong_peers(d), 1000);
	memcpy(&row,
	       arena_at(&d->side[1].hca.arena, d->side[1].hca.shared->suspects),
	       sizeof(row));
	assert_int_equal(row.weight, 0);
	two_hcas_free(d);
}

/* The path of ports 1 has no GRH. */
static void an_alternate_path_with_a_grh_compares_gids(void **state)
{
	struct two_hcas *d;

	has_grh = true;
	d = armed_pair(16);
	give_write(d, subnet_second_lid(0), 2, attr_of(d, 1).rq_psn);
	expect_state(d, 1, HCA_MIG_ARMED);
	assert_int_equal(d->side[1].events[ENGINE_PATH_MIG_ERR], 1);
	d->side[1].events[ENGINE_PATH_MIG_ERR] = 0;
	cut_path(d, true);
	write_once(d, 0);
	for (int i = 0; i < 2; i++) {
		assert_true(attr_of(d, i).ah.is_global);
		expect_migrated(d, i, 2);
	}
	two_hcas_free(d);
	has_grh = false;
}

static void states_that_do_not_exist_are_refused(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	assert_int_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	assert_int_not_equal(ask_state(d, 0, HCA_MIG_REARM), 0); /* no path */
	give_alternate(d, 0);
	assert_int_not_equal(ask_state(d, 0, HCA_MIG_ARMED), 0);
	assert_int_not_equal(ask_state(d, 0, HCA_MIG_MIGRATED), 0);
	assert_int_equal(d->side[0].events[ENGINE_PATH_MIG], 0);
	two_hcas_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_are_armed_by_a_request_and_its_ack),
		cmocka_unit_test(the_bit_migreq_tells_the_state),
		cmocka_unit_test(nothing_is_lost_if_the_path_is_cut),
		cmocka_unit_test(nothing_is_lost_if_the_program_migrates),
		cmocka_unit_test(a_migration_waits_for_no_timer),
		cmocka_unit_test(
			a_queue_pair_that_is_armed_again_migrates_back),
		cmocka_unit_test(a_port_that_goes_down_is_survived),
		cmocka_unit_test(a_second_cut_ends_the_connection),
		cmocka_unit_test(a_peer_that_is_not_armed_yet_follows),
		cmocka_unit_test(a_requester_that_is_not_armed_yet_follows),
		cmocka_unit_test(the_silence_of_the_old_path_does_not_count),
		cmocka_unit_test(a_uc_queue_pair_migrates_with_its_peer),
		cmocka_unit_test(
			a_request_to_migrate_by_another_path_is_refused_once),
		cmocka_unit_test(an_alternate_path_with_a_grh_compares_gids),
		cmocka_unit_test(strangers_cause_no_migration_and_no_event),
		cmocka_unit_test(only_a_psn_of_the_peer_arms),
		cmocka_unit_test(
			packets_of_the_old_path_are_no_sign_of_forgery),
		cmocka_unit_test(states_that_do_not_exist_are_refused),
	};

	two_hcas_by_lid(false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
