/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/trap: a port tells the subnet manager, a program on C, what has
 * happened, and which port has caused a violation. */
#include "data_world.h"

#include "fabric/port_info.h"
#include "fabric/trap.h"

enum {
	MAD_AT = FABRIC_UMAD_BYTES,
	MESSAGE = MAD_AT + MAD_BYTES,
	NOTICE_AT = MAD_AT + 64,
	AT_SM_LID = 18,
	AT_PROTECT = 34,
	LID_S1 = 10,
	LID_S3 = 12,
	PAUSE_MS = 2000,
	AT_PKEY_COUNT = 46, /* P_KeyViolations */
	AT_QKEY_COUNT = 48, /* Q_KeyViolations */
	WRONG_QKEY = 0x12345678,
};

struct manager {
	struct world *w;
	struct end *end;
	uint8_t message[MESSAGE]; /* the last trap */
};

/* Gives a port a LID, and makes C the subnet manager of the port. */
static void tell_manager(struct port *port, uint16_t lid)
{
	bytes_put16(port->info + AT_LID, lid);
	bytes_put16(port->info + AT_SM_LID, LID_C);
}

/* Opens the subnet manager on C, which receives the traps of five ports. */
static struct manager run_manager(struct world *w)
{
	struct fabric_agent asked = {.mgmt_class = CLASS_SUBN_LID,
				     .class_version = 1,
				     .methods = {1 << METHOD_TRAP, 0}};
	struct manager m = {.w = w};
	int err;

	m.end = fabric_open(fabric_find(w->f, "C"), 1, NULL, &err);
	assert_non_null(m.end);
	assert_true(fabric_register(m.end, &asked) >= 0);
	tell_manager(port_of(w, "A", 1), LID_A);
	tell_manager(port_of(w, "B", 1), LID_B);
	tell_manager(port_of(w, "C", 1), LID_C);
	tell_manager(port_of(w, "S1", 0), LID_S1);
	tell_manager(port_of(w, "S3", 0), LID_S3);
	return m;
}

/* Returns the notice of the next trap; NULL: there is none. */
static const uint8_t *next_notice(struct manager *m)
{
	const uint8_t *message;
	size_t bytes;

	fabric_turn(m->w->f, m->w->now_ms);
	message = fabric_fetch(m->end, &bytes);
	if (!message)
		return NULL;
	assert_int_equal(bytes, MESSAGE);
	memcpy(m->message, message, MESSAGE);
	fabric_fetched(m->end);
	assert_int_equal(m->message[MAD_AT + 3], METHOD_TRAP);
	assert_int_equal(bytes_get16(m->message + MAD_AT + 16), ATTR_NOTICE);
	return m->message + NOTICE_AT;
}

/* Returns the notice of the next trap, which must have this number and issuer.
 */
static const uint8_t *expect_trap(struct manager *m, uint16_t number,
				  uint16_t issuer)
{
	const uint8_t *n = next_notice(m);

	assert_non_null(n);
	assert_int_equal(n[0] & 0x80, 0x80); /* generic */
	assert_int_equal(bytes_get16(n + 4), number);
	assert_int_equal(bytes_get16(n + 6), issuer);
	return n;
}

static void repress_last(struct manager *m)
{
	m->message[MAD_AT + 3] = METHOD_TRAP_REPRESS;
	bytes_put32(m->message + 20, 0); /* QP0 */
	assert_int_equal(fabric_send(m->end, m->message, MESSAGE), 0);
	fabric_turn(m->w->f, m->w->now_ms);
}

/* A program on A sends Set(PortInfo) to B without B's M_Key. */
static void set_without_key(struct world *w)
{
	struct fabric_agent asked = {.mgmt_class = CLASS_SUBN_LID,
				     .class_version = 1};
	uint8_t s[MESSAGE] = {0}, *mad = s + MAD_AT;
	struct end *end;
	int err, agent;

	bytes_put64(port_of(w, "B", 1)->info, 7);
	end = fabric_open(fabric_find(w->f, "A"), 1, NULL, &err);
	assert_non_null(end);
	agent = fabric_register(end, &asked);
	memcpy(s, &agent, sizeof(agent));
	bytes_put16(s + 28, LID_B);
	mad[0] = mad[1] = mad[2] = 1;
	mad[3] = METHOD_SET;
	bytes_put16(mad + 16, 0x15);
	bytes_put32(mad + 20, 1);
	bytes_put64(mad + 24, 0x1122334455667788);
	assert_int_equal(fabric_send(end, s, MESSAGE), 0);
	fabric_turn(w->f, w->now_ms);
	fabric_close(end);
}

