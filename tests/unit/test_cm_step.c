/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/step: every state gets every input.  The matrix has the letter of the next
 * state, or `.` for a cell that is empty.  The matrix is written from IBTA
 * 12.9.7 and 12.11.1, not from the table of cm/step.
 */
#include "test.h"

#include "cm/conv.h"

static const uint8_t here[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t there[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};

#define SECOND 1000000000ull

/* The letters of the states: REQ_SENT, REQ_WAIT, REP_RCVD, REQ_RCVD, REP_SENT,
 * REP_WAIT, ESTABLISHED, DREQ_SENT, TIMEWAIT, SIDR_SENT, SIDR_RCVD, ANSWERED,
 * CLOSED, DREQ_RCVD, HELD */
static const char letters[] = " rwpqsvEdTSRACDh";

static const struct {
	enum conv_state from;
	/* A letter for each input: REQ MRA REJ REP RTU DREQ DREP SIDR_REQ
	 * SIDR_REP, ACCEPT REJECT ESTABLISH DISCONNECT RELEASE, RETRY EXHAUSTED
	 * STALE */
	const char *next;
} matrix[] = {
	{CONV_REQ_SENT, ".wCp.C..."
			"...rC"
			"rC."},
	{CONV_REQ_WAIT, ".wCp.C..."
			"...wC"
			"rC."},
	{CONV_REP_RCVD, "..Cp.C..."
			".AEpA"
			"..C"},
	{CONV_REQ_RCVD, "q.C......"
			"sA.qA"
			"..C"},
	{CONV_REP_SENT, "svC.ED..."
			"..Edd"
			"sTd"},
	{CONV_REP_WAIT, "vvC.ED..."
			"..Edd"
			"sTd"},
	{CONV_ESTABLISHED, "EETEED..."
			   "..Edd"
			   "..d"},
	{CONV_DREQ_SENT, ".dTddDT.."
			 "...dd"
			 "dT."},
	{CONV_TIMEWAIT, "T..TTTT.."
			"...TT"
			".C."},
	{CONV_SIDR_SENT, "........C"
			 "...SC"
			 "SC."},
	{CONV_SIDR_RCVD, ".......R."
			 "AA.RA"
			 "..."},
	{CONV_ANSWERED, "A.AA.A.A."
			"...AA"
			".C."},
	{CONV_CLOSED, "...CCC..."
		      "...CC"
		      "..."},
	{CONV_DREQ_RCVD, "DD.DDDT.."
			 "...TT"
			 "..."},
	{CONV_HELD, "h.C....h."
		    "....."
		    "..."},
};

/* Takes all messages and events, and counts them. */
static void take_output(struct cm *cm, unsigned *messages, unsigned *events)
{
	struct cm_frame f;
	struct cm_event e;

	*messages = *events = 0;
	while (cm_tx(cm, &f))
		++*messages;
	while (cm_event(cm, &e))
		++*events;
}

static struct cm *new_manager(void)
{
	struct cm_config config = {
		.seed = 1, .conversations = 64, .half_open = 8};

	return cm_new(&config, 0);
}

static struct cm_start request_of(enum cmmsg_kind kind)
{
	struct cm_start s = {.user = 7,
			     .msg = {.kind = kind,
				     .qp.qpn = 5,
				     .remote_timeout = 20,
				     .local_timeout = 20,
				     .max_cm_retries = 3}};

	memcpy(s.local, here, 16);
	memcpy(s.peer, there, 16);
	return s;
}

/* Returns a conversation that was put into this state directly. */
static struct conv *in_state(struct cm *cm, enum conv_state state)
{
	bool passive = state == CONV_REQ_RCVD || state == CONV_REP_SENT ||
		       state == CONV_REP_WAIT || state == CONV_SIDR_RCVD ||
		       state == CONV_ANSWERED || state == CONV_HELD;
	bool sidr = state == CONV_SIDR_SENT || state == CONV_SIDR_RCVD;
	struct cm_start s = request_of(sidr ? CMMSG_SIDR_REQ : CMMSG_REQ);
	unsigned messages, events;
	struct conv *c;
	uint32_t id;

	assert_int_equal(cm_connect(cm, &s, 0, &id), 0);
	c = conv_find(cm, id);
	c->is_passive = passive;
	c->is_released = state == CONV_HELD; /* a held request has no owner */
	if (state == CONV_TIMEWAIT || state == CONV_ANSWERED)
		c->retry.left = 0; /* as when the state is reached by inputs */
	conv_set_remote(cm, c, 99);
	if (c->state != state)
		conv_enter(cm, c, state);
	take_output(cm, &messages, &events);
	return c;
}

static struct cmmsg message_to(const struct conv *c, enum conv_input input)
{
	struct cmmsg m = {.local_id = 99, .remote_id = c->local_id};

	if (input <= IN_SIDR_REP)
		m.kind = (enum cmmsg_kind)((int)CMMSG_REQ + (int)input);
	return m;
}

static void every_cell_leads_to_the_state_of_the_specification(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(matrix); i++)
		for (int in = 0; in < CONV_INPUTS; in++) {
			struct cm *cm = new_manager();
			struct conv *c = in_state(cm, matrix[i].from);
			struct cmmsg m = message_to(c, (enum conv_input)in);
			uint32_t id = c->local_id;
			char got = '.';

			if (step_run(cm, c, (enum conv_input)in, &m, SECOND))
				got = conv_find(cm, id) ? letters[c->state]
							: 'C';
			if (got != matrix[i].next[in])
				fail_msg("%c on input %d: %c, not %c",
					 letters[matrix[i].from], in, got,
					 matrix[i].next[in]);
			cm_free(cm);
		}
	assert_int_equal(TEST_COUNT(matrix), CONV_STATES - 1);
}

