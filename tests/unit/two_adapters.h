/* SPDX-License-Identifier: BSD-2-Clause */
/* A fabric of two adapters, A and B, and the switch S between them, with one
 * end at each adapter; and the management datagrams of programs at these ends.
 */
#ifndef TESTS_UNIT_TWO_ADAPTERS_H
#define TESTS_UNIT_TWO_ADAPTERS_H

#include "test.h"

#include <errno.h>

#include "fabric/fabric.h"
#include "fabric/net.h"
#include "hdr/bytes.h"

#define MAD_AT	  FABRIC_UMAD_BYTES
#define MAD_BYTES 256
#define SMALL	  (FABRIC_UMAD_BYTES + MAD_BYTES)
#define QP1_QKEY  0x80010000u

enum {
	GET = 1,
	SET = 2,
	SUBN_LID = 0x01,
	SUBN_DIRECTED = 0x81,
	SA = 0x03,
	PERF = 0x04,
	NODE_INFO = 0x11,
	PORT_INFO = 0x15,
	SM_INFO = 0x20,
	LFT = 0x19,
	SWITCH_INFO = 0x12,
};

static const char net_text[] = "Switch 4 \"S\"\n[1] \"A\"[1]\n[2] \"B\"[1]\n\n"
			       "Hca 1 \"A\"\n[1] \"S\"[1]\n\n"
			       "Hca 1 \"B\"\n[1] \"S\"[2]\n";

/* The fabric, a program at each adapter, and the time. */
struct world {
	struct fabric *f;
	struct end *a, *b;
	int agent; /* the agent of a, for directed-route SMPs */
	uint64_t now_ms;
};

/* Makes the fabric of the net file `text`, in which A and B are adapters. */
static inline int set_up_net(void **state, const char *text)
{
	struct fabric_agent asked = {.mgmt_class = SUBN_DIRECTED,
				     .class_version = 1};
	struct world *w = calloc(1, sizeof(*w));
	struct net_error error;
	struct net net;
	int err;

	assert_int_equal(net_parse(text, strlen(text), &net, &error), 0);
	w->f = fabric_new(&net);
	net_free(&net);
	assert_non_null(w->f);
	w->a = fabric_open(fabric_find(w->f, "A"), 1, NULL, &err);
	w->b = fabric_open(fabric_find(w->f, "B"), 1, NULL, &err);
	assert_non_null(w->a);
	assert_non_null(w->b);
	w->agent = fabric_register(w->a, &asked);
	assert_true(w->agent >= 0);
	w->now_ms = 1;
	fabric_set_time(w->f, w->now_ms);
	*state = w;
	return 0;
}

static inline int set_up(void **state)
{
	return set_up_net(state, net_text);
}

static inline int tear_down(void **state)
{
	struct world *w = *state;

	fabric_free(w->f);
	free(w);
	return 0;
}

/* A message of a program, and the MAD in it. */
struct smp {
	uint8_t bytes[SMALL];
	uint8_t *mad;
};

/* Makes an empty MAD of an agent, with a timeout of a second. */
static inline void init_mad(struct smp *s, int agent, uint8_t mgmt_class,
			    uint8_t method, uint16_t attribute,
			    uint32_t modifier)
{
	uint32_t id = (uint32_t)agent, timeout_ms = 1000;

	memset(s, 0, sizeof(*s));
	s->mad = s->bytes + MAD_AT;
	memcpy(s->bytes, &id, sizeof(id));
	memcpy(s->bytes + 8, &timeout_ms, sizeof(timeout_ms));
	s->mad[0] = s->mad[2] = 1;
	s->mad[1] = mgmt_class;
	s->mad[3] = method;
	bytes_put64(s->mad + 8, 0x1234);
	bytes_put16(s->mad + 16, attribute);
	bytes_put32(s->mad + 20, modifier);
}

/* Makes a directed-route SMP of an agent: `path` has the port by which each of
 * the hops leaves. */
static inline void init_directed(struct smp *s, int agent, const uint8_t *path,
				 uint8_t hops, uint8_t method,
				 uint16_t attribute, uint32_t modifier)
{
	init_mad(s, agent, SUBN_DIRECTED, method, attribute, modifier);
	s->mad[7] = hops;
	memset(s->mad + 32, 0xff, 4); /* DrSLID, DrDLID */
	for (int i = 0; i < hops; i++)
		s->mad[128 + 1 + i] = path[i];
}