/* IBTA 14.2.5.1, trap 256 */
static void a_wrong_mkey_is_reported(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	const uint8_t *n;

	set_without_key(w);
	n = expect_trap(&m, 256, LID_B);
	assert_int_equal(n[0] & 0x7f, 2); /* security */
	assert_int_equal(bytes_get16(n + 12), LID_A);
	assert_int_equal(n[16], METHOD_SET);
	assert_int_equal(bytes_get16(n + 18), 0x15);
	assert_int_equal(bytes_get32(n + 20), 1);
	assert_true(bytes_get64(n + 24) == 0x1122334455667788);
	assert_null(next_notice(&m));
}

/* Trap 257 */
static void an_adapter_tells_of_another_partition(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	const uint8_t *n;

	port_of(w, "B", 1)->pkeys[0] = 0x8006;
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	n = expect_trap(&m, 257, LID_B);
	assert_int_equal(bytes_get16(n + 12), LID_A);
	assert_int_equal(bytes_get16(n + 14), LID_B);
	assert_int_equal(bytes_get32(n + 16), 0xffff);
	assert_int_equal(bytes_get32(n + 24), qpn_of(w->b));
}

/* A program on A sends a MAD with a wrong Q_Key to QP1 of a port. */
static void send_wrong_qkey(struct world *w, uint16_t lid)
{
	struct fabric_agent asked = {.mgmt_class = CLASS_PERF,
				     .class_version = 1};
	uint8_t s[MESSAGE] = {0}, *mad = s + MAD_AT;
	struct end *end;
	int err, agent;

	end = fabric_open(fabric_find(w->f, "A"), 1, NULL, &err);
	assert_non_null(end);
	agent = fabric_register(end, &asked);
	memcpy(s, &agent, sizeof(agent));
	bytes_put32(s + 20, 1); /* QP1 */
	bytes_put32(s + 24, WRONG_QKEY);
	bytes_put16(s + 28, lid);
	mad[0] = mad[2] = 1;
	mad[1] = CLASS_PERF;
	mad[3] = METHOD_GET;
	bytes_put16(mad + 16, 0x12); /* PortCounters */
	assert_int_equal(fabric_send(end, s, MESSAGE), 0);
	fabric_turn(w->f, w->now_ms);
	fabric_close(end);
}

/* Trap 258 */
static void a_port_tells_of_a_wrong_qkey(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	const uint8_t *n;

	send_wrong_qkey(w, LID_B);
	n = expect_trap(&m, 258, LID_B);
	assert_int_equal(n[0] & 0x7f, 2); /* security */
	assert_int_equal(bytes_get16(n + 12), LID_A);
	assert_int_equal(bytes_get16(n + 14), LID_B);
	assert_int_equal(bytes_get32(n + 16), WRONG_QKEY);
	assert_int_equal(bytes_get32(n + 20), 1); /* SL 0, QP1 */
	assert_int_equal(bytes_get32(n + 24), 1);
	send_wrong_qkey(w, LID_B); /* too soon for another trap */
	assert_int_equal(bytes_get16(port_of(w, "B", 1)->info + AT_QKEY_COUNT),
			 2);
	repress_last(&m);
	assert_null(next_notice(&m));
}

/* IBTA 9.6.1: the P_Key is checked before the Q_Key. */
static void a_port_finds_a_wrong_pkey_before_a_wrong_qkey(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	const uint8_t *n;

	port_of(w, "B", 1)->pkeys[0] = 0x8006;
	send_wrong_qkey(w, LID_B);
	n = expect_trap(&m, 257, LID_B);
	assert_int_equal(bytes_get32(n + 16), 0xffff);
	assert_int_equal(bytes_get16(port_of(w, "B", 1)->info + AT_PKEY_COUNT),
			 1);
	assert_int_equal(bytes_get16(port_of(w, "B", 1)->info + AT_QKEY_COUNT),
			 0);
}

/* Makes a datagram from A to the queue pair of a data end. */
static void make_datagram(struct made *m, const struct world *w,
			  const struct data_end *to, uint16_t dlid)
{
	uint8_t *bth = m->bytes + LRH_BYTES;

	make_unicast(m, to, dlid, 1);
	bth[0] = UD_SEND_ONLY;
	bytes_put32(bth + BTH_BYTES, WRONG_QKEY);
	bytes_put24(bth + BTH_BYTES + 5, qpn_of(w->a));
	seal_packet(m);
}

