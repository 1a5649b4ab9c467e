/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/ipoib_rc: the RC queue pairs of an IPoIB interface.  The test plays the
 * interface and its adapter. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ipoib/stream.h"
#include "tools/ipoib_rc.h"
#include "util/bits.h"

enum {
	PORT = 1,
	PKEY = 0x8001,
	PEER_QPN = 0x777,
	MESSAGE = 100,
	FIRST = 7, /* the id of the first connection */
	QPS = 4,
	COMPLETIONS = 512,
	FLOOD = 128, /* messages; one call does not receive all of them */
};

/* The queue pairs of the adapter that the test plays.  An RC queue pair takes a
 * receive of the shared receive queue when a message begins.  The receive
 * completes when the message is complete or the queue pair enters ERR.
 * Completions that were not polled are lost with their queue pair (IBTA
 * 10.2.8.2). */
struct pair {
	struct ibv_qp qp;
	bool is_live;
	bool has_receive;
	uint32_t receive; /* the wr_id of that receive */
};

static struct {
	struct ibv_context context;
	struct ibv_cq receive_cq, send_cq;
	struct ibv_srq srq;
	struct ibv_pd pd;
	struct ibv_mr mr;
	struct pair pairs[QPS]; /* RC */
	struct pair ud;
	struct ibv_wc wc[COMPLETIONS]; /* of receives */
	int wc_count;
	struct ibv_wc done[COMPLETIONS]; /* of sends */
	int done_count;
	bool is_posted[IPOIB_RC_RECEIVES];
	uint64_t sends[COMPLETIONS]; /* the wr_ids */
	int send_count;
	uint32_t packets;
	uint32_t ends_at; /* the packet at which a connection ends */
	uint32_t ended;	  /* the id of that connection */
	struct ipoib_verbs v;
	struct ipoib_rc r;
} at;

static struct pair *pair_of(struct ibv_qp *qp)
{
	return CONTAINER_OF(qp, struct pair, qp);
}

static uint32_t posted_receives(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < IPOIB_RC_RECEIVES; i++)
		count += at.is_posted[i];
	return count;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad)
{
	assert_true(wr->wr_id < IPOIB_RC_RECEIVES);
	assert_false(at.is_posted[wr->wr_id]);
	at.is_posted[wr->wr_id] = true;
	return 0;
}

static int take_all(struct ibv_wc *from, int *count, int most,
		    struct ibv_wc *wc)
{
	int n = *count < most ? *count : most;

	memcpy(wc, from, (size_t)n * sizeof(*wc));
	*count -= n;
	memmove(from, from + n, (size_t)*count * sizeof(*from));
	return n;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	return cq == &at.receive_cq
		       ? take_all(at.wc, &at.wc_count, most, wc)
		       : take_all(at.done, &at.done_count, most, wc);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	return 0;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	assert_true(pair_of(qp)->is_live);
	at.sends[at.send_count++] = wr->wr_id;
	return 0;
}

/* The functions of libibverbs that this program defines take the place of
 * those of the library. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	for (uint32_t i = 0; i < QPS; i++) {
		struct pair *p = &at.pairs[i];

		if (p->is_live)
			continue;
		*p = (struct pair){
			.is_live = true,
			.qp = {.context = &at.context, .qp_num = 0x100 + i}};
		return &p->qp;
	}
	errno = ENOMEM;
	return NULL;
}

static void complete_receive(struct pair *p, enum ibv_wc_status status)
{
	assert_true(p->has_receive);
	p->has_receive = false;
	at.wc[at.wc_count++] = (struct ibv_wc){.wr_id = p->receive,
					       .status = status,
					       .qp_num = p->qp.qp_num,
					       .byte_len = MESSAGE};
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (attr->qp_state == IBV_QPS_ERR && pair_of(qp)->has_receive)
		complete_receive(pair_of(qp), IBV_WC_WR_FLUSH_ERR);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int kept = 0;

	for (int i = 0; i < at.wc_count; i++)
		if (at.wc[i].qp_num != qp->qp_num)
			at.wc[kept++] = at.wc[i];
	at.wc_count = kept;
	pair_of(qp)->is_live = false;
	return 0;
}

/* ---- the interface ---- */

bool stream_from(struct ipoib *m, uint32_t id, struct ipoib_from *from,
		 uint64_t now_ms)
{
	return true;
}

void ipoib_packet(struct ipoib *m, const struct ipoib_from *from, uint8_t *p,
		  size_t bytes, uint64_t now_ms)
{
	at.packets++;
	if (at.packets == at.ends_at)
		ipoib_rc_end(&at.r, at.ended);
}

void ipoib_answer(struct ipoib *m, const uint8_t *mad, size_t bytes,
		  uint64_t now_ms)
{
}

/* ---- set-up ---- */

