/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric: two adapters and the switch between them answer and forward the
 * management datagrams of programs. */
#include "two_adapters.h"

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

static void states_go_from_init_by_armed_to_active(void **state)
{
	struct world *w = *state;

	set_state(w, 0, 1, 4, 0x1c); /* INIT to ACTIVE */
	set_state(w, 0, 1, 3, 0);
	set_state(w, 0, 1, 2, 0x1c); /* INIT cannot be set */
	set_state(w, 0, 1, 4, 0);
	set_state(w, 0, 1, 3, 0x1c); /* ACTIVE to ARMED */
}

static int open_perf(struct end *end, uint64_t methods)
{
	struct fabric_agent asked = {.mgmt_class = PERF,
				     .class_version = 1,
				     .methods = {methods, 0}};

	return fabric_register(end, &asked);
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
	/* the switch answers, too; a wrong Q_Key gets no answer */
	address_to(&s, 2, 1);
	assert_non_null(exchange_mad(w, w->a, &s));
	bytes_put32(s.bytes + 24, 1);
	assert_null(exchange_mad(w, w->a, &s));
}

/* The kernel also requires an OUI for the classes of vendors, 0x30 to 0x4f. */
static void an_agent_of_a_vendors_class_needs_an_oui(void **state)
{
	struct fabric_agent asked = {.mgmt_class = 0x30, .class_version = 1};
	struct world *w = *state;

	assert_int_equal(fabric_register(w->a, &asked), -EINVAL);
	asked.mgmt_class = 0x4f;
	assert_int_equal(fabric_register(w->a, &asked), -EINVAL);
	asked.oui = 1;
	assert_true(fabric_register(w->a, &asked) >= 0);
	/* the class before those of vendors has no OUI */
	asked = (struct fabric_agent){.mgmt_class = 0x2f, .class_version = 1};
	assert_true(fabric_register(w->a, &asked) >= 0);
}

/* The kernel's ib_register_mad_agent takes and refuses the same classes,
 * versions and RMPP. */