/* Sends a datagram from A, which B fetches. */
static void bring_datagram(struct made *m, struct world *w)
{
	make_datagram(m, w, w->b, LID_B);
	assert_int_equal(send_made(w, m), 0);
	assert_true(fetch_mark(w->b) >= 0);
}

/* Trap 258 of a program's queue pair */
static void a_program_tells_of_a_wrong_qkey(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	const uint8_t *n;
	struct made made;

	bring_datagram(&made, w);
	data_refused(w->b, made.bytes, made.n);
	n = expect_trap(&m, 258, LID_B);
	assert_int_equal(bytes_get16(n + 12), LID_A);
	assert_int_equal(bytes_get16(n + 14), LID_B);
	assert_int_equal(bytes_get32(n + 16), WRONG_QKEY);
	assert_int_equal(bytes_get32(n + 20), qpn_of(w->a));
	assert_int_equal(bytes_get32(n + 24), qpn_of(w->b));
	assert_int_equal(bytes_get16(port_of(w, "B", 1)->info + AT_QKEY_COUNT),
			 1);
}

/* A program can tell only of datagrams that it may have received. */
static void a_program_tells_of_no_other_packets(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	struct made made;

	bring_datagram(&made, w);
	data_refused(w->c, made.bytes, made.n);
	data_refused(w->b, made.bytes, made.n - 1);
	data_refused(w->b, made.bytes, 1);
	/* the queue pair of another end */
	make_datagram(&made, w, w->b, LID_B);
	bytes_put24(made.bytes + LRH_BYTES + 5,
		    qpn_of(w->b) + (1 << DATA_REST_BITS));
	seal_packet(&made);
	data_refused(w->b, made.bytes, made.n);
	make_unicast(&made, w->b, LID_B, 1); /* RC */
	data_refused(w->b, made.bytes, made.n);
	assert_null(next_notice(&m));
	assert_int_equal(bytes_get16(port_of(w, "B", 1)->info + AT_QKEY_COUNT),
			 0);
}

/* A program's report of a wrong Q_Key counts only if the port that the report
 * names has sent the program a datagram.  Each datagram allows one report. */
static void a_program_accuses_only_ports_that_have_sent(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	const uint8_t *violations = port_of(w, "B", 1)->info + AT_QKEY_COUNT;
	struct made made;

	make_datagram(&made, w, w->b, LID_B);
	data_refused(w->b, made.bytes, made.n);
	assert_int_equal(bytes_get16(violations), 0);
	for (int i = 0; i < 3; i++)
		bring_datagram(&made, w);
	bytes_put16(made.bytes + 6, LID_C);
	seal_packet(&made);
	data_refused(w->b, made.bytes, made.n);
	assert_int_equal(bytes_get16(violations), 0);
	assert_null(next_notice(&m));
	make_datagram(&made, w, w->b, LID_B);
	for (int i = 0; i < 5; i++)
		data_refused(w->b, made.bytes, made.n);
	assert_int_equal(bytes_get16(violations), 3);
}

/* The program has not received the datagram that was lost. */
static void a_lost_datagram_accuses_no_port(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	const uint8_t *violations = port_of(w, "B", 1)->info + AT_QKEY_COUNT;
	struct made made;
	size_t n;

	make_datagram(&made, w, w->b, LID_B);
	assert_int_equal(send_made(w, &made), 0);
	assert_non_null(data_fetch(w->b, &n));
	data_lost(w->b);
	assert_null(data_fetch(w->b, &n));
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards, 1);
	data_refused(w->b, made.bytes, made.n);
	assert_int_equal(bytes_get16(violations), 0);
	assert_null(next_notice(&m));
}

/* Trap 259 */
static void a_switch_tells_which_port_refuses_a_partition(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	struct port *out = port_of(w, "S3", 2);
	const uint8_t *n;

	out->info[AT_LANES] |= 4; /* PartitionEnforcementOutbound */
	out->pkeys[0] = 0x8006;
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	n = expect_trap(&m, 259, LID_S3);
	assert_int_equal(bytes_get16(n + 12), LID_A);
	assert_int_equal(bytes_get16(n + 14), LID_B);
	assert_int_equal(bytes_get16(n + 16), 0xffff);
	assert_int_equal(bytes_get32(n + 22), qpn_of(w->b));
	assert_int_equal(bytes_get16(n + 58), LID_S3);
	assert_int_equal(n[60], 2);
	/* valid: the LIDs, P_Key, SL and QP2, but not QP1 and the GIDs */
	assert_int_equal(bytes_get16(n + 10), 0x2f);
}