static void set_verbs(void)
{
	struct ipoib_verbs *v = &at.v;

	at.context.ops.poll_cq = poll_cq;
	at.context.ops.post_srq_recv = post_srq_recv;
	at.context.ops.post_send = post_send;
	at.context.ops.post_recv = post_recv;
	at.context.ops.req_notify_cq = req_notify_cq;
	at.ud.qp.context = &at.context;
	at.receive_cq.context = at.send_cq.context = &at.context;
	at.srq.context = &at.context;
	*v = (struct ipoib_verbs){.context = &at.context,
				  .pd = &at.pd,
				  .send_cq = &at.send_cq,
				  .receive_cq = &at.receive_cq,
				  .qp = &at.ud.qp,
				  .mr = &at.mr,
				  .port = PORT,
				  .is_started = true};
	v->places.count = v->places.free_count = IPOIB_VERBS_SENDS;
	v->places.bytes = 128;
	for (uint16_t i = 0; i < IPOIB_VERBS_SENDS; i++)
		v->places.free[i] = i;
	v->memory = calloc(1, IPOIB_VERBS_RECEIVES * IPOIB_VERBS_RECEIVE_BYTES +
				      IPOIB_VERBS_SENDS * 128u);
	assert_non_null(v->memory);
}

/* Serves the request of a neighbour that connects.  Returns false if the
 * request is refused. */
static bool serve_request(uint32_t id)
{
	const struct cmproto m = {.qp.qpn = PEER_QPN,
				  .path = {.mtu = 4, .remote_lid = 5}};
	struct cmproto reply = {0};

	return ipoib_rc_serve(&at.r, id, &m, &reply);
}

static int set_up(void **state)
{
	memset(&at, 0, sizeof(at));
	set_verbs();
	at.r = (struct ipoib_rc){.v = &at.v,
				 .receive_cq = &at.receive_cq,
				 .srq = &at.srq,
				 .mr = &at.mr};
	at.r.memory = calloc(IPOIB_RC_RECEIVES, IPOIB_STREAM_MAX + 64);
	assert_non_null(at.r.memory);
	for (uint32_t i = 0; i < IPOIB_RC_RECEIVES; i++)
		at.is_posted[i] = true;
	for (uint32_t i = 0; i < 2; i++)
		assert_true(serve_request(FIRST + i));
	return 0;
}

static int tear_down(void **state)
{
	free(at.v.memory);
	free(at.r.memory);
	return 0;
}

/* The queue pair takes a receive for the next message. */
static void begin_message(struct pair *p)
{
	uint32_t i = 0;

	assert_true(p->is_live && !p->has_receive);
	while (!at.is_posted[i])
		i++;
	at.is_posted[i] = false;
	p->receive = i;
	p->has_receive = true;
}

static void bring_message(struct pair *p)
{
	begin_message(p);
	complete_receive(p, IBV_WC_SUCCESS);
}

static int receive_all(uint64_t now_ms)
{
	return ipoib_rc_receive(&at.r, NULL, 64, now_ms);
}

static void packets_are_received_and_their_places_are_posted(void **state)
{
	for (int i = 0; i < 100; i++)
		bring_message(&at.pairs[i % 2]);
	assert_true(receive_all(1) >= 64);
	receive_all(1);
	assert_int_equal(at.packets, 100);
	assert_int_equal(posted_receives(), IPOIB_RC_RECEIVES);
}

/* A queue pair at which a message has begun has a receive.  The receive
 * completes when the connection ends, here while a packet of another connection
 * is handled. */
static void no_receive_is_lost_when_a_connection_ends(void **state)
{
	for (int order = 0; order < 2; order++) {
		struct pair *ends = &at.pairs[!order],
			    *other = &at.pairs[order];

		at.packets = 0;
		at.ends_at = 1;
		at.ended = FIRST + (ends == &at.pairs[1]);
		begin_message(ends);
		bring_message(other);
		receive_all(1);
		assert_int_equal(at.packets, 1);
		receive_all(2);
		assert_int_equal(posted_receives(), IPOIB_RC_RECEIVES);
		/* by now the queue pair is destroyed */
		assert_false(ends->is_live);
		assert_true(other->is_live);
		assert_false(at.r.has_closed);
		assert_true(serve_request(at.ended));
		assert_true(ends->is_live);
	}
}

static void a_connection_that_ends_itself_loses_no_receive(void **state)
{
	at.ends_at = 1;
	at.ended = FIRST;
	bring_message(&at.pairs[0]);
	begin_message(&at.pairs[0]);
	receive_all(1);
	receive_all(2);
	assert_int_equal(posted_receives(), IPOIB_RC_RECEIVES);
	assert_false(at.pairs[0].is_live);
}

/* The neighbour of the second connection sends so much that completions are
 * always left. */
static void a_flood_delays_no_end_of_a_connection(void **state)
{
	uint32_t turns = 0;

	begin_message(&at.pairs[0]);
	for (int i = 0; i < FLOOD; i++)
		bring_message(&at.pairs[1]);
	ipoib_rc_end(&at.r, FIRST);
	while (at.pairs[0].is_live) {
		int before = at.wc_count;

		assert_true(turns++ < IPOIB_RC_RECEIVES);
		receive_all(1);
		while (at.wc_count < before)
			bring_message(&at.pairs[1]);
	}
	assert_int_equal(posted_receives(), IPOIB_RC_RECEIVES - FLOOD - 1);
	while (receive_all(2))
		;
	assert_int_equal(posted_receives(), IPOIB_RC_RECEIVES);
	assert_true(serve_request(FIRST));
}

