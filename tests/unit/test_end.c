/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/end: an answer ends a request only if it comes from the port to which
 * the request was sent.  The receiver of a message gets the index at which the
 * receiver's own table has the message's P_Key.  A message of another partition
 * is dropped. */
#include "test.h"

#include <errno.h>

#include "fabric/end.h"
#include "fabric/net.h"
#include "fabric/umad_header.h"
#include "hdr/bytes.h"

#define QP1_QKEY 0x80010000u

enum {
	LID_A = 4,
	LID_B = 8, /* with LMC 1: 8 and 9 */
	LID_C = 12,
	AT_LID = 16, /* in PortInfo */
	AT_LMC = 34,
	CLASS = 0x0a,	 /* no agent of the fabric has this class */
	ID = 0x1234,	 /* the transaction ID */
	HELD = 16 << 20, /* the most bytes that wait for a program */
	PKEY = 0x8005,
	OTHER_PKEY = 0x8006,
	NONE = 0xffff, /* no index: the message was dropped */
	/* The header of RMPP, in a MAD. */
	AT_RMPP = 24,
	ACTIVE_FIRST_LAST = 7,
};

static const char text[] = "Switch 4 \"S\"\n[1] \"A\"[1]\n[2] \"B\"[1]\n"
			   "[3] \"C\"[1]\n\n"
			   "Hca 1 \"A\"\n[1] \"S\"[1]\n\n"
			   "Hca 1 \"B\"\n[1] \"S\"[2]\n\n"
			   "Hca 1 \"C\"\n[1] \"S\"[3]\n";

/* A program with an agent at port 1 of its host. */
struct program {
	struct end *end;
	uint32_t agent;
	uint16_t lid;
};

struct world {
	struct fabric *f;
	struct program a, b, c;
};

static struct port *port_of(const struct world *w, const char *host)
{
	return &fabric_find(w->f, host)->ports[1];
}

static struct program run_program(const struct world *w, const char *host,
				  uint16_t lid, uint8_t mgmt_class)
{
	const struct fabric_agent asked = {.mgmt_class = mgmt_class,
					   .class_version = 1,
					   .methods = {1 << METHOD_GET},
					   .rmpp_version =
						   mgmt_class == CLASS_SA};
	struct node *s = fabric_find(w->f, "S");
	struct port *port = port_of(w, host);
	struct program p = {.lid = lid};
	int agent, err;

	bytes_put16(port->info + AT_LID, lid);
	bytes_put16(s->switch_info + 6, LID_C + 1);
	port->state = port->peer->state = STATE_ACTIVE;
	s->lft[lid] = s->lft[lid + 1] = port->peer->number;
	p.end = fabric_open(fabric_find(w->f, host), 1, NULL, &err);
	assert_non_null(p.end);
	agent = fabric_register(p.end, &asked);
	assert_true(agent >= 0);
	p.agent = (uint32_t)agent;
	return p;
}

static void make_world(struct world *w, uint8_t mgmt_class)
{
	struct net_error error;
	struct net net;

	assert_int_equal(net_parse(text, sizeof(text) - 1, &net, &error), 0);
	w->f = fabric_new(&net);
	net_free(&net);
	assert_non_null(w->f);
	fabric_set_time(w->f, 1);
	w->a = run_program(w, "A", LID_A, mgmt_class);
	w->b = run_program(w, "B", LID_B, mgmt_class);
	w->c = run_program(w, "C", LID_C, mgmt_class);
	port_of(w, "B")->info[AT_LMC] |= 1;
}

/* Sends a MAD of the program to a LID. */
static void send_mad(const struct world *w, const struct program *p,
		     struct umad to, const uint8_t mad[MAD_BYTES])
{
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES];

	to.agent = p->agent;
	to.qpn = 1;
	to.qkey = QP1_QKEY;
	umad_header_write(&to, MAD_BYTES, m);
	memcpy(m + FABRIC_UMAD_BYTES, mad, MAD_BYTES);
	assert_int_equal(fabric_send(p->end, m, sizeof(m)), 0);
	fabric_turn(w->f, 1);
}