/* Sends s, and returns the MAD that comes back, or NULL.  The MAD stays until
 * the next call. */
static inline const uint8_t *exchange_mad(struct world *w, struct end *end,
					  const struct smp *s)
{
	static uint8_t answer[SMALL];
	const uint8_t *message;
	size_t bytes;

	assert_int_equal(fabric_send(end, s->bytes, SMALL), 0);
	fabric_turn(w->f, w->now_ms);
	message = fabric_fetch(end, &bytes);
	if (!message)
		return NULL;
	assert_true(bytes <= SMALL);
	memset(answer, 0, sizeof(answer));
	memcpy(answer, message, bytes);
	fabric_fetched(end);
	return answer + MAD_AT;
}

/* the directed route from A to B: the port by which each hop leaves */
static const uint8_t to_b[] = {1, 2};

/* Asks for PortInfo by s, and stores the attribute of the answer in s, so that
 * s can become a Set. */
static inline void fetch_port_info(struct world *w, struct smp *s)
{
	const uint8_t *got = exchange_mad(w, w->a, s);

	assert_non_null(got);
	if (got) /* gcc does not know that the assertion ends the test */
		memcpy(s->mad + 64, got + 64, 64);
}

/* Sets the LID of the port at the end of the first `hops` hops of to_b, and the
 * SM's LID there to 1.  The state of the port does not change. */
static inline void set_lid(struct world *w, uint8_t hops, uint16_t lid)
{
	const uint8_t *got;
	struct smp s;

	init_directed(&s, w->agent, to_b, hops, GET, PORT_INFO, 0);
	fetch_port_info(w, &s);
	bytes_put16(s.mad + 64 + 16, lid);
	bytes_put16(s.mad + 64 + 18, 1);
	s.mad[3] = SET;
	s.mad[64 + 32] &= 0xf0;
	s.mad[64 + 33] &= 0x0f;
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	assert_int_equal(bytes_get16(got + 4), 0x8000);
	assert_int_equal(bytes_get16(got + 64 + 16), lid);
}

/* Sets the state of a port of the node at the end of the first `hops` hops of
 * to_b.  The answer must have this status. */
static inline void set_state(struct world *w, uint8_t hops, uint32_t port,
			     uint8_t to, uint16_t status)
{
	const uint8_t *got;
	struct smp s;

	init_directed(&s, w->agent, to_b, hops, GET, PORT_INFO, port);
	fetch_port_info(w, &s);
	s.mad[3] = SET;
	s.mad[64 + 32] = (uint8_t)((s.mad[64 + 32] & 0xf0) | to);
	s.mad[64 + 33] &= 0x0f;
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	assert_int_equal(bytes_get16(got + 4), 0x8000 | status);
}

/* Configures the subnet as a subnet manager does: LIDs 1 (A), 2 (S), 3 (B), the
 * switch's table, and ports in ACTIVE. */
static inline void configure_subnet(struct world *w)
{
	const uint8_t *got;
	struct smp s;

	set_lid(w, 0, 1);
	set_lid(w, 1, 2);
	set_lid(w, 2, 3);
	init_directed(&s, w->agent, to_b, 1, SET, SWITCH_INFO, 0);
	bytes_put16(s.mad + 64 + 6, 3); /* LinearFDBTop */
	assert_non_null(exchange_mad(w, w->a, &s));
	init_directed(&s, w->agent, to_b, 1, SET, LFT, 0);
	memset(s.mad + 64, 0xff, 64);
	s.mad[64 + 1] = 1;
	s.mad[64 + 2] = 0;
	s.mad[64 + 3] = 2;
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	for (uint8_t state = 3; state <= 4; state++) {
		set_state(w, 0, 1, state, 0);
		set_state(w, 1, 1, state, 0);
		set_state(w, 1, 2, state, 0);
		set_state(w, 2, 1, state, 0);
	}
}

/* Writes the destination of an agent's message: the QP, its Q_Key and the LID.
 */
static inline void address_to(struct smp *s, uint16_t lid, uint32_t qp)
{
	bytes_put32(s->bytes + 20, qp);
	bytes_put32(s->bytes + 24, qp ? QP1_QKEY : 0);
	bytes_put16(s->bytes + 28, lid);
}

#define WORLD_TEST(name)                                                       \
	cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