static void send_packets(uint32_t id, int count)
{
	const uint8_t packet[MESSAGE] = {0};

	for (int i = 0; i < count; i++)
		ipoib_rc_send(&at.r, id, packet, sizeof(packet));
}

static void complete_send(int i)
{
	at.done[at.done_count++] =
		(struct ibv_wc){.wr_id = at.sends[i], .status = IBV_WC_SUCCESS};
	ipoib_verbs_collect(&at.v);
}

/* When a join of the broadcast group is refused, the interface goes down, but
 * its connections do not end.  After the next join the interface comes up, and
 * packets of the connections are still in flight. */
static void
a_packet_in_flight_keeps_its_place_when_the_interface_restarts(void **state)
{
	const uint8_t packet[MESSAGE] = {0};
	struct ibv_sge sge;
	uint32_t taken = 0;

	send_packets(FIRST, 3);
	ipoib_verbs_stop(&at.v);
	complete_send(0);
	assert_int_equal(ipoib_verbs_start(&at.v, 1), 0);
	assert_int_equal(at.v.places.free_count, IPOIB_VERBS_SENDS - 2);
	while (ipoib_verbs_take_place(&at.v, NULL, packet, MESSAGE, &sge))
		taken++;
	assert_int_equal(taken, IPOIB_VERBS_SENDS - 2);
	complete_send(1);
	complete_send(2);
	assert_int_equal(at.v.places.free_count, 2);
	assert_int_equal(at.r.links[0].flow.in_flight, 0);
}

/* If the interface kept a connection whose packets do not arrive, these packets
 * would keep their places in the memory for sends for ever. */
static void a_connection_whose_packets_do_not_arrive_has_failed(void **state)
{
	uint64_t now_ms = 1000;

	assert_int_equal(ipoib_rc_broken(&at.r, now_ms), 0);
	now_ms += 100000;
	assert_int_equal(ipoib_rc_broken(&at.r, now_ms), 0);
	send_packets(FIRST, 3);
	send_packets(FIRST + 1, 1);
	assert_int_equal(at.send_count, 4);
	complete_send(3);
	now_ms += IPOIB_RC_STUCK_MS - 1;
	assert_int_equal(ipoib_rc_broken(&at.r, now_ms), 0);
	/* slow, but not stopped */
	complete_send(0);
	now_ms += IPOIB_RC_STUCK_MS - 1;
	assert_int_equal(ipoib_rc_broken(&at.r, now_ms), 0);
	now_ms += IPOIB_RC_STUCK_MS - 1;
	assert_int_equal(ipoib_rc_broken(&at.r, now_ms), 0);
	now_ms++;
	assert_int_equal(ipoib_rc_broken(&at.r, now_ms), FIRST);
	ipoib_rc_end(&at.r, FIRST);
	assert_int_equal(ipoib_rc_broken(&at.r, now_ms), 0);
	receive_all(now_ms);
	assert_int_equal(at.v.places.free_count, IPOIB_VERBS_SENDS);
	/* for a new connection in its place the time begins anew */
	assert_true(serve_request(FIRST));
	send_packets(FIRST, 1);
	assert_int_equal(ipoib_rc_broken(&at.r, now_ms), 0);
}

static void requests_are_served_within_the_partition(void **state)
{
	const struct cmproto good = {.path = {.mtu = 5,
					      .remote_lid = 0xbfff,
					      .sl = 15,
					      .pkey = PKEY}};
	struct cmproto m = good;

	assert_true(ipoib_rc_may_serve(&m, PKEY));
	m.path.pkey = PKEY & 0x7fff; /* a limited member */
	assert_true(ipoib_rc_may_serve(&m, PKEY));
	m.path.pkey = PKEY + 1;
	assert_false(ipoib_rc_may_serve(&m, PKEY));
	m = good;
	m.qp.transport = 1; /* UC */
	assert_false(ipoib_rc_may_serve(&m, PKEY));
	for (uint32_t mtu = 0; mtu < 256; mtu++) {
		m = good;
		m.path.mtu = (uint8_t)mtu;
		assert_int_equal(ipoib_rc_may_serve(&m, PKEY),
				 mtu >= 1 && mtu <= 5);
	}
	m = good;
	m.path.remote_lid = 0;
	assert_false(ipoib_rc_may_serve(&m, PKEY));
	m.path.remote_lid = 0xc000; /* a group */
	assert_false(ipoib_rc_may_serve(&m, PKEY));
	m = good;
	m.path.sl = 16;
	assert_false(ipoib_rc_may_serve(&m, PKEY));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(packets_are_received_and_their_places_are_posted),
		CASE(no_receive_is_lost_when_a_connection_ends),
		CASE(a_connection_that_ends_itself_loses_no_receive),
		CASE(a_flood_delays_no_end_of_a_connection),
		CASE(a_connection_whose_packets_do_not_arrive_has_failed),
		CASE(a_packet_in_flight_keeps_its_place_when_the_interface_restarts),
		CASE(requests_are_served_within_the_partition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