static void make_request(uint8_t mgmt_class, uint8_t mad[MAD_BYTES])
{
	memset(mad, 0, MAD_BYTES);
	mad_write(mad, &(struct mad){.base_version = 1,
				     .mgmt_class = mgmt_class,
				     .class_version = 1,
				     .method = METHOD_GET,
				     .transaction_id = ID});
}

/* Takes the program's next message.  Returns whether there is one. */
static bool take_message(const struct program *p, struct umad *from,
			 uint8_t mad[MAD_BYTES])
{
	const uint8_t *got;
	size_t bytes;

	got = fabric_fetch(p->end, &bytes);
	if (!got)
		return false;
	umad_header_parse(got, from);
	assert_true(bytes <= FABRIC_UMAD_BYTES + MAD_BYTES);
	memcpy(mad, got + FABRIC_UMAD_BYTES, bytes - FABRIC_UMAD_BYTES);
	fabric_fetched(p->end);
	return true;
}

/* Sends an answer of `from` to A's request `mad`, with these path bits.
 * Returns whether A gets the answer. */
static bool answer_reaches(const struct world *w, const struct program *from,
			   uint8_t path_bits, const uint8_t mad[MAD_BYTES])
{
	uint8_t answer[MAD_BYTES];
	struct umad header;

	memcpy(answer, mad, MAD_BYTES);
	answer[3] |= MAD_METHOD_RESPONSE;
	send_mad(w, from, (struct umad){.lid = LID_A, .path_bits = path_bits},
		 answer);
	return take_message(&w->a, &header, answer);
}

/* A sends a request to B, and another program on C, which has seen the
 * transaction ID, answers first. */
static void forge_answer(uint8_t mgmt_class, uint8_t path_bits)
{
	struct world w;
	struct umad header;
	uint8_t mad[MAD_BYTES];

	make_world(&w, mgmt_class);
	make_request(mgmt_class, mad);
	send_mad(&w, &w.a, (struct umad){.lid = LID_B, .timeout_ms = 1000},
		 mad);
	assert_true(take_message(&w.b, &header, mad));
	assert_int_equal(header.lid, LID_A);
	if (mgmt_class == CLASS_SA) {
		mad[AT_RMPP] = mad[AT_RMPP + 1] = 1; /* version, DATA */
		mad[AT_RMPP + 2] = ACTIVE_FIRST_LAST;
		bytes_put32(mad + AT_RMPP + 4, 1); /* the segment */
	}
	assert_false(answer_reaches(&w, &w.c, 0, mad));
	assert_true(answer_reaches(&w, &w.b, path_bits, mad));
	/* the request has ended */
	assert_false(answer_reaches(&w, &w.b, path_bits, mad));
	fabric_free(w.f);
}

static void an_answer_from_another_port_ends_no_request(void **state)
{
	forge_answer(CLASS, 0);
}

static void an_answer_may_come_from_any_lid_of_the_port(void **state)
{
	forge_answer(CLASS, 1);
}

static void a_long_answer_from_another_port_ends_no_request(void **state)
{
	forge_answer(CLASS_SA, 0);
}

/* Sends a request from A with the P_Key at `index` of A's table.  Returns the
 * index that B sees; NONE: B does not get the request. */
static uint16_t index_at_b(const struct world *w, uint16_t index)
{
	uint8_t mad[MAD_BYTES];
	struct umad header;

	make_request(CLASS, mad);
	send_mad(w, &w->a, (struct umad){.lid = LID_B, .pkey_index = index},
		 mad);
	return take_message(&w->b, &header, mad) ? header.pkey_index : NONE;
}

static void a_pkey_has_the_index_of_the_receivers_table(void **state)
{
	struct port *a, *b;
	struct world w;

	make_world(&w, CLASS);
	a = port_of(&w, "A");
	b = port_of(&w, "B");
	assert_int_equal(index_at_b(&w, 0), 0);
	a->pkeys[1] = PKEY;
	b->pkeys[1] = OTHER_PKEY;
	assert_int_equal(index_at_b(&w, 1), NONE); /* B lacks the P_Key */
	b->pkeys[2] = PKEY & 0x7fff;
	assert_int_equal(index_at_b(&w, 1), 2);
	b->pkeys[4] = PKEY;
	assert_int_equal(index_at_b(&w, 1), 4);
	a->pkeys[1] &= 0x7fff;
	assert_int_equal(index_at_b(&w, 1), 4);
	/* two limited members exchange no messages */
	b->pkeys[4] = 0;
	assert_int_equal(index_at_b(&w, 1), NONE);
	fabric_free(w.f);
}

