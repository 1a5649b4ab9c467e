/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_cm: the memberships of programs end when their port changes. */
#include "fabric_programs.h"

enum {
	MESSAGE = FABRIC_UMAD_BYTES + MAD_BYTES,
	AT_VALUE = FABRIC_UMAD_BYTES + 64, /* the attribute in a message */
	AT_REREGISTER = 51,
	AT_PREFIX = 8, /* GidPrefix in PortInfo */
	REREGISTER = 0x80,
	PKEY_TABLE = 0x16,
	PORT_INFO = 0x15,
	MLID = 0xc001,
	QKEY = 0x01234567,
	OTHER_LID = 20,
};

static const uint8_t mgid[16] = {0xff, 0x12, 0xa0, 0x1b, [15] = 9};

/* A program on M that sets attributes of ports, as a subnet manager does. */
struct manager {
	int fabric, umad;
	uint32_t agent;
	uint8_t message[MESSAGE]; /* the last answer */
};

static struct manager run_manager(void)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_OPEN, .number = 1};
	struct manager sm = {.fabric = join_fabric()};

	strcpy(m.host, "M");
	assert_int_equal(ask_fabric(sm.fabric, &m, &sm.umad), 0);
	m = (struct fabric_proto){
		.kind = FABRIC_PROTO_REGISTER,
		.agent = {.mgmt_class = CLASS_SUBN_LID, .class_version = 1}};
	assert_int_equal(ask_fabric(sm.fabric, &m, NULL), 0);
	sm.agent = m.number;
	return sm;
}

/* Sends sm->message to a LID, with an attribute of port 1, and takes the
 * answer. */
static void exchange_smp(struct manager *sm, uint16_t lid, uint8_t method,
			 uint16_t attribute)
{
	uint8_t *m = sm->message, *mad = m + FABRIC_UMAD_BYTES;
	uint32_t timeout_ms = 5000;

	memset(m, 0, FABRIC_UMAD_BYTES);
	memset(mad, 0, MAD_HEADER_BYTES);
	memcpy(m, &sm->agent, sizeof(sm->agent));
	memcpy(m + 8, &timeout_ms, sizeof(timeout_ms));
	bytes_put16(m + 28, lid);
	mad[0] = mad[1] = mad[2] = 1;
	mad[3] = method;
	bytes_put64(mad + 8, 1);
	bytes_put16(mad + 16, attribute);
	bytes_put32(mad + 20, attribute == PORT_INFO);
	assert_int_equal(send(sm->umad, m, MESSAGE, 0), MESSAGE);
	assert_int_equal(recv(sm->umad, m, MESSAGE, 0), MESSAGE);
	assert_int_equal(bytes_get16(mad + 4), 0);
}

/* Sends Set(PortInfo) with the LID new_lid, and with the bit ClientReregister
 * if `reregister` has it; no other value changes. */
static void set_port(struct manager *sm, uint16_t lid, uint16_t new_lid,
		     uint8_t reregister)
{
	uint8_t *value = sm->message + AT_VALUE;

	exchange_smp(sm, lid, METHOD_GET, PORT_INFO);
	bytes_put16(value + AT_LID, new_lid);
	value[32] &= 0xf0; /* no change of the states */
	value[33] &= 0x0f;
	value[AT_REREGISTER] |= reregister;
	exchange_smp(sm, lid, METHOD_SET, PORT_INFO);
}

/* Sets the P_Key of the partition of A, B and M in the table of A. */
static void set_pkey(struct manager *sm, uint16_t pkey)
{
	exchange_smp(sm, LID_A1, METHOD_GET, PKEY_TABLE);
	bytes_put16(sm->message + AT_VALUE + 2 * PKEY_AT_A, pkey);
	exchange_smp(sm, LID_A1, METHOD_SET, PKEY_TABLE);
}

/* Answers a request to join the group, as the subnet administration. */
static void answer_join(const struct umad_program *sa)
{
	uint8_t m[MESSAGE], *mad = m + FABRIC_UMAD_BYTES;

	assert_int_equal(recv(sa->umad, m, sizeof(m), 0), sizeof(m));
	assert_int_equal(mad[1], CLASS_SA);
	assert_false(sa_asks_leave(mad));
	sa_answer_group(mad, MLID, QKEY, SA_EXACTLY | SA_MTU);
	sa_answer(mad, 0);
	bytes_put32(m + 24, MAD_QP1_QKEY);
	assert_int_equal(send(sa->umad, m, sizeof(m), 0), sizeof(m));
}