static void each_cell_yields_at_most_one_message_and_one_event(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(matrix); i++)
		for (int in = 0; in < CONV_INPUTS; in++) {
			struct cm *cm = new_manager();
			struct conv *c = in_state(cm, matrix[i].from);
			struct cmmsg m = message_to(c, (enum conv_input)in);
			unsigned messages, events;

			step_run(cm, c, (enum conv_input)in, &m, SECOND);
			take_output(cm, &messages, &events);
			assert_uint_in_range(messages, 0, 1);
			assert_uint_in_range(events, 0, 1);
			cm_free(cm);
		}
}

/* A REP answers for the alternate path of its REQ (IBTA 12.6.8), as the
 * consumer says.  If the REQ offers no alternate path, the field is
 * CMMSG_FAILOVER_ACCEPTED (0), whatever the consumer says. */
static void a_reply_answers_for_the_alternate_path(void **state)
{
	for (int offers = 0; offers < 2; offers++) {
		struct cm *cm = new_manager();
		struct conv *c = in_state(cm, CONV_REQ_RCVD);
		struct cmmsg m = {.kind = CMMSG_REQ,
				  .alternate.local_lid = offers ? 5 : 0};
		struct cm_frame f;

		cmmsg_write(c->retry.last, &m);
		m = (struct cmmsg){.failover = CMMSG_FAILOVER_UNSUPPORTED};
		assert_true(step_run(cm, c, IN_ACCEPT, &m, SECOND));
		assert_true(cm_tx(cm, &f));
		assert_true(cmmsg_parse(f.mad, MAD_BYTES, &m));
		assert_int_equal(m.kind, CMMSG_REP);
		assert_int_equal(m.failover, offers ? CMMSG_FAILOVER_UNSUPPORTED
						    : CMMSG_FAILOVER_ACCEPTED);
		cm_free(cm);
	}
}

/* If a message comes after the end of its conversation, the answer has the
 * transaction id of the message, which need not be that of the conversation
 * (IBTA 13.4.2). */
static void a_late_message_is_answered_by_its_transaction(void **state)
{
	static const struct {
		enum conv_state state;
		enum conv_input in;
		enum cmmsg_kind kind;
	} table[] = {
		{CONV_TIMEWAIT, IN_REQ, CMMSG_REJ},
		{CONV_TIMEWAIT, IN_REP, CMMSG_REJ},
		{CONV_TIMEWAIT, IN_RTU, CMMSG_REJ},
		{CONV_TIMEWAIT, IN_DREQ, CMMSG_DREP},
		{CONV_CLOSED, IN_REP, CMMSG_REJ},
		{CONV_CLOSED, IN_RTU, CMMSG_REJ},
		{CONV_CLOSED, IN_DREQ, CMMSG_DREP},
	};

	for (size_t i = 0; i < TEST_COUNT(table); i++) {
		struct cm *cm = new_manager();
		struct conv *c = in_state(cm, table[i].state);
		struct cmmsg m = message_to(c, table[i].in);
		struct cm_frame f;

		m.transaction_id = c->transaction_id + 1;
		assert_true(step_run(cm, c, table[i].in, &m, SECOND));
		assert_true(cm_tx(cm, &f));
		assert_true(cmmsg_parse(f.mad, MAD_BYTES, &m));
		assert_int_equal(m.kind, table[i].kind);
		assert_int_equal(m.transaction_id, c->transaction_id + 1);
		cm_free(cm);
	}
}