/* A sends a request by RMPP to B's second LID.  The ACK comes from that LID. */
static void an_ack_comes_from_the_lid_of_the_segment(void **state)
{
	uint8_t mad[MAD_BYTES];
	struct umad header;
	struct world w;

	make_world(&w, CLASS_SA);
	make_request(CLASS_SA, mad);
	mad[AT_RMPP + 2] = 1; /* active */
	send_mad(&w, &w.a, (struct umad){.lid = LID_B + 1}, mad);
	assert_true(take_message(&w.b, &header, mad));
	/* the ACK has ended the transfer at A; now B forgets the transfer */
	fabric_turn(w.f, fabric_deadline(w.f));
	assert_int_equal(fabric_deadline(w.f), FABRIC_NEVER);
	fabric_free(w.f);
}

/* A program that fetches nothing gets the timeout of its request later. */
static void a_timeout_waits_for_room(void **state)
{
	uint8_t mad[MAD_BYTES];
	struct umad header;
	struct world w;

	make_world(&w, CLASS);
	make_request(CLASS, mad);
	send_mad(&w, &w.a, (struct umad){.lid = LID_B, .timeout_ms = 1000},
		 mad);
	w.a.end->held = HELD;
	fabric_turn(w.f, 1001);
	assert_false(take_message(&w.a, &header, mad));
	w.a.end->held = 0;
	fabric_turn(w.f, fabric_deadline(w.f));
	assert_true(take_message(&w.a, &header, mad));
	assert_int_equal(header.status, ETIMEDOUT);
	assert_int_equal(fabric_deadline(w.f), FABRIC_NEVER);
	fabric_free(w.f);
}

/* A response that finds no room is lost, but the request still waits. */
static void a_response_without_room_ends_no_request(void **state)
{
	uint8_t mad[MAD_BYTES];
	struct umad header;
	struct world w;

	make_world(&w, CLASS);
	make_request(CLASS, mad);
	send_mad(&w, &w.a, (struct umad){.lid = LID_B, .timeout_ms = 1000},
		 mad);
	assert_true(take_message(&w.b, &header, mad));
	w.a.end->held = HELD;
	assert_false(answer_reaches(&w, &w.b, 0, mad));
	w.a.end->held = 0;
	assert_true(answer_reaches(&w, &w.b, 0, mad));
	fabric_free(w.f);
}

/* Registers another agent at A's port.  Returns the tid_high of that agent. */
static uint32_t register_another(const struct world *w, uint8_t mgmt_class)
{
	const struct fabric_agent asked = {.mgmt_class = mgmt_class,
					   .class_version = 1};
	int agent = fabric_register(w->a.end, &asked);

	assert_true(agent >= 0);
	return w->a.end->agents[agent].tid_high;
}

/* After 2^32 registrations fabric.next_tid wraps.  A new agent then gets
 * neither 0 nor the tid_high of another agent at the port. */
static void a_new_agent_has_a_tid_of_its_own(void **state)
{
	uint32_t first;
	struct world w;

	make_world(&w, CLASS);
	first = w.a.end->agents[w.a.agent].tid_high;
	w.f->next_tid = first - 1;
	assert_int_equal(register_another(&w, CLASS + 1), first + 1);
	w.f->next_tid = UINT32_MAX;
	assert_int_equal(register_another(&w, CLASS + 2), first + 2);
	fabric_free(w.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_from_another_port_ends_no_request),
		cmocka_unit_test(an_answer_may_come_from_any_lid_of_the_port),
		cmocka_unit_test(
			a_long_answer_from_another_port_ends_no_request),
		cmocka_unit_test(a_pkey_has_the_index_of_the_receivers_table),
		cmocka_unit_test(an_ack_comes_from_the_lid_of_the_segment),
		cmocka_unit_test(a_timeout_waits_for_room),
		cmocka_unit_test(a_response_without_room_ends_no_request),
		cmocka_unit_test(a_new_agent_has_a_tid_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