static void join_as(const struct program *p, const struct umad_program *sa,
		    uint32_t number, uint16_t pkey)
{
	struct cmproto m = request_of(p, mgid);

	m.call_id = number;
	m.path.pkey = pkey;
	m.at.peer[14] = (uint8_t)pkey; /* each partition has its group */
	m.group.qkey = QKEY;
	m.group.join_state = 1;
	post_message(p, m, CMPROTO_JOIN, 0);
	answer_join(sa);
	m = take_message(p);
	assert_int_equal(m.kind, CMPROTO_DONE);
	assert_int_equal(m.err, 0);
	assert_int_equal(m.group.mlid, MLID);
}

static void expect_lost(const struct program *p, uint32_t number)
{
	assert_int_equal(take_event(p, CMPROTO_GROUP_LOST).call_id, number);
}

static void expect_nothing(const struct program *p)
{
	struct pollfd wait = {.fd = p->cm, .events = POLLIN};

	assert_int_equal(poll(&wait, 1, 0), 0);
}

static void a_port_that_registers_again_has_no_memberships(void **state)
{
	struct umad_program sa = run_agent("M", CLASS_SA, METHOD_SET);
	struct program a = run_program("A", 1, 0), two = run_program("A", 2, 0);
	struct manager sm = run_manager();

	join_as(&a, &sa, 1, 0xffff);
	join_as(&two, &sa, 2, 0xffff);
	set_port(&sm, LID_A1, LID_A1, 0); /* no change */
	expect_nothing(&a);
	set_port(&sm, LID_A1, LID_A1, REREGISTER);
	expect_lost(&a, 1);
	join_as(&a, &sa, 3, 0xffff);
	set_port(&sm, LID_A1, OTHER_LID, 0);
	expect_lost(&a, 3);
	expect_nothing(&a);
	expect_nothing(&two); /* at the other port */
	end_program(&a);
	end_program(&two);
	close_both(sm.umad, sm.fabric);
	end_agent(&sa);
}

/* Sets the GidPrefix of A's port 1. */
static void set_prefix(struct manager *sm, uint64_t prefix)
{
	exchange_smp(sm, LID_A1, METHOD_GET, PORT_INFO);
	bytes_put64(sm->message + AT_VALUE + AT_PREFIX, prefix);
	sm->message[AT_VALUE + 32] &= 0xf0; /* no change of the states */
	sm->message[AT_VALUE + 33] &= 0x0f;
	exchange_smp(sm, LID_A1, METHOD_SET, PORT_INFO);
}

/* The subnet administration's record of the membership has the old GID of the
 * port. */
static void a_port_with_another_gid_has_no_memberships(void **state)
{
	struct umad_program sa = run_agent("M", CLASS_SA, METHOD_SET);
	struct program a = run_program("A", 1, 0), two = run_program("A", 2, 0);
	struct manager sm = run_manager();

	join_as(&a, &sa, 1, 0xffff);
	join_as(&two, &sa, 2, 0xffff);
	set_prefix(&sm, 0x1234ull << 48);
	expect_lost(&a, 1);
	expect_nothing(&a);
	expect_nothing(&two);
	set_prefix(&sm, 0xfe80ull << 48);
	end_program(&a);
	end_program(&two);
	close_both(sm.umad, sm.fabric);
	end_agent(&sa);
}

static void a_port_outside_the_partition_is_no_member(void **state)
{
	struct umad_program sa = run_agent("M", CLASS_SA, METHOD_SET);
	struct program a = run_program("A", 1, 0);
	struct manager sm = run_manager();

	join_as(&a, &sa, 1, 0xffff);
	join_as(&a, &sa, 2, PKEY);
	set_pkey(&sm, PKEY & 0x7fff); /* a limited member */
	expect_nothing(&a);
	set_pkey(&sm, 0);
	expect_lost(&a, 2);
	expect_nothing(&a);
	set_pkey(&sm, PKEY);
	end_program(&a);
	close_both(sm.umad, sm.fabric);
	end_agent(&sa);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(a_port_with_another_gid_has_no_memberships),
		FABRIC_TEST(a_port_outside_the_partition_is_no_member),
		/* last, since it leaves A with a LID that no switch knows */
		FABRIC_TEST(a_port_that_registers_again_has_no_memberships),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