/* After the release the conversation gets at most one message, and time passes
 * until the conversation has ended. */
static void a_released_conversation_gives_no_events_and_ends(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(matrix); i++)
		for (int in = 0; in < CONV_INPUTS; in++) {
			struct cm *cm = new_manager();
			struct conv *c = in_state(cm, matrix[i].from);
			unsigned messages, events, heard = 0;
			uint32_t id = c->local_id;
			uint64_t now = SECOND;
			struct cmmsg m;

			cm_release(cm, id, now);
			if (conv_find(cm, id) && in < IN_ACCEPT) {
				m = message_to(c, (enum conv_input)in);
				step_run(cm, c, (enum conv_input)in, &m, now);
			}
			for (int turn = 0; turn < 100 && cm_count(cm); turn++) {
				now += 10 * SECOND;
				cm_tick(cm, now);
				take_output(cm, &messages, &events);
				heard += events;
			}
			assert_int_equal(heard, 0);
			assert_int_equal(cm_count(cm), 0);
			assert_int_equal(cm_deadline(cm), WHEEL_NEVER);
			cm_free(cm);
		}
}

static void the_owner_learns_in_bounded_time_that_no_answer_comes(void **state)
{
	for (int strict = 0; strict <= 1; strict++) {
		struct cm *cm = new_manager();
		struct cm_start s = request_of(CMMSG_REQ);
		struct cm_event e;
		struct cm_frame f;
		unsigned sent = 0;
		uint64_t now;
		uint32_t id;

		s.msg.max_cm_retries = 15;
		s.strict = strict;
		cm_connect(cm, &s, 0, &id);
		for (now = 0; !cm_event(cm, &e); cm_tick(cm, now)) {
			while (cm_tx(cm, &f))
				sent++;
			now = cm_deadline(cm);
			assert_true(now < 70 * SECOND);
		}
		assert_int_equal(sent, 16);
		assert_int_equal(e.type, CM_UNREACHABLE);
		assert_true(now > (strict ? 68 : 50) * SECOND);
		cm_free(cm);
	}
}

/* The two CM response timeouts of a REQ (IBTA 12.7) differ.  The receiver of
 * the REQ answers within remote_timeout, and the sender within local_timeout.
 */
static void each_side_waits_as_long_as_the_other_may_need(void **state)
{
	static const struct cm_where any = {.any_v4 = true};
	static const struct cmmsg reply = {.qp.qpn = 9};
	struct cm *active = new_manager(), *passive = new_manager();
	struct cm_start s = request_of(CMMSG_REQ);
	struct cm_event e;
	struct cm_frame f;
	uint32_t id, listener;

	s.msg.service_id = 3;
	s.msg.remote_timeout = 20;
	s.msg.local_timeout = 15;
	assert_int_equal(cm_listen(passive, NULL, 0, 3, &any, 4, &listener), 0);
	assert_int_equal(cm_connect(active, &s, 0, &id), 0);
	assert_int_equal(conv_find(active, id)->retry.timeout_exponent, 20);
	assert_true(cm_tx(active, &f));
	cm_rx(passive, f.from, f.to, &f.way, f.mad, MAD_BYTES, 0);
	assert_true(cm_event(passive, &e));
	assert_int_equal(cm_accept(passive, e.id, &reply, 0), 0);
	assert_int_equal(conv_find(passive, e.id)->retry.timeout_exponent, 15);
	cm_free(active);
	cm_free(passive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_cell_leads_to_the_state_of_the_specification),
		cmocka_unit_test(
			each_cell_yields_at_most_one_message_and_one_event),
		cmocka_unit_test(a_reply_answers_for_the_alternate_path),
		cmocka_unit_test(a_late_message_is_answered_by_its_transaction),
		cmocka_unit_test(
			a_released_conversation_gives_no_events_and_ends),
		cmocka_unit_test(
			the_owner_learns_in_bounded_time_that_no_answer_comes),
		cmocka_unit_test(each_side_waits_as_long_as_the_other_may_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