/* Trap 144 */
static void a_port_tells_its_new_capabilities(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	struct port *a = port_of(w, "A", 1);
	const uint8_t *n;

	port_info_set_sm(a, true);
	n = expect_trap(&m, 144, LID_A);
	assert_int_equal(bytes_get16(n + 12), LID_A);
	assert_int_equal(bytes_get32(n + 16), port_info_capabilities(a));
	assert_true(bytes_get32(n + 16) & 2); /* IsSM */
	repress_last(&m);
	port_info_set_sm(a, true); /* no change */
	assert_null(next_notice(&m));
	port_info_set_sm(a, false);
	n = expect_trap(&m, 144, LID_A);
	assert_false(bytes_get32(n + 16) & 2);
}

/* A program that repeats a violation causes at most one trap in PAUSE_MS. */
static void violations_cannot_flood_the_manager(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);

	for (int i = 0; i < 100; i++)
		set_without_key(w);
	expect_trap(&m, 256, LID_B);
	assert_null(next_notice(&m));
	repress_last(&m);
	w->now_ms += PAUSE_MS - 1;
	set_without_key(w);
	assert_null(next_notice(&m));
	w->now_ms++;
	set_without_key(w);
	expect_trap(&m, 256, LID_B);
}

/* TrapRepress ends only the trap that it answers: the port repeats its other
 * traps. */
static void a_port_has_several_traps_at_once(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);

	set_without_key(w);
	expect_trap(&m, 256, LID_B);
	repress_last(&m);
	port_of(w, "B", 1)->pkeys[0] = 0x8006;
	set_without_key(w); /* too soon */
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	expect_trap(&m, 257, LID_B);
	port_info_set_sm(port_of(w, "B", 1), true);
	expect_trap(&m, 144, LID_B);
	repress_last(&m);
	w->now_ms += PAUSE_MS;
	expect_trap(&m, 257, LID_B);
	assert_null(next_notice(&m));
	repress_last(&m);
	w->now_ms += PAUSE_MS;
	assert_null(next_notice(&m));
}

static void count_packet(void *count, const uint8_t *p, size_t n)
{
	++*(int *)count;
}

/* A TrapRepress of an unknown ClassVersion ends no trap.  No TrapRepress gets
 * an answer (IBTA 13.4.5). */
static void trap_repress_of_an_unknown_version_is_dropped(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	int packets = 0;

	set_without_key(w);
	expect_trap(&m, 256, LID_B);
	m.message[MAD_AT + 2] = 2;
	fabric_watch(w->f, count_packet, &packets);
	repress_last(&m);
	assert_int_equal(packets, 1); /* the TrapRepress alone */
	fabric_watch(w->f, NULL, NULL);
	w->now_ms = trap_deadline(w->f);
	expect_trap(&m, 256, LID_B);
}

static void a_port_that_knows_no_manager_sends_no_trap(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);

	bytes_put16(port_of(w, "B", 1)->info + AT_SM_LID, 0);
	set_without_key(w);
	port_info_set_sm(port_of(w, "B", 1), true);
	assert_null(next_notice(&m));
	assert_true(trap_deadline(w->f) == FABRIC_NEVER);
}

/* A manager that does not answer gets each trap a limited number of times. */
static void a_trap_ends_without_an_answer(void **state)
{
	struct world *w = *state;
	struct manager m = run_manager(w);
	int count = 0;

	trap_link_changed(fabric_find(w->f, "S1"));
	while (next_notice(&m)) {
		assert_uint_in_range(++count, 1, 100);
		w->now_ms = trap_deadline(w->f);
	}
	assert_true(trap_deadline(w->f) == FABRIC_NEVER);
	assert_true(count > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wrong_mkey_is_reported),
		TEST(an_adapter_tells_of_another_partition),
		TEST(a_port_tells_of_a_wrong_qkey),
		TEST(a_port_finds_a_wrong_pkey_before_a_wrong_qkey),
		TEST(a_program_tells_of_a_wrong_qkey),
		TEST(a_program_tells_of_no_other_packets),
		TEST(a_program_accuses_only_ports_that_have_sent),
		TEST(a_lost_datagram_accuses_no_port),
		TEST(a_switch_tells_which_port_refuses_a_partition),
		TEST(a_port_tells_its_new_capabilities),
		TEST(violations_cannot_flood_the_manager),
		TEST(a_port_has_several_traps_at_once),
		TEST(trap_repress_of_an_unknown_version_is_dropped),
		TEST(a_port_that_knows_no_manager_sends_no_trap),
		TEST(a_trap_ends_without_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
