/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric: two adapters and the switch between them answer and forward the
 * management datagrams of programs. */
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

static const char text[] = "Switch 4 \"S\"\n[1] \"A\"[1]\n[2] \"B\"[1]\n\n"
			   "Hca 1 \"A\"\n[1] \"S\"[1]\n\n"
			   "Hca 1 \"B\"\n[1] \"S\"[2]\n";

struct world {
	struct fabric *f;
	struct end *a, *b;
	int agent; /* of a: directed-route SMPs */
	uint64_t now_ms;
};

static int set_up(void **state)
{
	struct fabric_agent asked = {.mgmt_class = SUBN_DIRECTED,
				     .class_version = 1};
	struct world *w = calloc(1, sizeof(*w));
	struct net_error error;
	struct net net;
	int err;

	assert_int_equal(net_parse(text, sizeof(text) - 1, &net, &error), 0);
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

static int tear_down(void **state)
{
	struct world *w = *state;

	fabric_free(w->f);
	free(w);
	return 0;
}

struct smp {
	uint8_t bytes[SMALL];
	uint8_t *mad;
};

/* Makes an empty MAD of an agent, with a timeout of a second. */
static void init_mad(struct smp *s, int agent, uint8_t mgmt_class,
		     uint8_t method, uint16_t attribute, uint32_t modifier)
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

static void init_directed(struct smp *s, int agent, const uint8_t *path,
			  uint8_t hops, uint8_t method, uint16_t attribute,
			  uint32_t modifier)
{
	init_mad(s, agent, SUBN_DIRECTED, method, attribute, modifier);
	s->mad[7] = hops;
	memset(s->mad + 32, 0xff, 4); /* DrSLID, DrDLID */
	for (int i = 0; i < hops; i++)
		s->mad[128 + 1 + i] = path[i];
}

/* Sends s, and returns the MAD that comes back, or NULL.  The MAD stays until
 * the next call. */
static const uint8_t *exchange_mad(struct world *w, struct end *end,
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

/* Sends Set(PortInfo) with the attribute of the MAD `got`, but without a change
 * of the states.  Returns the response. */
static const uint8_t *set_again(struct world *w, struct smp *s,
				const uint8_t *got)
{
	memmove(s->mad + 64, got + 64, 64); /* `got` may be s->mad */
	s->mad[3] = SET;
	s->mad[64 + 32] &= 0xf0;
	s->mad[64 + 33] &= 0x0f;
	return exchange_mad(w, w->a, s);
}

static const uint8_t to_b[] = {1, 2};

static void smps_follow_a_directed_route(void **state)
{
	struct world *w = *state;
	const uint8_t *got;
	struct smp s;

	for (uint8_t hops = 0; hops <= 2; hops++) {
		static const uint64_t guids[] = {0x100000, 0x200000, 0x100002};
		static const uint8_t ports[] = {1, 1, 1};

		init_directed(&s, w->agent, to_b, hops, GET, NODE_INFO, 0);
		got = exchange_mad(w, w->a, &s);
		assert_non_null(got);
		assert_int_equal(got[3], 0x81);
		assert_int_equal(bytes_get16(got + 4),
				 0x8000);    /* D, no error */
		assert_int_equal(got[6], 0); /* HopPointer */
		assert_int_equal(bytes_get32(got + 12), 0x1234);
		assert_int_equal(bytes_get64(got + 64 + 12), guids[hops]);
		assert_int_equal(got[64 + 36], ports[hops]);
	}
}

static void a_route_that_leads_nowhere_times_out(void **state)
{
	static const uint8_t nowhere[] = {1, 3};
	struct world *w = *state;
	const uint8_t *message;
	uint32_t status;
	struct smp s;
	size_t bytes;

	init_directed(&s, w->agent, nowhere, 2, GET, NODE_INFO, 0);
	assert_null(exchange_mad(w, w->a, &s));
	assert_int_equal(fabric_deadline(w->f), w->now_ms + 1000);
	fabric_turn(w->f, w->now_ms + 999);
	assert_null(fabric_ready(w->f));
	fabric_turn(w->f, w->now_ms + 1000);
	assert_ptr_equal(fabric_ready(w->f), w->a);
	message = fabric_fetch(w->a, &bytes);
	memcpy(&status, message + 4, sizeof(status));
	assert_int_equal(status, ETIMEDOUT);
	assert_int_equal(bytes, MAD_AT + 24);
}

/* Sets the LID of the port at the end of a route, and the SM's LID there. */
static void set_lid(struct world *w, uint8_t hops, uint16_t lid)
{
	const uint8_t *got;
	struct smp s;

	init_directed(&s, w->agent, to_b, hops, GET, PORT_INFO, 0);
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	memcpy(s.mad + 64, got + 64, 64);
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

static void set_state(struct world *w, uint8_t hops, uint32_t port, uint8_t to,
		      uint16_t status)
{
	const uint8_t *got;
	struct smp s;

	init_directed(&s, w->agent, to_b, hops, GET, PORT_INFO, port);
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	memcpy(s.mad + 64, got + 64, 64);
	s.mad[3] = SET;
	s.mad[64 + 32] = (uint8_t)((got[64 + 32] & 0xf0) | to);
	s.mad[64 + 33] &= 0x0f;
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	assert_int_equal(bytes_get16(got + 4), 0x8000 | status);
}

/* Configures the subnet as a subnet manager does: LIDs 1 (A), 2 (S), 3 (B), the
 * switch's table, and ports in ACTIVE. */
static void configure_subnet(struct world *w)
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

static void states_go_from_init_by_armed_to_active(void **state)
{
	struct world *w = *state;

	set_state(w, 0, 1, 4, 0x1c); /* INIT to ACTIVE */
	set_state(w, 0, 1, 3, 0);
	set_state(w, 0, 1, 2, 0x1c); /* no request */
	set_state(w, 0, 1, 4, 0);
	set_state(w, 0, 1, 3, 0x1c); /* not back */
}

static int open_perf(struct end *end, uint64_t methods)
{
	struct fabric_agent asked = {.mgmt_class = PERF,
				     .class_version = 1,
				     .methods = {methods, 0}};

	return fabric_register(end, &asked);
}

static void address_to(struct smp *s, uint16_t lid, uint32_t qp)
{
	bytes_put32(s->bytes + 20, qp);
	bytes_put32(s->bytes + 24, qp ? QP1_QKEY : 0);
	bytes_put16(s->bytes + 28, lid);
}

static void datagrams_follow_lids_once_ports_are_active(void **state)
{
	struct world *w = *state;
	int agent = open_perf(w->a, 0);
	const uint8_t *got;
	struct smp s;

	assert_true(agent >= 0);
	init_mad(&s, agent, PERF, GET, 0x12, 0);
	s.mad[64 + 1] = 1; /* PortSelect */
	address_to(&s, 3, 1);
	assert_null(exchange_mad(w, w->a, &s));
	configure_subnet(w);
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	assert_int_equal(bytes_get16(got + 4), 0);
	assert_true(bytes_get32(got + 64 + 36) > 0); /* PortRcvPkts */
	/* a switch, and a wrong Q_Key */
	address_to(&s, 2, 1);
	assert_non_null(exchange_mad(w, w->a, &s));
	bytes_put32(s.bytes + 24, 1);
	assert_null(exchange_mad(w, w->a, &s));
}

static void requests_go_to_the_agent_that_registered(void **state)
{
	struct fabric_agent asked = {.mgmt_class = 0x32,
				     .class_version = 1,
				     .methods = {1 << GET, 0},
				     .oui = 0x001405};
	struct world *w = *state;
	const uint8_t *message;
	int server, client;
	struct smp s, reply;
	size_t bytes;

	configure_subnet(w);
	server = fabric_register(w->b, &asked);
	assert_int_equal(fabric_register(w->b, &asked), -EPERM);
	client = fabric_register(w->a, &(struct fabric_agent){
					       .mgmt_class = 0x32,
					       .class_version = 1,
					       .oui = 0x001405,
				       });
	init_mad(&s, client, 0x32, GET, 0, 0);
	bytes_put24(s.mad + 37, 0x001405);
	address_to(&s, 3, 1);
	assert_null(exchange_mad(w, w->a, &s));
	message = fabric_fetch(w->b, &bytes);
	assert_non_null(message);
	assert_int_equal(bytes, SMALL);
	assert_int_equal(message[0], server);
	assert_int_equal(bytes_get16(message + 28), 1); /* SLID */
	assert_int_equal(bytes_get32(message + 20), 1); /* QPN */
	memcpy(reply.bytes, message, SMALL);
	fabric_fetched(w->b);
	reply.bytes[MAD_AT + 3] |= 0x80;
	bytes_put32(reply.bytes + 24, QP1_QKEY);
	memset(reply.bytes + 8, 0, 4);
	assert_int_equal(fabric_send(w->b, reply.bytes, SMALL), 0);
	fabric_turn(w->f, w->now_ms);
	message = fabric_fetch(w->a, &bytes);
	assert_non_null(message);
	assert_int_equal(message[0], client);
	fabric_fetched(w->a);
	/* a second answer to one request is dropped */
	assert_int_equal(fabric_send(w->b, reply.bytes, SMALL), 0);
	fabric_turn(w->f, w->now_ms);
	assert_null(fabric_fetch(w->a, &bytes));
	/* no agent takes requests of another vendor: the fabric answers as the
	 * kernel does */
	bytes_put24(s.mad + 37, 0x001406);
	message = exchange_mad(w, w->a, &s);
	assert_non_null(message);
	assert_int_equal(bytes_get16(message + 4), 0x0c);
}

static void count_packet(void *arg, const uint8_t *p, size_t bytes)
{
	int *count = arg;

	++*count;
}

/* The SMP goes by LID to the switch, from there by port 2, and back.  Request
 * and response are each shown once. */
static void an_smp_goes_by_lid_and_then_by_route(void **state)
{
	static const uint8_t to_b_from_s[] = {2};
	struct world *w = *state;
	const uint8_t *got;
	int shown = 0;
	struct smp s;

	configure_subnet(w);
	fabric_watch(w->f, count_packet, &shown);
	for (uint8_t hops = 0; hops <= 1; hops++) {
		init_directed(&s, w->agent, to_b_from_s, hops, GET, NODE_INFO,
			      0);
		bytes_put16(s.mad + 32, 1); /* DrSLID */
		address_to(&s, 2, 0);
		got = exchange_mad(w, w->a, &s);
		assert_non_null(got);
		assert_int_equal(bytes_get64(got + 64 + 12),
				 hops ? 0x100002 : 0x200000);
		assert_int_equal(shown, 2 * (hops + 1));
	}
}

/* An agent that takes SubnGet sets IsSM of its port. */
static void a_manager_shows_is_sm_and_takes_sm_info(void **state)
{
	struct fabric_agent asked = {.mgmt_class = SUBN_DIRECTED,
				     .class_version = 1,
				     .methods = {1 << GET | 1 << SET, 0}};
	struct world *w = *state;
	struct fabric_port port;
	const uint8_t *got;
	struct smp s;
	size_t bytes;
	int agent;

	init_directed(&s, w->agent, to_b, 2, GET, SM_INFO, 0);
	got = exchange_mad(w, w->a, &s);
	assert_int_equal(bytes_get16(got + 4), 0x800c);
	agent = fabric_register(w->b, &asked);
	assert_true(agent >= 0);
	fabric_show_port(fabric_find(w->f, "B"), 1, &port);
	assert_int_equal(port.max_mtu, 5); /* 4096 bytes */
	assert_int_equal(port.vl_cap, 4);  /* VL 0 to 7 */
	assert_true(port.guids[0]);
	assert_int_equal(port.guids[1], 0);
	assert_true(port.capabilities & 2);
	assert_null(exchange_mad(w, w->a, &s));
	assert_non_null(fabric_fetch(w->b, &bytes));
	fabric_unregister(w->b, (uint32_t)agent);
	fabric_show_port(fabric_find(w->f, "B"), 1, &port);
	assert_false(port.capabilities & 2);
}

/* IBTA 14.2.5.6: CapabilityMask. */
static void a_port_says_what_it_supports(void **state)
{
	enum { TRAP = 1 << 3, AUTO_MIGRATION = 1 << 5, SL_MAP = 1 << 6 };
	enum { SYSTEM_GUID = 1 << 11, CM = 1 << 16, REREGISTER = 1 << 25 };
	struct world *w = *state;
	struct fabric_port port;

	fabric_show_port(fabric_find(w->f, "B"), 1, &port);
	assert_int_equal(port.capabilities, TRAP | AUTO_MIGRATION | SL_MAP |
						    SYSTEM_GUID | CM |
						    REREGISTER);
	fabric_show_port(fabric_find(w->f, "S"), 0, &port);
	assert_int_equal(port.capabilities, TRAP | SL_MAP | SYSTEM_GUID);
}

static void an_mkey_protects_its_port(void **state)
{
	struct world *w = *state;
	const uint8_t *got;
	struct smp s;

	init_directed(&s, w->agent, to_b, 2, GET, PORT_INFO, 0);
	got = exchange_mad(w, w->a, &s);
	memcpy(s.mad + 64, got + 64, 64);
	bytes_put64(s.mad + 64, 7);	  /* M_Key */
	bytes_put16(s.mad + 64 + 26, 10); /* lease: 10 s */
	s.mad[64 + 34] = 1 << 6;	  /* protect level 1 */
	assert_non_null(set_again(w, &s, s.mad));
	/* without the key, a Get does not show it, and a Set is dropped */
	init_directed(&s, w->agent, to_b, 2, GET, PORT_INFO, 0);
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	assert_int_equal(bytes_get64(got + 64), 0);
	assert_null(set_again(w, &s, got));
	bytes_put64(s.mad + 24, 7);
	s.mad[3] = GET;
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	assert_int_equal(bytes_get64(got + 64), 7);
	assert_int_equal(bytes_get16(got + 64 + 44), 1); /* violations */
	/* if no request has the right key until the lease ends, the level
	 * becomes 0 */
	init_directed(&s, w->agent, to_b, 2, GET, PORT_INFO, 0);
	got = exchange_mad(w, w->a, &s);
	assert_null(set_again(w, &s, got));
	w->now_ms += 10000;
	fabric_turn(w->f, w->now_ms);
	while (fabric_fetch(w->a, &(size_t){0}))
		fabric_fetched(w->a);
	init_directed(&s, w->agent, to_b, 2, GET, PORT_INFO, 0);
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	assert_int_equal(got[64 + 34] >> 6, 0);
}

/* The switch repeats trap 128 until the manager represses it. */
static void a_switch_traps_until_it_is_repressed(void **state)
{
	struct fabric_agent asked = {.mgmt_class = SUBN_LID,
				     .class_version = 1,
				     .methods = {1 << 5, 0}};
	struct world *w = *state;
	const uint8_t *message;
	struct smp s, repress;
	size_t bytes;
	int agent;

	configure_subnet(w);
	agent = fabric_register(w->a, &asked);
	assert_true(agent >= 0);
	init_directed(&s, w->agent, to_b, 1, GET, PORT_INFO, 2);
	message = exchange_mad(w, w->a, &s);
	memcpy(s.mad + 64, message + 64, 64);
	s.mad[3] = SET;
	s.mad[64 + 32] &= 0xf0;
	s.mad[64 + 33] = (uint8_t)((s.mad[64 + 33] & 0x0f) | 3 << 4); /* off */
	assert_non_null(exchange_mad(w, w->a, &s));
	fabric_turn(w->f, w->now_ms);
	for (int i = 0; i < 2; i++) {
		message = fabric_fetch(w->a, &bytes);
		assert_non_null(message);
		assert_int_equal(message[MAD_AT + 3], 5);
		assert_int_equal(bytes_get16(message + MAD_AT + 64 + 4), 128);
		assert_int_equal(bytes_get16(message + MAD_AT + 64 + 6), 2);
		memcpy(repress.bytes, message, SMALL);
		fabric_fetched(w->a);
		w->now_ms = fabric_deadline(w->f);
		fabric_turn(w->f, w->now_ms);
	}
	fabric_fetched(w->a);
	repress.bytes[MAD_AT + 3] = 7;
	bytes_put32(repress.bytes + 20, 0);
	assert_int_equal(fabric_send(w->a, repress.bytes, SMALL), 0);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fabric_deadline(w->f), FABRIC_NEVER);
}

/* An SA answers with a table of 100 000 bytes. */
static void rmpp_joins_segments(void **state)
{
	enum { LONG = 100000 };
	struct fabric_agent asked = {
		.mgmt_class = SA, .class_version = 2, .rmpp_version = 1};
	struct world *w = *state;
	uint8_t *table = calloc(1, MAD_AT + LONG);
	const uint8_t *message;
	int server, client;
	struct smp s;
	size_t bytes;

	configure_subnet(w);
	client = fabric_register(w->a, &asked);
	asked.methods[0] = 1 << 0x12; /* GetTable */
	server = fabric_register(w->b, &asked);
	init_mad(&s, client, SA, 0x12, 0x11, 0);
	s.mad[2] = 2;
	address_to(&s, 3, 1);
	assert_null(exchange_mad(w, w->a, &s));
	message = fabric_fetch(w->b, &bytes);
	assert_non_null(message);
	assert_int_equal(message[0], server);
	memcpy(table, message, SMALL);
	fabric_fetched(w->b);
	bytes_put32(table + 24, QP1_QKEY);
	memset(table + 8, 0, 4);
	table[MAD_AT + 3] |= 0x80;
	table[MAD_AT + 26] = 1; /* active: all that OpenSM sets */
	for (size_t i = 56; i < LONG; i++)
		table[MAD_AT + i] = (uint8_t)(i * 7 >> 3);
	assert_int_equal(fabric_send(w->b, table, MAD_AT + LONG), 0);
	fabric_turn(w->f, w->now_ms);
	message = fabric_fetch(w->a, &bytes);
	assert_non_null(message);
	assert_int_equal(bytes, MAD_AT + LONG);
	assert_memory_equal(message + MAD_AT + 56, table + MAD_AT + 56,
			    LONG - 56);
	fabric_fetched(w->a);
	/* A forgets the transfer when B would not send segments again */
	w->now_ms = fabric_deadline(w->f);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fabric_deadline(w->f), FABRIC_NEVER);
	free(table);
}

static void hosts_are_taken_in_the_order_of_the_file(void **state)
{
	struct world *w = *state;
	struct node *a = fabric_take(w->f, ""), *b = fabric_take(w->f, "");

	assert_string_equal(fabric_id(a), "A");
	assert_string_equal(fabric_id(b), "B");
	assert_null(fabric_take(w->f, ""));
	assert_ptr_equal(fabric_take(w->f, "A"), a); /* shared by name */
	fabric_release(b);
	assert_ptr_equal(fabric_take(w->f, ""), b);
}

static void wrong_messages_are_refused(void **state)
{
	struct world *w = *state;
	struct smp s;

	init_directed(&s, w->agent, to_b, 0, GET, NODE_INFO, 0);
	assert_int_equal(fabric_send(w->a, s.bytes, MAD_AT + 23), -EINVAL);
	s.bytes[0] = 31; /* no such agent */
	assert_int_equal(fabric_send(w->a, s.bytes, SMALL), -EINVAL);
	s.bytes[0] = 200;
	assert_int_equal(fabric_send(w->a, s.bytes, SMALL), -EINVAL);
	assert_int_equal(fabric_unregister(w->a, 31), -EINVAL);
}

/* The limits of a fabric (ENDS) and of an end are numbers here, so that a test
 * fails if a limit of the product changes. */
enum { ENDS = 4096, WAITS = 4096, HELD = 16 << 20, TRANSFERS = 32 };

static void ends_are_bounded(void **state)
{
	struct world *w = *state;
	struct end *last = NULL, *end;
	int err, count = 2; /* a and b */

	while ((end = fabric_open(fabric_find(w->f, "A"), 1, NULL, &err))) {
		last = end;
		count++;
	}
	assert_int_equal(err, -EMFILE);
	assert_int_equal(count, ENDS);
	fabric_close(last);
	assert_non_null(fabric_open(fabric_find(w->f, "B"), 1, NULL, &err));
}

static void requests_without_a_response_are_bounded(void **state)
{
	static const uint8_t nowhere[] = {1, 3};
	struct world *w = *state;
	struct smp s;
	int count = 0;

	init_directed(&s, w->agent, nowhere, 2, GET, NODE_INFO, 0);
	while (!fabric_send(w->a, s.bytes, SMALL) && count < 2 * WAITS) {
		bytes_put64(s.mad + 8, (uint64_t)++count);
		fabric_turn(w->f, w->now_ms);
	}
	assert_int_equal(count, WAITS);
	assert_int_equal(fabric_send(w->a, s.bytes, SMALL), -ENOBUFS);
}

static void messages_that_nobody_fetches_are_bounded(void **state)
{
	struct world *w = *state;
	size_t bytes, held = 0;
	struct smp s;

	init_directed(&s, w->agent, NULL, 0, GET, NODE_INFO, 0);
	for (int i = 0; i < HELD / SMALL + 1000; i++) {
		assert_int_equal(fabric_send(w->a, s.bytes, SMALL), 0);
		fabric_turn(w->f, w->now_ms);
	}
	while (fabric_fetch(w->a, &bytes)) {
		held += bytes;
		fabric_fetched(w->a);
	}
	assert_uint_in_range(held, HELD - SMALL, HELD + SMALL);
}

static void transfers_that_nobody_acknowledges_are_bounded(void **state)
{
	struct fabric_agent asked = {
		.mgmt_class = SA, .class_version = 2, .rmpp_version = 1};
	struct world *w = *state;
	struct smp s;
	int count = 0;

	configure_subnet(w);
	init_mad(&s, fabric_register(w->a, &asked), SA, 0x92, 0x11, 0);
	s.mad[2] = 2;
	s.mad[26] = 1; /* active */
	address_to(&s, 3, 1);
	memset(s.bytes + 8, 0, 4);
	while (!fabric_send(w->a, s.bytes, SMALL) && count < 2 * TRANSFERS) {
		bytes_put64(s.mad + 8, (uint64_t)++count);
		fabric_turn(w->f, w->now_ms);
	}
	assert_int_equal(count, TRANSFERS);
	assert_int_equal(fabric_send(w->a, s.bytes, SMALL), -ENOBUFS);
}

/* Sends one segment of a request by RMPP.  Returns whether its ACK comes. */
static bool ack_comes(struct world *w, struct smp *s, uint32_t segment)
{
	const uint8_t *got;

	s->mad[24] = 1; /* version of RMPP */
	s->mad[25] = 1; /* DATA */
	s->mad[26] = segment == 1 ? 3 : 1;
	bytes_put32(s->mad + 28, segment);
	got = exchange_mad(w, w->b, s);
	/* a STOP tells that there is no room */
	assert_true(!got || got[25] == 2 || got[25] == 3);
	return got && got[25] == 2;
}

/* Registers an agent of A that takes GetMulti by RMPP.  Makes, in s, a request
 * to that agent, by an agent of B that writes the headers of RMPP itself. */
static void init_segments(struct world *w, struct smp *s)
{
	struct fabric_agent asked = {.mgmt_class = SA,
				     .class_version = 2,
				     .rmpp_version = 1,
				     .methods = {1 << 0x14, 0}};

	configure_subnet(w);
	assert_true(fabric_register(w->a, &asked) >= 0);
	asked.rmpp_version = 0;
	asked.methods[0] = 0;
	init_mad(s, fabric_register(w->b, &asked), SA, 0x14, 0x11, 0);
	s->mad[2] = 2;
	address_to(s, 1, 1);
}

/* A peer begins transfers and ends none.  The end forgets them after 40 s. */
static void transfers_that_nobody_ends_are_bounded(void **state)
{
	struct world *w = *state;
	struct smp s;

	init_segments(w, &s);
	for (uint64_t i = 1; i <= TRANSFERS; i++) {
		bytes_put64(s.mad + 8, i);
		assert_true(ack_comes(w, &s, 1));
	}
	bytes_put64(s.mad + 8, TRANSFERS + 1);
	assert_false(ack_comes(w, &s, 1));
	w->now_ms += 40000;
	fabric_turn(w->f, w->now_ms);
	while (fabric_fetch(w->b, &(size_t){0}))
		fabric_fetched(w->b);
	assert_true(ack_comes(w, &s, 1));
}

/* A peer sends segments without end.  The transfer ends before the MAD has more
 * bytes than FABRIC_MAD_MAX, and the program gets nothing. */
static void a_mad_without_end_is_dropped(void **state)
{
	enum { SEGMENTS = FABRIC_MAD_MAX / 200 + 1 };
	struct world *w = *state;
	int acknowledged = 0;
	struct smp s;
	size_t bytes;

	init_segments(w, &s);
	for (uint32_t i = 1; i < SEGMENTS; i++)
		acknowledged += ack_comes(w, &s, i);
	assert_true(acknowledged > 1);
	for (uint32_t i = SEGMENTS; i < SEGMENTS + 128; i++)
		assert_false(ack_comes(w, &s, i));
	assert_null(fabric_fetch(w->a, &bytes));
	bytes_put64(s.mad + 8, 99);
	assert_true(ack_comes(w, &s, 1));
}

/* A segment that has come before, or comes too early, extends no transfer. */
static void only_new_segments_extend_a_transfer(void **state)
{
	struct world *w = *state;
	struct smp s;
	uint64_t due_ms;

	init_segments(w, &s);
	assert_true(ack_comes(w, &s, 1));
	due_ms = fabric_deadline(w->f);
	w->now_ms = due_ms - 1;
	assert_true(ack_comes(w, &s, 1));
	assert_false(ack_comes(w, &s, 9));
	assert_int_equal(fabric_deadline(w->f), due_ms);
}

/* A sends a response by RMPP.  B's ACKs acknowledge nothing, but open the
 * window more and more.  A gives up all the same. */
static void acks_without_progress_keep_no_transfer(void **state)
{
	struct world *w = *state;
	struct smp s, ack;

	init_segments(w, &ack);
	init_mad(&s, 0, SA, 0x94, 0x11, 0);
	s.bytes[0] = 1; /* A's agent for SA */
	s.mad[2] = 2;
	s.mad[26] = 1; /* active */
	address_to(&s, 3, 1);
	assert_int_equal(fabric_send_as_is(w->a, s.bytes, SMALL), 0);
	memset(ack.bytes + 8, 0, 4); /* no timeout */
	ack.mad[24] = 1;
	ack.mad[25] = 2; /* ACK, of segment 0 */
	ack.mad[26] = 1;
	for (uint32_t window = 1; window <= 20; window++) {
		bytes_put32(ack.mad + 32, window);
		assert_int_equal(fabric_send_as_is(w->b, ack.bytes, SMALL), 0);
		w->now_ms += 1000;
		fabric_turn(w->f, w->now_ms);
	}
	assert_int_equal(fabric_deadline(w->f), FABRIC_NEVER);
}

#define WORLD_TEST(name)                                                       \
	cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(smps_follow_a_directed_route),
		WORLD_TEST(a_route_that_leads_nowhere_times_out),
		WORLD_TEST(states_go_from_init_by_armed_to_active),
		WORLD_TEST(datagrams_follow_lids_once_ports_are_active),
		WORLD_TEST(requests_go_to_the_agent_that_registered),
		WORLD_TEST(an_smp_goes_by_lid_and_then_by_route),
		WORLD_TEST(a_manager_shows_is_sm_and_takes_sm_info),
		WORLD_TEST(a_port_says_what_it_supports),
		WORLD_TEST(an_mkey_protects_its_port),
		WORLD_TEST(a_switch_traps_until_it_is_repressed),
		WORLD_TEST(rmpp_joins_segments),
		WORLD_TEST(hosts_are_taken_in_the_order_of_the_file),
		WORLD_TEST(wrong_messages_are_refused),
		WORLD_TEST(ends_are_bounded),
		WORLD_TEST(requests_without_a_response_are_bounded),
		WORLD_TEST(messages_that_nobody_fetches_are_bounded),
		WORLD_TEST(transfers_that_nobody_acknowledges_are_bounded),
		WORLD_TEST(transfers_that_nobody_ends_are_bounded),
		WORLD_TEST(a_mad_without_end_is_dropped),
		WORLD_TEST(only_new_segments_extend_a_transfer),
		WORLD_TEST(acks_without_progress_keep_no_transfer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