static void an_agent_has_a_class_of_the_kernel(void **state)
{
	static const struct {
		uint8_t mgmt_class, class_version, rmpp_version;
		bool is_taken;
	} cases[] = {
		{0x4f, 1, 1, true},    {0x50, 1, 0, false},
		{0x7f, 1, 0, false},   {0x80, 1, 0, false},
		{0x81, 1, 0, true},    {0x82, 1, 0, false},
		{0x04, 0x82, 0, true}, {0x04, 0x83, 0, false},
		{0x00, 0x83, 1, true}, {0x03, 2, 1, true},
		{0x06, 1, 1, true},    {0x10, 1, 1, true},
		{0x12, 1, 1, true},    {0x30, 1, 1, true},
		{0x01, 1, 1, false},   {0x81, 1, 1, false},
		{0x04, 1, 1, false},   {0x07, 1, 1, false},
		{0x09, 1, 1, false},   {0x06, 1, 2, false},
	};
	struct world *w = *state;

	for (size_t i = 0; i < TEST_COUNT(cases); i++) {
		const struct fabric_agent asked = {
			.oui = 1,
			.mgmt_class = cases[i].mgmt_class,
			.class_version = cases[i].class_version,
			.rmpp_version = cases[i].rmpp_version};
		int agent = fabric_register(w->a, &asked);

		if (!cases[i].is_taken)
			assert_int_equal(agent, -EINVAL);
		else
			assert_int_equal(
				fabric_unregister(w->a, (uint32_t)agent), 0);
	}
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
	assert_int_equal(fabric_register(w->b, &asked), -EINVAL);
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

/* The SMP goes by LID to the switch.  If the route has a hop, the SMP goes on
 * from the switch by port 2 to B.  The response goes back the same way.
 * Request and response are each shown once. */
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

/* An agent that takes SubnGet sets IsSM of the agent's port. */
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
	/* traps 259, 256 with a route, and 144 */
	enum { SWITCH_PKEY = 1 << 12, ROUTE = 1 << 21, MASK = 1 << 22 };
	struct world *w = *state;
	struct fabric_port port;

	fabric_show_port(fabric_find(w->f, "B"), 1, &port);
	assert_int_equal(port.capabilities, TRAP | AUTO_MIGRATION | SL_MAP |
						    SYSTEM_GUID | CM | ROUTE |
						    MASK | REREGISTER);
	fabric_show_port(fabric_find(w->f, "S"), 0, &port);
	assert_int_equal(port.capabilities, TRAP | SL_MAP | SYSTEM_GUID |
						    SWITCH_PKEY | ROUTE | MASK);
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

static int set_up_two_ports(void **state)
{
	return set_up_net(state, "Switch 4 \"S\"\n[1] \"A\"[1]\n[2] \"B\"[1]\n"
				 "[3] \"B\"[2]\n\nHca 1 \"A\"\n[1] \"S\"[1]\n\n"
				 "Hca 2 \"B\"\n[1] \"S\"[2]\n[2] \"S\"[3]\n");
}

/* Port 2 of B has an M_Key, port 1 has none.  SMPs that arrive at port 1 read
 * and set PortInfo of port 2. */
static void an_mkey_protects_its_port_from_the_other_port(void **state)
{
	static const uint8_t to_port_2[] = {1, 3};
	struct world *w = *state;
	const uint8_t *got;
	struct smp s;

	init_directed(&s, w->agent, to_port_2, 2, GET, PORT_INFO, 0);
	fetch_port_info(w, &s);
	bytes_put64(s.mad + 64, 7); /* M_Key */
	s.mad[64 + 34] = 1 << 6;    /* protect level 1 */
	assert_non_null(set_again(w, &s, s.mad));
	init_directed(&s, w->agent, to_b, 2, GET, PORT_INFO, 2);
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	assert_int_equal(bytes_get64(got + 64), 0);
	assert_null(set_again(w, &s, got));
	/* the M_Key of port 2 allows Get and Set at port 2, and port 1 needs no
	 * M_Key */
	bytes_put64(s.mad + 24, 7);
	s.mad[3] = GET;
	got = exchange_mad(w, w->a, &s);
	assert_non_null(got);
	assert_int_equal(bytes_get64(got + 64), 7);
	assert_int_equal(bytes_get16(got + 64 + 44), 1); /* violations */
	assert_non_null(set_again(w, &s, got));
	init_directed(&s, w->agent, to_b, 2, GET, PORT_INFO, 1);
	fetch_port_info(w, &s);
	assert_non_null(set_again(w, &s, s.mad));
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

/* B's agent of the class answers with a table of 100 000 bytes.  header: the
 * bytes of a segment before its data. */
static void expect_joined(struct world *w, uint8_t mgmt_class, size_t header)
{
	enum { LONG = 100000 };
	struct fabric_agent asked = {.mgmt_class = mgmt_class,
				     .class_version = 2,
				     .rmpp_version = 1};
	uint8_t *table = calloc(1, MAD_AT + LONG);
	const uint8_t *message;
	int server, client;
	struct smp s;
	size_t bytes;

	client = fabric_register(w->a, &asked);
	asked.methods[0] = 1 << 0x12; /* GetTable */
	server = fabric_register(w->b, &asked);
	init_mad(&s, client, mgmt_class, 0x12, 0x11, 0);
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
	for (size_t i = header; i < LONG; i++)
		table[MAD_AT + i] = (uint8_t)(i * 7 >> 3);
	assert_int_equal(fabric_send(w->b, table, MAD_AT + LONG), 0);
	fabric_turn(w->f, w->now_ms);
	message = fabric_fetch(w->a, &bytes);
	assert_non_null(message);
	assert_int_equal(bytes, MAD_AT + LONG);
	assert_memory_equal(message + MAD_AT + header, table + MAD_AT + header,
			    LONG - header);
	fabric_fetched(w->a);
	/* A forgets the transfer after the time in which B could repeat a
	 * segment */
	w->now_ms = fabric_deadline(w->f);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fabric_deadline(w->f), FABRIC_NEVER);
	free(table);
}

static void rmpp_joins_segments(void **state)
{
	struct world *w = *state;

	configure_subnet(w);
	expect_joined(w, SA, 56);
	expect_joined(w, 0x06, 64); /* DevMgt */
	expect_joined(w, 0x10, 64); /* DevAdm */
	expect_joined(w, 0x12, 64); /* BIS */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(smps_follow_a_directed_route),
		WORLD_TEST(a_route_that_leads_nowhere_times_out),
		WORLD_TEST(states_go_from_init_by_armed_to_active),
		WORLD_TEST(datagrams_follow_lids_once_ports_are_active),
		WORLD_TEST(an_agent_of_a_vendors_class_needs_an_oui),
		WORLD_TEST(an_agent_has_a_class_of_the_kernel),
		WORLD_TEST(requests_go_to_the_agent_that_registered),
		WORLD_TEST(an_smp_goes_by_lid_and_then_by_route),
		WORLD_TEST(a_manager_shows_is_sm_and_takes_sm_info),
		WORLD_TEST(a_port_says_what_it_supports),
		WORLD_TEST(an_mkey_protects_its_port),
		cmocka_unit_test_setup_teardown(
			an_mkey_protects_its_port_from_the_other_port,
			set_up_two_ports, tear_down),
		WORLD_TEST(a_switch_traps_until_it_is_repressed),
		WORLD_TEST(rmpp_joins_segments),
		WORLD_TEST(hosts_are_taken_in_the_order_of_the_file),
		WORLD_TEST(wrong_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
